package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/trial"
)

// Options of a sweep.
type Options struct {
	Kinds     *apiserver.Kinds
	Scenarios []*trial.Scenario
	// Faults are the kinds that are tried; empty for all.
	Faults []string
	Seed   uint64
	// Part of Parts, from 0: the points that belong to one share of the whole, spread evenly over
	// everything. Each share has a scenario with one of three seeds, from Seed on. Parts 0 or 1 is
	// the whole, with Seed.
	Part, Parts int
	// Quotas bound the points of a class, so that what a class has most of does not take all the
	// time. Every fault is tried with every verb on every kind of object before any combination
	// comes a second time; what is chosen beyond that is spread over the scenarios, to each as many
	// events, and depends on the seed. A class without one is run whole.
	Quotas map[trial.Class]int
	// Workers run trials at the same time; 0 for one for each processor.
	Workers int
	// Progress is told of every trial, one at a time.
	Progress func(Report)
}

// Report of a sweep.
type Report struct {
	// Planned points, those that were run, and those of them that were run again and had to be the
	// same.
	Planned, Run, Again int
	// Alone are scenarios beside which no fault is injected, whose own run is all there is of them.
	Alone int
	// Injected counts the points whose fault fired, which alone count, by scenario and class.
	Injected map[Row]int
	// Tried are the combinations of a class, and whether a point of each has injected.
	Tried map[trial.Class]map[Combination]bool
	// Failures are trials with violations.
	Failures []Failure
	Began    time.Time
	// Virtual is the time that passed in all worlds together.
	Virtual time.Duration
}

// Row of the table.
type Row struct {
	Scenario string
	Class    trial.Class
}

// Failure is a trial that broke something.
type Failure struct {
	Trial      trial.Trial
	Violations []string
}

type job struct {
	trial    trial.Trial
	class    trial.Class
	expected *trial.End
	// events of the run without a fault.
	events uint64
	// hash of the trial's name.
	hash uint64
}

// Run runs a sweep.
func Run(o Options) Report {
	s := &sweeper{Options: o, report: newReport()}
	jobs := s.plan()
	s.report.Planned, s.report.Again = len(jobs), (len(jobs)+twice-1)/twice
	s.parallel(len(jobs), func(i int) {
		result := jobs[i].trial.Run(s.Kinds, jobs[i].expected)
		if i%twice == 0 && !reflect.DeepEqual(result, jobs[i].trial.Run(s.Kinds, jobs[i].expected)) {
			result.Violations = append(result.Violations, unlikeItself)
		}
		s.count(jobs[i], result)
	})
	slices.SortFunc(s.report.Failures, func(a, b Failure) int {
		return cmp.Compare(a.Trial.String(), b.Trial.String())
	})
	return s.report
}

func newReport() Report {
	return Report{Injected: map[Row]int{}, Tried: map[trial.Class]map[Combination]bool{}, Began: time.Now()}
}

// twice is of how many trials one is run twice, and unlikeItself what is wrong with one that is
// another then.
const (
	twice        = 100
	unlikeItself = "is another run when it is run again"
)

// seeds is with how many the shares of a sweep are run.
const seeds = 3

type sweeper struct {
	Options
	mu     sync.Mutex
	report Report
}

// plan runs every scenario without a fault, and lists what can be injected where.
func (s *sweeper) plan() []job {
	undisturbed := make([]trial.Result, len(s.Scenarios))
	s.parallel(len(s.Scenarios), func(i int) {
		t := trial.Undisturbed(s.Scenarios[i], s.seedOf(s.Scenarios[i]))
		undisturbed[i] = t.Run(s.Kinds, nil)
		s.count(job{trial: t}, undisturbed[i])
	})
	var jobs []job
	for i, scenario := range s.Scenarios {
		result := undisturbed[i]
		if scenario.Alone {
			s.report.Alone++
		}
		if len(result.Violations) > 0 || scenario.Alone {
			continue // its end is no measure for others
		}
		end := result.End
		for _, f := range Points(result) {
			class := trial.ClassOf(f)
			if len(s.Faults) > 0 && !slices.Contains(s.Faults, f.Kind) {
				continue
			}
			t := trial.Trial{Scenario: scenario, Fault: &f}
			if s.Parts > 1 && t.Hash()%uint64(s.Parts) != uint64(s.Part) { //nolint:gosec // from 0 to Parts
				continue // a point is in the same share with each seed
			}
			t.Seed = s.seedOf(scenario)
			jobs = append(jobs, job{trial: t, class: class, expected: &end, events: result.Events, hash: t.Hash()})
		}
	}
	return s.sample(jobs)
}

// seedOf a scenario: that of all its points, since these are held against its run without a fault.
func (s *sweeper) seedOf(scenario *trial.Scenario) uint64 {
	if s.Parts <= 1 {
		return s.Seed
	}
	return s.Seed + (trial.Trial{Scenario: scenario}.Hash()+uint64(s.Part))%seeds //nolint:gosec // from 0
}

// Of counts the points of a class that have injected.
func (r Report) Of(class trial.Class) int {
	n := 0
	for row, injected := range r.Injected {
		if row.Class == class {
			n += injected
		}
	}
	return n
}

// Spared are the points, each a program's verb on a kind of thing, at which no fault of a class has
// injected, sorted.
func (r Report) Spared(class trial.Class) []string {
	injected := map[string]bool{}
	for c, yes := range r.Tried[class] {
		injected[c.point] = injected[c.point] || yes
	}
	maps.DeleteFunc(injected, func(_ string, yes bool) bool { return yes })
	return slices.Sorted(maps.Keys(injected))
}

// Again runs a trial as a sweep does, after the run that it is held against.
func Again(kinds *apiserver.Kinds, t trial.Trial) trial.Result {
	if t.Fault == nil {
		t.Quiet = trial.Undisturbed(t.Scenario, t.Seed).Quiet
		return t.Run(kinds, nil)
	}
	undisturbed := trial.Undisturbed(t.Scenario, t.Seed).Run(kinds, nil)
	return t.Run(kinds, &undisturbed.End)
}

// Points are all faults that can be injected in a run like one that was seen.
func Points(seen trial.Result) []trial.Fault {
	var out []trial.Fault
	had := map[trial.Point]bool{}
	for _, list := range [][]trial.Point{seen.Requests, seen.Points} {
		for _, m := range list {
			if !had[m] {
				had[m] = true
				out = append(out, seen.FaultsAt(m)...)
			}
		}
	}
	return out
}

// parallel does something n times, as many at a time as there are workers.
func (s *sweeper) parallel(n int, do func(i int)) {
	workers := s.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	queue := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range queue {
				do(i)
			}
		})
	}
	for i := range n {
		queue <- i
	}
	close(queue)
	group.Wait()
}

func (s *sweeper) count(j job, result trial.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Virtual += result.Took
	if f := j.trial.Fault; f != nil {
		s.report.Run++
		if s.report.Tried[j.class] == nil {
			s.report.Tried[j.class] = map[Combination]bool{}
		}
		tried, c := s.report.Tried[j.class], combinationOf(f)
		tried[c] = tried[c] || result.Fired
	}
	if result.Fired {
		s.report.Injected[Row{j.trial.Scenario.Name, j.class}]++
	}
	if len(result.Violations) > 0 {
		s.report.Failures = append(s.report.Failures, Failure{j.trial, result.Violations})
	}
	if s.Progress != nil {
		s.Progress(s.report)
	}
}

// Rate is how many trials ran in a second so far.
func (r Report) Rate() string {
	return fmt.Sprintf("%.1f/s", float64(r.Run)/time.Since(r.Began).Seconds())
}
