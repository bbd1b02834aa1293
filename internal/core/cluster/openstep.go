package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

const (
	// latecomerPatience is how long a formation waits for a node when all others have joined.
	latecomerPatience = 10 * time.Minute
	// operationPause is the time between two tries of an operation.
	operationPause = 5 * time.Second
)

// openStep continues the step that the ledger says is open, from wherever it is. It is never computed anew.
func openStep(p *pass) result {
	s := p.Ledger.Step
	if s == nil {
		return done()
	}
	if len(p.corrections) > 0 {
		p.describe(s, 0, "%s follow the corrected spec", plural(len(p.corrections), "node"))
		return act("%s follow the corrected spec", plural(len(p.corrections), "node"))
	}
	result := p.stage(s)
	if next := p.Ledger.Step; next != nil && next.Stage != s.Stage {
		// The next stage begins in the same pass: its writes follow the ledger's and are not made if that fails.
		if following := p.stage(next); following.outcome == plan.Act {
			result.message += "; " + following.message
		}
	}
	return result
}

// stage continues the stage that a step is in.
func (p *pass) stage(s *ledger.Step) result {
	type stages = map[ledger.Stage]func(*ledger.Step) result
	ring := stages{ledger.StageTickets: p.awaitRing, ledger.StageFormed: p.recordMembers, ledger.StageKeyspaces: p.setSystemKeyspaces, ledger.StageOpen: p.letClientsIn}
	kinds := map[ledger.Kind]stages{
		ledger.FormRing:             ring,
		ledger.AdoptRing:            ring,
		ledger.JoinNode:             {ledger.StageTickets: p.joinNode, ledger.StageOpen: p.joinNode},
		ledger.RaiseSystemKeyspaces: {ledger.StageKeyspaces: p.raiseSystemKeyspaces, ledger.StageOperations: p.repairSystemKeyspaces},
		ledger.Cleanup:              {ledger.StageOperations: p.cleanUp},
		ledger.ForgetJoin:           {ledger.StageOperations: p.forgetJoin},
		ledger.AddDatacenter: {
			ledger.StageTickets: p.awaitRing, ledger.StageFormed: p.recordMembers, ledger.StageKeyspaces: p.extendSystemKeyspaces, ledger.StageExtend: p.extendKeyspaces,
			ledger.StageRebuild: p.rebuild, ledger.StageOperations: p.repairExtended, ledger.StageOpen: p.letClientsIn,
		},
	}
	if do, known := kinds[s.Kind][s.Stage]; known {
		return do(s)
	}
	return p.unknownStage(s)
}

// open writes a step down as begun, counts it, and returns it. The change adds to the ledger what belongs to its kind.
func (p *pass) open(kind ledger.Kind, stage ledger.Stage, why string, change func(*ledger.Ledger)) *ledger.Step {
	p.putLedger(true, why, func(l *ledger.Ledger) {
		l.Steps++
		l.Step = &ledger.Step{ID: p.stepID(l.Steps), Kind: kind, Stage: stage, Generation: p.Cluster.Generation, OpenedAt: p.now, StageSince: p.now}
		change(l)
	})
	return p.Ledger.Step
}

// closeStep writes down that a step is over, and how it came out.
func (p *pass) closeStep(s *ledger.Step, live bool, came v1alpha1.StepResult, message string) {
	p.plan.Current = nil
	p.putLedger(live, "the step is over", func(l *ledger.Ledger) { l.Step = nil })
	p.plan.Finished = append(p.plan.Finished, v1alpha1.StepRecord{
		Step: string(s.Kind), Result: came, Message: message, StartedAt: metav1.NewTime(s.OpenedAt), FinishedAt: metav1.NewTime(p.now),
	})
}

func (p *pass) unknownStage(s *ledger.Step) result {
	p.stall(v1alpha1.ReasonUnsupportedChange, "the open step %s is in stage %q, which this release of Helenus does not know: run the release that began it", s.ID, s.Stage)
	return stuck("unknown stage %q", s.Stage)
}

// describe says in the status what the open step does.
func (p *pass) describe(s *ledger.Step, doneNodes int, format string, args ...any) {
	wave := s.Wave()
	r := wait(format, args...)
	since := metav1.NewTime(s.OpenedAt)
	p.plan.Current = &v1alpha1.StepStatus{Name: string(s.Kind), Message: r.message, Nodes: wave, Since: &since}
	if len(wave) > 0 {
		percent := int32(100 * doneNodes / len(wave)) //nolint:gosec // at most 100
		p.plan.Current.Progress = &percent
	}
}

// awaitRing waits until every node of the wave is NORMAL in the view of every other, with the tokens it was given and one schema. It issues tickets that
// were not written yet, and takes a latecomer out.
func (p *pass) awaitRing(s *ledger.Step) result {
	if s.Kind == ledger.AddDatacenter && slices.ContainsFunc(s.Wave(), p.isGivenUp) {
		return p.giveUpWave(s)
	}
	issued := 0
	for _, name := range s.Wave() {
		n := p.Nodes[name]
		if n != nil && n.Record != nil && n.Record.DeletionTimestamp == nil && n.Record.Spec.Join == nil && n.Record.Spec.Member == nil {
			p.issueTicket(s, n)
			issued++
		}
	}
	if issued > 0 {
		return act("%s get their tickets", plural(issued, "node"))
	}
	views := p.viewsOf(s)
	if len(views.doubts) == 0 {
		p.putLedger(true, "the ring stands", func(l *ledger.Ledger) {
			l.Formed = slices.Compact(slices.Sorted(slices.Values(append(l.Formed, s.Datacenters...))))
			if l.Members == nil {
				l.Members = map[string]string{}
			}
			for name, id := range views.hostIDs {
				l.Members[name] = id
			}
			l.LeftBehind = slices.DeleteFunc(l.LeftBehind, func(name string) bool { return l.Members[name] != "" })
			advance(l.Step, ledger.StageFormed, p.now)
		})
		p.event(corev1.EventTypeNormal, "RingFormed", "%s have formed the ring", plural(len(views.hostIDs), "node"))
		return act("the ring stands: %s", plural(len(views.hostIDs), "node"))
	}
	p.describe(s, len(views.normal), "waiting for the ring: %s", list(views.doubts, 3))
	if r, took := p.withdrawLatecomers(s, views); took {
		return r
	}
	return wait("waiting for the ring: %s", list(views.doubts, 3))
}

func advance(s *ledger.Step, to ledger.Stage, now time.Time) {
	s.Stage, s.StageSince, s.Attempt, s.Tries = to, now, 0, nil
}

// withdrawLatecomers takes nodes out of the wave that did not come within the patience after all others had. Each is taken out with its agent's
// acknowledgement, or with the proof that the pod which had the ticket is gone.
func (p *pass) withdrawLatecomers(s *ledger.Step, v views) (result, bool) {
	var late []*facts.Node
	var last time.Time
	for _, name := range s.Wave() {
		n := p.Nodes[name]
		status := joinStatus(n, s)
		if status != nil && status.FinishedAt != nil {
			if status.FinishedAt.After(last) {
				last = status.FinishedAt.Time
			}
			continue
		}
		late = append(late, n)
	}
	// The others must be a ring among themselves: a latecomer is never the reason why they are not.
	if len(late) == 0 || len(late) == len(s.Wave()) || len(v.othersDoubt(late)) > 0 {
		return result{}, false
	}
	if left := last.Add(latecomerPatience).Sub(p.now); left > 0 {
		p.wakeIn(left)
		return result{}, false
	}
	for _, n := range late {
		if n == nil || n.Record == nil {
			continue // its record is being made again
		}
		if p.joined(n) {
			p.block(string(s.Kind), v1alpha1.BlockedStragglerInRing, []string{n.Name},
				"node %s did not report that it joined, but another node or its own disk says that it is in the ring: waits until its agent answers, and does not leave it out", n.Name)
			continue
		}
		if withdrawn(n, s) {
			name := n.Name
			p.putLedger(true, "it did not come", func(l *ledger.Ledger) { l.Step.Withdrawn = append(l.Step.Withdrawn, name) })
			p.event(corev1.EventTypeWarning, "NodeWithdrawn", "node %s did not join within %s of the others and is left out of the formation", name, latecomerPatience)
			return act("%s is left out", name), true
		}
		if n.Record.Spec.Join != nil && p.withdrawTicket(n, "it did not join in time") {
			return act("withdrawing the ticket of %s", n.Name), true
		}
	}
	return wait("waiting for %s to acknowledge that the ticket is withdrawn", plural(len(late), "node")), true
}

// joinStatus is what the record says of the step's ticket.
func joinStatus(n *facts.Node, s *ledger.Step) *v1alpha1.IntentStatus {
	if n == nil || n.Record == nil || n.Record.Status.Join == nil || n.Record.Status.Join.ID != s.IntentID("join", n.Name) {
		return nil
	}
	return n.Record.Status.Join
}

// recordMembers writes into every record who the node is, and takes its ticket away.
func (p *pass) recordMembers(s *ledger.Step) result {
	written := 0
	var waiting []string
	for _, name := range s.Wave() {
		n := p.Nodes[name]
		if n == nil || n.Record == nil || n.Record.DeletionTimestamp != nil {
			waiting = append(waiting, name)
			continue
		}
		if n.Record.Spec.Member != nil && n.Record.Spec.Join == nil {
			continue
		}
		if status := joinStatus(n, s); n.Record.Spec.Join != nil && (status == nil || status.FinishedAt == nil) {
			waiting = append(waiting, name)
			continue
		}
		record := render.ForApply(p.owner(), n.Record)
		record.Spec.Member = &v1alpha1.Member{HostID: p.Ledger.Members[name]}
		record.Spec.Join = nil
		if serves(n) && record.Spec.ClientTraffic == v1alpha1.TrafficClosed {
			// Ledger and record were lost. This keeps its connections, and sends it nobody before the step lets clients in.
			record.Spec.ClientTraffic = v1alpha1.TrafficAdministrative
		}
		p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Why: "it is a member"})
		written++
	}
	p.describe(s, len(s.Wave())-written-len(waiting), "the records learn who is a member")
	switch {
	case written > 0:
		return act("%s become members by record", plural(written, "node"))
	case len(waiting) > 0:
		return wait("waiting for %s to report that the join has finished", list(waiting, 3))
	}
	next := ledger.StageKeyspaces
	if s.Kind == ledger.AdoptRing {
		next = ledger.StageOpen
	}
	p.putLedger(true, "every record knows its member", func(l *ledger.Ledger) {
		l.TrafficAllowed = true
		advance(l.Step, next, p.now)
	})
	return act("every record knows its member")
}

// serves says that the native transport of a node is open to anybody, as far as its agent or its record knows.
func serves(n *facts.Node) bool {
	open := []v1alpha1.ClientTraffic{v1alpha1.TrafficOpen, v1alpha1.TrafficAdministrative}
	agent := n.CurrentAgent()
	return agent != nil && slices.Contains(open, agent.Traffic) || n.StatusIsCurrent() && slices.Contains(open, n.Record.Status.ClientTraffic)
}

// setSystemKeyspaces lets one node be administered and has it set the replication of the system keyspaces, before any client is let in.
func (p *pass) setSystemKeyspaces(s *ledger.Step) result {
	n := p.administrator(s)
	if n == nil {
		return wait("waiting for a node that can be administered")
	}
	p.describe(s, 0, "node %s sets the system keyspaces", n.Name)
	id := s.IntentID(attempt("keyspaces", s.Attempt), n.Name)
	status := n.Record.Status.Operation(id)
	begun := status != nil
	// A record that was made anew since has the word of the agent and not the intent, which nobody can write a second time.
	if !begun && n.Record.Spec.Operation(id) == nil {
		record := render.ForApply(p.owner(), n.Record)
		record.Spec.ClientTraffic = v1alpha1.TrafficAdministrative
		record.Spec.Operations = []v1alpha1.OperationIntent{{
			Intent:    v1alpha1.Intent{ID: id},
			Type:      v1alpha1.OperationAlterSystemKeyspaces,
			Arguments: &v1alpha1.OperationArguments{Replication: p.systemReplication()},
		}}
		p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Live: true, Why: "it sets the system keyspaces"})
		return act("node %s sets the system keyspaces", n.Name)
	}
	if !begun {
		return wait("waiting for node %s to begin", n.Name)
	}
	switch status.Phase {
	case v1alpha1.OperationSucceeded:
		// What an operation has come to never changes, so nothing has to be asked again: by the altered schema every node's facts change just now.
		p.putLedger(false, "the system keyspaces are set", func(l *ledger.Ledger) { advance(l.Step, ledger.StageOpen, p.now) })
		return act("the system keyspaces are set")
	case v1alpha1.OperationFailed, v1alpha1.OperationInterrupted, v1alpha1.OperationWithdrawn:
		p.notice(v1alpha1.NoticeSystemKeyspacesNotSet, []string{n.Name}, "node %s could not alter the system keyspaces: %s; it is retried", n.Name, status.Message)
		if status.FinishedAt != nil {
			if left := status.FinishedAt.Add(operationPause).Sub(p.now); left > 0 {
				return p.retry(left, "trying again: %s", status.Message)
			}
		}
		p.putLedger(true, "another try", func(l *ledger.Ledger) { l.Step.Attempt++ })
		return act("trying again: %s", status.Message)
	case v1alpha1.OperationRunning:
	}
	return wait("node %s: %s", n.Name, orElse(status.Message, "setting the system keyspaces"))
}

// administrator is the node that is administered: the one that has the intent already, else the first that serves the ring.
func (p *pass) administrator(s *ledger.Step) *facts.Node {
	var first *facts.Node
	for _, name := range s.Wave() {
		n := p.Nodes[name]
		if n == nil || n.Record == nil || n.Record.DeletionTimestamp != nil {
			continue
		}
		if n.Record.Spec.Operation(s.IntentID(attempt("keyspaces", s.Attempt), name)) != nil {
			return n
		}
		if first == nil && n.Record.Status.Phase == v1alpha1.PhaseNormal && n.StatusIsCurrent() {
			first = n
		}
	}
	return first
}

// letClientsIn opens every node for clients and closes the step.
func (p *pass) letClientsIn(s *ledger.Step) result {
	written := 0
	for _, name := range s.Wave() {
		n := p.Nodes[name]
		if n == nil || n.Record == nil || n.Record.DeletionTimestamp != nil {
			return wait("waiting for the record of %s", name)
		}
		if n.Record.Spec.ClientTraffic == v1alpha1.TrafficOpen && len(n.Record.Spec.Operations) == 0 {
			continue
		}
		record := render.ForApply(p.owner(), n.Record)
		record.Spec.ClientTraffic = v1alpha1.TrafficOpen
		record.Spec.Operations = nil
		p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Why: "clients may come in"})
		written++
	}
	p.describe(s, len(s.Wave())-written, "clients are let in")
	if written > 0 {
		return act("%s open for clients", plural(written, "node"))
	}
	nodes := plural(len(s.Wave()), "node")
	p.putLedger(false, "clients are let in", func(l *ledger.Ledger) { l.LeftBehind = append(l.LeftBehind, s.Withdrawn...) })
	p.closeStep(s, false, v1alpha1.StepSucceeded, nodes)
	switch s.Kind {
	case ledger.AdoptRing:
		p.event(corev1.EventTypeNormal, "RingAdopted", "%s start on their disks and are open to clients", nodes)
	case ledger.AddDatacenter:
		p.event(corev1.EventTypeNormal, "DatacenterAdded", "%s of datacenter %s serve clients", nodes, list(s.Datacenters, 1))
	default:
		p.event(corev1.EventTypeNormal, "ClusterFormed", "%s serve clients", nodes)
	}
	return done()
}
