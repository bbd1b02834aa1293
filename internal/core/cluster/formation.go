package cluster

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/ring/tokens"
)

// maxSystemAuthReplicas is how many replicas system_auth has at most while the ring forms, before its keyspaces are set for good.
const maxSystemAuthReplicas = 3

// formation begins the ring of a new cluster: when every initial agent has answered, live, that its disk is empty, all get their tickets at once. Nothing
// is begun while one is missing, since an empty disk that nobody has looked at may be a lost one.
func formation(p *pass) result {
	if p.begun() || p.held || p.Cluster.Spec.AdoptedUID() != "" {
		return done()
	}
	if p.Cluster.Spec.Paused {
		return wait("spec.paused is true")
	}
	if pending := p.plan.Writes; len(pending) > 0 {
		return wait("the nodes are being prepared")
	}
	names := wantedNames(p.wanted)
	if refusals := guard.Check(guard.Nodes{Snapshot: p.Snapshot, Names: names}, guard.Formation...); len(refusals) > 0 {
		return p.refused("FormRing", refusals)
	}
	var formations []tokens.Formation
	for i := range p.Cluster.Spec.Datacenters {
		formations = append(formations, p.formationOf(&p.Cluster.Spec.Datacenters[i]))
	}
	tickets, err := chooseTokens(formations, nil)
	if err != nil {
		p.stall(v1alpha1.ReasonInvalidSpec, "tokens cannot be chosen: %s", err)
		return stuck("no tokens")
	}
	open := p.open(ledger.FormRing, ledger.StageTickets, "all tickets at once", func(l *ledger.Ledger) {
		l.Step.Datacenters, l.Step.Tickets, l.Step.Seeds = datacentersOf(p.wanted), tickets, p.chooseSeeds(names, nil)
		l.Replication = p.replication()
	})
	p.plan.Seeds = nil
	for _, name := range open.Seeds {
		p.plan.Seeds = append(p.plan.Seeds, address(p.Nodes[name]))
	}
	p.publishSeeds(p.plan.Seeds)
	for _, name := range open.Wave() {
		p.issueTicket(open, p.Nodes[name])
	}
	p.event(corev1.EventTypeNormal, "FormingRing", "%s get their tickets at once", plural(len(tickets), "node"))
	return act("%s get their tickets", plural(len(tickets), "node"))
}

// refused turns refusals of guards into what the status shows, one entry for each reason: those that only the user can resolve stall, the rest block.
func (p *pass) refused(step string, refusals []guard.Refusal) result {
	nodes, messages := map[v1alpha1.Reason][]string{}, map[v1alpha1.Reason][]string{}
	for _, r := range refusals {
		nodes[r.Reason] = append(nodes[r.Reason], r.Nodes...)
		messages[r.Reason] = append(messages[r.Reason], r.Message)
		if r.Stalled != "" {
			p.stall(r.Stalled, "%s", r.Message)
		}
	}
	for _, r := range refusals {
		if said, ok := messages[r.Reason]; ok {
			p.block(step, r.Reason, nodes[r.Reason], "%s. Waits until %s", list(said, 3), r.Until)
			delete(messages, r.Reason)
		}
	}
	first := refusals[0]
	if first.Stalled != "" {
		return stuck("%s", first.Message)
	}
	return wait("%s", first.Message)
}

// chooseTokens for all nodes of datacenters that are formed beside the members that the ring has already.
func chooseTokens(formations []tokens.Formation, members []ring.Node) (map[string]ledger.Ticket, error) {
	nodes, err := tokens.Form(formations, members)
	if err != nil {
		return nil, err
	}
	out := make(map[string]ledger.Ticket, len(nodes))
	for _, n := range nodes {
		out[n.ID] = ledger.Ticket{Tokens: formatTokens(n.Tokens)}
	}
	return out, nil
}

// formationOf a datacenter: its racks with the nodes that the spec describes.
func (p *pass) formationOf(dc *v1alpha1.Datacenter) tokens.Formation {
	f := tokens.Formation{Datacenter: render.DatacenterName(dc), Tokens: int(dc.NumTokens), ReplicationFactor: int(dc.PlannedReplicationFactor)}
	for i := range dc.Racks {
		rack := tokens.Rack{Name: render.RackName(&dc.Racks[i])}
		for _, w := range p.wanted {
			if w.Datacenter == dc.Name && w.Rack == dc.Racks[i].Name {
				rack.Nodes = append(rack.Nodes, w.Name)
			}
		}
		f.Racks = append(f.Racks, rack)
	}
	return f
}

// replication is the plannedReplicationFactor by datacenter.
func (p *pass) replication() map[string]int32 {
	out := map[string]int32{}
	for i := range p.Cluster.Spec.Datacenters {
		out[p.Cluster.Spec.Datacenters[i].Name] = p.Cluster.Spec.Datacenters[i].PlannedReplicationFactor
	}
	return out
}

func formatTokens(in []ring.Token) []string {
	out := make([]string, len(in))
	for i, t := range in {
		out[i] = t.String()
	}
	return out
}

// usedReplication is how much of the plannedReplicationFactor of each datacenter of the ring is made use of: what it was made for, and what its members allow since. A
// factor that was only written down can be taken back.
func (p *pass) usedReplication() map[string]int32 {
	members := p.membersByDatacenter()
	out := p.replication()
	maps.DeleteFunc(out, func(dc string, _ int32) bool { return !p.Ledger.IsFormed(dc) })
	for dc, factor := range out {
		out[dc] = max(p.Ledger.Replication[dc], min(factor, members[dc]))
	}
	return out
}

// issueTicket writes the ticket of one node into its record.
func (p *pass) issueTicket(s *ledger.Step, n *facts.Node) {
	record := render.ForApply(p.owner(), n.Record)
	record.Spec.Join = p.ticket(s, n.Name)
	p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Why: "its ticket to join"})
}

// ticket of a node to form the ring, or to join it.
func (p *pass) ticket(s *ledger.Step, name string) *v1alpha1.JoinTicket {
	if s.Kind == ledger.JoinNode {
		return &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: s.IntentID("join", name)}, Mode: v1alpha1.JoinBootstrap, Tokens: s.Tickets[name].Tokens}
	}
	return &v1alpha1.JoinTicket{
		Intent:                      v1alpha1.Intent{ID: s.IntentID("join", name)},
		Mode:                        v1alpha1.JoinNew,
		Tokens:                      s.Tickets[name].Tokens,
		SystemAuthReplicationFactor: int32(min(maxSystemAuthReplicas, len(s.Tickets))), //nolint:gosec // at most 3
	}
}

func (p *pass) event(kind, reason, format string, args ...any) {
	p.write(plan.Write{Verb: plan.Event, EventType: kind, Reason: reason, Why: fmt.Sprintf(format, args...)})
}

func wantedNames(wanted []render.Wanted) []string {
	out := make([]string, len(wanted))
	for i, w := range wanted {
		out[i] = w.Name
	}
	return out
}

func datacentersOf(wanted []render.Wanted) []string {
	seen := map[string]bool{}
	for _, w := range wanted {
		seen[w.Datacenter] = true
	}
	return sortedKeys(seen)
}

// stepID is the id of a step. Steps are counted in the life of a cluster, and the cluster's uid is part of the id, since an adopted disk remembers the
// intents of the cluster before.
func (p *pass) stepID(number int64) string { return fmt.Sprintf("%.8s-%d", p.Cluster.UID, number) }

// stepOfIntent is the id of the step that an intent belongs to.
func stepOfIntent(intent string) string {
	id, _, _ := strings.Cut(intent, "/")
	return id
}
