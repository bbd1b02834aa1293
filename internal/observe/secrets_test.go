package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
)

func authorityOf(uid types.UID) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: v1alpha1.AuthorityName("orders"),
			Labels:          map[string]string{v1alpha1.LabelCluster: "orders", v1alpha1.LabelClusterUID: string(uid)},
			OwnerReferences: []metav1.OwnerReference{{Kind: "CassandraCluster", Name: "orders", UID: uid, Controller: new(true)}},
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
		cluster := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: uid}}
		if err := s.read(t.Context(), live, now, cluster, o, &consistency.Store{}); err != nil {
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
	now = now.Add(2 * secretsFor)
	if len(read("first")) != 0 {
		t.Error("a Secret that was deleted is believed for ever")
	}
}
