package ring

import (
	"fmt"
	"strings"
)

// Verdict says what taking nodes down would do. Only ranges of which one of
// those nodes holds a replica are judged: a range that others have broken
// already, and that these nodes do not hold, is no reason to leave them alone.
type Verdict struct {
	// Safe is true if every range that can be protected keeps the level.
	Safe bool
	// Broken are the ranges that could be protected and would be, or stay, below
	// the level. It is empty exactly if Safe.
	Broken Finding
	// Unprotected are ranges that no schedule protects and
	// that would lose a replica.
	Unprotected Finding

	taken int // nodes that were not down before
}

// Finding is a number of ranges and an example.
type Finding struct {
	Ranges int
	// Down is the largest number of replicas of one of these ranges that would be
	// down, those down before included.
	Down int
	// Worst is the range that would lack most answers; nil if there are no ranges.
	Worst *Risk
}

// Risk is one range and what would be left of it.
type Risk struct {
	Keyspaces   []string // to which this applies, sorted
	Datacenter  string   // whose replicas count; "" if all do
	Consistency Consistency
	Range       Range
	Replicas    []string // ids of all that count, sorted
	Down        []string // of them, those down before
	Taken       []string // of them, those to be taken down
	Required    int      // how many must answer
	// Pending nodes join the range and are down: a write needs one answer more for each.
	Pending int
}

// Left is how many of the replicas would be up.
func (r *Risk) Left() int { return len(r.Replicas) - len(r.Down) - len(r.Taken) }

// Served says that the level is met, for reads and for writes.
func (r *Risk) Served() bool { return r.Left() >= r.Required+r.Pending }

func (r *Risk) missing() int { return r.Required - r.Left() }

// String is a sentence such as: keyspace shop: LOCAL_QUORUM needs 2 of the 3
// replicas of range (5,9] in dc1, 1 would be up (a down already, b to be taken
// down). If nothing is to be taken down it says what is.
func (r *Risk) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s needs %d of the %d replicas", nameKeyspaces(r.Keyspaces), r.Consistency.CQL(),
		r.Required, len(r.Replicas))
	if len(r.Replicas) > 0 {
		text.WriteString(" of range " + r.Range.String())
	}
	if r.Datacenter != "" {
		text.WriteString(" in " + r.Datacenter)
	}
	if len(r.Taken) == 0 {
		fmt.Fprintf(&text, ", %d up", r.Left())
		if len(r.Down) > 0 {
			fmt.Fprintf(&text, " (%s down)", strings.Join(r.Down, ", "))
		}
		if r.Pending > 0 {
			fmt.Fprintf(&text, ", and writes need %d more for what joins and is down", r.Pending)
		}
		return text.String()
	}
	fmt.Fprintf(&text, ", %d would be up (", r.Left())
	if len(r.Down) > 0 {
		text.WriteString(strings.Join(r.Down, ", ") + " down already, ")
	}
	text.WriteString(strings.Join(r.Taken, ", ") + " to be taken down)")
	return text.String()
}

// String sums the verdict up in one line.
func (v Verdict) String() string {
	var parts []string
	if !v.Safe {
		parts = append(parts, fmt.Sprintf("%s would fail: %s", ranges(v.Broken.Ranges), v.Broken.Worst))
	}
	if v.Unprotected.Ranges > 0 {
		parts = append(parts, fmt.Sprintf("%s cannot be protected: %s", ranges(v.Unprotected.Ranges),
			v.Unprotected.Worst))
	}
	if len(parts) == 0 {
		return "every range keeps its consistency"
	}
	return strings.Join(parts, "; ")
}

// nameKeyspaces names the first of several.
func nameKeyspaces(names []string) string {
	if more := len(names) - 1; more > 0 {
		return fmt.Sprintf("keyspace %s and %d more", names[0], more)
	}
	return "keyspace " + names[0]
}

func ranges(n int) string {
	if n == 1 {
		return "1 range"
	}
	return fmt.Sprintf("%d ranges", n)
}

// UnprotectedPolicy is what to do about ranges that no schedule protects.
type UnprotectedPolicy string

const (
	// Proceed takes their nodes down one at a time.
	Proceed UnprotectedPolicy = "Proceed"
	// Block leaves their nodes alone.
	Block UnprotectedPolicy = "Block"
)

// Permits says whether the nodes may be taken down under a policy. Whatever the policy, a range
// that can be protected must keep its level. Proceed allows one node at a time where a range cannot
// be protected, and only if no other replica of such a range is down: else the range would lose its
// last copies one after the other. Nodes that are down already may always be dealt with.
func (v Verdict) Permits(policy UnprotectedPolicy) bool {
	if !v.Safe {
		return false
	}
	if v.Unprotected.Ranges == 0 {
		return true
	}
	return policy == Proceed && v.taken == 1 && v.Unprotected.Down == 1
}
