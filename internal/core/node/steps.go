package node

import (
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// happened, asked first in every phase, takes in what has happened since.
var happened = []step{
	{"finish_what_is_under_way", finishAction},
	{"note_ended_jvm", noteEnded},
	{"note_operation", noteOperation},
}

// known, asked in every phase but that of a stop, knows the record and what of it is over.
var known = []step{
	{"know_record", knowRecord},
	{"end_agent", endAgent},
	{"keep_record", keepRecord},
	{"withdraw_stale_intents", withdrawStale},
}

// steps are everything an agent looks after, by the phase of its JVM. Each step is asked only when
// all before it are done. One that belongs to several phases is in the list of each.
var steps = map[jvmPhase][]step{
	// None runs: may one start?
	phaseAbsent: slices.Concat(happened, known, []step{
		{"inspect_new_disk", inspectNewDisk},
		{"reach_init", reachInit},
		{"have_data_volume", haveVolume},
		{"stay_stopped", stayStopped},
		{"stay_out", stayOut},
		{"begin_restart", beginRestart},
		{"run_operations", runOperations},
		{"inspect_disk", inspectDisk},
		{"know_disk", knowDisk},
		{"know_release", knowRelease},
		{"withdraw_join", withdrawJoin},
		{"require_ticket_or_membership", requireTicket},
		{"check_gc_grace", checkGCGrace},
		{"back_off", backOff},
		{"wait_for_gossip_quarantine", waitForQuarantine},
		{"have_configuration", haveConfiguration},
		{"be_in_contact", beInContact},
		{"own_address_and_host_id", ownAddress},
		{"mark_volumes", markVolumes},
		{"restore_disk", restoreDisk},
		{"start", start},
	}),

	// One runs that is on its way up, or into the ring.
	phaseStarting: slices.Concat(happened, known, []step{
		{"judge_frozen_jvm", judgeFrozen},
		{"stay_stopped", stayStopped},
		{"stop_withdrawn_join", stopWithdrawnJoin},
		{"stop_corrected_join", stopCorrectedJoin},
		{"stop_failed_join", stopFailedJoin},
		{"restart_unseen_join", restartUnseenJoin},
		{"begin_restart", beginRestart},
		{"set_seeds", setSeeds},
		{"prove_certificates", proveCertificates},
		{"set_client_traffic", setTraffic},
		{"run_operations", runOperations},
		{"watch_jvm", watchJVM},
	}),

	// One runs that was NORMAL, or leaves.
	phaseRunning: slices.Concat(happened, known, []step{
		{"judge_frozen_jvm", judgeFrozen},
		{"stay_stopped", stayStopped},
		{"join", followJoin},
		{"stop_withdrawn_join", stopWithdrawnJoin},
		{"note_normal", noteNormal},
		{"finish_restart", finishRestart},
		{"begin_restart", beginRestart},
		{"restart_drained_jvm", restartDrained},
		{"set_seeds", setSeeds},
		{"apply_settings", applySettings},
		{"prove_certificates", proveCertificates},
		{"set_client_traffic", setTraffic},
		{"run_operations", runOperations},
		{"watch_jvm", watchJVM},
	}),

	// It is being taken down, or its container is: nothing else counts.
	phaseStopping: slices.Concat(happened, []step{
		{"stop_with_the_container", stopWithContainer},
		{"finish_stop", finishStop},
	}),
}

// jvmPhase is how far the life of the JVM has come.
type jvmPhase string

const (
	phaseAbsent   jvmPhase = "Absent"
	phaseStarting jvmPhase = "Starting"
	phaseRunning  jvmPhase = "Running"
	phaseStopping jvmPhase = "Stopping"
)

// comingUp are the modes of a JVM that was not NORMAL since it started.
func comingUp(mode facts.Mode) bool {
	switch mode {
	case facts.ModeStarting, facts.ModeJoining, facts.ModeJoiningFailed:
		return true
	default:
		return false
	}
}

func (p *pass) jvmPhase() jvmPhase {
	switch s := p.Memory.Start; {
	case p.Init.Stopping != nil || p.stopping():
		return phaseStopping
	case !p.running():
		return phaseAbsent
	case p.answers() && !comingUp(p.JVM.Ring.Mode), s != nil && s.Is(p.Init.Incarnation, p.Init.Process.StartID) &&
		s.NormalAt != nil:
		return phaseRunning
	default:
		return phaseStarting
	}
}

// Limits in time. They are the agent's own; none is part of the API.
const (
	// pollStarting is how often a JVM is asked while something is expected to change of the node,
	// pollChanging while something changes in the ring, or has within changing, and pollSteady
	// while nothing does. Each node of a ring that changes adds pollNode: a view of it costs more.
	pollStarting = 500 * time.Millisecond
	pollChanging = time.Second
	pollNode     = 4 * time.Millisecond
	pollSteady   = 5 * time.Second
	changing     = time.Minute

	// answerTolerance is how long a JVM may miss questions and count as answering.
	answerTolerance = 15 * time.Second

	// addressQuarantine is how long a ring remembers an address after its member has moved: 60 s
	// refused, then 60 s ignored (measured 122 s).
	addressQuarantine = 130 * time.Second
	// peersFresh is how old an answer of peers may be when a JVM is started or killed on it.
	peersFresh = 5 * time.Second
	// diskAgain is when a disk that could not be read is looked at again: somebody may have mended
	// it.
	diskAgain = time.Minute
	// peersAgain is when they are asked again after an answer that forbids.
	peersAgain = 10 * time.Second
	// silentSeedsLimit is how long a New ticket waits for the agents of all other seeds.
	silentSeedsLimit = 30 * time.Second

	// cutOffLimit is how long a member may have been without any word of API server and peers and
	// still start: the operator replaces nobody before that time.
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

	// backOffFirst doubles with each death in a row after the first, up to backOffLongest.
	backOffFirst   = 2 * time.Second
	backOffLongest = 5 * time.Minute
	// stableAfter is how long a JVM must have been NORMAL for its death to be the first of a new
	// row.
	stableAfter = 10 * time.Minute

	// stopReserve is the part of the grace period that is kept for TERM and KILL after a drain.
	stopReserve = 25 * time.Second
	// killReserve is the part that is kept for KILL.
	killReserve = 5 * time.Second
)

// running says whether a JVM runs, to the knowledge of init.
func (p *pass) running() bool { return p.Init.Process != nil }

// answers says whether the running JVM answers. One question that it missed, in a pause of its
// collector, is no silence yet.
func (p *pass) answers() bool {
	if !p.running() || p.JVM.StartID != p.Init.Process.StartID || p.JVM.Ring == nil || p.JVM.AnsweredAt.IsZero() {
		return false
	}
	return !p.JVM.AnsweredAt.Before(p.JVM.AskedAt) || p.now.Sub(p.JVM.AnsweredAt) < answerTolerance
}

// finishAction waits for the action under way: one at a time. What holds a node back holds while
// that is looked at again: as long as no JVM runs, or one joins or is to be opened to clients, the
// steps after this one are asked during a question, too, and only what they would do has to wait.
func finishAction(p *pass) outcome {
	if p.Doing == nil {
		return done
	}
	if p.Init.Stopping != nil {
		p.hold = !p.Init.Stopping.Alone
	}
	switch p.Doing.Action.(type) {
	case AskPeers, InspectDisk:
		if !p.running() || p.streamsIn() || p.opens() {
			return done
		}
	case RestoreDisk:
		return wait(v1alpha1.PhaseWaiting, join("the disk is filled with what is in the backup", p.Doing.Progress))
	}
	return p.underWay()
}

// underWay waits for an action.
func (p *pass) underWay() outcome {
	return wait("", fmt.Sprintf("%s is under way", KindOf(p.Doing.Action)))
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
