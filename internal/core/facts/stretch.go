package facts

import (
	"slices"
	"time"
)

// Stretch is a time in which a node was NORMAL. Until is zero while that is not over as far as is
// known.
type Stretch struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero"`
}

// keptStretches bounds what is remembered of them.
const keptStretches = 8

// BeginStretch adds one to those before it. Where they are too many, the two with the shortest time
// between them become one: what is remembered is never less than what was.
func BeginStretch(all []Stretch, from time.Time) []Stretch {
	out := append(slices.Clone(all), Stretch{From: from})
	for len(out) > keptStretches {
		at := 0
		for i := range len(out) - 1 {
			if gap(out, i) < gap(out, at) {
				at = i
			}
		}
		out[at].Until = out[at+1].Until
		out = slices.Delete(out, at+1, at+2)
	}
	return out
}

// gap is the time between a stretch and the next.
func gap(all []Stretch, i int) time.Duration {
	if all[i].Until.IsZero() {
		return 0
	}
	return all[i+1].From.Sub(all[i].Until)
}

// EndStretch ends the last one.
func EndStretch(all []Stretch, until time.Time) []Stretch {
	out := slices.Clone(all)
	if n := len(out); n > 0 && out[n-1].Until.IsZero() {
		out[n-1].Until = until
	}
	return out
}

// NormalBetween is for how long a node was NORMAL between two times.
func NormalBetween(all []Stretch, from, until time.Time) time.Duration {
	var sum time.Duration
	for _, s := range all {
		if s.Until.IsZero() || s.Until.After(until) {
			s.Until = until
		}
		if s.From.Before(from) {
			s.From = from
		}
		sum += max(s.Until.Sub(s.From), 0)
	}
	return sum
}
