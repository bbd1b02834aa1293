package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// six is a ring of two nodes in each of three racks, with a keyspace that has as many replicas.
func six(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 2, 2, 2))
	w.settle()
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
		"system_auth": "NetworkTopologyStrategy {dc1=3}"})
	w.settle()
	return w
}

func TestARingShrinksByOneNodeAtATime(t *testing.T) {
	for _, policy := range []v1alpha1.ClaimPolicy{"", v1alpha1.ClaimRetain, v1alpha1.ClaimDelete} {
		t.Run(string(policy), func(t *testing.T) {
			w := six(t)
			w.change(func(s *v1alpha1.CassandraClusterSpec) { nodesPerRack(1)(s); s.Volumes.OnScaleIn = policy })
			var order []string
			for range 200 {
				made := w.pass()
				if made.Stalled != nil {
					t.Fatalf("stalled:\n%s", made)
				}
				if s := w.snapshot.Ledger.Step; s != nil && s.Kind == ledger.LeaveNode {
					order = append(order, s.Nodes...)
					budget := w.snapshot.Shared.Budgets["orders-dc1"]
					if budget.Spec.MinAvailable.IntValue() != len(w.snapshot.Ledger.Members) {
						t.Errorf("a node leaves while pods can be evicted")
					}
				}
				if len(made.Writes) == 0 {
					break
				}
			}
			order = slices.Compact(order)
			if want := []string{"orders-dc1-r1-1", "orders-dc1-r2-1", "orders-dc1-r3-1"}; !slices.Equal(order, want) {
				t.Errorf("they left in the order %v", order)
			}
			w.wantNames(first, second, third)
			w.wantOpen()
			if m := w.snapshot.Ledger.Members; len(m) != 3 || m[first] == "" {
				t.Errorf("members %v", m)
			}
			for _, name := range order {
				n := w.snapshot.Nodes[name]
				if n.Pod != nil || len(n.Claims) > 0 != (policy != v1alpha1.ClaimDelete) {
					t.Errorf("node %s has the pod %v and the claims %v", name, n.Pod, n.Claims)
				}
			}
			for _, name := range w.snapshot.Ledger.Members {
				if len(w.snapshot.Nodes[strings.TrimPrefix(name, "host-")].Claims) != 1 {
					t.Errorf("a claim of %s is gone", name)
				}
			}
		})
	}
}

func TestWhatKeepsANodeFromLeaving(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*world)
		reason  v1alpha1.Reason
		words   []string
		stalled bool
	}{
		"too many replicas": {func(w *world) {
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=5}"})
		}, v1alpha1.BlockedTooManyReplicas, []string{"keyspace shop has 5 replicas in datacenter dc1",
			"4 nodes left once node orders-dc1-r2-1 has left"}, true},
		"too many replicas anywhere": {func(w *world) {
			w.replicated(map[string]string{"shop": "SimpleStrategy {replication_factor=4}"})
		}, v1alpha1.BlockedTooManyReplicas, []string{"keyspace shop has 4 replicas in the ring",
			"3 nodes left once node orders-dc1-r3-1 has left"}, true},
		"too little disk": {func(w *world) { w.fill(4 << 30) }, v1alpha1.BlockedTooLittleDisk,
			[]string{"once node orders-dc1-r1-1 has left, node orders-dc1-r1-0 would fill 8.0Gi of its data volume " +
				"of 10.0Gi", "2.00 times as much of keyspace shop"}, true},
		"snapshots": {func(w *world) {
			w.fill(3 << 30)
			w.snapshot.Nodes["orders-dc1-r2-0"].Agent.Space.Free -= 2 << 30
		}, v1alpha1.BlockedTooLittleDisk,
			[]string{"once node orders-dc1-r2-1 has left, node orders-dc1-r2-0 would fill 8.0Gi"}, true},
		"nobody knows how full a disk is": {func(w *world) { w.snapshot.Nodes[first].Agent.Space = nil },
			v1alpha1.BlockedTooLittleDisk, []string{"does not say how full"}, false},
		"a cleanup is due": {func(w *world) {
			w.snapshot.Cluster.Spec.Automation.Cleanup = v1alpha1.AutomationRecommend
			w.snapshot.Ledger.Cleanup = []string{second}
		}, v1alpha1.BlockedCleanupDue, []string{second}, false},
		"a repair is due": {func(w *world) {
			w.snapshot.Ledger.RepairDue = []ledger.RepairDue{{Node: third, Reason: v1alpha1.RepairCommitLogLost}}
		}, v1alpha1.BlockedRepairDue, []string{"kubectl helenus repair " + third}, false},
		"a member is down": {func(w *world) { w.absent[second] = true; w.agents() }, v1alpha1.BlockedMemberDown,
			[]string{second, "takes a part over"}, false},
		"somebody joins by hand": {func(w *world) {
			w.strangers = []facts.Endpoint{{Address: "10.9.9.9", Status: facts.StatusBootstrap, Live: true}}
			w.agents()
		}, v1alpha1.BlockedTopologyChangeInProgress, []string{"10.9.9.9"}, false},
		"a host is cordoned": {func(w *world) { w.snapshot.Hosts[host].Spec.Unschedulable = true },
			v1alpha1.BlockedHostCordoned, []string{host}, false},
		"the system keyspaces do not": {func(w *world) {
			w.replicated(map[string]string{"system_auth": "NetworkTopologyStrategy {dc1=5}"})
		}, "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := six(t)
			w.change(nodesPerRack(1))
			c.change(w)
			made := next(w)
			if c.reason == "" {
				if w.pass(); w.settle().Stalled != nil || len(w.snapshot.Ledger.Members) != 3 {
					t.Errorf("not shrunk:\n%s", next(w))
				}
				return
			}
			i := slices.IndexFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool { return b.Reason == c.reason })
			if i < 0 || made.Blocked[i].Step != string(ledger.LeaveNode) || (made.Stalled != nil) != c.stalled {
				t.Fatalf("blocked %+v, stalled %+v", made.Blocked, made.Stalled)
			}
			for _, word := range c.words {
				if !strings.Contains(made.Blocked[i].Message, word) {
					t.Errorf("message %q does not say %q", made.Blocked[i].Message, word)
				}
			}
			for _, write := range made.Writes {
				if write.Verb == plan.PutLedger && write.Ledger.Step != nil {
					t.Errorf("a step is opened: %s", write)
				}
			}
		})
	}
}

// What a guard finds holds nothing back while a person says so, and no other guard is overruled.
func TestAGuardIsOverruledForATime(t *testing.T) {
	w := six(t)
	w.change(nodesPerRack(1))
	w.snapshot.Hosts[host].Spec.Unschedulable = true
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Exceptions = []v1alpha1.Exception{{Name: "over", Type: v1alpha1.ExceptionOverrideGuard,
			Guard: v1alpha1.OverrideHostCordoned, Reason: "next week", Until: metav1.NewTime(w.now.Add(time.Hour))}}
	})
	blocked := func(made plan.Plan) (out []v1alpha1.Reason) {
		for _, b := range made.Blocked {
			out = append(out, b.Reason)
		}
		return out
	}
	made := next(w)
	if e := made.Exceptions; len(made.Blocked) > 0 || len(e) != 1 || e[0].UsedAt == nil ||
		!strings.Contains(e[0].Message, "(next week), which has found: host "+host) {
		t.Errorf("blocked %v, exceptions %+v", blocked(made), e)
	}
	w.snapshot.Cluster.Status.Exceptions = made.Exceptions
	w.snapshot.Hosts[host].Spec.Unschedulable = false
	w.now = w.now.Add(time.Minute)
	if e := next(w).Exceptions[0]; !e.UsedAt.Equal(made.Exceptions[0].UsedAt) || e.Message != made.Exceptions[0].Message {
		t.Errorf("it becomes %+v", e)
	}
	w.snapshot.Hosts[host].Spec.Unschedulable = true
	w.snapshot.Ledger.RepairDue = []ledger.RepairDue{{Node: third, Reason: v1alpha1.RepairCommitLogLost}}
	if got := blocked(next(w)); !slices.Equal(got, []v1alpha1.Reason{v1alpha1.BlockedRepairDue}) {
		t.Errorf("with a repair due: blocked by %v", got)
	}
	w.snapshot.Ledger.RepairDue = nil
	w.now = w.now.Add(time.Hour)
	if got := blocked(next(w)); !slices.Equal(got, []v1alpha1.Reason{v1alpha1.BlockedHostCordoned}) {
		t.Errorf("when its time is over: blocked by %v", got)
	}
}

// fill the data volume of every node with its own data.
func (w *world) fill(bytes int64) {
	for _, n := range w.snapshot.Records() {
		n.Agent.Space = &facts.Space{Capacity: 10 << 30, Free: 10<<30 - bytes, Data: bytes}
	}
}

// operationsWhile is what nodes are asked for, one after the other, until nothing is left to do.
func operationsWhile(w *world) []string {
	var out []string
	for range 200 {
		made := w.pass()
		for _, n := range w.snapshot.Records() {
			for _, o := range n.Record.Spec.Operations {
				what := fmt.Sprintf("%s on %s", o.Type, n.Name)
				if o.Arguments != nil && o.Arguments.Replication != nil {
					what += fmt.Sprintf(" %v exactly %v", o.Arguments.Replication, o.Arguments.Exact)
					w.replicated(map[string]string{"shop": w.keyspaces["shop"],
						"system_auth": "NetworkTopologyStrategy {dc1=2}"})
				}
				if !slices.Contains(out, what) {
					out = append(out, what)
				}
			}
		}
		if len(made.Writes) == 0 {
			break
		}
	}
	return out
}

// loweredTo is a ring of four whose planned replication factor was three.
func loweredTo(t *testing.T, factor int32, systemAuth string) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 2, 2))
	w.settle()
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=2}", "system_auth": systemAuth})
	w.settle()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].PlannedReplicationFactor = factor })
	return w
}

// They are repaired on every member before, and the members are cleaned up afterwards.
func TestALowerReplicationFactorGetsTheSystemKeyspacesFewerReplicas(t *testing.T) {
	w := loweredTo(t, 2, "NetworkTopologyStrategy {dc1=3}")
	members := slices.Clone(viewOf(w).Members())
	var want []string
	for _, name := range members {
		want = append(want, "Repair on "+name)
	}
	want = append(want, "AlterSystemKeyspaces on "+members[0]+" map[dc1:2] exactly true")
	got := operationsWhile(w)
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Fatalf("operations %q, want first %q", got, want)
	}
	cleaned := 0
	for _, what := range got[len(want):] {
		if strings.HasPrefix(what, "Cleanup on ") {
			cleaned++
		}
	}
	if l := w.snapshot.Ledger; cleaned != len(members) || l.Replication["dc1"] != 2 || len(l.Open()) > 0 {
		t.Errorf("%s; operations %q", ledgerInWords(l), got)
	}
}

// What a person has given them by hand stays, a factor that nothing has made use of is taken back
// without a step, and a member that is down holds it up by name.
func TestWhenTheSystemKeyspacesAreNotLowered(t *testing.T) {
	w := loweredTo(t, 3, "NetworkTopologyStrategy {dc1=4}")
	if got := operationsWhile(w); len(got) > 0 {
		t.Errorf("replicas given by hand: operations %q", got)
	}
	w = loweredTo(t, 2, "NetworkTopologyStrategy {dc1=2}")
	if got := operationsWhile(w); len(got) > 0 || w.snapshot.Ledger.Replication["dc1"] != 2 {
		t.Errorf("none is too many: operations %q, %s", got, ledgerInWords(w.snapshot.Ledger))
	}
	w = loweredTo(t, 2, "NetworkTopologyStrategy {dc1=3}")
	w.downSince(viewOf(w).Members()[0], w.now)
	if got := operationsWhile(w); len(got) > 0 || !says(next(w), v1alpha1.BlockedMemberDown, viewOf(w).Members()[0]) {
		t.Errorf("a member is down: operations %q, reported %+v", got, reported(next(w)))
	}
}

// Taken back while they are repaired, nothing is altered; a repair that is postponed has it wait.
func TestALowerReplicationFactorIsTakenBack(t *testing.T) {
	for _, back := range []bool{true, false} {
		w := loweredTo(t, 2, "NetworkTopologyStrategy {dc1=3}")
		w.until(func(s *ledger.Step) bool { return s.Kind == ledger.LowerSystemKeyspaces })
		if back {
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].PlannedReplicationFactor = 3 })
		} else {
			w.downSince(viewOf(w).Members()[3], w.now)
			w.now = w.now.Add(10 * time.Minute)
		}
		for _, what := range operationsWhile(w) {
			if strings.HasPrefix(what, "Alter") {
				t.Errorf("taken back %v: %s", back, what)
			}
		}
		if l := w.snapshot.Ledger; l.Replication["dc1"] != 3 || len(l.Open()) > 0 {
			t.Errorf("taken back %v: %s", back, ledgerInWords(l))
		}
	}
}

func TestTheSystemKeyspacesGetFewerReplicasBeforeANodeLeaves(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 2, 1))
	w.settle()
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=2}",
		"system_auth": "NetworkTopologyStrategy {dc1=3}"})
	w.settle()
	w.change(nodesPerRack(1))
	want := []string{"Repair on orders-dc1-r1-0", "Repair on orders-dc1-r1-1", "Repair on orders-dc1-r2-0",
		"AlterSystemKeyspaces on orders-dc1-r1-0 map[dc1:2] exactly true", "Decommission on orders-dc1-r1-1"}
	if got := operationsWhile(w); !slices.Equal(got, want) {
		t.Errorf("operations %q", got)
	}
	if l := w.snapshot.Ledger; len(l.Members) != 2 || l.Step != nil || l.SystemKeyspaces {
		t.Errorf("%s", ledgerInWords(l))
	}
}

// leaving is a ring of six of which the first is asked to leave, and what its agent says of that.
func leaving(t *testing.T, phase v1alpha1.OperationPhase) *world {
	t.Helper()
	w := six(t)
	when := metav1.NewTime(w.now)
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		status := v1alpha1.OperationStatus{ID: o.ID, Phase: phase, StartedAt: &when}
		switch {
		case o.Withdraw != nil && phase == "":
			status.Phase = v1alpha1.OperationWithdrawn
		case phase == "":
			return nil
		}
		if status.Phase.Final() {
			status.FinishedAt = &when
		}
		return []v1alpha1.OperationStatus{status}
	}
	w.change(nodesPerRack(1))
	w.until(func(s *ledger.Step) bool {
		return s.Kind == ledger.LeaveNode && len(w.snapshot.Nodes[newcomer].Record.Spec.Operations) > 0
	})
	return w
}

func TestALeaveIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		phase  v1alpha1.OperationPhase
		mode   facts.Mode
		stays  bool
		events []string
	}{
		"before it began":                {"", facts.ModeNormal, true, nil},
		"while it leaves":                {v1alpha1.OperationRunning, facts.ModeLeaving, false, nil},
		"killed before its data was out": {v1alpha1.OperationInterrupted, facts.ModeNormal, true, nil},
		"when Cassandra has failed":      {v1alpha1.OperationFailed, facts.ModeDecommissionFailed, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := leaving(t, c.phase)
			n := w.snapshot.Nodes[newcomer]
			n.Agent.Ring.Mode = c.mode
			w.change(nodesPerRack(2))
			for range 20 {
				if w.pass(); n.Record.Spec.Restart != nil {
					n.Agent.Ring.Mode = facts.ModeNormal
				}
			}
			if c.stays {
				w.wantOpen()
				if len(w.snapshot.Ledger.Members) != 6 || !slices.Contains(w.events, "LeaveTakenBack") ||
					n.Record.Spec.Restart != nil || len(n.Record.Spec.Operations) > 0 ||
					(n.Record.Status.Restart != nil) != (c.mode == facts.ModeDecommissionFailed) {
					t.Errorf("it does not stay:\n%s", next(w))
				}
				return
			}
			if s := w.snapshot.Ledger.Step; s == nil || s.Stage != ledger.StageLeave || n.Record.Spec.Restart != nil {
				t.Errorf("step %+v", s)
			}
		})
	}
}

// A node that was killed after it had streamed its data never starts again. A member that still
// sees it as a member removes it from the ring.
func TestANodeThatEndedWhileItLeft(t *testing.T) {
	w := leaving(t, v1alpha1.OperationInterrupted)
	n := w.snapshot.Nodes[newcomer]
	n.Agent.Ring, n.Agent.Process, n.Agent.Disk = nil, facts.ProcessAbsent, v1alpha1.DiskLeft
	seen := facts.Endpoint{Address: n.Agent.Address, HostID: hostID(newcomer), Status: facts.StatusLeaving,
		Tokens: []int64{1}}
	w.rumours = map[string][]facts.Endpoint{second: {seen}}
	w.agents()
	asked := ""
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		if o.Type == v1alpha1.OperationRemoveNode {
			asked, w.rumours, w.operate = n.Name+": "+o.Arguments.HostID, nil, nil
		}
		return []v1alpha1.OperationStatus{{ID: o.ID, Phase: v1alpha1.OperationSucceeded}}
	}
	w.until(func(*ledger.Step) bool { return asked != "" })
	if want := second + ": " + hostID(newcomer); asked != want || n.Record.Spec.State != v1alpha1.StateRunning {
		t.Errorf("removed by %s, want %s; state %s", asked, want, n.Record.Spec.State)
	}
	w.until(func(s *ledger.Step) bool { return s.Has("orders-dc1-r2-1") })
	if _, member := w.snapshot.Ledger.Members[newcomer]; member {
		t.Error("it is still a member")
	}
}

// Whatever was lost, what was begun is found again by what the node says.
func TestALedgerLostWhileANodeLeaves(t *testing.T) {
	for _, phase := range []v1alpha1.OperationPhase{"", v1alpha1.OperationRunning, v1alpha1.OperationSucceeded} {
		t.Run(string(phase), func(t *testing.T) {
			w := leaving(t, phase)
			n := w.snapshot.Nodes[newcomer]
			id := n.Record.Spec.Operations[0].ID
			switch phase { //nolint:exhaustive // the others are not tried here
			case v1alpha1.OperationSucceeded:
				n.Agent.Ring, n.Agent.Disk = nil, v1alpha1.DiskLeft
			case v1alpha1.OperationRunning:
				n.Agent.Ring.Mode = facts.ModeLeaving
			}
			w.snapshot.Ledger = nil
			w.agents()
			w.until(func(s *ledger.Step) bool { return s.Kind == ledger.LeaveNode })
			if s := w.snapshot.Ledger.Step; s.ID != ledger.OfIntent(id) || s.Stage != ledger.StageLeave {
				t.Errorf("step %+v, not that of %s", s, id)
			}
		})
	}
}

// What a node has left behind is nobody's: a node of its name does not join with it.
func TestTheClaimOfANodeThatHasLeft(t *testing.T) {
	w := six(t)
	w.change(nodesPerRack(1))
	made := w.settle()
	if !slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
		return n.Reason == v1alpha1.NoticeClaimUnused && slices.Contains(n.Nodes, newcomer)
	}) {
		t.Errorf("notices %+v", made.Notices)
	}
	w.held = map[string]v1alpha1.DiskState{newcomer: v1alpha1.DiskLeft}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	made = w.settle()
	i := slices.IndexFunc(made.Blocked,
		func(b v1alpha1.BlockedStep) bool { return b.Reason == v1alpha1.BlockedJoiningDiskNotEmpty })
	if i < 0 || !strings.Contains(made.Blocked[i].Message, "delete its claim and its pod") {
		t.Fatalf("blocked %+v", made.Blocked)
	}
	w.change(nodesPerRack(1))
	w.settle()
	w.wantNames(first, second, third)
}

// The nodes that are to leave are kept going as the others until it is their turn.
func TestANodeThatIsToLeaveIsKeptUp(t *testing.T) {
	w := six(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=5}"})
	w.change(nodesPerRack(1))
	w.settle()
	n := w.snapshot.Nodes[newcomer]
	n.Record, n.Pod = nil, nil
	w.held = map[string]v1alpha1.DiskState{newcomer: v1alpha1.DiskMember}
	w.settle()
	if n.Record == nil || n.Pod == nil || n.Record.Spec.Member == nil {
		t.Errorf("its record or its pod is not recreated: %+v", n)
	}
	w.change(setting("concurrent_reads", "16"))
	for range 20 {
		w.now = w.now.Add(time.Minute)
		w.settle()
	}
	if _, changed := n.Record.Spec.Configuration.CassandraYaml["concurrent_reads"]; !changed {
		t.Errorf("it does not take over a change: %+v\n%s", n.Record.Spec.Configuration, next(w))
	}
}
