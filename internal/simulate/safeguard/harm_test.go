package safeguard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// What a guard keeps away is looked for by acts that know nothing of guards: they ask the world
// itself.

// unharmed is an act that finds harm if there is any, in the words that are to be caught.
func unharmed(find func(*world.World) []string) trial.Act {
	return trial.Act{Name: "look for harm", Do: func(w *world.World) error {
		if found := find(w); len(found) > 0 {
			return errors.New(strings.Join(found[:min(len(found), 3)], "; "))
		}
		return nil
	}}
}

// over ends an act that a guard holds back, and one that it lets go when all that the spec asks for
// is there.
func over(by string) trial.Act {
	return trial.Act{Name: "wait for the end of it",
		Until: func(w *world.World) bool { return blockedBy(w, by) || grown(w) }, Within: 2 * time.Hour}
}

// blockedBy says that a guard of the operator holds something back.
func blockedBy(w *world.World, guard string) bool {
	c := trial.Cluster(w)
	return c != nil && slices.ContainsFunc(c.Status.Blocked,
		func(b v1alpha1.BlockedStep) bool { return string(b.Reason) == guard })
}

// grown says that every node of the spec serves, and that nothing is left to do.
func grown(w *world.World) bool {
	c := trial.Cluster(w)
	return trial.Serves(w) && c.Status.ObservedGeneration == c.Generation && c.Status.Step == nil
}

// fullDisks are the nodes whose disks have no room left.
func fullDisks(w *world.World) []string {
	var out []string
	for _, s := range w.Pods.Sandboxes() {
		if s.Content(v1alpha1.VolumeData).Data.Full() {
			out = append(out, fmt.Sprintf("the disk of node %s is full", s.Name()))
		}
	}
	return out
}

// failures are the operations that nodes began and that failed, since they are watched.
type failures struct{ seen []string }

func (f *failures) watch() trial.Act {
	return trial.Act{Name: "watch operations", Do: func(w *world.World) error {
		f.seen = nil
		ended(w, v1alpha1.OperationFailed, func(node string, o v1alpha1.OperationStatus) {
			f.seen = append(f.seen, fmt.Sprintf("an operation of node %s failed: %s", node, o.Message))
		})
		return nil
	}}
}

// ended tells of each operation that comes to such an end, once.
func ended(w *world.World, phase v1alpha1.OperationPhase, tell func(node string, o v1alpha1.OperationStatus)) {
	known := map[string]bool{}
	for _, o := range w.Server.Objects("CassandraNode") {
		for _, o := range o.(*v1alpha1.CassandraNode).Status.Operations {
			known[o.ID] = o.Phase.Final()
		}
	}
	w.Watch(func(e apiserver.Event) {
		n, ok := e.New.(*v1alpha1.CassandraNode)
		if !ok {
			return
		}
		for _, o := range n.Status.Operations {
			if o.Phase == phase && !known[o.ID] {
				known[o.ID] = true
				tell(n.Name, o)
			}
		}
	})
}

func (f *failures) found(*world.World) []string { return f.seen }

// asking is a client that wrote rows at a level at which whoever reads at another must find them,
// and reads them all the while.
type asking struct {
	keyspace    string
	write, read ring.Consistency
	reads       int
	missed      []string
}

// reading begins with the rows, and ends after a while.
func (a *asking) reading(d time.Duration) trial.Act {
	const rows, pause = 20, 100 * time.Millisecond
	return trial.Act{Name: "clients read", Do: func(w *world.World) error {
		a.reads, a.missed = 0, nil
		for i := range rows {
			if err := sandbox(w, first).JVM().Write(a.keyspace, fmt.Sprintf("read-%d", i), "x", a.write); err != nil {
				return err
			}
		}
		for i := range int(d / pause) {
			w.Line.After(time.Duration(i)*pause, "clients read", func() { a.ask(w, fmt.Sprintf("read-%d", i%rows)) })
		}
		return nil
	}}
}

func (a *asking) ask(w *world.World, key string) {
	s := sandbox(w, first)
	if s == nil || s.JVM() == nil {
		return
	}
	value, err := s.JVM().Read(a.keyspace, key, a.read)
	switch {
	case err != nil:
	case value == "":
		a.missed = append(a.missed, fmt.Sprintf("a client that wrote %s.%s at %s reads nothing at %s", a.keyspace, key,
			a.write.CQL(), a.read.CQL()))
	default:
		a.reads++
	}
}

// found is what was missed; a client that could not read at all has seen nothing.
func (a *asking) found(*world.World) []string {
	if a.reads == 0 && len(a.missed) == 0 {
		return []string{"no client could read"}
	}
	return a.missed
}

// watchStarts tells of every start of a JVM.
func watchStarts(w *world.World, tell func(*pod.Sandbox)) {
	judge := w.Pods.Start
	w.Pods.Start = func(s *pod.Sandbox, command initclient.Command) *cassandra.Exit {
		tell(s)
		return judge(s, command)
	}
}

// serving is how many nodes opened client traffic.
func serving(w *world.World) int {
	n := 0
	for _, s := range w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.NativeOpen() {
			n++
		}
	}
	return n
}
