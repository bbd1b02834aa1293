package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
)

// distributedSystemKeyspaces are the system keyspaces that are replicated (SchemaConstants.REPLICATED_SYSTEM_KEYSPACE_NAMES).
var distributedSystemKeyspaces = []string{"system_auth", "system_distributed", "system_traces"}

// systemKeyspaces gives the system keyspaces more replicas where nodes have joined, as many as keyspaces of the user are to have: a role that has one replica
// is lost with one node. Where they have as many already nothing is done.
func systemKeyspaces(p *pass) result {
	if !p.canChange() || !p.systemKeyspacesDue() {
		return done()
	}
	view := p.anyView()
	if view == nil {
		return wait("for a member that answers")
	}
	if !tooFew(view, p.wantedSystemReplication()) {
		p.putLedger(false, "the system keyspaces have enough replicas", func(l *facts.Ledger) { l.SystemKeyspaces = false; l.Replication = p.usedReplication() })
		return done()
	}
	if p.Cluster.Spec.Paused {
		return wait("spec.paused is true; the system keyspaces are to get more replicas")
	}
	names := p.upAmong(sortedKeys(p.Ledger.Members))
	if len(names) < len(p.Ledger.Members) {
		return wait("until all members are up: the system keyspaces get more replicas")
	}
	if p.preparing() {
		return wait("the nodes are being prepared")
	}
	return p.openOperations(facts.StepRaiseSystemKeyspaces, facts.StageKeyspaces, names, "the system keyspaces get more replicas on %s")
}

// systemKeyspacesDue says that nodes have joined, or that the user wants more replicas, since the system keyspaces were set.
func (p *pass) systemKeyspacesDue() bool {
	if p.Ledger.SystemKeyspaces {
		return true
	}
	for dc, factor := range p.usedReplication() {
		if was, known := p.Ledger.Replication[dc]; known && was < factor {
			return true
		}
	}
	return false
}

// wantedSystemReplication is how many replicas the system keyspaces are to have, by ring name of the datacenter.
func (p *pass) wantedSystemReplication() map[string]int32 {
	members := map[string]int32{}
	for name := range p.Ledger.Members {
		members[p.datacenterOf(name)]++
	}
	out := map[string]int32{}
	for i := range p.Cluster.Spec.Datacenters {
		dc := &p.Cluster.Spec.Datacenters[i]
		if n := members[dc.Name]; n > 0 && p.Ledger.IsFormed(dc.Name) {
			out[render.DatacenterRingName(dc)] = min(dc.ReplicationFactor, n)
		}
	}
	return out
}

// tooFew says that a system keyspace has fewer replicas than wanted.
func tooFew(view *facts.Ring, wanted map[string]int32) bool {
	for _, name := range distributedSystemKeyspaces {
		text, known := view.Keyspaces[name]
		if !known {
			continue
		}
		have, err := ring.ParseReplication(text)
		if err != nil {
			continue
		}
		for dc, n := range wanted {
			if have.Factor(dc) < int(n) {
				return true
			}
		}
	}
	return false
}

// raiseSystemKeyspaces continues: one node alters them, then each member in turn is repaired for them, so that the new replicas hold what the old ones do.
func (p *pass) raiseSystemKeyspaces(s *facts.OpenStep) result {
	names := s.Wave()
	if s.Stage == facts.StageKeyspaces {
		o := p.operate(s, "keyspaces", names[:1], v1alpha1.OperationAlterSystemKeyspaces, &v1alpha1.OperationArguments{Replication: p.wantedSystemReplication()})
		p.describe(s, 0, "node %s gives the system keyspaces more replicas: %s", names[0], list(o.waiting, 1))
		if len(o.finished) == 0 {
			return ifWritten(o, "node %s gives the system keyspaces more replicas", names[0])
		}
		p.putLedger(false, "the system keyspaces have more replicas", func(l *facts.Ledger) {
			advance(l.Step, facts.StageOperations, p.now)
			l.Step.Tries = nil
		})
		return act("the system keyspaces have more replicas")
	}
	finished := 0
	for _, name := range names {
		o := p.operate(s, "repair", []string{name}, v1alpha1.OperationRepair, &v1alpha1.OperationArguments{Keyspaces: distributedSystemKeyspaces, Full: true})
		if len(o.finished) > 0 {
			finished++
			continue
		}
		p.describe(s, finished, "the system keyspaces are repaired: %s", list(o.waiting, 1))
		return ifWritten(o, "node %s repairs the system keyspaces", name)
	}
	if p.clearOperations(names) {
		return act("the operations are over")
	}
	p.putLedger(false, "the system keyspaces are repaired", func(l *facts.Ledger) { l.SystemKeyspaces = false; l.Replication = p.usedReplication() })
	p.closeStep(s, v1alpha1.StepSucceeded, plural(len(names), "node"))
	p.event(corev1.EventTypeNormal, "SystemKeyspacesRaised", "the system keyspaces have as many replicas as there are nodes for")
	return done()
}

// ifWritten says that operations were begun, or what is waited for.
func ifWritten(o operated, format string, args ...any) result {
	if o.writes > 0 {
		return act(format, args...)
	}
	return wait("waiting for %s", list(o.waiting, 3))
}
