package main

import (
	"fmt"
	"slices"
	"testing"

	"helenus.io/helenus/internal/simulate/trial"
)

func TestAnExcerptEndsWithTheFirstViolation(t *testing.T) {
	scenario := make([]string, 500)
	for i := range scenario {
		scenario[i] = fmt.Sprintf("%d.000s write something", i)
	}
	for name, c := range map[string]struct {
		violated            []int
		first, last, length int
	}{
		"none is told":    {nil, 400, 499, 500},
		"early":           {[]int{20}, 0, 29, 500},
		"amid":            {[]int{200, 480}, 110, 209, 500},
		"the last line":   {[]int{499}, 400, 499, 500},
		"a short one":     {[]int{3}, 0, 4, 5},
		"there is no one": {nil, 0, -1, 0},
	} {
		lines := slices.Clone(scenario[:c.length])
		for _, i := range c.violated {
			lines[i] = fmt.Sprintf("%d.000s %-12s I1: something", i, trial.Violation)
		}
		got, before, after := excerpt(lines)
		if want := lines[c.first : c.last+1]; !slices.Equal(got, want) || before != c.first ||
			after != c.length-1-c.last {
			t.Errorf("%s: %d lines, %d before and %d after, want lines %d to %d of %d", name, len(got), before, after,
				c.first, c.last, c.length)
		}
	}
}
