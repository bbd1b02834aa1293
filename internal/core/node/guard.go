package node

import (
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
)

// outOfDate says that an intent which was not begun is not to begin any more, and why.
func (p *pass) outOfDate(i *v1alpha1.Intent) (string, bool) {
	switch {
	case i.Withdraw != nil:
		return "taken back: " + i.Withdraw.Reason, true
	case i.NotAfter != nil && p.now.After(i.NotAfter.Time):
		return "not begun before " + i.NotAfter.UTC().Format(time.RFC3339), true
	default:
		return "", false
	}
}

// mayGoDown is the agent's own guard, asked at the moment of effect: it says, from the view of this
// JVM alone, whether a live member may be taken down.
//
// A node that no client is to be served from (clientTraffic other than Open) is let go without it:
// the ring forms, or the whole cluster is being stopped, when the others going down first must not
// hold up the last ones.
func mayGoDown(p *pass) outcome {
	start := p.Memory.Start
	if start == nil || start.NormalAt == nil || p.Record.Spec.ClientTraffic != v1alpha1.TrafficOpen {
		return done
	}
	if !p.answers() {
		return blocked("", v1alpha1.BlockedJVMNotAnswering,
			"the JVM does not answer, so that it is not known whether the ring can do without this node")
	}
	if p.JVM.Ring.Mode != facts.ModeNormal {
		return done
	}
	if p.now.Sub(p.JVM.AnsweredAt) > ringFresh {
		return act(LookAtRing{Why: "the ring must be looked at before this node goes down"})
	}
	if changing := p.JVM.Ring.Changing(); len(changing) > 0 {
		return blocked("", v1alpha1.BlockedTopologyChangeInProgress, "the ring changes: "+strings.Join(changing, ", "))
	}
	return keepsConsistency(p.JVM.Ring, p.Record.Spec.Disruption)
}

// keepsConsistency asks whether every range that can be protected keeps a consistency level without
// this node. Where a range cannot be protected, no other replica of it may be down.
func keepsConsistency(view *facts.Ring, disruption v1alpha1.NodeDisruption) outcome {
	const guard = v1alpha1.BlockedConsistencyWouldBeLost
	if len(view.Keyspaces) == 0 {
		return blocked("", guard, "the keyspaces are not known yet")
	}
	var down []string
	for _, e := range view.Endpoints {
		if e.Member() && !e.Live {
			down = append(down, e.HostID)
		}
	}
	members, err := ring.New(view.Nodes())
	if err != nil {
		return blocked("", guard, "the view of the ring contradicts itself: "+err.Error())
	}
	keyspaces, err := view.Replicated()
	if err != nil {
		return blocked("", guard, strings.ReplaceAll(err.Error(), "\n", "; ")+": any node that is live may be a "+
			"replica that it needs. Alter it to NetworkTopologyStrategy with whole numbers of replicas, or drop it")
	}
	consistency, err := ring.ParseConsistency(string(disruption.Consistency))
	if err != nil {
		return blocked("", guard, err.Error())
	}
	protection, err := ring.NewProtection(members, keyspaces, consistency)
	if err != nil {
		return blocked("", guard, err.Error())
	}
	verdict, err := protection.Check([]string{view.HostID}, down)
	if err != nil {
		return blocked("", guard, err.Error())
	}
	policy := ring.Proceed
	if disruption.Unprotected == v1alpha1.UnprotectedBlock {
		policy = ring.Block
	}
	if !verdict.Permits(policy) {
		return blocked("", guard, verdict.String())
	}
	return done
}
