package node

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

// status is what is reported: the same facts give the same text, byte for byte, so that an agent
// with nothing to say writes nothing.
func (p *pass) status(last outcome) v1alpha1.CassandraNodeStatus {
	s := v1alpha1.CassandraNodeStatus{
		PodUID:       p.Self.PodUID,
		Address:      p.Self.Address,
		AgentVersion: p.Self.AgentVersion,
		Facts:        &v1alpha1.Endpoint{Address: p.Self.Address, Port: p.Self.FactsPort},
		HostID:       p.hostID(),
	}
	if p.Record != nil {
		s.ObservedGeneration = p.Record.Generation
	}
	s.Phase, s.Message = p.phase(last)
	s.Blocked = p.blockedBy(last)
	if p.deferred {
		s.Phase = v1alpha1.PhaseDeferred
		s.Message = p.held.Message
	}
	s.RepairDue, s.DiskRelease = p.Memory.RepairDue, p.Memory.Release
	p.reportDisk(&s)
	p.reportRing(&s)
	p.reportCertificates(&s)
	p.reportLog(&s)
	p.reportIntents(&s)
	p.reportConfiguration(&s)
	p.reportRestarts(&s)
	p.reportConditions(&s)
	s.Message = words.Shorten(s.Message, 4096)
	return s
}

// phase by the step that decided; a step that has none leaves that of the JVM.
func (p *pass) phase(last outcome) (v1alpha1.NodePhase, string) {
	if last.phase != "" {
		return last.phase, last.message
	}
	switch {
	case p.stopping():
		return v1alpha1.PhaseStopping, p.Memory.Stop.Why
	case p.running():
		return p.phaseOfJVM()
	case p.Record != nil && (p.Record.Spec.State == v1alpha1.StateStopped || p.debugged() != nil):
		return v1alpha1.PhaseStopped, p.whyStopped()
	case isStart(last.action) || p.Doing != nil && isStart(p.Doing.Action):
		return v1alpha1.PhaseStarting, "the JVM is being started"
	case last.action != nil:
		return v1alpha1.PhaseWaiting, "" // it is over in a moment
	default:
		return v1alpha1.PhaseWaiting, last.message
	}
}

func isStart(a Action) bool {
	_, is := a.(StartJVM)
	return is
}

// stopping says that the JVM which runs is being taken down.
func (p *pass) stopping() bool {
	return p.running() && p.Memory.Stop.of(p.Init.Incarnation, p.Init.Process.StartID)
}

func (p *pass) blockedBy(last outcome) *v1alpha1.NodeBlocked {
	if last.verdict == Blocked {
		return &v1alpha1.NodeBlocked{Reason: last.reason, Message: words.Shorten(last.message, 2048)}
	}
	if p.held == nil {
		return nil
	}
	return &v1alpha1.NodeBlocked{Reason: p.held.Reason, Message: words.Shorten(p.held.Message, 2048)}
}

// reportDisk says what was found before anything was started; for a JVM that ran before this agent
// did, what the journal says.
func (p *pass) reportDisk(s *v1alpha1.CassandraNodeStatus) {
	switch {
	case p.Disk.Known && !p.running():
		s.Disk, s.DiskOwner = p.finding.State, p.finding.Owner
	case p.Memory.LeftAt != nil:
		s.Disk = v1alpha1.DiskLeft
	case p.Memory.Member != nil:
		s.Disk = v1alpha1.DiskMember
	case p.Memory.Start != nil:
		s.Disk = v1alpha1.DiskJoining
	case p.lost() != "":
		s.Disk = v1alpha1.DiskMember // until the disk was looked at
	}
	if s.DiskOwner == nil && p.Memory.ClusterUID != "" && (!p.Disk.Known || p.running()) {
		s.DiskOwner = &v1alpha1.DiskOwner{ClusterUID: p.Memory.ClusterUID, Node: p.Memory.Node}
	}
}

// reportRing is what the JVM says of itself. What it said last stands while it does not answer, but
// then it is not ready.
func (p *pass) reportRing(s *v1alpha1.CassandraNodeStatus) {
	s.ClientTraffic = v1alpha1.TrafficClosed
	if m := p.Memory.Member; m != nil {
		s.Tokens = m.Tokens
	}
	view := p.JVM.Ring
	if !p.running() || view == nil || p.JVM.StartID != p.Init.Process.StartID {
		return
	}
	s.Version = view.ReleaseVersion
	if self, found := p.JVM.self(); found && len(self.Tokens) > 0 {
		s.Tokens = tokenTexts(self.Tokens)
	}
	if view.NativeRunning {
		s.ClientTraffic = v1alpha1.TrafficOpen
		if p.Record != nil && p.Record.Spec.ClientTraffic == v1alpha1.TrafficAdministrative {
			s.ClientTraffic = v1alpha1.TrafficAdministrative
		}
	}
	s.Ready = p.ready()
}

// reportLog says what is kept of the commit log: nothing that changes while all is well.
func (p *pass) reportLog(s *v1alpha1.CassandraNodeStatus) {
	l := p.Log
	if l == (Log{}) || p.Record == nil || p.Record.Spec.CommitLog == nil {
		return
	}
	s.CommitLog = &v1alpha1.CommitLogStatus{Hole: words.Shorten(l.Hole, 512), Problem: words.Shorten(l.Problem, 1024)}
	if !l.From.IsZero() {
		at := metav1.NewTime(l.From.Add(time.Second - 1).Truncate(time.Second))
		s.CommitLog.CoveredFrom = &at
	}
	if !l.Until.IsZero() {
		at := metav1.NewTime(l.Until.Truncate(time.Second))
		s.CommitLog.CoveredTo = &at
	}
}

// ready is the answer to the readiness probe: NORMAL, gossiping, open to clients, wanted so, and
// not on its way down.
func (p *pass) ready() bool {
	if !p.answers() || p.stopping() || p.Init.Stopping != nil || p.Record == nil ||
		p.Record.Spec.ClientTraffic != v1alpha1.TrafficOpen {
		return false
	}
	view := p.JVM.Ring
	return view.Mode == facts.ModeNormal && view.GossipRunning && view.NativeRunning && p.Memory.Member != nil
}

func (p *pass) reportIntents(s *v1alpha1.CassandraNodeStatus) {
	if m := p.Memory.Join; m != nil {
		s.Join = intentStatus(&m.IntentMemory, p.joinMessage)
		s.Join.Attempts = m.Attempts
	} else if p.lost() != "" { // its journal went with its disk
		s.Join = p.Record.Status.Join.DeepCopy()
	}
	if m := p.Memory.Restart; m != nil && (!m.over() || p.Record == nil || p.Record.Spec.Restart != nil) {
		s.Restart = intentStatus(&m.IntentMemory, "")
	}
	if p.restartMessage != "" {
		s.Restart = &v1alpha1.IntentStatus{ID: p.Record.Spec.Restart.ID, Message: words.Shorten(p.restartMessage, 1024)}
	}
	for _, m := range p.Memory.Operations {
		now := v1alpha1.OperationStatus{
			ID: m.ID, Phase: m.Phase, Message: words.Shorten(m.Message,
				4096), StartedAt: timeOf(m.BegunAt), FinishedAt: timeOf(m.FinishedAt), Uploaded: m.Handle.Uploaded,
		}
		if o := p.operation(m.ID); o != nil && m.Phase == v1alpha1.OperationRunning {
			now.Progress = o.Progress
			now.Message = words.Shorten(join(o.Message, p.transfer()), 4096)
		}
		s.Operations = append(s.Operations, now)
	}
}

// transfer says how far the streams are; empty if there are none.
func (p *pass) transfer() string {
	if t := p.JVM.Transfer; p.running() && p.JVM.StartID == p.Init.Process.StartID && t.Plans > 0 {
		return t.String()
	}
	return ""
}

// join puts two texts together, of which either may be empty.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func intentStatus(m *IntentMemory, message string) *v1alpha1.IntentStatus {
	if message == "" {
		message = m.Message
	}
	return &v1alpha1.IntentStatus{
		ID: m.ID, StartedAt: timeOf(m.BegunAt), FinishedAt: timeOf(m.FinishedAt), WithdrawnAt: timeOf(m.WithdrawnAt),
		Message: words.Shorten(message, 1024),
	}
}

func (p *pass) reportConfiguration(s *v1alpha1.CassandraNodeStatus) {
	c := v1alpha1.ConfigurationStatus{RestartNeeded: p.Configuration.RestartNeeded,
		Message: words.Shorten(p.Configuration.Problem, 2048)}
	if p.running() && p.Memory.Start.Is(p.Init.Incarnation, p.Init.Process.StartID) {
		c.Hash, c.Revision = p.Memory.Start.Hash, p.Memory.Start.Configuration.Revision
		c.Encryption = p.Memory.Start.Configuration.Encryption
	}
	if m := p.Memory.Proven; m != nil {
		s.Proven = &v1alpha1.ProvenStatus{PodTemplate: m.PodTemplate, Configuration: m.Configuration}
	}
	if c != (v1alpha1.ConfigurationStatus{}) {
		s.Configuration = &c
	}
	m := v1alpha1.MemoryStatus{Limit: bytesOf(p.Configuration.Limit), Heap: bytesOf(p.Configuration.Heap),
		Direct: bytesOf(p.Configuration.Direct)}
	if m.Heap != nil || m.Limit != nil {
		s.Memory = &m
	}
}

func (p *pass) reportRestarts(s *v1alpha1.CassandraNodeStatus) {
	d := p.Memory.Deaths
	if d == nil || d.PodUID != p.Self.PodUID {
		return
	}
	s.Restarts = &v1alpha1.RestartsStatus{Count: d.Count, LastReason: d.LastReason, LastAt: timeOf(&d.LastAt)}
	if p.now.Before(d.BackOffUntil) && !p.running() {
		s.Restarts.BackOffUntil = timeOf(&d.BackOffUntil)
	}
	if s.Message == "" && s.Phase != v1alpha1.PhaseNormal {
		s.Message = d.Message
	}
}

func (p *pass) reportConditions(s *v1alpha1.CassandraNodeStatus) {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady}
	is := func(c *metav1.Condition, status metav1.ConditionStatus, reason, message string) {
		c.Status, c.Reason, c.Message = status, reason, message
	}
	switch normal := p.answers() && p.JVM.Ring.Mode == facts.ModeNormal; {
	case s.Ready:
		is(&ready, metav1.ConditionTrue, v1alpha1.ReasonServing, "NORMAL, gossiping and open to clients")
	case normal && !p.JVM.Ring.GossipRunning:
		is(&ready, metav1.ConditionFalse, v1alpha1.ReasonGossipStopped, "gossip was stopped")
	case normal:
		is(&ready, metav1.ConditionFalse, v1alpha1.ReasonNotOpenToClients, "client traffic is "+string(s.ClientTraffic))
	default:
		is(&ready, metav1.ConditionFalse, v1alpha1.ReasonNotNormal, s.Message)
	}
	applied := metav1.Condition{Type: v1alpha1.ConditionConfigurationApplied}
	switch c := s.Configuration; {
	case p.Configuration.Problem != "":
		is(&applied, metav1.ConditionFalse, v1alpha1.ReasonUnknownSetting, p.Configuration.Problem)
	case p.Configuration.RestartNeeded:
		is(&applied, metav1.ConditionFalse, v1alpha1.ReasonRestartNeeded,
			"the JVM must be restarted to take the changes over")
	case !p.running() || c == nil || c.Hash == "" || c.Hash != p.Configuration.Hash:
		is(&applied, metav1.ConditionFalse, v1alpha1.ReasonChangePending,
			"no JVM runs with the configuration of the spec yet")
	default:
		is(&applied, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
	}
	all := []metav1.Condition{applied, ready}
	if found := p.diskProblem(); found.Reason != "" {
		all = append(all, metav1.Condition{Type: v1alpha1.ConditionDiskFailing, Status: metav1.ConditionTrue,
			Reason: found.Reason, Message: found.Message})
	}
	for _, c := range all {
		c.Message = words.Shorten(c.Message, 4096)
		c.ObservedGeneration = s.ObservedGeneration
		c.LastTransitionTime = p.transition(c)
		s.Conditions = append(s.Conditions, c)
	}
}

// transition is when a condition got its value: as the record has it if the value is the same.
func (p *pass) transition(c metav1.Condition) metav1.Time {
	if p.Record != nil {
		i := slices.IndexFunc(p.Record.Status.Conditions,
			func(old metav1.Condition) bool { return old.Type == c.Type && old.Status == c.Status })
		if i >= 0 {
			return p.Record.Status.Conditions[i].LastTransitionTime
		}
	}
	return *timeOf(&p.now)
}

// timeOf is a time as the API keeps it: UTC, whole seconds.
func timeOf(t *time.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	out := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &out
}

func bytesOf(n int64) *resource.Quantity {
	if n <= 0 {
		return nil
	}
	return resource.NewQuantity(n, resource.BinarySI)
}
