package replace

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/words"
)

// Asked are the members whose disks a person gives up, although they are not lost.
type Asked struct {
	// Kind of the steps.
	Kind ledger.Kind
	// Removes says that nobody takes their place: they are down, and are removed from the ring.
	Removes bool
	// Next is the member whose turn it is, and the id of what asks for it; no member if none is,
	// and no id if what asks has none.
	Next func(*assess.View) (l ledger.Lost, id string)
	// Over says why what has an id does not ask for it any more; empty while it does.
	Over func(v *assess.View, id, node string) string
	// Take has a record take over what the node is to be in its new pod. Nil: nothing.
	Take func(*assess.View, *facts.Node) func(*v1alpha1.CassandraNodeSpec)
}

// Planned has a node take the place of a member whose disk is given up: it is stopped in order
// first, the others are repaired, and only then its volumes are left, or its pod where that has its
// data. Until then its disk is as it was, and it starts again on that if anything speaks against
// the replacement.
func Planned(rules guard.Rules, stale Stale, asked Asked) procedure.Procedure {
	r := replacer{rules, stale, &asked}
	return procedure.Procedure{
		Kind: asked.Kind, Class: ledger.Topology, MovesRanges: true,
		Understands: procedure.Understands[State],
		Runs:        []v1alpha1.OperationType{v1alpha1.OperationRepair, v1alpha1.OperationRemoveNode},
		Due:         r.duePlanned,
		Stages: []procedure.Stage{{Name: ledger.StageHints, Run: r.awaitHints}, {Name: ledger.StageDrain, Run: r.drain},
			{Name: ledger.StageOperations, Run: r.repair}, {Name: ledger.StageTickets, Run: r.await},
			{Name: ledger.StageRemove, Run: r.remove}, {Name: ledger.StageOpen, Run: end}},
	}
}

func (r replacer) duePlanned(v *assess.View) *procedure.Proposal {
	given, id := r.asked.Next(v)
	if given.Node == "" {
		return nil
	}
	n, what := v.Live(given.Node), "replacing"
	if r.asked.Removes {
		what = "removing"
	}
	p := &procedure.Proposal{What: what + " node " + given.Node}
	if n == nil {
		p.Wait = "until node " + given.Node + " has its record again"
		return p
	}
	opening, refusals := open(v, given)
	if len(refusals) == 0 {
		opening.ID, opening.Why = id, "the disk of node "+given.Node+" is given up"
		opening.EventMessage = fmt.Sprintf("%s node %s (host id %s), whose disk is given up", what, given.Node,
			given.HostID)
		opening.ResultMessage = opening.EventMessage
	}
	// The ledger that had its step was lost:
	if n.Record.Spec.State == v1alpha1.StateStopped && len(refusals) == 0 && id != "" {
		p.Lost = &ledger.Step{ID: id, Kind: r.asked.Kind, Class: ledger.Topology, Stage: ledger.StageDrain,
			Generation: v.Cluster.Generation, OpenedAt: v.Now, StageSince: v.Now, Datacenters: opening.Datacenters,
			Nodes: slices.Sorted(slices.Values(opening.Nodes)), State: ledger.Encoded(opening.State)}
		return p
	}
	p.Refusals = slices.Concat(guard.Check(others(v, given.Node), r.rules.RollOut...), refusals)
	if r.asked.Removes {
		p.Refusals = slices.Concat(p.Refusals, r.refusals(v, given.Node), r.without(v, given.Node))
	} else {
		p.Refusals = slices.Concat(p.Refusals, lasting(r.refusals(v, given.Node)))
	}
	p.Open = func() (*procedure.Opening, []guard.Refusal) { return opening, nil }
	return p
}

// without are what speaks against the ring that is left, if the spec does not describe the node any
// more. What is due on the others cannot all be done while it is down.
func (r replacer) without(v *assess.View, node string) []guard.Refusal {
	view := v.AnyRing()
	if view == nil || !v.Leaves(node) {
		return nil
	}
	now, err := ring.New(view.Nodes())
	if err != nil {
		return []guard.Refusal{{Reason: v1alpha1.BlockedRingViewsDiffer, Until: "all members see the same ring",
			Finding: guard.Finding{Message: err.Error()}}}
	}
	found := guard.Check(guard.Leaving{Snapshot: v.Snapshot, Leavers: []string{node}, Stay: others(v, node).Names,
		View: view, Ring: now, Keyspaces: assess.KeyspacesOf(view)}, r.rules.Leaving...)
	found = slices.DeleteFunc(found, func(f guard.Refusal) bool { return f.Reason == v1alpha1.BlockedRepairDue })
	for i := range found {
		found[i].Stalled = "" // the spec is as it should be
	}
	return found
}

// lasting are refusals beside that of a member which is still up, or is not seen down yet.
func lasting(refusals []guard.Refusal) []guard.Refusal {
	return slices.DeleteFunc(refusals,
		func(r guard.Refusal) bool { return r.Reason == v1alpha1.BlockedReplacedMemberSeenUp })
}

// stopWithin is for how long an agent may begin to stop its node, and how long it then takes to
// say so.
const stopWithin = 5 * time.Minute

// drain has the node stopped, and its pod deleted: from then on nothing has its volumes. A pod that
// has the data itself stays until there is no way back.
func (r replacer) drain(v *assess.View, s *procedure.Step) plan.Result {
	node, state := of(s)
	if result, back := r.back(v, s, node); back {
		return result
	}
	n := v.Live(node)
	what := fmt.Sprintf("node %s gives up its disk: it stops", node)
	s.Describe(0, "%s", what)
	until := n.Record.Spec.StopNotAfter
	switch {
	case n.Record.Spec.State != v1alpha1.StateStopped:
		notAfter := metav1.NewTime(v.Now.Add(stopWithin))
		s.UpdateRecord(node, true, "its disk is given up", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.State, spec.StopNotAfter = v1alpha1.StateStopped, &notAfter
		})
		return plan.Acting("%s", what)
	case n.Pod == nil:
		return r.proceed(v, s, node, state)
	case n.Pod.DeletionTimestamp != nil:
		return plan.Waiting("%s: waiting until its pod is gone", what)
	case v.IsDown(n) && v.HoldsData(n):
		return r.proceed(v, s, node, state)
	case v.IsDown(n):
		s.DeletePod(n, "its node gives up its disk, and is stopped")
		return plan.Acting("node %s is stopped", node)
	case v.Of(node).Process == assess.Running && until != nil && v.Now.After(until.Add(stopWithin)) &&
		n.Record.Status.Phase != v1alpha1.PhaseStopping:
		return startAgain(v, s, node, "it was not stopped in time")
	}
	why := assess.WhyNoAnswer(n)
	if n.CurrentAgent() != nil {
		why = n.Record.Status.Message
	}
	s.Describe(0, "%s: %s", what, why)
	return plan.Waiting("%s: %s", what, why)
}

// keepsDisk ends a replacement for which nobody asks any more, or that another member would suffer
// from, as long as the disk is there.
func (r replacer) keepsDisk(v *assess.View, s *procedure.Step, node string) (plan.Result, bool) {
	why := r.asked.Over(v, s.ID(), node)
	if unseen := guard.Check(others(v, node), r.rules.Seen...); why == "" && len(unseen) > 0 {
		why = unseen[0].Message
	}
	n := v.Live(node)
	switch stopped := v.Ledger.StepByID(s.ID()).Stage == ledger.StageOperations; {
	case why != "":
	case n == nil:
		return plan.Waiting("waiting for the record of %s, which is recreated", node), true
	case stopped && (n.Record.Spec.State != v1alpha1.StateStopped || (n.Pod != nil) != v.HoldsData(n)):
		why = "it has been started again"
	default:
		return plan.Result{}, false
	}
	return startAgain(v, s, node, why), true
}

// startAgain has the node start again on its disk, and closes the step.
func startAgain(v *assess.View, s *procedure.Step, node, why string) plan.Result {
	s.Describe(0, "node %s keeps its disk: %s", node, why)
	n := v.Live(node)
	if n == nil {
		return plan.Waiting("waiting for the record of %s, which is recreated", node)
	}
	if n.Record.Spec.State == v1alpha1.StateStopped {
		s.UpdateRecord(node, true, why, func(spec *v1alpha1.CassandraNodeSpec) {
			spec.State, spec.StopNotAfter = v1alpha1.StateRunning, nil
		})
		return plan.Acting("node %s starts again: %s", node, why)
	}
	if running := s.Cancel(why); len(running) > 0 {
		return plan.Waiting("node %s keeps its disk: waiting for %s", node, words.List(running, 3))
	}
	if s.ClearOperations(s.Nodes()) {
		return plan.Acting("the operations are over")
	}
	s.Close(true, v1alpha1.StepWithdrawn, words.Shorten("node "+node+" keeps its disk: "+why, 512))
	return plan.Acting("node %s keeps its disk: %s", node, why)
}
