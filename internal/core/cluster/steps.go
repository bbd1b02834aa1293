package cluster

import (
	"fmt"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// steps are what the operator does, in the order in which it looks at them. Safe writes of earlier steps are never held up by later ones. A gate that is
// not done ends the pass: what follows would rest on it.
var steps = []step{
	{name: "Deletion", run: deletion, gate: true},
	{name: "Ownership", run: ownership, gate: true},
	{name: "Ledger", run: keepLedger, gate: true},
	{name: "Validation", run: validation},
	{name: "SharedObjects", run: sharedObjects, gate: true},
	{name: "NodeRecords", run: nodeRecords},
	{name: "Exceptions", run: exceptions},
	{name: "VolumesAndPods", run: volumesAndPods},
	{name: "Seeds", run: seeds},
	{name: "OpenStep", run: openStep, gate: true},
	{name: "Adoption", run: adoption, gate: true},
	{name: "Formation", run: formation, gate: true},
	{name: "ForgetJoin", run: forgetJoin, gate: true},
	{name: "Datacenters", run: datacenters},
	{name: "Join", run: join, gate: true},
	{name: "SystemKeyspaces", run: systemKeyspaces, gate: true},
	{name: "Cleanup", run: cleanup, gate: true},
}

type step struct {
	name string
	run  func(*pass) result
	gate bool
}

type result struct {
	outcome plan.Outcome
	message string
}

func done() result { return result{outcome: plan.Done} }

func act(format string, args ...any) result {
	return result{outcome: plan.Act, message: fmt.Sprintf(format, args...)}
}

func wait(format string, args ...any) result {
	return result{outcome: plan.Wait, message: fmt.Sprintf(format, args...)}
}

func stuck(format string, args ...any) result {
	return result{outcome: plan.Stuck, message: fmt.Sprintf(format, args...)}
}

// retry waits for time to pass, after which another look brings the step on.
func (p *pass) retry(after time.Duration, format string, args ...any) result {
	p.wakeIn(after)
	return result{outcome: plan.Retry, message: fmt.Sprintf(format, args...)}
}

// lookAgain is when a cluster is looked at again if nothing happens at all: for what sends no events, such as a Secret that somebody deleted.
const lookAgain = 10 * time.Minute

// Next decides what to do about a cluster now. It reads nothing but its arguments and changes neither.
func Next(snapshot *facts.Snapshot, now time.Time) plan.Plan {
	seen := *snapshot // a pass goes on from the ledger that it writes
	p := &pass{Snapshot: &seen, now: now, wanted: render.WantedNodes(snapshot.Cluster, snapshot.Install), plan: plan.Plan{Wake: lookAgain}}
	for _, s := range steps {
		r := s.run(p)
		p.plan.Steps = append(p.plan.Steps, plan.Report{Step: s.name, Outcome: r.outcome, Message: r.message})
		if r.outcome != plan.Done && p.plan.Current == nil {
			p.plan.Current = &v1alpha1.StepStatus{Name: s.name, Message: r.message}
		}
		if s.gate && r.outcome != plan.Done {
			break
		}
	}
	return p.plan
}
