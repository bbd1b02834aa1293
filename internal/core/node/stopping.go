package node

import (
	"fmt"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// stopWithContainer stops Cassandra in order when kubelet ends the container: init has told, and
// leaves it to this agent while it holds the lease.
func stopWithContainer(p *pass) outcome {
	s := p.Init.Stopping
	if s == nil {
		return done
	}
	if s.Alone {
		return wait(v1alpha1.PhaseStopping, "the container ends; helenus-init stops Cassandra by itself")
	}
	if !p.running() {
		return wait(v1alpha1.PhaseStopped, "the container ends")
	}
	p.hold = true
	return p.stop("the pod is being deleted or its container restarted", s.Since)
}

// finishStop goes on with a stop that was begun, whatever the record says by now: a JVM that is
// half drained serves nobody.
func finishStop(p *pass) outcome {
	if !p.running() || !p.Memory.Stop.of(p.Init.Incarnation, p.Init.Process.StartID) {
		return done
	}
	return p.stop(p.Memory.Stop.Why, p.Memory.Stop.BegunAt)
}

// stop is the order in which a JVM is taken down: not Ready (from the moment the stop is begun),
// native transport off, drain, TERM, and KILL at the end of the grace period. Each step is begun
// once; what a step could not do, the next one does.
func (p *pass) stop(why string, since time.Time) outcome {
	process := p.Init.Process
	s := p.Memory.Stop
	if !s.of(p.Init.Incarnation, process.StartID) {
		return act(BeginStop{Why: Why(why)})
	}
	end := since.Add(p.Self.GracePeriod)
	drainUntil := end.Add(-stopReserve)
	stopping := func(message string, again time.Time) outcome {
		return wait(v1alpha1.PhaseStopping, message+": "+s.Why).until(again)
	}
	switch {
	case s.KillAt != nil && p.now.Before(s.KillAt.Add(killReserve)):
		return stopping("SIGKILL was sent", s.KillAt.Add(killReserve))
	case s.KillAt != nil:
		return act(Kill{Why: "the JVM did not end by SIGKILL, as one that waits for its disk does"})
	case s.TermAt != nil:
		killAt := later(end.Add(-killReserve), s.TermAt.Add(killReserve))
		if p.now.Before(killAt) {
			return stopping("SIGTERM was sent", killAt)
		}
		return act(Kill{Why: "the JVM did not end within the grace period"})
	case p.answers() && p.JVM.Ring.NativeRunning && s.ClosedAt == nil:
		return act(CloseTraffic{Why: Why(why), Deadline: drainUntil})
	case p.answers() && drainable(p.JVM.Ring.Mode) && s.DrainAt == nil && p.now.Before(drainUntil):
		return act(Drain{Why: Why(why), Deadline: drainUntil})
	default:
		return act(Terminate{Why: Why(why)})
	}
}

// drainable are the modes in which there is something to drain. A JVM that is still starting is
// simply ended; its shutdown hook does what is needed.
func drainable(mode facts.Mode) bool {
	switch mode {
	case facts.ModeNormal, facts.ModeLeaving, facts.ModeDecommissionFailed, facts.ModeMoving:
		return true
	default:
		return false
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// stayStopped carries out the state Stopped, or a person's wish to look into the pod of a member,
// and keeps to it across the ends of agent and pod.
func stayStopped(p *pass) outcome {
	debug := p.debugged()
	if p.Record.Spec.State != v1alpha1.StateStopped && debug == nil {
		return done
	}
	if !p.running() {
		stopped := wait(v1alpha1.PhaseStopped, p.whyStopped())
		if debug != nil {
			stopped = stopped.until(debug.Until.Time)
		}
		return stopped
	}
	if until := p.Record.Spec.StopNotAfter; debug == nil && until != nil && p.now.After(until.Time) {
		return done // nobody counts on it any more
	}
	if held := mayGoDown(p); held.verdict != Done {
		if held.verdict == Blocked {
			p.report(held.reason, held.message, p.now.Add(deferAgain))
			p.deferred = true
			return done
		}
		return held
	}
	if debug != nil {
		return p.stop(p.whyStopped(), p.now)
	}
	return p.stop("the record asks for the state Stopped", p.now)
}

// debugged is what has a member stopped for a person to look into its pod; nil if nothing does, or
// its time is over.
func (p *pass) debugged() *v1alpha1.Debug {
	debug := p.Record.Spec.Debug
	if debug == nil || p.Record.Spec.Member == nil || p.Record.Spec.State != v1alpha1.StateRunning ||
		!debug.Until.After(p.now) {
		return nil
	}
	return debug
}

// whyStopped says why no JVM is started on a node that is stopped in order.
func (p *pass) whyStopped() string {
	if debug := p.debugged(); debug != nil {
		return fmt.Sprintf("stopped until %s for a person to look into it: %s", debug.Until.UTC().Format(time.RFC3339),
			debug.Reason)
	}
	return "stopped, as the record asks"
}

// stayOut starts nothing on a node that has left the ring for good.
func stayOut(p *pass) outcome {
	if p.Record.Spec.State != v1alpha1.StateDecommissioned {
		return done
	}
	return wait(v1alpha1.PhaseLeft, "the node has left the ring for good, and its pod is to be deleted")
}
