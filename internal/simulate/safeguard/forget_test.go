package safeguard

import (
	"testing"
	"time"

	"helenus.io/helenus/internal/operator"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// forgetful operators do not remember what they wrote when they look at a cluster again: they go by a cache that does not show it yet.
func forgetful(w world.Wrap) world.Wrap {
	w.Pass = func(_ *world.Operator, r *operator.Reconciler) *operator.Reconciler {
		return &operator.Reconciler{Reader: r.Reader, Writer: r.Writer, Status: r.Status, Metrics: r.Metrics, Now: r.Now}
	}
	return w
}

// The store of own writes: an operator whose view does not show its last status must not take the one before for the present one. Without it the status stays
// wrong until something else happens.
func TestOwnWritesAreWaitedFor(t *testing.T) {
	s := trial.Named("status-stale", "a JVM is killed while the operator does not see what it says of its cluster", true, nil,
		trial.Act{Name: "kill a JVM", Do: func(w *world.World) error {
			w.Operators()[0].Freeze("CassandraCluster")
			w.Pods.Sandboxes()[0].JVM().Kill()
			return nil
		}, Until: func(w *world.World) bool { return !trial.Serves(w) }, Within: 5 * time.Minute},
		trial.Act{Name: "the view goes on", Do: func(w *world.World) error {
			w.Line.RunFor(130 * time.Second)
			w.Operators()[0].Thaw()
			return nil
		}, Until: trial.Serves, Within: 10 * time.Second})
	refuses(t, holds(t, trial.Trial{Scenario: s, Seed: 1, Tell: true}), "the cache does not show our own writes yet: CassandraCluster")
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: forgetful(world.Wrap{})}, "I10: 1 writes in 2m0s in which nothing happened, the last: operator-1 patch CassandraCluster")
}
