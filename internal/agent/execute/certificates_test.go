package execute

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/pki"
)

// fakeCertificates are one that is given, and the one that Cassandra has until it reloads; deaf
// says that it does not then either.
type fakeCertificates struct {
	*world
	given  pki.Pair
	bundle []byte
	before *x509.Certificate
	deaf   bool
}

func (f *fakeCertificates) Given(v1alpha1.CertificateUse) (pki.Pair, []byte, error) {
	return f.given, f.bundle, nil
}

func (f *fakeCertificates) Served(context.Context, v1alpha1.CertificateUse, pki.Pair, []byte) (*x509.Certificate,
	error) {
	if f.deaf || !slices.Contains(f.calls, "reload certificates") {
		return f.before, nil
	}
	certificates, err := pki.ParseCertificates(f.given.Certificate)
	if err != nil {
		return nil, err
	}
	return certificates[0], nil
}

func given(t *testing.T, w *world) (*Agent, *fakeCertificates) {
	t.Helper()
	pair, err := pki.NewAuthority("orders", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	signer, err := pki.ParseAuthority(pair)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeCertificates{world: w, bundle: pair.Certificate}
	for range 2 {
		if f.given.Certificate != nil {
			old, err := pki.ParseCertificates(f.given.Certificate)
			if err != nil {
				t.Fatal(err)
			}
			f.before = old[0]
		}
		if f.given, err = signer.IssueLeaf(pki.Leaf{Name: self, Lifetime: time.Hour}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	a := w.agent()
	a.host.Certificates = f
	return a, f
}

func TestACertificateIsRenewedWhenCassandraShowsIt(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		w := newWorld(t)
		a, f := given(t, w)
		f.deaf = deaf
		got := a.proveCertificates(nil, node.ProveCertificates{Uses: []v1alpha1.CertificateUse{v1alpha1.UseInternode}})(
			t.Context())
		if want := []string{"replace internode.pem", "replace internode-ca.pem", "reload certificates"}; !slices.Equal(
			slices.Sorted(slices.Values(w.calls)), slices.Sorted(slices.Values(want))) {
			t.Errorf("calls %v, want %v", w.calls, want)
		}
		if len(a.certificates) != 1 {
			t.Fatalf("known: %+v", a.certificates)
		}
		switch c := a.certificates[0]; {
		case deaf && (got.err == nil || c.Served != "" || !strings.Contains(c.Problem, "its log says why")):
			t.Errorf("Cassandra shows another one: %+v, error %v", c, got.err)
		case !deaf && (got.err != nil || c.Served == "" || c.SerialNumber == serialOf(f.before) || c.Problem != ""):
			t.Errorf("%+v, error %v", c, got.err)
		case !deaf && (len(c.Trusted) != 1 || c.Authority != c.Trusted[0]):
			t.Errorf("signed by %q, trusted %q", c.Authority, c.Trusted)
		case deaf && c.Trusted != nil:
			t.Errorf("trusts %q, and nothing is proven", c.Trusted)
		}
	}
}

func TestAStartHasTheCertificateOfBeforeInPlaceOfABadOne(t *testing.T) {
	w := newWorld(t)
	a, f := given(t, w)
	encryption := &v1alpha1.NodeEncryption{Internode: v1alpha1.EncryptionRequired, Clients: v1alpha1.EncryptionDisabled}
	files := config.Files{}
	if err := a.addCertificates(encryption, files); err != nil || len(files) != 2 ||
		!strings.Contains(string(files["internode.pem"]), "BEGIN PRIVATE KEY") {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	f.given.Certificate = []byte("garbage")
	if err := a.addCertificates(encryption, files); err != nil ||
		string(files["internode.pem"]) != "num_tokens: 16\n" { // what fakeFiles has
		t.Errorf("%q, error %v", files["internode.pem"], err)
	}
	a.host.Files = emptyFiles{a.host.Files}
	if err := a.addCertificates(encryption, files); err == nil || !strings.Contains(err.Error(), "no PEM certificate") {
		t.Errorf("started without a certificate: %v", err)
	}
}

// emptyFiles are those of a new pod.
type emptyFiles struct{ Files }

func (emptyFiles) Read(string) ([]byte, error) { return nil, errors.New("does not exist") }

// Another bundle is taken over, too, although the certificate is the same.
func TestAnotherBundleIsProven(t *testing.T) {
	w := newWorld(t)
	a, f := given(t, w)
	a.memory.Start = &node.StartMemory{Configuration: v1alpha1.NodeConfiguration{Encryption: &v1alpha1.NodeEncryption{
		Internode: v1alpha1.EncryptionRequired, Clients: v1alpha1.EncryptionDisabled}}}
	a.init.Process = &initapi.Process{}
	prove := a.proveCertificates(nil, node.ProveCertificates{Uses: []v1alpha1.CertificateUse{v1alpha1.UseInternode}})
	look := func() node.Certificate {
		a.certificatesAt = time.Time{}
		a.LookAtCertificates()
		return a.certificates[0]
	}
	if got := prove(t.Context()); got.err != nil || look().Given != look().Served {
		t.Fatalf("error %v, known: %+v", got.err, look())
	}
	other, err := pki.NewAuthority("another", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	f.bundle = slices.Concat(f.bundle, other.Certificate)
	if c := look(); c.Given == c.Served || c.Problem != "" {
		t.Errorf("another bundle is not noticed: %+v", c)
	}
	if got := prove(t.Context()); got.err != nil || len(look().Trusted) != 2 || look().Given != look().Served {
		t.Errorf("error %v, known: %+v", got.err, look())
	}
}
