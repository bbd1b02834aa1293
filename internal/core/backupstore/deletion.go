package backupstore

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

const (
	// settles is how long after its deletion an unfinished backup may still be written by who has
	// not heard of that.
	settles = time.Minute
	// waits is when it is looked at again what holds a deletion.
	waits = 30 * time.Second
)

// held says that the deletion of a backup waits for us.
func held(d *facts.BackupDeletion) bool {
	return d.Object.DeletionTimestamp != nil && slices.Contains(d.Object.Finalizers, v1alpha1.FinalizerBackup)
}

// left is why a backup stays in its store though it is deleted; empty if it does not.
func left(d *facts.BackupDeletion) string {
	switch b := d.Object; {
	case b.Status.ClusterUID == "":
		return "it has never begun"
	case b.Spec.DeletionPolicy != v1alpha1.BackupDelete:
		return "its deletionPolicy is Retain"
	case d.Store == nil:
		return "there is no CassandraBackupStore " + b.Spec.Store.Name + " any more"
	}
	return ""
}

// holds is what the deletion of a backup in its store waits for; empty if for nothing.
func holds(d *facts.BackupDeletion, now time.Time) string {
	switch b := d.Object; {
	case len(d.Readers) > 0:
		return fmt.Sprintf("waits until %s has ended, which may read it", words.List(d.Readers, 3))
	case len(d.Writers) > 0:
		return fmt.Sprintf("waits until %s has ended writing to it", words.List(d.Writers, 3))
	case !b.Status.Phase.Final() && now.Sub(b.DeletionTimestamp.Time) < settles:
		return "waits until all nodes know that it is cancelled"
	case d.SecretMissing != "":
		return fmt.Sprintf("there is no Secret %s: create it, or take the finalizer %s away to leave the backup in "+
			"its store", d.SecretMissing, v1alpha1.FinalizerBackup)
	}
	return ""
}

// Removable says that the backup is to be deleted in its store now.
func Removable(d *facts.BackupDeletion, now time.Time) bool {
	return held(d) && left(d) == "" && holds(d, now) == ""
}

// NextDeletion is what is to be done about the deletion of a backup now. One that is to be deleted
// in its store is held before anything lies there.
func NextDeletion(d *facts.BackupDeletion, now time.Time) plan.Plan {
	b, draft := d.Object, plan.Draft{}
	finalizer := plan.Write{Object: plan.Named(b), UID: b.UID, Finalizer: v1alpha1.FinalizerBackup}
	switch {
	case b.DeletionTimestamp == nil && b.Spec.DeletionPolicy == v1alpha1.BackupDelete &&
		!slices.Contains(b.Finalizers, v1alpha1.FinalizerBackup):
		finalizer.Verb = plan.Hold
		draft.Write(finalizer)
	case !held(d):
	case d.Removed:
		finalizer.Verb = plan.Release
		draft.Write(plan.Write{Verb: plan.Event, Object: b, EventType: corev1.EventTypeNormal,
			Reason: v1alpha1.EventBackupDeleted, Why: b.Status.ID + " is deleted in its store"}, finalizer)
	case left(d) != "":
		finalizer.Verb = plan.Release
		if b.Status.ClusterUID != "" {
			draft.Write(plan.Write{Verb: plan.Event, Object: b, EventType: corev1.EventTypeWarning,
				Reason: v1alpha1.EventBackupNotDeleted, Why: b.Status.ID + " stays in its store: " + left(d)})
		}
		draft.Write(finalizer)
	default:
		waiting(d, &draft, now)
	}
	return draft.Plan
}

// waiting says in the status what a deletion waits for, and tells people of it once.
func waiting(d *facts.BackupDeletion, draft *plan.Draft, now time.Time) {
	b, why := d.Object, holds(d, now)
	draft.Wake = waits
	if why == "" {
		why, draft.Wake = d.Problem, again
	}
	object := plan.Named(b).(*v1alpha1.CassandraBackup)
	object.Status = *b.Status.DeepCopy()
	object.Status.Message = words.Shorten("is not deleted yet: "+why, longestMessage)
	if equality.Semantic.DeepEqual(object.Status, b.Status) {
		return
	}
	draft.Write(plan.Write{Verb: plan.ApplyStatus, Object: object, UID: b.UID, ResourceVersion: b.ResourceVersion},
		plan.Write{Verb: plan.Event, Object: b, EventType: corev1.EventTypeWarning,
			Reason: v1alpha1.EventBackupNotDeleted, Why: object.Status.Message})
}
