package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

func TestARingIsMadeWithEncryptionUnlessItIsOlder(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.settle()
	made := w.snapshot.Ledger.MadeWith.Encryption
	if want := (v1alpha1.NodeEncryption{Internode: v1alpha1.EncryptionRequired, Clients: v1alpha1.EncryptionOptional,
		ClientCertificates: v1alpha1.ClientCertificatesNone}); made == nil || *made != want {
		t.Fatalf("made with %+v, want %+v", made, want)
	}
	if m := w.snapshot.Shared.ConfigMaps["orders-clients-ca"]; m == nil || m.Data["ca.crt"] != w.snapshot.Trust["orders-clients-ca"].Bundle {
		t.Errorf("clients find %+v", m)
	}
	w.snapshot.Ledger.MadeWith.Encryption = nil
	for _, n := range w.snapshot.Records() {
		n.Record.Spec.Configuration.Encryption, n.Record.Spec.Pod.Certificates = nil, nil
		for _, use := range []string{"-internode-tls", "-clients-tls"} {
			delete(w.snapshot.Shared.Secrets, n.Name+use)
		}
	}
	for _, write := range w.pass().Writes {
		if write.Verb == plan.IssueCertificate || write.Verb == plan.Delete || write.Verb == plan.Apply {
			t.Errorf("of an older ring: %s", write)
		}
	}
}

// asking is a ring of three that is asked for a mode of encryption, between nodes and for clients.
func (w *world) asking(mode v1alpha1.EncryptionMode) {
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Security = &v1alpha1.Security{Encryption: &v1alpha1.Encryption{
			Internode: &v1alpha1.InternodeEncryption{Mode: mode}, Clients: &v1alpha1.ClientEncryption{Mode: mode}}}
	})
}

// stages are those that the ledger of a ring goes through until it is as it was asked to be. Each
// node runs one that is next to that of each other.
func (w *world) stages(interrupt func(stage v1alpha1.NodeEncryption)) (out []v1alpha1.NodeEncryption) {
	w.t.Helper()
	for range 600 {
		w.pass()
		w.now = w.now.Add(10 * time.Second)
		l := w.snapshot.Ledger
		if l == nil {
			continue
		}
		now := w.snapshot.Encryption().OrNotEncrypted()
		if len(out) == 0 || out[len(out)-1] != now {
			out = append(out, now)
			if interrupt != nil {
				interrupt(now)
			}
		}
		for _, a := range w.snapshot.Records() {
			for _, b := range w.snapshot.Records() {
				x, y := runs(w, a), runs(w, b)
				if step := facts.EncryptionAfter(x, y); step != y {
					w.t.Fatalf("%s runs %+v, and %s %+v", a.Name, x, b.Name, y)
				}
			}
		}
		if l.Step == nil && w.snapshot.NextEncryption() == nil && (l.Encryption == nil || l.Encryption.Before == nil) {
			return out
		}
	}
	w.t.Fatalf("not over: %+v\n%s", out, Next(w.snapshot, w.now))
	return nil
}

func runs(w *world, n *facts.Node) v1alpha1.NodeEncryption {
	if n.Pod == nil {
		return n.Record.Spec.Configuration.Encryption.OrNotEncrypted()
	}
	c := w.started[n.Pod.UID]
	return c.Encryption.OrNotEncrypted()
}

const (
	disabled, optional, required = v1alpha1.EncryptionDisabled, v1alpha1.EncryptionOptional, v1alpha1.EncryptionRequired
	uncertified                  = v1alpha1.ClientCertificatesNone
)

func TestARingIsEncryptedStageByStage(t *testing.T) {
	w := formed(t)
	w.asking(disabled)
	back := []v1alpha1.NodeEncryption{{Internode: required, Clients: optional, ClientCertificates: uncertified},
		{Internode: optional, Clients: disabled, ClientCertificates: uncertified},
		{Internode: optional, ConnectsPlain: true, Clients: disabled, ClientCertificates: uncertified},
		{Internode: disabled, Clients: disabled, ClientCertificates: uncertified}}
	if got := w.stages(nil); !slices.Equal(got[len(got)-3:], back[1:]) {
		t.Errorf("stages %+v, want %+v", got, back)
	}
	w.asking(required)
	there := []v1alpha1.NodeEncryption{
		{Internode: optional, ConnectsPlain: true, Clients: optional, ClientCertificates: uncertified},
		{Internode: optional, Clients: required, ClientCertificates: uncertified},
		{Internode: required, Clients: required, ClientCertificates: uncertified}}
	made := Next(w.snapshot, w.now)
	if passes := Ahead(w.snapshot, made, w.now).Passes; len(passes) != 2 ||
		passes[1] != "encryption Optional → Required between nodes" {
		t.Errorf("announced: %q", passes)
	}
	if got := w.stages(nil); !slices.Equal(got, there) {
		t.Errorf("stages %+v, want %+v", got, there)
	}
}

// Whatever is lost on the way, and whatever is asked for, nodes understand each other throughout.
func TestAStageOfEncryptionSurvives(t *testing.T) {
	for name, c := range map[string]struct {
		interrupt func(w *world)
		ends      v1alpha1.EncryptionMode
	}{
		"a lost ledger": {func(w *world) { w.snapshot.Ledger = nil }, required},
		"another wish":  {func(w *world) { w.asking(disabled) }, disabled},
		"as it was made": {func(w *world) {
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Security = nil })
		}, required},
		"a wish for less": {func(w *world) { w.asking(optional) }, optional},
	} {
		t.Run(name, func(t *testing.T) {
			for at := range 3 {
				w := formed(t)
				w.asking(disabled)
				w.stages(nil)
				w.asking(required)
				seen := 0
				w.stages(func(v1alpha1.NodeEncryption) {
					if seen++; seen == at+1 {
						for range 12 {
							w.pass()
							w.now = w.now.Add(10 * time.Second)
						}
						c.interrupt(w)
					}
				})
				if got := w.snapshot.Encryption(); got.Internode != c.ends {
					t.Errorf("interrupted in stage %d it ends as %+v", at, got)
				}
			}
		})
	}
}

func TestWhatHoldsAStageOfEncryptionBack(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		reason v1alpha1.Reason
		words  []string
	}{
		"nothing": {func(*world) {}, "", nil},
		"a node that is down": {func(w *world) { w.snapshot.Nodes[second].Agent = nil },
			v1alpha1.BlockedEncryptionStageIncomplete, []string{"encryption Optional → Required for clients", second}},
		"an agent of an earlier release": {func(w *world) {
			w.snapshot.Nodes[second].Record.Status.Configuration.Encryption = nil
		}, v1alpha1.BlockedEncryptionStageIncomplete, []string{"delete its pod"}},
		"a client": {func(w *world) {
			w.snapshot.Nodes[second].Agent.Ring.PlainClients = []string{"10.7.7.7 (driver 1)"}
		}, v1alpha1.BlockedPlainClients, []string{"10.7.7.7 (driver 1)"}},
		"nothing is known of clients": {func(w *world) { w.snapshot.Nodes[second].Agent.Ring.PlainClients = nil },
			v1alpha1.BlockedPlainClients, []string{"does not say yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.asking(required)
			c.change(w)
			made := Next(w.snapshot, w.now)
			made.Notices = nil
			wantBlocked(t, made, c.reason, c.words...)
			begins := slices.ContainsFunc(made.Writes, func(w plan.Write) bool { return w.Verb == plan.PutLedger })
			if begins != (c.reason == "") {
				t.Errorf("begins: %v\n%s", begins, made)
			}
		})
	}
}

func TestEncryptionIsRecommendedToAnOlderRing(t *testing.T) {
	w := formed(t)
	if made := w.settle(); len(made.Recommended) > 0 {
		t.Errorf("recommended %+v", made.Recommended)
	}
	w.snapshot.Ledger.MadeWith = nil
	made := Next(w.snapshot, w.now)
	if r := made.Recommended; len(r) != 1 || r[0].Operation != "EnableInternodeEncryption" {
		t.Errorf("recommended %+v", r)
	}
}

func TestALostAuthorityOfNodesIsNotMadeAgain(t *testing.T) {
	for use, name := range map[string]string{"internode": "orders-internode-ca", "clients": "orders-clients-ca"} {
		w := formed(t)
		w.settle()
		lost := w.snapshot.Shared.Secrets[name]
		leaf := second + "-" + use + "-tls"
		delete(w.snapshot.Shared.Secrets, name)
		delete(w.snapshot.Shared.Secrets, leaf)
		made := w.pass()
		if len(made.Writes) > 0 || len(made.Blocked) != 1 || made.Blocked[0].Reason != v1alpha1.BlockedCAMissing ||
			!strings.Contains(made.Blocked[0].Message, "helenus.io/component="+use) {
			t.Errorf("%s: blocked %+v:\n%s", use, made.Blocked, made)
		}
		w.snapshot.Shared.Secrets[name] = lost
		wantWrites(t, w.pass(), leaf, "IssueCertificate Secret")
	}
}

func TestACertificateForClientsFollowsTheAddressOfItsPod(t *testing.T) {
	w := formed(t)
	w.settle()
	w.snapshot.Nodes[second].Pod.Status.PodIP = "10.9.9.9"
	made := w.pass()
	wantWrites(t, made, second+"-clients-tls", "IssueCertificate Secret")
	wantWrites(t, made, second+"-internode-tls")
}

func TestACertificateThatIsNotRenewedIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		status v1alpha1.CertificateStatus
		want   string
	}{
		"young": {v1alpha1.CertificateStatus{NotAfter: after(30 * 24 * time.Hour)}, ""},
		"near its end": {v1alpha1.CertificateStatus{NotAfter: after(13 * 24 * time.Hour)},
			"that of node " + second + " for internode: it ends at"},
		"refused": {v1alpha1.CertificateStatus{NotAfter: after(30 * 24 * time.Hour), Problem: "garbage"}, "garbage"},
	} {
		w := formed(t)
		w.settle()
		c.status.Use = v1alpha1.UseInternode
		if c.status.NotAfter != nil {
			c.status.NotAfter.Time = w.now.Add(c.status.NotAfter.Sub(time.Time{}))
		}
		w.snapshot.Nodes[second].Record.Status.Certificates = []v1alpha1.CertificateStatus{c.status}
		got := ""
		for _, n := range w.pass().Notices {
			if n.Reason == v1alpha1.NoticeCertificateNotRenewed {
				got = n.Message
			}
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// after is a time that long after the zero time.
func after(d time.Duration) *metav1.Time { return &metav1.Time{Time: time.Time{}.Add(d)} }
