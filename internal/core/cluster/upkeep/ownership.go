package upkeep

import (
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// strangersAgain is when to look again for objects that are in the way. They are not ours, so
// nothing tells when they go.
const strangersAgain = 5 * time.Second

// leftoversAfter is how long what an earlier cluster has left may take to go by itself: the garbage
// collector needs seconds. That cluster is gone by now, so nobody else removes anything.
const leftoversAfter = time.Minute

// Ownership makes sure that this cluster, and nobody else, has the names it needs: an earlier
// cluster of the same name is waited for, objects of others are reported, and the cluster gets the
// finalizer with which it can be taken apart in order.
func (k *Keeper) Ownership() plan.Result {
	if len(k.Predecessor) > 0 && k.Now.Sub(k.Cluster.CreationTimestamp.Time) >= leftoversAfter {
		k.draft.Stall(v1alpha1.ReasonLeftovers, "an earlier cluster of this name, which is gone, has left %s, and "+
			"nothing removes them: its finalizer was taken away, or there was no operator. See what they are, and "+
			"remove them, by kubectl helenus clear-leftovers %s --namespace %s; volume claims are kept",
			words.List(k.Predecessor, 3), k.Cluster.Name, k.Cluster.Namespace)
		k.draft.WakeIn(strangersAgain)
		return plan.Stopped("an earlier cluster of this name has left %s", words.List(k.Predecessor, 3))
	}
	if len(k.Predecessor) > 0 {
		return k.draft.Retrying(strangersAgain, "an earlier cluster of this name is still being deleted: %s",
			words.List(k.Predecessor, 3))
	}
	if len(k.Foreign) > 0 {
		k.draft.Stall(v1alpha1.ReasonNameTaken, "%s exists and does not belong to this cluster: rename or delete it, "+
			"or choose another name for the cluster",
			words.List(k.Foreign, 3))
		k.draft.WakeIn(strangersAgain)
		return plan.Stopped("objects of others have names that this cluster needs")
	}
	if !slices.Contains(k.Cluster.Finalizers, v1alpha1.FinalizerCluster) {
		k.draft.Write(plan.Write{Verb: plan.Hold, Object: k.Cluster, UID: k.Cluster.UID,
			Finalizer: v1alpha1.FinalizerCluster})
	}
	return plan.Nothing()
}
