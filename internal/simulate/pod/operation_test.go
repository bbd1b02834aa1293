package pod_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
)

// operate asks a node for an operation, and returns how it ended.
func (g *growth) operate(name, id string, o v1alpha1.OperationType,
	arguments *v1alpha1.OperationArguments) *v1alpha1.OperationStatus {
	g.Helper()
	g.ask(name, id, o, arguments)
	g.await("the end of operation "+id, 10*time.Minute, func() bool {
		s := g.record(name).Status.Operation(id)
		return s != nil && s.Phase.Final()
	})
	return g.record(name).Status.Operation(id)
}

func (g *growth) ask(name, id string, o v1alpha1.OperationType, arguments *v1alpha1.OperationArguments) {
	g.change(name, func(n *v1alpha1.CassandraNode) {
		n.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: id}, Type: o, Arguments: arguments}}
	})
}

func (g *growth) succeeds(o *v1alpha1.OperationStatus, words string) {
	g.Helper()
	if o.Phase != v1alpha1.OperationSucceeded || !strings.Contains(o.Message, words) {
		g.Errorf("operation %+v, want %q", o, words)
	}
}

func (g *growth) bytes(name string) int64 {
	return g.sandbox(name).Content(v1alpha1.VolumeData).Data.Bytes()
}

// A ring that has grown is cleaned up, gets more replicas, and is repaired.
func TestOperationsOfARingThatHasGrown(t *testing.T) {
	g := newGrowth(t, kindsOf(t), 4)
	second := nodeName(1)
	g.add(1)
	g.await("an agent that waits", 5*time.Minute,
		func() bool { return g.record(second).Status.Disk == v1alpha1.DiskEmpty })
	g.invite(second, "grow/1", tokensOf(1)...)
	g.await("ranges on their way", 2*time.Minute, func() bool {
		answer, _ := g.sandbox(first).Agent().Answer()
		return answer.Ring != nil && answer.Ring.Pending > 0
	})
	g.ask(first, "early", v1alpha1.OperationCleanup, nil)
	g.await("its refusal", time.Minute, func() bool {
		b := g.record(first).Status.Blocked
		return b != nil && b.Reason == "PendingRanges"
	})
	before := g.bytes(first)
	g.await("a member", 5*time.Minute, g.joined(second))
	g.await("the cleanup", 5*time.Minute, func() bool {
		o := g.record(first).Status.Operation("early")
		return o != nil && o.Phase == v1alpha1.OperationSucceeded
	})
	if after := g.bytes(first); after >= before {
		t.Errorf("%d bytes after the cleanup, %d before", after, before)
	}
	if b := g.record(first).Status.Blocked; b != nil {
		t.Errorf("still blocked: %+v", b)
	}
	g.succeeds(g.operate(first, "flush", v1alpha1.OperationFlush, nil), "flushed ")
	local := &v1alpha1.OperationArguments{Tag: "t", Keyspaces: []string{"system_schema", "system"}}
	for _, id := range []string{"snapshot", "snapshot again"} {
		g.succeeds(g.operate(first, id, v1alpha1.OperationSnapshot, local), "snapshot t of system, system_schema")
	}
	g.succeeds(g.operate(first, "upgrade", v1alpha1.OperationUpgradeSSTables, nil),
		"upgraded orders, system, system_auth, system_distributed, system_schema, system_traces")
	two := map[string]int32{"dc1": 2}
	g.succeeds(g.operate(first, "auth", v1alpha1.OperationAlterSystemKeyspaces,
		&v1alpha1.OperationArguments{Replication: two}), "altered system_auth, system_distributed, system_traces")
	g.succeeds(g.operate(second, "lower", v1alpha1.OperationAlterSystemKeyspaces,
		&v1alpha1.OperationArguments{Replication: map[string]int32{"dc1": 1}}), "nothing had to be altered")
	g.succeeds(g.operate(first, "more", v1alpha1.OperationAlterKeyspaces, &v1alpha1.OperationArguments{
		KeyspaceReplication: []v1alpha1.KeyspaceReplication{{Keyspace: "orders", Replication: two}},
	}), "altered orders")
	g.succeeds(g.operate(second, "repair", v1alpha1.OperationRepair, &v1alpha1.OperationArguments{Full: true}),
		"repaired orders, system_auth, system_distributed, system_traces")
	if a, b := g.bytes(first), g.bytes(second); b < a*9/10 {
		t.Errorf("%d bytes on the first node, %d on the second after a repair", a, b)
	}
	g.succeeds(g.operate(second, "rebuild", v1alpha1.OperationRebuild,
		&v1alpha1.OperationArguments{SourceDatacenter: "dc1", Keyspaces: []string{"orders"}}), "rebuilt orders")
	g.judge()
}

// An operation whose JVM ends is said to be interrupted, whenever that is, and the next one by
// another id runs. One whose agent ends is followed by the next.
func TestAnOperationIsCutOffAtAnyTime(t *testing.T) {
	kinds := kindsOf(t)
	name := nodeName(1)
	phases := map[v1alpha1.OperationPhase]int{}
	for what, kill := range map[string]func(g *growth){
		"agent": func(g *growth) { g.sandbox(name).Kill(layout.AgentContainer) },
		"JVM":   func(g *growth) { g.sandbox(name).JVM().Kill() },
		"pod":   func(g *growth) { g.deletePod(name) },
	} {
		for after := time.Duration(0); after < 4*time.Second; after += 500 * time.Millisecond {
			t.Run(fmt.Sprintf("%s/%s", what, after), func(t *testing.T) {
				g := newGrowth(t, kinds, 5)
				g.bring(name)
				g.succeeds(g.operate(first, "more", v1alpha1.OperationAlterKeyspaces, &v1alpha1.OperationArguments{
					KeyspaceReplication: []v1alpha1.KeyspaceReplication{{Keyspace: "orders",
						Replication: map[string]int32{"dc1": 2}}},
				}), "altered orders")
				g.after(after, func() { kill(g) })
				o := g.operate(name, "repair-1", v1alpha1.OperationRepair,
					&v1alpha1.OperationArguments{Full: true, Keyspaces: []string{"orders"}})
				phases[o.Phase]++
				if o.Phase != v1alpha1.OperationInterrupted && o.Phase != v1alpha1.OperationSucceeded ||
					what == "agent" && o.Phase != v1alpha1.OperationSucceeded {
					t.Errorf("operation %+v", o)
				}
				if doubled := g.w.Network.Doubled(); len(doubled) > 0 {
					t.Error(doubled)
				}
				g.w.Line.RunFor(after)
				g.await("its service", 5*time.Minute, g.joined(name))
				g.succeeds(g.operate(name, "repair-2", v1alpha1.OperationRepair,
					&v1alpha1.OperationArguments{Full: true, Keyspaces: []string{"orders"}}), "repaired orders")
				g.judge()
			})
		}
	}
	if phases[v1alpha1.OperationInterrupted] == 0 || phases[v1alpha1.OperationSucceeded] == 0 {
		t.Errorf("ends were %v", phases)
	}
}
