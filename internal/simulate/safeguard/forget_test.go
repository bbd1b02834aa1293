package safeguard

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/operator"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// forgetful operators do not remember what they wrote when they look at a cluster again: they go by
// a cache that does not show it yet.
func forgetful(w world.Wrap) world.Wrap {
	w.Pass = func(_ *world.Operator, r *operator.Reconciler) *operator.Reconciler {
		return &operator.Reconciler{Reader: r.Reader, Writer: r.Writer, Status: r.Status, Metrics: r.Metrics,
			Now: r.Now}
	}
	return w
}

// The store of own writes: an operator whose view does not show its last status must not take the
// one before for the present one. Without it the status stays wrong until something else happens.
func TestOwnWritesAreWaitedFor(t *testing.T) {
	s := trial.Named("status-stale", "a host is cut off while the operator does not see what it says of its cluster",
		true, nil,
		trial.Act{Name: "cut a host off", Do: func(w *world.World) error {
			w.Line.RunFor(2 * time.Minute) // until the agents have told of the tables
			w.Operators()[0].Freeze("CassandraCluster")
			w.Partition(w.Pods.Sandboxes()[0].Host(), true)
			return nil
		}, Until: func(w *world.World) bool { return !healthy(w) }, Within: 5 * time.Minute},
		trial.Act{Name: "the view continues", Do: func(w *world.World) error {
			w.Heal(w.Pods.Sandboxes()[0].Host())
			w.Line.RunFor(130 * time.Second)
			w.Operators()[0].Thaw()
			return nil
		}, Until: healthy, Within: 5 * time.Second})
	var noticed []string
	for seed := range uint64(8) { // by chance an agent may have something to tell just then, which wakes the operator
		refuses(t, holds(t, trial.Trial{Scenario: s, Seed: seed, Tell: true}),
			"the cache does not show our own writes yet: CassandraCluster")
		noticed = append(noticed, run(t, trial.Trial{Scenario: s, Seed: seed,
			Wrap: forgetful(world.Wrap{})}).Violations...)
		if saysAll(noticed, "act the view continues is not over") {
			return
		}
	}
	t.Errorf("nothing is noticed without it: %q", noticed)
}

// healthy says that every node serves, and that the cluster says only good of itself.
func healthy(w *world.World) bool {
	return trial.Serves(w) && meta.IsStatusConditionTrue(trial.Cluster(w).Status.Conditions, v1alpha1.ConditionHealthy)
}
