package act

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/pki"
)

// A Secret is looked at every ten minutes, and a node without a certificate does not wait for that:
// whoever signs looks again.
func TestNoCertificateIsSignedByAnAuthorityThatWasEditedMeanwhile(t *testing.T) {
	w := writer(t, interceptor.Funcs{})
	authority := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: v1alpha1.AuthorityName("orders")}}
	issue := func(name string) Result {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
			Labels: map[string]string{v1alpha1.LabelNode: "orders-dc1-r1-0"}}}
		return w.Do(t.Context(), snapshot(), plan.Plan{Writes: []plan.Write{{Verb: plan.IssueCertificate,
			Object: secret}}}, confirmed, &consistency.Store{})
	}
	if done := w.Do(t.Context(), snapshot(),
		plan.Plan{Writes: []plan.Write{{Verb: plan.IssueAuthority, Object: authority}}}, confirmed,
		&consistency.Store{}); done.Err != nil {
		t.Fatal(done.Err)
	}
	if done := issue("orders-dc1-r1-0-agent-tls"); done.Err != nil {
		t.Fatal(done.Err)
	}

	stranger, err := pki.NewAuthority("stranger", w.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(authority), authority); err != nil {
		t.Fatal(err)
	}
	authority.Data = map[string][]byte{pki.KeyCertificate: stranger.Certificate, pki.KeyPrivateKey: stranger.Key,
		pki.KeyBundle: stranger.Certificate}
	if err := w.Client.Update(t.Context(), authority); err != nil {
		t.Fatal(err)
	}
	if done := issue("orders-dc1-r2-0-agent-tls"); done.Err == nil ||
		!strings.Contains(done.Err.Error(), "somebody edited Secret orders-") {
		t.Errorf("a certificate by an authority that was edited: %v, want it refused", done.Err)
	}
}
