package cluster

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/ring/tokens"
)

// join has nodes that the spec describes join the ring, one at a time: the first that is ready, of the rack with the fewest members. The next one leaves when
// every member sees the last one NORMAL; there is no fixed wait.
func join(p *pass) result {
	if !p.canChange() {
		return done()
	}
	newcomers := p.newcomers()
	if len(newcomers) == 0 {
		return done()
	}
	if p.Cluster.Spec.Paused {
		return wait("spec.paused is true; %s to join", plural(len(newcomers), "node"))
	}
	if s := p.joinWithoutStep(newcomers); s != nil {
		p.putLedger(true, "a node joins of which the ledger knew nothing", func(l *ledger.Ledger) { l.Step = s })
		return act("the join of %s goes on", list(s.Wave(), 1))
	}
	next := p.nextToJoin()
	if len(next.refusals) > 0 {
		if waiting := p.refused(string(ledger.JoinNode), next.refusals); next.node == nil {
			return waiting
		}
	}
	if p.preparing() {
		return wait("the nodes are being prepared")
	}
	view := p.anyView()
	before, joiner, err := p.joiner(*next.node, view.Nodes())
	if err != nil {
		p.stall(v1alpha1.ReasonInvalidSpec, "tokens of node %s cannot be chosen: %s", next.node.Name, err)
		return stuck("no tokens")
	}
	if refusals := p.judgeJoin(*next.node, view, before, joiner); len(refusals) > 0 {
		return p.refused(string(ledger.JoinNode), refusals)
	}
	if open := p.openBudgets(); len(open) > 0 {
		return wait("until evictions are refused: PodDisruptionBudget %s", list(open, 3))
	}
	p.openJoin(*next.node, joiner)
	return act("node %s gets its ticket to join", next.node.Name)
}

// joinWithoutStep is the step of a node that has a ticket although none is open: the ledger that had it was lost, together with the record of a member.
func (p *pass) joinWithoutStep(newcomers []render.Wanted) *ledger.Step {
	for _, w := range newcomers {
		n := p.Nodes[w.Name]
		if recordOf(n) != nil && n.Record.Spec.Join != nil && n.Record.Spec.Join.Mode == v1alpha1.JoinBootstrap && n.Record.Spec.Join.Withdraw == nil {
			return p.joinOf(n)
		}
	}
	return nil
}

// canChange says that the ring stands, that no step is open, and that the spec is accepted: then the next step may begin.
func (p *pass) canChange() bool { return p.formed() && !p.held && p.Ledger.Step == nil }

// newcomers are the nodes of the spec that have no part in the ring, in the order in which they are to join.
func (p *pass) newcomers() []render.Wanted {
	members := map[[2]string]int{}
	for _, w := range p.wanted {
		if _, member := p.Ledger.Members[w.Name]; member {
			members[[2]string{w.Datacenter, w.Rack}]++
		}
	}
	var out []render.Wanted
	for _, w := range p.wanted {
		if _, member := p.Ledger.Members[w.Name]; !member && p.Ledger.IsFormed(w.Datacenter) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b render.Wanted) int {
		return cmp.Or(cmp.Compare(members[[2]string{a.Datacenter, a.Rack}], members[[2]string{b.Datacenter, b.Rack}]), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return out
}

// nextJoin is whose turn it is to join.
type nextJoin struct {
	// node is nil while none is ready, or the ring is not.
	node *render.Wanted
	// refusals are why others, or all, have to wait.
	refusals []guard.Refusal
}

// nextToJoin finds the newcomer whose turn it is. It is worked out once in a pass: the guards look at what every member sees.
func (p *pass) nextToJoin() *nextJoin {
	if p.joinNext != nil {
		return p.joinNext
	}
	p.joinNext = &nextJoin{}
	for _, w := range p.newcomers() {
		why := guard.Check(guard.Nodes{Snapshot: p.Snapshot, Names: []string{w.Name}}, guard.Newcomer...)
		if len(why) == 0 && p.joinNext.node == nil {
			p.joinNext.node = &w
		}
		p.joinNext.refusals = append(p.joinNext.refusals, why...)
	}
	if p.joinNext.node == nil {
		return p.joinNext
	}
	if why := p.ringRefuses(); len(why) > 0 {
		p.joinNext.node, p.joinNext.refusals = nil, append(slices.Clone(why), p.joinNext.refusals...)
	}
	return p.joinNext
}

// ringRefuses is why nobody can join the ring now, whoever it is.
func (p *pass) ringRefuses() []guard.Refusal {
	if p.ringJudged == nil {
		why := guard.Check(guard.Nodes{Snapshot: p.Snapshot, Names: p.members()}, guard.Join...)
		p.ringJudged = &why
	}
	return *p.ringJudged
}

// preparing says that objects are being written just now: what follows would rest on them.
func (p *pass) preparing() bool {
	return slices.ContainsFunc(p.plan.Writes, func(w plan.Write) bool { return w.Verb != plan.PutLedger && w.Verb != plan.Event })
}

// anyView is the ring as a member sees it. The guards have seen to it that all see the same.
func (p *pass) anyView() *facts.Ring {
	for _, name := range p.members() {
		if agent := p.Nodes[name].CurrentAgent(); agent != nil && agent.Ring != nil && agent.Ring.Mode == facts.ModeNormal {
			return agent.Ring
		}
	}
	return nil
}

// keyspacesOf a view. One whose replication cannot be read is left out: it is a strategy of somebody's own, of which nothing can be said.
func keyspacesOf(view *facts.Ring) []ring.Keyspace {
	out, _ := view.Replicated()
	return out
}

// joiner is a newcomer with the tokens that it is to take, and the ring before it joins.
func (p *pass) joiner(w render.Wanted, members []ring.Node) (*ring.Ring, ring.Node, error) {
	dc := p.describes(w.Datacenter)
	j := tokens.Join{
		ID: w.Name, Datacenter: w.Configuration.DatacenterName, Rack: w.Configuration.RackName, Tokens: int(w.Configuration.NumTokens),
		ReplicationFactor: int(dc.PlannedReplicationFactor), Start: startToken(w.Name),
	}
	for i := range dc.Racks {
		j.Racks = append(j.Racks, render.RackName(&dc.Racks[i]))
	}
	before, err := ring.New(members)
	if err != nil {
		return nil, ring.Node{}, fmt.Errorf("allocate tokens: %w", err)
	}
	chosen, err := tokens.AllocateIn(before, members, j)
	if err != nil {
		return nil, ring.Node{}, err
	}
	return before, ring.Node{ID: w.Name, Datacenter: j.Datacenter, Rack: j.Rack, Tokens: chosen}, nil
}

// startToken is where a node begins that is the first of its part of the ring.
func startToken(name string) ring.Token {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return ring.Token(h.Sum64()) //nolint:gosec // any token will do
}

func (p *pass) describes(datacenter string) *v1alpha1.Datacenter {
	for i := range p.Cluster.Spec.Datacenters {
		if p.Cluster.Spec.Datacenters[i].Name == datacenter {
			return &p.Cluster.Spec.Datacenters[i]
		}
	}
	return nil
}

// judgeJoin says what speaks against a join with these tokens.
func (p *pass) judgeJoin(w render.Wanted, view *facts.Ring, before *ring.Ring, joiner ring.Node) []guard.Refusal {
	sizes := map[string]int{}
	for _, other := range p.wanted {
		if other.Datacenter == w.Datacenter {
			sizes[other.Rack]++
		}
	}
	return guard.Check(guard.Joining{
		Node: joiner, Datacenter: w.Datacenter, ReplicationFactor: int(p.describes(w.Datacenter).PlannedReplicationFactor), Sizes: sizes,
		View: view, Before: before, Keyspaces: keyspacesOf(view), Volume: p.dataVolume(w),
	}, guard.Joiner...)
}

// dataVolume is how large the data volume of a node is, or will be.
func (p *pass) dataVolume(w render.Wanted) *resource.Quantity {
	if n := p.Nodes[w.Name]; n != nil && n.Claims[v1alpha1.VolumeData] != nil {
		if c := n.Claims[v1alpha1.VolumeData].Claim; c != nil {
			if size, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
				return &size
			}
		}
	}
	if claims := w.Pod.Storage.Claims; claims != nil && claims.Data != nil {
		return claims.Data.Size
	}
	return nil
}

// openBudgets are the disruption budgets that still let a pod be evicted, or that the disruption controller has not looked at since they changed.
func (p *pass) openBudgets() []string {
	var out []string
	for _, dc := range p.datacenters() {
		want := render.Budget(p.owner(), dc, p.minAvailable(dc))
		have := p.Shared.Budgets[want.Name]
		if have == nil || !equality.Semantic.DeepEqual(have.Spec.MinAvailable, want.Spec.MinAvailable) || have.Status.ObservedGeneration != have.Generation || have.Status.DisruptionsAllowed > 0 {
			out = append(out, want.Name)
		}
	}
	return out
}

// openJoin writes the step down and issues the ticket.
func (p *pass) openJoin(w render.Wanted, joiner ring.Node) {
	step := p.open(ledger.JoinNode, ledger.StageTickets, "node "+w.Name+" is to join", func(l *ledger.Ledger) {
		l.Step.Datacenters, l.Step.Tickets = []string{w.Datacenter}, map[string]ledger.Ticket{w.Name: {Tokens: formatTokens(joiner.Tokens)}}
	})
	p.issueTicket(step, p.Nodes[w.Name])
	p.describe(step, 0, "node %s joins", w.Name)
	p.event(corev1.EventTypeNormal, "JoiningNode", "node %s joins rack %s of datacenter %s", w.Name, w.Rack, w.Datacenter)
}

// sameShare is the difference between shares that may come from rounding.
const sameShare = 1e-9

// shrunk are the members, by name, that hold less of any keyspace once a node has joined.
func (p *pass) shrunk(view *facts.Ring, hostID string) []string {
	after, err := ring.New(view.Nodes())
	if err != nil {
		return p.members() // which of them, nobody can say
	}
	before := after.Without(hostID)
	less, judged := map[string]bool{}, map[string]bool{}
	for _, k := range keyspacesOf(view) {
		alike := k.Replication.String()
		if judged[alike] {
			continue // keyspaces that are replicated alike lie alike
		}
		judged[alike] = true
		then := before.EffectiveShares(k.Replication)
		for id, share := range after.EffectiveShares(k.Replication) {
			if id != hostID && math.Abs(share-then[id]) > sameShare {
				less[id] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(p.members()), func(name string) bool { return !less[p.Ledger.Members[name]] })
}
