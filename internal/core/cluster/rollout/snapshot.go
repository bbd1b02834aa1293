package rollout

import (
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// snapshots has the members that are up take a snapshot of what is their own, before the first of
// some is changed to another release, and says whether that is over. Where a member has the release
// already, as when a change is taken back, it is too late for them.
func (p *pass) snapshots(before []string) (r plan.Result, over bool) {
	to := p.Cluster.Spec.Version
	hasIt := func(name string) bool {
		n := p.Live(name)
		return n != nil && n.Record.Spec.Configuration.Version == to
	}
	getsIt := func(name string) bool {
		n := p.Live(name)
		return n != nil && p.wanted(n).Configuration.Version == to
	}
	if !slices.ContainsFunc(before, getsIt) || slices.ContainsFunc(p.Members(), hasIt) {
		return plan.Nothing(), true
	}
	names, tag := p.UpAmong(p.step.Nodes()), "helenus-before-"+to+"-"+p.step.ID()
	progress := p.step.Run(procedure.Operation{Purpose: "before-" + to, Type: v1alpha1.OperationSnapshot,
		Arguments: &v1alpha1.OperationArguments{Tag: tag, Keyspaces: []string{"system", "system_schema"}}}, names)
	if progress.Begun > 0 {
		p.step.Event("Snapshot", "%s take snapshot %s of system and system_schema before the first one gets "+
			"Cassandra %s", words.Plural(progress.Begun, "node"), tag, to)
	}
	if len(progress.Finished) == len(names) {
		return plan.Nothing(), true
	}
	p.describe("snapshot %s of system and system_schema, before the first node is changed: waiting for %s", tag,
		words.List(progress.Waiting, 3))
	return progress.Result("taking snapshot %s", tag), false
}

// forgetSnapshots takes those that are over out of the records, and says whether any had to be, or
// is still being taken.
func (p *pass) forgetSnapshots() bool {
	own := func(o v1alpha1.OperationIntent) bool { return ledger.OfIntent(o.ID) == p.step.ID() }
	takes := func(name string) bool {
		n := p.Live(name)
		return n != nil && slices.ContainsFunc(procedure.Unfinished(n), own)
	}
	return p.step.ClearOperations(p.step.Nodes()) || slices.ContainsFunc(p.UpAmong(p.step.Nodes()), takes)
}
