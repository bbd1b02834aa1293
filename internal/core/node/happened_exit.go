package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// noteEnded takes in that the JVM of the journal runs no more: why, whether it counts, and when the
// next may start.
func noteEnded(p *pass) outcome {
	s := p.Memory.Start
	if s == nil || s.EndedAt != nil || !p.Init.Answers || p.Init.Unlocked != "" && !p.running() {
		return done // as long as another process has the volume it may be that JVM
	}
	if s.Incarnation != p.Init.Incarnation {
		return p.noteLostContainer(s)
	}
	if p.Init.Process != nil && p.Init.Process.StartID == s.StartID {
		return done
	}
	i := slices.IndexFunc(p.Init.Exits, func(e Exit) bool { return e.StartID == s.StartID })
	if i < 0 {
		if p.Init.LastStartID < s.StartID {
			// Written down, but init was never told: the agent ended in between. The start is
			// simply made again.
			return act(NoteExit{Why: "a start that was written down never reached init", EndedAt: s.At})
		}
		// Pushed out of init's list of exits.
		return act(p.death(v1alpha1.RestartExited, "the JVM ended and how is no longer known", p.now).unseen())
	}
	exit := p.Init.Exits[i]
	if stop := p.Memory.Stop; stop.of(p.Init.Incarnation, s.StartID) && stop.Reason == "" {
		return act(NoteExit{Why: Why("the JVM was stopped: " + stop.Why), EndedAt: exit.EndedAt})
	}
	if p.Init.Stopping != nil {
		return act(NoteExit{Why: "the JVM ended with its container", EndedAt: exit.EndedAt})
	}
	reason, message := p.explain(exit)
	return act(p.death(reason, message, exit.EndedAt))
}

// noteLostContainer is for a JVM whose container is gone. When it ended is not known: for the
// address that it had, now is the safe answer.
func (p *pass) noteLostContainer(s *StartMemory) outcome {
	stopped := p.Memory.Stop.of(s.Incarnation, s.StartID) && p.Memory.Stop.Reason == ""
	if stopped || s.PodUID != p.Self.PodUID {
		return act(NoteExit{Why: "the container of the last JVM is gone", EndedAt: p.now, Lost: true})
	}
	return act(p.death(v1alpha1.RestartInitRestarted,
		"the Cassandra container was started again: kubelet's last state of it says why (OOMKilled, Error)",
		p.now).unseen())
}

// unseen says of the end of a JVM that nobody saw it.
func (a NoteExit) unseen() NoteExit {
	a.Lost = true
	return a
}

// death takes in an end that nobody asked for.
func (p *pass) death(reason v1alpha1.RestartReason, message string, at time.Time) NoteExit {
	d := Deaths{PodUID: p.Self.PodUID, Count: 1, Row: 1, LastAt: at, LastReason: reason, Message: message}
	if before := p.Memory.Deaths; before != nil {
		if before.PodUID == p.Self.PodUID {
			d.Count = before.Count + 1
		}
		if !p.wasStable(at) {
			d.Row = before.Row + 1
		}
	}
	d.BackOffUntil = at.Add(backOffOf(d.Row))
	return NoteExit{Why: Why(message), Death: &d, EndedAt: at}
}

// wasStable says that the JVM which ended had been NORMAL for long enough to begin a new row.
func (p *pass) wasStable(endedAt time.Time) bool {
	normal := p.Memory.Start.NormalAt
	return normal != nil && endedAt.Sub(*normal) >= stableAfter
}

// backOffOf is how long to wait after so many deaths in a row. The first restart does not wait:
// most deaths are single.
func backOffOf(row int) time.Duration {
	if row <= 1 {
		return 0
	}
	wait := backOffFirst
	for ; row > 1 && wait < backOffLongest; row-- {
		wait *= 2
	}
	return min(wait, backOffLongest)
}

// Exit codes of the JVM under bin/cassandra.
const (
	codeConfiguration = 1   // ConfigurationException at the start, a decommissioned disk among them (measured)
	codeStartFailed   = 3   // RuntimeException: address taken, another node joins, replicas missing (measured)
	codeDiskFailure   = 100 // JVMStabilityInspector and disk_failure_policy die (StorageService, 4.1 and 5.0)
	codeOutOfMemory   = 3   // -XX:+ExitOnOutOfMemoryError, told from the former by having been NORMAL
	codeNotExecuted   = 127
)

// explain turns an exit into a reason and words.
func (p *pass) explain(e Exit) (v1alpha1.RestartReason, string) {
	line := orWords(p.JVM.FatalLine, e.Words)
	with := func(format string, args ...any) string {
		message := fmt.Sprintf(format, args...)
		if line == "" {
			return message + "; the container's log says why" // what Java says before Cassandra begins is only there
		}
		return message + ": " + line
	}
	normal := p.Memory.Start.NormalAt != nil
	if stop := p.Memory.Stop; stop.of(p.Init.Incarnation, e.StartID) && stop.Reason != "" {
		if line != "" && stop.Reason == v1alpha1.RestartStartFailed {
			return stop.Reason, stop.Why + ": " + line
		}
		return stop.Reason, stop.Why
	}
	switch {
	case e.Error != "":
		return v1alpha1.RestartStartFailed, "the JVM could not be run: " + e.Error
	case e.Signal == "SIGKILL":
		return v1alpha1.RestartKilled, "the JVM was killed (SIGKILL): by the kernel when the container has too " +
			"little memory beside the heap, or by hand"
	case e.Signal != "":
		return v1alpha1.RestartKilled, with("the JVM was ended by %s", e.Signal)
	case e.Code == 128+15 || e.Code == 0:
		return v1alpha1.RestartKilled, with(
			"the JVM was ended by a SIGTERM that did not come from Helenus (exit code %d)", e.Code)
	case e.Code == 128+6:
		return v1alpha1.RestartExited, with("the JVM crashed (exit code %d); its container's log and hs_err file say "+
			"where", e.Code)
	case strings.Contains(line, "OutOfMemoryError"):
		return v1alpha1.RestartOutOfMemory, with("the heap of the JVM was exhausted (exit code %d)", e.Code)
	case e.Code == codeDiskFailure:
		return v1alpha1.RestartDiskFailure, with("Cassandra ended itself because of the disk (exit code %d)", e.Code)
	case normal && e.Code == codeOutOfMemory:
		return v1alpha1.RestartOutOfMemory, with("the heap of the JVM was exhausted (exit code %d)", e.Code)
	case !normal && e.Code == codeConfiguration:
		return v1alpha1.RestartStartFailed, with("Cassandra refused its configuration or its disk (exit code %d)",
			e.Code)
	case !normal && e.Code == codeStartFailed:
		return v1alpha1.RestartStartFailed, with("Cassandra could not join the ring (exit code %d)", e.Code)
	case !normal && e.Code == codeNotExecuted:
		return v1alpha1.RestartStartFailed, with("bin/cassandra did not find what it needs (exit code %d)", e.Code)
	case !normal:
		return v1alpha1.RestartStartFailed, with("the JVM ended before it was in the ring (exit code %d)", e.Code)
	default:
		return v1alpha1.RestartExited, with("the JVM ended by itself (exit code %d)", e.Code)
	}
}

// backOff holds the next start back after a death.
func backOff(p *pass) outcome {
	d := p.Memory.Deaths
	if d == nil || !p.now.Before(d.BackOffUntil) {
		return done
	}
	if s := p.Memory.Start; s != nil && p.Configuration.Hash != "" && p.Configuration.Hash != s.Hash {
		return done // another configuration than the one that died: a corrected spec applies at once
	}
	return wait(v1alpha1.PhaseFailed,
		fmt.Sprintf("%s; started again at %s", d.Message,
			d.BackOffUntil.UTC().Format(time.RFC3339))).until(d.BackOffUntil)
}

// orWords is the line of Cassandra's log, or else what Java said first among its last words: the
// lines after that are the same whatever went wrong.
func orWords(line, words string) string {
	if line != "" {
		return line
	}
	for said := range strings.Lines(words) {
		said = strings.TrimSpace(said)
		if said == "" || strings.HasPrefix(said, "Picked up ") || strings.Contains(said, "warning:") ||
			strings.HasPrefix(said, "WARNING") {
			continue
		}
		if said == "Error occurred during initialization of VM" {
			line = said
			continue
		}
		if line != "" {
			return line + ": " + said
		}
		return said
	}
	return line
}
