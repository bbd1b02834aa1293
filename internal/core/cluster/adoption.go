package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// adoption takes over the disks of an earlier cluster: when every node has reported, live, a disk of that cluster, each with a host id of its own, all
// become members at once and start on what they have. With one disk missing nothing starts.
func adoption(p *pass) result {
	if p.Cluster.Spec.AdoptedUID() == "" || p.begun() || p.held {
		return done()
	}
	if p.Cluster.Spec.Paused {
		return wait("spec.paused is true")
	}
	if len(p.plan.Writes) > 0 {
		return wait("the nodes are being prepared")
	}
	names := wantedNames(p.wanted)
	if refusals := guard.Check(guard.Nodes{Snapshot: p.Snapshot, Names: names}, guard.Adoption...); len(refusals) > 0 {
		return p.refused("AdoptRing", refusals)
	}
	tickets := map[string]ledger.Ticket{}
	for _, name := range names {
		tickets[name] = ledger.Ticket{HostID: p.Nodes[name].Agent.HostID}
	}
	p.open(ledger.AdoptRing, ledger.StageFormed, "all disks are there", func(l *ledger.Ledger) {
		l.Formed = datacentersOf(p.wanted)
		l.Members = map[string]string{}
		for name, t := range tickets {
			l.Members[name] = t.HostID
		}
		l.TrafficAllowed = true
		l.Adopted = p.Cluster.Spec.AdoptedUID()
		l.Step.Datacenters, l.Step.Tickets = l.Formed, tickets
	})
	p.event(corev1.EventTypeNormal, "AdoptingRing", "%s of the cluster with uid %s are taken over", plural(len(tickets), "disk"), p.Cluster.Spec.AdoptedUID())
	return act("%s are taken over", plural(len(tickets), "disk"))
}

// claimOfOthers is a claim under one of our names that another cluster has left.
type claimOfOthers struct{ name, node string }

func (c claimOfOthers) String() string { return c.name }

// claimsOfOthers are the claims under our names that belong to another cluster, by the uid of that cluster.
func (p *pass) claimsOfOthers() map[string][]claimOfOthers {
	out := map[string][]claimOfOthers{}
	for _, name := range p.Names() {
		for _, volume := range sortedKeys(p.Nodes[name].Claims) {
			c := p.Nodes[name].Claims[volume].Claim
			if c == nil || p.ownsClaim(p.Nodes[name], c) {
				continue
			}
			of := c.Labels[v1alpha1.LabelClusterUID]
			out[of] = append(out[of], claimOfOthers{name: c.Name, node: name})
		}
	}
	return out
}

// adoptableClaims says whether the claims that are there are just those that the spec needs: without bootstrap.adopt none of an earlier cluster, with it all
// data volumes of that one and of no other. Nothing is made before that.
func (p *pass) adoptableClaims() result {
	adopt := string(p.Cluster.Spec.AdoptedUID())
	others := p.claimsOfOthers()
	for _, uid := range sortedKeys(others) {
		if uid != "" && uid == adopt {
			continue
		}
		p.stall(v1alpha1.ReasonForeignDisks, "%s", foreignClaims(uid, others[uid]))
		return stuck("claims of an earlier cluster are in the way")
	}
	if adopt == "" {
		return done()
	}
	var missing []string
	var extra []claimOfOthers
	wanted := map[string]bool{}
	for _, w := range p.wanted {
		wanted[w.Name] = true
		for _, v := range render.Volumes(w.Pod) {
			if n := p.Nodes[w.Name]; n == nil || n.Claims[v.Name] == nil || !p.mayUse(n.Claims[v.Name].Claim) {
				missing = append(missing, v1alpha1.ClaimName(v.Name, w.Name))
			}
		}
	}
	for _, claim := range others[adopt] {
		if !wanted[claim.node] {
			extra = append(extra, claim)
		}
	}
	switch {
	case len(missing) > 0:
		p.stall(v1alpha1.ReasonAdoptionIncomplete, "claim %s of the cluster with uid %s is not there: with a disk missing nothing is started, since it would join empty; "+
			"restore it, or describe a cluster without that node", list(missing, 3), adopt)
		return stuck("not all disks to adopt are there")
	case len(extra) > 0:
		p.stall(v1alpha1.ReasonAdoptionIncomplete, "claim %s of the cluster with uid %s belongs to a node that the spec does not describe: describe all its nodes", list(extra, 3), adopt)
		return stuck("the spec does not describe all nodes to adopt")
	}
	return done()
}

func foreignClaims(uid string, claims []claimOfOthers) string {
	if uid == "" {
		return fmt.Sprintf("claim %s was not made by Helenus: delete or rename it, or choose another name for the cluster", list(claims, 3))
	}
	return fmt.Sprintf("claim %s holds data of an earlier cluster with uid %s: delete the claims; or create the cluster again with bootstrap.adopt.clusterUID: %s, which uses them", list(claims, 3), uid, uid)
}
