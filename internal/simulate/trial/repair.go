package trial

import (
	"context"
	"errors"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/world"
)

// repairScenarios are those in which tables are repaired before their deadlines.
func repairScenarios() []*Scenario {
	return []*Scenario{
		scenario("repair-deadlines", "what a replica has lost comes back before the table's deadline", threeRacks,
			Act{Name: "repair every two hours, lose the rows of a replica", Within: 6 * time.Hour,
				Do: loseRows, Until: all(again, replicasAreTheSame)},
			Act{Name: "repair as usual", Within: time.Hour, Until: again, Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
				s.Repair = v1alpha1.RepairPolicy{}
			})}),
		scenario("repair-node", "a host is down for longer than a table keeps its deletions, a user lets its node "+
			"start, and the operator has it repaired", threeRacks,
			Act{Name: "create a table", Do: keepDeletions},
			passing("ten minutes", 10*time.Minute, again), // the agents hear of it
			Act{Name: "lose", Do: first((*kube.Cluster).Lose), Until: readyNodes(2), Within: 10 * time.Minute},
			anHour(),
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }),
				Until: all(allBut(v1alpha1.PhaseDownTooLong), serves(2)), Within: 15 * time.Minute},
			Act{Name: "start anyway", Do: except(v1alpha1.ExceptionStartAnyway), Until: all(again, isRepaired),
				Within: time.Hour}),
	}
}

// isRepaired says that the first node had to be repaired, and was.
func isRepaired(w *world.World) bool {
	n, is := w.Server.Object("CassandraNode", keyOf(clusterName+"-dc1-r1-0")).(*v1alpha1.CassandraNode)
	return is && len(n.Spec.Repaired) > 0 && len(n.Status.RepairDue) == 0 && !repairScheduled(w)
}

// repairScheduled says that a node must be repaired, which nobody is asked for.
func repairScheduled(w *world.World) bool {
	c := get(w)
	return c != nil && slices.ContainsFunc(c.Status.Notices,
		func(n v1alpha1.Notice) bool { return n.Reason == v1alpha1.NoticeRepairScheduled })
}

// loseRows has tables be repaired often, and a replica lose its rows.
func loseRows(w *world.World) error {
	c := get(w).DeepCopy()
	if c == nil {
		return errors.New("there is no cluster")
	}
	c.Spec.Repair = v1alpha1.RepairPolicy{Target: "1%", Intensity: "100%"} // of ten days
	if err := w.User().Update(context.Background(), c); err != nil {
		return err
	}
	for _, s := range w.Pods.Sandboxes() {
		s.Content(v1alpha1.VolumeData).Data.LoseRows(world.Keyspace)
		return nil
	}
	return errors.New("there is no pod")
}

// replicasAreTheSame says that every disk has as many rows, and that there are any.
func replicasAreTheSame(w *world.World) bool {
	first := int64(-1)
	for _, s := range w.Pods.Sandboxes() {
		bytes := s.Content(v1alpha1.VolumeData).Data.BytesOf(world.Keyspace)
		if first < 0 {
			first = bytes
		}
		if bytes != first {
			return false
		}
	}
	return first > 0
}
