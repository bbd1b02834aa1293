package sweep

import (
	"cmp"
	"slices"
	"strings"

	"helenus.io/helenus/internal/simulate/trial"
)

// sample takes as many jobs of each class as its quota allows, and leaves them in their order: jobs of one scenario follow each other.
func (s *sweeper) sample(jobs []job) []job {
	if len(s.Quotas) == 0 {
		return jobs
	}
	type candidate struct {
		at, rank int
		draw     uint64
	}
	byClass := map[trial.Class][]candidate{}
	for i, j := range jobs {
		byClass[j.class] = append(byClass[j.class], candidate{at: i, draw: share(j.trial.String())})
	}
	var chosen []int
	for class, all := range byClass {
		slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.draw, b.draw) })
		seen := map[string]int{}
		for i := range all {
			c := combination(jobs[all[i].at].trial.Fault)
			all[i].rank = seen[c]
			seen[c]++
		}
		slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.rank, b.rank) })
		if quota, bounded := s.Quotas[class]; bounded {
			all = all[:min(quota, len(all))]
		}
		for _, c := range all {
			chosen = append(chosen, c.at)
		}
	}
	slices.Sort(chosen)
	out := make([]job, len(chosen))
	for i, at := range chosen {
		out[i] = jobs[at]
	}
	return out
}

// combination of a fault, what is done at its moment, and to what kind of thing.
func combination(f *trial.Fault) string {
	kind, _, _ := strings.Cut(f.At.What, "/")
	if f.At.Who == trial.WhoDisk { // the node is before the stroke, and what is done to which file behind it
		_, kind, _ = strings.Cut(f.At.What, "/")
	}
	return strings.Join([]string{f.Kind, f.View, f.At.Who, f.At.Does, kind}, " ")
}
