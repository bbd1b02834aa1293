package upkeep

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// Exceptions copies a person's word about single nodes into their records, and takes it out again
// when it is gone from the spec or its time is over. It holds nothing up.
func (k *Keeper) Exceptions() plan.Result {
	stop, start := map[string]*v1alpha1.Debug{}, map[string]*v1alpha1.StartAnyway{}
	for i := range k.Cluster.Spec.Exceptions {
		e := &k.Cluster.Spec.Exceptions[i]
		state, message := k.judgeException(e, stop)
		if state == v1alpha1.ExceptionActive {
			switch e.Type {
			case v1alpha1.ExceptionDebug:
				stop[e.Node] = &v1alpha1.Debug{Reason: e.Reason, Until: *e.Until.DeepCopy()}
			case v1alpha1.ExceptionStartAnyway:
				start[e.Node] = &v1alpha1.StartAnyway{HostID: e.HostID, Reason: e.Reason, Until: *e.Until.DeepCopy()}
			case v1alpha1.ExceptionRepair, v1alpha1.ExceptionReplace, v1alpha1.ExceptionAcceptLoss,
				v1alpha1.ExceptionRemoveFirst, v1alpha1.ExceptionRolesReady, v1alpha1.ExceptionTurnOffPassword,
				v1alpha1.ExceptionAcceptUnavailable, v1alpha1.ExceptionOverrideGuard:
				// they are asked by their procedures
			}
			k.draft.WakeIn(e.Until.Sub(k.Now))
		}
		k.draft.Exceptions = append(k.draft.Exceptions, v1alpha1.ExceptionStatus{
			Name: e.Name, State: state, Node: e.Node, Message: message,
		})
	}
	k.stopForDebug(stop)
	k.startAnyway(start)
	return plan.Nothing()
}

// Overruled takes in what guards have found that are overruled: the first of it, and when that was,
// stay in the status as long as the exception is there.
func (k *Keeper) Overruled(found map[v1alpha1.Reason]string) {
	for i := range k.draft.Exceptions {
		status, e := &k.draft.Exceptions[i], &k.Cluster.Spec.Exceptions[i]
		if e.Type != v1alpha1.ExceptionOverrideGuard {
			continue
		}
		for _, before := range k.Cluster.Status.Exceptions {
			if before.Name == e.Name && before.UsedAt != nil {
				status.UsedAt = before.UsedAt
				if status.State == v1alpha1.ExceptionActive {
					status.Message = before.Message
				}
			}
		}
		what, is := found[v1alpha1.Reason(e.Guard)]
		if is && status.UsedAt == nil && status.State == v1alpha1.ExceptionActive {
			now := metav1.NewTime(k.Now).Rfc3339Copy()
			status.UsedAt = &now
			status.Message = words.Shorten(fmt.Sprintf("the guard %s is overruled (%s), which has "+
				"found: %s", e.Guard, e.Reason, what), 2048)
		}
	}
}

// stopForDebug has those nodes stopped, and no others.
func (k *Keeper) stopForDebug(wanted map[string]*v1alpha1.Debug) {
	for _, n := range k.Records() {
		have, want := n.Record.Spec.Debug, wanted[n.Name]
		if n.Record.DeletionTimestamp != nil || equality.Semantic.DeepEqual(have, want) {
			continue
		}
		why := "the exception that stopped it is over"
		if want != nil {
			why = "it is to stop for a person to look into it"
		}
		k.update(n, false, why, func(spec *v1alpha1.CassandraNodeSpec) { spec.Debug = want })
		switch {
		case want == nil:
			k.draft.Event(corev1.EventTypeNormal, "DebugEnded", "node %s starts again", n.Name)
		case have == nil:
			k.draft.Event(corev1.EventTypeNormal, "DebugStarted",
				"node %s stops until %s for a person to look into it: %s",
				n.Name, want.Until.UTC().Format(time.RFC3339), want.Reason)
		}
	}
}

// judgeException says what becomes of an exception, and why. Those before it are given.
func (k *Keeper) judgeException(e *v1alpha1.Exception, before map[string]*v1alpha1.Debug) (v1alpha1.ExceptionState,
	string) {
	n := k.Nodes[e.Node]
	record := recordOf(n)
	switch {
	case !e.Until.After(k.Now):
		return v1alpha1.ExceptionOver, "its time is over: take it out of spec.exceptions"
	case e.Until.Sub(k.Now) > assess.LongestException:
		return v1alpha1.ExceptionRefused, fmt.Sprintf("until is %s, and may be at most 7 days ahead",
			e.Until.UTC().Format(time.RFC3339))
	case e.Type == v1alpha1.ExceptionTurnOffPassword:
		return k.judgeTurnOff()
	case e.Type == v1alpha1.ExceptionOverrideGuard:
		return v1alpha1.ExceptionActive, fmt.Sprintf("what the guard %s finds holds nothing back", e.Guard)
	case e.Type == v1alpha1.ExceptionAcceptUnavailable:
		return k.judgeUnavailable(e)
	case record == nil:
		return v1alpha1.ExceptionWaiting, fmt.Sprintf("there is no node %s", e.Node)
	case record.Spec.Member == nil || !k.Begun() || !k.Settled():
		return v1alpha1.ExceptionWaiting, fmt.Sprintf("waits until node %s is a member of a ring that has formed",
			e.Node)
	}
	switch e.Type {
	case v1alpha1.ExceptionStartAnyway:
		return judgeStart(e, n)
	case v1alpha1.ExceptionRepair:
		return k.judgeRepair(e)
	case v1alpha1.ExceptionReplace, v1alpha1.ExceptionAcceptLoss:
		return k.judgeReplace(e)
	case v1alpha1.ExceptionRemoveFirst:
		if k.Leaves(e.Node) {
			return v1alpha1.ExceptionActive, fmt.Sprintf("node %s leaves before others of its rack", e.Node)
		}
		return v1alpha1.ExceptionWaiting, fmt.Sprintf("waits until the spec has fewer nodes of rack %s in datacenter "+
			"%s than there are", record.Spec.Rack, record.Spec.Datacenter)
	case v1alpha1.ExceptionRolesReady:
		return k.judgeRolesReady(n)
	case v1alpha1.ExceptionDebug, v1alpha1.ExceptionTurnOffPassword, v1alpha1.ExceptionOverrideGuard,
		v1alpha1.ExceptionAcceptUnavailable:
	}
	return k.judgeDebug(e, n, before)
}

// judgeUnavailable is judgeException for one that lets a datacenter stop.
func (k *Keeper) judgeUnavailable(e *v1alpha1.Exception) (v1alpha1.ExceptionState, string) {
	if k.DatacenterToStop() == "" && (k.Ledger == nil || len(k.Ledger.StoppedDatacenters) == 0) {
		return v1alpha1.ExceptionWaiting, "no datacenter is to stop"
	}
	return v1alpha1.ExceptionActive, fmt.Sprintf("keyspace %s may be unavailable while a datacenter is stopped",
		e.Keyspace)
}

// judgeDebug is judgeException for one that stops a node.
func (k *Keeper) judgeDebug(e *v1alpha1.Exception, n *facts.Node, before map[string]*v1alpha1.Debug) (
	v1alpha1.ExceptionState, string) {
	switch {
	case before[e.Node] != nil:
		return v1alpha1.ExceptionRefused, fmt.Sprintf("another exception has stopped node %s already", e.Node)
	case n.Record.Spec.Debug != nil:
		return v1alpha1.ExceptionActive, debugged(n)
	}
	// One after the other: the agent of the second sees the first down.
	for _, other := range k.Records() {
		if other.Name != e.Node && (other.Record.Spec.Debug != nil || before[other.Name] != nil) &&
			!stoppedForDebug(other) {
			return v1alpha1.ExceptionWaiting, fmt.Sprintf("waits until node %s, which is to stop first, is down",
				other.Name)
		}
	}
	return v1alpha1.ExceptionActive, debugged(n)
}

// stoppedForDebug says that the agent of a node has stopped it, as its record asks.
func stoppedForDebug(n *facts.Node) bool {
	status := &n.Record.Status
	return n.Record.Spec.Debug != nil && n.StatusIsCurrent() && status.ObservedGeneration == n.Record.Generation &&
		status.Phase == v1alpha1.PhaseStopped
}

// debugged says how far a node has come on its way down.
func debugged(n *facts.Node) string {
	switch status := &n.Record.Status; {
	case stoppedForDebug(n):
		return fmt.Sprintf("Cassandra is stopped and its pod stays: kubectl exec -it %s -c cassandra -- bash", n.Name)
	case n.StatusIsCurrent() && status.Phase == v1alpha1.PhaseDeferred && status.Blocked != nil:
		return fmt.Sprintf("node %s does not stop yet: %s", n.Name, status.Blocked.Message)
	default:
		return fmt.Sprintf("node %s is being stopped", n.Name)
	}
}
