package observe

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// Of a time the latest backup before it is taken, where the ring is made as it was then if the
// commit logs cover it.
func TestWhichBackupIsReadForATime(t *testing.T) {
	const uid = "11111111-0000-4000-8000-000000000001"
	d := store.Directory(t.TempDir())
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 3, minute, 0, 0, time.UTC) }
	put := func(key, content string) {
		if err := d.Put(t.Context(), key, strings.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	for _, minute := range []int{0, 10, 20, 40} {
		id := at(minute).Format("20060102T150405Z") + "-1"
		put(format.BackupKey(uid, id), fmt.Sprintf(`{"version": 1, "id": %q, "takenAt": %q, "skew": 60000000000,
			"nodes": [{"name": "a", "hostID": "h"}]}`, id, at(minute+1).Format(time.RFC3339)))
	}
	id := at(30).Format("20060102T150405Z") + "-1"
	put(format.BackupKey(uid, id), fmt.Sprintf(`{"version": 1, "id": %q, "takenAt": %q, "skew": 60000000000,
		"nodes": [{"name": "a", "hostID": "h"}], "leftOut": [{"name": "b", "hostID": "i"}]}`, id,
		at(31).Format(time.RFC3339)))
	put(format.CoveredKey(uid, "h", format.Interval{From: at(5), To: at(50)}), "")
	asked := func(minute int) *v1alpha1.Restore {
		return &v1alpha1.Restore{Source: v1alpha1.RestoreSource{UID: uid}, PointInTime: &metav1.Time{Time: at(minute)}}
	}
	for minute, want := range map[int]string{12: "20260301T031000Z-1", 21: "20260301T031000Z-1",
		39: "20260301T032000Z-1",
		42: "20260301T034000Z-1", 11: "", 1: "", 55: ""} {
		// the one of 30 lacks a node
		found, problem, err := latestBefore(t.Context(), d, asked(minute))
		if err != nil || (problem == "") != (want != "") || want != "" && found.ID != want {
			t.Errorf("at %d: %v, %q, %v; want %q", minute, found, problem, err, want)
		}
	}
	const lacking = "33333333-0000-4000-8000-000000000003"
	put(format.BackupKey(lacking, id), fmt.Sprintf(`{"version": 1, "id": %q, "takenAt": %q, "leftOut": [{"name": "b"}]}`,
		id, at(31).Format(time.RFC3339)))
	r := asked(42)
	r.Source.UID = lacking
	if _, problem, err := latestBefore(t.Context(), d, r); err != nil || !strings.HasSuffix(problem,
		"; backup "+id+", which is later, is not taken for it: it was taken without b") {
		t.Errorf("%q, %v", problem, err)
	}
	for minute, want := range map[int]string{12: "20260301T031000Z-1", 39: "20260301T033000Z-1",
		42: "20260301T034000Z-1", 11: "20260301T030000Z-1", 55: "20260301T034000Z-1", 2: "20260301T030000Z-1", 1: ""} {
		r := asked(minute)
		r.LatestBefore, r.PointInTime = r.PointInTime, nil
		found, problem, err := latestBefore(t.Context(), d, r)
		if says := "the earliest is 20260301T030000Z-1, taken by 2026-03-01T03:02:01Z, the latest 20260301T034000Z-1, " +
			"taken by 2026-03-01T03:42:01Z"; err != nil || want == "" && !strings.Contains(problem, says) ||
			want != "" && (problem != "" || found.ID != want) {
			t.Errorf("before %d: %v, %q, %v; want %q", minute, found, problem, err, want)
		}
		r.Source.UID = "22222222-0000-4000-8000-000000000002"
		if found, problem, err := latestBefore(t.Context(), d, r); found != nil || problem == "" || err != nil {
			t.Errorf("of another: %v, %q, %v", found, problem, err)
		}
	}
}

// What is known of the backup that a ring is to be made from, and when it is looked for again.
func TestWhichBackupIsRead(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	const uid = "11111111-0000-4000-8000-000000000001"
	of := &v1alpha1.CassandraBackupStore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main"},
		Spec: v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{Bucket: "backups", SecretName: "key"}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "key"}}
	both := []client.Object{of, secret}
	for name, c := range map[string]struct {
		there   []client.Object
		content string
		away    error
		missing bool
		says    string
	}{
		"it is there":                 {both, `{"version": 1, "id": "b1"}`, nil, false, ""},
		"there is no store":           {[]client.Object{secret}, "", nil, true, "no such CassandraBackupStore"},
		"there is no Secret":          {[]client.Object{of}, "", nil, true, "no Secret key"},
		"there is no backup":          {both, "", nil, true, "no such backup"},
		"it is of a later format":     {both, `{"version": 2}`, nil, true, "version 2 of the format is not known"},
		"the store cannot be reached": {both, "", errors.New("no route"), true, "no route"},
		"it is no description":        {both, `{`, nil, true, "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			d := store.Directory(t.TempDir())
			if c.content != "" {
				if err := d.Put(t.Context(), format.BackupKey(uid, "b1"), strings.NewReader(c.content),
					int64(len(c.content))); err != nil {
					t.Fatal(err)
				}
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.there...).Build()
			now, opened := time.Unix(0, 0), 0
			r := &Reader{Cache: api, Live: api, Now: func() time.Time { return now },
				Store: func(spec v1alpha1.BackupStoreSpec, _ map[string][]byte) (store.Store, error) {
					opened++
					return d, c.away
				}}
			s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u1"},
				Spec: v1alpha1.CassandraClusterSpec{Bootstrap: &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{
					Store: v1alpha1.StoreReference{Name: "main"}, Source: v1alpha1.RestoreSource{UID: uid},
					Backup: "b1"}}}}}
			for range 2 {
				if err := r.backup(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			b := s.Backup
			if b.Missing != c.missing || (b.Description == nil) != (c.says != "") ||
				!strings.Contains(b.Problem, c.says) {
				t.Errorf("%+v", b)
			}
			once := opened
			now = now.Add(BackupAgain)
			if err := r.backup(t.Context(), s); err != nil || once > 1 || opened > once != (c.says != "" && once > 0) {
				t.Errorf("opened %d times, and %d later, %v", once, opened-once, err)
			}
			if c.says == "" { // of a time, and tickets say which backup that was
				restore := s.Cluster.Spec.Restore()
				restore.Backup, restore.LatestBefore = "", &metav1.Time{Time: now}
				s.Nodes = map[string]*facts.Node{"n": {Name: "n", Record: &v1alpha1.CassandraNode{}}}
				s.Nodes["n"].Record.Spec.Join = &v1alpha1.JoinTicket{Restore: &v1alpha1.DiskRestore{Backup: "b1"}}
				r.backups.forget(client.ObjectKeyFromObject(s.Cluster))
				if err := r.backup(t.Context(), s); err != nil || s.Backup.Description == nil {
					t.Errorf("with tickets %+v, %v", s.Backup, err)
				}
			}
			s.Backup, s.Ledger = nil, &ledger.Ledger{Step: &ledger.Step{}}
			if err := r.backup(t.Context(), s); err != nil || s.Backup != nil {
				t.Errorf("it is read after the ring has begun: %v, %v", s.Backup, err)
			}
		})
	}
}
