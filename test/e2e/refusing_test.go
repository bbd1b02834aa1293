//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/pki"
	"helenus.io/helenus/test/e2e/scene"
)

// TestStrangersAreRefused: an agent answers those alone who have a certificate of their cluster.
func TestStrangersAreRefused(t *testing.T) {
	ring := threeRacks(t)
	node := ring.NodeNames(t.Context())[0]
	own := authorityOf(t, ring)
	pair, err := pki.NewAuthority(ring.Name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := pki.ParseAuthority(pair)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by       *pki.Authority
		identity pki.Identity
		answered bool
	}{
		"the operator": {by: own, identity: pki.OperatorOf(ring.UID), answered: true},
		"an operator by the word of another authority": {by: stranger, identity: pki.OperatorOf(ring.UID)},
		"the operator of another cluster": {by: own,
			identity: pki.OperatorOf("5f7e0d1c-0000-4000-8000-000000000001")},
		"nobody": {},
	} {
		t.Run(name, func(t *testing.T) {
			// The server is not what is tested here, so that any will do.
			config := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true} //nolint:gosec // see above
			if c.by != nil {
				leaf, err := c.by.Issue(c.identity, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				certificate, err := tls.X509KeyPair(leaf.Certificate, leaf.Key)
				if err != nil {
					t.Fatal(err)
				}
				config.Certificates = []tls.Certificate{certificate}
			}
			status, err := askForFacts(t.Context(), ring, node, config)
			switch {
			case c.answered && (err != nil || status != http.StatusOK):
				t.Errorf("answered with %d, error %v", status, err)
			case !c.answered && err == nil && status != http.StatusForbidden:
				t.Errorf("answered with %d: it was to be refused", status)
			case !c.answered && err != nil && !strings.Contains(err.Error(), "tls: "):
				t.Errorf("%v: it was to be refused for its certificate", err)
			}
		})
	}
}

// authorityOf is the authority of a cluster's certificates, as the operator keeps it.
func authorityOf(t *testing.T, r *scene.Ring) *pki.Authority {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: v1alpha1.AuthorityName(r.Name, v1alpha1.UseAgent)}
	if err := kubernetes.Client.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	authority, err := pki.ParseAuthority(pki.Pair{Certificate: secret.Data[pki.KeyCertificate],
		Key: secret.Data[pki.KeyPrivateKey]})
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// askForFacts asks the agent of a node, and returns the status of the answer.
func askForFacts(ctx context.Context, r *scene.Ring, node string, config *tls.Config) (int, error) {
	forward, err := kubernetes.Forward(ctx, r.Namespace, node, layout.FactsPort)
	if err != nil {
		return 0, err
	}
	defer forward.Close()
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("https://%s%s", forward.Address, agentapi.PathFacts), http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// TestNamespacesAreRestricted: the namespaces of these tests take no pod that the profile
// "restricted" forbids, so that all of ours keep to it.
func TestNamespacesAreRestricted(t *testing.T) {
	ring := threeRacks(t)
	privileged := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ring.Namespace, Name: "privileged"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "none", SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
		}}},
	}
	err := kubernetes.Client.Create(t.Context(), pod, client.DryRunAll)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a privileged pod: %v; want it forbidden by PodSecurity", err)
	}
	for _, pod := range ring.Now(t.Context()).Pods(ring.Name) {
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			if s := c.SecurityContext; s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
				t.Errorf("container %s of pod %s can write to its image", c.Name, pod.Name)
			}
		}
	}
}
