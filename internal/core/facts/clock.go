package facts

import (
	"slices"
	"time"
)

// Clock is what the clock of a node's host showed when its agent was asked and when it answered.
type Clock struct {
	Asked    time.Time `json:"asked"`
	Answered time.Time `json:"answered"`

	// Ahead is how far it is ahead of the operator's clock, give or take Doubt.
	Ahead time.Duration `json:"-"`
	Doubt time.Duration `json:"-"`
}

// Compare works out how far it is ahead of the clock by which the question was sent and the answer
// came: the agent was asked after the one and answered before the other.
func (c *Clock) Compare(sent, came time.Time) {
	least, most := c.Answered.Sub(came), c.Asked.Sub(sent)
	c.Ahead, c.Doubt = least+(most-least)/2, (most-least).Abs()/2
}

const (
	// clocksDiffer is from which difference on clocks are said to differ, beyond doubt, and
	// clocksAgree below which they are no longer, so that the word does not come and go.
	clocksDiffer = 500 * time.Millisecond
	clocksAgree  = 250 * time.Millisecond
)

// ClocksOff are the nodes whose clocks differ from those of most other nodes, sorted. Said are
// those of which that was said before; it holds of one whose clock is not known now.
func ClocksOff(clocks map[string]*Clock, said []string) []string {
	var least, most time.Duration
	first := true
	for _, c := range clocks {
		if first || c.Ahead-c.Doubt > most {
			most = c.Ahead - c.Doubt
		}
		if first || c.Ahead+c.Doubt < least {
			least = c.Ahead + c.Doubt
		}
		first = false
	}
	if len(said) == 0 && most-least <= clocksDiffer {
		return nil // as nearly always: no two differ
	}
	var out []string
	for name, c := range clocks {
		before, differ := slices.Contains(said, name), 0
		for _, other := range clocks {
			apart := (c.Ahead - other.Ahead).Abs()
			if before && apart >= clocksAgree || apart-c.Doubt-other.Doubt > clocksDiffer {
				differ++
			}
		}
		if 2*differ > len(clocks)-1 {
			out = append(out, name)
		}
	}
	for _, name := range said {
		if clocks[name] == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
