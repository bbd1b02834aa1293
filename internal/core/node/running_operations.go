package node

import (
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node/operation"
)

// Operation is one that this agent runs beside everything else: it may take hours, and nothing
// waits for it.
type Operation struct {
	ID string
	// Progress from 0 to 100 percent, nil where it is not known, and Message in words.
	Progress *int32
	Message  string
	// Ended says that it is over: with Message, or with Failure if that is not empty. CutOff says
	// that it was lost sight of: it may continue in the JVM.
	Ended   bool
	Failure string
	CutOff  bool
	// Cancelled says that it is to end, or did before it was done.
	Cancelled bool
}

// noteOperation takes in how operations ended. One that continues in the JVM, and that this agent
// does not follow, is found again. One whose JVM has ended was cut off: whether it took effect is
// not known.
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
	switch lives := p.running() && p.Init.Incarnation == m.Incarnation && p.Init.Process.StartID == m.StartID; {
	case o != nil && !o.Ended && lives && !o.Cancelled && p.cancels(m.ID) != "":
		return act(CancelOperation{ID: m.ID, Why: Why(p.cancels(m.ID))})
	case o != nil && !o.Ended:
		return done
	case o != nil && o.Failure == "":
		return act(FinishOperation{ID: m.ID, Why: Why(o.Message)})
	case !p.Init.Answers:
		return done // whether its JVM lives is not known
	case !lives && o != nil:
		return act(InterruptOperation{ID: m.ID, Why: Why("the JVM ended while the operation ran: " + o.Failure)})
	case !lives:
		return act(InterruptOperation{ID: m.ID, Why: "the JVM ended while the operation ran"})
	case o != nil && !o.CutOff:
		return act(FinishOperation{ID: m.ID, Failed: true, Cancelled: o.Cancelled, Why: Why(o.Failure)})
	case p.jvmPhase() == phaseStopping, !p.answers(), p.JVM.Problem != "":
		return done
	default:
		intent := &v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: m.ID}, Type: m.Type, Arguments: m.Arguments}
		if why := p.cancels(m.ID); why != "" {
			intent.Withdraw = &v1alpha1.Withdrawal{Reason: why, Cancel: true}
		}
		return act(ResumeOperation{Handle: m.Handle, Operation: intent,
			Why: "no agent follows the operation, which continues in the JVM"})
	}
}

// cancels is why the record has an operation end that has begun; empty if it has not.
func (p *pass) cancels(id string) string {
	if p.Record == nil {
		return ""
	}
	if o := p.Record.Spec.Operation(id); o != nil && o.Withdraw != nil && o.Withdraw.Cancel {
		return o.Withdraw.Reason
	}
	return ""
}

// makeWay is the running operation that has to end before one of a type begins; nil if none has.
func (p *pass) makeWay(t v1alpha1.OperationType) *OperationMemory {
	running := 0
	for i := range p.Memory.Operations {
		m := &p.Memory.Operations[i]
		if m.Phase.Final() {
			continue
		}
		if running++; operation.Conflict(t, m.Type) || running == v1alpha1.MaxOperations {
			return m
		}
	}
	return nil
}

// runOperations begins the operations of the record in their order, each once per id, on a NORMAL
// member, when none runs that conflicts. One that has to wait does not hold the others up.
func runOperations(p *pass) outcome {
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
		message := fmt.Sprintf("operation %s (%s) is not begun: ", intent.ID, intent.Type) + fmt.Sprintf(format,
			args...)
		p.report(reason, message, p.now.Add(deferAgain))
		return done
	}
	kind, known := operation.Of(intent.Type)
	if !known {
		p.report(v1alpha1.BlockedUnknownOperation,
			fmt.Sprintf("operation %s of type %s is not known to this agent", intent.ID, intent.Type), time.Time{})
		return done
	}
	if !p.answers() || p.JVM.Ring.Mode != facts.ModeNormal && !slices.Contains(kind.Modes, p.JVM.Ring.Mode) {
		return refuse(v1alpha1.BlockedNodeNotNormal, "the node is not NORMAL")
	}
	if running := p.makeWay(intent.Type); running != nil {
		return refuse(v1alpha1.BlockedConflictingOperation, "operation %s (%s) runs", running.ID, running.Type)
	}
	if kind.FreshView && p.now.Sub(p.JVM.AnsweredAt) > ringFresh {
		return act(LookAtRing{Why: Why(fmt.Sprintf("the ring must be looked at before operation %s (%s) begins",
			intent.ID, intent.Type))})
	}
	if kind.Check != nil {
		if refusal := kind.Check(operation.RequestOf(intent, p.JVM.Ring)); refusal != nil {
			return refuse(refusal.Reason, "%s", refusal.Message)
		}
	}
	return act(RunOperation{Operation: intent.DeepCopy(), Why: Why(string(intent.Type))})
}
