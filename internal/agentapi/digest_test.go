package agentapi

import (
	"testing"
	"time"

	"helenus.io/helenus/internal/core/facts"
)

// Hints come and go. An answer is another one when they begin or end to be delivered to anybody,
// and does not contradict an earlier one.
func TestDigestOfHints(t *testing.T) {
	answer := func(hints map[string]int, batches int) *facts.Agent {
		return &facts.Agent{Node: "a", Ring: &facts.Ring{Hints: hints, Unfinished: &facts.Unfinished{Batches: batches},
			Endpoints: []facts.Endpoint{{HostID: "up", Live: true}, {HostID: "down"}}}}
	}
	none := answer(map[string]int{}, 0)
	for name, c := range map[string]struct {
		answer *facts.Agent
		wakes  bool
	}{
		"for nobody":            {answer(map[string]int{}, 3), false},
		"unknown":               {answer(nil, 0), false},
		"for one that is down":  {answer(map[string]int{"down": 3}, 0), false},
		"for one that is up":    {answer(map[string]int{"up": 1, "down": 3}, 0), true},
		"for one that is gone":  {answer(map[string]int{"gone": 1}, 0), false},
		"of an agent of before": {&facts.Agent{Node: "a", Ring: &facts.Ring{Endpoints: none.Ring.Endpoints}}, false},
	} {
		if wakes := Digest(c.answer) != Digest(none); wakes != c.wakes || !Same(c.answer, none) {
			t.Errorf("%s: wakes %v, want %v; the same %v", name, wakes, c.wakes, Same(c.answer, none))
		}
	}
	if Digest(answer(map[string]int{"up": 1}, 0)) != Digest(answer(map[string]int{"up": 7}, 9)) {
		t.Error("the number of hints counts")
	}
	repairs := answer(map[string]int{}, 0)
	if repairs.Ring.Unfinished.IncrementalRepairs = 1; Digest(repairs) == Digest(none) || !Same(repairs, none) {
		t.Error("a repair does not wake, or contradicts")
	}
	filled, full := answer(map[string]int{}, 0), answer(map[string]int{}, 0)
	filled.Space, full.Space = &facts.Space{Free: 10, Capacity: 100}, &facts.Space{Free: 9, Capacity: 100}
	if Digest(filled) != Digest(none) || Digest(full) == Digest(none) || !Same(full, none) {
		t.Error("a full volume does not wake, or contradicts, or one that is not does")
	}
	used := answer(map[string]int{}, 0)
	used.Addresses, none.Addresses = []facts.AddressUse{{Address: "a", LastUsed: time.Unix(60, 0)}},
		[]facts.AddressUse{{Address: "a"}}
	if Digest(used) != Digest(none) {
		t.Error("an address that is used on wakes")
	}
	none.Addresses = nil
	other := answer(map[string]int{}, 0)
	if other.Ring.Pending = 1; Same(other, none) || Digest(other) == Digest(none) {
		t.Error("pending ranges do not count")
	}
	Digest(&facts.Agent{}) // without a JVM
}
