package safeguard

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// A roll-out without its gate asks a node to go down while another one is.
func TestTheGateOfARollOut(t *testing.T) {
	s, err := trial.Find("rollout-host-lost")
	if err != nil {
		t.Fatal(err)
	}
	const by = "is asked to go down while"
	refused := judged(t, "MemberSeenDown")
	if result := run(t, trial.Trial{Scenario: s, Seed: 1}); saysAll(result.Violations, by) || refused["MemberDown"] == 0 {
		t.Errorf("with the gate: %q, refused %v", result.Violations, refused)
	}
	judged(t, "MemberDown", "MemberSeenDown")
	caught(t, trial.Trial{Scenario: s, Seed: 1}, by)
}

// A record that takes over the spec before its node's turn has come is caught, whoever writes it.
func TestARecordOutOfTurn(t *testing.T) {
	s, err := trial.Find("rollout-killed")
	if err != nil {
		t.Fatal(err)
	}
	early := *s
	early.Acts = append(early.Acts[:len(early.Acts)-1:len(early.Acts)-1], trial.Act{Name: "write a record out of turn",
		Within: 30 * time.Minute, Until: func(w *world.World) bool { return trial.Cluster(w).Status.Step == nil },
		Do: func(w *world.World) error {
			record := func(name string) *v1alpha1.CassandraNode {
				return w.Server.Object(v1alpha1.CassandraNodeKind,
					types.NamespacedName{Namespace: world.Namespace, Name: name}).(*v1alpha1.CassandraNode).DeepCopy()
			}
			last := record("orders-dc1-r3-0")
			last.Spec.Configuration.CassandraYaml = record("orders-dc1-r1-0").Spec.Configuration.CassandraYaml
			return w.User().Update(context.Background(), last)
		}})
	caught(t, trial.Trial{Scenario: &early, Seed: 1}, "changed together")
}
