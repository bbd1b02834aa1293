package observe

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/pki"
)

// givenFor is how long a certificate is believed that Helenus does not sign: a renewed one is taken
// after that time at the latest.
const givenFor = time.Minute

// readGiven reads the certificates for a use that Helenus does not sign. What the newest one for
// clients says stands in for what an authority says.
func (s *secrets) readGiven(ctx context.Context, live client.Reader, now time.Time, snapshot *facts.Snapshot,
	use v1alpha1.CertificateUse, o *objects) error {
	cluster := snapshot.Cluster
	key, authority := client.ObjectKeyFromObject(cluster), v1alpha1.AuthorityName(cluster.Name, use)
	calls := snapshot.Calls(use)
	read := func(name string) (facts.Given, error) {
		k, err := s.get(ctx, live, now, key, name, "", givenFor,
			func(secret *corev1.Secret, k *known) { k.judge(secret, use, calls, now) })
		given := facts.Given{Secret: name, Missing: k.secret == nil, Problem: k.problem, Content: k.content}
		if given.Usable() {
			given.Trust = k.trust
			if cluster.Spec.HasOwn(use) && !k.trust.MadeAt.Before(snapshot.Trust[authority].MadeAt) {
				snapshot.Trust[authority] = k.trust
			}
		}
		return given, err
	}
	issuer, ready := cluster.Spec.Issuer(use), true
	if issuer == nil {
		given, err := read(cluster.Spec.ClientsSecret())
		snapshot.Given[""] = given
		return err
	}
	for i := range o.records.Items {
		name := v1alpha1.IssuedName(o.records.Items[i].Name, use)
		certificate, err := s.issued(ctx, live, now, key, name)
		if err != nil {
			return err
		}
		given := facts.Given{Secret: name, Problem: notReady(certificate)}
		if given.Problem != "" {
			ready = false
		} else if given, err = read(name); err != nil {
			return err
		}
		given.Certificate = certificate
		snapshot.Given[name] = given
	}
	if ready && len(o.records.Items) > 0 {
		return nil
	}
	return s.findIssuer(ctx, live, snapshot, use, issuer)
}

// issued is the Certificate of a node; nil if there is none, or no such kind.
func (s *secrets) issued(ctx context.Context, live client.Reader, now time.Time, cluster types.NamespacedName,
	name string) (*unstructured.Unstructured, error) {
	s.mutex.Lock()
	k := s.known[cluster]["Certificate "+name]
	s.mutex.Unlock()
	if k.certificate != nil && now.Sub(k.at) < givenFor && notReady(k.certificate) == "" {
		return k.certificate, nil
	}
	certificate, err := getOther(ctx, live, render.CertificateKind,
		types.NamespacedName{Namespace: cluster.Namespace, Name: name})
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.known == nil {
		s.known = map[types.NamespacedName]map[string]known{}
	}
	if s.known[cluster] == nil {
		s.known[cluster] = map[string]known{}
	}
	s.known[cluster]["Certificate "+name] = known{at: now, certificate: certificate}
	return certificate, nil
}

// leftIssued finds the Certificate of a node that is left although the spec names no issuer any
// more: the node still has what was signed for it, or it has been seen.
func (s *secrets) leftIssued(ctx context.Context, live client.Reader, snapshot *facts.Snapshot, name string,
	secrets []corev1.Secret) error {
	cluster := client.ObjectKeyFromObject(snapshot.Cluster)
	s.mutex.Lock()
	seen := s.known[cluster]["Certificate "+name].certificate != nil
	delete(s.known[cluster], "Certificate "+name)
	s.mutex.Unlock()
	if !seen && (len(secrets) == 0 || facts.SourceOf(&secrets[len(secrets)-1]) != name) {
		return nil
	}
	certificate, err := s.issued(ctx, live, time.Time{}, cluster, name)
	snapshot.Given[name] = facts.Given{Certificate: certificate}
	return err
}

// findIssuer says why there is nobody who could sign.
func (*secrets) findIssuer(ctx context.Context, live client.Reader, snapshot *facts.Snapshot,
	use v1alpha1.CertificateUse, issuer *v1alpha1.CertificateIssuer) error {
	kind := render.IssuerKind(issuer)
	name := types.NamespacedName{Namespace: snapshot.Cluster.Namespace, Name: issuer.Name}
	if kind.Group != render.CertificateKind.Group {
		return nil // it may not be read
	}
	if kind.Kind != "Issuer" {
		name.Namespace = ""
	}
	found, err := getOther(ctx, live, kind, name)
	if err == nil && found == nil {
		snapshot.NoIssuer[use] = fmt.Sprintf("there is no %s %s of %s", kind.Kind, name, kind.Group)
	}
	return err
}

// getOther is an object of a kind that Kubernetes may not have; nil if there is none.
func getOther(ctx context.Context, live client.Reader, kind schema.GroupVersionKind, name types.NamespacedName) (
	*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(kind)
	switch err := live.Get(ctx, name, out); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", kind.Kind, name, err)
	}
	return out, nil
}

// notReady says why what cert-manager has signed is not what is asked for; empty if it is.
func notReady(certificate *unstructured.Unstructured) string {
	if certificate == nil {
		return "there is no Certificate yet"
	}
	conditions, _, _ := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		of, known := condition["observedGeneration"].(int64)
		switch {
		case condition["type"] != "Ready" || known && of != certificate.GetGeneration():
		case condition["status"] == "True":
			return ""
		default:
			return fmt.Sprintf("Certificate %s is not Ready: %v", certificate.GetName(), condition["message"])
		}
	}
	return fmt.Sprintf("Certificate %s is not Ready: cert-manager has not said why", certificate.GetName())
}

// judge a certificate that Helenus does not sign; calls says that nodes show it as clients, too.
func (k *known) judge(secret *corev1.Secret, use v1alpha1.CertificateUse, calls bool, now time.Time) {
	leaf := pki.Pair{Certificate: secret.Data[pki.KeyCertificate], Key: secret.Data[pki.KeyPrivateKey]}
	_, bundle, err := pki.Given(leaf, secret.Data[pki.KeyBundle], calls, now)
	if err == nil && use == v1alpha1.UseInternode {
		_, err = pki.AuthorityOf(leaf.Certificate, bundle)
	}
	k.content, k.trust.Bundle = render.ContentHash(secret), string(bundle)
	switch {
	case secret.Labels[v1alpha1.LabelCluster] != "":
		k.problem = "is one of those that Helenus makes: it must be one of your own"
	case err != nil:
		k.problem = "cannot be used: " + err.Error()
	}
}
