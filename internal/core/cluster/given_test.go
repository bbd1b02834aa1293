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
	w.snapshot.NoIssuer = map[v1alpha1.CertificateUse]string{
		v1alpha1.UseClients: "there is no Issuer shop/ours of cert-manager.io"}
	made := w.settle()
	if s := made.Stalled; s == nil || s.Reason != v1alpha1.ReasonIssuerNotFound || len(w.snapshot.Records()) > 0 ||
		!strings.HasPrefix(s.Message, "spec.security.encryption.certificates.clients.issuerRef: there is no Issuer") {
		t.Fatalf("stalled %+v", s)
	}
	w.snapshot.NoIssuer = nil
	w.settle()
	for _, name := range three {
		w.issue(v1alpha1.UseClients, name, name != second)
	}
	w.snapshot.Given[second+"-clients-issued"].Certificate.SetCreationTimestamp(metav1.NewTime(w.now.Add(-time.Hour)))
	if made := w.settle(); w.snapshot.Shared.Secrets[second+"-clients-tls"] != nil ||
		w.snapshot.Shared.Secrets[three[0]+"-clients-tls"] == nil ||
		!slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
			return n.Reason == v1alpha1.NoticeCertificateNotRenewed && slices.Equal(n.Nodes, []string{second}) &&
				strings.Contains(n.Message, "is not Ready: pending")
		}) {
		t.Errorf("notices %+v", made.Notices)
	}
	w.issue(v1alpha1.UseClients, second, true)
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
	w.snapshot.Given[certificate.GetName()] = facts.Given{Secret: certificate.GetName(), Certificate: certificate,
		Problem: "Certificate is not Ready: pending"}
}

// issue has cert-manager sign by the issuer that is asked for, or not.
func (w *world) issue(use v1alpha1.CertificateUse, node string, signs bool) {
	name := v1alpha1.IssuedName(node, use)
	given := w.snapshot.Given[name]
	if given.Certificate == nil {
		w.t.Fatalf("no Certificate of %s", node)
	}
	if signs {
		by := facts.Authority{Fingerprint: "issuer", MadeAt: w.now, EndsAt: w.now.Add(tenYears)}
		if use == v1alpha1.UseInternode {
			by.Fingerprint, _, _ = unstructured.NestedString(given.Certificate.Object, "spec", "issuerRef", "name")
		}
		given.Problem, given.Content = "", string(w.uid("content"))
		given.Trust = facts.Trust{Signer: by.Fingerprint, Trusted: []facts.Authority{by}, MadeAt: w.now,
			Bundle: by.Fingerprint + pemEnd}
		if use == v1alpha1.UseClients {
			w.snapshot.Trust[clientsCA] = given.Trust
		}
	}
	w.snapshot.Given[name] = given
}

// signedBy names who signs the certificates between nodes; Helenus if it is empty.
func (w *world) signedBy(issuer string) {
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Security.Encryption = &v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
			Internode: &v1alpha1.InternodeAuthority{}}}
		if issuer != "" {
			s.Security.Encryption.Certificates.Internode.IssuerRef = &v1alpha1.CertificateIssuer{Name: issuer}
		}
	})
}

// signs has cert-manager sign for each node what is not signed by the issuer that is asked for.
func (w *world) signs() {
	for _, n := range w.snapshot.Records() {
		g := w.snapshot.GivenTo(v1alpha1.UseInternode, n.Name)
		if g.Certificate == nil {
			continue
		}
		issuer, _, _ := unstructured.NestedString(g.Certificate.Object, "spec", "issuerRef", "name")
		if !g.Usable() || g.Trust.Signer != issuer {
			w.issue(v1alpha1.UseInternode, n.Name, true)
		}
	}
}

// Between nodes an authority takes the place of another one, of Helenus or of an issuer, in stages
// in which all nodes trust each other; what nobody signs any more is shown until then.
func TestAnIssuerTakesThePlaceOfAnAuthority(t *testing.T) {
	w := formed(t)
	w.settle()
	own := w.snapshot.Trust[internodeCA].Signer
	walk := func(issuer string, each func(pass int)) string {
		t.Helper()
		stages := w.rotation(internodeCA, 40, func(pass int) {
			if pass == 1 {
				w.signedBy(issuer)
			}
			if each != nil {
				each(pass)
			}
			w.signs()
		})
		trust := w.snapshot.Trust[internodeCA]
		if !slices.Equal(stages, allStages) || trust.Given != (issuer != "") || trust.Given && trust.Signer != issuer {
			t.Errorf("%q: stages %v, %+v", issuer, stages, trust)
		}
		for _, n := range w.snapshot.Records() {
			if !n.Proves(v1alpha1.UseInternode, trust) {
				t.Errorf("%q: node %s has %+v", issuer, n.Name, n.Record.Status.Certificates)
			}
		}
		return trust.Signer
	}
	walk("a", nil)
	walk("b", func(pass int) {
		if pass%7 == 3 {
			w.snapshot.Ledger = nil
		}
	})
	if again := walk("", nil); again == own || len(w.snapshot.Given) > 0 {
		t.Errorf("signed by %s again; left %v", again, w.snapshot.Given)
	}
}

// Wherever somebody changes his mind, nobody is cut off, and what he asked for last is what is.
func TestAnIssuerIsChangedOnTheWay(t *testing.T) {
	for _, at := range []int{0, 1, 2, 3, 5, 7} {
		for _, last := range []string{"b", "", "c"} {
			w := formed(t)
			w.settle()
			w.signedBy("b")
			w.rotation(internodeCA, 30, func(int) { w.signs() })
			w.rotation(internodeCA, 60, func(pass int) {
				switch pass {
				case 1:
					w.signedBy("c")
				case 2 + at:
					w.signedBy(last)
				}
				if pass%2 == 0 { // cert-manager takes its time
					w.signs()
				}
			})
			trust := w.snapshot.Trust[internodeCA]
			if len(trust.Trusted) != 1 || trust.Given != (last != "") || last != "" && trust.Signer != last {
				t.Errorf("after %d passes %q: %+v", at, last, trust)
			}
		}
	}
}

// An issuer whose authority is replaced signs by the new one when a certificate is renewed: until
// the last one is, both are trusted, and the nodes that wait are named.
func TestAnIssuerHasAnotherAuthority(t *testing.T) {
	w := formed(t)
	w.settle()
	w.signedBy("a")
	w.rotation(internodeCA, 40, func(int) { w.signs() })
	renew := func(name string) {
		g := w.snapshot.Given[v1alpha1.IssuedName(name, v1alpha1.UseInternode)]
		by := facts.Authority{Fingerprint: "new", MadeAt: w.now, EndsAt: w.now.Add(tenYears)}
		g.Content, g.Trust = string(w.uid("content")), facts.Trust{Signer: "new", MadeAt: w.now,
			Trusted: []facts.Authority{by}}
		w.snapshot.Given[g.Secret] = g
	}
	renew(three[0])
	w.rotation(internodeCA, 60, nil)
	made := w.pass()
	for _, name := range three[1:] {
		if !slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
			return b.Reason == v1alpha1.BlockedAuthorityStageIncomplete && slices.Contains(b.Nodes, name) &&
				strings.Contains(b.Message, "cert-manager has signed none for it")
		}) {
			t.Errorf("%s: blocked %+v", name, made.Blocked)
		}
	}
	if got := certificateOf(w.snapshot.Nodes[three[0]], v1alpha1.UseInternode).Authority; got != "new" {
		t.Errorf("the renewed one is not shown, but one of %s", got)
	}
	renew(three[1])
	renew(three[2])
	if stages := w.rotation(internodeCA, 20, nil); stages[len(stages)-1] != "1 Signing" ||
		w.snapshot.Trust[internodeCA].Signer != "new" {
		t.Errorf("stages %v", stages)
	}
}

// However often an issuer has another authority, so many are trusted at a time.
func TestAuthoritiesThatAreTrustedAreBounded(t *testing.T) {
	w := formed(t)
	w.settle()
	w.signedBy("a")
	w.rotation(internodeCA, 40, func(int) { w.signs() })
	w.rotation(internodeCA, 60, func(pass int) {
		if pass%4 != 0 {
			return
		}
		name := v1alpha1.IssuedName(three[0], v1alpha1.UseInternode)
		g, by := w.snapshot.Given[name], w.authority()
		g.Content, g.Trust = string(w.uid("content")), facts.Trust{Signer: by.Fingerprint, MadeAt: w.now,
			Trusted: []facts.Authority{by}}
		w.snapshot.Given[name] = g
	})
	if got := len(w.snapshot.Trust[internodeCA].Trusted); got != 4 {
		t.Errorf("%d authorities", got)
	}
}

// A ring is made with the authority of an issuer, which nodes wait for.
func TestARingIsMadeWithAnIssuerBetweenNodes(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.snapshot.Trust = map[string]facts.Trust{}
	w.signedBy("a")
	w.snapshot.NoIssuer = map[v1alpha1.CertificateUse]string{v1alpha1.UseInternode: "there is no Issuer shop/a"}
	if s := w.settle().Stalled; s == nil || s.Reason != v1alpha1.ReasonIssuerNotFound ||
		!strings.HasPrefix(s.Message, "spec.security.encryption.certificates.internode.issuerRef: there is no Issuer") {
		t.Fatalf("stalled %+v", s)
	}
	w.snapshot.NoIssuer = nil
	if w.settle(); w.snapshot.Shared.Secrets[internodeCA] != nil {
		t.Fatal("there is an authority, and nothing was signed")
	}
	w.signs()
	w.settle()
	w.wantOpen()
	for _, n := range w.snapshot.Records() {
		if c := certificateOf(n, v1alpha1.UseInternode); c.Authority != "a" || !slices.Equal(c.Trusted, []string{"a"}) {
			t.Errorf("%s has %+v", n.Name, c)
		}
	}
}

// What an issuer has signed badly, or by an authority that clients have, changes nothing.
func TestABadIssuerBetweenNodes(t *testing.T) {
	const says = "spec.security.encryption.certificates.internode.issuerRef: Secret orders-"
	for words, spoil := range map[string]func(*world, *facts.Given){
		"cannot be used: ca.crt has no certificate authority": func(_ *world, g *facts.Given) {
			g.Problem = "cannot be used: ca.crt has no certificate authority"
		},
		"could join the ring": func(w *world, g *facts.Given) {
			g.Trust.Signer = w.snapshot.Trust[clientsCA].Signer
		},
	} {
		w := formed(t)
		w.settle()
		before := w.snapshot.Trust[internodeCA].Signer
		w.signedBy("a")
		w.settle()
		for _, name := range three {
			w.issue(v1alpha1.UseInternode, name, true)
			g := w.snapshot.GivenTo(v1alpha1.UseInternode, name)
			spoil(w, &g)
			w.snapshot.Given[g.Secret] = g
		}
		if s := w.settle().Stalled; s == nil || s.Reason != v1alpha1.ReasonInvalidSpec ||
			!strings.HasPrefix(s.Message, says) || !strings.Contains(s.Message, words) {
			t.Errorf("%s: stalled %+v", words, s)
		}
		if got := w.snapshot.Trust[internodeCA]; got.Signer != before || len(got.Trusted) > 1 {
			t.Errorf("%s: %+v", words, got)
		}
	}
}

// Clients get no certificate of the authority between nodes either.
func TestClientsDoNotGetTheAuthorityBetweenNodes(t *testing.T) {
	w := formed(t)
	w.settle()
	shown := w.shown()
	w.own("1", w.snapshot.Trust[internodeCA].Trusted[0], &metav1.Duration{})
	if s := w.settle().Stalled; s == nil || !strings.Contains(s.Message, "certificates.clients.secretName: Secret mine") ||
		!strings.Contains(s.Message, "could join the ring") || !slices.Equal(w.shown(), shown) {
		t.Errorf("stalled %+v; nodes show %v", s, w.shown())
	}
}
