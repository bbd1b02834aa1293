package cluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
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
	if m := w.snapshot.Shared.ConfigMaps["orders-clients-ca"]; m == nil || m.Data["ca.crt"] != "certificate" {
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

func TestTheEncryptionOfARingDoesNotChange(t *testing.T) {
	w := formed(t)
	w.settle()
	w.snapshot.Cluster.Spec.Security = &v1alpha1.Security{Encryption: &v1alpha1.Encryption{
		Internode: &v1alpha1.InternodeEncryption{Mode: v1alpha1.EncryptionOptional}}}
	wantStalled(t, w.pass(), v1alpha1.ReasonUnsupportedChange,
		"security.encryption.internode.mode: Required → Optional: a ring that exists cannot change that yet; take the "+
			"change back")
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
