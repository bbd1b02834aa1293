package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/backup/format"
)

// late is how long after the time that its coordinator gave it a write may come into a log: longer
// than Cassandra lets one wait.
const late = 10 * time.Second

// Taken is when the last snapshot of a backup was.
func Taken(backup *format.Backup) time.Time { return backup.TakenAt.Add(backup.Skew) }

// Before says that a backup is of the time before another: its last snapshot was.
func Before(backup *format.Backup, at time.Time) bool { return !Taken(backup).After(at) }

// NoneBefore is why there is no backup before a time, by the earliest and the latest that there
// are; both are nil if there are none.
func NoneBefore(earliest, latest *format.Backup) string {
	if earliest == nil {
		return "the store has no complete backup of it"
	}
	of := func(b *format.Backup) string {
		// A second later than to the second: it is before that.
		return b.ID + ", taken by " + Taken(b).Add(time.Second).UTC().Format(time.RFC3339)
	}
	if earliest.ID == latest.ID {
		return "no backup is from before it; the only one is " + of(latest)
	}
	return fmt.Sprintf("no backup is from before it; the earliest is %s, the latest %s", of(earliest), of(latest))
}

// Uncovered is why a ring cannot be made as it was at a time, from the latest backup before it,
// which is nil if there is none, and what commit logs cover; empty if it can. Every node of the
// backup needs its log since then, and none may have joined: its rows would be in its log alone.
func Uncovered(backup *format.Backup, logs format.Coverage, at time.Time) string {
	all := covered(logs)
	if backup == nil {
		return "no backup is from before it; commit logs cover " + all
	}
	until := at.Add(late)
	for i := range backup.Nodes {
		n := &backup.Nodes[i]
		if !slices.ContainsFunc(logs[n.HostID], func(i format.Interval) bool {
			return i.Has(backup.TakenAt) && i.Has(until)
		}) {
			return fmt.Sprintf("the commit log of node %s (%s) does not cover the time from backup %s, taken at %s, "+
				"to it: it covers %s; those of all nodes cover %s", n.Name, n.HostID, backup.ID,
				backup.TakenAt.UTC().Format(time.RFC3339), text(logs[n.HostID]), all)
		}
	}
	for hostID, of := range logs {
		if slices.ContainsFunc(backup.Nodes, func(n format.Node) bool { return n.HostID == hostID }) {
			continue
		}
		if slices.ContainsFunc(of, func(i format.Interval) bool {
			return i.From.Before(at) && i.To.After(backup.TakenAt)
		}) {
			return fmt.Sprintf("member %s joined after backup %s, the latest before that time: a time from the next "+
				"backup on can be restored", hostID, backup.ID)
		}
	}
	return ""
}

// covered is what the logs of all members cover that are in a store.
func covered(logs format.Coverage) string {
	var out []format.Interval
	first := true
	for _, of := range logs {
		if first {
			out, first = of, false
			continue
		}
		out = both(out, of)
	}
	return text(out)
}

// both is when each of two has an interval.
func both(a, b []format.Interval) (out []format.Interval) {
	for _, x := range a {
		for _, y := range b {
			i := x
			if y.From.After(i.From) {
				i.From = y.From
			}
			if y.To.Before(i.To) {
				i.To = y.To
			}
			if i.From.Before(i.To) {
				out = append(out, i)
			}
		}
	}
	return out
}

// text names the last few of intervals, as far as a time in them can be restored.
func text(of []format.Interval) string {
	const most = 4
	var out []string
	for _, i := range of[max(0, len(of)-most):] {
		i.To = i.To.Add(-late)
		out = append(out, i.String())
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}
