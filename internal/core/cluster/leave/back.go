package leave

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// takenBack says that the spec describes the node again that is to leave.
func takenBack(v *assess.View, s *procedure.Step) bool {
	w := v.Describes(s.Nodes()[0])
	return !v.SpecRejected && w != nil && !w.Leaves
}

// giveUp ends a step before its node was asked to leave. The system keyspaces get the replicas
// again that they should have.
func giveUp(v *assess.View, s *procedure.Step) plan.Result {
	name := s.Nodes()[0]
	why := "the spec describes node " + name + " again"
	s.Describe(0, "%s", why)
	if waiting := s.CancelOn(v.Members(), why); len(waiting) > 0 {
		return plan.Waiting("%s: waiting for %s", why, words.List(waiting, 3))
	}
	if s.ClearOperations(v.Members()) {
		return plan.Acting("the operations are over")
	}
	s.Write(true, why, func(r *ledger.Ring, _ *ledger.Step) { r.SystemKeyspaces = true })
	s.Close(true, v1alpha1.StepWithdrawn, "node "+name+" stays: the spec describes it again")
	s.Event("LeaveTakenBack", "node %s stays", name)
	return plan.Acting("node %s stays", name)
}

// back has a node stay that was asked to leave and does not: it never began, it was killed before
// its data was with the others, or Cassandra has failed. After a failure it takes a restart for the
// node to be NORMAL in the view of the others.
func back(v *assess.View, s *procedure.Step, n *facts.Node) plan.Result {
	why := "the spec describes node " + n.Name + " again"
	restart, status := s.IntentID("restart", n.Name), n.Record.Status.Restart
	failed := false
	if agent := n.CurrentAgent(); agent != nil && agent.Ring != nil {
		failed = agent.Ring.Mode == facts.ModeLeaving || agent.Ring.Mode == facts.ModeDecommissionFailed
	}
	has := n.Record.Spec.Restart != nil && n.Record.Spec.Restart.ID == restart
	over := status != nil && status.ID == restart && (status.FinishedAt != nil || status.WithdrawnAt != nil)
	switch waiting := s.CancelOn([]string{n.Name}, why); {
	case len(waiting) > 0:
		s.Describe(0, "%s: %s", why, words.List(waiting, 3))
		return plan.Waiting("%s: waiting for %s", why, words.List(waiting, 3))
	case failed && n.Record.Spec.Restart == nil && (status == nil || status.ID != restart):
		s.UpdateRecord(n.Name, true, why, func(spec *v1alpha1.CassandraNodeSpec) {
			spec.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: restart}}
		})
		return plan.Acting("%s: it is restarted, since it could not leave", why)
	case has && !over:
		s.Describe(0, "%s: it restarts, since it could not leave", why)
		return plan.Waiting("%s: waiting for its restart", why)
	case has:
		s.UpdateRecord(n.Name, false, "it has restarted",
			func(spec *v1alpha1.CassandraNodeSpec) { spec.Restart = nil })
		return plan.Acting("%s: it has restarted", why)
	case len(v.UpAmong([]string{n.Name})) == 0:
		s.Describe(0, "%s: it is not up", why)
		return plan.Waiting("%s: waiting until it is up", why)
	}
	return giveUp(v, s)
}
