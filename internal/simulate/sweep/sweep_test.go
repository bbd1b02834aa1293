package sweep

import (
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// smallest is the scenario that is swept here.
func smallest(t *testing.T) (*apiserver.Kinds, *trial.Scenario) {
	t.Helper()
	kinds, err := trial.CompileKinds("../../../config/crd")
	if err != nil {
		t.Fatal(err)
	}
	one, err := trial.Find("create-1")
	if err != nil {
		t.Fatal(err)
	}
	return kinds, one
}

// A sweep of two workers, which share what was worked out for their worlds, tries every fault with
// every verb on every kind of object before any comes twice.
func TestASampleHasEveryCombinationFirst(t *testing.T) {
	kinds, one := smallest(t)
	whole := &sweeper{Options: Options{Kinds: kinds, Scenarios: []*trial.Scenario{one}, Seed: 1,
		Faults: []string{"conflict", "kill-after", "stale-1"}}, report: newReport()}
	all := map[trial.Class]map[Combination]bool{}
	for _, j := range whole.plan() {
		if all[j.class] == nil {
			all[j.class] = map[Combination]bool{}
		}
		all[j.class][combinationOf(j.trial.Fault)] = true
	}
	quotas := map[trial.Class]int{trial.ClassCrash: len(all[trial.ClassCrash]), trial.ClassError: 7,
		trial.ClassStale: 5}
	chosen := map[Combination]int{}
	sampled := &sweeper{Options: whole.Options, report: newReport()}
	sampled.Quotas = quotas
	for _, j := range sampled.plan() {
		chosen[combinationOf(j.trial.Fault)]++
	}
	for c, n := range chosen {
		if n > 1 {
			t.Errorf("%v comes %d times", c, n)
		}
	}
	for c := range all[trial.ClassCrash] {
		if chosen[c] == 0 {
			t.Errorf("%v is not tried", c)
		}
	}
	report := Run(Options{Kinds: kinds, Scenarios: []*trial.Scenario{one}, Seed: 1, Workers: 2,
		Quotas: map[trial.Class]int{
			trial.ClassCrash: 8, trial.ClassError: 8, trial.ClassRead: 8, trial.ClassAgent: 8, trial.ClassStale: 8,
			trial.ClassWorld: 8, trial.ClassUser: 8,
		}})
	if report.Run != 56 || report.Planned != 56 || report.Again != 1 {
		t.Errorf("%d of %d points run, want 56, and %d twice, want 1", report.Run, report.Planned, report.Again)
	}
	for _, f := range report.Failures {
		t.Errorf("%s: %v", f.Trial, f.Violations)
	}
}

// A trial that does not run the same when it is run again has failed.
func TestATrialThatRunsOtherwiseFails(t *testing.T) {
	kinds, one := smallest(t)
	runs, dice := 0, *one
	dice.Acts = append(slices.Clone(one.Acts), trial.Act{Name: "wait", Do: func(w *world.World) error {
		runs++
		w.Line.RunFor(time.Duration(runs) * time.Second)
		return nil
	}})
	report := Run(Options{Kinds: kinds, Scenarios: []*trial.Scenario{&dice}, Seed: 1, Workers: 1,
		Faults: []string{"conflict"}, Quotas: map[trial.Class]int{trial.ClassError: 1}})
	if len(report.Failures) != 1 || !slices.Contains(report.Failures[0].Violations, unlikeItself) {
		t.Errorf("%+v of %d points, want one that %s", report.Failures, report.Run, unlikeItself)
	}
}

// Each point belongs to one share, whichever way the shares are cut, and these have several seeds.
func TestSharesAreTheWhole(t *testing.T) {
	kinds, one := smallest(t)
	share := func(seed uint64, part, parts int) (uint64, map[string]bool) {
		s := &sweeper{Options: Options{Kinds: kinds, Scenarios: []*trial.Scenario{one}, Seed: seed,
			Faults: []string{"conflict", "kill-after"}, Part: part, Parts: parts}, report: newReport()}
		of, out := s.seedOf(one), map[string]bool{}
		for _, j := range s.plan() {
			if j.trial.Seed != of || j.hash != j.trial.Hash() {
				t.Errorf("%s is in a share of seed %d", j.trial, of)
			}
			out[j.trial.Fault.String()] = true
		}
		return of, out
	}
	seen, with, of := map[string]int{}, map[uint64]bool{}, map[string]int{}
	const parts = 3
	for part := range parts {
		seed, points := share(1, part, parts)
		_, whole := share(seed, 0, 1)
		with[seed] = true
		for name := range whole {
			of[name]++
		}
		for name := range points {
			if !whole[name] || seen[name] > 0 {
				t.Errorf("%s is in share %d: of the whole %v, of shares before %d", name, part, whole[name], seen[name])
			}
			seen[name]++
		}
	}
	if len(with) != seeds || !with[1] || !with[2] || !with[3] || len(seen) == 0 {
		t.Errorf("the shares have the seeds %v, and %d points", with, len(seen))
	}
	for name, n := range of {
		if n == parts && seen[name] != 1 {
			t.Errorf("%s is a point with each seed, and in %d shares", name, seen[name])
		}
	}
}

// A scenario with many points, or long runs, does not take the time of the others.
func TestASampleIsSpreadOverTheScenarios(t *testing.T) {
	var jobs []job
	var all []int
	events := map[string]uint64{"large": 1000, "small": 1000, "long": 4000}
	for name, points := range map[string]int{"large": 300, "small": 60, "long": 300} {
		for i := range points {
			fault := &trial.Fault{Kind: "kill-after",
				At: trial.Point{Who: trial.WhoDisk, Does: "create", What: "Pod/p", Nth: i}}
			all = append(all, len(jobs))
			jobs = append(jobs, job{trial: trial.Trial{Scenario: &trial.Scenario{Name: name}, Seed: 1, Fault: fault},
				events: events[name], hash: uint64(i)}) //nolint:gosec // small
		}
	}
	chosen := map[string]int{}
	const quota = 91 // the first of the one combination that there is, and 40, 40 and 10
	for _, at := range choose(jobs, all, quota) {
		chosen[jobs[at].trial.Scenario.Name]++
	}
	if chosen["large"] < 40 || chosen["small"] < 40 || chosen["long"] < 10 {
		t.Errorf("chosen %v, want of the long one a quarter of each other's", chosen)
	}
}
