package ticket

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/ring/tokens"
	"helenus.io/helenus/internal/core/words"
)

// State is what a step by which nodes join must not compute twice. It is part of the state of each
// such kind.
type State struct {
	// Tokens that the nodes take, by node.
	Tokens map[string][]string `json:"tokens,omitempty"`
	// Replaces is the member whose place the node takes; nil if it joins as another one.
	Replaces *v1alpha1.ReplaceTarget `json:"replaces,omitempty"`
	// Restore is what disks are filled with, without the host id; nil if they begin empty. Sources
	// are the host ids in the backup by node.
	Restore *v1alpha1.DiskRestore `json:"restore,omitempty"`
	Sources map[string]string     `json:"sources,omitempty"`
	// Seeds are the nodes whose addresses all use as seeds while tickets are issued.
	Seeds []string `json:"seeds,omitempty"`
}

// Of the step's state, whatever its kind: empty if the step issues no tickets.
func Of(s *ledger.Step) State {
	if s == nil {
		return State{}
	}
	out, _ := ledger.StateOf[State](s) // the engine stops at a state that it does not understand
	return out
}

// Purpose of the intent by which a node joins.
const Purpose = "join"

// maxSystemAuthReplicas is how many replicas system_auth has at most while the ring forms, before
// its keyspaces are set for good.
const maxSystemAuthReplicas = 3

// For is the ticket of a node to form the ring, or to join it.
func For(s *ledger.Step, node string) *v1alpha1.JoinTicket { return Of(s).ticket(s, node) }

func (of State) ticket(s *ledger.Step, node string) *v1alpha1.JoinTicket {
	out := &v1alpha1.JoinTicket{
		Intent: v1alpha1.Intent{ID: s.IntentID(Purpose, node)}, Mode: v1alpha1.JoinBootstrap,
		Tokens: of.Tokens[node],
	}
	if of.Replaces != nil {
		out.Mode, out.Replace, out.Tokens = v1alpha1.JoinReplace, of.Replaces, nil // it takes those of the member
		return out
	}
	if s.Kind != ledger.JoinNode {
		out.Mode = v1alpha1.JoinNew
		out.SystemAuthReplicationFactor = int32(min(maxSystemAuthReplicas, len(s.Nodes))) //nolint:gosec // at most 3
		if of.Restore != nil {
			out.Restore = of.Restore.DeepCopy()
			out.Restore.HostID = of.Sources[node]
		}
	}
	return out
}

// Issue writes the tickets of nodes into their records.
func Issue(v *assess.View, s *procedure.Step, nodes ...string) {
	open := openStep(v, s)
	of := Of(open)
	for _, node := range nodes {
		s.UpdateRecord(node, false, "its ticket to join",
			func(spec *v1alpha1.CassandraNodeSpec) { spec.Join = of.ticket(open, node) })
	}
}

// AllowWipe allows the agent of a node to remove what an attempt that has ended has streamed, and
// says whether that had to be written. Each attempt has an id of its own. The agent judges whether
// it may.
func AllowWipe(s *procedure.Step, n *facts.Node) bool {
	agent, t := n.CurrentAgent(), n.Record.Spec.Join
	if t == nil || t.Mode == v1alpha1.JoinNew || t.Withdraw != nil || agent == nil || agent.Join == nil ||
		agent.Join.ID != t.ID || agent.Process != facts.ProcessAbsent || agent.Disk != v1alpha1.DiskJoining {
		return false
	}
	id := fmt.Sprintf("%s/wipe-%d", t.ID, agent.Join.Attempts)
	return t.Wipe != id && s.UpdateRecord(n.Name, true, "the join restarts on a wiped disk",
		func(spec *v1alpha1.CassandraNodeSpec) { spec.Join.Wipe = id })
}

// openStep is the step in the ledger.
func openStep(v *assess.View, s *procedure.Step) *ledger.Step { return v.Ledger.StepByID(s.ID()) }

// Status is what the record says of the step's ticket; nil if nothing.
func Status(s *procedure.Step, n *facts.Node) *v1alpha1.IntentStatus {
	if n == nil || n.Record == nil || n.Record.Status.Join == nil ||
		n.Record.Status.Join.ID != s.IntentID(Purpose, n.Name) {
		return nil
	}
	return n.Record.Status.Join
}

// Choose tokens for all nodes of datacenters that form beside the members that the ring has
// already.
func Choose(formations []tokens.Formation, members []ring.Node) (map[string][]string, error) {
	nodes, err := tokens.Form(formations, members)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]string, len(nodes))
	for _, n := range nodes {
		out[n.ID] = Format(n.Tokens)
	}
	return out, nil
}

// Format tokens as tickets have them.
func Format(in []ring.Token) []string {
	out := make([]string, len(in))
	for i, t := range in {
		out[i] = t.String()
	}
	return out
}

// noLonger is why a node is abandoned.
const noLonger = "the spec no longer has the node"

// whyAbandoned is why a node does not join any more: that the spec no longer has it, or what its
// ticket was withdrawn for before. Where only the agent remembers that, it has said why.
func whyAbandoned(v *assess.View, n *facts.Node) string {
	switch {
	case n == nil || n.Record == nil || v.Ticket(n) == nil:
		return noLonger
	case n.Record.Spec.Join.Withdraw != nil:
		return n.Record.Spec.Join.Withdraw.Reason
	case assess.HasWithdrawn(n) && n.Record.Status.Join.Message != "":
		return n.Record.Status.Join.Message
	}
	return noLonger
}

// Abandon withdraws the tickets of the nodes that are abandoned, and resumes without them. Without
// any node the step is closed.
func Abandon(v *assess.View, s *procedure.Step) plan.Result {
	var out, waiting []string
	for _, name := range s.Wave() {
		if !v.Abandoned(name) {
			continue
		}
		over, r := abandon(v, s, name)
		switch {
		case over:
			out = append(out, name)
		case r.Outcome == plan.Act:
			s.Describe(0, "%s", r.Message)
			return r // the next one follows when this is written
		default:
			waiting = append(waiting, r.Message)
		}
	}
	if len(out) == 0 {
		s.Describe(0, "%s", words.List(waiting, 3))
		return plan.Waiting("%s", words.List(waiting, 3))
	}
	why := whyAbandoned(v, v.Nodes[out[0]])
	for _, name := range out {
		s.Warn("NodeWithdrawn", "node %s does not join: %s", name, whyAbandoned(v, v.Nodes[name]))
	}
	if len(out) == len(s.Wave()) {
		s.Close(true, v1alpha1.StepWithdrawn, words.Plural(len(out), "node")+" ("+words.List(out, 3)+"): "+why)
		return plan.Acting("the join of %s is abandoned", words.List(out, 3))
	}
	s.Withdraw(why, out...)
	return plan.Acting("resuming without %s", words.List(out, 3))
}

// abandon withdraws the ticket of a node that has not joined, and says whether nothing can go by it
// any more.
func abandon(v *assess.View, s *procedure.Step, name string) (bool, plan.Result) {
	n := v.Nodes[name]
	why := whyAbandoned(v, n)
	switch {
	case n == nil || n.Record == nil && n.Pod == nil:
		return true, plan.Nothing() // its ticket was in the record
	case n.Record == nil:
		s.Block(v1alpha1.BlockedAbandonedPodStillRunning, []string{name},
			"node %s has no record any more and the spec does not describe it, but its pod may resume the join: "+
				"delete the pod, or describe the node again", name)
		return false, plan.Waiting("until pod %s is deleted, or the spec has the node again", name)
	case v.Ticket(n) == nil:
		// Another operator may be about to write the ticket: after this it cannot.
		s.UpdateRecord(name, true, why, func(spec *v1alpha1.CassandraNodeSpec) {
			spec.Join = For(openStep(v, s), name)
			spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: why, PodGone: podGone(n)}
		})
	case IsWithdrawn(s, n):
		return true, plan.Nothing()
	case Withdraw(s, n, why):
	case n.Pod != nil && n.Pod.DeletionTimestamp == nil && neverAnswers(v, n):
		s.DeletePod(n, "its agent cannot acknowledge that its ticket is withdrawn, since its Cassandra container "+
			"does not start")
	default:
		return false, plan.Waiting("waiting for node %s to acknowledge that its ticket is withdrawn: %s", name, why)
	}
	return false, plan.Acting("withdrawing the ticket of %s: %s", name, why)
}

// neverAnswers says that the agent of a node acknowledges nothing as things are: it waits for the
// Cassandra container, which does not start, or is not there.
func neverAnswers(v *assess.View, n *facts.Node) bool {
	agent := n.CurrentAgent()
	return v.Of(n.Name).Failing() && (agent == nil || agent.Process != facts.ProcessAbsent)
}

// Withdraw asks for the ticket of a node back, and says whether that had to be written.
func Withdraw(s *procedure.Step, n *facts.Node, why string) bool {
	gone := podGone(n)
	if w := n.Record.Spec.Join.Withdraw; w != nil && (gone == "" || w.PodGone == gone) {
		return false
	}
	return s.UpdateRecord(n.Name, true, why, func(spec *v1alpha1.CassandraNodeSpec) {
		spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: why, PodGone: gone}
	})
}

// IsWithdrawn says that a node's ticket has no effect any more: its agent has acknowledged it, or
// the pod that had the ticket is gone and none has run since that could take it up. An agent that
// starts later reads the record before it goes by a ticket.
func IsWithdrawn(s *procedure.Step, n *facts.Node) bool {
	if status := Status(s, n); status != nil && status.WithdrawnAt != nil {
		return true
	}
	j := n.Record.Spec.Join
	if j == nil || j.Withdraw == nil || j.Withdraw.PodGone == "" {
		return false
	}
	return n.Pod == nil || n.Pod.UID != j.Withdraw.PodGone && n.Pod.Spec.NodeName == ""
}

// podGone is the uid of the pod that last spoke for the node, if that pod no longer exists. A
// status that was lost does not say which one that was; it is gone if no pod of the node has a
// host.
func podGone(n *facts.Node) types.UID {
	switch last := n.Record.Status.PodUID; {
	case last != "" && (n.Pod == nil || n.Pod.UID != last):
		return last
	case last == "" && n.Unplaced():
		return podForgotten
	default:
		return ""
	}
}

// podForgotten stands for the uid of a pod that nothing remembers.
const podForgotten = types.UID("forgotten")

// Admit records who the members of a wave are, in the records of those that are not members by them
// yet, and says how many are written and which are waited for.
func Admit(v *assess.View, s *procedure.Step) (written int, waiting []string) {
	for _, name := range s.Wave() {
		n := v.Live(name)
		if n == nil {
			waiting = append(waiting, name)
			continue
		}
		if n.Record.Spec.Member != nil && n.Record.Spec.Join == nil {
			continue
		}
		if status := Status(s, n); n.Record.Spec.Join != nil && (status == nil || status.FinishedAt == nil) {
			waiting = append(waiting, name)
			continue
		}
		s.UpdateRecord(name, false, "it is a member", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.Member, spec.Join = &v1alpha1.Member{HostID: v.Ledger.Members[name]}, nil
			if serves(n) && spec.ClientTraffic == v1alpha1.TrafficClosed {
				// Ledger and record were lost. This keeps its connections, and sends it no others
				// before the step opens client traffic.
				spec.ClientTraffic = v1alpha1.TrafficAdministrative
			}
		})
		written++
	}
	return written, waiting
}

// serves says that the native transport of a node is open to anybody, as far as its agent or its
// record knows.
func serves(n *facts.Node) bool {
	open := []v1alpha1.ClientTraffic{v1alpha1.TrafficOpen, v1alpha1.TrafficAdministrative}
	agent := n.CurrentAgent()
	return agent != nil && slices.Contains(open, agent.Traffic) ||
		n.StatusIsCurrent() && slices.Contains(open, n.Record.Status.ClientTraffic)
}

// OpenTraffic opens the client traffic of every node of the wave, and then closes the step and says
// that it is over. An operation of the step has ended by now: where a status that was lost does not
// say so, a node that is up says it again, and nobody else would take the intent out of its record.
func OpenTraffic(v *assess.View, s *procedure.Step) (plan.Result, bool) {
	written := 0
	var untold []string
	for _, name := range s.Wave() {
		n := v.Live(name)
		if n == nil {
			return plan.Waiting("waiting for the record of %s", name), false
		}
		left := procedure.Unfinished(n)
		own := func(o v1alpha1.OperationIntent) bool { return ledger.OfIntent(o.ID) == s.ID() }
		if slices.ContainsFunc(left, own) {
			untold = append(untold, name)
		}
		if n.Record.Spec.ClientTraffic == v1alpha1.TrafficOpen && len(left) == len(n.Record.Spec.Operations) {
			continue
		}
		s.UpdateRecord(name, false, "client traffic opens", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.ClientTraffic, spec.Operations = v1alpha1.TrafficOpen, left
		})
		written++
	}
	s.Describe(len(s.Wave())-written, "client traffic opens")
	if written > 0 {
		return plan.Acting("opening client traffic of %s", words.Plural(written, "node")), false
	}
	if untold = v.UpAmong(untold); len(untold) > 0 {
		return plan.Waiting("waiting for %s to say what its operation came to", words.List(untold, 1)), false
	}
	s.Write(false, "client traffic is open",
		func(r *ledger.Ring, own *ledger.Step) { r.Excluded = append(r.Excluded, own.Withdrawn...) })
	s.Close(false, v1alpha1.StepSucceeded, words.Plural(len(s.Wave()), "node"))
	return plan.Nothing(), true
}

// FormationOf a datacenter: its racks with the nodes that the spec describes.
func FormationOf(v *assess.View, dc *v1alpha1.Datacenter) tokens.Formation {
	f := tokens.Formation{
		Datacenter: render.DatacenterName(dc), Tokens: int(dc.NumTokens),
		ReplicationFactor: int(dc.PlannedReplicationFactor),
	}
	for i := range dc.Racks {
		rack := tokens.Rack{Name: render.RackName(&dc.Racks[i])}
		for _, w := range v.Wanted {
			if w.Datacenter == dc.Name && w.Rack == dc.Racks[i].Name {
				rack.Nodes = append(rack.Nodes, w.Name)
			}
		}
		f.Racks = append(f.Racks, rack)
	}
	return f
}

// NoTokens is the refusal of a spec for which no tokens can be chosen.
func NoTokens(format string, args ...any) []guard.Refusal {
	return []guard.Refusal{{Finding: guard.Finding{Message: fmt.Sprintf(format, args...),
		Stalled: v1alpha1.ReasonInvalidSpec}}}
}

// AwaitRing waits until all nodes of the wave have joined, and excludes a straggler of a ring that
// begins empty.
func AwaitRing(v *assess.View, s *procedure.Step) plan.Result {
	views, r, joined := awaitAll(v, s)
	if joined {
		return ringFormed(v, s, views)
	}
	if Of(openStep(v, s)).Restore != nil {
		return r // what a node has in the backup nobody else may have
	}
	if excluded, took := excludeStragglers(v, s, views); took {
		return excluded
	}
	return r
}

// awaitAll waits until every node of the wave is NORMAL in the view of every other, with its tokens
// and one schema, and says whether they are. It issues tickets that were not written yet; the views
// are nil then.
func awaitAll(v *assess.View, s *procedure.Step) (*Views, plan.Result, bool) {
	var issued []string
	for _, name := range s.Wave() {
		if n := v.Live(name); n != nil && v.Ticket(n) == nil && n.Record.Spec.Member == nil {
			issued = append(issued, name)
		}
	}
	if Issue(v, s, issued...); len(issued) > 0 {
		s.Describe(0, "%s join at once", words.Plural(len(s.Wave()), "node"))
		return nil, plan.Acting("issued join tickets to %s", words.List(issued, 3)), false
	}
	views := Look(v, s)
	if len(views.Doubts) == 0 {
		return &views, plan.Nothing(), true
	}
	s.Describe(len(views.Normal), "waiting for the ring: %s", words.List(views.Doubts, 3))
	return &views, plan.Waiting("waiting for the ring: %s", words.List(views.Doubts, 3)), false
}

// ringFormed writes down that the nodes of a wave are members.
func ringFormed(v *assess.View, s *procedure.Step, views *Views) plan.Result {
	now, datacenters := v.Now, s.Datacenters()
	nodes := words.Plural(len(views.HostIDs), "node")
	s.Write(true, "the ring is formed", func(r *ledger.Ring, own *ledger.Step) {
		r.Formed = slices.Compact(slices.Sorted(slices.Values(append(r.Formed, datacenters...))))
		if r.Members == nil {
			r.Members = map[string]string{}
		}
		maps.Copy(r.Members, views.HostIDs)
		r.Excluded = slices.DeleteFunc(r.Excluded, func(name string) bool { return r.Members[name] != "" })
		own.Advance(ledger.StageFormed, now)
	})
	s.Event("RingFormed", "%s have formed the ring", nodes)
	return plan.Acting("ring formed with %s", nodes)
}

// RecordMembers records the host ids of a wave, takes its tickets away, and goes on to the next
// stage.
func RecordMembers(v *assess.View, s *procedure.Step, next ledger.Stage) plan.Result {
	written, waiting := Admit(v, s)
	s.Describe(len(s.Wave())-written-len(waiting), "recording host ids")
	switch {
	case written > 0:
		return plan.Acting("recording the host ids of %s", words.Plural(written, "node"))
	case len(waiting) > 0:
		return plan.Waiting("waiting for %s to report that the join has finished", words.List(waiting, 3))
	}
	now := v.Now
	s.Write(true, "all host ids are recorded", func(r *ledger.Ring, own *ledger.Step) {
		r.TrafficAllowed = true
		own.Advance(next, now)
	})
	return plan.Acting("all host ids are recorded")
}

// LostJoin is the step, which the ledger lost, of a node that has a ticket to join a ring which
// serves clients.
func LostJoin(v *assess.View, n *facts.Node) *ledger.Step {
	t := n.Record.Spec.Join
	return &ledger.Step{
		ID: ledger.OfIntent(t.ID), Kind: ledger.JoinNode, Class: ledger.Topology, Stage: ledger.StageTickets,
		Generation: v.Cluster.Generation, OpenedAt: v.Now, StageSince: v.Now,
		Datacenters: []string{n.Record.Spec.Datacenter}, Nodes: []string{n.Name},
		State: ledger.Encoded(State{Tokens: map[string][]string{n.Name: t.Tokens}}),
	}
}
