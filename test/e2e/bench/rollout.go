package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

const (
	// beside is how long a client is there before and after a roll-out, and without one.
	beside, atRest = 10 * time.Second, time.Minute
	// rollingOut bounds a roll-out of three nodes.
	rollingOut = 8 * time.Minute
)

// rollOut is how all nodes of a ring were restarted; without most, how nothing happened.
type rollOut struct {
	// most is disruption.maxUnavailable.
	most  string
	nodes int
	// quiet says that no client was there, so that no node keeps hints for another.
	quiet bool
	// took is the time from the change of the spec until every node was as it describes it, and own
	// the part of it in which the Cassandra of any node stopped or started.
	took, own time.Duration
	service   scene.Service
}

// rollOuts restarts a ring by one node at a time, and by waves of a rack, while a client is there,
// after it has restarted it without one.
func (b *bench) rollOuts(ctx context.Context, sample *v1alpha1.CassandraCluster, f *figures) error {
	size := b.sizes[len(b.sizes)-1]
	c := shaped(sample, size)
	scene.Linearizable(&c.Spec)
	c.Spec.Disruption.Soak = &metav1.Duration{}
	_, err := b.form(ctx, c, func(ring *scene.Ring) error {
		if err := ring.Fill(ctx, gocql.Quorum); err != nil {
			return err
		}
		rest := rollOut{nodes: size}
		if err := b.served(ctx, ring, &rest, func() error { return pass(ctx, atRest) }); err != nil {
			return err
		}
		f.rollOuts = append(f.rollOuts, rest)
		for _, how := range []struct {
			most  intstr.IntOrString
			quiet bool
		}{{intstr.FromInt32(1), true}, {intstr.FromInt32(1), false}, {intstr.FromString("100%"), false}} {
			r, err := b.rollOut(ctx, ring, how.most, how.quiet)
			if err != nil {
				return fmt.Errorf("restart all nodes with maxUnavailable %s: %w", how.most.String(), err)
			}
			f.rollOuts = append(f.rollOuts, r)
		}
		return nil
	})
	return err
}

// served does something while a client is there.
func (b *bench) served(ctx context.Context, ring *scene.Ring, r *rollOut, do func() error) error {
	client, err := ring.Begin(ctx)
	if err != nil {
		return err
	}
	err = do()
	if err == nil {
		err = ring.Serving(ctx)
	}
	if err == nil {
		err = pass(ctx, beside)
	}
	var lost error
	r.service, lost = client.End(context.WithoutCancel(ctx), gocql.All)
	b.say("%s", r.service)
	if err == nil {
		err = lost
	}
	return err
}

func (b *bench) rollOut(
	ctx context.Context, ring *scene.Ring, most intstr.IntOrString, quiet bool,
) (rollOut, error) {
	r := rollOut{most: most.String(), nodes: len(ring.NodeNames(ctx)), quiet: quiet}
	if err := ring.Edit(ctx,
		func(s *v1alpha1.CassandraClusterSpec) { s.Disruption.MaxUnavailable = &most }); err != nil {
		return r, err
	}
	if err := ring.RolledOut(ctx, time.Minute); err != nil { // it is a policy: nothing restarts
		return r, err
	}
	var began time.Time
	restart := func() error {
		if err := pass(ctx, beside); err != nil {
			return err
		}
		began = time.Now()
		now := metav1.NewTime(began)
		if err := ring.Edit(ctx, func(s *v1alpha1.CassandraClusterSpec) { s.RestartedAt = &now }); err != nil {
			return err
		}
		err := ring.RolledOut(ctx, rollingOut)
		r.took = time.Since(began)
		return err
	}
	var err error
	if quiet {
		err = restart()
	} else {
		err = b.served(ctx, ring, &r, restart)
	}
	if err != nil {
		return r, err
	}
	var own []span
	for _, node := range ring.NodeNames(ctx) {
		spans, err := ownSpans(ctx, ring, node, began)
		if err != nil {
			return r, err
		}
		own = append(own, spans...)
	}
	r.own = covered(own)
	b.say("%d nodes restarted with maxUnavailable %s: %.1fs", r.nodes, r.most, r.took.Seconds())
	return r, nil
}

// span of time.
type span struct{ from, to time.Time }

// ownSpans are those in which the Cassandra of a node stopped and started, by what agent and
// Cassandra have said since: from the close of its client traffic to its end, and from its start
// until it listens for clients.
func ownSpans(ctx context.Context, ring *scene.Ring, node string, since time.Time) ([]span, error) {
	lines, err := ring.ReadLog(ctx, node, layout.AgentContainer, since)
	if err != nil {
		return nil, err
	}
	stops := worked(layout.AgentContainer, lines)
	if len(stops) == 0 {
		return nil, fmt.Errorf("the agent of node %s never said that it stopped Cassandra", node)
	}
	start, err := started(ctx, ring, node, since)
	return append(stops, start), err
}

// covered is how long any of some spans lasted.
func covered(spans []span) time.Duration {
	var sum time.Duration
	var until time.Time
	for _, s := range slices.SortedFunc(slices.Values(spans), func(a, b span) int { return a.from.Compare(b.from) }) {
		if s.from.Before(until) {
			s.from = until
		}
		if s.to.After(s.from) {
			sum += s.to.Sub(s.from)
			until = s.to
		}
	}
	return sum
}

// restarts prints how all nodes were restarted.
func (f *figures) restarts(b *strings.Builder) {
	if len(f.rollOuts) == 0 {
		return
	}
	fmt.Fprintf(b, "\n| all %d nodes restarted | took | against one at a time | for each node, beyond Cassandra's own "+
		"stops and starts | requests | failed | longest gap | transactions |\n"+
		"|---|---:|---:|---:|---:|---:|---:|---|\n",
		f.rollOuts[0].nodes)
	var one time.Duration
	for _, r := range f.rollOuts {
		what, beyond, factor := "none: the ring at rest", "", ""
		if r.most != "" {
			what, factor = "maxUnavailable "+r.most, ratio(one, r.took)
			beyond = seconds((r.took - r.own) / time.Duration(r.nodes))
		}
		if r.quiet {
			fmt.Fprintf(b, "| %s, without a client | %s | | %s | | | | |\n", what, seconds(r.took), beyond)
			continue
		}
		if r.most == "1" {
			one = r.took
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %d | %d | %.1f s | %s |\n", what, seconds(r.took), factor, beyond,
			r.service.Requests, r.service.Requests-r.service.Served, r.service.Gap.Seconds(), r.service.Registers)
	}
}
