package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// operation is something done to a ring, from the change of the spec or the task until nothing was
// left to do. Own is the part of it in which Cassandra was at work; 0 where that is not asked.
type operation struct {
	what      string
	took, own time.Duration
}

// leaves measures a ring that stops and starts, and nodes of it that restart, are replaced and
// leave: the first rack has a node more than the others.
func (b *bench) leaves(ctx context.Context, sample *v1alpha1.CassandraCluster, f *figures) error {
	c := shaped(sample, b.sizes[0])
	dc := &c.Spec.Datacenters[0]
	more := dc.NodesPerRack + 1
	dc.Racks[0].Nodes = &more
	_, err := b.form(ctx, c, func(ring *scene.Ring) error {
		if err := ring.Fill(ctx, gocql.Quorum); err != nil {
			return err
		}
		names := ring.NodeNames(ctx)
		for _, name := range names {
			ring.Invariants.ExpectOtherPods(name)
		}
		leaver := fmt.Sprintf("%s-dc1-r1-%d", ring.Name, more-1)
		for _, o := range []struct {
			what string
			do   func() (own time.Duration, err error)
		}{
			{"one node restarts, by a task", func() (time.Duration, error) {
				return 0, b.task(ctx, ring, v1alpha1.TaskRestart, names[0])
			}},
			{fmt.Sprintf("all %d nodes stop", len(names)), func() (time.Duration, error) {
				return 0, b.stop(ctx, ring)
			}},
			{fmt.Sprintf("all %d nodes start", len(names)), func() (time.Duration, error) {
				if err := ring.Edit(ctx, func(s *v1alpha1.CassandraClusterSpec) { s.Stopped = false }); err != nil {
					return 0, err
				}
				return 0, ring.Serving(ctx)
			}},
			{"one node is replaced, by a task", func() (time.Duration, error) {
				return b.watched(ctx, ring, names[0], func() error {
					return b.task(ctx, ring, v1alpha1.TaskReplace, names[0])
				})
			}},
			{"one node leaves", func() (time.Duration, error) {
				return b.watched(ctx, ring, leaver, func() error { return b.shrink(ctx, ring, len(names)-1) })
			}},
		} {
			began := time.Now()
			own, err := o.do()
			if err != nil {
				return fmt.Errorf("%s: %w", o.what, err)
			}
			done := operation{what: o.what, took: time.Since(began), own: own}
			b.say("%s: %.1fs, of it %.1fs of Cassandra", done.what, done.took.Seconds(), done.own.Seconds())
			f.operations = append(f.operations, done)
			if err := ring.Until(ctx, rollingOut, "no step is open", func(now follow.Sight) error {
				if c, _ := now.Cluster(ring.Name); c.Status.Step != nil && !c.Spec.Stopped {
					return fmt.Errorf("the step is %+v", c.Status.Step)
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// task gives a task for one node, and waits for its end.
func (b *bench) task(ctx context.Context, ring *scene.Ring, kind v1alpha1.TaskType, node string) error {
	t, err := ring.Give(ctx, strings.ToLower(string(kind)), v1alpha1.TaskTemplate{Type: kind, Nodes: []string{node}})
	if err != nil {
		return err
	}
	return ring.Finished(ctx, t)
}

// stop stops a ring, and waits until none of its pods is there.
func (b *bench) stop(ctx context.Context, ring *scene.Ring) error {
	if err := ring.Edit(ctx, func(s *v1alpha1.CassandraClusterSpec) { s.Stopped = true }); err != nil {
		return err
	}
	return ring.Until(ctx, rollingOut, "nothing of the ring runs", func(now follow.Sight) error {
		if pods := now.Pods(ring.Name); len(pods) > 0 {
			return fmt.Errorf("%d pods are there", len(pods))
		}
		return nil
	})
}

// shrink takes the node out that the first rack has more than the others.
func (b *bench) shrink(ctx context.Context, ring *scene.Ring, nodes int) error {
	if err := ring.Edit(ctx,
		func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = nil }); err != nil {
		return err
	}
	return ring.Until(ctx, rollingOut, "the node has left", func(now follow.Sight) error {
		c, _ := now.Cluster(ring.Name)
		if left := len(now.Nodes(ring.Name)); left != nodes || c.Status.Step != nil {
			return fmt.Errorf("%d nodes are there, and the step is %+v", left, c.Status.Step)
		}
		return nil
	})
}

// work of Cassandra, by what a container says when it begins and when it ends.
var work = []struct{ container, begins, ends string }{
	{layout.AgentContainer, "Act CloseTraffic", "Act NoteExit"},
	{layout.CassandraContainer, "Starting repair command", "Repair command"},
	{layout.CassandraContainer, "LEAVING", "DECOMMISSIONED"},
}

// watched does something to a node, and says for how long Cassandra was at work meanwhile: on that
// node, before and after it got another pod, and in the repairs of the others.
func (b *bench) watched(ctx context.Context, ring *scene.Ring, node string, do func() error) (time.Duration, error) {
	began := time.Now()
	old := map[string]*scene.Log{}
	for _, container := range []string{layout.AgentContainer, layout.CassandraContainer} {
		var err error
		if old[container], err = ring.FollowLog(ctx, node, container); err != nil {
			return 0, err
		}
	}
	if err := do(); err != nil {
		return 0, err
	}
	var spans []span
	for container, log := range old {
		lines, err := log.Lines(ctx)
		if err != nil {
			return 0, err
		}
		spans = append(spans, worked(container, lines)...)
	}
	for _, name := range ring.NodeNames(ctx) {
		if name == node {
			start, err := started(ctx, ring, node, began)
			if err != nil {
				return 0, err
			}
			spans = append(spans, start)
			continue
		}
		lines, err := ring.ReadLog(ctx, name, layout.CassandraContainer, began)
		if err != nil {
			return 0, err
		}
		spans = append(spans, worked(layout.CassandraContainer, lines)...)
	}
	return covered(spans), nil
}

// worked are the times in which Cassandra was at work, by what a container has said.
func worked(container string, lines []scene.Line) []span {
	var out []span
	for _, w := range work {
		var from time.Time
		for _, l := range lines {
			switch {
			case w.container != container:
			case from.IsZero() && strings.Contains(l.Text, w.begins):
				from = l.At
			case !from.IsZero() && strings.Contains(l.Text, w.ends):
				out, from = append(out, span{from, l.At}), time.Time{}
			}
		}
	}
	return out
}

// started is the time from the start of the JVM of a node until it listened for clients.
func started(ctx context.Context, ring *scene.Ring, node string, since time.Time) (span, error) {
	var at []time.Time
	for _, is := range [][2]string{{layout.AgentContainer, "Act StartJVM"},
		{layout.CassandraContainer, "Starting listening for CQL clients"}} {
		lines, err := ring.ReadLog(ctx, node, is[0], since)
		if err != nil {
			return span{}, err
		}
		i := slices.IndexFunc(lines, func(l scene.Line) bool { return strings.Contains(l.Text, is[1]) })
		if i < 0 {
			return span{}, fmt.Errorf("container %s of node %s never said %q", is[0], node, is[1])
		}
		at = append(at, lines[i].At)
	}
	return span{at[0], at[1]}, nil
}

// done prints what was done to a ring.
func (f *figures) done(b *strings.Builder) {
	if len(f.operations) == 0 {
		return
	}
	b.WriteString("\n| what happened | took | Cassandra's own part | beyond it |\n|---|---:|---:|---:|\n")
	for _, o := range f.operations {
		own, beyond := "", ""
		if o.own > 0 {
			own, beyond = seconds(o.own), seconds(o.took-o.own)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", o.what, seconds(o.took), own, beyond)
	}
}
