package safeguard

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// found is a scenario of the catalogue.
func found(t *testing.T, name string) *trial.Scenario {
	t.Helper()
	s, err := trial.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A roll-out without its gate asks a node to go down while another one is.
func TestTheGateOfARollOut(t *testing.T) {
	s := found(t, "rollout-host-lost")
	const by = "is asked to go down while"
	refused := judged(t, "MemberSeenDown")
	if result := run(t, trial.Trial{Scenario: s, Seed: 1}); saysAll(result.Violations, by) || refused["MemberDown"] == 0 {
		t.Errorf("with the gate: %q, refused %v", result.Violations, refused)
	}
	judged(t, "MemberDown", "MemberSeenDown")
	caught(t, trial.Trial{Scenario: s, Seed: 1}, by)
}

// A roll-out that does not wait for hints takes the next node down while the last one lacks what
// was written meanwhile.
func TestHintsAreAwaited(t *testing.T) {
	s := found(t, "rollout-hints")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	judged(t, "HintsNotDelivered")
	caught(t, trial.Trial{Scenario: s, Seed: 1}, "keeps hints for")
}

// Without the guard on incremental repairs a release changes in the middle of one.
func TestIncrementalRepairsEndFirst(t *testing.T) {
	s := found(t, "version-repair")
	judged(t, "IncrementalRepairRunning")
	caught(t, trial.Trial{Scenario: s, Seed: 1}, "takes part in an incremental repair")
}

// Without the guard on room a node is stopped for a pod that no host takes.
func TestNoPodIsMadeForWhichNoHostHasRoom(t *testing.T) {
	s := found(t, "rollout-room")
	judged(t, "NoHostHasRoom")
	caught(t, trial.Trial{Scenario: s, Seed: 1}, "ask for too much")
}

// Without the guard on releases nodes join a ring that has not reached their own.
func TestNothingJoinsBetweenReleases(t *testing.T) {
	s := found(t, "version-grown")
	judged(t, "ReleasesDiffer")
	caught(t, trial.Trial{Scenario: s, Seed: 1}, "I9")
}

// A record that takes over the spec before its node's turn has come is caught, whoever writes it.
func TestARecordOutOfTurn(t *testing.T) {
	s := found(t, "rollout-killed")
	early := *s
	early.Acts = append(early.Acts[:len(early.Acts)-1:len(early.Acts)-1], trial.Act{Name: "write a record out of turn",
		Within: 30 * time.Minute, Until: func(w *world.World) bool { return trial.Cluster(w).Status.Step == nil },
		Do: func(w *world.World) error {
			record := func(name string) *v1alpha1.CassandraNode {
				return w.Server.Object("CassandraNode",
					types.NamespacedName{Namespace: world.Namespace, Name: name}).(*v1alpha1.CassandraNode).DeepCopy()
			}
			last := record("orders-dc1-r3-0")
			last.Spec.Configuration.CassandraYaml = record("orders-dc1-r1-0").Spec.Configuration.CassandraYaml
			return w.User().Update(context.Background(), last)
		}})
	caught(t, trial.Trial{Scenario: &early, Seed: 1}, "changed together")
}

// Labels and annotations change on the pods that run: none is recreated, and no JVM starts. A
// client whose changes take nothing away leaves those that the spec no longer has.
func TestLabelsOfPodsThatRun(t *testing.T) {
	s := found(t, "rollout-labels")
	for name, starts := range holds(t, trial.Trial{Scenario: s, Seed: 1}).End.JVMs {
		if starts != 1 {
			t.Errorf("%s was started %d times", name, starts)
		}
	}
	for name, made := range holds(t, trial.Trial{Scenario: s, Seed: 1}).End.Created {
		if strings.HasPrefix(name, "Pod/") && made != 1 {
			t.Errorf("%s was made %d times", name, made)
		}
	}
	adds := writing(func(c client.Client) client.Client { return adding{c} })
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: adds}, "act take out is not over")
}
