//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/test/e2e/scene"
)

// promise is what a client is owed while something happens to a ring. That no acknowledged write is
// lost, and that lightweight transactions are linearizable, is part of each.
type promise string

const (
	// servedThroughout: growth, cleanup, and faults of the operator, of an agent or of the API
	// server are not seen by a client.
	servedThroughout promise = "99.9 % served"
	// gapsAreShort: after the unplanned loss of a node no partition is unavailable for longer than
	// longestGap.
	gapsAreShort promise = "no gap over 30 s"
	// nothingIsLost: without a quorum nothing is served.
	nothingIsLost promise = "nothing lost"
)

const (
	longestGap = 30 * time.Second
	// leastServed of all requests, in a run of all tests. On every change the window is short and
	// hosts are so busy that Cassandra's own time limits strike.
	leastServed, leastServedInSmoke = 0.999, 0.99
)

// margin is how long a client is there before and after what happens.
func margin() time.Duration {
	if *full {
		return time.Minute
	}
	return 5 * time.Second
}

// while does something to a ring while a client writes and reads, and waits until it serves again.
// It fails if a write is lost that was acknowledged, then or before, if the client's transactions
// are not linearizable, or if it did not get what it is owed.
func while(t *testing.T, ring *scene.Ring, owed promise, what string, do func() error) {
	t.Helper()
	client, err := ring.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	defer func() {
		if client != nil {
			_, _ = client.End(t.Context(), gocql.Quorum) // the test has ended before
		}
	}()
	rest(t, margin())
	took(t, what, do)
	took(t, "all nodes serve again", func() error { return ring.Serving(t.Context()) })
	happened := time.Since(began) - margin()
	rest(t, margin())
	service, err := client.End(t.Context(), gocql.All)
	client = nil
	if err != nil {
		t.Errorf("a client that wrote and read all the while: %v", err)
	}
	t.Log(service)
	least := leastServed
	if !*full {
		least = leastServedInSmoke
	}
	switch {
	case owed == servedThroughout && service.Share() < least:
		t.Errorf("%.3f %% of the requests were served, want %.1f %%", 100*service.Share(), 100*least)
	case owed == gapsAreShort && service.Gap > longestGap:
		t.Errorf("a partition was not served for %s, want at most %s", service.Gap, longestGap)
	}
	took(t, "all rows are read at ALL through every node",
		func() error { return ring.ReadBack(t.Context(), gocql.All) })
	reported = append(reported, line{test: t.Name(), what: what, owed: owed, took: happened, service: service,
		kept: !t.Failed()})
}

// rest lets the client run while nothing happens: its window is wider than what is done to the
// ring.
func rest(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// line of the report.
type line struct {
	test, what string
	owed       promise
	took       time.Duration
	service    scene.Service
	kept       bool
}

// reported is what the tests of this run have done to rings while a client was there.
var reported []line

// writeReport writes what clients saw into a file, in Markdown.
func writeReport(file, commit string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Commit %s, %s.\n\n", commit, time.Now().UTC().Format(time.DateOnly))
	b.WriteString("| test | what happened | took | requests | served | longest gap | median | p99 | " +
		"transactions | promise | kept |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, l := range reported {
		kept := "yes"
		if !l.kept {
			kept = "**no**"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %.0f s | %d | %.3f %% | %.1f s | %.1f ms | %d ms | %s | %s | %s |\n", l.test,
			l.what, l.took.Seconds(), l.service.Requests, 100*l.service.Share(),
			l.service.Gap.Seconds(), 1000*l.service.Median.Seconds(), l.service.Percentile99.Milliseconds(),
			l.service.Registers, l.owed, kept)
	}
	return os.WriteFile(file, []byte(b.String()), 0o600)
}
