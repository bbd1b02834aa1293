package act

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/pki"
)

// A Secret is looked at every ten minutes, and a node without a certificate does not wait for that:
// whoever signs looks again.
func TestNoCertificateIsSignedByAnAuthorityThatWasEditedMeanwhile(t *testing.T) {
	w := writer(t, interceptor.Funcs{})
	authority := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: v1alpha1.AuthorityName("orders", v1alpha1.UseAgent)}}
	issue := func(name string) Result {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
			Labels: map[string]string{v1alpha1.LabelNode: "orders-dc1-r1-0",
				v1alpha1.LabelComponent: string(v1alpha1.UseAgent)}}}
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

// What is copied to nodes is what was verified: what the Secret has since is not.
func TestACertificateOfTheUsersOwnIsCopied(t *testing.T) {
	w := writer(t, interceptor.Funcs{})
	authority, err := pki.NewAuthority("mine", w.Now())
	if err != nil {
		t.Fatal(err)
	}
	signer, err := pki.ParseAuthority(authority)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := signer.IssueLeaf(pki.Leaf{Name: "mine", Lifetime: 24 * time.Hour}, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mine"}, Data: map[string][]byte{
		pki.KeyCertificate: pair.Certificate, pki.KeyPrivateKey: pair.Key, pki.KeyBundle: authority.Certificate}}
	if err := w.Client.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	seen := snapshot()
	seen.Cluster.Spec.Security = &v1alpha1.Security{Encryption: &v1alpha1.Encryption{
		Certificates: &v1alpha1.Certificates{Clients: &v1alpha1.ClientsAuthority{SecretName: "mine"}}}}
	given := facts.Given{Secret: "mine", Content: render.ContentHash(mine)}
	seen.Given = map[string]facts.Given{"": given}
	record := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-dc1-r1-0"}}
	leaf := render.CertificateSecret(render.OwnerOf(seen.Cluster), v1alpha1.UseClients, record)
	leaf.Annotations = map[string]string{v1alpha1.AnnotationSource: given.Source()}
	issue := func() error {
		return w.Do(t.Context(), seen, plan.Plan{Writes: []plan.Write{{Verb: plan.IssueCertificate, Object: leaf,
			Node: record.Name}}}, confirmed, &consistency.Store{}).Err
	}
	got := &corev1.Secret{}
	if err := issue(); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(leaf), got); err != nil {
		t.Fatal(err)
	}
	if render.Edited(got) || string(got.Data[pki.KeyCertificate]) != string(pair.Certificate) ||
		string(got.Data[pki.KeyBundle]) != string(authority.Certificate) {
		t.Errorf("copied: %+v", got)
	}
	mine.Data[pki.KeyPrivateKey] = authority.Key
	if err := w.Client.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if err := issue(); err == nil || !strings.Contains(err.Error(), "has changed since it was verified") {
		t.Errorf("what nobody has verified is copied: %v", err)
	}
	given.Content = render.ContentHash(mine)
	leaf.Annotations[v1alpha1.AnnotationSource] = given.Source()
	if err := issue(); err == nil || !strings.Contains(err.Error(), "tls.key does not belong") {
		t.Errorf("a bad one is copied: %v", err)
	}
}

func TestCertificatesOfCassandraSayWhereItIs(t *testing.T) {
	w := writer(t, interceptor.Funcs{})
	seen := snapshot()
	seen.Cluster.Spec.Security = &v1alpha1.Security{Encryption: &v1alpha1.Encryption{
		Certificates: &v1alpha1.Certificates{Lifetime: &metav1.Duration{Duration: time.Hour}}}}
	record := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-dc1-r1-0"},
		Spec: v1alpha1.CassandraNodeSpec{Datacenter: "dc1"}}
	seen.Nodes = map[string]*facts.Node{record.Name: {Name: record.Name, Record: record}}
	for use, want := range map[v1alpha1.CertificateUse]string{v1alpha1.UseInternode: "",
		v1alpha1.UseClients: "10.0.0.7 127.0.0.1 ::1 orders-dc1 orders-dc1-r1-0.orders.shop.svc"} {
		owner := render.OwnerOf(seen.Cluster)
		leaf := render.CertificateSecret(owner, use, record)
		leaf.Annotations = map[string]string{v1alpha1.AnnotationAddress: "10.0.0.7"}
		if done := w.Do(t.Context(), seen, plan.Plan{Writes: []plan.Write{
			{Verb: plan.IssueAuthority, Object: render.CertificateSecret(owner, use, nil)},
			{Verb: plan.IssueCertificate, Object: leaf, Node: record.Name}}}, confirmed, &consistency.Store{}); done.Err != nil {
			t.Fatal(done.Err)
		}
		got := &corev1.Secret{}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(leaf), got); err != nil {
			t.Fatal(err)
		}
		own, err := pki.Verify(pki.Pair{Certificate: got.Data[pki.KeyCertificate], Key: got.Data[pki.KeyPrivateKey]},
			got.Data[pki.KeyBundle], true, w.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(want) {
			if err := own.VerifyHostname(name); err != nil {
				t.Errorf("%s: %v", use, err)
			}
		}
		renew, err := time.Parse(time.RFC3339, got.Annotations[v1alpha1.AnnotationRenewAfter])
		if err != nil || renew.After(w.Now().Add(40*time.Minute)) || renew.Before(w.Now().Add(34*time.Minute)) ||
			got.Annotations[v1alpha1.AnnotationAddress] != "10.0.0.7" {
			t.Errorf("%s: %v", use, got.Annotations)
		}
	}
}

// An authority is introduced, signs, and is alone: what is signed meanwhile is trusted by what was
// given before and after it. A plan that rests on another content changes nothing.
func TestAnAuthorityGoesOnStageByStage(t *testing.T) {
	w := writer(t, interceptor.Funcs{})
	labels := map[string]string{v1alpha1.LabelComponent: string(v1alpha1.UseInternode)}
	authority := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: labels,
		Name: v1alpha1.AuthorityName("orders", v1alpha1.UseInternode)}}
	do := func(verb plan.Verb, secret *corev1.Secret) error {
		return w.Do(t.Context(), snapshot(), plan.Plan{Writes: []plan.Write{{Verb: verb, Object: secret,
			UID: secret.UID}}}, confirmed, &consistency.Store{}).Err
	}
	get := func(name string) *corev1.Secret {
		t.Helper()
		out := &corev1.Secret{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if err := do(plan.IssueAuthority, authority); err != nil {
		t.Fatal(err)
	}
	first := get(authority.Name)
	if first.UID == "" { // the fake server gives none
		first.UID = "uid"
		if err := w.Client.Update(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	var leaves, bundles [][]byte
	for i, want := range []int{1, 2, 2, 1} {
		if i > 0 {
			seen := get(authority.Name)
			if i == 1 { // one that Helenus makes is introduced
				seen.Annotations[v1alpha1.AnnotationSource] = ""
			}
			if err := do(plan.RotateAuthority, seen); err != nil {
				t.Fatal(err)
			}
			if err := do(plan.RotateAuthority, seen); err == nil || !strings.Contains(err.Error(), "another one than was seen") {
				t.Errorf("stage %d: what rests on the stage before: %v", i, err)
			}
		}
		now := get(authority.Name)
		trusted, err := pki.ParseCertificates(now.Data[pki.KeyBundle])
		if err != nil || len(trusted) != want || render.Edited(now) {
			t.Fatalf("stage %d: %d authorities, want %d, error %v", i, len(trusted), want, err)
		}
		signer, err := pki.ParseAuthority(pki.Pair{Certificate: now.Data[pki.KeyCertificate],
			Key: now.Data[pki.KeyPrivateKey]})
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := signer.IssueLeaf(pki.Leaf{Name: "node", Lifetime: time.Hour}, w.Now())
		if err != nil {
			t.Fatal(err)
		}
		leaves, bundles = append(leaves, leaf.Certificate), append(bundles, now.Data[pki.KeyBundle])
		for _, j := range []int{i - 1, i} {
			for _, pair := range [][2]int{{i, max(j, 0)}, {max(j, 0), i}} {
				chain, err := pki.ParseCertificates(leaves[pair[0]])
				if err != nil {
					t.Fatal(err)
				}
				bundle, err := pki.ParseCertificates(bundles[pair[1]])
				if err != nil || pki.SignedBy(chain, bundle) == nil {
					t.Errorf("what is signed in stage %d is not trusted in stage %d (%v)", pair[0], pair[1], err)
				}
			}
		}
	}
	last := get(authority.Name)
	if string(last.Data[pki.KeyCertificate]) == string(first.Data[pki.KeyCertificate]) || len(last.Data) != 3 {
		t.Errorf("at last it has %d keys, and the same authority: %v", len(last.Data),
			string(last.Data[pki.KeyCertificate]) == string(first.Data[pki.KeyCertificate]))
	}
}

// The authority of an issuer is taken from what it has signed, and has no key: between nodes
// certificates are copied with the bundle of the stage, also from what a node has.
func TestAnAuthorityOfAnIssuerGoesOnStageByStage(t *testing.T) {
	w := writer(t, interceptor.Funcs{})
	seen := snapshot()
	owner, use := render.OwnerOf(seen.Cluster), v1alpha1.UseInternode
	record := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-dc1-r1-0"}}
	get := func(name string) *corev1.Secret {
		t.Helper()
		out := &corev1.Secret{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, out); err != nil {
			t.Fatal(err)
		}
		if out.UID == "" { // the fake server gives none
			out.UID = types.UID(name)
			if err := w.Client.Update(t.Context(), out); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	do := func(verb plan.Verb, secret *corev1.Secret, source string) {
		t.Helper()
		secret = secret.DeepCopy()
		if secret.Annotations == nil {
			secret.Annotations = map[string]string{}
		}
		if secret.Annotations[v1alpha1.AnnotationSource] = source; source == "-" {
			delete(secret.Annotations, v1alpha1.AnnotationSource)
		}
		if done := w.Do(t.Context(), seen, plan.Plan{Writes: []plan.Write{{Verb: verb, Object: secret, Node: record.Name,
			UID: secret.UID}}}, confirmed, &consistency.Store{}); done.Err != nil {
			t.Fatal(done.Err)
		}
	}
	issued := func(name string) (source string, authority []byte) {
		t.Helper()
		pair, err := pki.NewAuthority(name, w.Now())
		if err != nil {
			t.Fatal(err)
		}
		signer, err := pki.ParseAuthority(pair)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := signer.IssueLeaf(pki.Leaf{Name: name, Lifetime: 24 * time.Hour}, w.Now())
		if err != nil {
			t.Fatal(err)
		}
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{
			pki.KeyCertificate: leaf.Certificate, pki.KeyPrivateKey: leaf.Key, pki.KeyBundle: pair.Certificate}}
		if err := w.Client.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return facts.Given{Secret: name, Content: render.ContentHash(s)}.Source(), pair.Certificate
	}
	a, aCertificate := issued("a")
	b, bCertificate := issued("b")
	authority, leaf := v1alpha1.AuthorityName("orders", use), v1alpha1.CertificateName(record.Name, use)
	wants := func(stage string, signs []byte, trusted ...[]byte) {
		t.Helper()
		s := get(authority)
		if key, there := s.Data[pki.KeyPrivateKey]; !there || len(key) > 0 || render.Edited(s) ||
			string(s.Data[pki.KeyCertificate]) != string(signs) ||
			string(s.Data[pki.KeyBundle]) != string(slices.Concat(trusted...)) {
			t.Fatalf("%s: %s", stage, s.Data)
		}
		l := get(leaf)
		if _, err := pki.Verify(pki.Pair{Certificate: l.Data[pki.KeyCertificate], Key: l.Data[pki.KeyPrivateKey]},
			l.Data[pki.KeyBundle], true, w.Now()); err != nil || render.Edited(l) ||
			string(l.Data[pki.KeyBundle]) != string(s.Data[pki.KeyBundle]) {
			t.Fatalf("%s: %v: %s", stage, err, l.Data)
		}
	}
	itself := func() string {
		l := get(leaf)
		return facts.Given{Secret: leaf, Content: l.Annotations[v1alpha1.AnnotationContent]}.Source()
	}
	do(plan.IssueAuthority, render.CertificateSecret(owner, use, nil), a)
	do(plan.IssueCertificate, render.CertificateSecret(owner, use, record), a)
	wants("made", aCertificate, aCertificate)
	do(plan.RotateAuthority, get(authority), b)
	do(plan.IssueCertificate, get(leaf), itself())
	wants("introduced", aCertificate, aCertificate, bCertificate)
	do(plan.RotateAuthority, get(authority), "-")
	do(plan.IssueCertificate, get(leaf), b)
	wants("signing", bCertificate, bCertificate, aCertificate)
	do(plan.RotateAuthority, get(authority), a) // which is trusted yet
	do(plan.RotateAuthority, get(authority), "-")
	do(plan.IssueCertificate, get(leaf), a)
	wants("back", aCertificate, aCertificate, bCertificate)
	do(plan.RotateAuthority, get(authority), "-")
	do(plan.IssueCertificate, get(leaf), a)
	wants("alone", aCertificate, aCertificate)
	do(plan.RotateAuthority, get(authority), "")
	do(plan.RotateAuthority, get(authority), "-")
	if signer := get(authority); len(signer.Data[pki.KeyPrivateKey]) == 0 {
		t.Error("Helenus has no key")
	}
}
