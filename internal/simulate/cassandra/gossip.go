package cassandra

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/simulate/timeline"
)

type eventHandle = *timeline.Event

const (
	// quarantine is how long gossip of a removed endpoint is ignored (2 × RING_DELAY).
	quarantineDelay = time.Minute
	// fatClientTimeout is after how long a silent endpoint that is no member is forgotten: see also
	// fatClientTimeoutOf.
	fatClientTimeout = 30 * time.Second
	// leftFor is how long the others remember one that left.
	leftFor = 3 * 24 * time.Hour
)

// gossiper is one node's knowledge of all others, as in gms/Gossiper.java.
type gossiper struct {
	entries     []*entry // by address
	quarantined map[netip.Addr]time.Time
	seeds       []netip.Addr
	active      bool
}

func (g *gossiper) find(address netip.Addr) *entry {
	if i, found := slices.BinarySearchFunc(g.entries, address,
		func(e *entry, a netip.Addr) int { return e.address.Compare(a) }); found {
		return g.entries[i]
	}
	return nil
}

func (g *gossiper) add(e *entry) {
	i, _ := slices.BinarySearchFunc(g.entries, e.address,
		func(e *entry, a netip.Addr) int { return e.address.Compare(a) })
	g.entries = slices.Insert(g.entries, i, e)
}

func (g *gossiper) inQuarantine(address netip.Addr, now time.Time) bool {
	until, found := g.quarantined[address]
	return found && now.Before(until)
}

// gossips says that it takes part now.
func (p *Process) gossips() bool { return p.gossip.active && !p.frozen && !p.ended }

// knows says that it would gossip to the other by itself: as a seed, or because it heard of it.
func (p *Process) knows(other *Process) bool {
	return slices.Contains(p.gossip.seeds, other.address) || p.gossip.find(other.address) != nil
}

// merge learns all that another node knows: what a round of gossip exchanges.
func (p *Process) merge(from *Process) {
	// Those that bootstrap come last, so that whom they replace is known by then.
	for _, late := range []bool{false, true} {
		for _, e := range slices.Clone(from.gossip.entries) {
			if e.state != nil && e.state.generation > 0 &&
				late == (e.state.word == statusBoot || e.state.word == statusBootReplace) {
				p.learn(e.address, e.state)
			}
		}
	}
}

// learn is applyStateLocally for one endpoint.
func (p *Process) learn(address netip.Addr, s *state) {
	if address == p.address || p.gossip.inQuarantine(address, p.line.Now()) {
		return
	}
	e := p.gossip.find(address)
	switch {
	case e == nil:
		e = &entry{address: address}
		p.gossip.add(e)
		p.majorChange(e, s)
	case s.generation > e.state.generation:
		p.majorChange(e, s)
	case s.newer(e.state):
		p.newStates(e, s)
	}
	if e = p.gossip.find(address); e != nil {
		p.followHeartbeats(e)
		if e.flows && !e.alive && !e.state.dead() && e.state.word != statusShutdown {
			p.markAlive(e)
		}
	}
}

// followHeartbeats says whether those of an endpoint come in now.
func (p *Process) followHeartbeats(e *entry) {
	source := p.net.byAddress[e.address]
	flows := source != nil && p.hears[source] && source.generation == e.state.generation && e.state.stopped == 0
	if flows == e.flows {
		return
	}
	if e.flows = flows; flows {
		p.line.Cancel(e.timer)
		e.timer = nil
		return
	}
	p.fallSilent(e)
}

// majorChange takes in an endpoint that is new, or that was started again: handleMajorStateChange.
func (p *Process) majorChange(e *entry, s *state) {
	e.state = s
	e.flows = false
	p.changed()
	p.line.Cancel(e.timer)
	p.line.Cancel(e.echo)
	e.timer, e.echo = nil, nil
	if s.dead() {
		p.markDead(e)
	} else {
		e.alive = false
		e.silentSince = p.line.Now()
		p.followHeartbeats(e)
		if e.flows {
			p.markAlive(e)
		} else {
			p.fallSilent(e)
		}
	}
	p.onStatus(e)
	p.onSchema(e)
	if s.word == statusShutdown {
		p.markDead(e)
	}
}

// newStates takes in what changed within a generation: applyNewStates.
func (p *Process) newStates(e *entry, s *state) {
	before := e.state
	e.state = s
	p.changed()
	if s.status != before.status || !slices.Equal(s.tokens, before.tokens) {
		if s.word == statusShutdown {
			p.markDead(e)
		}
		p.onStatus(e)
	}
	if s.schema != before.schema {
		p.onSchema(e)
	}
}

// markAlive asks an endpoint whether it is there, and has it for up when its answer comes:
// Gossiper#markAlive. The answer takes the direct way, as requests do; without one it is asked
// again.
func (p *Process) markAlive(e *entry) {
	direct := p.net.linked(p.address, e.address)
	switch {
	case e.echo != nil:
		return
	case direct && p.net.echoMax == 0:
		p.realMarkAlive(e)
		return
	}
	e.echo = p.line.After(max(p.net.within(0, p.net.echoMax), time.Second), "echo", func() {
		e.echo = nil
		switch {
		case p.ended || p.frozen || p.gossip.find(e.address) != e || !e.flows || e.alive || e.state.dead():
		case direct && p.net.linked(p.address, e.address):
			p.realMarkAlive(e)
		default:
			p.markAlive(e)
		}
	})
}

func (p *Process) realMarkAlive(e *entry) {
	e.alive, e.listed = true, listedLive
	p.changed()
	p.onAlive(e)
}

func (p *Process) markDead(e *entry) {
	e.alive, e.listed = false, listedUnreachable
	e.flows = false
	if e.silentSince.IsZero() {
		e.silentSince = p.line.Now()
	}
	p.changed()
}

// silenced is called when the heartbeats of a process come in no more.
func (p *Process) silenced(other *Process) {
	e := p.gossip.find(other.address)
	if e == nil || !e.flows || e.state.generation != other.generation {
		return
	}
	e.flows = false
	p.fallSilent(e)
}

// fallSilent has the failure detector convict an endpoint in a while, and forget it if it is no
// member.
func (p *Process) fallSilent(e *entry) {
	e.silentSince = p.line.Now()
	p.line.Cancel(e.timer)
	e.timer = nil
	if e.alive {
		e.timer = p.line.After(p.net.within(p.net.options.ConvictMin, p.net.options.ConvictMax), "convict",
			func() { p.convict(e) })
		return
	}
	p.watchFatClient(e)
}

func (p *Process) convict(e *entry) {
	e.timer = nil
	if !p.gossips() || p.gossip.find(e.address) != e || e.flows {
		return // also for one that gossips no more: its picture stays as it was
	}
	if until := p.remindedUntil(e); e.alive && !until.IsZero() {
		e.timer = p.line.At(until.Add(p.net.within(p.net.options.ConvictMin, p.net.options.ConvictMax)), "convict",
			func() { p.convict(e) })
		return
	}
	if e.alive {
		p.markDead(e)
	}
	p.watchFatClient(e)
}

// remindedUntil is for how long others continue telling of a later heartbeat than this node takes
// in: until its quarantine of the endpoint is over. Each time that counts as a sign of life, which
// Gossiper#notifyFailureDetector sees before anybody looks at the quarantine.
func (p *Process) remindedUntil(e *entry) time.Time {
	now := p.line.Now()
	if !p.gossip.inQuarantine(e.address, now) {
		return time.Time{}
	}
	for _, other := range p.net.running {
		x := other.gossip.find(e.address)
		if p.hears[other] && x != nil && x.state.generation == e.state.generation &&
			other.heartbeatOf(x, now) > p.heartbeatOf(e, now) {
			return p.gossip.quarantined[e.address]
		}
	}
	return time.Time{}
}

// gossipOnly is isGossipOnlyMember: known by gossip, and no member of the ring.
func (p *Process) gossipOnly(e *entry) bool {
	return !e.state.dead() && !p.metadata.isMember(e.address)
}

// fatClientTimeoutOf is Gossiper#getFatClientTimeoutForEndpoint: one that bootstraps is forgotten
// later since 4.1.5 and 5.0 (CASSANDRA-15439).
func (p *Process) fatClientTimeoutOf(e *entry) time.Duration {
	if e.state.word != statusBoot && e.state.word != statusBootReplace {
		return fatClientTimeout
	}
	patch := strings.TrimPrefix(p.release, "4.1.")
	switch {
	case p.is50():
		return 10 * fatClientTimeout
	case patch != p.release && len(patch) == 1 && patch < "5":
		return fatClientTimeout
	default:
		return 2 * fatClientTimeout
	}
}

// watchFatClient forgets a silent endpoint that is no member when its time has come.
func (p *Process) watchFatClient(e *entry) {
	if !p.gossipOnly(e) || e.flows {
		return
	}
	when := e.silentSince.Add(p.fatClientTimeoutOf(e))
	if until, found := p.gossip.quarantined[e.address]; found && until.After(when) {
		when = until
	}
	p.line.Cancel(e.timer)
	e.timer = p.line.At(when.Add(p.net.within(0, time.Second)), "fat client", func() {
		e.timer = nil
		if !p.gossips() || p.gossip.find(e.address) != e || e.flows || !p.gossipOnly(e) {
			return
		}
		if source := p.net.byAddress[e.address]; source != nil && p.hears[source] &&
			source.generation >= e.state.generation {
			// a later generation is heard there: it counts as a sign of life even in quarantine
			e.silentSince = p.line.Now()
		}
		if p.gossip.inQuarantine(e.address, p.line.Now()) || p.line.Now().Sub(e.silentSince) < p.fatClientTimeoutOf(e) {
			p.watchFatClient(e)
			return
		}
		p.removeEndpoint(e.address)
		p.evict(e)
	})
}

// evict forgets an endpoint.
func (p *Process) evict(e *entry) {
	p.line.Cancel(e.timer)
	e.timer = nil
	p.gossip.entries = slices.DeleteFunc(p.gossip.entries, func(x *entry) bool { return x == e })
	p.changed()
}

// removeEndpoint takes an endpoint out of the ring and of both lists, and ignores what is gossiped
// of it for a minute. Its state stays until it is evicted.
func (p *Process) removeEndpoint(address netip.Addr) {
	if address == p.address {
		return
	}
	p.metadata.remove(address)
	delete(p.disk.peers, address)
	if i := slices.Index(p.gossip.seeds, address); i >= 0 {
		// buildSeedsList adds what the file has and never takes away, but this one.
		seeds := p.fileSeeds()
		for _, s := range p.gossip.seeds {
			if !slices.Contains(seeds, s) {
				seeds = append(seeds, s)
			}
		}
		p.gossip.seeds = slices.DeleteFunc(seeds, func(a netip.Addr) bool { return a == address })
	}
	e := p.gossip.find(address)
	if e != nil {
		e.listed = unlisted
	}
	until := p.line.Now().Add(quarantineDelay)
	p.gossip.quarantined[address] = until
	p.line.At(until.Add(p.net.within(0, time.Second)), "quarantine over", func() { p.endQuarantine(address) })
	if e != nil && !e.flows && e.timer == nil {
		p.watchFatClient(e)
	}
	p.changed()
}

// endQuarantine listens to gossip of an endpoint again: all that the others know by then comes in.
func (p *Process) endQuarantine(address netip.Addr) {
	if until, found := p.gossip.quarantined[address]; !found || p.line.Now().Before(until) {
		return
	}
	delete(p.gossip.quarantined, address)
	for _, other := range p.net.running {
		if p.hears[other] {
			if e := other.gossip.find(address); e != nil && e.state.generation > 0 {
				p.learn(address, e.state)
			}
		}
	}
	if e := p.gossip.find(address); e != nil && !e.flows && !e.alive {
		p.watchFatClient(e)
	}
}

// announce changes what this node says of itself and tells everybody who hears it.
func (p *Process) announce(change func(s *state)) {
	own := p.gossip.find(p.address)
	next := *own.state
	change(&next)
	p.publish(own, &next)
}

// publish makes a state of an endpoint news: its own, or that of a node which this one declares
// removed.
func (p *Process) publish(e *entry, next *state) {
	next.extra++
	next.version = max(next.version+1, next.heartbeat(p.line.Now()))
	e.state = next
	p.changed()
	// Once the sender is gone its last words continue only if somebody has heard them.
	told := new(bool)
	for _, q := range p.net.running {
		if q == p || !q.hears[p] {
			continue
		}
		p.line.After(p.net.lag(), "gossip", func() {
			if q.ended || q.frozen || !q.hears[p] && (p.gossips() || !*told) {
				return
			}
			*told = true
			latest := next
			if now := p.gossip.find(e.address); now != nil && now.state.newer(next) && q.hears[p] {
				latest = now.state
			}
			q.learn(e.address, latest)
		})
	}
}
