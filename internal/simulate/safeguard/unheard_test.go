package safeguard

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// TestAnOperatorThatStartsSaysWhoIsSilent: that nobody was heard yet is no news, but that somebody
// does not answer is, a moment later.
func TestAnOperatorThatStartsSaysWhoIsSilent(t *testing.T) {
	silent := func(w *world.World) bool {
		c := trial.Cluster(w)
		return c != nil && meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.ConditionHealthy)
	}
	s := trial.Named("lost-unseen", "all hosts are cut off while no operator runs", true, nil,
		trial.Act{Name: "cut off", Do: func(w *world.World) error {
			w.Operators()[0].Kill()
			for _, host := range w.Kube.Hosts() {
				w.Partition(host, false)
			}
			w.StartOperator(world.Install)
			return nil
		}, Until: silent, Within: 10 * time.Second},
		trial.Act{Name: "heal", Do: func(w *world.World) error {
			for _, host := range w.Kube.Hosts() {
				w.Heal(host)
			}
			return nil
		}, Until: healthy, Within: 10 * time.Minute})
	holds(t, trial.Trial{Scenario: s, Seed: 1})
}
