package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/plan"
)

const (
	internodeCA, clientsCA = "orders-internode-ca", "orders-clients-ca"
	tenYears               = 10 * 365 * 24 * time.Hour
)

// sign is what a Secret of a certificate holds when it is written.
func (w *world) sign(verb plan.Verb, secret *corev1.Secret) {
	use := v1alpha1.CertificateUse(secret.Labels[v1alpha1.LabelComponent])
	if w.snapshot.Trust == nil {
		w.snapshot.Trust = map[string]facts.Trust{}
	}
	of, source := w.snapshot.Trust[v1alpha1.AuthorityName("orders", use)], facts.SourceOf(secret)
	switch {
	case verb == plan.IssueAuthority:
		a := w.introduced(secret)
		of = facts.Trust{Signer: a.Fingerprint, Trusted: []facts.Authority{a}, Bundle: a.Fingerprint + pemEnd,
			Given: source != ""}
	case use == v1alpha1.UseInternode && source == secret.Name:
		of.Signer = w.snapshot.Trust[secret.Name].Signer
	case use == v1alpha1.UseInternode && source != "":
		of.Signer = w.snapshot.Given[source].Trust.Signer
	case of.Given:
		w.t.Fatalf("%s is signed by an authority without a key", secret.Name)
	}
	if of.MadeAt = w.now; verb == plan.IssueCertificate {
		if of.Next, of.Given, of.NextGiven = "", false, false; !of.Trusts(of.Signer) {
			w.t.Fatalf("%s is signed by %s, and there is %+v", secret.Name, of.Signer, of.Trusted)
		}
		secret.Annotations[v1alpha1.AnnotationContent] = secret.ResourceVersion
	}
	w.snapshot.Trust[secret.Name] = of
}

func (w *world) authority() facts.Authority {
	return facts.Authority{Fingerprint: string(w.uid("authority")), MadeAt: w.now, RenewAt: w.now.Add(tenYears / 3 * 2),
		EndsAt: w.now.Add(tenYears)}
}

// introduced is the authority of an issuer, or one that is made.
func (w *world) introduced(secret plan.Object) facts.Authority {
	if source := facts.SourceOf(secret.(*corev1.Secret)); source != "" {
		return w.snapshot.Given[source].Trust.Trusted[0]
	}
	return w.authority()
}

// rotate has an authority go on to its next stage.
func (w *world) rotate(write plan.Write) {
	w.t.Helper()
	name := write.Object.GetName()
	if have := w.snapshot.Shared.Secrets[name]; have == nil || have.UID != write.UID {
		w.t.Fatalf("%s: of another Secret than was seen", write)
	}
	t := w.snapshot.Trust[name]
	source, introduces := write.Object.GetAnnotations()[v1alpha1.AnnotationSource]
	switch {
	case introduces:
		a := w.introduced(write.Object)
		t.Next, t.NextGiven = a.Fingerprint, source != ""
		if !t.Trusts(a.Fingerprint) {
			t.Trusted = append(slices.Clone(t.Trusted), a)
		}
	case t.Next != "":
		i := slices.IndexFunc(t.Trusted, func(a facts.Authority) bool { return a.Fingerprint == t.Next })
		t.Trusted = slices.Concat(t.Trusted[i:i+1], t.Trusted[:i], t.Trusted[i+1:])
		t.Signer, t.Given, t.Next, t.NextGiven = t.Next, t.NextGiven, "", false
	default:
		t.Trusted = t.Trusted[:1]
	}
	t.Bundle = strings.Join(t.Fingerprints(), pemEnd) + pemEnd
	w.snapshot.Trust[name] = t
}

// prove is what an agent says of the certificates that its JVM runs with.
func (w *world) prove(n *facts.Node) (out []v1alpha1.CertificateStatus) {
	if c, runs := w.started[n.Pod.UID]; runs && n.Agent.Ring != nil {
		for _, use := range c.Encryption.Uses() {
			t := w.snapshot.Trust[v1alpha1.CertificateName(n.Name, use)]
			out = append(out, v1alpha1.CertificateStatus{Use: use, Authority: t.Signer, Trusted: t.Fingerprints()})
		}
	}
	return out
}

// certificates of the spec, with a time of rotation for an authority.
func (w *world) rotateAt(use v1alpha1.CertificateUse, hold *metav1.Duration) {
	at := metav1.NewTime(w.now)
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		c := &v1alpha1.Certificates{}
		if use == v1alpha1.UseInternode {
			c.Internode = &v1alpha1.InternodeAuthority{RotatedAt: &at}
		} else {
			c.Clients = &v1alpha1.ClientsAuthority{RotatedAt: &at, Hold: hold}
		}
		if s.Security.Encryption == nil {
			s.Security.Encryption = &v1alpha1.Encryption{}
		}
		s.Security.Encryption.Certificates = c
	})
}

func traceRotateAuthority(t *testing.T, s *trace) {
	w := formed(t)
	w.settle()
	s.ledger = w.snapshot.Ledger
	w.now = w.now.Add(time.Hour)
	w.rotateAt(v1alpha1.UseInternode, nil)
	s.runUntilIdle(w, nil)
	w.rotateAt(v1alpha1.UseClients, nil)
	for range 3 {
		s.runUntilIdle(w, nil)
		w.now = w.now.Add(7 * 24 * time.Hour)
	}
}

// rotation runs passes until nothing of a rotation is left to do, and says which stages there were.
// In every pass each node trusts what every other node shows.
func (w *world) rotation(name string, passes int, each func(pass int)) (stages []string) {
	w.t.Helper()
	use := v1alpha1.CertificateUse(strings.TrimSuffix(strings.TrimPrefix(name, "orders-"), "-ca"))
	for i := range passes {
		if each != nil {
			each(i)
		}
		w.pass()
		w.now = w.now.Add(10 * time.Second)
		t := w.snapshot.Trust[name]
		stage := fmt.Sprintf("%d %s", len(t.Trusted), t.Stage(t.Trusted[len(t.Trusted)-1].Fingerprint))
		if len(stages) == 0 || stages[len(stages)-1] != stage {
			stages = append(stages, stage)
		}
		for _, a := range w.snapshot.Records() {
			for _, b := range w.snapshot.Records() {
				x, y := certificateOf(a, use), certificateOf(b, use)
				if x != nil && y != nil && !slices.Contains(x.Trusted, y.Authority) {
					w.t.Fatalf("pass %d: %s shows %s, and %s trusts %v", i, b.Name, y.Authority, a.Name, x.Trusted)
				}
			}
		}
	}
	return stages
}

func certificateOf(n *facts.Node, use v1alpha1.CertificateUse) *v1alpha1.CertificateStatus {
	for i, c := range n.Record.Status.Certificates {
		if c.Use == use && c.Authority != "" {
			return &n.Record.Status.Certificates[i]
		}
	}
	return nil
}

var allStages = []string{"1 Signing", "2 Introduced", "2 Retired", "1 Signing"}

// Whatever is lost on the way, an authority is replaced once for a time, and nodes trust each
// other.
func TestAnAuthorityIsReplacedStageByStage(t *testing.T) {
	for name, each := range map[string]func(w *world, pass int){
		"undisturbed": func(*world, int) {},
		"the ledger is lost again and again": func(w *world, pass int) {
			if pass%5 == 2 {
				w.snapshot.Ledger = nil
			}
		},
		"a node's certificate is lost": func(w *world, pass int) {
			if pass == 5 || pass == 9 {
				delete(w.snapshot.Shared.Secrets, second+"-internode-tls")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.settle()
			before := w.snapshot.Trust[internodeCA].Signer
			w.now = w.now.Add(time.Hour)
			stages := w.rotation(internodeCA, 40, func(pass int) {
				if pass == 1 {
					w.rotateAt(v1alpha1.UseInternode, nil)
				}
				each(w, pass)
			})
			if !slices.Equal(stages, allStages) || w.snapshot.Trust[internodeCA].Signer == before {
				t.Errorf("stages %v, want %v", stages, allStages)
			}
			for _, n := range w.snapshot.Records() {
				if !n.Proves(v1alpha1.UseInternode, w.snapshot.Trust[internodeCA]) {
					t.Errorf("node %s has %+v", n.Name, n.Record.Status.Certificates)
				}
			}
		})
	}
}

func TestAnAuthorityIsReplacedAfterTwoThirdsOfItsLife(t *testing.T) {
	w := formed(t)
	w.settle()
	late := w.now.Add(tenYears / 3 * 2)
	if w.now = late.Add(-24 * time.Hour); verbsOf(w.pass(), plan.RotateAuthority) > 0 {
		t.Error("replaced early")
	}
	if w.now = late.Add(time.Hour); verbsOf(w.pass(), plan.RotateAuthority) != 2 {
		t.Error("not replaced in time")
	}
	w = formed(t)
	w.settle()
	w.rotateAt(v1alpha1.UseInternode, nil)
	w.snapshot.Cluster.Spec.Security.Encryption.Certificates.Internode.RotatedAt.Time = w.now.Add(time.Hour)
	if verbsOf(w.pass(), plan.RotateAuthority) > 0 {
		t.Error("replaced before the time of a person")
	}
}

// A node that does not prove its certificate holds the stage, and is named when it had time.
func TestANodeHoldsTheStageOfAnAuthority(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n *facts.Node)
		words  []string
	}{
		"down": {func(n *facts.Node) { n.Agent, n.Unreachable = nil, "no route" },
			[]string{second, "no route", "internode"}},
		"of an earlier release": {func(n *facts.Node) {
			n.Record.Status.Certificates = []v1alpha1.CertificateStatus{{Use: v1alpha1.UseInternode}}
		}, []string{second, "delete its pod"}},
		"refusing": {func(n *facts.Node) {
			n.Record.Status.Certificates = []v1alpha1.CertificateStatus{{Use: v1alpha1.UseInternode, Problem: "garbage"}}
		}, []string{second, "garbage"}},
	} {
		for _, stage := range []string{"2 Introduced", "2 Retired"} {
			t.Run(name+" "+stage, func(t *testing.T) {
				w := formed(t)
				w.settle()
				w.now = w.now.Add(time.Hour)
				w.rotateAt(v1alpha1.UseInternode, nil)
				at := func() string {
					got := w.snapshot.Trust[internodeCA]
					return fmt.Sprintf("%d %s", len(got.Trusted), got.Stage(got.Trusted[len(got.Trusted)-1].Fingerprint))
				}
				for at() != stage {
					w.pass()
				}
				w.pass() // certificates of the stage
				c.change(w.snapshot.Nodes[second])
				if made := Next(w.snapshot, w.now); len(made.Blocked) > 0 || verbsOf(made, plan.RotateAuthority) > 0 {
					t.Errorf("at once blocked %+v:\n%s", made.Blocked, made)
				}
				w.now = w.now.Add(6 * time.Minute)
				made := Next(w.snapshot, w.now)
				made.Notices = nil
				wantBlocked(t, made, v1alpha1.BlockedAuthorityStageIncomplete, c.words...)
				if verbsOf(made, plan.RotateAuthority) > 0 {
					t.Errorf("goes on:\n%s", made)
				}
				rules := guard.All()
				rules.Authority = nil
				if made := NextBy(rules, w.snapshot, w.now); verbsOf(made, plan.RotateAuthority) != 1 {
					t.Errorf("held by more than its guard:\n%s", made)
				}
			})
		}
	}
}

func TestClientsHaveTimeForAnotherAuthority(t *testing.T) {
	const week = 7 * 24 * time.Hour
	for name, c := range map[string]struct {
		hold         *metav1.Duration
		certificates v1alpha1.ClientCertificates
		first, then  time.Duration // until the new one signs, and until the old one is dropped
	}{
		"by default":           {nil, uncertified, week, week},
		"a day":                {&metav1.Duration{Duration: 24 * time.Hour}, uncertified, 24 * time.Hour, 24 * time.Hour},
		"none":                 {&metav1.Duration{}, uncertified, 0, 0},
		"with certificates":    {nil, v1alpha1.ClientCertificatesRequired, week, tenYears - week - time.Hour},
		"with them, by a word": {&metav1.Duration{Duration: week}, v1alpha1.ClientCertificatesRequired, week, week},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			made := w.snapshot.Ledger.MadeWith.Encryption
			made.Clients, made.ClientCertificates = v1alpha1.EncryptionRequired, c.certificates
			w.change(func(s *v1alpha1.CassandraClusterSpec) {
				s.Security.Encryption = &v1alpha1.Encryption{Clients: &v1alpha1.ClientEncryption{
					Mode: v1alpha1.EncryptionRequired, ClientCertificates: c.certificates}}
			})
			w.settle()
			w.rotateAt(v1alpha1.UseClients, c.hold)
			w.now = w.now.Add(time.Second)
			w.rotateAt(v1alpha1.UseClients, c.hold)
			old := w.snapshot.Trust[clientsCA].Signer
			for i, hold := range []time.Duration{0, c.first, c.then} {
				if hold > 0 {
					w.now = w.now.Add(hold - time.Hour)
					w.settle()
					if got := w.snapshot.Trust[clientsCA]; i == 1 && got.Signer != old || !got.Trusts(old) {
						t.Fatalf("%+v after less than %s", got, hold)
					}
					if made := Next(w.snapshot, w.now); !slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
						return n.Reason == v1alpha1.NoticeClientsAuthorityChanges
					}) {
						t.Errorf("notices %+v", made.Notices)
					}
					w.now = w.now.Add(2 * time.Hour)
				}
				w.settle()
				if m := w.snapshot.Shared.ConfigMaps[clientsCA]; m.Data["ca.crt"] != w.snapshot.Trust[clientsCA].Bundle {
					t.Errorf("clients find %+v", m.Data)
				}
				if c.hold != nil && c.hold.Duration == 0 {
					break
				}
				if got := w.snapshot.Trust[clientsCA]; (got.Signer == old) != (i == 0) || got.Trusts(old) != (i < 2) {
					t.Fatalf("%+v after %d stages", got, i+1)
				}
			}
			if w.snapshot.Trust[clientsCA].Trusts(old) {
				t.Error("not over")
			}
		})
	}
}

// The time that clients have starts again when the ConfigMap was not what it is to be.
func TestClientsHaveTheConfigMapForAllOfTheTime(t *testing.T) {
	w := formed(t)
	w.settle()
	w.now = w.now.Add(time.Hour)
	w.rotateAt(v1alpha1.UseClients, nil)
	w.settle()
	w.now = w.now.Add(8 * 24 * time.Hour)
	delete(w.snapshot.Shared.ConfigMaps, clientsCA)
	w.settle()
	if w.snapshot.Trust[clientsCA].Next == "" {
		t.Fatal("the new one signs, and clients have just got it")
	}
	w.now = w.now.Add(8 * 24 * time.Hour)
	w.settle()
	if w.snapshot.Trust[clientsCA].Next != "" {
		t.Error("held for ever")
	}
}

// A Secret of an authority that was restored from before its replacement signs nothing: nodes would
// get a bundle without the authority of the others.
func TestAnEarlierAuthorityThatIsRestoredSignsNothing(t *testing.T) {
	w := formed(t)
	w.settle()
	secret, before := w.snapshot.Shared.Secrets[internodeCA].DeepCopy(), w.snapshot.Trust[internodeCA]
	w.now = w.now.Add(time.Hour)
	w.rotateAt(v1alpha1.UseInternode, nil)
	w.settle()
	after := w.snapshot.Trust[internodeCA]
	w.snapshot.Shared.Secrets[internodeCA], w.snapshot.Trust[internodeCA] = secret, before
	made := w.settle()
	if len(made.Blocked) != 1 || made.Blocked[0].Reason != v1alpha1.BlockedCAModified ||
		!strings.Contains(made.Blocked[0].Message, "earlier content was restored") {
		t.Errorf("blocked %+v", made.Blocked)
	}
	w.snapshot.Trust[internodeCA] = after
	if made := w.settle(); len(made.Blocked) > 0 {
		t.Errorf("blocked %+v", made.Blocked)
	}
}
