package guard

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// Guard is one predicate over something that is about to be done.
type Guard[T any] struct {
	// Reason names the problem that the guard looks for.
	Reason v1alpha1.Reason
	// Until is what a step waits for that the guard holds back: "waits until …".
	Until string
	// Check returns what is wrong; nothing if there is no such problem.
	Check func(about T) []Finding
}

// Nodes are some of those in a snapshot, by their names.
type Nodes struct {
	*facts.Snapshot
	Names []string
}

// Finding is one thing that is wrong.
type Finding struct {
	Nodes []string
	// Left is how much of it there is, where a step waits for it to become less.
	Left int
	// Message says what is wrong, and what would help.
	Message string
	// Stalled is set where only the user can resolve it: one of the reasons of ConditionStalled.
	Stalled string
}

// Refusal is a finding with the reason of its guard, and what that waits for.
type Refusal struct {
	Reason v1alpha1.Reason
	Until  string
	Finding
}

// Check asks all guards about the same and returns everything that is wrong, in the order of the
// guards.
func Check[T any](about T, guards ...Guard[T]) []Refusal {
	var out []Refusal
	for _, g := range guards {
		for _, f := range g.Check(about) {
			out = append(out, Refusal{Reason: g.Reason, Until: g.Until, Finding: f})
		}
	}
	return out
}
