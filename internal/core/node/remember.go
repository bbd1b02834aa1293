package node

import (
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node/operation"
)

// Before is the memory as it must be durable before an action has its effect.
func Before(f *Facts, a Action, now time.Time) Memory {
	m := f.Memory
	a.before(&m, f, now.UTC())
	if m.ClusterUID == "" && f.diskIsNew() {
		m.ClusterUID, m.Node = f.Self.ClusterUID, f.Self.Node
	}
	return m
}

// After is the memory once an action has had its effect.
func After(f *Facts, a Action) Memory {
	m := f.Memory
	a.after(&m, f)
	return m
}

// Own is the part of a journal that a node may go by: all of it if it is the node's own or that of
// the member it adopts, nothing of another's.
func Own(m Memory, self Self, record *v1alpha1.CassandraNode) Memory {
	adopted := record != nil && record.Spec.Cluster.AdoptedUID != "" && m.ClusterUID == record.Spec.Cluster.AdoptedUID
	if m.ClusterUID == "" || m.Node == self.Node && (m.ClusterUID == self.ClusterUID || adopted) {
		return m
	}
	return Memory{}
}

// diskIsNew says that the disk was looked at and holds nothing, so that the journal of this node
// may begin on it.
func (f *Facts) diskIsNew() bool {
	return f.Disk.Known && f.Disk.Problem == "" && !f.Disk.HasData && f.Disk.dataMarker() == nil
}

// before notes what went with a commit log volume that is not the one which the node had.
func (a ClaimDisk) before(m *Memory, f *Facts, at time.Time) {
	log := f.Disk.volume(v1alpha1.VolumeCommitlog)
	if f.Disk.HasData && f.Disk.dataMarker() != nil && log != nil && log.Marker == nil {
		m.repairDue(v1alpha1.RepairCommitLogLost, at)
	}
}

func (a ClaimDisk) after(m *Memory, f *Facts) {
	if m.ClusterUID != a.Cluster {
		// Adopted: the nodes of the earlier cluster were all away together, so none of them deleted
		// anything meanwhile.
		m.NormalAt, m.Proven = nil, nil
	}
	m.ClusterUID, m.Node = a.Cluster, f.Self.Node
}

func (a WipeJoin) before(m *Memory, _ *Facts, at time.Time) {
	m.Join = with(m.Join, func(j *JoinMemory) { j.Wipe = &WipeMemory{ID: a.ID, BegunAt: at} })
}

func (WipeJoin) after(m *Memory, _ *Facts) {
	m.Join = with(m.Join, func(j *JoinMemory) { j.Wipe = with(j.Wipe, func(w *WipeMemory) { w.Done = true }) })
}

func (KeepRecord) before(m *Memory, f *Facts, _ time.Time) {
	m.Record = &RecordMemory{UID: f.Record.UID, Generation: f.Record.Generation, Spec: *f.Record.Spec.DeepCopy()}
	m.Seeds = f.Seeds
	m.RepairDue = slices.DeleteFunc(slices.Clone(m.RepairDue), func(d v1alpha1.RepairDue) bool {
		return slices.ContainsFunc(f.Record.Spec.Repaired, d.Is)
	})
}

func (NoteLeft) before(m *Memory, _ *Facts, at time.Time) { m.LeftAt = &at }

func (a FinishJoin) before(m *Memory, _ *Facts, at time.Time) {
	m.Member = &Member{HostID: a.HostID, Tokens: a.Tokens, Since: at}
	m.Neighbours = a.Neighbours
	m.Join = with(m.Join, func(j *JoinMemory) { j.FinishedAt = &at })
}

func (a BeginStop) before(m *Memory, f *Facts, at time.Time) {
	m.Stop = &StopMemory{
		Incarnation: f.Init.Incarnation, StartID: f.Init.Process.StartID, Why: a.Because(), Reason: a.Reason,
		BegunAt: at,
	}
	m.normalWith(f)
}

func (Drain) before(m *Memory, f *Facts, at time.Time) {
	m.normalWith(f)
	m.stopStep(f, func(s *StopMemory) { s.DrainAt = &at })
}

func (Terminate) before(m *Memory, f *Facts, at time.Time) {
	m.stopStep(f, func(s *StopMemory) { s.TermAt = &at })
}

func (a OpenTraffic) before(m *Memory, _ *Facts, at time.Time) {
	if m.TrafficOpenedAt == nil {
		m.TrafficOpenedAt = &at
	}
	m.Start = with(m.Start, func(s *StartMemory) { s.Blind = a.Blind })
}

func (NoteSight) before(m *Memory, _ *Facts, _ time.Time) {
	m.Start = with(m.Start, func(s *StartMemory) { s.Blind = "" })
}

func (CloseTraffic) before(m *Memory, f *Facts, at time.Time) {
	m.stopStep(f, func(s *StopMemory) { s.ClosedAt = &at })
}

func (a SetSeeds) after(m *Memory, _ *Facts) {
	m.Start = with(m.Start, func(s *StartMemory) { s.Seeds = a.Seeds })
}

func (ApplySettings) after(m *Memory, f *Facts) {
	m.Start = with(m.Start, func(s *StartMemory) {
		s.Configuration, s.Hash = f.Record.Spec.Configuration, f.Configuration.Hash
	})
	m.Proven = &ProvenMemory{PodTemplate: f.podTemplate(m), Configuration: m.Start.Hash} // it is NORMAL
}

func (a WithdrawJoin) before(m *Memory, _ *Facts, at time.Time) {
	if m.Join == nil || m.Join.ID != a.ID {
		m.Join = &JoinMemory{IntentMemory: IntentMemory{ID: a.ID}}
	}
	m.Join = with(m.Join, func(j *JoinMemory) { j.WithdrawnAt, j.Message = &at, a.Because() })
}

func (a WithdrawRestart) before(m *Memory, _ *Facts, at time.Time) {
	m.Restart = &RestartMemory{IntentMemory: IntentMemory{ID: a.ID, WithdrawnAt: &at, Message: a.Because()}}
}

func (a WithdrawOperation) before(m *Memory, f *Facts, at time.Time) {
	m.noteOperation(f.Record, OperationMemory{
		ID: a.ID, Phase: v1alpha1.OperationWithdrawn, FinishedAt: &at, Message: a.Because(),
	})
}

func (a BeginRestart) before(m *Memory, f *Facts, at time.Time) {
	m.Restart = &RestartMemory{IntentMemory: IntentMemory{ID: a.ID, BegunAt: &at}}
	if f.Init.Process != nil {
		m.Restart.Incarnation, m.Restart.StartID = f.Init.Incarnation, f.Init.Process.StartID
	}
}

func (FinishRestart) before(m *Memory, _ *Facts, at time.Time) {
	m.Restart = with(m.Restart, func(r *RestartMemory) { r.FinishedAt = &at })
}

func (a RunOperation) before(m *Memory, f *Facts, at time.Time) {
	m.noteOperation(f.Record, OperationMemory{
		ID: a.Operation.ID, Type: a.Operation.Type, Arguments: a.Operation.Arguments,
		Incarnation: f.Init.Incarnation, StartID: f.Init.Process.StartID,
		Phase: v1alpha1.OperationRunning, BegunAt: &at,
	})
	if kind, _ := operation.Of(a.Operation.Type); kind.RepairDue != "" {
		m.repairDue(kind.RepairDue, at)
	}
}

func (a FinishOperation) before(m *Memory, f *Facts, at time.Time) {
	phase := v1alpha1.OperationSucceeded
	switch {
	case a.Cancelled:
		phase = v1alpha1.OperationCancelled
	case a.Failed:
		phase = v1alpha1.OperationFailed
	}
	m.endOperation(f, a.ID, phase, a.Because(), at)
}

func (a InterruptOperation) before(m *Memory, f *Facts, at time.Time) {
	m.endOperation(f, a.ID, v1alpha1.OperationInterrupted, a.Because(), at)
}

func (m *Memory) endOperation(f *Facts, id string, phase v1alpha1.OperationPhase, message string, at time.Time) {
	if was := m.Operation(id); was != nil {
		now := *was
		if phase == v1alpha1.OperationSucceeded && repairsNode(f.Record, id) {
			m.RepairDue = slices.DeleteFunc(slices.Clone(m.RepairDue), func(d v1alpha1.RepairDue) bool {
				return was.BegunAt != nil && !d.Since.After(*was.BegunAt)
			})
		}
		now.Phase, now.FinishedAt, now.Message = phase, &at, message
		m.noteOperation(f.Record, now)
	}
}

// take begins to go by a ticket, and says whether it is another one than before.
func (m *Memory) take(t *v1alpha1.JoinTicket, at time.Time) bool {
	if t == nil || m.Join != nil && m.Join.ID == t.ID {
		return false
	}
	m.Join = &JoinMemory{
		IntentMemory: IntentMemory{ID: t.ID, BegunAt: &at}, Mode: t.Mode, Tokens: t.Tokens,
		Replace: t.Replace, SystemAuthReplicationFactor: t.SystemAuthReplicationFactor, Restore: t.Restore,
	}
	return true
}

func (a RestoreDisk) before(m *Memory, _ *Facts, at time.Time) { m.take(a.Ticket, at) }

func (RestoreDisk) after(m *Memory, _ *Facts) {
	m.Join = with(m.Join, func(j *JoinMemory) { j.Restored = true })
}

func (a StartJVM) before(m *Memory, f *Facts, at time.Time) {
	s := a.Start
	if m.take(s.Ticket, at) {
		// nobody can have heard of it
	} else if heard := lastHeard(m, f.Disk); heard != nil {
		m.Join = with(m.Join, func(j *JoinMemory) { j.Heard = heard })
	}
	if s.Ticket != nil {
		m.Join = with(m.Join, func(j *JoinMemory) { j.Attempts++ })
	}
	if f.downTooLong(at) {
		m.repairDue(v1alpha1.RepairDownLongerThanGCGrace, at)
	}
	m.Start = &StartMemory{
		PodUID: f.Self.PodUID, Incarnation: s.Incarnation, StartID: s.StartID, At: at,
		Configuration: s.Configuration, Hash: s.Hash, Seeds: s.Seeds, Joined: f.Disk.Bootstrapped == WordCompleted,
		Generation: f.Disk.Generation,
	}
	m.Stop = nil
	m.Addresses = useAddress(m.Addresses, f.Self.Address, at)
	m.Replaced = f.EveryReplaced()
	m.contact(f, at)
}

func (a NoteExit) before(m *Memory, f *Facts, at time.Time) {
	ended := a.EndedAt.UTC()
	if m.Start != nil && m.Start.NormalAt != nil {
		m.Normal = facts.EndStretch(m.Normal, normalUntil(m, ended, a.Lost))
	}
	m.Start = with(m.Start, func(s *StartMemory) { s.EndedAt, s.Lost = &ended, a.Lost })
	if a.Death != nil {
		m.Deaths = a.Death
	}
	if len(m.Addresses) > 0 && m.Addresses[0].LastUsed.Before(ended) {
		m.Addresses = useAddress(m.Addresses, m.Addresses[0].Address, ended)
	}
	m.contact(f, at)
}

func (a NoteNormal) before(m *Memory, f *Facts, at time.Time) {
	if m.Start != nil && m.Start.NormalAt == nil {
		if m.NormalAt != nil && at.Sub(*m.NormalAt) > f.Configuration.HintWindow {
			m.repairDue(v1alpha1.RepairAwayLongerThanHintWindow, at)
		}
		m.Normal = facts.BeginStretch(m.Normal, at)
	}
	m.NormalAt = &at
	m.Neighbours = a.Neighbours
	if g := f.JVM.GCGrace; g != nil {
		m.GCGrace = *g
	}
	m.Start = with(m.Start, func(s *StartMemory) {
		if s.NormalAt == nil {
			s.NormalAt = &at
		}
	})
	m.normalWith(f)
	if m.Start != nil {
		m.Proven = &ProvenMemory{PodTemplate: f.podTemplate(m), Configuration: m.Start.Hash}
	}
	m.Addresses = useAddress(m.Addresses, f.Self.Address, at)
	m.Replaced = f.EveryReplaced()
	m.contact(f, at)
}

func (a Kill) before(m *Memory, f *Facts, at time.Time) {
	if a.Reason != "" {
		m.Stop = &StopMemory{
			Incarnation: f.Init.Incarnation, StartID: f.Init.Process.StartID, Why: a.Because(), Reason: a.Reason,
			BegunAt: at,
			TermAt:  &at, KillAt: &at,
		}
		return
	}
	m.stopStep(f, func(s *StopMemory) { s.KillAt = &at })
}

// normalUntil is when a JVM that has ended was NORMAL at the latest. Nobody saw the end of one that
// is lost; its agent noted that it was NORMAL until shortly before.
func normalUntil(m *Memory, ended time.Time, lost bool) time.Time {
	if m.NormalAt == nil || !lost {
		return ended
	}
	if noted := m.NormalAt.Add(normalEvery); noted.Before(ended) {
		return noted
	}
	return ended
}

// repairDue notes why the node's data must be repaired, at the last time that it happened.
func (m *Memory) repairDue(reason v1alpha1.RepairReason, at time.Time) {
	m.RepairDue = append(slices.DeleteFunc(slices.Clone(m.RepairDue),
		func(d v1alpha1.RepairDue) bool { return d.Reason == reason }),
		v1alpha1.RepairDue{Reason: reason, Since: *timeOf(&at)})
}

// repairsNode says that an operation of the record repairs all that a node holds.
func repairsNode(record *v1alpha1.CassandraNode, id string) bool {
	if record == nil {
		return false
	}
	o := record.Spec.Operation(id)
	return o != nil && o.Type == v1alpha1.OperationRepair && o.Arguments != nil && o.Arguments.Full &&
		len(o.Arguments.Keyspaces) == 0 && len(o.Arguments.Datacenters) == 0 && !o.Arguments.PrimaryRange
}

// normalWith remembers the release with which the node is NORMAL, if it is: one that is stopped as
// soon as it comes up has written on its disk, too.
func (m *Memory) normalWith(f *Facts) {
	if f.Init.Process == nil || f.JVM.Ring == nil || f.JVM.StartID != f.Init.Process.StartID {
		return
	}
	if view := f.JVM.Ring; view.Mode == facts.ModeNormal && view.ReleaseVersion != "" &&
		!settings.Older(view.ReleaseVersion, m.Release) {
		m.Release = view.ReleaseVersion
	}
}

// stopStep notes a step of the stop of the running JVM; outside of a stop there is nothing to note.
func (m *Memory) stopStep(f *Facts, change func(*StopMemory)) {
	if f.Init.Process != nil && m.Stop.of(f.Init.Incarnation, f.Init.Process.StartID) {
		m.Stop = with(m.Stop, change)
	}
}

// contact notes when the API server or a peer was last heard.
func (m *Memory) contact(f *Facts, at time.Time) {
	heard := later(f.APISeenAt, f.Peers.HeardAt)
	if f.JVM.Ring != nil && len(f.JVM.Ring.Endpoints) > 1 && slices.ContainsFunc(f.JVM.Ring.Endpoints, f.livePeer) {
		heard = later(heard, f.JVM.AnsweredAt)
	}
	if heard.After(at) {
		heard = at
	}
	heard = heard.UTC()
	if !heard.IsZero() && (m.ContactAt == nil || m.ContactAt.Before(heard)) {
		m.ContactAt = &heard
	}
}

// with changes a copy: what was remembered before is not touched.
func with[T any](old *T, change func(*T)) *T {
	if old == nil {
		return nil
	}
	next := *old
	change(&next)
	return &next
}
