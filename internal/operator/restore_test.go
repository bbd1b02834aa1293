package operator

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/observe"
)

// For a restore to a point in time a ring and its backup are made, by an operator that is new in
// each pass; and once it has finished nothing is left of them in Kubernetes, nor in the store.
func TestNothingIsLeftOfATemporaryRing(t *testing.T) {
	at, secret := storeAt(bucket(t)), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"},
		Data: map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("someone"), v1alpha1.KeySecretAccessKey: []byte("secret")}}
	cluster := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "c-1"}}
	cluster.Spec.Datacenters = []v1alpha1.Datacenter{{Name: "dc1", Racks: []v1alpha1.Rack{{Name: "r1"}}}}
	restore := &v1alpha1.CassandraRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "noon", UID: "r-1",
		CreationTimestamp: metav1.Now()}, Spec: v1alpha1.CassandraRestoreSpec{
		Cluster: v1alpha1.TaskCluster{Name: "orders"}, Store: v1alpha1.BackupStoreReference{Name: "main"},
		PointInTime: &metav1.Time{Time: time.Unix(1e9, 0)}, Tables: []v1alpha1.RestoredTable{{From: "shop.orders"}}}}
	ring := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "noon-then"}}
	backup := &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "noon-then"}}
	c := fake.NewClientBuilder().WithScheme(kinds(t)).WithObjects(at, secret, cluster, restore).
		WithStatusSubresource(restore, ring, backup).Build()
	reader := &observe.Reader{Cache: c, Live: c}
	writer := &act.Writer{Client: c, Live: c, Recorder: &told{}, Now: time.Now}
	get := func(o client.Object) error { return c.Get(t.Context(), client.ObjectKeyFromObject(o), o) }
	pass := func() {
		t.Helper()
		for range 2 {
			r := &Restores{Reader: reader, Writer: writer, Now: time.Now}
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(restore)}
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		if err := get(restore); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pass()
	must(get(ring))
	ring.UID = "11111111-0000-4000-8000-000000000001"
	must(c.Update(t.Context(), ring))
	ring.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	must(c.Status().Update(t.Context(), ring))
	pass()
	must(get(backup))
	backup.UID = "22222222-0000-4000-8000-000000000001"
	must(c.Update(t.Context(), backup))
	of := string(ring.UID)
	backup.Status = v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupComplete, ClusterUID: ring.UID,
		ID: backup.BackupID()}
	must(c.Status().Update(t.Context(), backup))
	in, err := store.Open(at.Spec, secret.Data)
	must(err)
	others := []string{format.BackupKey("c-1", "b-1"), format.BlobKey("c-1", "abcd")}
	for _, key := range append([]string{format.BackupKey(of, backup.BackupID()), format.BlobKey(of, "abcd"),
		format.ManifestKey(of, backup.BackupID(), "h")}, others...) {
		must(in.Put(t.Context(), key, strings.NewReader("x"), 1))
	}
	swept, err := reader.StoredClusters(t.Context(), client.ObjectKeyFromObject(at))
	if err != nil || len(swept) != 1 || swept[0] != "c-1" {
		t.Errorf("%q are swept, %v", swept, err)
	}
	pass()
	if from := restore.Status.Source; from == nil || from.UID != ring.UID || from.Backup != backup.BackupID() {
		t.Fatalf("status %+v", restore.Status)
	}
	if err := get(ring); !apierrors.IsNotFound(err) {
		t.Errorf("the ring is there: %v", err)
	}
	deletion := func() error {
		t.Helper()
		r := &Backups{Reader: reader, Writer: writer, Now: time.Now}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(backup)}); err != nil {
			t.Fatal(err)
		}
		return get(backup)
	}
	must(c.Delete(t.Context(), backup)) // a user does, while it is read
	if err := deletion(); err != nil || len(objects(t, in)) != 5 ||
		!strings.Contains(backup.Status.Message, "waits until restore shop/noon has ended") {
		t.Errorf("says %q, %v", backup.Status.Message, err)
	}
	restore.Status.Phase = v1alpha1.TaskSucceeded
	must(c.Status().Update(t.Context(), restore))
	pass()
	if err := deletion(); !apierrors.IsNotFound(err) {
		t.Errorf("the backup is there: %+v, %v", backup.Status, err)
	}
	if left := objects(t, in); !slices.Equal(left, others) {
		t.Errorf("left are %q, want %q", left, others)
	}
}
