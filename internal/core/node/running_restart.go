package node

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// restartDrained takes a JVM down that somebody has drained by hand: it serves nobody, and only
// another one does. If that is drained soon, too, somebody wants it so, and it is left.
func restartDrained(p *pass) outcome {
	if !p.answers() || p.JVM.Ring.Mode != facts.ModeDrained {
		return done
	}
	d, normal := p.Memory.Deaths, p.Memory.NormalAt
	if d != nil && d.LastReason == v1alpha1.RestartDrained && (normal == nil || !p.wasStable(*normal)) {
		p.report(v1alpha1.BlockedDrainedAgain, "Cassandra was drained by hand again, soon after it was restarted for "+
			"that: restart the node, or delete its pod, when it is to serve", time.Time{})
		return done
	}
	return act(BeginStop{Reason: v1alpha1.RestartDrained,
		Why: "somebody drained Cassandra by hand, and only a restart brings it back"})
}

// beginRestart takes a restart intent up, under the guard and once per id, and then takes the JVM
// down that ran when it was begun.
func beginRestart(p *pass) outcome {
	m := p.Memory.Restart
	if m != nil && !m.over() {
		if p.running() && m.Incarnation == p.Init.Incarnation && m.StartID == p.Init.Process.StartID {
			return p.stop("restart "+m.ID, p.now)
		}
		return done
	}
	intent := p.Record.Spec.Restart
	if intent == nil || m != nil && m.ID == intent.ID {
		return done
	}
	if !p.running() {
		// The JVM that is to be started next is the restarted one.
		return act(BeginRestart{ID: intent.ID, Why: "the record asks for a restart while no JVM runs"})
	}
	if held := mayGoDown(p); held.verdict != Done {
		if held.verdict == Blocked {
			p.report(held.reason, held.message, p.now.Add(deferAgain))
			p.deferred, p.restartMessage = true, held.message
			return done
		}
		return held
	}
	return act(BeginRestart{ID: intent.ID, Why: "the record asks for a restart"})
}

// finishRestart notes that another JVM than the one that was to end is NORMAL.
func finishRestart(p *pass) outcome {
	m := p.Memory.Restart
	if m == nil || m.over() || !p.answers() || p.JVM.Ring.Mode != facts.ModeNormal {
		return done
	}
	if m.Incarnation == p.Init.Incarnation && m.StartID == p.Init.Process.StartID {
		return done
	}
	return act(FinishRestart{ID: m.ID, Why: "the restarted JVM is NORMAL"})
}
