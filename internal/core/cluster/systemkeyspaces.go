package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
)

// distributedSystemKeyspaces are the system keyspaces that are replicated.
var distributedSystemKeyspaces = ring.SystemKeyspaces()

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
	if !tooFew(view, p.systemReplication()) {
		p.putLedger(false, "the system keyspaces have enough replicas", func(l *ledger.Ledger) { l.SystemKeyspaces = false; l.Replication = p.usedReplication() })
		return done()
	}
	if p.Cluster.Spec.Paused {
		return wait("spec.paused is true; the system keyspaces are to get more replicas")
	}
	names := p.upAmong(p.members())
	if len(names) < len(p.Ledger.Members) {
		return wait("until all members are up: the system keyspaces get more replicas")
	}
	if p.preparing() {
		return wait("the nodes are being prepared")
	}
	return p.openOperations(ledger.RaiseSystemKeyspaces, ledger.StageKeyspaces, names, "the system keyspaces get more replicas on %s")
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

// systemReplication is how many replicas the system keyspaces are to have, by the datacenter's name inside Cassandra: as many as keyspaces of the user will have, with fewer
// members their number.
func (p *pass) systemReplication() map[string]int32 {
	members := p.membersByDatacenter()
	out := map[string]int32{}
	for i := range p.Cluster.Spec.Datacenters {
		dc := &p.Cluster.Spec.Datacenters[i]
		if n := members[dc.Name]; n > 0 && p.Ledger.IsFormed(dc.Name) {
			out[render.DatacenterName(dc)] = min(dc.PlannedReplicationFactor, n)
		}
	}
	return out
}

// membersByDatacenter counts the members of each datacenter.
func (p *pass) membersByDatacenter() map[string]int32 {
	out := map[string]int32{}
	for name := range p.Ledger.Members {
		out[p.datacenterOf(name)]++
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

// raiseSystemKeyspaces has one member alter them.
func (p *pass) raiseSystemKeyspaces(s *ledger.Step) result {
	return p.alter(s, s.Wave(), alteration{
		purpose: "keyspaces", kind: v1alpha1.OperationAlterSystemKeyspaces, arguments: &v1alpha1.OperationArguments{Replication: p.systemReplication()},
		next: ledger.StageOperations, words: "gives the system keyspaces more replicas",
	})
}

// repairSystemKeyspaces repairs each member in turn, so that the new replicas hold what the old ones do.
func (p *pass) repairSystemKeyspaces(s *ledger.Step) result {
	names := s.Wave()
	arguments := &v1alpha1.OperationArguments{Keyspaces: distributedSystemKeyspaces, Full: true}
	if r, over := p.inTurn(s, "repair", inRows(names), v1alpha1.OperationRepair, arguments, "the system keyspaces are repaired"); !over {
		return r
	}
	if p.clearOperations(names) {
		return act("the operations are over")
	}
	p.putLedger(false, "the system keyspaces are repaired", func(l *ledger.Ledger) { l.SystemKeyspaces = false; l.Replication = p.usedReplication() })
	p.closeStep(s, false, v1alpha1.StepSucceeded, plural(len(names), "node"))
	p.event(corev1.EventTypeNormal, "SystemKeyspacesRaised", "the system keyspaces have as many replicas as there are nodes for")
	return done()
}
