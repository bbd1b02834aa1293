package safeguard

import (
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// What the cluster says of itself is held to the world: an operator that is told something else of
// its nodes says something else, and that is noticed.
func TestAStatusThatIsNotSoIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		of []string
		by string
	}{
		"a node is not NORMAL": {[]string{clusterName + "-dc1-r1-0"},
			"the condition Healthy is false (" + clusterName + "-dc1-r1-0 not NORMAL), and 3 of 3 nodes are NORMAL"},
		"no node is": {
			[]string{clusterName + "-dc1-r1-0", clusterName + "-dc1-r2-0", clusterName + "-dc1-r3-0"},
			"the condition Available is false (no node can say what the ring is like), and 96 of 96 writes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			lies := false
			wrap := retelling(func(target observe.Target, answer *facts.Agent) {
				if lies && slices.Contains(c.of, target.Node) && answer.Ring != nil {
					answer.Ring.Mode = facts.ModeDrained
				}
			})
			s := trial.Named("told-otherwise", "an operator is told otherwise of its nodes", true, nil,
				trial.Act{Name: "tell it otherwise, and have it ask again", Do: func(w *world.World) error {
					lies = true
					w.Operators()[0].Kill()
					w.StartOperator(world.Install)
					return nil
				}}, waiting(time.Minute))
			caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: wrap}, c.by)
		})
	}
}
