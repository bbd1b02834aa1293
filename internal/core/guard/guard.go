package guard

import (
	"helenus.io/helenus/internal/core/facts"
)

// Guard is one predicate over something that is about to be done.
type Guard[T any] struct {
	// Name is a sentence that is true when the guard passes.
	Name string
	// Check returns what is wrong; nothing if the sentence is true.
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
	// Message says what is wrong, and what would help.
	Message string
	// Reason is set where only the user can put it right: one of the Stalled reasons of the API.
	Reason string
}

// Refusal is a guard's finding with its name.
type Refusal struct {
	Guard string
	Finding
}

// Check asks all guards about the same and returns everything that is wrong, in the order of the guards.
func Check[T any](about T, guards ...Guard[T]) []Refusal {
	var out []Refusal
	for _, g := range guards {
		for _, f := range g.Check(about) {
			out = append(out, Refusal{Guard: g.Name, Finding: f})
		}
	}
	return out
}
