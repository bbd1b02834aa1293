package plan

import (
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
)

// Draft is a plan while it is made.
type Draft struct{ Plan }

// Write adds writes, in this order.
func (d *Draft) Write(writes ...Write) { d.Writes = append(d.Writes, writes...) }

// Event tells people something about the cluster. Kind is Normal or Warning.
func (d *Draft) Event(kind, reason, format string, args ...any) {
	d.Write(Write{Verb: Event, EventType: kind, Reason: reason, Why: fmt.Sprintf(format, args...)})
}

// PutLedger writes a ledger: once in a plan, with the reasons of all changes.
func (d *Draft) PutLedger(l *ledger.Ledger, live bool, why string) {
	for i := range d.Writes {
		if w := &d.Writes[i]; w.Verb == PutLedger {
			w.Ledger, w.Live, w.Why = l, w.Live || live, w.Why+"; "+why
			return
		}
	}
	d.Write(Write{Verb: PutLedger, Ledger: l, Live: live, Why: why})
}

// Stall says what only the user can resolve. The first one counts.
func (d *Draft) Stall(reason, format string, args ...any) {
	if d.Stalled == nil {
		d.Stalled = &Stall{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
}

// Block shows that a step waits, and for what.
func (d *Draft) Block(step string, reason v1alpha1.Reason, nodes []string, format string, args ...any) {
	d.Blocked = append(d.Blocked, v1alpha1.BlockedStep{Step: step, Reason: reason, Nodes: nodes,
		Message: fmt.Sprintf(format, args...)})
}

// Notice shows a problem that holds no step back.
func (d *Draft) Notice(reason v1alpha1.Reason, nodes []string, format string, args ...any) {
	d.Notices = append(d.Notices, v1alpha1.Notice{Reason: reason, Nodes: nodes, Message: fmt.Sprintf(format, args...)})
}

// Recommend shows an operation that a person should start.
func (d *Draft) Recommend(operation string, nodes []string, message string) {
	d.Recommended = append(d.Recommended, v1alpha1.Recommendation{Operation: operation, Nodes: nodes, Message: message})
}

// WakeIn asks for another pass after d at the latest.
func (d *Draft) WakeIn(after time.Duration) {
	if after <= 0 {
		after = time.Second
	}
	d.Wake = min(d.Wake, after)
}

// Pending says that objects are written just now: what follows would rest on them. The ledger,
// events and the statuses of tasks do not count.
func (d *Draft) Pending() bool {
	return slices.ContainsFunc(d.Writes,
		func(w Write) bool { return w.Verb != PutLedger && w.Verb != Event && w.Verb != ApplyStatus })
}

// Has says that the plan writes an object already.
func (d *Draft) Has(object Object) bool {
	return slices.ContainsFunc(d.Writes, func(w Write) bool { return w.UID != "" && w.UID == object.GetUID() })
}

// Result is what a step came to in this pass.
type Result struct {
	Outcome Outcome
	Message string
}

// Nothing says that there is nothing to do.
func Nothing() Result { return Result{Outcome: Done} }

// Acting says what the writes do.
func Acting(format string, args ...any) Result {
	return Result{Outcome: Act, Message: fmt.Sprintf(format, args...)}
}

// Waiting says what event is waited for.
func Waiting(format string, args ...any) Result {
	return Result{Outcome: Wait, Message: fmt.Sprintf(format, args...)}
}

// Stopped says why only the user can bring it on.
func Stopped(format string, args ...any) Result {
	return Result{Outcome: Stuck, Message: fmt.Sprintf(format, args...)}
}

// Retrying waits for time to pass.
func (d *Draft) Retrying(after time.Duration, format string, args ...any) Result {
	d.WakeIn(after)
	return Result{Outcome: Retry, Message: fmt.Sprintf(format, args...)}
}
