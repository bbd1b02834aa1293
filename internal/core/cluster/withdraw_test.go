package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

const inDC2, alsoInDC2 = "orders-dc2-r1-0", "orders-dc2-r2-0"

// twoDatacenters serve, with keyspaces in both, and in the first alone.
func twoDatacenters(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1), datacenter("dc2", 1, 1))
	w.settle()
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=2, dc2=2}",
		"cart": "NetworkTopologyStrategy {dc1=2, dc2=2}", "local": "NetworkTopologyStrategy {dc1=2}",
		"system_auth": "NetworkTopologyStrategy {dc1=2, dc2=2}"})
	w.settle()
	w.alters()
	return w
}

// alters has keyspaces altered as nodes are asked to.
func (w *world) alters() {
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		if n.Record.Status.Operation(o.ID) != nil || o.Withdraw != nil {
			return n.Record.Status.Operations
		}
		keyspaces := maps.Clone(w.keyspaces)
		defer func() { w.keyspaces = keyspaces }()
		alter := func(name string, replicas map[string]int32) {
			at, named := replicas["dc2"]
			if !named {
				return
			}
			without, _, _ := strings.Cut(strings.TrimSuffix(keyspaces[name], "}"), ", dc2")
			if keyspaces[name] = without + "}"; at > 0 {
				keyspaces[name] = fmt.Sprintf("%s, dc2=%d}", without, at)
			}
		}
		switch o.Type {
		case v1alpha1.OperationAlterKeyspaces:
			for _, k := range o.Arguments.KeyspaceReplication {
				alter(k.Keyspace, k.Replication)
			}
		case v1alpha1.OperationAlterSystemKeyspaces:
			alter("system_auth", o.Arguments.Replication)
		case v1alpha1.OperationDecommission:
			n.Agent.Ring, n.Agent.Disk, n.Agent.Phase = nil, v1alpha1.DiskLeft, v1alpha1.PhaseLeft
		default:
		}
		return []v1alpha1.OperationStatus{{ID: o.ID, Phase: v1alpha1.OperationSucceeded}}
	}
}

func withdraws(keyspaces ...string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[1].Withdraw = &v1alpha1.Withdraw{Keyspaces: keyspaces, All: len(keyspaces) == 0}
	}
}

func stays(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].Withdraw = nil }

func takenOut(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = s.Datacenters[:1] }

// settled makes passes until nothing is left to do, and longer than hints are in memory.
func (w *world) settled() plan.Plan {
	w.t.Helper()
	w.settle()
	w.now = w.now.Add(time.Minute)
	return w.settle()
}

func (w *world) inDC2() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w.keyspaces)) {
		if strings.Contains(w.keyspaces[name], "dc2") {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

func (w *world) wantTraffic(want v1alpha1.ClientTraffic, nodes ...string) {
	w.t.Helper()
	for _, name := range nodes {
		if got := w.snapshot.Nodes[name].Record.Spec.ClientTraffic; got != want {
			w.t.Errorf("client traffic of node %s is %s, want %s", name, got, want)
		}
	}
}

func traceDatacenterLeaves(t *testing.T, s *trace) {
	w := twoDatacenters(t)
	s.ledger = w.snapshot.Ledger
	s.say("The second datacenter is removed from the replication of its keyspaces.")
	w.change(withdraws())
	s.runUntilIdle(w, nil)
	w.now = w.now.Add(12 * time.Second)
	s.say("\nHints that were in memory are counted.")
	s.runUntilIdle(w, nil)
	s.say("\nIt is taken out of the spec.")
	w.change(takenOut)
	s.runUntilIdle(w, nil)
}

// The first member may not know yet of a keyspace that was made just now: the datacenter is not
// empty before all say so.
func TestADatacenterIsEmptyOnceAllMembersSaySo(t *testing.T) {
	w := twoDatacenters(t)
	w.change(withdraws())
	r := w.snapshot.Nodes["orders-dc1-r1-0"].Agent.Ring
	r.Keyspaces, r.SchemaVersion = nil, "older"
	if made := w.pass(); len(made.Recommended) > 0 || len(made.Writes) > 0 {
		t.Errorf("%+v is recommended, and this is written: %v", made.Recommended, made.Writes)
	}
}

// What is closed, repaired, altered and gone, in which order.
func TestADatacenterLeaves(t *testing.T) {
	w := twoDatacenters(t)
	w.change(withdraws())
	w.settled()
	if w.inDC2() != "system_auth" {
		t.Errorf("replicas in dc2: %s", w.inDC2())
	}
	w.wantTraffic(v1alpha1.TrafficClosed, inDC2, alsoInDC2)
	w.wantTraffic(v1alpha1.TrafficOpen, "orders-dc1-r1-0", "orders-dc1-r2-0")
	if r := w.settle().Recommended; len(r) != 1 || r[0].Operation != "RemoveDatacenter" {
		t.Errorf("recommended %+v", r)
	}
	w.change(takenOut)
	w.settled()
	w.wantNames("orders-dc1-r1-0", "orders-dc1-r2-0")
	w.wantOpen()
	l := w.snapshot.Ledger
	if w.inDC2() != "" || l.IsFormed("dc2") || len(l.Closed) > 0 || len(l.Members) != 2 || l.Replication["dc2"] > 0 {
		t.Errorf("replicas in dc2: %q, %s", w.inDC2(), ledgerInWords(l))
	}
	if s := w.snapshot.Shared; s.Services["orders-dc2"] != nil || s.Budgets["orders-dc2"] != nil {
		t.Error("a service or budget of the datacenter is left")
	}
	if claims := w.snapshot.Nodes[inDC2].Claims; len(claims) != 1 {
		t.Errorf("claims %v", claims)
	}
}

func TestWhatKeepsADatacenterFromLeaving(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		reason v1alpha1.Reason
		words  string
	}{
		"a keyspace is there": {func(w *world) { w.change(takenOut) }, v1alpha1.BlockedDatacenterInUse,
			"keyspace cart, shop has replicas there"},
		"a keyspace is left": {func(w *world) {
			w.change(withdraws("shop"))
			w.settled()
			w.change(takenOut)
		}, v1alpha1.BlockedDatacenterInUse, "keyspace cart has replicas there"},
		"a keyspace is nowhere else": {func(w *world) {
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc2=2}"})
			w.change(withdraws())
		}, v1alpha1.BlockedOnlyReplicas, "keyspace shop has replicas in datacenter dc2, and in none"},
		"a member is down": {func(w *world) {
			w.absent["orders-dc1-r1-0"] = true
			w.change(withdraws())
			w.agents()
		}, v1alpha1.BlockedMemberDown, "orders-dc1-r1-0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := twoDatacenters(t)
			c.change(w)
			made := w.settle()
			i := slices.IndexFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool { return b.Reason == c.reason })
			if i < 0 || !strings.Contains(made.Blocked[i].Message, c.words) || w.snapshot.Ledger.Step != nil ||
				len(w.snapshot.Ledger.Members) != 4 {
				t.Errorf("not blocked by %s:\n%s", c.reason, made)
			}
		})
	}
	w := twoDatacenters(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Name, s.Datacenters[1].Name = "a", "b" })
	wantStalled(t, next(w), v1alpha1.ReasonUnsupportedChange, "lacks every datacenter of the ring (dc1, dc2)")
}

// At each stage the spec is taken back: the datacenter serves clients again, with the keyspaces
// that it has then.
func TestADatacenterIsToStayAfterAll(t *testing.T) {
	for _, stage := range []ledger.Stage{ledger.StageClose, ledger.StageDeliver, ledger.StageOperations,
		ledger.StageKeyspaces, ""} {
		t.Run(string(stage), func(t *testing.T) {
			w := twoDatacenters(t)
			w.change(withdraws())
			w.atStage(ledger.WithdrawDatacenter, stage)
			was := w.inDC2()
			w.change(stays)
			w.settled()
			w.wantOpen()
			if l := w.snapshot.Ledger; len(l.Closed) > 0 || w.inDC2() != was {
				t.Errorf("%s, replicas in dc2: %s, were %s", ledgerInWords(l), w.inDC2(), was)
			}
		})
	}
	t.Run("taken out", func(t *testing.T) {
		w := twoDatacenters(t)
		had := w.snapshot.Cluster.Spec.DeepCopy().Datacenters
		w.change(withdraws())
		w.settled()
		w.change(takenOut)
		w.until(func(s *ledger.Step) bool { return strings.Contains(w.keyspaces["system_auth"], "dc2=1") })
		w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = had })
		w.settled()
		w.wantOpen()
		if !strings.Contains(w.keyspaces["system_auth"], "dc2=2") || len(w.snapshot.Ledger.Members) != 4 {
			t.Errorf("system_auth has %s, %s", w.keyspaces["system_auth"], ledgerInWords(w.snapshot.Ledger))
		}
	})
}

// A member is lost while what it had is repaired, and the datacenter is taken out of the spec: the
// withdrawal waits until it is replaced, and does all of it again.
func TestAMemberIsLostWhileItsDatacenterGivesUpKeyspaces(t *testing.T) {
	w := twoDatacenters(t)
	w.change(withdraws())
	w.atStage(ledger.WithdrawDatacenter, ledger.StageOperations)
	w.change(takenOut)
	lost := w.running[w.snapshot.Nodes[inDC2].Pod.UID]
	lost.Ring, lost.Disk, lost.Phase = nil, v1alpha1.DiskEmpty, v1alpha1.PhaseDataLost
	lost.Process, w.snapshot.Nodes[inDC2].Record.Status.Disk = facts.ProcessAbsent, v1alpha1.DiskEmpty
	w.agents()
	w.atStage(ledger.ReplaceNode, ledger.StageRemove) // nobody has gossip of it here
	if s := w.snapshot.Ledger.Suspended; len(s) != 1 || s[0].Kind != ledger.WithdrawDatacenter ||
		s[0].Stage != ledger.StageDeliver || w.inDC2() == "" {
		t.Errorf("not suspended: %s, replicas in dc2: %s", ledgerInWords(w.snapshot.Ledger), w.inDC2())
	}
	w.settled()
	w.settled()
	if w.inDC2() != "system_auth" {
		t.Errorf("replicas in dc2: %s, %s", w.inDC2(), ledgerInWords(w.snapshot.Ledger))
	}
}

// atStage passes until a step of a kind is in a stage; without one until nothing is left to do.
func (w *world) atStage(kind ledger.Kind, stage ledger.Stage) {
	w.t.Helper()
	if stage == "" {
		w.settled()
		return
	}
	for range 400 {
		if s := w.snapshot.Ledger.Step; s != nil && s.Kind == kind && s.Stage == stage {
			return
		}
		w.pass()
		w.now = w.now.Add(5 * time.Second)
	}
	w.t.Fatalf("%s does not come to stage %s", kind, stage)
}

// A datacenter that is to hold no keyspace is neither added nor formed, whatever the ledger has
// forgotten: it does not open, and it leaves in the end.
func TestALostLedgerWhileADatacenterLeaves(t *testing.T) {
	stages := []struct {
		kind  ledger.Kind
		stage ledger.Stage
	}{{ledger.WithdrawDatacenter, ledger.StageClose}, {ledger.WithdrawDatacenter, ledger.StageDeliver},
		{ledger.WithdrawDatacenter, ledger.StageOperations}, {ledger.WithdrawDatacenter, ledger.StageKeyspaces},
		{ledger.WithdrawDatacenter, ""}, {ledger.LeaveNode, ledger.StageOperations},
		{ledger.LeaveNode, ledger.StageKeyspaces}, {ledger.LeaveNode, ledger.StageLeave}, {ledger.LeaveNode, ""}}
	for _, at := range stages {
		t.Run(fmt.Sprintf("%s-%s", at.kind, at.stage), func(t *testing.T) {
			w := twoDatacenters(t)
			w.change(withdraws())
			if at.kind == ledger.WithdrawDatacenter {
				w.atStage(at.kind, at.stage)
			} else {
				w.settled()
				w.change(takenOut)
				w.atStage(at.kind, at.stage)
			}
			closed := w.snapshot.Nodes[inDC2].Record != nil &&
				w.snapshot.Nodes[inDC2].Record.Spec.ClientTraffic == v1alpha1.TrafficClosed
			if at.stage == ledger.StageClose { // its operator ended between two records
				w.snapshot.Nodes[alsoInDC2].Record.Spec.ClientTraffic = v1alpha1.TrafficOpen
			}
			w.snapshot.Ledger = nil
			for range 100 {
				if len(w.pass().Writes) == 0 {
					break
				}
				if s := w.snapshot.Ledger.Step; s != nil && (s.Kind == ledger.AddDatacenter ||
					s.Kind == ledger.AdoptRing) {
					t.Fatalf("it is added, or adopted: %s", ledgerInWords(w.snapshot.Ledger))
				}
				if n := w.snapshot.Nodes[inDC2]; closed && n.Record != nil && n.Record.Spec.Member != nil {
					w.wantTraffic(v1alpha1.TrafficClosed, inDC2)
				}
			}
			w.settled()
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = s.Datacenters[:1] })
			w.settled()
			w.wantNames("orders-dc1-r1-0", "orders-dc1-r2-0")
			if l := w.snapshot.Ledger; w.inDC2() != "" || len(l.Closed) > 0 || l.IsFormed("dc2") {
				t.Errorf("replicas in dc2: %q, %s", w.inDC2(), ledgerInWords(l))
			}
		})
	}
}

// A ring that stops and starts opens no datacenter that was closed, and a record that is recreated
// lets no client in.
func TestAClosedDatacenterStaysClosed(t *testing.T) {
	w := twoDatacenters(t)
	w.change(withdraws())
	w.settled()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Stopped = true })
	w.settled()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Stopped = false })
	w.settled()
	w.snapshot.Nodes[inDC2].Record = nil
	w.settled()
	w.wantTraffic(v1alpha1.TrafficClosed, inDC2, alsoInDC2)
	w.wantTraffic(v1alpha1.TrafficOpen, "orders-dc1-r1-0", "orders-dc1-r2-0")
	if s := w.snapshot.Ledger.Step; s != nil {
		t.Errorf("step %s is open in stage %s", s.Kind, s.Stage)
	}
}
