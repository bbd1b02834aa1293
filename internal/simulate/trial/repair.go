package trial

import (
	"context"
	"errors"
	"time"

	"helenus.io/helenus/api/v1alpha1"
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
	}
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
