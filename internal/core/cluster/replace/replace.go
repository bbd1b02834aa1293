package replace

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// State of a replacement, as the ledger keeps it.
type State struct {
	ticket.State `json:",inline"`
	// Repair is when what the lost member had is repaired.
	Repair v1alpha1.ReplacementRepair `json:"repair"`
	// Repairers are members that repair it before.
	Repairers []string `json:"repairers,omitempty"`
	// Claims are those of a disk that is given up, or fails; nothing uses them any more.
	Claims []v1alpha1.ClaimReference `json:"claims,omitempty"`
	// Left is the least that was left to be delivered, and LeftSince when it became that.
	Left      int        `json:"left,omitempty"`
	LeftSince *time.Time `json:"leftSince,omitempty"`
}

// Stale removes stale endpoints from gossip while a step is open, and says whether it has anything
// to do.
type Stale func(*assess.View, *procedure.Step) (plan.Result, bool)

// Replace has a node take the place of a member that is lost, one after the other: what the other
// members keep for each other is delivered, they are repaired, and then the node gets its ticket.
// Cassandra refuses that for a member of which no other has gossip, since all have started after it
// was last up: it is removed from the ring, and joins as a new node.
func Replace(rules guard.Rules, stale Stale) procedure.Procedure {
	r := replacer{rules: rules, stale: stale}
	return procedure.Procedure{
		Kind: ledger.ReplaceNode, Class: ledger.Recovery, MovesRanges: true,
		Understands: procedure.Understands[State],
		Runs:        []v1alpha1.OperationType{v1alpha1.OperationRepair, v1alpha1.OperationRemoveNode},
		Due:         r.due,
		Stages: []procedure.Stage{{Name: ledger.StageHints, Run: r.awaitHints},
			{Name: ledger.StageOperations, Run: r.repair}, {Name: ledger.StageTickets, Run: r.await},
			{Name: ledger.StageRemove, Run: r.remove}, {Name: ledger.StageOpen, Run: end}},
	}
}

type replacer struct {
	rules guard.Rules
	stale Stale
	// asked is nil where members are replaced that are lost.
	asked *Asked
}

// of a step: the node that is replaced. Members that repair before are nodes of the step for as
// long as they do.
func of(s *procedure.Step) (node string, state State) {
	state = procedure.State[State](s)
	for _, name := range s.Nodes() {
		if !slices.Contains(state.Repairers, name) {
			node = name
		}
	}
	return node, state
}

// unchangedFor is how long hints are waited for that do not become fewer: their dispatch may be
// paused, or a file may be corrupt.
const unchangedFor = 2 * time.Minute

// awaitHints waits until the others have what they keep for each other: the replacement takes each
// range from one of them.
func (r replacer) awaitHints(v *assess.View, s *procedure.Step) plan.Result {
	node, state := of(s)
	if result, back := r.back(v, s, node); back {
		return result
	}
	survivors := others(v, node)
	if r.asked != nil {
		survivors = procedure.MemberNodes(v) // what the node keeps for others goes with its disk
	}
	survivors.Names = v.UpAmong(survivors.Names)
	found := guard.Check(guard.Kept{Nodes: survivors, For: survivors.Names}, r.rules.Undelivered...)
	left := 0
	for _, f := range found {
		left += f.Left
	}
	if len(found) > 0 && (state.LeftSince == nil || left < state.Left) {
		state.Left, state.LeftSince = left, &v.Now
		s.Write(false, "hints become fewer",
			func(_ *ledger.Ring, own *ledger.Step) { own.State = ledger.Encoded(state) })
	}
	if len(found) > 0 {
		if wait := state.LeftSince.Add(unchangedFor).Sub(v.Now); wait > 0 {
			s.WakeIn(wait)
			s.Describe(0, "node %s is replaced: waiting for hints", node)
			return s.Refused(found)
		}
	}
	if r.asked != nil {
		s.Advance(true, "hints are delivered", ledger.StageDrain)
		return plan.Acting("node %s is to stop", node)
	}
	return r.proceed(v, s, node, state)
}

// proceed with the repair before, if there is one.
func (r replacer) proceed(v *assess.View, s *procedure.Step, node string, state State) plan.Result {
	if len(state.Repairers) == 0 {
		return r.allow(v, s, node, state)
	}
	s.Describe(0, "node %s is replaced: the others are repaired first", node)
	s.Advance(false, "hints are delivered", ledger.StageOperations)
	return plan.Acting("repairing what node %s had before it is replaced", node)
}

// mostFailures is how often the repair before fails on a node until it is left for later.
const mostFailures = 5

// repair has the others repair what the lost member had.
func (r replacer) repair(v *assess.View, s *procedure.Step) plan.Result {
	node, state := of(s)
	if result, back := r.back(v, s, node); back {
		return result
	}
	survivors := others(v, node)
	later := ""
	if down := survivors.Down(); len(down) > 0 && r.asked == nil {
		later = "node " + words.List(down, 3) + " is down, too"
	}
	for _, name := range state.Repairers {
		if s.Attempts(name) >= mostFailures {
			later = fmt.Sprintf("the repair failed %d times on node %s", mostFailures, name)
		}
	}
	if later != "" && r.asked != nil {
		return startAgain(v, s, node, later)
	}
	if later != "" {
		if running := s.Cancel(later); len(running) > 0 {
			s.Describe(0, "node %s is replaced: waiting for %s", node, words.List(running, 3))
			return plan.Waiting("waiting for %s", words.List(running, 3))
		}
		state.Repair = v1alpha1.ReplacementRepairAfter
		s.Warn("RepairLater", "node %s is replaced before it is repaired: %s", node, later)
		return r.allow(v, s, node, state)
	}
	result, over := s.RunInTurn(procedure.Operation{Purpose: "repair", Type: v1alpha1.OperationRepair,
		Arguments:      &v1alpha1.OperationArguments{Full: true, Without: []string{state.Replaces.HostID}},
		NeverPostponed: true, Members: survivors.Names},
		procedure.OneAtATime(state.Repairers), "node "+node+" is replaced: the others are repaired first")
	if !over {
		return result
	}
	if s.ClearOperations(state.Repairers) {
		return plan.Acting("the repair is over")
	}
	return r.allow(v, s, node, state)
}

// back ends a step that has not issued its ticket if the member is not to be replaced any more. An
// operator that has just started does not know yet who is down.
func (r replacer) back(v *assess.View, s *procedure.Step, node string) (plan.Result, bool) {
	if why := unasked(v, node); why != "" {
		s.Describe(0, "node %s is replaced", node)
		return plan.Waiting("waiting %s", why), true
	}
	if r.asked != nil {
		return r.keepsDisk(v, s, node)
	}
	return cameBack(v, s, node)
}

// cameBack ends a step that has not issued its ticket if the member is not lost after all.
func cameBack(v *assess.View, s *procedure.Step, node string) (plan.Result, bool) {
	if v.Live(node) == nil {
		s.Describe(0, "node %s is replaced", node)
		return plan.Waiting("waiting for the record of %s, which is recreated", node), true
	}
	if v.Lost(node) != "" {
		return plan.Result{}, false
	}
	if !v.Found(node) {
		s.Describe(0, "node %s is replaced", node)
		return plan.Waiting("waiting for the agent of node %s: %s", node, assess.WhyDown(v.Nodes[node])), true
	}
	if running := s.Cancel("node " + node + " is not lost any more"); len(running) > 0 {
		s.Describe(0, "node %s is not lost any more: waiting for %s", node, words.List(running, 3))
		return plan.Waiting("waiting for %s", words.List(running, 3)), true
	}
	s.Close(true, v1alpha1.StepWithdrawn, "node "+node+" is not lost any more")
	return plan.Acting("node %s is not lost any more", node), true
}

// allow has the ring know that the lost member never starts again, before anybody takes its place.
func (r replacer) allow(v *assess.View, s *procedure.Step, node string, state State) plan.Result {
	if why := r.refusals(v, node); len(why) > 0 {
		if last := lasting(slices.Clone(why)); r.asked != nil && len(last) > 0 {
			return startAgain(v, s, node, last[0].Message)
		}
		s.Describe(0, "node %s is replaced", node)
		return s.Refused(why)
	}
	state.Repairers = nil
	if n := v.Nodes[node]; r.asked != nil || v.DiskFails(n) {
		state.Claims = n.Record.Spec.Claims
	}
	next := ledger.StageTickets
	if r.asked != nil && r.asked.Removes || unheard(v, node, state.Replaces.HostID) {
		next = ledger.StageRemove
	}
	s.Write(true, "node "+node+" may be replaced", func(ring *ledger.Ring, own *ledger.Step) {
		ring.Replaced = append(ring.Replaced, state.Replaces.HostID)
		ring.Lost = slices.DeleteFunc(ring.Lost, func(l ledger.Lost) bool { return l.Node == node })
		own.Nodes, own.State = []string{node}, ledger.Encoded(state)
		own.Advance(next, v.Now)
	})
	return plan.Acting("node %s may be replaced", node)
}

// unheard says that no other member has gossip of a lost one, although all are up: they know it
// from their disks alone (StorageService#prepareForReplacement refuses to replace it then).
func unheard(v *assess.View, node, hostID string) bool {
	among := others(v, node).Names
	if len(v.UpAmong(among)) < len(among) {
		return false // one that has gossip of it may come back
	}
	known := false
	for _, name := range among {
		e, is := v.Nodes[name].CurrentAgent().Ring.ByHostID(hostID)
		if is && e.Status != facts.StatusUnknown {
			return false
		}
		known = known || is
	}
	return known
}

// await has the node join in the place of the lost member, until every member sees it NORMAL. From
// the ticket on there is no way back: the lost member must never start again.
func (r replacer) await(v *assess.View, s *procedure.Step) plan.Result {
	name, state := of(s)
	n := v.Live(name)
	s.Describe(0, "node %s is replaced", name)
	if n == nil {
		return plan.Waiting("waiting for the record of %s, which is recreated", name)
	}
	switch {
	case ticket.IsWithdrawn(s, n):
		s.Advance(true, unheardOf, ledger.StageRemove)
		return plan.Acting("node %s joins as a new node: %s", name, unheardOf)
	case n.Record.Spec.Join != nil && v.Of(name).Failing() && unheard(v, name, state.Replaces.HostID):
		ticket.Withdraw(s, n, unheardOf)
		return plan.Waiting("waiting for %s to acknowledge that its ticket is withdrawn", name)
	}
	if v.Ticket(n) == nil && n.Record.Spec.Member != nil && n.Record.Spec.Member.HostID == state.Replaces.HostID {
		return r.issue(v, s, n, state)
	}
	if ticket.AllowWipe(s, n) {
		return plan.Acting("node %s may remove what it has streamed in vain", name)
	}
	if result, stale := r.stale(v, s); stale {
		s.Describe(0, "node %s is replaced: %s", name, result.Message)
		return result
	}
	hostID, result, lost := ticket.LostDisk(v, s, n)
	switch doubts := ticket.Doubts(v, s, n); {
	case lost && hostID == "":
		s.Describe(0, "node %s is replaced: %s", name, result.Message)
		return result
	case lost: // it is replaced as any other that loses its disk
	case len(doubts) > 0:
		s.Describe(0, "node %s is replaced: %s", name, words.List(doubts, 3))
		if v.Of(name).NotStarting {
			s.Notice(v1alpha1.NoticeJoinFailed, []string{name}, "%s; it is retried", doubts[0])
		}
		return plan.Waiting("waiting for %s", words.List(doubts, 3))
	default:
		hostID = n.CurrentAgent().Ring.HostID
	}
	s.Write(true, "node "+name+" is replaced", func(ring *ledger.Ring, own *ledger.Step) {
		ring.Members[name] = hostID
		ring.RepairDue = slices.DeleteFunc(ring.RepairDue, func(d ledger.RepairDue) bool { return d.Node == name })
		if state.Repair == v1alpha1.ReplacementRepairAfter {
			dueAfter(ring, name, v.Now)
		}
		ring.Cleanup = slices.DeleteFunc(ring.Cleanup, func(other string) bool { return other == name })
		ring.UpgradeSSTables = slices.DeleteFunc(ring.UpgradeSSTables,
			func(other string) bool { return other == name })
		ring.Postponed = slices.DeleteFunc(ring.Postponed, func(p ledger.Postponed) bool { return p.Node == name })
		own.Advance(ledger.StageOpen, v.Now)
	})
	s.Event("NodeReplaced", "node %s has taken the place of host id %s, with host id %s", name, state.Replaces.HostID,
		hostID)
	return plan.Acting("node %s is replaced", name)
}

// issue writes the ticket into the record, and with it who is replaced. On a disk that cannot be
// reached any more nothing starts: the node gets other claims, and nobody deletes the old ones.
func (r replacer) issue(v *assess.View, s *procedure.Step, n *facts.Node, state State) plan.Result {
	if result, leaves := r.leavesPod(v, s, n); leaves {
		return result
	}
	gone := outOfReach(v, n, state)
	switch {
	case gone == "" && assess.Address(n) == "" && n.Pod != nil:
		return plan.Waiting("waiting for the pod of node %s", n.Name)
	case gone == "" && assess.Address(n) == state.Replaces.Address:
		// At the address of the lost member it would miss what is written while it streams.
		s.DeletePod(n, "a node that replaces another needs an address of its own")
		return plan.Acting("node %s gets another pod", n.Name)
	}
	s.UpdateRecord(n.Name, true, "its ticket to replace "+state.Replaces.HostID,
		func(spec *v1alpha1.CassandraNodeSpec) {
			neverAgain(spec, state, gone)
			spec.Join, spec.ClientTraffic = ticket.For(v.Ledger.StepByID(s.ID()), n.Name), v1alpha1.TrafficClosed
			spec.State, spec.StopNotAfter = v1alpha1.StateRunning, nil
			if r.asked != nil && r.asked.Take != nil {
				r.asked.Take(v, n)(spec)
			}
		})
	return plan.Acting("issued a ticket to %s to replace host id %s", n.Name, state.Replaces.HostID)
}

// leavesPod has the pod of a node go that has the data of the member which is replaced, and says
// whether it is still there. It stays while another member is down that may have what is in it.
func (r replacer) leavesPod(v *assess.View, s *procedure.Step, n *facts.Node) (plan.Result, bool) {
	switch {
	case !v.HoldsData(n) || n.Record.Spec.State != v1alpha1.StateStopped && !v.DiskFails(n):
		return plan.Result{}, false
	case n.Pod.DeletionTimestamp != nil:
		return plan.Waiting("waiting until the pod of node %s is gone", n.Name), true
	}
	if why := r.refusals(v, n.Name); len(why) > 0 {
		return s.Refused(why), true
	}
	s.DeletePod(n, "its next pod streams its data again")
	return plan.Acting("node %s leaves its pod, and the data in it", n.Name), true
}

// unheardOf is why a ticket to replace a member has no effect.
const unheardOf = "no other member has gossip of the one that is to be replaced"

// remove has a member remove the lost one from the ring: the new owners of its ranges stream them.
// Its node joins as a new one then.
func (r replacer) remove(v *assess.View, s *procedure.Step) plan.Result {
	name, state := of(s)
	s.Describe(0, "node %s is removed from the ring", name)
	n := v.Live(name)
	if n == nil {
		return plan.Waiting("waiting for the record of %s, which is recreated", name)
	}
	hostID, why := state.Replaces.HostID, "is lost, and no other member has gossip of it"
	if s.Kind() == ledger.RemoveTask {
		why = "is to be removed"
	}
	if r, over := s.RemoveMember(n, hostID, why); !over {
		return r
	}
	if v.Leaves(name) {
		s.UpdateRecord(name, true, "host id "+hostID+" is removed from the ring", func(spec *v1alpha1.CassandraNodeSpec) {
			neverAgain(spec, state, "")
			spec.Member, spec.Join, spec.ClientTraffic = nil, nil, v1alpha1.TrafficClosed
			spec.State, spec.StopNotAfter = v1alpha1.StateDecommissioned, nil
		})
		return plan.Acting("node %s is no member any more", name)
	}
	then := "joins as a new node"
	if n.Record.Spec.State == v1alpha1.StateDecommissioned {
		then = "is gone"
	}
	if result, leaves := r.leavesPod(v, s, n); leaves {
		return result
	}
	if n.Record.Spec.Member != nil || n.Record.Spec.Join != nil {
		s.UpdateRecord(name, true, "host id "+hostID+" is removed from the ring",
			func(spec *v1alpha1.CassandraNodeSpec) {
				neverAgain(spec, state, outOfReach(v, n, state))
				spec.Member, spec.Join, spec.ClientTraffic = nil, nil, v1alpha1.TrafficClosed
				spec.State, spec.StopNotAfter = v1alpha1.StateRunning, nil
			})
		return plan.Acting("node %s is no member any more", name)
	}
	s.Forget(name)
	s.Write(true, "the system keyspaces are looked at", func(r *ledger.Ring, _ *ledger.Step) {
		r.SystemKeyspaces = true
		if state.Repair == v1alpha1.ReplacementRepairAfter {
			for _, other := range others(v, name).Names {
				dueAfter(r, other, v.Now)
			}
		}
	})
	s.Close(true, v1alpha1.StepSucceeded, "node "+name+" "+then)
	s.Event("MemberRemoved", "host id %s of node %s, which %s, is removed from the ring; the node %s", hostID, name,
		why, then)
	return plan.Acting("node %s %s", name, then)
}

// dueAfter notes that a node is to be repaired since a replacement was not repaired before.
func dueAfter(r *ledger.Ring, node string, now time.Time) {
	for i := range r.RepairDue {
		if r.RepairDue[i].Node == node {
			r.RepairDue[i].Since = now // what was repaired before does not count
			return
		}
	}
	r.RepairDue = append(r.RepairDue, ledger.RepairDue{Node: node, Since: now, Reason: v1alpha1.RepairReplaced})
}

// neverAgain has a record know of the member that never starts again on it. Its disk is not used
// any more where it is out of reach.
func neverAgain(spec *v1alpha1.CassandraNodeSpec, state State, gone types.UID) {
	replaced := v1alpha1.ReplacedMember{HostID: state.Replaces.HostID, Address: state.Replaces.Address}
	if gone != "" {
		replaced.ClaimUID, spec.Claims = gone, nil
	}
	spec.Replaced = append(slices.DeleteFunc(slices.Clone(spec.Replaced),
		func(r v1alpha1.ReplacedMember) bool { return r.HostID == replaced.HostID }), replaced)
}

// outOfReach is the uid of a claim that no pod of the node can use any more, or is to use; empty if
// there is none.
func outOfReach(v *assess.View, n *facts.Node, state State) types.UID {
	for _, c := range state.Claims {
		if c.Volume == v1alpha1.VolumeData {
			return c.UID
		}
	}
	if gone := v.OutOfReach(n); gone != nil {
		return gone.Claim.UID
	}
	return ""
}

// end closes the step once the record says who the member is.
func end(v *assess.View, s *procedure.Step) plan.Result {
	name, state := of(s)
	n := v.Live(name)
	s.Describe(1, "node %s is replaced", name)
	if n == nil {
		return plan.Waiting("waiting for the record of %s, which is recreated", name)
	}
	hostID, spec := v.Ledger.Members[name], &n.Record.Spec
	traffic := v.Traffic(spec)
	if spec.Member == nil || spec.Member.HostID != hostID || spec.Join != nil ||
		spec.ClientTraffic != traffic {
		s.UpdateRecord(name, false, "it is replaced", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.Member, spec.Join = &v1alpha1.Member{HostID: hostID}, nil
			spec.ClientTraffic = traffic
		})
		return plan.Acting("recording the host id of %s", name)
	}
	// Of a disk that fails nobody has said that it may go.
	if s.Kind() != ledger.ReplaceNode && v.Cluster.Spec.Volumes.OnScaleIn == v1alpha1.ClaimDelete {
		s.DeleteClaims(state.Claims, "its disk is given up, and volumes.onScaleIn is Delete")
	}
	s.Close(false, v1alpha1.StepSucceeded, "node "+name)
	return plan.Nothing()
}
