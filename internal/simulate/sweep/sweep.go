package sweep

import (
	"fmt"
	"hash/fnv"
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
	// Part of Parts, from 0: the points that belong to one share of the whole, spread evenly over everything. Parts 0 or 1 is the whole.
	Part, Parts int
	// Quotas bound the points of a class, so that what a class has most of does not take all the time. Every fault is tried with every verb on every kind
	// of object before any combination comes a second time; what is chosen beyond that is spread over the scenarios, to each as many events, and depends on the seed. A class
	// without one is run whole.
	Quotas map[trial.Class]int
	// Limit ends the sweep early; 0 for none. What was not tried is counted.
	Limit time.Duration
	// Workers run trials at the same time; 0 for one for each processor.
	Workers int
	// Progress is told of every trial, one at a time.
	Progress func(Report)
}

// Report of a sweep.
type Report struct {
	// Planned points, and those that were run.
	Planned, Run int
	// Rows by scenario and class.
	Rows map[Row]*Count
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

// Count of points.
type Count struct {
	// Run points; Struck are those whose fault fired, which alone count.
	Run, Struck, Failed int
}

// Failure is a trial that broke something.
type Failure struct {
	Trial      string
	Violations []string
}

type job struct {
	trial    trial.Trial
	class    trial.Class
	expected *trial.End
	// events of the run without a fault.
	events uint64
}

// Run runs a sweep.
func Run(o Options) Report {
	s := &sweeper{Options: o, report: Report{Rows: map[Row]*Count{}, Began: time.Now()}}
	jobs := s.plan()
	s.report.Planned = len(jobs)
	s.work(jobs)
	slices.SortFunc(s.report.Failures, func(a, b Failure) int {
		if a.Trial < b.Trial {
			return -1
		}
		return 1
	})
	return s.report
}

type sweeper struct {
	Options
	mu     sync.Mutex
	report Report
}

// plan runs every scenario without a fault, and lists what can strike where.
func (s *sweeper) plan() []job {
	var jobs []job
	for _, scenario := range s.Scenarios {
		t := trial.Trial{Scenario: scenario, Seed: s.Seed, Quiet: time.Hour}
		result := t.Run(s.Kinds, nil)
		s.count(job{trial: t, class: "none"}, result)
		if len(result.Violations) > 0 {
			continue // its end is no measure for others
		}
		end := result.End
		for _, f := range Points(result) {
			class := trial.ClassOf(f)
			if len(s.Faults) > 0 && !slices.Contains(s.Faults, f.Kind) {
				continue
			}
			t := trial.Trial{Scenario: scenario, Seed: s.Seed, Fault: &f}
			if s.Parts > 1 && int(share(t.String())%uint64(s.Parts)) != s.Part { //nolint:gosec // smaller than Parts
				continue
			}
			jobs = append(jobs, job{trial: t, class: class, expected: &end, events: result.Events})
		}
	}
	return s.sample(jobs)
}

func share(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// Points are all faults that can strike in a run like one that was seen.
func Points(seen trial.Result) []trial.Fault {
	var out []trial.Fault
	had := map[trial.Moment]bool{}
	for _, list := range [][]trial.Moment{seen.Requests, seen.Moments} {
		for _, m := range list {
			if !had[m] {
				had[m] = true
				out = append(out, seen.FaultsAt(m)...)
			}
		}
	}
	return out
}

func (s *sweeper) work(jobs []job) {
	workers := s.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	queue := make(chan job)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for j := range queue {
				s.count(j, j.trial.Run(s.Kinds, j.expected))
			}
		})
	}
	for _, j := range jobs {
		if s.Limit > 0 && time.Since(s.report.Began) > s.Limit {
			break
		}
		queue <- j
	}
	close(queue)
	group.Wait()
}

func (s *sweeper) count(j job, result trial.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.trial.Fault != nil {
		s.report.Run++
	}
	s.report.Virtual += result.Took
	row := Row{j.trial.Scenario.Name, j.class}
	c := s.report.Rows[row]
	if c == nil {
		c = &Count{}
		s.report.Rows[row] = c
	}
	c.Run++
	if result.Fired {
		c.Struck++
	}
	if len(result.Violations) > 0 {
		c.Failed++
		s.report.Failures = append(s.report.Failures, Failure{j.trial.String(), result.Violations})
	}
	if s.Progress != nil {
		s.Progress(s.report)
	}
}

// Rate is how many trials ran in a second so far.
func (r Report) Rate() string {
	return fmt.Sprintf("%.1f/s", float64(r.Run)/time.Since(r.Began).Seconds())
}
