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
	if held := p.keepsConsistency(nil); held.verdict != Done {
		return held
	}
	return p.othersStay()
}

// othersStay asks the agents of the other members whether their nodes go down just now: gossip says
// so only seconds later. Those that do count as down. Each of two that are asked to go down at once
// tells so before it asks, so that at least one hears of the other. Where both defer, the one
// with the smaller host id tries again first.
func (p *pass) othersStay() outcome {
	if len(p.peerAddresses()) == 0 {
		return done
	}
	hostID := p.JVM.Ring.HostID
	if p.Peers.GoingDown && p.Peers.HostID == hostID {
		var down []string
		again := p.Peers.AskedAt.Add(deferAgain)
		for _, peer := range p.Peers.Answers {
			if peer.GoingDown && peer.HostID != hostID {
				down = append(down, peer.HostID)
				if peer.HostID < hostID {
					again = p.Peers.AskedAt.Add(2 * deferAgain)
				}
			}
		}
		held := p.keepsConsistency(down)
		switch {
		case held.verdict == Blocked && p.now.Before(again):
			held.message = "another node goes down at the same time: " + held.message
			return held
		case held.verdict == Done && p.peersAsked(hostID):
			return done
		}
	}
	ask := p.ask(hostID, "does another node go down at the same time?")
	ask.GoingDown = true
	return act(ask)
}

// GoesDown says that a node is being taken down, or was decided to be: next is what its agent does
// next.
func GoesDown(f *Facts, next Action) bool {
	if m := f.Memory.Restart; m != nil && !m.over() {
		return true
	}
	if f.Init.Process != nil && f.Memory.Stop.of(f.Init.Incarnation, f.Init.Process.StartID) {
		return true
	}
	if f.Doing != nil && takesDown(f.Doing.Action) {
		return true
	}
	return takesDown(next)
}

func takesDown(a Action) bool {
	switch a := a.(type) {
	case AskPeers:
		return a.GoingDown
	case BeginRestart, BeginStop:
		return true
	default:
		return false
	}
}

// keepsConsistency asks whether every range that can be protected keeps a consistency level without
// this node, and without others that are down or soon will be. Where a range cannot be protected,
// no other replica of it may be down.
func (p *pass) keepsConsistency(down []string) outcome {
	const guard = v1alpha1.BlockedConsistencyWouldBeLost
	view, disruption := p.JVM.Ring, p.Record.Spec.Disruption
	if len(view.Keyspaces) == 0 {
		return blocked("", guard, "the keyspaces are not known yet")
	}
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
