package guard

import (
	"helenus.io/helenus/internal/core/facts"
)

// Guard is one predicate over what is known.
type Guard struct {
	// Name is a sentence that is true when the guard passes.
	Name string
	// Check returns what is wrong with the given nodes; nothing if the sentence is true.
	Check func(s *facts.Snapshot, nodes []string) []Finding
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

// Check asks all guards about the nodes and returns everything that is wrong, in the order of the guards.
func Check(s *facts.Snapshot, nodes []string, guards ...Guard) []Refusal {
	var out []Refusal
	for _, g := range guards {
		for _, f := range g.Check(s, nodes) {
			out = append(out, Refusal{Guard: g.Name, Finding: f})
		}
	}
	return out
}
