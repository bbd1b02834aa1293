package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// own has the spec name a Secret of the user's own, which has a certificate of an authority.
func (w *world) own(content string, by facts.Authority, hold *metav1.Duration) {
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Security.Encryption = &v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
			Clients: &v1alpha1.ClientsAuthority{SecretName: "mine", Hold: hold}}}
	})
	w.given(content, by)
}

func (w *world) given(content string, by facts.Authority) {
	trust := facts.Trust{Signer: by.Fingerprint, Trusted: []facts.Authority{by}, Bundle: by.Fingerprint + pemEnd}
	w.snapshot.Given = map[string]facts.Given{"": {Secret: "mine", Content: content, Trust: trust}}
	w.snapshot.Trust[clientsCA] = trust
}

const pemEnd = "-----END CERTIFICATE-----\n"

// shown are the authorities of what nodes show to clients.
func (w *world) shown() (out []string) {
	for _, n := range w.snapshot.Records() {
		if c := certificateOf(n, v1alpha1.UseClients); !slices.Contains(out, c.Authority) {
			out = append(out, c.Authority)
		}
	}
	return out
}

func TestACertificateOfTheUsersOwn(t *testing.T) {
	w := formed(t)
	w.settle()
	secret, own := w.snapshot.Shared.Secrets[clientsCA], w.snapshot.Trust[clientsCA]
	w.now = w.now.Add(time.Hour)
	delete(w.snapshot.Shared.Secrets, clientsCA) // it is not read any more
	first, second := w.authority(), w.authority()
	trusted := func() string { return w.snapshot.Shared.ConfigMaps[clientsCA].Data["ca.crt"] }
	wants := func(shows facts.Authority, trust ...facts.Authority) {
		t.Helper()
		w.now = w.now.Add(10 * time.Second)
		w.settle()
		text := ""
		for _, a := range trust {
			text += a.Fingerprint + pemEnd
		}
		if got := w.shown(); len(got) != 1 || got[0] != shows.Fingerprint || trusted() != text {
			t.Fatalf("nodes show %v, clients trust %q; want %s, %q", got, trusted(), shows.Fingerprint, text)
		}
	}
	w.own("1", first, nil)
	wants(own.Trusted[0], first, own.Trusted[0])
	if made := Next(w.snapshot, w.now); !slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
		return n.Reason == v1alpha1.NoticeClientsAuthorityChanges
	}) {
		t.Errorf("notices %+v", made.Notices)
	}
	w.now = w.now.Add(7 * 24 * time.Hour)
	wants(first, first)

	w.given("2", first) // renewed by the same authority: at once
	made := w.pass()
	for _, name := range three {
		wantWrites(t, made, name+"-clients-tls", "IssueCertificate Secret")
		wantWrites(t, made, name+"-internode-tls")
	}
	w.settle()
	w.given("3", second) // by another one: clients have time
	wants(first, second, first)
	w.own("3", second, &metav1.Duration{})
	wants(second, second)

	w.snapshot.Given = nil // back to what Helenus signs
	w.snapshot.Shared.Secrets[clientsCA], w.snapshot.Trust[clientsCA] = secret, own
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Security.Encryption.Certificates.Clients = &v1alpha1.ClientsAuthority{Hold: &metav1.Duration{}}
	})
	wants(own.Trusted[0], own.Trusted[0])
	if slices.Contains(w.events, "AuthorityRenewed") {
		t.Errorf("events %v", w.events)
	}
}

// What cannot be used changes nothing, and says where it stands.
func TestABadCertificateOfTheUsersOwn(t *testing.T) {
	for name, bad := range map[string]facts.Given{
		"cannot be used: tls.key does not belong to tls.crt": {Secret: "mine", Content: "2",
			Problem: "cannot be used: tls.key does not belong to tls.crt"},
		"there is no such Secret": {Secret: "mine", Missing: true},
	} {
		stalled := func(made plan.Plan) {
			t.Helper()
			if s := made.Stalled; s == nil || s.Reason != v1alpha1.ReasonInvalidSpec ||
				!strings.HasPrefix(s.Message, "spec.security.encryption.certificates.clients.secretName") ||
				!strings.Contains(s.Message, name) || made.Wake > 30*time.Second {
				t.Errorf("%s: stalled %+v, wakes in %s", name, s, made.Wake)
			}
		}
		of := map[string]facts.Given{"": bad}
		w := formed(t)
		w.settle()
		w.own("1", w.authority(), &metav1.Duration{})
		w.settle()
		shown := w.shown()
		w.snapshot.Given = of
		delete(w.snapshot.Trust, clientsCA)
		made := w.settle()
		if stalled(made); !slices.Equal(w.shown(), shown) || len(made.Blocked) > 0 {
			t.Errorf("%s: nodes show %v, and showed %v; blocked %+v", name, w.shown(), shown, made.Blocked)
		}

		w = newWorld(t, datacenter("dc1", 1, 1, 1))
		w.snapshot.Trust = map[string]facts.Trust{}
		w.own("1", w.authority(), nil)
		w.snapshot.Given = of
		delete(w.snapshot.Trust, clientsCA)
		if stalled(w.settle()); len(w.snapshot.Records()) > 0 {
			t.Errorf("%s: a ring is made", name)
		}
	}
}

// A ring is made with the user's own, and has no authority for clients then.
func TestARingIsMadeWithACertificateOfTheUsersOwn(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.snapshot.Trust = map[string]facts.Trust{}
	by := w.authority()
	w.own("1", by, nil)
	w.settle()
	w.wantOpen()
	if w.snapshot.Shared.Secrets[clientsCA] != nil || !slices.Equal(w.shown(), []string{by.Fingerprint}) {
		t.Errorf("nodes show %v", w.shown())
	}
}

// cert-manager signs for each node; what is not Ready is waited for, and named in time.
func TestCertManagerSigns(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.snapshot.Trust = map[string]facts.Trust{}
	clients := &v1alpha1.ClientsAuthority{IssuerRef: &v1alpha1.CertificateIssuer{Name: "ours"},
		Hold: &metav1.Duration{}}
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Security.Encryption = &v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{Clients: clients}}
	})
	w.snapshot.NoIssuer = "there is no Issuer shop/ours of cert-manager.io"
	made := w.settle()
	if s := made.Stalled; s == nil || s.Reason != v1alpha1.ReasonIssuerNotFound || len(w.snapshot.Records()) > 0 ||
		!strings.HasPrefix(s.Message, "spec.security.encryption.certificates.clients.issuerRef: there is no Issuer") {
		t.Fatalf("stalled %+v", s)
	}
	w.snapshot.NoIssuer = ""
	w.settle()
	for _, name := range three {
		w.issue(name, name != second)
	}
	w.snapshot.Given[second].Certificate.SetCreationTimestamp(metav1.NewTime(w.now.Add(-time.Hour)))
	if made := w.settle(); w.snapshot.Shared.Secrets[second+"-clients-tls"] != nil ||
		w.snapshot.Shared.Secrets[three[0]+"-clients-tls"] == nil ||
		!slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
			return n.Reason == v1alpha1.NoticeCertificateNotRenewed && slices.Equal(n.Nodes, []string{second}) &&
				strings.Contains(n.Message, "is not Ready: pending")
		}) {
		t.Errorf("notices %+v", made.Notices)
	}
	w.issue(second, true)
	w.settle()
	w.wantOpen()
	if !slices.Equal(w.shown(), []string{"issuer"}) {
		t.Errorf("nodes show %v", w.shown())
	}

	// The issuer is taken out: the Certificates go.
	clients.IssuerRef = nil
	delete(w.snapshot.Trust, clientsCA)
	w.settle()
	if slices.Contains(w.shown(), "issuer") || len(w.snapshot.Given) > 0 {
		t.Errorf("nodes show %v; left %v", w.shown(), w.snapshot.Given)
	}
}

// certify is what is there when a Certificate is applied.
func (w *world) certify(write plan.Write) {
	if w.snapshot.Given == nil {
		w.snapshot.Given = map[string]facts.Given{}
	}
	certificate := write.Object.(*unstructured.Unstructured).DeepCopy()
	certificate.SetUID(w.uid("certificate"))
	certificate.SetCreationTimestamp(metav1.NewTime(w.now))
	w.snapshot.Given[write.Node] = facts.Given{Secret: v1alpha1.IssuedName(write.Node), Certificate: certificate,
		Problem: "Certificate is not Ready: pending"}
}

// issue has cert-manager sign, or not.
func (w *world) issue(node string, signs bool) {
	given := w.snapshot.Given[node]
	if given.Certificate == nil {
		w.t.Fatalf("no Certificate of %s", node)
	}
	if signs {
		by := facts.Authority{Fingerprint: "issuer", MadeAt: w.now, EndsAt: w.now.Add(tenYears)}
		given.Problem, given.Content = "", "1"
		given.Trust = facts.Trust{Signer: "issuer", Trusted: []facts.Authority{by}, Bundle: "issuer" + pemEnd}
		w.snapshot.Trust[clientsCA] = given.Trust
	}
	w.snapshot.Given[node] = given
}
