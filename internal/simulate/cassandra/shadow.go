package cassandra

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/agent/disk"
)

const (
	shadowPoll  = time.Second
	shadowRetry = 5 * time.Second
)

// shadowRound asks seeds, and later every peer that the disk remembers, for what they know, before
// the node says anything of itself (Gossiper.doShadowRound). It is over with the first full answer,
// or when all seeds are in the same position. Nobody answering is fatal for a node that is no seed.
func (p *Process) shadowRound() (map[netip.Addr]*state, *refusal) {
	peers := p.disk.peerAddresses()
	if len(p.gossip.seeds) == 0 && len(peers) == 0 {
		return nil, nil
	}
	p.shadow, p.messaging = true, true
	defer func() { p.shadow = false }()
	limit, isSeed := 2*p.settings.ringDelay, p.isSeed()
	if isSeed {
		limit = p.settings.ringDelay
	}
	inShadow := map[netip.Addr]bool{}
	for waited := time.Duration(0); ; {
		if waited%shadowRetry == 0 {
			asked := slices.Clone(p.gossip.seeds)
			if waited > 0 {
				asked = append(asked, peers...)
			}
			if known, over := p.askShadow(asked, inShadow); over {
				p.sleep(shadowPoll)
				return known, nil
			}
		}
		p.sleep(shadowPoll)
		if waited += shadowPoll; waited > limit {
			if !isSeed {
				return nil, startup(runtimeException, "Unable to gossip with any peers")
			}
			return nil, nil
		}
	}
}

// askShadow sends one round of questions; over says that the shadow round is.
func (p *Process) askShadow(asked []netip.Addr, inShadow map[netip.Addr]bool) (known map[netip.Addr]*state, over bool) {
	for _, a := range asked {
		other := p.net.byAddress[a]
		if other == nil || other == p || other.frozen || !other.messaging || !p.net.linked(p.address, a) ||
			other.settings.clusterName != p.settings.clusterName {
			continue
		}
		if other.shadow {
			inShadow[a] = true
			if !slices.ContainsFunc(p.gossip.seeds, func(s netip.Addr) bool { return !inShadow[s] }) {
				return nil, true
			}
			continue
		}
		if !other.gossip.active {
			continue
		}
		known = map[netip.Addr]*state{}
		for _, e := range other.gossip.entries {
			if e.state.generation > 0 {
				known[e.address] = e.state
			}
		}
		return known, true
	}
	return nil, false
}

// checkForCollision is checkForEndpointCollision: is this address free, and, for one that
// bootstraps, does nobody else?
func (p *Process) checkForCollision() *refusal {
	known, refused := p.shadowRound()
	if refused != nil {
		return refused
	}
	bootstraps := p.shouldBootstrap()
	if s, found := known[p.address]; found && !p.safeToStart(s, bootstraps) {
		return startup(runtimeException, fmt.Sprintf("A node with address /%s already exists, cancelling join. Use "+
			"cassandra.replace_address if you want to replace this node.",
			p.net.name(p.address)))
	}
	if bootstraps && p.settings.properties["cassandra.consistent.rangemovement"] != "false" {
		return p.checkOthersMove(known)
	}
	return nil
}

// safeToStart is isSafeForStartup for the state that gossip has of the own address.
func (p *Process) safeToStart(s *state, bootstraps bool) bool {
	if s.word == statusHibernate && p.disk.word() != disk.Completed {
		return false
	}
	if s.dead() {
		return true
	}
	if bootstraps {
		return s.word != statusNone && s.word != statusNormal && s.word != statusShutdown
	}
	return s.hostID == p.hostID
}

// checkOthersMove refuses a bootstrap beside another change of the ring. It sees what has been
// gossiped by now: of two that look at the same moment neither sees the other.
func (p *Process) checkOthersMove(known map[netip.Addr]*state) *refusal {
	var joining, leaving []string
	addresses := make([]netip.Addr, 0, len(known))
	for a := range known {
		addresses = append(addresses, a)
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	for _, a := range addresses {
		switch {
		case a == p.address:
		case known[a].word == statusBoot || known[a].word == statusBootReplace:
			joining = append(joining, "/"+p.net.name(a))
		case known[a].word == statusLeaving:
			leaving = append(leaving, "/"+p.net.name(a))
		}
	}
	if len(joining)+len(leaving) == 0 {
		return nil
	}
	return startup(unsupportedOperation, fmt.Sprintf("Other bootstrapping/leaving/moving nodes detected, cannot "+
		"bootstrap while cassandra.consistent.rangemovement is true. Nodes detected, bootstrapping: %s; leaving: %s; "+
		"moving: ;", strings.Join(joining, ","), strings.Join(leaving, ",")))
}
