package upkeep

import (
	"fmt"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/repair"
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
// disk, whose data must be repaired. People are recommended to have that done where the schedule
// does not do all of it.
func (k *Keeper) RepairsDue() plan.Result {
	k.noteRepairsDue()
	scheduled := repair.Scheduled(k.View)
	k.forgetRepaired(scheduled)
	var byHand []string
	for _, r := range repairReasons {
		var asks, waits, leftOut []string
		percent := 100
		for _, d := range k.Ledger.RepairDue {
			if d.Reason != r.reason || k.RepairAsked(d.Node) || k.repairs(d.Node) {
				continue
			}
			if p, is := scheduled[d.Node]; is && len(p.LeftOut) == 0 {
				waits, percent = append(waits, d.Node), min(percent, p.Percent)
				continue
			}
			asks, leftOut = append(asks, d.Node), append(leftOut, scheduled[d.Node].LeftOut...)
		}
		if len(waits) > 0 {
			k.draft.Notice(v1alpha1.NoticeRepairScheduled, waits, "node %s must be repaired: %s. That is done range "+
				"by range, before other repairs: %d%% so far", words.List(waits, 3), r.words, percent)
		}
		if len(asks) > 0 {
			message := fmt.Sprintf("node %s must be repaired: %s. To have it repaired: kubectl helenus repair %s "+
				"--reason '...'", words.List(asks, 3), r.words, asks[0])
			if slices.Sort(leftOut); len(leftOut) > 0 {
				message += fmt.Sprintf(". By itself all is repaired but table %s, which spec.repair.excludeTables "+
					"has or whose replication is not understood", words.List(slices.Compact(leftOut), 3))
			}
			k.draft.Recommend(string(v1alpha1.OperationRepair), asks, message)
			byHand = append(byHand, asks...)
		}
	}
	k.View = k.Recommending(byHand)
	return plan.Nothing()
}

// noteRepairsDue notes the reasons that nodes tell. With another one than before, what was repaired
// until now does not count.
func (k *Keeper) noteRepairsDue() {
	due := slices.Clone(k.Ledger.RepairDue)
	changed := false
	for _, n := range k.Records() {
		all := n.Record.Status.RepairDue
		at := slices.IndexFunc(due, func(d ledger.RepairDue) bool { return d.Node == n.Name })
		if _, member := k.Ledger.Members[n.Name]; !member || !slices.ContainsFunc(all, func(d v1alpha1.RepairDue) bool {
			return at < 0 || !slices.ContainsFunc(due[at].Reasons, d.Is)
		}) {
			continue
		}
		if at < 0 {
			first := slices.MinFunc(all, func(a, b v1alpha1.RepairDue) int { return a.Since.Compare(b.Since.Time) })
			due, at = append(due, ledger.RepairDue{Node: n.Name, Reason: first.Reason}), len(due)
		}
		due[at].Since, due[at].Reasons = k.Now, slices.Clone(all)
		changed = true
	}
	if changed {
		slices.SortFunc(due, func(a, b ledger.RepairDue) int { return strings.Compare(a.Node, b.Node) })
		k.putLedger(false, "nodes must be repaired", func(l *ledger.Ledger) { l.RepairDue = due })
	}
}

// forgetRepaired forgets nodes all of whose data the schedule has repaired, once their agents have.
func (k *Keeper) forgetRepaired(scheduled map[string]repair.Progress) {
	var over []string
	for _, d := range k.Ledger.RepairDue {
		n := k.Live(d.Node)
		switch {
		case n == nil || !scheduled[d.Node].Done:
		case len(n.Record.Status.RepairDue) == 0:
			over = append(over, d.Node)
		case !slices.EqualFunc(n.Record.Spec.Repaired, d.Reasons, v1alpha1.RepairDue.Is):
			k.update(n, true, "what it holds is repaired",
				func(spec *v1alpha1.CassandraNodeSpec) { spec.Repaired = d.Reasons })
		}
	}
	if len(over) > 0 {
		k.putLedger(false, "nodes are repaired", func(l *ledger.Ledger) {
			l.RepairDue = slices.DeleteFunc(l.RepairDue,
				func(d ledger.RepairDue) bool { return slices.Contains(over, d.Node) })
		})
	}
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
