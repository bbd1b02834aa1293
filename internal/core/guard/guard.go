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

// Named are findings of a predicate that needs more than a snapshot, as refusals of a guard of that name.
func Named(name string, findings []Finding) []Refusal {
	out := make([]Refusal, 0, len(findings))
	for _, f := range findings {
		out = append(out, Refusal{Guard: name, Finding: f})
	}
	return out
}

// Check asks all guards about the nodes and returns everything that is wrong, in the order of the guards.
func Check(s *facts.Snapshot, nodes []string, guards ...Guard) []Refusal {
	var out []Refusal
	for _, g := range guards {
		out = append(out, Named(g.Name, g.Check(s, nodes))...)
	}
	return out
}
