package safeguard

import (
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// agentsKilled is the scenario of a ring that grows, in which every agent is killed once while an
// operation of a type runs on its node, which takes longer there than an agent to start.
func agentsKilled(of v1alpha1.OperationType, slow float64,
	change func(*v1alpha1.CassandraClusterSpec)) *trial.Scenario {
	var cut []string
	killed := map[string]bool{}
	return growing("agents-killed-"+string(of), "agents are killed while a "+string(of)+" runs",
		trial.Act{Name: "kill agents of nodes that work", Do: func(w *world.World) error {
			cut = nil
			clear(killed)
			ended(w, v1alpha1.OperationInterrupted, func(name string, o v1alpha1.OperationStatus) {
				cut = append(cut, fmt.Sprintf("operation %s of node %s was cut off: %s", o.ID, name, o.Message))
			})
			w.Watch(func(e apiserver.Event) {
				n, ok := e.New.(*v1alpha1.CassandraNode)
				if !ok || killed[n.Name] || len(n.Spec.Operations) == 0 {
					return
				}
				for _, o := range n.Spec.Operations {
					s := sandbox(w, n.Name)
					switch status := n.Status.Operation(o.ID); {
					case o.Type != of || s == nil:
					case status == nil:
						w.Network.Slow(s.Address(), slow)
					case status.Phase == v1alpha1.OperationRunning:
						killed[n.Name] = true
						w.Line.After(time.Second, "kill an agent", func() { s.Kill(layout.AgentContainer) })
					}
				}
			})
			return nil
		}},
		respec("grow", grown, change),
		trial.Act{Name: "look", Do: func(*world.World) error {
			if len(killed) == 0 {
				return fmt.Errorf("no agent was killed")
			}
			return nil
		}},
		unharmed(func(*world.World) []string { return cut }))
}

// An operation survives its agent: the next one finds it in the JVM, and begins none beside it.
func TestOperationsSurviveTheirAgents(t *testing.T) {
	for of, c := range map[v1alpha1.OperationType]struct {
		slow   float64
		change func(*v1alpha1.CassandraClusterSpec)
		by     string
	}{
		v1alpha1.OperationCleanup: {20, nodeMore, "was cut off"},
		v1alpha1.OperationRepair:  {20, extended(), "I4: a second repair of keyspace"},
		v1alpha1.OperationRebuild: {20, extended(), "was cut off"},
	} {
		t.Run(string(of), func(t *testing.T) {
			s := agentsKilled(of, c.slow, c.change)
			for i := range s.Acts {
				if s.Acts[i].Name == "grow" {
					s.Acts[i].Within = 3 * time.Hour
				}
			}
			holds(t, trial.Trial{Scenario: s, Seed: 1})
			caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: host(func(_ *pod.Sandbox, h *execute.Host) {
				h.Journal = stray{h.Journal}
			})}, c.by)
		})
	}
}

// stray is a journal that does not remember on which JVM an operation runs.
type stray struct{ execute.Journal }

func (j stray) Load() (node.Memory, error) {
	m, err := j.Journal.Load()
	for i := range m.Operations {
		m.Operations[i].Incarnation = ""
	}
	return m, err
}
