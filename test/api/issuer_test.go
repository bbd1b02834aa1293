package api

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/pki"
)

var certificates = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}

// signer stands in for cert-manager: it signs for a Certificate, and says that it is Ready.
type signer struct {
	t    *testing.T
	user dynamic.Interface
	in   string
	by   *pki.Authority
	ca   []byte
}

func newSigner(t *testing.T, in string) *signer {
	t.Helper()
	authority, err := pki.NewAuthority("issuer", time.Now())
	must(t, err)
	by, err := pki.ParseAuthority(authority)
	must(t, err)
	return &signer{t, dynamicClient(t, server), in, by, authority.Certificate}
}

func (s *signer) sign(ctx context.Context, certificate *unstructured.Unstructured) {
	s.t.Helper()
	names, _, err := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	must(s.t, err)
	pair, err := s.by.IssueLeaf(pki.Leaf{Name: certificate.GetName(), DNSNames: names, Lifetime: 24 * time.Hour},
		time.Now())
	must(s.t, err)
	name, _, err := unstructured.NestedString(certificate.Object, "spec", "secretName")
	must(s.t, err)
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": name}, "type": "kubernetes.io/tls", "stringData": map[string]any{
			pki.KeyCertificate: string(pair.Certificate), pki.KeyPrivateKey: string(pair.Key),
			pki.KeyBundle: string(s.ca)}}}
	_, err = s.user.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(s.in).
		Create(ctx, secret, metav1.CreateOptions{})
	must(s.t, err)
	certificate.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True",
		"observedGeneration": certificate.GetGeneration()}}}
	_, err = s.user.Resource(certificates).Namespace(s.in).UpdateStatus(ctx, certificate, metav1.UpdateOptions{})
	must(s.t, err)
}

// certificatesOfIssuer: the operator has cert-manager sign what nodes show to clients and to each
// other, as soon as Kubernetes has it and the issuers, takes over what is Ready, and leaves nothing
// behind when the spec names no issuer any more.
func certificatesOfIssuer(t *testing.T, in string) {
	t.Helper()
	signs := map[v1alpha1.CertificateUse]*signer{v1alpha1.UseInternode: newSigner(t, in),
		v1alpha1.UseClients: newSigner(t, in)}
	user, all := signs[v1alpha1.UseClients].user, signs[v1alpha1.UseClients].user.Resource(clusters).Namespace(in)
	cluster := base("CassandraCluster")
	cluster.SetName("issued")
	must(t, unstructured.SetNestedMap(cluster.Object, map[string]any{"clients": map[string]any{"hold": "0s",
		"issuerRef": map[string]any{"name": "ours"}}, "internode": map[string]any{"issuerRef": map[string]any{
		"name": "nodes", "kind": "Issuer"}}}, "spec", "security", "encryption", "certificates"))
	_, err := all.Create(t.Context(), cluster, metav1.CreateOptions{})
	must(t, err)
	stalled := func(words string) {
		t.Helper()
		must(t, eventually(t.Context(), "it is stalled: "+words, func(context.Context) (bool, error) {
			c, err := all.Get(t.Context(), "issued", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			conditions, _, _ := unstructured.NestedSlice(c.Object, "status", "conditions")
			for _, c := range conditions {
				c := c.(map[string]any)
				if c["type"] == v1alpha1.ConditionStalled && c["status"] == "True" {
					return c["reason"] == v1alpha1.ReasonIssuerNotFound &&
						strings.Contains(c["message"].(string), words), nil
				}
			}
			return false, nil
		}))
	}
	stalled("certificates.internode.issuerRef: there is no Issuer")
	definitions, err := decode("testdata/cert-manager.yaml")
	must(t, err)
	for _, d := range definitions {
		_, err := user.Resource(definitionKind).Create(t.Context(), d, metav1.CreateOptions{})
		must(t, err)
	}
	t.Cleanup(func() {
		for _, d := range definitions {
			must(t, user.Resource(definitionKind).Delete(context.Background(), d.GetName(), metav1.DeleteOptions{}))
		}
	})
	issue := func(name string) {
		t.Helper()
		issuer := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cert-manager.io/v1", "kind": "Issuer",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{},
		}}
		must(t, eventually(t.Context(), "issuers are served", func(context.Context) (bool, error) {
			_, err := user.Resource(certificates.GroupVersion().WithResource("issuers")).Namespace(in).
				Create(t.Context(), issuer, metav1.CreateOptions{})
			return err == nil, client404(err)
		}))
	}
	issue("nodes")
	stalled("certificates.clients.issuerRef: there is no Issuer")
	issue("ours")
	node := ""
	must(t, eventually(t.Context(), "Certificates are made", func(context.Context) (bool, error) {
		list, err := user.Resource(certificates).Namespace(in).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items)%2 == 1 || len(list.Items) == 0 {
			return false, client404(err)
		}
		for i := range list.Items {
			labels := list.Items[i].GetLabels()
			node = labels[v1alpha1.LabelNode]
			signs[v1alpha1.CertificateUse(labels[v1alpha1.LabelComponent])].sign(t.Context(), &list.Items[i])
		}
		return true, nil
	}))
	shows := func(use v1alpha1.CertificateUse, by string, is bool) {
		t.Helper()
		must(t, eventually(t.Context(), "a certificate is signed by "+by, func(context.Context) (bool, error) {
			s, err := user.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(in).
				Get(t.Context(), v1alpha1.CertificateName(node, use), metav1.GetOptions{})
			if err != nil {
				return false, client404(err)
			}
			bundle, _, err := unstructured.NestedString(s.Object, "data", pki.KeyBundle)
			return (s.GetAnnotations()[v1alpha1.AnnotationSource] != "") == is &&
				(bundle == base64.StdEncoding.EncodeToString(signs[use].ca)) == is, err
		}))
	}
	shows(v1alpha1.UseClients, "the issuer", true)
	shows(v1alpha1.UseInternode, "the issuer of nodes", true)
	_, err = all.Patch(t.Context(), "issued", types.MergePatchType,
		[]byte(`{"spec":{"security":{"encryption":{"certificates":{"clients":{"issuerRef":null},"internode":null}}}}}`),
		metav1.PatchOptions{})
	must(t, err)
	shows(v1alpha1.UseClients, "Helenus", false)
	must(t, eventually(t.Context(), "Certificates are gone", func(context.Context) (bool, error) {
		list, err := user.Resource(certificates).Namespace(in).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	}))
}
