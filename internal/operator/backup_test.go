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

// A backup that is deleted stays until its nodes have ended, rings that are made from it have
// formed, restores from it have ended, and the store has deleted it.
func TestABackupIsDeletedInItsStore(t *testing.T) {
	at := storeAt(bucket(t))
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"}, Data: map[string][]byte{
		v1alpha1.KeyAccessKeyID: []byte("someone"), v1alpha1.KeySecretAccessKey: []byte("secret")}}
	b := &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b", UID: "b-uid-0001"},
		Spec: v1alpha1.CassandraBackupSpec{Store: v1alpha1.BackupStoreReference{Name: "main"},
			DeletionPolicy: v1alpha1.BackupDelete},
		Status: v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupComplete, ClusterUID: "c-1"}}
	node := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "n"}}
	node.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "b-uid-0001/complete/n"}}}
	ring := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "again"}}
	ring.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{Source: v1alpha1.RestoreSource{UID: "c-1"}}}
	source := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "c-1"}}
	tables := &v1alpha1.CassandraRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tables"},
		Spec: v1alpha1.CassandraRestoreSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"}}}
	c := fake.NewClientBuilder().WithScheme(kinds(t)).WithObjects(at, key, b, node, ring, source, tables).
		WithStatusSubresource(b, ring, tables).Build()
	events := &told{}
	r := &Backups{Reader: &observe.Reader{Cache: c, Live: c},
		Writer: &act.Writer{Client: c, Live: c, Recorder: events, Now: time.Now}, Now: time.Now}
	pass := func() error {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
			t.Fatal(err)
		}
		return c.Get(t.Context(), client.ObjectKeyFromObject(b), b)
	}
	in, err := store.Open(at.Spec, key.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := pass(); err != nil || !slices.Equal(b.Finalizers, []string{v1alpha1.FinalizerBackup}) {
		t.Fatalf("it is held by %q, %v", b.Finalizers, err)
	}
	kept := []string{format.BlobKey("c-1", "abcd")}
	for _, k := range append([]string{format.BackupKey("c-1", b.BackupID()),
		format.ManifestKey("c-1", b.BackupID(), "h-1")}, kept...) {
		if err := in.Put(t.Context(), k, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		says string
		then func() error
	}{
		{"waits until cluster other/again, restore shop/tables", func() error {
			ring.Status.Datacenters = []v1alpha1.DatacenterStatus{{Name: "a", Formed: true}}
			ring.Status.Step = &v1alpha1.StepStatus{Name: "FormRing"} // it loads rows
			return c.Status().Update(t.Context(), ring)
		}},
		{"waits until cluster other/again, restore shop/tables", func() error {
			ring.Status.Step = nil
			return c.Status().Update(t.Context(), ring)
		}},
		{"waits until restore shop/tables", func() error {
			tables.Status.Phase = v1alpha1.TaskSucceeded
			return c.Status().Update(t.Context(), tables)
		}},
		{"waits until n has ended writing", func() error {
			node.Spec.Operations = nil
			return c.Update(t.Context(), node)
		}},
	} {
		if err := pass(); err != nil || !strings.Contains(b.Status.Message, step.says) || len(objects(t, in)) != 3 {
			t.Errorf("says %q, want %q; %v", b.Status.Message, step.says, err)
		}
		if err := step.then(); err != nil {
			t.Fatal(err)
		}
	}
	if err := pass(); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %+v, %v", b.Status, err)
	}
	if left := objects(t, in); !slices.Equal(left, kept) {
		t.Errorf("left are %q", left)
	}
	if want := []string{"BackupNotDeleted of b", "BackupNotDeleted of b", "BackupNotDeleted of b", "BackupDeleted of b"}; !slices.Equal(*events, want) {
		t.Errorf("events %q, want %q", *events, want)
	}
}

// What no backup needs goes from a store after two days, and the status says what is there.
func TestAStoreIsSwept(t *testing.T) {
	at, secret := storeAt(bucket(t)), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"},
		Data: map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("someone"), v1alpha1.KeySecretAccessKey: []byte("secret")}}
	ring := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "c-1"}}
	other := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "orders", UID: "c-2"}}
	c := fake.NewClientBuilder().WithScheme(kinds(t)).WithObjects(at, secret, ring, other).
		WithStatusSubresource(at).Build()
	now, events := time.Now(), &told{}
	reader := &observe.Reader{Cache: c, Live: c}
	writer := &act.Writer{Client: c, Live: c, Recorder: events, Now: time.Now}
	clock := func() time.Time { return now }
	in, err := store.Open(at.Spec, secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []string{"c-1", "c-2"} {
		key := format.BlobKey(uid, strings.Repeat("ab", 32))
		if err := in.Put(t.Context(), key, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	pass := func() *v1alpha1.StoredCluster {
		t.Helper()
		r := &Sweeps{Reader: reader, Writer: writer, Now: clock}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(at)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(at), at); err != nil {
			t.Fatal(err)
		}
		if len(at.Status.Clusters) != 1 {
			return nil
		}
		return &at.Status.Clusters[0]
	}
	if got := pass(); got != nil {
		t.Errorf("before it was checked: %+v", got)
	}
	check := &BackupStores{Reader: reader, Writer: writer, Now: clock}
	if _, err := check.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(at)}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(8 * 24 * time.Hour)
	if got := pass(); got == nil || got.UID != "c-1" || got.Files != 1 || got.Bytes != 1 || got.Waiting != 1 {
		t.Fatalf("marked: %+v", got)
	}
	version := at.ResourceVersion
	now = now.Add(23 * time.Hour)
	if got := pass(); got.Waiting != 1 || at.ResourceVersion != version {
		t.Errorf("a day is not over: %+v", got)
	}
	if err := in.Put(t.Context(), format.ManifestKey("c-1", "b", "h"), strings.NewReader("{}"), 2); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if got := pass(); got.Problem == "" || got.Files != 1 {
		t.Errorf("a manifest is broken: %+v", got)
	}
	if err := in.Delete(t.Context(), format.ManifestKey("c-1", "b", "h")); err != nil {
		t.Fatal(err)
	}
	if got := pass(); got.Problem != "" || got.Files != 0 || got.Deleted != 1 {
		t.Errorf("swept: %+v", got)
	}
	if keys := objects(t, in); len(keys) != 3 || !strings.HasPrefix(keys[0], "c-1/garbage/") || keys[1] != format.BlobKey("c-2",
		strings.Repeat("ab", 32)) || keys[2] != "encryption/None" {
		t.Errorf("left are %q", keys)
	}
	if want := []string{"StoreUsable of main", "StoreNotSwept of main", "StoreSwept of main"}; !slices.Equal(*events, want) {
		t.Errorf("events %q, want %q", *events, want)
	}
}

// The status of a store also lists clusters that no longer exist, and nothing of these is deleted.
func TestAStoreSaysWhatIsInIt(t *testing.T) {
	const gone, broken = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"
	at, secret := storeAt(bucket(t)), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"},
		Data: map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("someone"), v1alpha1.KeySecretAccessKey: []byte("secret")}}
	at.Status = v1alpha1.CassandraBackupStoreStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}}
	c := fake.NewClientBuilder().WithScheme(kinds(t)).WithObjects(at, secret).WithStatusSubresource(at).Build()
	in, err := store.Open(at.Spec, secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, content string) {
		t.Helper()
		if err := in.Put(t.Context(), key, strings.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	describe := func(id, taken string) {
		put(format.BackupKey(gone, id),
			`{"version": 1, "takenAt": "`+taken+`", "cluster": {"namespace": "shop", "name": "orders"}}`)
	}
	r := &Sweeps{Reader: &observe.Reader{Cache: c, Live: c},
		Now:    func() time.Time { return time.Now().Add(30 * 24 * time.Hour) },
		Writer: &act.Writer{Client: c, Live: c, Recorder: &told{}, Now: time.Now}}
	pass := func() []v1alpha1.StoredCluster {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(at)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(at), at); err != nil {
			t.Fatal(err)
		}
		return at.Status.Clusters
	}
	describe("20260301T030000Z-1", "2026-03-01T03:00:10.5Z")
	describe("20260302T030000Z-1", "2026-03-02T03:00:10.5Z")
	put(format.BlobKey(gone, strings.Repeat("ab", 32)), "x")
	put("elsewhere/backups/20260301T030000Z-1.json", "x")
	for range 2 {
		if got := pass(); len(got) != 1 || got[0].UID != gone || got[0].SweptAt != nil || got[0].LatestBackup == nil ||
			got[0].LatestBackup.ID != "20260302T030000Z-1" || got[0].LatestBackup.Cluster != "shop/orders" ||
			got[0].LatestBackup.TakenAt.UTC().Format(time.RFC3339) != "2026-03-02T03:00:10Z" {
			t.Errorf("in the store is %+v", got)
		}
	}
	describe("20260303T030000Z-1", "2026-03-03T03:00:10Z")
	put(format.BackupKey(broken, "20260303T030000Z-1"), "x")
	if got := pass(); len(got) != 2 || got[0].UID != broken || got[0].Problem == "" ||
		got[1].LatestBackup.ID != "20260303T030000Z-1" {
		t.Errorf("with another backup and a broken one %+v", got)
	}
	if keys := objects(t, in); len(keys) != 6 {
		t.Errorf("left are %q", keys)
	}
	for _, key := range objects(t, in) {
		if err := in.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if got := pass(); len(got) != 0 {
		t.Errorf("in an empty store is %+v", got)
	}
}

func objects(t *testing.T, in store.Store) (keys []string) {
	t.Helper()
	if err := in.List(t.Context(), "", func(o store.Object) error {
		keys = append(keys, o.Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return keys
}

// The newest backup of a schedule is verified in its store, an older one if somebody asks for it,
// and what is damaged is named and noted.
func TestABackupIsVerifiedInItsStore(t *testing.T) {
	at, secret := storeAt(bucket(t)), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"},
		Data: map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("someone"), v1alpha1.KeySecretAccessKey: []byte("secret")}}
	at.Status = v1alpha1.CassandraBackupStoreStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}}
	nightly := &v1alpha1.CassandraBackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly",
		UID: "s-1"}}
	nightly.Spec.Verify = &v1alpha1.BackupVerify{Sample: "100%"}
	of := func(name string, finished int64) *v1alpha1.CassandraBackup {
		end := metav1.NewTime(time.Unix(finished, 0))
		return &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{
			v1alpha1.LabelSchedule: "nightly", v1alpha1.LabelScheduleUID: "s-1"}},
			Spec:   v1alpha1.CassandraBackupSpec{Store: v1alpha1.BackupStoreReference{Name: "main"}},
			Status: v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupComplete, ID: name, ClusterUID: "c-1", FinishedAt: &end}}
	}
	older, newer := of("b-1", 1), of("b-2", 2)
	c := fake.NewClientBuilder().WithScheme(kinds(t)).WithObjects(at, secret, nightly, older, newer).
		WithStatusSubresource(older).Build()
	in, err := store.Open(at.Spec, secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	sum := strings.Repeat("ab", 32)
	for key, content := range map[string]string{
		format.BackupKey("c-1", "b-1"): `{"version": 1, "id": "b-1", "nodes": [{"name": "n", "hostID": "h"}]}`,
		format.BackupKey("c-1", "b-2"): `{"version": 1, "id": "b-2", "nodes": [{"name": "n", "hostID": "h"}]}`,
		format.ManifestKey("c-1", "b-2", "h"): `{"version": 1, "backup": "b-2", "cluster": "c-1", "node": {"hostID": "h"},
			"tables": [{"keyspace": "shop", "name": "orders", "sstables": [{"name": "nb-1-big",
				"files": [{"name": "Data.db", "size": 4, "sha256": "` + sum + `"}]}]}]}`,
		format.BlobKey("c-1", sum): "four",
	} {
		if err := in.Put(t.Context(), key, strings.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	events := &told{}
	r := &Verifications{Reader: &observe.Reader{Cache: c, Live: c},
		Writer: &act.Writer{Client: c, Live: c, Recorder: events, Now: time.Now}, Now: time.Now}
	pass := func(b *v1alpha1.CassandraBackup) *v1alpha1.BackupVerified {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			t.Fatal(err)
		}
		return b.Status.Verified
	}
	for range 2 {
		if got := pass(older); got != nil {
			t.Errorf("the older one: %+v", got)
		}
		if got := pass(newer); got == nil || got.DamagedFiles != 1 || got.Damaged[0].Table != "shop.orders" ||
			!slices.Equal(got.Damaged[0].Files, []string{"nb-1-big-Data.db has another content"}) {
			t.Errorf("the newer one: %+v", got)
		}
	}
	if keys := objects(t, in); !slices.Contains(keys, format.DamagedKey("c-1", sum)) {
		t.Errorf("it is not noted: %q", keys)
	}
	older.Annotations = map[string]string{v1alpha1.AnnotationVerify: "0%@now"}
	if err := c.Update(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	if got := pass(older); got == nil || got.Request != "0%@now" || got.Damaged[0].Files[0] != "its manifest is missing" {
		t.Errorf("it is asked for: %+v", got)
	}
	if want := []string{"BackupDamaged of b-2", "BackupDamaged of b-1"}; !slices.Equal(*events, want) {
		t.Errorf("events %q, want %q", *events, want)
	}
}
