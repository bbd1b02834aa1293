package cleanup

import (
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// downTimeout is how long a cleanup waits for a node that is down before its operation has begun.
const downTimeout = 10 * time.Minute

// jobs is how many SSTables a node rewrites at a time, as nodetool has it: with as many as there
// are compactors all other compaction would wait.
const jobs = 2

// Cleanup runs nodetool cleanup once no node joins any more: on the nodes of one rack at a time, so
// that the others serve at full speed.
func Cleanup(rules guard.Rules) procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.Cleanup, Class: ledger.Maintenance, Runs: []v1alpha1.OperationType{v1alpha1.OperationCleanup},
		Due:    func(v *assess.View) *procedure.Proposal { return due(v, rules) },
		Stages: []procedure.Stage{{Name: ledger.StageOperations, Run: run}},
	}
}

func due(v *assess.View, rules guard.Rules) *procedure.Proposal {
	nodes := slices.DeleteFunc(slices.Clone(v.Ledger.Cleanup), func(name string) bool {
		return v.Ledger.Members[name] == "" || v.IsPostponed(ledger.Cleanup, name, name)
	})
	if len(nodes) == 0 {
		return nil
	}
	p := &procedure.Proposal{What: words.Plural(len(nodes), "node") + " to clean up"}
	if v.Cluster.Spec.Automation.Cleanup == v1alpha1.AutomationRecommend {
		p.Recommend = &v1alpha1.Recommendation{Operation: string(v1alpha1.OperationCleanup), Nodes: nodes,
			Message: "nodes have joined, and these hold data that they no longer own; " +
				"run nodetool cleanup on them, or set automation.cleanup to Automatic"}
		return p
	}
	names := procedure.FirstRack(v, v.UpAmong(nodes))
	if len(names) == 0 {
		p.Notices = []v1alpha1.Notice{{Reason: v1alpha1.NoticeNodeDown, Nodes: nodes, Message: fmt.Sprintf(
			"node %s holds data that it no longer owns, and is down: cleanup waits until it is up",
			words.List(nodes, 3))}}
		p.Wait = "until a node that is to be cleaned up is up"
		return p
	}
	p.Refusals = guard.Check(procedure.TheseNodes(v, v.UpAmong(v.Members())...), rules.Cleanup...)
	p.Open = procedure.OpenOn(ledger.Cleanup, names, "running cleanup on")
	return p
}

// run continues the cleanup of a rack.
func run(v *assess.View, s *procedure.Step) plan.Result {
	if leaveDown(v, s) {
		return plan.Acting("a node that is down is left for later")
	}
	names := s.Wave()
	p := s.Run(procedure.Operation{
		Purpose: "cleanup", Type: v1alpha1.OperationCleanup, Arguments: &v1alpha1.OperationArguments{Jobs: jobs},
	}, names)
	s.Describe(len(p.Finished), "running cleanup on %s: %s", words.Plural(len(names), "node"), words.List(p.Waiting, 3))
	if len(p.Finished) < len(names) {
		return p.Result("running cleanup on %s", words.Plural(p.Begun, "node"))
	}
	return s.EndMaintenance("they own all that they hold", func(r *ledger.Ring, done func(string) bool) {
		r.Cleanup = slices.DeleteFunc(r.Cleanup, done)
	})
}

// leaveDown takes a node out of the wave that was down for long and whose operation has not begun:
// the others do not wait for it. It stays due.
func leaveDown(v *assess.View, s *procedure.Step) bool {
	left := s.StageSince().Add(downTimeout).Sub(v.Now)
	for _, name := range s.Wave() {
		n := v.Live(name)
		if n == nil || n.CurrentAgent() != nil || s.HasBegun(n) {
			continue // what has begun may go on
		}
		if left > 0 {
			s.WakeIn(left)
			return false
		}
		s.Withdraw("node "+name+" is down", name)
		s.WithdrawOperations(name, "the node is down, and is cleaned up later")
		return true
	}
	return false
}
