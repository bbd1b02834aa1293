package restore

import (
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/backup/format"
)

// Which times can be restored, by what is in the store.
func TestUncovered(t *testing.T) {
	at := func(minutes int) time.Time { return time.Unix(int64(60*minutes), 0).UTC() }
	nodes := []format.Node{{Name: "a", HostID: "A"}, {Name: "b", HostID: "B"}}
	backup := &format.Backup{ID: "b1", TakenAt: at(10), Skew: 30 * time.Second, Nodes: nodes}
	in := func(from, to int) []format.Interval { return []format.Interval{{From: at(from), To: at(to)}} }
	for name, c := range map[string]struct {
		backup *format.Backup
		logs   format.Coverage
		at     time.Time
		says   string
	}{
		"all have their logs": {backup, format.Coverage{"A": in(0, 30), "B": in(10, 21)}, at(20), ""},
		"there is no backup": {nil, format.Coverage{"A": in(0, 30), "B": in(5, 21)}, at(9),
			"no backup is from before it; commit logs cover 1970-01-01T00:05:00Z – 1970-01-01T00:20:50Z"},
		"one begins after it": {backup, format.Coverage{"A": in(0, 30), "B": in(11, 30)}, at(20), "of node b (B)"},
		"one ends before it":  {backup, format.Coverage{"A": in(0, 20), "B": in(0, 30)}, at(20), "of node a (A)"},
		"one has a hole": {backup, format.Coverage{"A": in(0, 30), "B": append(in(0, 15), in(16, 30)...)}, at(20),
			"those of all nodes cover 1970-01-01T00:00:00Z – 1970-01-01T00:14:50Z, 1970-01-01T00:16:00Z – " +
				"1970-01-01T00:29:50Z"},
		"a hole is before the backup": {backup, format.Coverage{"A": in(0, 30), "B": append(in(0, 7), in(8, 30)...)},
			at(20), ""},
		"one has none": {backup, format.Coverage{"A": in(0, 30)}, at(20), "it covers nothing"},
		"one has joined": {backup, format.Coverage{"A": in(0, 30), "B": in(0, 30), "C": in(15, 30)}, at(20),
			"member C joined after backup b1"},
		"one joined after it": {backup, format.Coverage{"A": in(0, 30), "B": in(0, 30), "C": in(25, 30)}, at(20), ""},
		"one had left before": {backup, format.Coverage{"A": in(0, 30), "B": in(0, 30), "C": in(0, 9)}, at(20), ""},
	} {
		if got := Uncovered(c.backup, c.logs, c.at); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if Before(backup, at(10)) || !Before(backup, at(11)) {
		t.Error("a backup is of the time after its last snapshot")
	}
}

// What there is where no backup is from before a time: each time that is named has one.
func TestNoneBefore(t *testing.T) {
	earliest := &format.Backup{ID: "b1", TakenAt: time.Unix(600, 5).UTC(), Skew: 30 * time.Second}
	latest := &format.Backup{ID: "b2", TakenAt: time.Unix(1200, 5).UTC()}
	for want, b := range map[string][2]*format.Backup{
		"the store has no complete backup of it":                                         {},
		"no backup is from before it; the only one is b1, taken by 1970-01-01T00:10:31Z": {earliest, earliest},
		"no backup is from before it; the earliest is b1, taken by 1970-01-01T00:10:31Z, the latest b2, taken by " +
			"1970-01-01T00:20:01Z": {earliest, latest},
	} {
		if got := NoneBefore(b[0], b[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if !Before(earliest, time.Unix(631, 0)) {
		t.Error("the time that is named has no backup before it")
	}
}
