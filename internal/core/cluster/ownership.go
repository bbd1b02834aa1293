package cluster

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
)

// strangersAgain is when to look again for objects that are in the way. They are not ours, so nothing tells when they go.
const strangersAgain = 5 * time.Second

// ownership makes sure that this cluster, and nobody else, has the names it needs: an earlier cluster of the same name is waited for, objects of others
// are reported, and the cluster gets the finalizer with which it can be taken apart in order.
func ownership(p *pass) result {
	if len(p.Predecessor) > 0 {
		return p.retry(strangersAgain, "an earlier cluster of this name is still being deleted: %s", list(p.Predecessor, 3))
	}
	if len(p.Foreign) > 0 {
		p.stall(v1alpha1.ReasonNameTaken, "%s exists and does not belong to this cluster: rename or delete it, or choose another name for the cluster",
			list(p.Foreign, 3))
		p.wakeIn(strangersAgain)
		return stuck("objects of others have names that this cluster needs")
	}
	if !hasFinalizer(p.Cluster, v1alpha1.FinalizerCluster) {
		p.write(plan.Write{Verb: plan.Hold, Object: p.Cluster, UID: p.Cluster.UID, Finalizer: v1alpha1.FinalizerCluster})
	}
	return done()
}
