package safeguard

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
	"helenus.io/helenus/test/memdisk"
)

// beginning are the points at which a node begins, found by what is written.
type beginning struct {
	// ticket is when the operator writes the node's ticket into its record.
	ticket trial.Point
	// renamed and durable are the last steps of the agent's writing down that it starts a JVM, next
	// the first step of what it writes after that: the JVM is started in between.
	renamed, durable, next trial.Point
}

// listening tells of the patches of records.
type listening struct {
	client.Client
	hear func(object client.Object, patch client.Patch)
}

func (l listening) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	l.hear(object, patch)
	return l.Client.Patch(ctx, object, patch, options...)
}

// putting tells of what is put into a journal.
type putting struct {
	execute.Journal
	hear func(node.Memory)
}

func (p putting) Put(m node.Memory) error {
	p.hear(m)
	return p.Journal.Put(m)
}

// beginnings are those of the nodes of a scenario that nothing disturbs.
func beginnings(t *testing.T, s *trial.Scenario) map[string]beginning {
	t.Helper()
	patches, puts := map[string]int{}, map[string]int{}
	tickets, starts := map[string]trial.Point{}, map[string]int{} // a start by the number of the Put that says so
	result := holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: world.Wrap{
		Client: func(_ *world.Operator, c client.Client) client.Client {
			return listening{c, func(object client.Object, patch client.Patch) {
				name := object.GetName()
				if _, record := object.(*v1alpha1.CassandraNode); record {
					patches[name]++
				}
				if _, known := tickets[name]; !known && givesTicket(object, patch) {
					tickets[name] = trial.Point{Who: "operator", Does: "patch",
						What: "CassandraNode" + "/" + name, Nth: patches[name]}
				}
			}}
		},
		Host: func(s *pod.Sandbox, h execute.Host) execute.Host {
			h.Journal = putting{h.Journal, func(m node.Memory) {
				puts[s.Name()]++
				if starts[s.Name()] == 0 && m.Start != nil {
					starts[s.Name()] = puts[s.Name()]
				}
			}}
			return h
		},
	}})
	out := map[string]beginning{}
	for name, ticket := range tickets {
		steps := slices.DeleteFunc(slices.Clone(result.Points), func(m trial.Point) bool {
			return m.Who != trial.WhoDisk || !strings.HasPrefix(m.What, name+"/")
		})
		b := beginning{ticket: ticket, renamed: trial.Point{Who: trial.WhoDisk, Does: string(memdisk.OpRename),
			What: name + "/" + journal.Path + ".new", Nth: starts[name]}}
		i := slices.Index(steps, b.renamed)
		if !slices.Contains(result.Points, ticket) || i < 0 || i+2 >= len(steps) {
			t.Fatalf("the points of node %s were not found: %v of %v", name, b, steps)
		}
		b.durable, b.next = steps[i+1], steps[i+2]
		out[name] = b
	}
	return out
}
