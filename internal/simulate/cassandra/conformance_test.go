package cassandra

import (
	"context"
	"testing"
	"time"

	"helenus.io/helenus/test/conformance"
)

// TestConformance holds simulated nodes to the list of checks that real ones are held to.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name, release string
		nodes         int
	}{{"one node", "5.0.6", 1}, {"three nodes", "5.0.6", 3}, {"one node of 4.1", "4.1.10", 1},
		{"three nodes of 4.1", "4.1.10", 3}} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 1)
			l.setRelease(c.release)
			_, processes := l.form(c.nodes)
			conformance.Run(t, conformance.Target{
				Client: l.client(processes[0]), Traffic: true, Drain: true,
				Pause: func(context.Context) { l.line.RunFor(100 * time.Millisecond) },
			})
		})
	}
}
