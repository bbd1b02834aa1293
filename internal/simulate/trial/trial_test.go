package trial

import (
	"strings"
	"testing"

	"helenus.io/helenus/internal/simulate/apiserver"
)

func kindsOf(t testing.TB) *apiserver.Kinds {
	t.Helper()
	kinds, err := CompileKinds("../../../config/crd")
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// Every scenario comes to its end when nothing goes wrong, whatever the choices.
func TestScenariosEndWithoutAFault(t *testing.T) {
	kinds := kindsOf(t)
	for _, s := range Catalogue() {
		t.Run(s.Name, func(t *testing.T) {
			for seed := range uint64(2) {
				trial := Trial{Scenario: s, Seed: seed}
				result := trial.Run(kinds, nil)
				for _, v := range result.Violations {
					t.Errorf("%s: %s", trial, v)
				}
				for node, n := range result.End.JVMs {
					if strings.HasPrefix(s.Name, "agents-replaced") && n != 1 {
						t.Errorf("%s: node %s has started %d JVMs", trial, node, n)
					}
				}
				if len(result.Points) == 0 || result.Took <= 0 {
					t.Errorf("%s: nothing happened", trial)
				}
			}
		})
	}
}

// The same name runs the same: otherwise a failure could not be found again.
func TestATrialRunsTheSameAgain(t *testing.T) {
	kinds := kindsOf(t)
	trial, err := Parse("create-3/7/kill-after@operator:create:Pod/orders-dc1-r2-0:1")
	if err != nil {
		t.Fatal(err)
	}
	first, second := trial.Run(kinds, nil), trial.Run(kinds, nil)
	if !first.Fired || first.Events != second.Events || first.Took != second.Took ||
		len(first.Points) != len(second.Points) {
		t.Fatalf("%d events in %s, then %d in %s", first.Events, first.Took, second.Events, second.Took)
	}
	for i := range first.Points {
		if first.Points[i] != second.Points[i] {
			t.Fatalf("point %d is %s, then %s", i, first.Points[i], second.Points[i])
		}
	}
}

// A pod on ephemeral storage that goes takes the data of its node along, and a stop that not every
// member hears of holds no replacement up.
func TestALostPodOnEphemeralStorageIsReplacedOrNamed(t *testing.T) {
	for name, at := range map[string]string{
		"one sees SHUTDOWN, another NORMAL and down": "host-lost@operator:patch/status:CassandraCluster/orders:39",
		"another one before the JVM is killed":       "pod-deleted@operator:update:ConfigMap/orders-ledger:5",
		"two of three":                               "evicted@operator:patch:ConfigMap/orders-seeds:1",
		"while the ring forms":                       "pod-deleted@agent:patch/status:CassandraNode/orders-dc1-r3-0:9",
	} {
		t.Run(name, func(t *testing.T) { survives(t, "ephemeral/4/"+at) })
	}
}

// survives a fault, which there must be.
func survives(t *testing.T, name string) {
	t.Helper()
	kinds := kindsOf(t)
	trial, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	undisturbed := Undisturbed(trial.Scenario, trial.Seed).Run(kinds, nil)
	if result := trial.Run(kinds, &undisturbed.End); !result.Fired || len(result.Violations) > 0 {
		t.Errorf("%s: injected %v; %s", trial, result.Fired, result.Violations)
	}
}

// An edit has a roll-out replace a node whose pod has its data, also one whose JVM is killed, or
// whose pod is deleted, just then.
func TestAnEditReplacesANodeOnEphemeralStorage(t *testing.T) {
	for _, at := range []string{"patch:PodDisruptionBudget/orders-dc1:1", "update:ConfigMap/orders-ledger:9"} {
		survives(t, "ephemeral/2/edit-image@operator:"+at)
	}
}

// A node that asks for passwords which its clients do not have stays closed to them, also when it
// is replaced.
func TestTheFirstNodeThatAsksForPasswordsIsReplaced(t *testing.T) {
	survives(t, "passwords-living-ring/1/disk-lost@operator:patch/status:CassandraCluster/orders:161")
}

func BenchmarkFormation(b *testing.B) {
	kinds := kindsOf(b)
	s, err := Find("create-3")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if result := (Trial{Scenario: s, Seed: 1}).Run(kinds, nil); len(result.Violations) > 0 {
			b.Fatal(result.Violations)
		}
	}
}
