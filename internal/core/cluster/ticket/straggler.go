package ticket

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// stragglerTimeout is how long a wave waits for a node when all others have joined.
const stragglerTimeout = 10 * time.Minute

// excludeStragglers takes nodes out of the wave that did not join within the timeout after all
// others had. Each is taken out with its agent's acknowledgement, or with the proof that the pod
// which had the ticket is gone.
func excludeStragglers(v *assess.View, s *procedure.Step, views *Views) (plan.Result, bool) {
	if views == nil {
		return plan.Result{}, false
	}
	var late []*facts.Node
	var last time.Time
	for _, name := range s.Wave() {
		n := v.Nodes[name]
		if status := Status(s, n); status != nil && status.FinishedAt != nil {
			if status.FinishedAt.After(last) {
				last = status.FinishedAt.Time
			}
			continue
		}
		late = append(late, n)
	}
	// The others must be a ring among themselves: a straggler is never the reason why they are not.
	if len(late) == 0 || len(late) == len(s.Wave()) || len(views.OthersDoubt(late)) > 0 {
		return plan.Result{}, false
	}
	if left := last.Add(stragglerTimeout).Sub(v.Now); left > 0 {
		s.WakeIn(left)
		return plan.Result{}, false
	}
	for _, n := range late {
		if n == nil || n.Record == nil {
			continue // its record is being recreated
		}
		if v.Of(n.Name).Joined() {
			s.Block(v1alpha1.BlockedStragglerInRing, []string{n.Name},
				"node %s has not reported that it joined, but another node, or its disk, says that it is in the "+
					"ring: it is not excluded", n.Name)
			continue
		}
		if IsWithdrawn(s, n) {
			s.Withdraw("it did not join in time", n.Name)
			s.Warn("NodeWithdrawn", "node %s did not join within %s of the others and is excluded from the formation",
				n.Name, stragglerTimeout)
			return plan.Acting("excluding %s", n.Name), true
		}
		if n.Record.Spec.Join != nil && Withdraw(s, n, "it did not join in time") {
			return plan.Acting("withdrawing the ticket of %s", n.Name), true
		}
	}
	return plan.Waiting("waiting for %s to acknowledge that the ticket is withdrawn", words.Plural(len(late), "node")),
		true
}
