package trial

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Parse reads the name of a trial: <scenario>/<seed>, and /<fault> where there is one.
func Parse(name string) (Trial, error) {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 2 {
		return Trial{}, fmt.Errorf("trial %q: want <scenario>/<seed>/<fault>", name)
	}
	s, err := Find(parts[0])
	if err != nil {
		return Trial{}, fmt.Errorf("trial %q: %w", name, err)
	}
	seed, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return Trial{}, fmt.Errorf("trial %q: seed %q is not a number", name, parts[1])
	}
	t := Trial{Scenario: s, Seed: seed}
	if len(parts) == 3 {
		f, err := ParseFault(parts[2])
		if err != nil {
			return Trial{}, fmt.Errorf("trial %q: %w", name, err)
		}
		t.Fault = &f
	}
	return t, nil
}

// FaultsAt are all faults that can be injected at a point of a run that was seen, and that make a
// difference there as far as that run tells.
func (seen *Result) FaultsAt(m Point) []Fault {
	var out []Fault
	for _, name := range Kinds() {
		switch k := kinds[name]; {
		case !k.fits(m):
		case k.view == 0:
			out = append(out, Fault{Kind: name, At: m})
		default:
			for _, view := range slices.Sorted(maps.Keys(seen.Changes)) {
				if seen.changesAfter(view, m) >= k.view {
					out = append(out, Fault{Kind: name, View: view, At: m})
				}
			}
		}
	}
	return out
}

// changesAfter counts the changes of a kind in the time that a view stays behind.
func (seen *Result) changesAfter(view string, m Point) int {
	at := seen.At[m]
	n := 0
	for _, change := range seen.Changes[view] {
		if change.After(at) && change.Sub(at) < staleFor {
			n++
		}
	}
	return n
}

// ClassOf a fault.
func ClassOf(f Fault) Class {
	if class := kinds[f.Kind].class; class != ClassError || f.At.writes() {
		return class
	}
	return ClassRead
}

// About says in words what a kind of fault does.
func About(kind string) string { return kinds[kind].about }
