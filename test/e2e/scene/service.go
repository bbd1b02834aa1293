package scene

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// request is what became of one request of a client.
type request struct {
	partition int
	at        time.Time
	took      time.Duration
	err       error
}

// Service is how a ring served a client.
type Service struct {
	// Window from the first request to the last.
	Window time.Duration
	// Requests that were made, and those that were served.
	Requests, Served int
	// Written rows that were acknowledged.
	Written int
	// Gap is the longest time that a partition was not served, from the start of one request that
	// was served to the start of the next that was, with others between them that were not. A
	// partition that was not served at the end has its gap until the end.
	Gap time.Duration
	// Median and Percentile99 of how long a request took that was served.
	Median, Percentile99 time.Duration
	// Refusals by their words, for those that were not served.
	Refusals map[string]int
	// Registers that were set beside the rows.
	Registers Registers
}

// Share of the requests that were served, from 0 to 1.
func (s Service) Share() float64 { return float64(s.Served) / float64(max(s.Requests, 1)) }

func (s Service) String() string {
	text := fmt.Sprintf("%d of %d requests served (%.3f %%) in %.0fs, longest gap of a partition %.1fs, median "+
		"%.1fms, 99th percentile %.0fms, %d rows written",
		s.Served, s.Requests, 100*s.Share(), s.Window.Seconds(), s.Gap.Seconds(), milliseconds(s.Median),
		milliseconds(s.Percentile99), s.Written)
	if s.Registers.Operations > 0 {
		text += "; " + s.Registers.String()
	}
	for _, words := range slices.Sorted(maps.Keys(s.Refusals)) {
		text += fmt.Sprintf("; %d × %s", s.Refusals[words], words)
	}
	return text
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// serviceOf sums up requests, in whatever order they came back.
func serviceOf(requests []request) Service {
	requests = slices.SortedFunc(slices.Values(requests), func(a, b request) int { return a.at.Compare(b.at) })
	s := Service{Requests: len(requests), Refusals: map[string]int{}}
	if len(requests) == 0 {
		return s
	}
	first, last := requests[0].at, requests[len(requests)-1].at
	s.Window = last.Sub(first)
	var took []time.Duration
	served, refused := map[int]time.Time{}, map[int]bool{}
	gap := func(partition int, until time.Time) {
		since, before := served[partition]
		if !before {
			since = first
		}
		if refused[partition] {
			s.Gap = max(s.Gap, until.Sub(since))
		}
	}
	for _, r := range requests {
		if r.err != nil {
			refused[r.partition] = true
			s.Refusals[r.err.Error()]++
			continue
		}
		gap(r.partition, r.at)
		served[r.partition], refused[r.partition] = r.at, false
		took = append(took, r.took)
	}
	for partition := range refused {
		gap(partition, last)
	}
	s.Served = len(took)
	if len(took) > 0 {
		slices.Sort(took)
		s.Median, s.Percentile99 = took[len(took)/2], took[min(len(took)*99/100, len(took)-1)]
	}
	return s
}
