package upkeep

import (
	"fmt"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// repairReasons are why repairs are due, in words.
var repairReasons = []struct {
	reason v1alpha1.RepairReason
	words  string
}{
	{v1alpha1.RepairAwayLongerThanHintWindow, "it was down for longer than its peers keep writes for it"},
	{v1alpha1.RepairCommitLogLost, "its commit log volume was lost, and with it what was not flushed"},
	{v1alpha1.RepairDownLongerThanGCGrace, "it was started although it was down for longer than deletions are kept"},
	{v1alpha1.RepairScrubbed, "a scrub has left out what could not be read on its disk"},
	{v1alpha1.RepairReplaced, "it has replaced a lost member, and took each range from one replica"},
}

// RepairsDue takes over from the nodes, which forget it when they were repaired or have lost their
// disk, whose data must be repaired, and recommends that to people.
func (k *Keeper) RepairsDue() plan.Result {
	var due []ledger.RepairDue
	for _, n := range k.Records() {
		if _, member := k.Ledger.Members[n.Name]; !member || k.Ledger.IsRepairDue(n.Name) {
			continue
		}
		if all := n.Record.Status.RepairDue; len(all) > 0 {
			first := slices.MinFunc(all, func(a, b v1alpha1.RepairDue) int { return a.Since.Compare(b.Since.Time) })
			due = append(due, ledger.RepairDue{Node: n.Name, Since: first.Since.Time, Reason: first.Reason})
		}
	}
	if len(due) > 0 {
		k.putLedger(false, "nodes must be repaired", func(l *ledger.Ledger) {
			l.RepairDue = append(l.RepairDue, due...)
			slices.SortFunc(l.RepairDue, func(a, b ledger.RepairDue) int { return strings.Compare(a.Node, b.Node) })
		})
	}
	for _, r := range repairReasons {
		var nodes []string
		for _, d := range k.Ledger.RepairDue {
			if d.Reason == r.reason && !k.RepairAsked(d.Node) && !k.repairs(d.Node) {
				nodes = append(nodes, d.Node)
			}
		}
		if len(nodes) > 0 {
			k.draft.Recommend(string(v1alpha1.OperationRepair), nodes, fmt.Sprintf(
				"node %s must be repaired: %s. To have it repaired: kubectl helenus repair %s --reason '...'",
				words.List(nodes, 3), r.words, nodes[0]))
		}
	}
	return plan.Nothing()
}

// repairs says that an open step repairs a node.
func (k *Keeper) repairs(node string) bool {
	return slices.ContainsFunc(slices.Concat(k.Ledger.Open(), k.Ledger.Suspended), func(s *ledger.Step) bool {
		return s.Kind == ledger.Repair && slices.Contains(s.Wave(), node)
	})
}

// judgeRepair says what becomes of an exception that has a node repaired.
func (k *Keeper) judgeRepair(e *v1alpha1.Exception) (v1alpha1.ExceptionState, string) {
	switch {
	case k.repairs(e.Node):
		return v1alpha1.ExceptionActive, fmt.Sprintf("node %s is being repaired", e.Node)
	case k.Ledger.IsRepairDue(e.Node):
		return v1alpha1.ExceptionActive, fmt.Sprintf("node %s is to be repaired", e.Node)
	default:
		return v1alpha1.ExceptionOver,
			fmt.Sprintf("no repair of node %s is due: take it out of spec.exceptions", e.Node)
	}
}
