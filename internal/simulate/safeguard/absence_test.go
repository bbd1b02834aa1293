package safeguard

import (
	"context"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// hearing changes when a node was NORMAL in what an operator hears.
func hearing(change func([]facts.Stretch) []facts.Stretch) world.Wrap {
	return world.Wrap{Asker: func(_ *world.Operator, _ observe.Target, a observe.Asker) observe.Asker {
		return mishearing{a, change}
	}}
}

type mishearing struct {
	observe.Asker
	change func([]facts.Stretch) []facts.Stretch
}

func (m mishearing) changed(a *facts.Agent, err error) (*facts.Agent, error) {
	if err != nil {
		return a, err
	}
	out := *a
	out.Normal = m.change(a.Normal)
	return &out, nil
}

func (m mishearing) Facts(ctx context.Context) (*facts.Agent, error) {
	return m.changed(m.Asker.Facts(ctx))
}

func (m mishearing) WaitFacts(ctx context.Context, digest string, limit time.Duration) (*facts.Agent, error) {
	return m.changed(m.Asker.WaitFacts(ctx, digest, limit))
}

// A ring that was off as a whole starts by what its members say of themselves; without that it
// waits for ever.
func TestARingThatWasOffStartsByItself(t *testing.T) {
	s := found(t, "all-down-too-long")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	caught(t, trial.Trial{Scenario: s, Seed: 1,
		Wrap: hearing(func([]facts.Stretch) []facts.Stretch { return nil })}, "act return is not over")
}

// One node that was away while the others went on is started only if they hide that.
func TestANodeIsHeldByWhatTheOthersDidMeanwhile(t *testing.T) {
	s := longAway()
	refuses(t, holds(t, trial.Trial{Scenario: s, Seed: 1, Tell: true}), "DownLongerThanGCGrace")
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: hearing(func(all []facts.Stretch) []facts.Stretch {
		var out []facts.Stretch
		for _, n := range all {
			out = append(out, facts.Stretch{From: n.From, Until: n.From.Add(time.Minute)})
		}
		return out
	})}, "and the row is back")
}
