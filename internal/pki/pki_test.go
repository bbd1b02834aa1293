package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var today = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const uid types.UID = "5f7e0d1c-0000-4000-8000-000000000001"

func newAuthority(t *testing.T) (*Authority, Pair) {
	t.Helper()
	pair, err := NewAuthority("orders", today)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ParseAuthority(pair)
	if err != nil {
		t.Fatal(err)
	}
	return authority, pair
}

func issue(t *testing.T, a *Authority, id Identity, at time.Time) Pair {
	t.Helper()
	leaf, err := a.Issue(id, at)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func material(t *testing.T, leaf Pair, bundle []byte) *Material {
	t.Helper()
	m, err := NewMaterial(leaf, bundle)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLeafCarriesIdentityAndLife(t *testing.T) {
	a, _ := newAuthority(t)
	for _, id := range []Identity{OperatorOf(uid), NodeOf(uid, "orders-dc1-r1-0")} {
		certificates, err := ParseCertificates(issue(t, a, id, today).Certificate)
		if err != nil {
			t.Fatal(err)
		}
		leaf := certificates[0]
		if got, err := IdentityOf(leaf); err != nil || got != id {
			t.Errorf("identity %v, %v; want %v", got, err, id)
		}
		if leaf.IsCA || leaf.NotAfter != today.Add(LeafLifetime) || leaf.CheckSignatureFrom(a.certificate) != nil {
			t.Errorf("leaf of %s: CA %v, until %s", id, leaf.IsCA, leaf.NotAfter)
		}
		if at := RenewAt(leaf); at.Before(today.Add(LeafLifetime*6/10)) || at.After(today.Add(LeafLifetime*7/10)) {
			t.Errorf("renewed at %s, want two thirds of a year after %s", at, today)
		}
	}
}

func TestLeafNeverOutlivesItsAuthority(t *testing.T) {
	a, _ := newAuthority(t)
	late := today.Add(AuthorityLifetime - 24*time.Hour)
	certificates, err := ParseCertificates(issue(t, a, OperatorOf(uid), late).Certificate)
	if err != nil {
		t.Fatal(err)
	}
	if !certificates[0].NotAfter.Equal(a.certificate.NotAfter) {
		t.Errorf("leaf until %s, authority until %s", certificates[0].NotAfter, a.certificate.NotAfter)
	}
}

func TestParseIdentityRefusesWhatIsNone(t *testing.T) {
	for _, text := range []string{
		"https://uid/operator", "helenus://uid", "helenus://uid/", "helenus://uid/node/", "helenus://uid/node/a/b",
		"helenus:///operator",
		"helenus://user@uid/operator", "helenus://uid/operator?x=1", "helenus://uid/operator#x",
		"helenus://uid:1/operator", "helenus:opaque",
	} {
		u, err := NodeOf("x", "y").URI().Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := ParseIdentity(u); err == nil {
			t.Errorf("%s was read as %v", text, id)
		}
	}
}

func TestIssueRefusesNamesThatBreakTheURI(t *testing.T) {
	a, _ := newAuthority(t)
	for _, id := range []Identity{{}, {ClusterUID: "a/b"}, {ClusterUID: uid, Node: "a/b"},
		{ClusterUID: uid, Node: "a.b"}} {
		if _, err := a.Issue(id, today); err == nil {
			t.Errorf("issued a certificate for %+v", id)
		}
	}
}

func TestParseAuthorityRefusesForeignKeyAndLeaf(t *testing.T) {
	a, first := newAuthority(t)
	_, second := newAuthority(t)
	if _, err := ParseAuthority(Pair{Certificate: first.Certificate, Key: second.Key}); err == nil {
		t.Error("accepted the key of another authority")
	}
	if _, err := ParseAuthority(issue(t, a, OperatorOf(uid), today)); err == nil {
		t.Error("accepted a leaf as authority")
	}
	if _, err := ParseAuthority(Pair{Certificate: first.Certificate, Key: []byte("x")}); err == nil {
		t.Error("accepted a key that is none")
	}
}

// handshake lets a client reach a server over a pipe and returns what each side says.
func handshake(server *tls.Config, client *tls.Config) (serverErr, clientErr error) {
	left, right := net.Pipe()
	defer func() { _ = errors.Join(left.Close(), right.Close()) }()
	done := make(chan error, 1)
	go func() {
		s := tls.Server(left, server)
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x")) // in TLS 1.3 the client learns of a refusal at its first read
		}
		_ = left.Close()
		done <- err
	}()
	c := tls.Client(right, client)
	clientErr = c.Handshake()
	if clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1))
	}
	_ = right.Close()
	return <-done, clientErr
}

func TestWhoMayTalkToANode(t *testing.T) {
	own, ownPair := newAuthority(t)
	other, otherPair := newAuthority(t)
	node := NodeOf(uid, "orders-dc1-r1-0")
	server := material(t, issue(t, own, node, today), ownPair.Certificate)
	bothBundles := append(bytes.Clone(ownPair.Certificate), otherPair.Certificate...)

	for _, c := range []struct {
		name   string
		leaf   Pair
		server *Material
		want   Identity
		at     time.Time
		ok     bool
	}{
		{"operator", issue(t, own, OperatorOf(uid), today), server, node, today, true},
		{"peer", issue(t, own, NodeOf(uid, "orders-dc1-r2-0"), today), server, node, today, true},
		{"stranger", issue(t, other, OperatorOf(uid), today), server, node, today, false},
		{"another cluster under the same authority", issue(t, own, OperatorOf("another"), today), server, node, today,
			false},
		{"another cluster whose authority is trusted", issue(t, other, OperatorOf("another"), today),
			material(t, issue(t, own, node, today), bothBundles), node, today, false},
		{"rotated authority", issue(t, other, OperatorOf(uid), today),
			material(t, issue(t, own, node, today), bothBundles), node, today, true},
		{"expired", issue(t, own, OperatorOf(uid), today.Add(-2*LeafLifetime)), server, node, today, false},
		{"not yet valid", issue(t, own, OperatorOf(uid), today.Add(48*time.Hour)), server, node, today, false},
		{"asked for another node", issue(t, own, OperatorOf(uid), today), server, NodeOf(uid, "orders-dc1-r2-0"), today,
			false},
		{"asked for another cluster", issue(t, own, OperatorOf(uid), today), server,
			NodeOf("another", "orders-dc1-r1-0"), today, false},
		{"server expired", issue(t, own, OperatorOf(uid), today.Add(LeafLifetime)), server, node,
			today.Add(LeafLifetime + time.Minute), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := func() time.Time { return c.at }
			client := material(t, c.leaf, bothBundles)
			serverErr, clientErr := handshake(ServerConfig(func() (*Material, error) { return c.server, nil }, clock),
				ClientConfig(client, c.want, clock))
			if ok := serverErr == nil && clientErr == nil; ok != c.ok {
				t.Errorf("connected: %v, want %v (server: %v, client: %v)", ok, c.ok, serverErr, clientErr)
			}
		})
	}
}

func TestWhoAnswersAtAnAddress(t *testing.T) {
	own, ownPair := newAuthority(t)
	other, otherPair := newAuthority(t)
	bothBundles := append(bytes.Clone(ownPair.Certificate), otherPair.Certificate...)
	clock := func() time.Time { return today }
	client := material(t, issue(t, own, NodeOf(uid, "orders-dc1-r1-0"), today), bothBundles)
	for _, c := range []struct {
		name string
		leaf Pair
		ok   bool
	}{
		{"another node", issue(t, own, NodeOf(uid, "orders-dc1-r2-0"), today), true},
		{"node of another cluster", issue(t, other, NodeOf("another", "payments-dc1-r2-0"), today), false},
		{"operator", issue(t, own, OperatorOf(uid), today), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := ServerConfig(func() (*Material, error) { return material(t, c.leaf, bothBundles), nil }, clock)
			_, clientErr := handshake(server, AnyNodeConfig(client, clock))
			if ok := clientErr == nil; ok != c.ok {
				t.Errorf("accepted: %v, want %v (%v)", ok, c.ok, clientErr)
			}
		})
	}
}

func TestNoCertificateIsRefused(t *testing.T) {
	own, pair := newAuthority(t)
	node := NodeOf(uid, "orders-dc1-r1-0")
	server := material(t, issue(t, own, node, today), pair.Certificate)
	clock := func() time.Time { return today }
	client := ClientConfig(server, node, clock)
	client.Certificates = nil
	serverErr, clientErr := handshake(ServerConfig(func() (*Material, error) { return server, nil }, clock), client)
	if serverErr == nil || clientErr == nil {
		t.Errorf("server: %v, client: %v; want both to fail", serverErr, clientErr)
	}
}

func TestServerOfANodeIsNotMistakenForOneWithItsName(t *testing.T) {
	// A leaf with the right DNS name and another identity: the URI decides.
	own, pair := newAuthority(t)
	node := NodeOf(uid, "orders-dc1-r1-0")
	forged := issue(t, own, NodeOf(uid, "orders-dc1-r1-1"), today)
	server := material(t, forged, pair.Certificate)
	clock := func() time.Time { return today }
	client := ClientConfig(material(t, issue(t, own, OperatorOf(uid), today), pair.Certificate), node, clock)
	client.ServerName = NodeOf(uid, "orders-dc1-r1-1").ServerName()
	if _, err := handshake(ServerConfig(func() (*Material, error) { return server, nil }, clock), client); err == nil ||
		!strings.Contains(err.Error(), ErrStranger.Error()) {
		t.Errorf("client says %v, want %v", err, ErrStranger)
	}
}

func writeSecret(t *testing.T, directory, version string, leaf Pair, bundle []byte) {
	t.Helper()
	// As the kubelet does it: a new directory, then the link is exchanged.
	if err := os.MkdirAll(filepath.Join(directory, version), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{KeyCertificate: leaf.Certificate, KeyPrivateKey: leaf.Key,
		KeyBundle: bundle} {
		if err := os.WriteFile(filepath.Join(directory, version, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(directory, name)
		if _, err := os.Lstat(link); err != nil {
			if err := os.Symlink(filepath.Join("..data", name), link); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := filepath.Join(directory, "..next")
	if err := os.Symlink(version, next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(directory, "..data")); err != nil {
		t.Fatal(err)
	}
}

func TestFilesFollowTheSecret(t *testing.T) {
	a, pair := newAuthority(t)
	directory := t.TempDir()
	files := NewFiles(directory)
	if _, err := files.Material(); err == nil {
		t.Fatal("read material from an empty directory")
	}
	node := NodeOf(uid, "orders-dc1-r1-0")
	writeSecret(t, directory, "v1", issue(t, a, node, today), pair.Certificate)
	first, err := files.Material()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := files.Material(); again != first {
		t.Error("read unchanged files again")
	}
	writeSecret(t, directory, "v2", issue(t, a, node, today), pair.Certificate)
	second, err := files.Material()
	if err != nil || second == first {
		t.Fatalf("did not follow the renewed certificate: %v", err)
	}
	writeSecret(t, directory, "v3", Pair{Certificate: []byte("broken"), Key: []byte("broken")}, pair.Certificate)
	if kept, err := files.Material(); err != nil || kept != second {
		t.Errorf("gave up usable material for broken files: %v", err)
	}
}

func FuzzParseCertificates(f *testing.F) {
	pair, err := NewAuthority("orders", today)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pair.Certificate)
	f.Add(append(bytes.Clone(pair.Certificate), pair.Certificate...))
	f.Add(pair.Key)
	f.Fuzz(func(t *testing.T, text []byte) {
		certificates, err := ParseCertificates(text)
		if err == nil && len(certificates) == 0 {
			t.Error("no error and no certificate")
		}
		for _, c := range certificates {
			if _, err := x509.ParseCertificate(c.Raw); err != nil {
				t.Errorf("returned a certificate that cannot be read: %v", err)
			}
		}
	})
}

func TestEveryWrongLeafIsRefusedByItsOwnMessage(t *testing.T) {
	authority, pair := newAuthority(t)
	_, other := newAuthority(t)
	leaf := func(change func(*x509.Certificate), bits int) Pair {
		t.Helper()
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: today.Add(-time.Hour),
			NotAfter:    today.Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
		change(template)
		var key crypto.Signer
		var err error
		if bits > 0 {
			t.Setenv("GODEBUG", "rsa1024min=0")
			key, err = rsa.GenerateKey(rand.Reader, bits)
		} else {
			key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		}
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificate(rand.Reader, template, authority.certificate, key.Public(), authority.key)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return Pair{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})}
	}
	none := func(*x509.Certificate) {}
	good := leaf(none, 0)
	usage := func(usages ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = usages }
	}
	for want, c := range map[string]struct {
		leaf   Pair
		bundle []byte
	}{
		"":                            {good, pair.Certificate},
		"tls.crt: no PEM certificate": {Pair{[]byte("garbage"), good.Key}, pair.Certificate},
		"ca.crt: no PEM certificate":  {good, []byte("garbage")},
		"tls.key: no PEM block PRIVATE KEY (PKCS#8)": {Pair{good.Certificate, []byte("garbage")}, pair.Certificate},
		"tls.key does not belong to tls.crt":         {Pair{good.Certificate, pair.Key}, pair.Certificate},
		"tls.crt is signed by none of ca.crt":        {good, other.Certificate},
		"tls.crt has expired": {leaf(func(c *x509.Certificate) {
			c.NotAfter = today
		}, 0), pair.Certificate},
		"tls.crt is valid from": {leaf(func(c *x509.Certificate) {
			c.NotBefore = today.Add(time.Second)
		}, 0), pair.Certificate},
		"tls.crt has an RSA key of 1024 bits":             {leaf(none, 1024), pair.Certificate},
		"tls.crt lacks the extended key usage serverAuth": {leaf(usage(x509.ExtKeyUsageClientAuth), 0), pair.Certificate},
		"tls.crt lacks the extended key usage clientAuth": {leaf(usage(x509.ExtKeyUsageServerAuth), 0), pair.Certificate},
	} {
		got := ""
		if _, err := Verify(c.leaf, c.bundle, true, today); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if _, err := Verify(leaf(usage(x509.ExtKeyUsageServerAuth), 0), pair.Certificate, false, today); err != nil {
		t.Errorf("of one that calls nobody: %v", err)
	}

	// One that somebody else has made may have the key in another form, and text around it.
	lives := leaf(func(c *x509.Certificate) { c.NotAfter = today.Add(2 * time.Hour) }, 0)
	block, _ := pem.Decode(lives.Key)
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := x509.MarshalECPrivateKey(parsed.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	as := func(kind string) Pair {
		text := string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: ec}))
		return Pair{Certificate: append([]byte("subject=CN\n"), lives.Certificate...),
			Key: []byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" +
				strings.TrimSpace(text))}
	}
	byItself := leaf(none, 0)
	for want, c := range map[string]struct{ leaf, bundle []byte }{
		"":                              {good.Certificate, slices.Concat(other.Certificate, pair.Certificate)},
		"tls.crt is signed by none of":  {good.Certificate, other.Certificate},
		"ca.crt has no certificate aut": {byItself.Certificate, byItself.Certificate},
		"tls.crt: no PEM certificate":   {nil, pair.Certificate},
		"ca.crt: no PEM certificate":    {good.Certificate, nil},
	} {
		got := ""
		if by, err := AuthorityOf(c.leaf, c.bundle); err != nil {
			got = err.Error()
		} else if string(by) != string(pair.Certificate) {
			t.Errorf("%s", by)
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	soon := func(c *x509.Certificate) { c.NotAfter = today.Add(leastLife - time.Second) }
	for want, given := range map[string]Pair{
		"":                         as("EC PRIVATE KEY"),
		"tls.crt expires at":       leaf(soon, 0),
		"tls.key: it is an ENCRYP": as("ENCRYPTED PRIVATE KEY"),
		"tls.key: no PEM block":    {lives.Certificate, nil},
		"tls.key does not belong":  {lives.Certificate, good.Key},
	} {
		got := ""
		taken, bundle, err := Given(given, pair.Certificate, false, today)
		if err != nil {
			got = err.Error()
		} else if _, err := Verify(taken, bundle, false, today); err != nil || string(taken.Key) != string(lives.Key) ||
			string(taken.Certificate) != string(lives.Certificate) {
			t.Errorf("taken: %v, %s", err, taken.Certificate)
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNodesRenewAtDifferentTimes(t *testing.T) {
	renew := today.Add(60 * 24 * time.Hour)
	seen := map[time.Time]bool{}
	for _, node := range []string{"a", "b", "c"} {
		at := Jittered(renew, today, node)
		if at.After(renew) || at.Before(renew.Add(-60*24*time.Hour/8)) || !at.Equal(Jittered(renew, today, node)) {
			t.Errorf("node %s renews at %s", node, at)
		}
		seen[at] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d times of three nodes", len(seen))
	}
}
