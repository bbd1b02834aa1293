package node

import (
	"fmt"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// Decision is what follows from the facts.
type Decision struct {
	// Steps in the order in which they were asked, up to the one that decided: the line in the log.
	Steps []StepResult
	// Action that comes next; nil if nothing is to be done now.
	Action Action
	// HoldStop says that the agent is to renew its lease on the stop of the container, so that init
	// leaves it alone.
	HoldStop bool

	// Status to be reported.
	Status v1alpha1.CassandraNodeStatus
	// Process as it is reported.
	Ready bool

	// Poll is how often the JVM is to be asked; 0 for not at all. Jolokia cannot tell by itself
	// that something changed.
	Poll time.Duration
	// Again is when to decide again without any event; zero for never.
	Again time.Time
}

// StepResult is what one step said.
type StepResult struct {
	Name    string
	Verdict Verdict
	Message string
}

// Verdict of a step.
type Verdict string

// The verdicts. All but Done end the list.
const (
	// Done: nothing to do for this step, the next one is asked.
	Done Verdict = "Done"
	// Act: an action.
	Act Verdict = "Act"
	// Wait: for the event that the message names.
	Wait Verdict = "Wait"
	// Blocked: the agent refuses to go on, for the reason that status.blocked names.
	Blocked Verdict = "Blocked"
)

// outcome of a step.
type outcome struct {
	verdict Verdict
	message string
	action  Action
	phase   v1alpha1.NodePhase
	reason  v1alpha1.Reason
	again   time.Time
}

var done = outcome{verdict: Done}

func act(a Action) outcome { return outcome{verdict: Act, message: a.Because(), action: a} }

// wait for an event; phase may be empty: then that of the JVM is reported.
func wait(phase v1alpha1.NodePhase, message string) outcome {
	return outcome{verdict: Wait, phase: phase, message: message}
}

// blocked for a reason that names the problem.
func blocked(phase v1alpha1.NodePhase, reason v1alpha1.Reason, message string) outcome {
	return outcome{verdict: Blocked, phase: phase, reason: reason, message: message}
}

// until says when to look again without an event.
func (o outcome) until(t time.Time) outcome {
	o.again = t
	return o
}

// step is one idea.
type step struct {
	name string
	run  func(*pass) outcome
}

// pass is one decision under way.
type pass struct {
	*Facts
	now     time.Time
	finding Finding
	// hold is set by a step that wants the lease on the container's stop.
	hold bool
	// held is what holds an intent back without holding up the steps after it, until heldUntil or
	// an event.
	held      *v1alpha1.NodeBlocked
	heldUntil time.Time
	// deferred says that the held intent would take the node down.
	deferred bool
	// joinMessage and restartMessage explain intents that wait.
	joinMessage, restartMessage string
}

// report notes what holds an intent back, the first of them, and goes on.
func (p *pass) report(reason v1alpha1.Reason, message string, again time.Time) {
	if p.held == nil {
		p.held = &v1alpha1.NodeBlocked{Reason: reason, Message: message}
	}
	if !again.IsZero() && (p.heldUntil.IsZero() || again.Before(p.heldUntil)) {
		p.heldUntil = again
	}
}

// Next decides. It is asked after every event and after every action; the same facts at the same
// time give the same decision.
func Next(f Facts, now time.Time) Decision {
	p := &pass{Facts: &f, now: now}
	if f.Disk.Known {
		p.finding = examine(&f)
	}
	var d Decision
	var last outcome
	for _, s := range steps[p.jvmPhase()] {
		last = p.oneAtATime(p.afterFailure(s.run(p)))
		d.Steps = append(d.Steps, StepResult{Name: s.name, Verdict: last.verdict, Message: last.message})
		if last.verdict != Done {
			break
		}
	}
	d.Action, d.HoldStop, d.Again = last.action, p.hold, last.again
	if !p.heldUntil.IsZero() && (d.Again.IsZero() || p.heldUntil.Before(d.Again)) {
		d.Again = p.heldUntil
	}
	if !d.Again.IsZero() && !d.Again.After(now) {
		d.Again = now.Add(lookAgain) // whatever a step waits for has come and changed nothing
	}
	d.Status = p.status(last)
	d.Ready = d.Status.Ready
	d.Poll = p.poll(last)
	return d
}

// afterFailure holds an action back that has just failed.
func (p *pass) afterFailure(o outcome) outcome {
	if o.action == nil {
		return o
	}
	f, failed := p.Failures[KindOf(o.action)]
	if !failed || !p.now.Before(f.Until) {
		return o
	}
	if f.NotYet {
		return wait("", f.Message).until(f.Until)
	}
	if isOptional(o.action) {
		p.report(v1alpha1.BlockedActionFailing, fmt.Sprintf("%s: %s", KindOf(o.action), f.Message), f.Until)
		return done
	}
	phase := v1alpha1.NodePhase("")
	if !p.running() {
		phase = v1alpha1.PhaseFailed // a full disk, for instance, on which the journal cannot be written
	}
	held := wait(phase, fmt.Sprintf("%s failed and is tried again: %s", KindOf(o.action), f.Message)).until(f.Until)
	p.report(v1alpha1.BlockedActionFailing, held.message, f.Until)
	return held
}
