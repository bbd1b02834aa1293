package trial

import (
	"slices"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/rollout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/apiserver"
)

// budgets judges disruption budgets: no pod can be evicted while a step moves ranges or takes nodes
// down, and one of each datacenter can be when nothing is open.
type budgets struct {
	*checker
	// idle is since when nothing is open, busy since when a step moves ranges or takes nodes down,
	// loose since when a datacenter's budget lets pods go, and shut since when it lets fewer go
	// than it may when nothing is open.
	idle, busy  time.Time
	loose, shut map[string]time.Time
}

// moving are the steps while which no pod is evicted.
var moving = []ledger.Kind{ledger.JoinNode, ledger.LeaveNode, ledger.AddDatacenter, ledger.WithdrawDatacenter,
	ledger.RenewNode, ledger.ReplaceNode, ledger.ReplaceTask, ledger.RemoveTask, ledger.RollOut, ledger.StopRing,
	ledger.StopDatacenter}

// repairedIn is how long a budget may be as somebody made it, and reopenedIn how long it may be
// closed when nothing is open any more. A fault holds up an operator, or what it sees, for two
// minutes.
const repairedIn, reopenedIn = 30 * time.Second, time.Minute

func (b *budgets) bound(d time.Duration) time.Duration {
	if b.Fault != nil {
		d += awayFor
	}
	return d
}

// changed takes note of a budget, and judges all of them when an operator writes.
func (b *budgets) changed(e apiserver.Event, byOperator bool) {
	c, l, now := get(b.w), b.lastLedger, b.w.Line.Now()
	if budget, is := e.New.(*policyv1.PodDisruptionBudget); is && c != nil && l != nil {
		name := budget.Labels[v1alpha1.LabelDatacenter]
		gone := e.Type == apiserver.Deleted || budget.DeletionTimestamp != nil
		unready := budget.Spec.UnhealthyPodEvictionPolicy
		always := unready != nil && *unready == policyv1.AlwaysAllow
		note(b.loose, name, now, gone || budget.Status.ObservedGeneration != budget.Generation ||
			budget.Status.DisruptionsAllowed > 0 || always)
		// Of those that are not ready one may be a node that joins, or a replica that a step waits
		// for.
		if left := budget.Spec.MinAvailable; byOperator && !gone && !b.busy.IsZero() &&
			(left == nil || left.IntValue() < b.members(name) || always) {
			b.violated("budget: evictions may leave %v of the %d members of datacenter %s from now on, and %s is open",
				left, b.members(name), name, l.Step.Kind)
		}
	}
	if !byOperator || c == nil || c.DeletionTimestamp != nil || l == nil || l.ClusterUID != c.UID {
		return
	}
	since := func(at time.Time) time.Duration {
		if b.injected.After(at) {
			at = b.injected
		}
		return now.Sub(at)
	}
	for _, dc := range c.Spec.Datacenters {
		if b.members(dc.Name) == 0 {
			continue
		}
		budget, _ := b.w.Server.Object("PodDisruptionBudget",
			keyOf(v1alpha1.DisruptionBudgetName(c.Name, dc.Name))).(*policyv1.PodDisruptionBudget)
		if at, loose := b.loose[dc.Name]; loose && !b.busy.IsZero() &&
			min(since(at), since(b.busy)) > b.bound(repairedIn) {
			b.violated("budget: pods of datacenter %s can be evicted all the while, and %s is open", dc.Name,
				l.Step.Kind)
		}
		note(b.shut, dc.Name, now, budget != nil && !b.evictable(budget, b.members(dc.Name)))
		if at, shut := b.shut[dc.Name]; shut && !b.idle.IsZero() && min(since(b.idle), since(at)) > b.bound(reopenedIn) {
			b.violated("budget: nothing is open, and evictions may not leave all but one of the %d members of "+
				"datacenter %s", b.members(dc.Name), dc.Name)
		}
	}
}

// note since when something is so of a datacenter.
func note(since map[string]time.Time, datacenter string, now time.Time, yes bool) {
	if _, before := since[datacenter]; !yes {
		delete(since, datacenter)
	} else if !before {
		since[datacenter] = now
	}
}

// closed judges what moves ranges or takes a node down: the budgets are closed before.
func (b *budgets) closed(what string) {
	for dc, at := range b.loose {
		if b.lastLedger != nil && b.members(dc) > 0 && b.w.Line.Now().Sub(at) >= settledBy {
			b.violated("budget: %s, and pods of datacenter %s can be evicted", what, dc)
		}
	}
}

// written takes note of a ledger; nil for one that is lost, or cannot be read.
func (b *budgets) written(l *ledger.Ledger) {
	rests := func(s *ledger.Step) bool { // a roll-out that is held
		state, err := ledger.StateOf[rollout.State](s)
		return err == nil && s.Kind == ledger.RollOut && state.Resting
	}
	since := func(at *time.Time, yes bool) {
		switch {
		case !yes:
			*at = time.Time{}
		case at.IsZero():
			*at = b.w.Line.Now()
		}
	}
	since(&b.idle, l != nil && !slices.ContainsFunc(slices.Concat(l.Open(), l.Suspended),
		func(s *ledger.Step) bool { return s.Kind != ledger.RepairTables }))
	since(&b.busy, l != nil && l.Step != nil && slices.Contains(moving, l.Step.Kind) && !rests(l.Step))
}

// members of a datacenter by the ledger.
func (b *budgets) members(datacenter string) int {
	n := 0
	for name := range b.lastLedger.Members {
		if strings.HasPrefix(name, clusterName+"-"+datacenter+"-") {
			n++
		}
	}
	return n
}
