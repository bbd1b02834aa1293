package cluster

import (
	"cmp"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/addcenter"
	"helenus.io/helenus/internal/core/cluster/assassinate"
	"helenus.io/helenus/internal/core/cluster/cleanup"
	"helenus.io/helenus/internal/core/cluster/form"
	"helenus.io/helenus/internal/core/cluster/join"
	"helenus.io/helenus/internal/core/cluster/keeproles"
	"helenus.io/helenus/internal/core/cluster/keyspaces"
	"helenus.io/helenus/internal/core/cluster/leave"
	"helenus.io/helenus/internal/core/cluster/makeroles"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/repair"
	"helenus.io/helenus/internal/core/cluster/replace"
	"helenus.io/helenus/internal/core/cluster/rollout"
	"helenus.io/helenus/internal/core/cluster/rotate"
	"helenus.io/helenus/internal/core/cluster/stop"
	"helenus.io/helenus/internal/core/cluster/task"
	"helenus.io/helenus/internal/core/cluster/upgradesstables"
	"helenus.io/helenus/internal/core/cluster/upkeep"
	"helenus.io/helenus/internal/core/cluster/withdraw"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// entries are what the operator does, in the order in which it is asked for. Safe writes of earlier
// entries are never held up by later ones. A gate that is not done ends the pass: what follows
// would rest on it. An entry whose condition does not hold is passed over.
var entries = []entry{
	{name: "Deletion", run: upkeepOf((*upkeep.Keeper).Deletion), gate: true},
	{name: "Ownership", run: upkeepOf((*upkeep.Keeper).Ownership), gate: true},
	{name: "Ledger", run: upkeepOf((*upkeep.Keeper).KeepLedger), gate: true},
	{name: "Validation", run: upkeepOf((*upkeep.Keeper).Validation)},
	{name: "SharedObjects", run: sharedObjects, gate: true},
	{name: "NodeRecords", run: upkeepOf((*upkeep.Keeper).NodeRecords)},
	{name: "Exceptions", run: upkeepOf((*upkeep.Keeper).Exceptions)},
	{name: "RepairsDue", when: hasRing, run: upkeepOf((*upkeep.Keeper).RepairsDue)},
	{name: "VolumesAndPods", run: upkeepOf((*upkeep.Keeper).VolumesAndPods)},
	{name: "Agents", run: upkeepOf((*upkeep.Keeper).Agents)},
	{name: "Seeds", run: upkeepOf((*upkeep.Keeper).PublishSeeds)},
	{name: "Authorities", when: hasRing, run: rotateAuthorities},

	{name: "TaskResults", run: reportTasks},
	{name: "RepairStatus", when: hasRing, run: reportRepairs},
	{name: "Replace", when: hasRing, run: recoverMembers},
	{name: "OpenStep", run: openStep, gate: true},
	{name: "Maintenance", when: hasRing, run: maintain},

	{name: "Adoption", when: noRingYet, run: propose(ledger.AdoptRing), gate: true},
	{name: "Formation", when: noRingYet, run: propose(ledger.FormRing), gate: true},
	{name: "Stop", when: ringCanChange, run: propose(ledger.StopRing), gate: true},
	{name: "StopDatacenter", when: ringCanChange, run: propose(ledger.StopDatacenter), gate: true,
		opens: noneStarts},
	{name: "StaleJoins", when: ringCanChange, run: propose(ledger.Assassinate), gate: true, opens: always},
	// while one is not ready nodes join the others
	{name: "Datacenters", when: ringCanChange, run: propose(ledger.AddDatacenter)},
	{name: "Join", when: ringCanChange, run: propose(ledger.JoinNode), gate: true, opens: lastJoinIsOver},
	{name: "Leave", when: ringCanChange, run: propose(ledger.LeaveNode)},
	{name: "Roles", when: ringCanChange, run: propose(ledger.MakeRoles)},
	{name: "Encryption", when: ringCanChange, run: encrypt, gate: true, opens: always},
	{name: rollOut, when: ringCanChange, run: propose(ledger.RollOut), gate: true, opens: repairsFirst},
	{name: "Superuser", when: ringCanChange, run: propose(ledger.Rotate)},
	{name: "ApplicationRoles", when: ringCanChange, run: propose(ledger.KeepRoles)},
	{name: "SystemKeyspaces", when: ringCanChange, run: propose(ledger.RaiseSystemKeyspaces), gate: true,
		opens: lastJoinIsOver},
	{name: "FewerReplicas", when: ringCanChange, run: propose(ledger.LowerSystemKeyspaces)},
	{name: "Withdraw", when: ringCanChange, run: propose(ledger.WithdrawDatacenter)},
	{name: "Repair", when: ringCanChange, run: propose(ledger.Repair)},
	{name: "UpgradeSSTables", when: ringCanChange, run: propose(ledger.UpgradeSSTables)},
	{name: tasks, when: ringCanChange, run: proposeTask},
	{name: "Cleanup", when: ringCanChange, run: propose(ledger.Cleanup), gate: true},
	{name: repairTables, when: ringCanChange, run: propose(ledger.RepairTables)},
}

// procedures are all that there are.
func procedures(rules guard.Rules) []procedure.Procedure {
	return append([]procedure.Procedure{
		replace.Replace(rules, assassinate.Remove),
		form.Form(rules), form.Adopt(rules), stop.Stop(rules), stop.Datacenter(rules),
		assassinate.Assassinate(), addcenter.Add(rules),
		join.Join(rules, assassinate.Remove), leave.Leave(rules), withdraw.Withdraw(rules),
		rollout.RollOut(rules, assassinate.Remove), keyspaces.Raise(), keyspaces.Lower(rules),
		rotate.Rotate(), makeroles.MakeRoles(), keeproles.KeepRoles(),
		repair.Repair(rules),
		repair.Tables(rules),
		upgradesstables.UpgradeSSTables(), cleanup.Cleanup(rules),
		replace.Planned(rules, assassinate.Remove, replace.Asked{Kind: ledger.ReplaceTask,
			Next: task.NextGivenUp(v1alpha1.TaskReplace), Over: task.NotGivenUp}),
		replace.Planned(rules, assassinate.Remove, replace.Asked{Kind: ledger.RemoveTask, Removes: true,
			Next: task.NextGivenUp(v1alpha1.TaskRemove), Over: task.NotGivenUp}),
		replace.Planned(rules, assassinate.Remove, replace.Asked{Kind: ledger.RenewNode, Next: rollout.NextRenewed,
			Over: rollout.NotRenewed, Take: rollout.Renewed}),
	}, task.Procedures(rules)...)
}

// noRingYet: the spec is accepted, and no ticket was ever issued.
func noRingYet(v *assess.View) bool { return !v.Begun() && !v.SpecRejected }

// hasRing: the ring is formed.
func hasRing(v *assess.View) bool { return v.HasRing() }

// ringCanChange: the ring is formed, the spec is accepted, and no step is open.
func ringCanChange(v *assess.View) bool { return v.CanChange() }

type entry struct {
	name string
	when func(*assess.View) bool
	run  func(*pass) plan.Result
	gate bool
	// opens says that the gate is open all the same, as long as the entry only waits.
	opens func(*pass) bool
}

// pass is one call of Next.
type pass struct {
	draft  *plan.Draft
	keeper *upkeep.Keeper
	engine *procedure.Engine
	rules  guard.Rules
}

func upkeepOf(run func(*upkeep.Keeper) plan.Result) func(*pass) plan.Result {
	return func(p *pass) plan.Result {
		r := run(p.keeper)
		p.engine.SetView(p.keeper.View)
		return r
	}
}

func sharedObjects(p *pass) plan.Result { return p.keeper.SharedObjects(p.engine.RangesMove()) }

func rotateAuthorities(p *pass) plan.Result { return p.keeper.RotateAuthorities(p.rules) }

func openStep(p *pass) plan.Result { return p.engine.Continue(p.keeper.Corrected()) }

// recoverMembers replaces a member that is lost, also while a step of a lower class is open of
// which nothing is under way, and then one that a roll-out is to bring into a new pod without its
// data.
func recoverMembers(p *pass) plan.Result {
	if p.engine.View().SpecRejected || !p.engine.Yields() {
		return plan.Nothing()
	}
	if r := p.engine.Propose(ledger.ReplaceNode); r.Outcome != plan.Done {
		return r
	}
	return p.engine.Propose(ledger.RenewNode)
}

// encrypt goes before the roll-out, which brings a stage to the nodes.
func encrypt(p *pass) plan.Result { return rollout.Encrypt(p.rules, p.engine.View(), p.draft) }

func maintain(p *pass) plan.Result { return p.engine.Maintain() }

// tasks and rollOut are the entries by which tasks begin. That of repairTables is no step of which
// people are told: it never ends.
const tasks, rollOut, repairTables = "Tasks", "RollOut", "RepairTables"

func reportRepairs(p *pass) plan.Result { return repair.Report(p.engine.View(), p.draft) }

func reportTasks(p *pass) plan.Result {
	r := task.Report(p.engine.View(), p.draft)
	p.engine.Suspended()
	return r
}

// proposeTask begins the task whose turn it is, of whichever type it is.
func proposeTask(p *pass) plan.Result {
	for _, kind := range task.Kinds() {
		if r := p.engine.Propose(kind); r.Outcome != plan.Done {
			return r
		}
	}
	return plan.Nothing()
}

func propose(kind ledger.Kind) func(*pass) plan.Result {
	return func(p *pass) plan.Result { return p.engine.Propose(kind) }
}

// always: a step that may begin has stale joins forgotten itself.
func always(*pass) bool { return true }

// repairsFirst: what a roll-out waits for comes after it.
func repairsFirst(p *pass) bool { return rollout.RepairsFirst(p.engine.View()) }

// noneStarts: a datacenter that cannot be stopped holds nothing up.
func noneStarts(p *pass) bool { return p.engine.View().DatacenterToStart() == "" }

// lastJoinIsOver: for a while no node has joined, although nodes may be to join, or none may before
// a roll-out.
func lastJoinIsOver(p *pass) bool {
	if len(p.engine.ReleasesDiffer()) > 0 {
		return true
	}
	left := join.FollowUpsWait(p.engine.View())
	if left > 0 {
		p.draft.WakeIn(left)
	}
	return left <= 0
}

// waitsForJoins: what comes after the gate of joins does not begin while these wait.
func (p *pass) waitsForJoins(kind ledger.Kind) bool {
	after := []ledger.Kind{ledger.LeaveNode, ledger.RollOut, ledger.WithdrawDatacenter}
	return slices.Contains(after, kind) && join.IsDue(p.engine.View()) && !lastJoinIsOver(p)
}

// interval is when a cluster is looked at again if nothing happens at all: for what sends no
// events, such as a Secret that somebody deleted.
const interval = 10 * time.Minute

// Next decides what to do about a cluster now. It reads nothing but its arguments and changes
// neither.
func Next(snapshot *facts.Snapshot, now time.Time) plan.Plan {
	return NextBy(guard.All(), snapshot, now)
}

// Ahead is what brings the ring to the spec of a snapshot of which Next has made a plan; nil if
// there is nothing to do.
func Ahead(snapshot *facts.Snapshot, made plan.Plan, now time.Time) *plan.RollOut {
	view := assess.NewView(snapshot, now)
	rules := guard.All().Overruled(view.Overruled(), func(v1alpha1.Reason, guard.Finding) {})
	return rollout.Ahead(rules, view, made.Stalled != nil)
}

// NextBy is Next by other rules than those of the product.
func NextBy(rules guard.Rules, snapshot *facts.Snapshot, now time.Time) plan.Plan {
	draft := &plan.Draft{Plan: plan.Plan{Wake: interval}}
	view := assess.NewView(snapshot, now)
	found := map[v1alpha1.Reason]string{}
	rules = rules.Overruled(view.Overruled(),
		func(reason v1alpha1.Reason, f guard.Finding) { found[reason] = cmp.Or(found[reason], f.Message) })
	p := &pass{draft: draft, keeper: upkeep.New(view, draft), rules: rules}
	p.engine = procedure.NewEngine(view, draft, procedures(rules), rules, p.keeper.PublishSeedsOf)
	p.engine.Hold(p.waitsForJoins)
	for _, e := range entries {
		r := plan.Nothing()
		if e.when == nil || e.when(p.engine.View()) {
			r = e.run(p)
		}
		draft.Steps = append(draft.Steps, plan.Report{Step: e.name, Outcome: r.Outcome, Message: r.Message})
		if r.Outcome != plan.Done && draft.Current == nil && e.name != repairTables {
			draft.Current = &v1alpha1.StepStatus{Name: e.name, Message: r.Message}
		}
		if e.gate && r.Outcome != plan.Done && (r.Outcome == plan.Act || e.opens == nil || !e.opens(p)) {
			break
		}
	}
	p.keeper.Overruled(found)
	stop.Explain(p.engine.View(), draft)
	if len(snapshot.Tasks)+len(snapshot.Restores)+len(snapshot.Backups) > 0 {
		task.Explain(p.engine.View(), draft, tasks, rollOut)
	}
	return draft.Plan
}
