package observe

import (
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
