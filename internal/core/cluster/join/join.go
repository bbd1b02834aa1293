package join

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/ring/tokens"
	"helenus.io/helenus/internal/core/words"
)

// Stale removes stale endpoints from gossip while a step is open, and says whether it has anything
// to do.
type Stale func(*assess.View, *procedure.Step) (plan.Result, bool)

// Join has nodes that the spec describes join the ring, one at a time: the first that is ready, of
// the rack with the fewest members. The next one follows when every member sees the last one
// NORMAL; there is no fixed wait.
func Join(rules guard.Rules, stale Stale) procedure.Procedure {
	j := joiner{rules, stale}
	return procedure.Procedure{
		Kind: ledger.JoinNode, Class: ledger.Topology, MovesRanges: true,
		Understands: procedure.Understands[ticket.State],
		Due:         j.due,
		Stages:      []procedure.Stage{{Name: ledger.StageTickets, Run: j.await}, {Name: ledger.StageOpen, Run: end}},
	}
}

type joiner struct {
	rules guard.Rules
	stale Stale
}

func (j joiner) due(v *assess.View) *procedure.Proposal {
	pending := pendingNodes(v)
	if len(pending) == 0 {
		return nil
	}
	p := &procedure.Proposal{What: words.Plural(len(pending), "node") + " to join", Lost: lostStep(v, pending)}
	var next *render.Wanted
	var others []guard.Refusal
	for _, w := range pending {
		why := guard.Check(procedure.TheseNodes(v, w.Name), j.rules.PendingNode...)
		if len(why) == 0 && next == nil {
			next = &w
		}
		others = append(others, why...)
	}
	if next == nil {
		p.Refusals = others
		return p
	}
	if why := guard.Check(procedure.MemberNodes(v), j.rules.BeforeJoin...); len(why) > 0 {
		p.Refusals = slices.Concat(why, others)
		return p
	}
	p.Notes = others
	p.Open = func() (*procedure.Opening, []guard.Refusal) { return j.open(v, *next) }
	return p
}

// lostStep is the step of a node that has a ticket although none is open: the ledger that had it
// was lost, together with the record of a member.
func lostStep(v *assess.View, pending []render.Wanted) *ledger.Step {
	for _, w := range pending {
		n := v.Nodes[w.Name]
		if n == nil || n.Record == nil || n.Record.Spec.Join == nil {
			continue
		}
		if t := n.Record.Spec.Join; t.Mode == v1alpha1.JoinBootstrap && t.Withdraw == nil {
			return ticket.LostJoin(v, n)
		}
	}
	return nil
}

// pendingNodes are the nodes of the spec that have no part in the ring, in the order in which they
// join.
func pendingNodes(v *assess.View) []render.Wanted {
	members := map[[2]string]int{}
	for _, w := range v.Wanted {
		if _, member := v.Ledger.HostID(w.Name); member {
			members[[2]string{w.Datacenter, w.Rack}]++
		}
	}
	var out []render.Wanted
	for _, w := range v.Wanted {
		if _, member := v.Ledger.HostID(w.Name); !member && !w.Leaves && v.Ledger.IsFormed(w.Datacenter) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b render.Wanted) int {
		return cmp.Or(cmp.Compare(members[[2]string{a.Datacenter, a.Rack}], members[[2]string{b.Datacenter, b.Rack}]),
			cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return out
}

// IsDue says that nodes are to join.
func IsDue(v *assess.View) bool { return len(pendingNodes(v)) > 0 }

// followUpsWait is how long what follows joins waits for the next one, which is not ready.
const followUpsWait = 10 * time.Minute

// FollowUpsWait is how long what follows joins still waits for the nodes that are to join: none of
// them could, since the last one joined or the spec got them.
func FollowUpsWait(v *assess.View) time.Duration {
	since := v.Ledger.JoinedAt
	for _, w := range pendingNodes(v) {
		if n := v.Live(w.Name); n != nil && n.Record.CreationTimestamp.After(since) {
			since = n.Record.CreationTimestamp.Time
		}
	}
	return since.Add(followUpsWait).Sub(v.Now)
}

// open chooses the tokens of a node, and says what speaks against a join with these.
func (j joiner) open(v *assess.View, w render.Wanted) (*procedure.Opening, []guard.Refusal) {
	view := v.AnyRing()
	before, node, err := withTokens(v, w, view.Nodes())
	if err != nil {
		return nil, ticket.NoTokens("tokens of node %s cannot be chosen: %s", w.Name, err)
	}
	sizes := map[string]int{}
	for _, other := range v.Wanted {
		if other.Datacenter == w.Datacenter && !other.Leaves {
			sizes[other.Rack]++
		}
	}
	refusals := guard.Check(guard.Joining{
		Node: node, Datacenter: w.Datacenter, Sizes: sizes,
		ReplicationFactor: int(v.Datacenter(w.Datacenter).PlannedReplicationFactor),
		View:              view, Before: before, Keyspaces: assess.KeyspacesOf(view), Volume: dataVolume(v, w),
	}, j.rules.Placement...)
	if len(refusals) > 0 {
		return nil, refusals
	}
	return &procedure.Opening{
		Stage: ledger.StageTickets, Datacenters: []string{w.Datacenter}, Nodes: []string{w.Name},
		State: ticket.State{Tokens: map[string][]string{w.Name: ticket.Format(node.Tokens)}},
		Why:   "node " + w.Name + " is to join", Event: "JoiningNode",
		EventMessage:  fmt.Sprintf("node %s joins rack %s of datacenter %s", w.Name, w.Rack, w.Datacenter),
		ResultMessage: fmt.Sprintf("issued a join ticket to %s", w.Name),
	}, nil
}

// withTokens is a pending node with the tokens that it is to take, and the ring before it joins.
func withTokens(v *assess.View, w render.Wanted, members []ring.Node) (*ring.Ring, ring.Node, error) {
	dc := v.Datacenter(w.Datacenter)
	j := tokens.Join{
		ID: w.Name, Datacenter: w.Configuration.DatacenterName, Rack: w.Configuration.RackName,
		Tokens:            int(w.Configuration.NumTokens),
		ReplicationFactor: int(dc.PlannedReplicationFactor), Start: startToken(w.Name),
	}
	for i := range dc.Racks {
		j.Racks = append(j.Racks, render.RackName(&dc.Racks[i]))
	}
	before, err := ring.New(members)
	if err != nil {
		return nil, ring.Node{}, fmt.Errorf("allocate tokens: %w", err)
	}
	chosen, err := tokens.Allocate(before, members, j)
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

// dataVolume is how large the data volume of a node is, or will be.
func dataVolume(v *assess.View, w render.Wanted) *resource.Quantity {
	if n := v.Nodes[w.Name]; n != nil && n.Claims[v1alpha1.VolumeData] != nil {
		if c := n.Claims[v1alpha1.VolumeData].Claim; c != nil {
			if size, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
				return &size
			}
		}
	}
	switch s := w.Pod.Storage; {
	case s.Ephemeral != nil:
		return s.Ephemeral.SizeLimit
	case s.Claims != nil && s.Claims.Data != nil:
		return s.Claims.Data.Size
	}
	return nil
}

// await waits until every member sees the node NORMAL with its tokens.
func (j joiner) await(v *assess.View, s *procedure.Step) plan.Result {
	name := s.Nodes()[0]
	if v.Abandoned(name) {
		return ticket.Abandon(v, s)
	}
	n := v.Live(name)
	if n == nil {
		s.Describe(0, "node %s joins", name)
		return plan.Waiting("waiting for the record of %s, which is recreated", name)
	}
	if v.Ticket(n) == nil && n.Record.Spec.Member == nil {
		ticket.Issue(v, s, name)
		s.Describe(0, "node %s joins", name)
		return plan.Acting("issued a join ticket to %s", name)
	}
	if ticket.AllowWipe(s, n) {
		s.Describe(0, "node %s joins", name)
		return plan.Acting("node %s may remove what it has streamed in vain", name)
	}
	if r, stale := j.stale(v, s); stale {
		s.Describe(0, "node %s joins: %s", name, r.Message)
		return r
	}
	hostID, r, lost := ticket.LostDisk(v, s, n)
	view := v.AnyRing()
	switch doubts := ticket.Doubts(v, s, n); {
	case lost && hostID == "":
		s.Describe(0, "node %s joins: %s", name, r.Message)
		return r
	case lost: // it is replaced as any other that loses its disk
	case len(doubts) > 0:
		s.Describe(0, "node %s joins: %s", name, words.List(doubts, 3))
		if v.Of(name).NotStarting {
			s.Notice(v1alpha1.NoticeJoinFailed, []string{name},
				"%s; it is retried, and abandoned when the spec no longer has the node", doubts[0])
		}
		if v.Of(name).Process == assess.Absent { // its agent starts it only beside members that are up
			for _, r := range guard.Check(procedure.MemberNodes(v), j.rules.BeforeJoin...) {
				if r.Reason == v1alpha1.BlockedMemberDown {
					s.Refused([]guard.Refusal{r})
				}
			}
		}
		return plan.Waiting("waiting for %s", words.List(doubts, 3))
	default:
		view = n.CurrentAgent().Ring
		hostID = view.HostID
	}
	s.Write(true, "node "+name+" has joined", func(r *ledger.Ring, own *ledger.Step) {
		if r.Members == nil {
			r.Members = map[string]string{}
		}
		less := shrunk(v, view, hostID)
		r.Members[name] = hostID
		r.Excluded = slices.DeleteFunc(r.Excluded, func(other string) bool { return other == name })
		r.Cleanup = slices.Compact(slices.Sorted(slices.Values(append(r.Cleanup, less...))))
		r.SystemKeyspaces, r.JoinedAt = true, time.Time{}
		if len(pendingNodes(v)) > 1 { // others than this one
			r.JoinedAt = v.Now
		}
		own.Advance(ledger.StageOpen, v.Now)
	})
	s.Event("NodeJoined", "node %s has joined with host id %s", name, hostID)
	return plan.Acting("node %s has joined", name)
}

// end closes the step once the record says who has joined. The next join may begin in the same
// pass.
func end(v *assess.View, s *procedure.Step) plan.Result {
	name := s.Nodes()[0]
	n := v.Live(name)
	if n == nil {
		s.Describe(0, "node %s joins", name)
		return plan.Waiting("waiting for the record of %s, which is recreated", name)
	}
	traffic := v.Ledger.Traffic(n.Record.Spec.Datacenter)
	if n.Record.Spec.Member == nil || n.Record.Spec.Join != nil || n.Record.Spec.ClientTraffic != traffic {
		s.UpdateRecord(name, false, "it has joined", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.Member, spec.Join = &v1alpha1.Member{HostID: v.Ledger.Members[name]}, nil
			spec.ClientTraffic = traffic
		})
		s.Describe(1, "node %s has joined", name)
		return plan.Acting("recording the host id of %s", name)
	}
	s.Close(false, v1alpha1.StepSucceeded, "node "+name)
	return plan.Nothing()
}

// sameShare is the difference between shares that may come from rounding.
const sameShare = 1e-9

// shrunk are the members, by name, that hold less of any keyspace once a node has joined.
func shrunk(v *assess.View, view *facts.Ring, hostID string) []string {
	after, err := ring.New(view.Nodes())
	if err != nil {
		return v.Members() // which of them, nobody can say
	}
	before := after.Without(hostID)
	less, judged := map[string]bool{}, map[string]bool{}
	for _, k := range assess.KeyspacesOf(view) {
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
	return slices.DeleteFunc(slices.Sorted(maps.Keys(v.Ledger.Members)),
		func(name string) bool { return !less[v.Ledger.Members[name]] })
}
