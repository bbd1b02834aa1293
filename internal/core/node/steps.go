package node

import (
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// steps are everything an agent looks after, in this order. Each is asked only when all before it are done.
//
//nolint:gochecknoglobals // the table of contents
var steps = []step{
	// What happened.
	{"finish_what_is_under_way", finishAction},
	{"note_ended_jvm", noteEnded},
	{"note_operation", noteOperation},
	// What overrides everything else.
	{"stop_with_the_container", stopWithContainer},
	{"finish_stop", finishStop},
	// Who am I.
	{"know_record", knowRecord},
	{"keep_record", keepRecord},
	{"give_intents_back", giveBack},
	{"inspect_new_disk", inspectNewDisk},
	{"reach_init", reachInit},
	// A JVM that runs.
	{"judge_frozen_jvm", judgeFrozen},
	{"stay_stopped", stayStopped},
	{"refuse_decommission", refuseDecommission},
	{"join", followJoin},
	{"stop_withdrawn_join", stopWithdrawnJoin},
	{"stop_corrected_join", stopCorrectedJoin},
	{"stop_failed_join", stopFailedJoin},
	{"be_known_while_joining", beKnown},
	{"note_normal", noteNormal},
	{"finish_restart", finishRestart},
	{"begin_restart", beginRestart},
	{"set_seeds", setSeeds},
	{"apply_settings", applySettings},
	{"set_client_traffic", setTraffic},
	{"run_operation", runOperation},
	{"watch_jvm", watchJVM},
	// None runs: may one start?
	{"inspect_disk", inspectDisk},
	{"know_disk", knowDisk},
	{"withdraw_join", withdrawJoin},
	{"hold_ticket_or_membership", holdTicket},
	{"be_away_not_too_long", notTooLong},
	{"join_not_for_too_long", joinsNotTooLong},
	{"back_off", backOff},
	{"be_heard", beHeard},
	{"have_configuration", haveConfiguration},
	{"be_in_contact", beInContact},
	{"own_address_and_host_id", ownAddress},
	{"claim_disk", claimDisk},
	{"start", start},
}

// Limits in time. They are the agent's own; none is part of the API.
const (
	// pollStarting is how often a JVM is asked while something is expected to change, pollSteady while nothing is.
	pollStarting = 500 * time.Millisecond
	pollSteady   = 5 * time.Second

	// answerTolerance is how long a JVM may miss questions and count as answering.
	answerTolerance = 15 * time.Second

	// addressQuarantine is how long a ring remembers an address after its member has moved: 60 s refused, then 60 s ignored (measured 122 s).
	addressQuarantine = 130 * time.Second
	// peersFresh is how old an answer of peers may be when a JVM is started or killed on it.
	peersFresh = 5 * time.Second
	// diskAgain is when a disk that could not be read is looked at again: somebody may have mended it.
	diskAgain = time.Minute
	// peersAgain is when they are asked again after an answer that forbids.
	peersAgain = 10 * time.Second
	// silentSeedsLimit is how long a New ticket waits for the agents of all other seeds.
	silentSeedsLimit = 30 * time.Second

	// cutOffLimit is how long a member may have been without any word of API server and peers and still start: the operator replaces
	// nobody before that time.
	cutOffLimit = 10 * time.Minute

	// ringFresh is how old the JVM's view may be when it is taken down on it.
	ringFresh = 3 * time.Second
	// deferAgain is when a deferred intent is looked at again.
	deferAgain = 5 * time.Second

	// lookAgain is the shortest time between two looks without an event.
	lookAgain = time.Second

	// frozenAfter is how long a JVM may neither answer nor use its processor.
	frozenAfter = 3 * time.Minute
	// startGrace is how long a JVM may take until it first answers before it can count as frozen.
	startGrace = 5 * time.Minute

	// normalEvery is how often it is written down that the node is NORMAL.
	normalEvery = 5 * time.Minute

	// backOffFirst doubles with each death in a row, up to backOffLongest.
	backOffFirst   = 2 * time.Second
	backOffLongest = 5 * time.Minute
	// stableAfter is how long a JVM must have been NORMAL for its death to be the first of a new row.
	stableAfter = 10 * time.Minute

	// stopReserve is the part of the grace period that is kept for TERM and KILL after a drain.
	stopReserve = 25 * time.Second
	// killReserve is the part that is kept for KILL.
	killReserve = 5 * time.Second
)

// running says whether a JVM runs, to the knowledge of init.
func (p *pass) running() bool { return p.Init.Process != nil }

// answers says whether the running JVM answers. One question that it missed, in a pause of its collector, is no silence yet.
func (p *pass) answers() bool {
	if !p.running() || p.JVM.StartID != p.Init.Process.StartID || p.JVM.Ring == nil || p.JVM.AnsweredAt.IsZero() {
		return false
	}
	return !p.JVM.AnsweredAt.Before(p.JVM.AskedAt) || p.now.Sub(p.JVM.AnsweredAt) < answerTolerance
}

// finishAction waits for the action under way: one at a time. What holds a node back holds while that is looked at again: as long as no JVM runs, or one joins, the
// steps after this one are asked during a question, too, and only what they would do has to wait.
func finishAction(p *pass) outcome {
	if p.Doing == nil {
		return done
	}
	if p.Init.Stopping != nil {
		p.hold = !p.Init.Stopping.Alone
	}
	if k := p.Doing.Action.Kind; (k == AskPeers || k == InspectDisk) && (!p.running() || p.streamsIn()) {
		return done
	}
	return p.underWay()
}

// underWay waits for an action.
func (p *pass) underWay() outcome {
	return wait("", fmt.Sprintf("%s is under way", p.Doing.Action.Kind))
}

// oneAtATime takes the action from an outcome while another is under way.
func (p *pass) oneAtATime(o outcome) outcome {
	switch {
	case p.Doing == nil || o.action == nil:
		return o
	case o.verdict == Act:
		return p.underWay()
	}
	o.action = nil
	return o
}

// knowRecord waits for the node's record, and refuses one that is of another cluster.
func knowRecord(p *pass) outcome {
	if p.Self.Incomplete != "" {
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedPodIncomplete, p.Self.Incomplete)
	}
	if p.Record == nil {
		return wait(v1alpha1.PhaseWaiting, "waits for its CassandraNode: it was neither read from the API server nor kept on the disk")
	}
	if uid := p.Record.Spec.Cluster.UID; uid != p.Self.ClusterUID {
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedRecordOfOtherCluster,
			fmt.Sprintf("the record belongs to the cluster with uid %s, this pod to %s: the pod must be made again", uid, p.Self.ClusterUID))
	}
	return done
}

// reachInit waits for the Cassandra container.
func reachInit(p *pass) outcome {
	if !p.Init.Answers {
		return wait(v1alpha1.PhaseWaiting, "waits for helenus-init: the Cassandra container does not run yet")
	}
	return done
}

// keepRecord writes the record down whenever its spec changes, once the disk is this node's.
func keepRecord(p *pass) outcome {
	if p.Memory.ClusterUID != p.Self.ClusterUID || p.Memory.Node != p.Self.Node {
		return done
	}
	kept := p.Memory.Record
	if kept != nil && kept.UID == p.Record.UID && kept.Generation == p.Record.Generation && slices.Equal(p.Memory.Seeds, p.Seeds) {
		return done
	}
	return act(Action{Kind: KeepRecord, Why: "the record or the seeds changed"})
}
