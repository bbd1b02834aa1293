package node

import (
	"fmt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A ticket that began can be taken back as long as the node was not in the ring. Cassandra writes
// bootstrapped=COMPLETED down, and flushes it, before it tells anybody that it is NORMAL
// (StorageService#finishJoiningRing and SystemKeyspace#setBootstrapState, 4.1 and 5.0). So when no
// JVM runs, a disk that can be read and does not say COMPLETED belongs to a node that no other ever
// saw NORMAL. One that says COMPLETED is a member's, and its ticket ends by being finished.

// beganAndTakenBack says that the operator takes the ticket back by which this node is joining.
func (p *pass) beganAndTakenBack() bool {
	ticket, m := p.Record.Spec.Join, p.Memory.Join
	return ticket != nil && ticket.Withdraw != nil && m != nil && m.ID == ticket.ID && m.BegunAt != nil && !m.over()
}

// onItsWay says that the JVM which runs has not come into the ring, by anything that is known, and
// is the one that the journal speaks of.
func (p *pass) onItsWay() bool {
	s := p.Memory.Start
	if !p.running() || !s.Is(p.Init.Incarnation, p.Init.Process.StartID) || s.NormalAt != nil || s.Joined ||
		p.Memory.Member != nil {
		return false
	}
	return !p.answers() || comingUp(p.JVM.Ring.Mode)
}

// stopWithdrawnJoin ends the JVM of a node that is on its way into the ring when its ticket is
// taken back. Whether it got there in the meantime the disk says afterwards.
func stopWithdrawnJoin(p *pass) outcome {
	if !p.running() || !p.beganAndTakenBack() {
		return done
	}
	if !p.onItsWay() {
		p.joinMessage = "the ticket was taken back too late: the node has joined"
		return done
	}
	return p.stop("its ticket to join was taken back: "+p.Record.Spec.Join.Withdraw.Reason, p.now)
}

// stopCorrectedJoin ends a JVM that is on its way into the ring with a configuration which is no
// longer wanted and which it cannot change while it runs: the next start has the corrected one. A
// join that streams is left alone: it works, and would begin anew.
func stopCorrectedJoin(p *pass) outcome {
	if !p.onItsWay() || p.Configuration.Problem != "" || !p.Configuration.RestartNeeded {
		return done
	}
	if p.answers() && p.JVM.Ring.Streaming {
		return done
	}
	return p.stop("its configuration was corrected before it had joined", p.now)
}

// stopFailedJoin ends a JVM that has given its join up and stays there, as 5.0 does when a stream
// failed: the next start tries again from the beginning. What it could go on with (nodetool
// bootstrap resume) may lack what was written meanwhile (CASSANDRA-17679). 4.1 says nothing and
// stays in the mode JOINING.
func stopFailedJoin(p *pass) outcome {
	if !p.answers() || !p.onItsWay() || p.Configuration.Problem != "" {
		return done
	}
	failed := func(why string) outcome {
		return act(BeginStop{Reason: v1alpha1.RestartStartFailed, Why: Why(why)})
	}
	switch p.JVM.Ring.Mode {
	case facts.ModeJoiningFailed:
		return failed("streaming failed, and Cassandra has given its join up (mode " + string(facts.ModeJoiningFailed) +
			")")
	case facts.ModeJoining:
		since := later(later(p.Init.Process.StartedAt, p.Self.StartedAt), p.JVM.StreamedAt)
		if !p.JVM.Ring.Streaming && p.now.Sub(since) >= joinStalled {
			return failed(fmt.Sprintf("Cassandra is in the mode %s and has streamed nothing for %s: the join has "+
				"failed",
				facts.ModeJoining, joinStalled))
		}
	default:
	}
	return done
}
