package node

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

const (
	// openBlind is how long after NORMAL a node stays closed that does not see its peers. With the
	// round of questions that is under way then it is a minute.
	openBlind = 58 * time.Second
	// askSight is how long after an answer they are asked again, and askSightOpen once it is open.
	askSight     = time.Second
	askSightOpen = time.Minute
)

// setTraffic opens the native transport of a NORMAL member and closes it. It is never open without
// a line in the journal that it was.
//
// Cassandra binds CQL to one address in the life of a JVM. So Administrative means: open on the
// pod's address, but the node is not Ready and therefore in no Service for clients.
func setTraffic(p *pass) outcome {
	if !p.answers() || p.Record.Spec.State != v1alpha1.StateRunning {
		return done
	}
	view, wanted := p.JVM.Ring, p.Record.Spec.ClientTraffic
	open := wanted == v1alpha1.TrafficOpen || wanted == v1alpha1.TrafficAdministrative
	// Where ledger and records were lost together, the new record says nothing of the ring until
	// the ledger is rebuilt, and its Closed is nobody's wish.
	unaware := p.Record.Spec.Member == nil && p.Memory.TrafficOpenedAt != nil
	switch {
	case !open && unaware:
		return done
	case !open && view.NativeRunning:
		return act(CloseTraffic{Why: "the record closes client traffic"})
	case p.opens():
		return p.openTraffic()
	case view.NativeRunning && p.openedBlind() != "":
		return p.lookAgain()
	default:
		return done
	}
}

// opens says that this node is to open the native transport, which is closed.
func (p *pass) opens() bool {
	return p.answers() && p.Record != nil && p.Record.Spec.State == v1alpha1.StateRunning &&
		p.Record.Spec.ClientTraffic != v1alpha1.TrafficClosed && !p.JVM.Ring.NativeRunning &&
		p.JVM.Ring.Mode == facts.ModeNormal && p.Memory.Member != nil
}

// openTraffic opens the native transport once this node sees up whom the others see up. A JVM is
// NORMAL before it has heard of anybody: Cassandra counts a peer as up after an echo from it
// (Gossiper#markAlive, 4.1 and 5.0), and answers Unavailable for it until then. A link that is cut,
// or a ring that is down, does not keep it closed for longer than openBlind. Once it is open no
// loss of sight closes it: where many nodes lose sight of one, they would close one by one.
func (p *pass) openTraffic() outcome {
	open := OpenTraffic{Why: Why("the record opens client traffic: " + string(p.Record.Spec.ClientTraffic))}
	start := p.Memory.Start
	if start == nil || start.NormalAt == nil || len(otherMembers(p.JVM.Ring)) == 0 {
		return act(open)
	}
	hostID, latest := p.JVM.Ring.HostID, start.NormalAt.Add(openBlind)
	asked := p.peersAsked(hostID) && !p.Peers.AskedAt.Before(*start.NormalAt)
	if asked {
		blind := p.blind()
		if blind == "" {
			return act(open)
		}
		if !p.now.Before(latest) {
			open.Blind = blind
			open.Why += Why("; " + blind)
			return act(open)
		}
		again := p.Peers.AskedAt.Add(askSight)
		p.report(v1alpha1.BlockedPeersNotSeen, fmt.Sprintf("client traffic is opened when this node sees the others, "+
			"at the latest at %s: %s", latest.UTC().Format(time.RFC3339), blind), again)
		if p.now.Before(again) {
			return done
		}
	}
	return act(p.ask(hostID, "whom do other members see up?"))
}

// blind says in words what keeps this node from seeing whom the others see, by the last answers of
// their agents; empty if nothing does. Two members are to say it, or all if fewer have a JVM that
// could. One that is not NORMAL yet says nothing.
func (p *pass) blind() string {
	view := p.JVM.Ring
	able, names := len(otherMembers(view)), map[string]string{}
	var up [][]string
	for _, peer := range p.Peers.Answers {
		if peer.HostID == "" || peer.HostID == view.HostID {
			continue
		}
		names[peer.HostID] = peer.Node
		switch {
		case !peer.Ring:
			able--
		case len(peer.Up) > 0:
			up = append(up, peer.Up)
		}
	}
	if wanted := min(2, able); len(up) < wanted {
		return fmt.Sprintf("the agents of %d other members say whom they see, and %d should", len(up), wanted)
	}
	unseen := facts.Unseen(view.Up(), up...)
	if len(unseen) == 0 {
		return ""
	}
	for i, id := range unseen {
		unseen[i] = cmp.Or(names[id], "the node with host id "+id)
	}
	return "this node does not see " + words.List(unseen, 3) + " up, which other members do"
}

// openedBlind says why a node that serves clients was let to without a sight of all others, until
// it has one.
func (p *pass) openedBlind() string {
	if s := p.Memory.Start; s != nil && s.Blind != "" {
		return fmt.Sprintf("client traffic was opened %s after the node was NORMAL all the same: %s",
			openBlind, s.Blind)
	}
	return ""
}

// lookAgain asks the others whom they see until this node sees these too, and notes it then.
func (p *pass) lookAgain() outcome {
	hostID := p.JVM.Ring.HostID
	unseen := slices.ContainsFunc(p.JVM.Ring.Endpoints,
		func(e facts.Endpoint) bool { return e.Member() && !e.Live })
	switch {
	case !unseen || p.peersAsked(hostID) && p.blind() == "":
		return act(NoteSight{Why: "the node sees whom the others see"})
	case p.now.Before(p.Peers.AskedAt.Add(askSightOpen)):
		return done
	default:
		return act(p.ask(hostID, "whom do other members see up?"))
	}
}
