package procedure

import (
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// RemoveMember has a member remove a node that never starts again from the ring, as long as members
// that are up see its host id as that of one that is down, and says whether none does any more and
// the operation is over. What the node has done or lost is said of it in the status.
func (s *Step) RemoveMember(n *facts.Node, hostID, what string) (plan.Result, bool) {
	doubts, down := s.seenAsMember(n, hostID)
	if len(doubts) > 0 {
		s.Describe(0, "node %s %s: %s", n.Name, what, words.List(doubts, 3))
	}
	asked, busy := s.removing()
	if len(down) > 0 || busy {
		result, over := s.RunOnOne(Operation{
			Purpose: "remove", Type: v1alpha1.OperationRemoveNode, NeverPostponed: true, LastBackoff: time.Minute,
			Arguments: &v1alpha1.OperationArguments{HostID: hostID},
		}, slices.Concat(down, asked), "removes node "+n.Name+", which "+what+", from the ring")
		if !over {
			return result, false
		}
	}
	if len(doubts) > 0 {
		return plan.Waiting("waiting until every member knows that %s is no member: %s", n.Name,
			words.List(doubts, 3)), false
	}
	if s.ClearOperations(asked) {
		return plan.Acting("the removal of node %s is over", n.Name), false
	}
	return plan.Result{}, true
}

// seenAsMember says which members that are up see a node as a member, and which of them see it
// down.
func (s *Step) seenAsMember(n *facts.Node, hostID string) (doubts, down []string) {
	v, heard := s.engine.view, 0
	for _, name := range v.UpAmong(v.Members()) {
		if name == n.Name {
			continue
		}
		heard++
		for _, e := range v.Nodes[name].CurrentAgent().Ring.Endpoints {
			its := e.HostID == hostID || e.HostID == "" && e.Address == n.Record.Status.Address
			if its && (e.Member() || e.Status == facts.StatusLeaving) {
				doubts = append(doubts, fmt.Sprintf("node %s still sees it as %s", name, e.Status))
				if !e.Live {
					down = append(down, name)
				}
			}
		}
	}
	if heard == 0 {
		doubts = append(doubts, "no other member is up")
	}
	return doubts, down
}

// removing are the members that have a RemoveNode operation in their record, and whether any of
// these operations is unfinished.
func (s *Step) removing() (asked []string, busy bool) {
	v := s.engine.view
	remove := func(o v1alpha1.OperationIntent) bool { return o.Type == v1alpha1.OperationRemoveNode }
	for _, name := range v.Members() {
		n := v.Live(name)
		if n == nil || !slices.ContainsFunc(n.Record.Spec.Operations, remove) {
			continue
		}
		asked = append(asked, name)
		busy = busy || slices.ContainsFunc(Unfinished(n), remove)
	}
	return asked, busy
}
