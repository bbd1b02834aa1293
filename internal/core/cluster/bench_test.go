package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// BenchmarkNextWhileANodeJoins is one decision while nodes join a ring of 16 tokens a node, with 20
// keyspaces, one after the other. A join begins: all guards are asked, and tokens are chosen; or it
// is refused, since three members see others than the rest do. It is under way. It ends: every
// member's view is asked about the node, and what members no longer own is found.
func BenchmarkNextWhileANodeJoins(b *testing.B) {
	for _, nodes := range []int32{9, 99, 999} {
		w := growing(b, nodes/3)
		decide := func(moment string, snapshot *facts.Snapshot, message string) {
			b.Run(fmt.Sprintf("%d/%s", nodes+1, moment), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if made := Next(snapshot, w.now); made.Current == nil ||
						!strings.Contains(made.Current.Message, message) {
						b.Fatalf("it does not say %q:\n%s", message, made)
					}
				}
			})
		}
		for !begins(w) {
			w.pass()
		}
		decide("begins", w.snapshot, "joins")
		decide("refused", disagreeing(w), "down")
		w.pass()
		decide("joins", stillJoining(w), "is JOINING")
		decide("ends", w.snapshot, "has joined")
	}
}

// growing is a ring of three racks, of which one is to have two nodes more.
func growing(b *testing.B, perRack int32) *world {
	dc := datacenter("dc1", perRack, perRack, perRack)
	dc.NumTokens = 16
	w := newWorld(b, dc)
	w.observed = true
	w.settle()
	w.keyspaces = map[string]string{"system_auth": "NetworkTopologyStrategy {dc1=3}"}
	for i := range 19 {
		w.keyspaces[fmt.Sprintf("keyspace_%d", i)] = "NetworkTopologyStrategy {dc1=3}"
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		size := perRack + 2
		s.Datacenters[0].Racks[0].Nodes = &size
	})
	return w
}

// begins says that the next pass gives a node its ticket.
func begins(w *world) bool {
	return slices.ContainsFunc(Next(w.snapshot, w.now).Writes,
		func(write plan.Write) bool { return write.Verb == plan.PutLedger && write.Ledger.Step != nil })
}

// disagreeing is what a world knows of which three members each see another one down.
func disagreeing(w *world) *facts.Snapshot {
	out := asObserved(w.snapshot)
	names := out.Names()
	for i, name := range names[:3] {
		ring := out.Nodes[name].Agent.Ring
		ring.Endpoints = slices.Clone(ring.Endpoints)
		ring.Endpoints[len(names)/2+i].Live = false
		ring.KeepView()
	}
	return out
}

// stillJoining is what a world knows while the node that joins, which is up already, streams.
func stillJoining(w *world) *facts.Snapshot {
	out := *w.snapshot
	out.Nodes = maps.Clone(out.Nodes)
	name := out.Ledger.Step.Wave()[0]
	n, agent, ring := *out.Nodes[name], *out.Nodes[name].Agent, *out.Nodes[name].Agent.Ring
	n.Record = n.Record.DeepCopy()
	n.Record.Status.Join.FinishedAt = nil
	ring.Mode, agent.Ring, n.Agent = facts.ModeJoining, &ring, &agent
	out.Nodes[name] = &n
	return &out
}

// BenchmarkNextInARollOut is one decision in the middle of a roll-out of new pods over the ring of
// BenchmarkNextWhileANodeJoins. A wave begins: hosts, guards, hints and ranges are asked. A wave is
// under way, and a new pod starts.
func BenchmarkNextInARollOut(b *testing.B) {
	for _, nodes := range []int32{9, 99, 999} {
		w := growing(b, nodes/3)
		w.change(func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks[0].Nodes, s.Image = ptr(nodes/3), "elsewhere/cassandra:5.0.6"
			s.Disruption.Soak = &metav1.Duration{}
		})
		decide := func(moment, message string) {
			for range 100 {
				if made := Next(w.snapshot, w.now); made.Current != nil &&
					strings.Contains(made.Current.Message, message) {
					break
				}
				w.pass()
			}
			b.Run(fmt.Sprintf("%d/%s", nodes, moment), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if made := Next(w.snapshot, w.now); made.Current == nil ||
						!strings.Contains(made.Current.Message, message) {
						b.Fatalf("it does not say %q:\n%s", message, made)
					}
				}
			})
		}
		decide("waits", "orders-dc1-r1-1: it has no pod yet")
		decide("begins", "orders-dc1-r1-2: it stops")
	}
}

// BenchmarkNextInABackup is one decision while the ring of BenchmarkNextWhileANodeJoins is backed
// up. It waits to begin, with all members up or three down that it is to do without; all upload;
// three are down and waited for; another one is the last to upload; and it is down, too, so that
// it is asked in each pass whether the backup can do without all of them, which it cannot.
func BenchmarkNextInABackup(b *testing.B) {
	for _, nodes := range []int32{9, 99, 999} {
		w := growing(b, nodes/3)
		w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(nodes / 3) })
		w.settle()
		w.backUp("nightly", uploading)
		w.snapshot.Backups[0].Spec.Keyspaces = nil
		decide := func(moment, phase, message string) {
			b.Run(fmt.Sprintf("%d/%s", nodes, moment), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Next(w.snapshot, w.now)
				}
			})
			if s := w.snapshot.Backups[0].Status; string(s.Phase) != phase || !strings.Contains(s.Message, message) {
				b.Fatalf("it is %s: %s, and not %s: %s", s.Phase, s.Message, phase, message)
			}
		}
		down := []string{"orders-dc1-r3-0", "orders-dc1-r3-1", "orders-dc1-r3-2"}
		last := "orders-dc1-r2-0"
		decide("begins", "", "")
		for _, name := range down {
			w.downSince(name, w.now.Add(-time.Hour))
		}
		decide("begins without some", "", "")
		clear(w.absent)
		clear(w.dead)
		w.agents()
		for w.snapshot.Backups[0].Status.Phase != v1alpha1.BackupUploading {
			w.pass()
		}
		w.settle()
		decide("uploads", "Uploading", "it is Running")
		for _, name := range down {
			w.downSince(name, w.now.Add(-time.Hour))
		}
		w.settle()
		decide("some are down", "Uploading", "it is Running")
		for name := range w.snapshot.Nodes {
			if !w.absent[name] && name != last {
				w.uploaded(name)
			}
		}
		w.settle()
		decide("one uploads", "Uploading", last+": it is Running")
		w.downSince(last, w.now.Add(-time.Hour))
		w.settle()
		decide("is needed", "Uploading", "it is Running")
	}
}
