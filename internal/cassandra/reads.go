package cassandra

import (
	"context"
	"errors"
	"fmt"
	"time"

	"helenus.io/helenus/internal/jolokia"
)

// Reads are those of clients that a node has coordinated since it started.
type Reads struct {
	Count int64
	// Took is how long clients waited for all of them together.
	Took time.Duration
}

// Since are the reads after others.
func (r Reads) Since(before Reads) Reads { return Reads{r.Count - before.Count, r.Took - before.Took} }

// Mean is how long one took, and 0 of none.
func (r Reads) Mean() time.Duration {
	if r.Count == 0 {
		return 0
	}
	return r.Took / time.Duration(r.Count)
}

// Reads asks for both counts of ClientRequestMetrics, which 4.1 and 5.0 keep in this form: the
// second one is of microseconds (LatencyMetrics#addNano).
func (n *Node) Reads(ctx context.Context) (Reads, error) {
	answers, err := n.jmx.Do(ctx, jolokia.Read(beanReadLatency, "Count"), jolokia.Read(beanReadTotalLatency, "Count"))
	if err != nil {
		return Reads{}, err
	}
	var count, took struct{ Count int64 }
	if err := errors.Join(answers[0].Decode(&count), answers[1].Decode(&took)); err != nil {
		return Reads{}, fmt.Errorf("read how long reads took: %w", whileStarting(err))
	}
	return Reads{count.Count, time.Duration(took.Count) * time.Microsecond}, nil
}
