package safeguard

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

const clusterName = trial.ClusterName

var compiled = sync.OnceValues(func() (*apiserver.Kinds, error) { return trial.CompileKinds("../../../config/crd") })

func kindsOf(t testing.TB) *apiserver.Kinds {
	t.Helper()
	kinds, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// underRace says that the race detector watches, which costs a trial ten times its time. A world is
// one thread: of trials that differ in their point alone, one is enough then.
var underRace = false

// ends of scenarios of the catalogue without fault and wrap.
var ends = map[string]*trial.End{}

// run runs a trial, and one with a fault holds its end against that of the scenario without.
func run(t *testing.T, tr trial.Trial) trial.Result {
	t.Helper()
	undisturbed := trial.Trial{Scenario: tr.Scenario, Seed: tr.Seed}
	if tr.Fault != nil && ends[undisturbed.String()] == nil {
		result := undisturbed.Run(kindsOf(t), nil)
		for _, v := range result.Violations {
			t.Fatalf("%s: %s", undisturbed, v)
		}
		ends[undisturbed.String()] = &result.End
	}
	tell := os.Getenv("TELL") != ""
	tr.Tell = tr.Tell || tell
	var end *trial.End
	if tr.Fault != nil {
		end = ends[undisturbed.String()]
	}
	result := tr.Run(kindsOf(t), end)
	if tell {
		for _, line := range result.Trace {
			t.Log(line)
		}
	}
	return result
}

// holds runs a trial with all safeguards in place, or with one of two that double each other.
func holds(t *testing.T, tr trial.Trial) trial.Result {
	t.Helper()
	result := run(t, tr)
	for _, v := range result.Violations {
		t.Errorf("%s with its safeguards: %s", tr, v)
	}
	return result
}

// refuses wants a line of a scenario to say in these words that something was refused.
func refuses(t *testing.T, result trial.Result, words string) {
	t.Helper()
	for _, line := range result.Trace {
		if strings.Contains(line, words) {
			return
		}
	}
	t.Errorf("nothing was refused in the words %q", words)
}

// caught runs a trial without a safeguard, and wants a checker to say so in these words.
func caught(t *testing.T, tr trial.Trial, by string) trial.Result {
	t.Helper()
	result := run(t, tr)
	for _, v := range result.Violations {
		if strings.Contains(v, by) {
			t.Log(v)
			return result
		}
	}
	t.Errorf("%s without its safeguard is not caught by %q: %q", tr, by, result.Violations)
	return result
}

// saysAll says that violations speak of everything that is wanted.
func saysAll(violations []string, wanted ...string) bool {
	for _, words := range wanted {
		if !slices.ContainsFunc(violations, func(v string) bool { return strings.Contains(v, words) }) {
			return false
		}
	}
	return true
}

// stripping are clients without some preconditions, which count what is refused all the same.
func stripping(strip func(client.Object) identity, refused refusals) world.Wrap {
	return world.Wrap{Client: func(o *world.Operator, c client.Client) client.Client {
		return preconditions{c, o.Name(), strip, refused}
	}}
}
