package facts

import (
	"testing"
	"time"
)

func TestNormalBetween(t *testing.T) {
	at := func(hours int) time.Time { return time.Date(2026, 3, 1, hours, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		all  []Stretch
		want time.Duration
	}{
		"never":                    {nil, 0},
		"before":                   {[]Stretch{{at(1), at(3)}}, 0},
		"over the begin":           {[]Stretch{{at(1), at(5)}}, time.Hour},
		"twice":                    {[]Stretch{{at(5), at(6)}, {at(7), at(9)}}, 3 * time.Hour},
		"still":                    {[]Stretch{{From: at(8)}}, 2 * time.Hour},
		"by a clock that is ahead": {[]Stretch{{at(8), at(20)}}, 2 * time.Hour},
	} {
		if got := NormalBetween(c.all, at(4), at(10)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// However many JVMs there were, what is remembered is never less than what was, and the longest
// absences stay.
func TestStretchesAreBounded(t *testing.T) {
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var all []Stretch
	now, sum := begin, time.Duration(0)
	for i := range 40 {
		all = BeginStretch(all, now)
		all = EndStretch(all, now.Add(time.Minute))
		sum += time.Minute
		now = now.Add(2 * time.Minute)
		if i == 7 {
			now = now.Add(5 * time.Hour) // the ring was off
		}
	}
	if got := NormalBetween(all, begin, now); len(all) > keptStretches || got < sum || got > 3*time.Hour {
		t.Errorf("%d stretches, NORMAL for %s of %s: %v", len(all), got, sum, all)
	}
	all = BeginStretch(all, now)
	if got := NormalBetween(all, now, now.Add(time.Hour)); got != time.Hour {
		t.Errorf("one that goes on counts for %s of an hour", got)
	}
}
