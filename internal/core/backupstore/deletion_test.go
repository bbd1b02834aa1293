package backupstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

func TestDeletion(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*facts.BackupDeletion)
		// removable, wrote: what is done of it in the store, and at the API server.
		removable bool
		wrote     string
		says      string
	}{
		"it stays":          {func(d *facts.BackupDeletion) { d.Object.DeletionTimestamp = nil }, false, "", ""},
		"it is held before": {func(d *facts.BackupDeletion) { d.Object.DeletionTimestamp, d.Object.Finalizers = nil, nil }, false, "Hold", ""},
		"one that is retained is not held": {func(d *facts.BackupDeletion) {
			d.Object.DeletionTimestamp, d.Object.Finalizers = nil, nil
			d.Object.Spec.DeletionPolicy = v1alpha1.BackupRetain
		}, false, "", ""},
		"somebody took the finalizer away": {func(d *facts.BackupDeletion) { d.Object.Finalizers = nil }, false, "", ""},
		"it is due":                        {func(*facts.BackupDeletion) {}, true, "ApplyStatus Event", "is not deleted yet"},
		"it is done":                       {func(d *facts.BackupDeletion) { d.Removed = true }, true, "Event Release", "id-1 is deleted"},
		"it has failed":                    {func(d *facts.BackupDeletion) { d.Problem = "access denied" }, true, "ApplyStatus Event", "access denied"},
		"it has failed as before": {func(d *facts.BackupDeletion) {
			d.Problem, d.Object.Status.Message = "access denied", "is not deleted yet: access denied"
		}, true, "", ""},
		"a ring is made from it": {func(d *facts.BackupDeletion) { d.Readers = []string{"cluster shop/again"} }, false, "ApplyStatus Event", "shop/again"},
		"a node writes to it":    {func(d *facts.BackupDeletion) { d.Writers = []string{"orders-a-a-0"} }, false, "ApplyStatus Event", "orders-a-a-0"},
		"it was cancelled just now": {func(d *facts.BackupDeletion) { d.Object.Status.Phase = v1alpha1.BackupUploading },
			false, "ApplyStatus Event", "cancelled"},
		"it was cancelled before": {func(d *facts.BackupDeletion) {
			d.Object.Status.Phase = v1alpha1.BackupUploading
			d.Object.DeletionTimestamp = &metav1.Time{Time: now.Add(-settles)}
		}, true, "ApplyStatus Event", ""},
		"no Secret":         {func(d *facts.BackupDeletion) { d.SecretMissing = "key" }, false, "ApplyStatus Event", "Secret key"},
		"no store":          {func(d *facts.BackupDeletion) { d.Store = nil }, false, "Event Release", "no CassandraBackupStore main"},
		"it has not begun":  {func(d *facts.BackupDeletion) { d.Object.Status = v1alpha1.CassandraBackupStatus{} }, false, "Release", ""},
		"it is to be there": {func(d *facts.BackupDeletion) { d.Object.Spec.DeletionPolicy = v1alpha1.BackupRetain }, false, "Event Release", "Retain"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &facts.BackupDeletion{Store: &v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{SecretName: "key"}},
				Object: &v1alpha1.CassandraBackup{
					ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "u", ResourceVersion: "1",
						Finalizers: []string{v1alpha1.FinalizerBackup}, DeletionTimestamp: &metav1.Time{Time: now}},
					Spec: v1alpha1.CassandraBackupSpec{DeletionPolicy: v1alpha1.BackupDelete,
						Store: v1alpha1.BackupStoreReference{Name: "main"}},
					Status: v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupComplete, ID: "id-1", ClusterUID: "c"}}}
			c.change(d)
			if got := Removable(d, now); got != c.removable {
				t.Errorf("removable: %t", got)
			}
			p := NextDeletion(d, now)
			var wrote, said []string
			for _, w := range p.Writes {
				wrote = append(wrote, string(w.Verb))
				if w.Verb == plan.Event {
					said = append(said, w.Why)
				}
				if (w.Verb == plan.Hold || w.Verb == plan.Release) && (w.UID != "u" || w.Finalizer != v1alpha1.FinalizerBackup) {
					t.Errorf("writes %+v", w)
				}
			}
			if strings.Join(wrote, " ") != c.wrote || !strings.Contains(strings.Join(said, " "), c.says) {
				t.Errorf("wrote %q, said %q", wrote, said)
			}
			if held(d) && !slices.Contains(wrote, "Release") && p.Wake == 0 {
				t.Error("nobody looks again")
			}
		})
	}
}
