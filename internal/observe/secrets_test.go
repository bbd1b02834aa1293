package observe

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/pki"
)

func authorityOf(uid types.UID) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: v1alpha1.AuthorityName("orders", v1alpha1.UseAgent),
			Labels: map[string]string{v1alpha1.LabelCluster: "orders", v1alpha1.LabelClusterUID: string(uid)},
			OwnerReferences: []metav1.OwnerReference{{Kind: "CassandraCluster", Name: "orders", UID: uid,
				Controller: new(true)}},
		},
		Data: map[string][]byte{"tls.key": []byte("secret")},
	}
}

func TestASecretIsBelievedForAWhileUnlessItIsOfAnEarlierCluster(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(authorityOf("first")).Build()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var s secrets
	read := func(uid types.UID) []corev1.Secret {
		t.Helper()
		o := &objects{seen: map[consistency.Key]consistency.Seen{}, edited: map[string]bool{}}
		cluster := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders",
			UID: uid}}
		if err := s.read(t.Context(), live, now, &facts.Snapshot{Cluster: cluster}, o, &consistency.Store{}); err != nil {
			t.Fatal(err)
		}
		return o.secrets
	}
	got := read("first")
	if len(got) != 1 || got[0].Data != nil {
		t.Fatalf("read %+v, want the Secret without its data", got)
	}
	if err := live.Delete(t.Context(), authorityOf("first")); err != nil {
		t.Fatal(err)
	}
	if len(read("first")) != 1 {
		t.Error("asked again at once: the API server is asked only after a while")
	}
	if got := read("second"); len(got) != 0 {
		t.Errorf("another cluster of the name still sees %+v, which is gone", got)
	}
	now = now.Add(2 * SecretsFor)
	if len(read("first")) != 0 {
		t.Error("a Secret that was deleted is believed for ever")
	}
}

func TestAnEditOfASecretIsNoticedSoonerWhileItsPodDoesNotRun(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for phase, believed := range map[corev1.PodPhase]time.Duration{corev1.PodPending: pendingSecretsFor,
		corev1.PodRunning: SecretsFor} {
		n := record("record-1")
		secret := render.CertificateSecret(owner("now"), v1alpha1.UseAgent, n)
		secret.Data = map[string][]byte{"tls.crt": []byte("one"), "tls.key": []byte("two")}
		secret.Annotations = map[string]string{v1alpha1.AnnotationContent: render.ContentHash(secret)}
		pod := podOf(n)
		pod.Status.Phase = phase
		r := reader(t, n, secret, pod)
		at := now
		r.Now = func() time.Time { return at }
		edited := func() bool {
			t.Helper()
			s, err := r.Cluster(t.Context(), orders, &consistency.Store{})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Shared.Secrets[secret.Name]; got == nil || got.Data != nil {
				t.Fatalf("%s: %+v, want the Secret without its content", phase, got)
			}
			return s.Edited[secret.Name]
		}
		if edited() {
			t.Errorf("%s: edited by nobody", phase)
		}
		secret.Data["tls.key"] = []byte("three")
		secret.ResourceVersion = ""
		if err := r.Live.(client.Client).Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		at = now.Add(believed - time.Second)
		if edited() {
			t.Errorf("%s: asked again within %s", phase, believed)
		}
		at = now.Add(believed)
		if !edited() {
			t.Errorf("%s: not noticed after %s", phase, believed)
		}
	}
}

// A certificate of the user's own is looked at every minute, and stands in for the authority.
func TestACertificateOfTheUsersOwnIsJudged(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	authority, err := pki.NewAuthority("mine", now)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := pki.ParseAuthority(authority)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := signer.IssueLeaf(pki.Leaf{Name: "mine", Lifetime: 24 * time.Hour}, now)
	if err != nil {
		t.Fatal(err)
	}
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mine"}, Data: map[string][]byte{
		pki.KeyCertificate: pair.Certificate, pki.KeyPrivateKey: pair.Key, pki.KeyBundle: authority.Certificate}}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithScheme(scheme).Build()
	cluster := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u"},
		Spec: v1alpha1.CassandraClusterSpec{Security: &v1alpha1.Security{Encryption: &v1alpha1.Encryption{
			Certificates: &v1alpha1.Certificates{Clients: &v1alpha1.ClientsAuthority{SecretName: "mine"}}}}}}
	var s secrets
	read := func() (facts.Given, facts.Trust) {
		t.Helper()
		o := &objects{seen: map[consistency.Key]consistency.Seen{}, edited: map[string]bool{}}
		seen := &facts.Snapshot{Cluster: cluster}
		if err := s.read(t.Context(), live, now, seen, o, &consistency.Store{}); err != nil {
			t.Fatal(err)
		}
		return seen.Given[""], seen.Trust[v1alpha1.AuthorityName("orders", v1alpha1.UseClients)]
	}
	if given, _ := read(); !given.Missing || given.Secret != "mine" {
		t.Errorf("given %+v", given)
	}
	if err := live.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	given, trust := read()
	if given.Missing || given.Problem != "" || given.Content != render.ContentHash(mine) || trust.Signer == "" ||
		trust.Bundle != string(authority.Certificate) {
		t.Errorf("given %+v, trust %+v", given, trust)
	}
	mine.Data[pki.KeyPrivateKey] = authority.Key
	if err := live.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if again, _ := read(); !reflect.DeepEqual(again, given) {
		t.Error("read again at once")
	}
	now = now.Add(2 * time.Minute)
	if given, trust := read(); given.Problem == "" || trust.Signer != "" {
		t.Errorf("given %+v, trust %+v", given, trust)
	}
	mine.Labels = map[string]string{v1alpha1.LabelCluster: "orders"}
	if err := live.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if given, _ := read(); given.Problem != "is one of those that Helenus makes: it must be one of your own" {
		t.Errorf("given %+v", given)
	}
}

// What is bad for clients is bad between nodes, where more is.
func TestWhatOthersHaveSignedBetweenNodesIsJudged(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	authority, err := pki.NewAuthority("nodes", now)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := pki.ParseAuthority(authority)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(life time.Duration) pki.Pair {
		t.Helper()
		pair, err := signer.IssueLeaf(pki.Leaf{Name: "node", Lifetime: life}, now)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	serves := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	own, key := certificateAndKey(t, authority)
	der, err := x509.CreateCertificate(rand.Reader, &serves, own, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	good := issue(24 * time.Hour)
	for want, c := range map[string]struct {
		leaf   pki.Pair
		bundle []byte
	}{
		"":                                    {good, authority.Certificate},
		"tls.crt is signed by none of ca.crt": {good, issue(time.Hour).Certificate},
		"tls.crt expires at":                  {issue(30 * time.Minute), authority.Certificate},
		"tls.key does not belong to tls.crt": {pki.Pair{Certificate: good.Certificate, Key: authority.Key},
			authority.Certificate},
		"lacks the extended key usage clientAuth": {pki.Pair{Certificate: pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: der}), Key: authority.Key}, authority.Certificate},
		"ca.crt has no certificate authority": {good, good.Certificate},
		"ca.crt: no PEM certificate":          {good, nil},
	} {
		secret := &corev1.Secret{Data: map[string][]byte{pki.KeyCertificate: c.leaf.Certificate,
			pki.KeyPrivateKey: c.leaf.Key, pki.KeyBundle: c.bundle}}
		var got known
		got.judge(secret, v1alpha1.UseInternode, (&facts.Snapshot{}).Calls(v1alpha1.UseInternode), now)
		if !strings.Contains(got.problem, want) || want == "" && got.problem != "" {
			t.Errorf("%q, want %q", got.problem, want)
		}
	}
}

func certificateAndKey(t *testing.T, pair pki.Pair) (*x509.Certificate, crypto.Signer) {
	t.Helper()
	certificates, err := pki.ParseCertificates(pair.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(pair.Key)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificates[0], key.(crypto.Signer)
}
