package sweep

import (
	"cmp"
	"slices"
	"strings"

	"helenus.io/helenus/internal/simulate/trial"
)

// sample takes as many jobs of each class as its quota allows, and leaves them in their order: jobs
// of one scenario follow each other.
func (s *sweeper) sample(jobs []job) []job {
	if len(s.Quotas) == 0 {
		return jobs
	}
	byClass := map[trial.Class][]int{}
	for i, j := range jobs {
		byClass[j.class] = append(byClass[j.class], i)
	}
	var chosen []int
	for class, all := range byClass {
		quota, bounded := s.Quotas[class]
		if !bounded {
			quota = len(all)
		}
		chosen = append(chosen, choose(jobs, all, quota)...)
	}
	slices.Sort(chosen)
	out := make([]job, len(chosen))
	for i, at := range chosen {
		out[i] = jobs[at]
	}
	return out
}

// choose takes some of the jobs: first each combination once, then of each scenario as much as of
// the others, by the events of their runs without a fault. A long scenario does not take the time
// of the others, and tells of each of its points in fewer of them.
func choose(jobs []job, all []int, quota int) []int {
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(jobs[a].hash, jobs[b].hash) })
	had := map[Combination]bool{}
	spent := map[string]uint64{}
	turn := make(map[int]uint64, len(all)) // 0 for the first of a combination
	for _, at := range all {
		if c := combinationOf(jobs[at].trial.Fault); !had[c] {
			had[c] = true
			continue
		}
		scenario := jobs[at].trial.Scenario.Name
		spent[scenario] += jobs[at].events
		turn[at] = spent[scenario]
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(turn[a], turn[b]) })
	return all[:min(quota, len(all))]
}

// Combination of a fault, and of what is done at its point by whom, and to what kind of thing.
type Combination struct {
	fault, view, point string
}

func combinationOf(f *trial.Fault) Combination {
	kind, _, _ := strings.Cut(f.At.What, "/")
	if f.At.Who == trial.WhoDisk { // the node is before the stroke, and what is done to which file behind it
		_, kind, _ = strings.Cut(f.At.What, "/")
	}
	return Combination{f.Kind, f.View, f.At.Who + " " + f.At.Does + " " + kind}
}
