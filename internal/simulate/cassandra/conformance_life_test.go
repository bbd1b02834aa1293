package cassandra

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/internal/jolokia"
	"helenus.io/helenus/test/conformance"
)

// TestLife holds simulated rings to the list of scenarios that real ones are held to.
func TestLife(t *testing.T) {
	for _, release := range []string{"5.0.6", "4.1.10"} {
		t.Run(release, func(t *testing.T) {
			for _, scenario := range conformance.Life() {
				t.Run(scenario.Name, func(t *testing.T) {
					for seed := range uint64(5) {
						r := newLife(t, seed, release, scenario.Nodes)
						scenario.Tell(t, r, r.places[int(seed)%scenario.Nodes])
					}
				})
			}
		})
	}
}

// life is a simulated ring to which the scenarios happen. The node of a place goes by that place.
type life struct {
	*lab
	places    []string
	nodes     map[string]*node
	processes map[string]*Process
}

func newLife(t *testing.T, seed uint64, release string, count int) *life {
	t.Helper()
	r := &life{lab: newLab(t, seed), nodes: map[string]*node{}, processes: map[string]*Process{}}
	r.setRelease(release)
	nodes, processes := r.form(count)
	r.keyspace(processes[0], "shop", map[string]int{"dc1": 3})
	for i, n := range nodes {
		name := n.address.String()
		r.places = append(r.places, name)
		r.nodes[name], r.processes[name] = n, processes[i]
	}
	return r
}

func (r *life) Nodes() []string { return slices.Clone(r.places) }

func (r *life) Client(_ context.Context, node string) (*jolokia.Client, error) {
	return r.client(r.processes[node]), nil
}

func (r *life) Now() time.Time { return r.line.Now() }

func (r *life) Pause(context.Context) { r.line.RunFor(200 * time.Millisecond) }

func (r *life) Patience() float64 { return 1 }

func (r *life) Kill(_ context.Context, node string) error {
	r.processes[node].Kill()
	return nil
}

func (r *life) Start(_ context.Context, node string) error {
	r.processes[node] = r.start(r.nodes[node])
	return nil
}

func (r *life) Move(_ context.Context, node string) error {
	n, old := r.nodes[node], r.processes[node]
	old.Terminate()
	r.line.Go("move", func() {
		for !old.Ended() {
			r.line.Sleep(time.Second)
		}
		n.address = address(100 + len(r.places))
		r.processes[node] = r.start(n)
	}, nil)
	return nil
}

func (r *life) Join(context.Context) (string, error) {
	n := member(len(r.places) + 1)
	name := n.address.String()
	r.nodes[name], r.processes[name] = n, r.start(n)
	r.places = append(r.places, name)
	return name, nil
}

func (r *life) Leave(_ context.Context, node string) (func() (bool, error), error) {
	result := r.exec(r.processes[node], "decommission(boolean)", true)
	return func() (bool, error) {
		if errors.Is(*result, io.EOF) {
			return false, nil
		}
		r.places = slices.DeleteFunc(r.places, func(name string) bool { return name == node })
		return true, *result
	}, nil
}

func (r *life) ChangeSchema(_ context.Context, node string) error {
	r.keyspace(r.processes[node], "another", map[string]int{"dc1": 3})
	return nil
}
