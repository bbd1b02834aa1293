package ticket

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// LostDisk judges the one node of a step that was NORMAL by its ticket, and lost its disk before
// all saw that: its agent starts nothing. Where a member sees it as one it is one, with the host id
// that is returned, and has rows that others may count on: it is to be replaced. Where none does,
// and all are up, its join has failed, and it may try again as another host id. It says whether the
// disk is lost.
func LostDisk(v *assess.View, s *procedure.Step, n *facts.Node) (hostID string, r plan.Result, lost bool) {
	agent := n.CurrentAgent()
	former := func(m v1alpha1.ReplacedMember) bool { return m.HostID == agent.HostID }
	if !assess.FindsNoData(agent) || agent.HostID == "" || slices.ContainsFunc(n.Record.Spec.Replaced, former) {
		return "", plan.Nothing(), false
	}
	known, doubts := seenAsMember(v, n.Name, agent.HostID)
	switch {
	case known:
		return agent.HostID, plan.Nothing(), true
	case len(doubts) > 0:
		return "", plan.Waiting("node %s was host id %s and has lost its disk: %s", n.Name, agent.HostID,
			words.List(doubts, 3)), true
	}
	s.UpdateRecord(n.Name, true, "host id "+agent.HostID+" has lost its disk before any member saw it",
		func(spec *v1alpha1.CassandraNodeSpec) {
			spec.Replaced = append(slices.Clone(spec.Replaced), v1alpha1.ReplacedMember{HostID: agent.HostID})
		})
	return "", plan.Acting("node %s may join again: no member saw it with host id %s, whose disk is lost", n.Name,
		agent.HostID), true
}

// seenAsMember says whether any other member that is up sees a host id as one. If none does, the
// doubts are those who may yet.
func seenAsMember(v *assess.View, name, hostID string) (seen bool, doubts []string) {
	others := slices.DeleteFunc(slices.Clone(v.Members()), func(other string) bool { return other == name })
	up := v.UpAmong(others)
	for _, other := range up {
		e, known := v.Nodes[other].CurrentAgent().Ring.ByHostID(hostID)
		switch {
		case known && (e.Status == facts.StatusNormal || e.Status == facts.StatusShutdown):
			return true, nil
		case known && e.Status == facts.StatusUnknown:
			doubts = append(doubts, fmt.Sprintf("%s knows that host id, and not its state", other))
		}
	}
	for _, other := range others {
		if !slices.Contains(up, other) {
			doubts = append(doubts, other+" is down, and may know it as a member")
		}
	}
	return false, doubts
}
