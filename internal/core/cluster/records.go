package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// nodeRecords keeps one record for each node. Until the first ticket is out the records follow the spec in everything. After that a record is made again
// where one that belongs to the ring has gone, with the identity the ledger remembers, and nodes that are not in the ring follow corrections.
func nodeRecords(p *pass) result {
	before := len(p.plan.Writes)
	p.correct()
	defer p.rightRecords()
	if p.held {
		// A record that is being deleted stays for as long: what it pins cannot be taken from a spec that is refused.
		return p.reportMissingRecords()
	}
	for _, n := range p.Records() {
		if n.Record.DeletionTimestamp != nil {
			p.releaseRecord(n)
		}
	}
	if p.begun() {
		p.restoreRecords()
		for _, name := range p.leavers {
			p.letGo(p.Nodes[name], "the spec no longer has this node, which has not joined")
		}
	} else {
		if r := p.adoptableClaims(); r.outcome != plan.Done {
			return r
		}
		p.followSpec()
	}
	if n := len(p.plan.Writes) - before; n > 0 {
		return act("putting the records right: %s", plural(n, "write"))
	}
	return done()
}

// releaseRecord lets a record go that somebody deleted. Its pod is taken from it first, so that the garbage collector leaves it running; the record is
// then made anew, or the pod is deleted in order, as the spec says.
func (p *pass) releaseRecord(n *facts.Node) {
	if n.Pod != nil && facts.Owned(n.Pod, string(n.Record.UID)) {
		pod := named(n.Pod)
		p.write(plan.Write{Verb: plan.SetOwners, Object: pod, UID: n.Pod.UID, ResourceVersion: n.Pod.ResourceVersion, Why: "its record is being deleted"})
	}
	if hasFinalizer(n.Record, v1alpha1.FinalizerNode) {
		p.write(plan.Write{Verb: plan.Release, Object: named(n.Record), UID: n.Record.UID, Finalizer: v1alpha1.FinalizerNode})
	}
}

// followSpec makes the records what the spec describes.
func (p *pass) followSpec() {
	wanted := map[string]bool{}
	for _, w := range p.wanted {
		wanted[w.Name] = true
		n := p.Nodes[w.Name]
		switch record := recordOf(n); {
		case record == nil:
			p.write(plan.Write{Verb: plan.Create, Object: render.Record(p.owner(), w, p.claimsOf(n, w), p.Cluster.Spec.AdoptedUID())})
		case record.DeletionTimestamp == nil && !p.compared.Same(n, w):
			changed := render.ForApply(p.owner(), record)
			changed.Spec.Configuration, changed.Spec.Pod = w.Configuration, w.Pod
			p.write(plan.Write{Verb: plan.Apply, Object: changed, UID: record.UID, ResourceVersion: record.ResourceVersion, Why: "the spec has changed"})
		}
	}
	for _, n := range p.Records() {
		if wanted[n.Name] {
			continue
		}
		p.letGo(n, "the spec no longer has this node, which never joined")
	}
}

// letGo removes a node that has no part in the ring: its pod, claims without a volume, and then its record. Nothing is made for it any more.
func (p *pass) letGo(n *facts.Node, why string) {
	if p.unwanted == nil {
		p.unwanted = map[string]bool{}
	}
	p.unwanted[n.Name] = true
	if n.Pod != nil && n.Pod.DeletionTimestamp == nil {
		p.write(deletePod(n.Pod, why))
	}
	bound := map[string]v1alpha1.ClaimReference{}
	for _, c := range n.Record.Spec.Claims {
		if !n.Claims[c.Volume].Unbound() {
			bound[c.Volume] = c
		}
	}
	switch {
	case n.Pod != nil:
	case n.Record.DeletionTimestamp == nil && len(bound) < len(n.Record.Spec.Claims):
		p.pin(n, bound, "its claims without a volume are to go") // first, as with one that is made anew
	default:
		p.deleteUnbound(n, nil, "the spec no longer has its node")
		if n.Record.DeletionTimestamp == nil { // otherwise it is let go already
			p.removeRecord(n, why)
		}
	}
}

// deleteUnbound deletes the claims of a node, except for some volumes, that never got a volume: nobody would know of them afterwards. One that is bound stays:
// only the user deletes a disk, even an empty one.
func (p *pass) deleteUnbound(n *facts.Node, except map[string]bool, why string) {
	for _, volume := range sortedKeys(n.Claims) {
		c := n.Claims[volume]
		claim := c.Claim
		if except[volume] || !c.Unbound() || claim.DeletionTimestamp != nil || claim.Labels[v1alpha1.LabelClusterUID] != string(p.Cluster.UID) {
			continue
		}
		p.write(plan.Write{Verb: plan.Delete, Object: named(claim), UID: claim.UID, ResourceVersion: claim.ResourceVersion, Why: "it has no volume yet, and " + why})
	}
}

// claimsOf pins the claims of this cluster, or of the one it adopts, that a new record finds.
func (p *pass) claimsOf(n *facts.Node, w render.Wanted) []v1alpha1.ClaimReference {
	if n == nil {
		return nil
	}
	var out []v1alpha1.ClaimReference
	for _, v := range render.Volumes(w.Pod) {
		if c := n.Claims[v.Name]; c != nil && p.mayUse(c.Claim) {
			out = append(out, render.Reference(v.Name, c.Claim))
		}
	}
	return out
}

// mayUse says that a claim was made for this cluster or for the one it adopts.
func (p *pass) mayUse(claim *corev1.PersistentVolumeClaim) bool {
	if claim == nil || claim.DeletionTimestamp != nil {
		return false
	}
	of := claim.Labels[v1alpha1.LabelClusterUID]
	return of == string(p.Cluster.UID) || (of != "" && of == string(p.Cluster.Spec.AdoptedUID()))
}

// restoreRecords makes records anew that belong to the ring and are gone, and those of nodes that are to join it.
func (p *pass) restoreRecords() {
	for _, w := range p.wanted {
		n := p.Nodes[w.Name]
		hostID, member := p.Ledger.Members[w.Name]
		inWave, newcomer := p.ticketed(w.Name), p.settled()
		if record := recordOf(n); record != nil {
			if member && !inWave && record.Spec.Member == nil && record.DeletionTimestamp == nil {
				// It was made so that its disk could say what it holds, when the ledger was lost with it.
				known := render.ForApply(p.owner(), record)
				p.makeMember(known, hostID)
				p.write(plan.Write{Verb: plan.Apply, Object: known, UID: record.UID, ResourceVersion: record.ResourceVersion, Why: "it is a member"})
			}
			continue
		}
		if !member && !inWave && !newcomer && !slices.Contains(p.Ledger.LeftBehind, w.Name) {
			continue
		}
		record := render.Record(p.owner(), w, p.claimsOf(n, w), p.Cluster.Spec.AdoptedUID())
		if s := p.Ledger.Step; !member && inWave && !slices.Contains(s.Withdrawn, w.Name) && s.Kind != ledger.AdoptRing && s.Stage == ledger.StageTickets {
			// The agent may have begun by this ticket. A new record must have it from the first moment: once the status shows an id as used, nobody can
			// write it any more.
			record.Spec.Join = p.ticket(s, w.Name)
		}
		if member {
			p.makeMember(record, hostID)
		}
		why := "its record was deleted"
		if newcomer && !member && !inWave {
			why = "the spec has this node"
		}
		p.write(plan.Write{Verb: plan.Create, Object: record, Why: why})
	}
}

// makeMember has a record say what the ledger remembers of a member.
func (p *pass) makeMember(record *v1alpha1.CassandraNode, hostID string) {
	record.Spec.Member = &v1alpha1.Member{HostID: hostID}
	if p.isOpen(record.Spec.Datacenter) {
		record.Spec.ClientTraffic = v1alpha1.TrafficOpen
	}
}

// isOpen says that clients were let into a datacenter, whatever happens in the ring now.
func (p *pass) isOpen(datacenter string) bool {
	s := p.Ledger.Step
	switch {
	case s == nil, s.Stage == ledger.StageOpen: // in that stage clients are let in, and some have been
		return true
	case s.Kind == ledger.AddDatacenter:
		return !p.Ledger.Adds(datacenter)
	default:
		return p.settled()
	}
}

// reportMissingRecords names members whose records are gone while the spec, from which they could be made again, is refused.
func (p *pass) reportMissingRecords() result {
	var missing []string
	for _, name := range p.members() {
		if recordOf(p.Nodes[name]) == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return wait("the spec is refused")
	}
	p.block("NodeRecords", v1alpha1.BlockedRecordMissing, missing, "the record of %s was deleted: waits until the spec is accepted, then recreates it", list(missing, 3))
	return wait("%s without a record", plural(len(missing), "member"))
}

func recordOf(n *facts.Node) *v1alpha1.CassandraNode {
	if n == nil {
		return nil
	}
	return n.Record
}
