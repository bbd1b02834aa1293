package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// Operation is one that this agent runs beside everything else: it may take hours, and nothing waits
// for it.
type Operation struct {
	ID string
	// Incarnation and StartID name the JVM that it runs on.
	Incarnation string
	StartID     uint64
	// Progress from 0 to 100 percent, nil where it is not known, and Message in words.
	Progress *int32
	Message  string
	// Ended says that it is over: with Message, or with Failure if that is not empty. CutOff says that what came of it is not known.
	Ended   bool
	Failure string
	CutOff  bool
}

// noteOperation takes in how operations ended. One that nobody runs any more was cut off: whether it
// took effect is not known.
func noteOperation(p *pass) outcome {
	for i := range p.Memory.Operations {
		if m := &p.Memory.Operations[i]; m.Phase == v1alpha1.OperationRunning {
			if o := p.noteEnd(m); o.verdict != Done {
				return o
			}
		}
	}
	return done
}

// noteEnd is noteOperation for one that is remembered to run.
func (p *pass) noteEnd(m *OperationMemory) outcome {
	o := p.operation(m.ID)
	switch {
	case o == nil:
		return act(Action{Kind: InterruptOperation, ID: m.ID, Why: "the agent ended while the operation ran"})
	case !o.Ended:
		return done
	case o.CutOff:
		return act(Action{Kind: InterruptOperation, ID: m.ID, Why: o.Failure})
	case o.Failure != "" && (p.Init.Process == nil || p.Init.Incarnation != o.Incarnation || p.Init.Process.StartID != o.StartID):
		return act(Action{Kind: InterruptOperation, ID: m.ID, Why: "the JVM ended while the operation ran: " + o.Failure})
	case o.Failure != "":
		return act(Action{Kind: FinishOperation, ID: m.ID, Failed: true, Why: o.Failure})
	default:
		return act(Action{Kind: FinishOperation, ID: m.ID, Why: o.Message})
	}
}

// conflicting are the operations that do not run side by side on a node: those that rewrite or
// stream its data, those that change the ring's schema or gossip, and a cleanup beside a change of
// the replicas by which it judges what to remove.
//
//nolint:gochecknoglobals // a table
var conflicting = [][]v1alpha1.OperationType{
	{v1alpha1.OperationRepair, v1alpha1.OperationRebuild, v1alpha1.OperationCleanup},
	{v1alpha1.OperationAssassinate, v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationAlterSystemKeyspaces},
	{v1alpha1.OperationCleanup, v1alpha1.OperationAlterKeyspaces},
	{v1alpha1.OperationCleanup, v1alpha1.OperationAlterSystemKeyspaces},
}

// conflict says that two operations do not run side by side on a node.
func conflict(a, b v1alpha1.OperationType) bool {
	return slices.ContainsFunc(conflicting, func(group []v1alpha1.OperationType) bool {
		return slices.Contains(group, a) && slices.Contains(group, b)
	})
}

// makeWay is the running operation that has to end before one of a type begins; nil if none has.
func (p *pass) makeWay(t v1alpha1.OperationType) *OperationMemory {
	running := 0
	for i := range p.Memory.Operations {
		m := &p.Memory.Operations[i]
		if m.Phase.Final() {
			continue
		}
		if running++; conflict(t, m.Type) || running == v1alpha1.MaxOperations {
			return m
		}
	}
	return nil
}

// runOperation begins the operations of the record in their order, each once per id, on a NORMAL
// member, when none runs that conflicts. One that has to wait does not hold the others up.
func runOperation(p *pass) outcome {
	for i := range p.Record.Spec.Operations {
		if intent := &p.Record.Spec.Operations[i]; p.Memory.Operation(intent.ID) == nil {
			if o := p.beginOperation(intent); o.verdict != Done {
				return o
			}
		}
	}
	return done
}

func (p *pass) beginOperation(intent *v1alpha1.OperationIntent) outcome {
	refuse := func(reason v1alpha1.Reason, format string, args ...any) outcome {
		message := fmt.Sprintf("operation %s (%s) is not begun: ", intent.ID, intent.Type) + fmt.Sprintf(format, args...)
		p.report(reason, message, p.now.Add(deferAgain))
		return done
	}
	switch intent.Type {
	case v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationCleanup, v1alpha1.OperationRebuild, v1alpha1.OperationRepair,
		v1alpha1.OperationAssassinate:
	default:
		p.report(v1alpha1.BlockedUnknownOperation, fmt.Sprintf("operation %s of type %s is not known to this agent", intent.ID, intent.Type), time.Time{})
		return done
	}
	if !p.answers() || p.JVM.Ring.Mode != facts.ModeNormal {
		return refuse(v1alpha1.BlockedNodeNotNormal, "the node is not NORMAL")
	}
	if running := p.makeWay(intent.Type); running != nil {
		return refuse(v1alpha1.BlockedConflictingOperation, "operation %s (%s) runs", running.ID, running.Type)
	}
	view := p.JVM.Ring
	switch intent.Type {
	case v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationAlterKeyspaces:
		if !view.NativeRunning {
			return refuse(v1alpha1.BlockedNativeTransportClosed, "keyspaces are altered by CQL, which is closed")
		}
		if away := notNormal(view); len(away) > 0 {
			return refuse(v1alpha1.BlockedMemberNotNormal, "Cassandra alters no keyspace as long as a node is in another state than NORMAL: %s", strings.Join(away, ", "))
		}
	case v1alpha1.OperationCleanup:
		if p.now.Sub(p.JVM.AnsweredAt) > ringFresh {
			return act(Action{Kind: LookAtRing, Why: "the ring must be looked at before data is removed"})
		}
		if why := CleanupRefused(view); why != "" {
			return refuse(v1alpha1.BlockedPendingRanges, "%s", why)
		}
	case v1alpha1.OperationRebuild, v1alpha1.OperationRepair:
		// A node that was away when a keyspace was extended would find nothing to do.
		if why := replicationUnknown(intent.Arguments, view); why != "" {
			return refuse(v1alpha1.BlockedReplicationUnknown, "%s", why)
		}
	default:
	}
	return act(Action{Kind: RunOperation, ID: intent.ID, Operation: intent.DeepCopy(), Why: string(intent.Type)})
}

// Try is how a member sees an earlier try to join that is over, at an address.
type Try string

// How a member sees it.
const (
	// TryIsKnown: as one on its way into the ring that is down. The member forgets it after some minutes.
	TryIsKnown Try = "Known"
	// TryIsForgotten: not at all.
	TryIsForgotten Try = "Forgotten"
	// TryHasLeft: as one that has left.
	TryHasLeft Try = "Left"
	// TryIsNone: as a node that is up, or a member; or the agent of a node is there, whatever the ring knows of it.
	TryIsNone Try = "None"
)

// TryAt says how a member with this view sees what was at an address, and why it is no try that is over. There are the agents that answer at the address now: what
// starts there within a minute of an assassination would be heard by nobody.
func TryAt(view *facts.Ring, address string, there []Peer) (Try, string) {
	e, found := view.ByAddress(address)
	switch {
	case len(there) > 0:
		return TryIsNone, fmt.Sprintf("%s is the address of node %s now", address, there[0].Node)
	case !found:
		return TryIsForgotten, ""
	case e.Status == facts.StatusLeft || e.Status == facts.StatusRemoved:
		return TryHasLeft, ""
	case e.Live || e.Status != facts.StatusBootstrap:
		return TryIsNone, fmt.Sprintf("%s is no join that is over: it is %s, up: %v, with %d tokens", address, e.Status, e.Live, len(e.Tokens))
	}
	return TryIsKnown, ""
}

// notNormal are the other nodes for whose state Cassandra refuses to alter a keyspace (AlterKeyspaceStatement#validateNoRangeMovements, 4.1 and 5.0): also one
// that was stopped in order. One of which only the name is known is left to Cassandra's own judgement.
func notNormal(view *facts.Ring) []string {
	var out []string
	for _, e := range view.Endpoints {
		switch e.Status {
		case facts.StatusNormal, facts.StatusUnknown, facts.StatusLeft, facts.StatusRemoved, facts.StatusHibernate:
		default:
			if e.HostID != view.HostID {
				out = append(out, fmt.Sprintf("%s is %s", e.Address, e.Status))
			}
		}
	}
	return out
}

// CleanupRefused says why the node may not remove what it does not own by a view; empty if it may. As long as ranges are on their way it can be that one
// comes back: the node that was to take it gives up, and what was removed is missing.
func CleanupRefused(view *facts.Ring) string {
	if moving := inFlight(view); len(moving) > 0 {
		return "the ring changes: " + strings.Join(moving, ", ")
	}
	if view.Pending > 0 {
		return fmt.Sprintf("%d ranges are on their way to new owners", view.Pending)
	}
	return ""
}
