package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

// A backup is created as its flags say, and waited for until it has finished.
func TestBackup(t *testing.T) {
	for phase, wrong := range map[v1alpha1.BackupPhase]string{
		v1alpha1.BackupComplete: "", v1alpha1.BackupIncomplete: "has failed: a node is gone",
	} {
		asked := 0
		c := to(t, interceptor.Funcs{Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey,
			object client.Object, options ...client.GetOption) error {
			err := under.Get(ctx, key, object, options...)
			if b, is := object.(*v1alpha1.CassandraBackup); is {
				asked++
				b.Status = v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupUploading, Progress: "1/3"}
				if asked > 2 {
					b.Status = v1alpha1.CassandraBackupStatus{Phase: phase, Progress: "2/3", Message: "a node is gone"}
				}
			}
			return err
		}}, cluster("shop", "orders"))
		d := newDesk()
		err := d.giveBackup(t.Context(), c, "orders", backing{wait: true, bandwidth: "50Mi", deadline: time.Hour,
			spec: v1alpha1.CassandraBackupSpec{Store: v1alpha1.BackupStoreReference{Name: "main"},
				BackupTemplate: v1alpha1.BackupTemplate{Keyspaces: []string{"shop"}}}})
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", phase, err)
		}
		all := &v1alpha1.CassandraBackupList{}
		if err := c.client.List(t.Context(), all); err != nil || len(all.Items) != 1 {
			t.Fatalf("%d backups, %v", len(all.Items), err)
		}
		spec := all.Items[0].Spec
		if spec.Cluster.Name != "orders" || spec.Store.Name != "main" || !slices.Equal(spec.Keyspaces, []string{"shop"}) ||
			spec.Limits.BandwidthPerNode.Value() != 50<<20 || spec.Deadline.Duration != time.Hour {
			t.Errorf("created %+v", spec)
		}
		if out := d.out.String(); strings.Count(out, "Uploading 1/3") != 1 || strings.Count(out, "\n") != 2 {
			t.Errorf("said %q", out)
		}
	}
}

func TestBackups(t *testing.T) {
	of := func(name, cluster string, at time.Time) *v1alpha1.CassandraBackup {
		taken := metav1.NewMicroTime(at)
		return &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
			CreationTimestamp: metav1.NewTime(at)},
			Spec: v1alpha1.CassandraBackupSpec{Cluster: v1alpha1.TaskCluster{Name: cluster},
				Store: v1alpha1.BackupStoreReference{Name: "main"}},
			Status: v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupComplete, Progress: "3/3", TakenAt: &taken,
				Skew: &metav1.Duration{Duration: 1400 * time.Millisecond}, Bytes: 77, NewBytes: 7}}
	}
	at := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	scheduled := of("older", "orders", at)
	scheduled.Labels = map[string]string{v1alpha1.LabelSchedule: "nightly"}
	verified := metav1.NewTime(at)
	scheduled.Status.Verified = &v1alpha1.BackupVerified{At: &verified}
	scheduled.Status.ID = "b-1"
	nightly := &v1alpha1.CassandraBackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}}
	nightly.Status.RestoreDrill = &v1alpha1.RestoreDrillStatus{LastProven: &v1alpha1.RestoredBackup{ID: "b-1",
		At: metav1.NewTime(at.Add(time.Hour))}}
	newer := of("newer", "orders", at.Add(24*time.Hour))
	newer.Status.Verified = &v1alpha1.BackupVerified{At: &verified, DamagedFiles: 3}
	c := to(t, interceptor.Funcs{}, cluster("shop", "orders"), scheduled, nightly,
		newer, of("other", "carts", at))
	d := newDesk()
	if err := d.listBackups(t.Context(), c, "orders"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(d.out.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "newer  -         main") ||
		!strings.HasPrefix(lines[2], "older  nightly   main") ||
		!strings.Contains(lines[2], "Complete  3/3   2026-03-01T03:00:00Z  1.4s  77     7    "+
			"2026-03-01T03:00:00Z  2026-03-01T04:00:00Z") ||
		!strings.Contains(lines[1], "3 damaged") {
		t.Errorf("listed %q", lines)
	}
}

// What backups take: of each what no other has, and of their stores what these have of the cluster.
func TestCostOfBackups(t *testing.T) {
	of := func(name, id string) *v1alpha1.CassandraBackup {
		return &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: v1alpha1.CassandraBackupSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"},
				Store: v1alpha1.BackupStoreReference{Name: "main"}},
			Status: v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupComplete, ID: id, ClusterUID: "c", Bytes: 77,
				NewBytes: 7}}
	}
	main := &v1alpha1.CassandraBackupStore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main"}}
	said := func() string {
		t.Helper()
		d := newDesk()
		if err := d.costOfBackups(t.Context(), to(t, interceptor.Funcs{}, cluster("shop", "orders"), of("a", "b-1"),
			of("b", "b-2"), main), "orders"); err != nil {
			t.Fatal(err)
		}
		return d.out.String()
	}
	if out := said(); !strings.Contains(out, "first sweep") || !strings.Contains(out, "77     7    -") {
		t.Errorf("said %q", out)
	}
	at := metav1.NewTime(time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC))
	main.Status.Clusters = []v1alpha1.StoredCluster{{UID: "other", SweptAt: &at, Bytes: 999}, {UID: "c", SweptAt: &at,
		Files: 3, Bytes: 90, WaitingBytes: 5, LogBytes: 40, Alone: []v1alpha1.AloneInStore{{ID: "b-1", Bytes: 13}}}}
	out := said()
	for _, want := range []string{"b-1  Complete  77     7    13", "b-2  Complete  77     7    -",
		"main   c            3      90     5        40    2026-03-01T03:00:00Z"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "999") {
		t.Errorf("another cluster is in\n%s", out)
	}
}

// A verification is asked for by an annotation, and waited for until the status answers that.
func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		phase   v1alpha1.BackupPhase
		percent int
		found   v1alpha1.BackupVerified
		wrong   string
	}{
		"all is there":      {v1alpha1.BackupComplete, 5, v1alpha1.BackupVerified{}, ""},
		"it is damaged":     {v1alpha1.BackupComplete, 5, v1alpha1.BackupVerified{DamagedFiles: 1}, "one is missing"},
		"it cannot be read": {v1alpha1.BackupComplete, 5, v1alpha1.BackupVerified{Problem: "access denied"}, "access denied"},
		"it runs":           {v1alpha1.BackupUploading, 5, v1alpha1.BackupVerified{}, "only what is complete"},
		"more than all":     {v1alpha1.BackupComplete, 101, v1alpha1.BackupVerified{}, "from 0 to 100"},
	} {
		b := &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"},
			Status: v1alpha1.CassandraBackupStatus{Phase: c.phase}}
		asked := 0
		conn := to(t, interceptor.Funcs{Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey,
			object client.Object, options ...client.GetOption) error {
			err := under.Get(ctx, key, object, options...)
			b, is := object.(*v1alpha1.CassandraBackup)
			if asked++; is && asked > 2 {
				b.Status.Verified = c.found.DeepCopy()
				b.Status.Verified.Request = b.Annotations[v1alpha1.AnnotationVerify]
				b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionVerified, Message: "one is missing"}}
			}
			return err
		}}, b)
		d := newDesk()
		err := d.verifyBackup(t.Context(), conn, "b", c.percent, true)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %v", name, err)
		}
		if err := conn.client.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			t.Fatal(err)
		}
		if c.wrong == "" && !strings.HasPrefix(b.Annotations[v1alpha1.AnnotationVerify], "5%@20") {
			t.Errorf("%s: asked by %q", name, b.Annotations)
		}
	}
}
