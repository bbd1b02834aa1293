package cluster

import (
	"fmt"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// BenchmarkNextWhileANodeJoins is one decision while a node joins a ring of 16 tokens a node, with 20 keyspaces, and all guards asked: the join is about to end.
func BenchmarkNextWhileANodeJoins(b *testing.B) {
	for _, nodes := range []int32{9, 99} {
		b.Run(fmt.Sprint(nodes+1), func(b *testing.B) {
			w := large(b, nodes/3)
			for b.Loop() {
				Next(w.snapshot, w.now)
			}
		})
	}
}

// large is a ring of three racks in which one node more has just come up, and another one waits for its turn.
func large(b *testing.B, perRack int32) *world {
	dc := datacenter("dc1", perRack, perRack, perRack)
	dc.Tokens = 16
	w := newWorld(b, dc)
	w.settle()
	keyspaces := map[string]string{"system_auth": "NetworkTopologyStrategy {dc1=3}"}
	for i := range 20 {
		keyspaces[fmt.Sprintf("keyspace_%d", i)] = "NetworkTopologyStrategy {dc1=3}"
	}
	w.keyspaces = keyspaces
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		size := perRack + 2
		s.Datacenters[0].Racks[0].Nodes = &size
	})
	for w.snapshot.Ledger.Step == nil || w.snapshot.Ledger.Step.Kind != facts.StepJoinNode {
		w.pass()
	}
	return w
}
