package cassandra

import (
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

// deletedRows is a ring of three with rows of a table that keeps deletions for a while; the third
// node is down when they are deleted.
func deletedRows(t *testing.T, grace time.Duration) (*lab, []*node, []*Process) {
	t.Helper()
	l := newLab(t, 1)
	nodes, processes := l.form(3)
	l.do("a table", func() {
		session, err := processes[0].CQL(t.Context())
		if err == nil {
			err = session.CreateKeyspace(t.Context(), "shop", map[string]int{"dc1": 3})
		}
		if err == nil {
			err = session.CreateTable(t.Context(), "shop", "rows", grace)
		}
		if err != nil {
			t.Error(err)
		}
	})
	l.line.RunFor(time.Minute)
	for i := range 10 {
		if err := processes[0].Write("shop", fmt.Sprint(i), "x", ring.Quorum); err != nil {
			t.Fatal(err)
		}
	}
	processes[2].Kill()
	l.line.RunFor(time.Minute)
	for i := range 10 {
		if err := processes[0].Delete("shop", "rows", fmt.Sprint(i), ring.Quorum); err != nil {
			t.Fatal(err)
		}
	}
	return l, nodes, processes
}

// Whoever comes back while deletions are kept learns of them; whoever comes back later brings the
// rows back.
func TestDeletedRowsComeBackWithANodeThatWasAwayForTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		away time.Duration
		back bool
	}{
		"in time":  {10 * time.Minute, false},
		"too late": {40 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, nodes, processes := deletedRows(t, 30*time.Minute)
			if lost := l.net.Audit(); len(lost) > 0 {
				t.Fatalf("while the node is down: %v", lost)
			}
			l.line.RunFor(c.away)
			again := l.start(nodes[2])
			l.awaitFormed(processes[0], processes[1], again)
			l.line.RunFor(time.Minute)
			read := 0
			for i := range 10 {
				for range 5 {
					if value, err := again.Read("shop", fmt.Sprint(i), ring.Quorum); err != nil {
						t.Fatal(err)
					} else if value != "" {
						read++
					}
				}
			}
			if lost := l.net.Audit(); (len(lost) > 0) != c.back || (read > 0) != c.back {
				t.Errorf("clients read %d deleted rows; the audit says %v", read, lost)
			}
			l.line.RunFor(time.Hour)
			if rows := len(again.disk.data["shop"]); (rows > 0) != c.back {
				t.Errorf("%d rows are on the disk of the node in the end", rows)
			}
		})
	}
}

// The table says for how long a deletion is kept.
func TestADeletionIsOfATable(t *testing.T) {
	_, _, processes := deletedRows(t, time.Hour)
	if err := processes[0].Delete("shop", "other", "1", ring.Quorum); err == nil {
		t.Error("a row of a table that does not exist was deleted")
	}
}

// A volume takes what it has room for.
func TestADiskThatRunsFullIsTheEndOfItsJVM(t *testing.T) {
	l := newLab(t, 1)
	nodes, processes := l.form(3)
	l.do("a keyspace", func() {
		session, err := processes[0].CQL(t.Context())
		if err == nil {
			err = session.CreateSimpleKeyspace(t.Context(), "shop", 3)
		}
		if err != nil {
			t.Error(err)
		}
	})
	l.line.RunFor(time.Minute)
	room := nodes[2].disk.Bytes() + 3*200
	nodes[2].disk.Resize(room)
	for i := range 3 {
		if err := processes[0].Write("shop", fmt.Sprint(i), "x", ring.All); err != nil {
			t.Fatal(err)
		}
	}
	if nodes[2].disk.Full() {
		t.Error("the disk is full before there is more on it than there is room for")
	}
	if err := processes[0].Write("shop", "more", "x", ring.Quorum); err != nil {
		t.Fatal(err)
	}
	if !nodes[2].disk.Full() || nodes[2].disk.Bytes() > room || !processes[2].Ended() {
		t.Errorf("full: %v, with %d of %d bytes; the JVM has ended: %v", nodes[2].disk.Full(), nodes[2].disk.Bytes(),
			room, processes[2].Ended())
	}
	nodes[2].disk.Wipe()
	if nodes[2].disk.Full() || nodes[2].disk.Size() != room {
		t.Error("a disk that is wiped has room again, as much as before")
	}
}
