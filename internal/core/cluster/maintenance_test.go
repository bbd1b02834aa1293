package cluster

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// cleaning is a ring that a node has joined, with a cleanup open, whose operations come to a phase;
// empty if they have not begun.
func cleaning(t *testing.T, phase *v1alpha1.OperationPhase) *world {
	t.Helper()
	w := formed(t)
	w.replicated(map[string]string{
		"shop": "NetworkTopologyStrategy {dc1=3}", "system_auth": "NetworkTopologyStrategy {dc1=3}",
	})
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		at := metav1.NewTime(w.now)
		said := n.Record.Status.Operation(o.ID)
		all := slices.DeleteFunc(slices.Clone(n.Record.Status.Operations),
			func(s v1alpha1.OperationStatus) bool { return s.ID == o.ID })
		switch {
		case said != nil && said.Phase.Final():
			return append(all, *said)
		case o.Withdraw != nil && *phase == "":
			return append(all, v1alpha1.OperationStatus{ID: o.ID, Phase: v1alpha1.OperationWithdrawn, FinishedAt: &at})
		case *phase == "":
			return all
		case *phase == v1alpha1.OperationRunning && said != nil:
			return append(all, *said)
		case *phase == v1alpha1.OperationRunning:
			return append(all, v1alpha1.OperationStatus{ID: o.ID, Phase: *phase, StartedAt: &at})
		}
		return append(all, v1alpha1.OperationStatus{ID: o.ID, Phase: *phase, StartedAt: &at, FinishedAt: &at,
			Message: "it says so"})
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.Cleanup })
	w.pass()
	return w
}

func grow(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[1].Nodes = ptr(int32(2)) }

// settles makes passes until the ledger is as it is to be.
func (w *world) settles(what string, done func(*ledger.Ledger) bool) {
	w.t.Helper()
	for range 60 {
		if done(w.snapshot.Ledger) {
			return
		}
		w.pass()
	}
	w.t.Fatalf("%s: %s", what, ledgerInWords(w.snapshot.Ledger))
}

func joins(l *ledger.Ledger) bool { return l.Step != nil && l.Step.Kind == ledger.JoinNode }

func TestAJoinSuspendsACleanup(t *testing.T) {
	for name, phase := range map[string]v1alpha1.OperationPhase{"that runs": v1alpha1.OperationRunning,
		"that has not begun": ""} {
		t.Run(name, func(t *testing.T) {
			w := cleaning(t, &phase)
			id := w.snapshot.Ledger.Maintenance[0].ID
			w.change(grow)
			if phase == v1alpha1.OperationRunning {
				for range 20 {
					w.pass()
				}
				named := func(made plan.Plan) bool {
					return slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
						return b.Reason == v1alpha1.BlockedMaintenanceRunning && b.Step == string(ledger.JoinNode) &&
							strings.Contains(b.Message, "Cleanup on node "+b.Nodes[0]+" since 2026-11-20T")
					})
				}
				early := w.pass()
				w.now = w.now.Add(10 * time.Minute)
				if late := w.pass(); named(early) || early.Wake > 10*time.Minute || !named(late) {
					t.Errorf("an operation that runs is named after 10 minutes: early %s\nlate %s", early, late)
				}
				if l := w.snapshot.Ledger; l.Step != nil || len(l.Maintenance) != 1 {
					t.Fatalf("not waited for the operation that runs: %s", ledgerInWords(l))
				}
				phase = v1alpha1.OperationSucceeded
			}
			w.settles("the join has not begun", joins)
			if l := w.snapshot.Ledger; len(l.Maintenance) != 0 || len(l.Suspended) != 1 || l.Suspended[0].ID != id {
				t.Fatalf("the cleanup is not suspended: %s", ledgerInWords(l))
			}
			phase = v1alpha1.OperationSucceeded
			w.settles("the cleanup is not resumed", func(l *ledger.Ledger) bool {
				return l.Step == nil && len(l.Suspended) == 0
			})
			w.settle()
			if l := w.snapshot.Ledger; len(l.Cleanup) != 0 || len(l.Members) != 5 || len(l.Open()) != 0 {
				t.Errorf("not all is done: %s", ledgerInWords(l))
			}
		})
	}
}

// A join that the ring refuses does not hold up a cleanup.
func TestACleanupIsNotSuspendedForWhatIsRefused(t *testing.T) {
	phase := v1alpha1.OperationRunning
	w := cleaning(t, &phase)
	w.absent["orders-dc1-r2-1"] = true
	w.change(grow)
	for range 10 {
		w.pass()
	}
	phase = v1alpha1.OperationSucceeded
	w.settles("the cleanup does not end", func(l *ledger.Ledger) bool {
		return len(l.Maintenance) == 0 && len(l.Cleanup) < 2
	})
}

func TestACleanupThatFailsIsPostponed(t *testing.T) {
	phase := v1alpha1.OperationFailed
	w := cleaning(t, &phase)
	node := w.snapshot.Ledger.Maintenance[0].Nodes[0]
	for range 600 {
		if w.snapshot.Ledger.IsPostponed(ledger.Cleanup, node, w.now) {
			break
		}
		w.pass()
	}
	l := w.snapshot.Ledger
	if !l.IsPostponed(ledger.Cleanup, node, w.now) || !strings.Contains(strings.Join(l.Cleanup, " "), node) {
		t.Fatalf("it is not postponed, or no longer due: %s", ledgerInWords(l))
	}
	made := w.settle()
	if len(w.snapshot.Ledger.Maintenance) > 0 {
		t.Errorf("it goes on: %s", made)
	}
	said := false
	for _, n := range made.Notices {
		said = said || n.Reason == v1alpha1.NoticeOperationPostponed && strings.Contains(n.Message, "it says so")
	}
	if !said || made.Wake > time.Hour {
		t.Errorf("it is not said: %+v", made.Notices)
	}
	w.change(grow)
	w.settles("no node joins", joins)
	phase = v1alpha1.OperationSucceeded
	w.settle()
	w.now = w.now.Add(ledger.PostponedFor)
	w.settle()
	if l := w.snapshot.Ledger; len(l.Cleanup) != 0 || len(l.Postponed) != 0 {
		t.Errorf("it is not retried: %s", ledgerInWords(l))
	}
}

// downSince has a node be down, by its pod, since a time.
func (w *world) downSince(name string, since time.Time) {
	w.absent[name], w.dead[name] = true, true
	w.agents()
	w.snapshot.Nodes[name].Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady,
		Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)}}
}

// What has begun on a node whose pod is gone has ended with it. Nobody waits for the node for
// longer than a while.
func TestACleanupLeavesANodeWhosePodIsGone(t *testing.T) {
	phase := v1alpha1.OperationRunning
	w := cleaning(t, &phase)
	node := w.snapshot.Ledger.Maintenance[0].Nodes[0]
	w.snapshot.Nodes[node].Record.Status.PodUID = "former"
	w.downSince(node, w.now)
	w.settle()
	if l := w.snapshot.Ledger; len(l.Maintenance) == 0 || len(l.Postponed) > 0 {
		t.Fatalf("it is not waited for: %s", ledgerInWords(l))
	}
	w.now = w.now.Add(10 * time.Minute)
	made := w.settle()
	if l := w.snapshot.Ledger; !l.IsPostponed(ledger.Cleanup, node, w.now) || !slices.Contains(l.Cleanup, node) {
		t.Errorf("it is not postponed: %s", ledgerInWords(l))
	}
	if !slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
		return n.Reason == v1alpha1.NoticeOperationPostponed && strings.Contains(n.Message, "node "+node+" is down")
	}) {
		t.Errorf("it is not said: %+v", made.Notices)
	}
	// It is no more due after its time than before, for as long as the node is down.
	w.now = w.now.Add(2 * ledger.PostponedFor)
	if later := w.settle(); !reflect.DeepEqual(later.Notices, made.Notices) ||
		!reflect.DeepEqual(later.Current, made.Current) {
		t.Errorf("it is retried though the node is down: %+v, was %+v", later, made)
	}
	phase, w.absent[node] = v1alpha1.OperationSucceeded, false
	w.agents()
	w.snapshot.Nodes[node].Pod.Status.Conditions = nil
	w.settle()
	if l := w.snapshot.Ledger; len(l.Cleanup) > 0 || len(l.Postponed) > 0 {
		t.Errorf("it is not retried once the node is up: %s", ledgerInWords(l))
	}
}

// A repair that a member which is down keeps from beginning is left for later, and what conflicts
// with it does not wait for it.
func TestARepairIsPostponedForAMemberThatIsDown(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 2, 1))
	w.settle()
	w.replicated(map[string]string{"system_auth": "NetworkTopologyStrategy {dc1=1}"})
	w.snapshot.Ledger.SystemKeyspaces = true
	w.until(func(s *ledger.Step) bool { return s.Stage == ledger.StageOperations })
	w.replicated(map[string]string{"system_auth": "NetworkTopologyStrategy {dc1=2}"})
	w.snapshot.Ledger.Cleanup = []string{firstOfRack}
	w.downSince(ofNextRack, w.now)
	w.settle()
	if l := w.snapshot.Ledger; len(l.Maintenance) != 1 || l.Maintenance[0].Kind != ledger.RaiseSystemKeyspaces {
		t.Fatalf("not the repair alone is open: %s", ledgerInWords(l))
	}
	w.now = w.now.Add(10 * time.Minute)
	w.settle()
	l := w.snapshot.Ledger
	if len(l.PostponedOn(ledger.RaiseSystemKeyspaces)) == 0 || !l.SystemKeyspaces || len(l.Cleanup) > 0 {
		t.Fatalf("the repair is not postponed, or the cleanup waits for it: %s", ledgerInWords(l))
	}
	delete(w.absent, ofNextRack)
	w.agents()
	w.now = w.now.Add(ledger.PostponedFor)
	w.settle()
	if l := w.snapshot.Ledger; len(l.Postponed) > 0 || l.SystemKeyspaces {
		t.Errorf("it is not repaired later: %s", ledgerInWords(l))
	}
}

// What follows joins does not wait for a node that cannot come.
func TestFollowUpsDoNotWaitForANodeThatCannotCome(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
		"system_auth": "NetworkTopologyStrategy {dc1=3}"})
	w.absent["orders-dc1-r2-1"] = true
	w.change(nodesPerRack(2))
	made := w.settle()
	if l := w.snapshot.Ledger; len(l.Members) != 5 || len(l.Cleanup) == 0 || len(l.Open()) > 0 ||
		made.Wake > 10*time.Minute {
		t.Fatalf("two have joined, and what follows waits for the third: %s\n%s", ledgerInWords(l), made)
	}
	w.now = w.now.Add(10 * time.Minute)
	made = w.settle()
	if l := w.snapshot.Ledger; len(l.Cleanup) > 0 || l.SystemKeyspaces {
		t.Errorf("it waits for ever: %s\n%s", ledgerInWords(l), made)
	}
	if !slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
		return b.Reason == v1alpha1.BlockedJoiningNodeNotReady && slices.Equal(b.Nodes, []string{"orders-dc1-r2-1"})
	}) {
		t.Errorf("it is not said who cannot come:\n%s", made)
	}
	delete(w.absent, "orders-dc1-r2-1")
	w.agents()
	w.settle()
	if l := w.snapshot.Ledger; len(l.Members) != 6 || len(l.Cleanup) > 0 {
		t.Errorf("it comes after all: %s", ledgerInWords(l))
	}
}
