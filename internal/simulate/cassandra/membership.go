package cassandra

import (
	"net/netip"
	"slices"

	"helenus.io/helenus/internal/core/ring"
)

// metadata is one node's picture of the ring: locator/TokenMetadata.java.
type metadata struct {
	tokens  map[ring.Token]netip.Addr
	hosts   map[netip.Addr]string
	byHost  map[string]netip.Addr
	joining map[ring.Token]netip.Addr
	leaving map[netip.Addr]bool
	// replacing maps one that replaces to whom it replaces.
	replacing map[netip.Addr]netip.Addr
	// version counts changes.
	version int
	owned   map[netip.Addr]int
}

func newMetadata() metadata {
	return metadata{
		tokens: map[ring.Token]netip.Addr{}, hosts: map[netip.Addr]string{}, byHost: map[string]netip.Addr{},
		joining: map[ring.Token]netip.Addr{},
		leaving: map[netip.Addr]bool{}, replacing: map[netip.Addr]netip.Addr{}, owned: map[netip.Addr]int{},
	}
}

func (m *metadata) isMember(a netip.Addr) bool { return m.owned[a] > 0 }

func (m *metadata) tokensOf(a netip.Addr) []ring.Token {
	var out []ring.Token
	for t, owner := range m.tokens {
		if owner == a {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out
}

func (m *metadata) setHost(id string, a netip.Addr) {
	m.version++
	if before, found := m.byHost[id]; found && before != a {
		delete(m.hosts, before)
	}
	if before, found := m.hosts[a]; found && before != id {
		delete(m.byHost, before)
	}
	m.hosts[a], m.byHost[id] = id, a
}

// setNormal makes an endpoint the owner of tokens, and of those alone.
func (m *metadata) setNormal(a netip.Addr, tokens []ring.Token) {
	m.version++
	for t, owner := range m.tokens {
		if owner == a && !slices.Contains(tokens, t) {
			delete(m.tokens, t)
			m.owned[a]--
		}
	}
	m.dropJoining(a)
	delete(m.leaving, a)
	delete(m.replacing, a)
	for _, t := range tokens {
		if owner, found := m.tokens[t]; found {
			m.owned[owner]--
		}
		m.tokens[t] = a
		m.owned[a]++
	}
}

func (m *metadata) setJoining(a netip.Addr, tokens []ring.Token) {
	m.version++
	m.dropJoining(a)
	for _, t := range tokens {
		m.joining[t] = a
	}
}

func (m *metadata) dropJoining(a netip.Addr) {
	for t, owner := range m.joining {
		if owner == a {
			delete(m.joining, t)
		}
	}
}

// remove forgets an endpoint.
func (m *metadata) remove(a netip.Addr) {
	m.version++
	for t, owner := range m.tokens {
		if owner == a {
			delete(m.tokens, t)
		}
	}
	delete(m.owned, a)
	m.dropJoining(a)
	delete(m.leaving, a)
	delete(m.replacing, a)
	if id, found := m.hosts[a]; found {
		delete(m.hosts, a)
		if m.byHost[id] == a {
			delete(m.byHost, id)
		}
	}
}

// onStatus is StorageService.onChange for STATUS.
func (p *Process) onStatus(e *entry) {
	switch e.state.word {
	case statusNormal, statusShutdown:
		p.onNormal(e)
	case statusBoot:
		p.onBoot(e)
	case statusBootReplace:
		p.onBootReplace(e)
	case statusLeaving:
		p.onLeaving(e)
	case statusLeft:
		p.excise(e)
	case statusRemoving, statusRemoved:
		p.onRemoving(e)
	}
}

// onNormal is handleStateNormal: who owns the host id and the tokens is decided by the later start.
func (p *Process) onNormal(e *entry) {
	m, a, s := &p.metadata, e.address, e.state
	if len(s.tokens) == 0 || s.hostID == "" {
		return
	}
	var gone []netip.Addr
	if old, found := m.replacing[a]; found {
		gone = append(gone, old)
	}
	p.savePeer(e)
	existing, taken := m.byHost[s.hostID]
	switch {
	case !taken || existing == a:
		m.setHost(s.hostID, a)
	case existing == p.address:
		m.remove(a)
		gone = append(gone, a)
	case p.startedAfter(a, existing):
		m.remove(existing)
		gone = append(gone, existing)
		m.setHost(s.hostID, a)
	default:
		m.remove(a)
		gone = append(gone, a)
	}
	var owned []ring.Token
	for _, t := range s.tokens {
		owner, found := m.tokens[t]
		switch {
		case !found || owner == a:
			owned = append(owned, t)
		case p.startedAfter(a, owner):
			owned = append(owned, t)
			// Cassandra looks at each token as if it were the only one that moves, so that an owner
			// of several keeps its place without any (measured).
			if m.owned[owner] == 1 {
				gone = append(gone, owner)
			}
		}
	}
	m.setNormal(a, owned)
	for _, x := range gone {
		p.removeEndpoint(x)
	}
	p.changed()
}

// startedAfter is compareEndpointStartup: the later generation.
func (p *Process) startedAfter(a, b netip.Addr) bool { return p.generationOf(a) > p.generationOf(b) }

func (p *Process) generationOf(a netip.Addr) int64 {
	if e := p.gossip.find(a); e != nil {
		return e.state.generation
	}
	return 0
}

// onBoot is handleStateBootstrap. A token of another node is an exception in the gossip stage: what
// was announced stays unheard (TokenMetadata#addBootstrapTokens).
func (p *Process) onBoot(e *entry) {
	for _, t := range e.state.tokens {
		if owner, taken := p.metadata.joining[t]; taken && owner != e.address {
			return
		}
		if owner, taken := p.metadata.tokens[t]; taken && owner != e.address {
			return
		}
	}
	if p.metadata.isMember(e.address) {
		p.metadata.remove(e.address)
	}
	p.metadata.setJoining(e.address, e.state.tokens)
	p.metadata.setHost(e.state.hostID, e.address)
	p.changed()
}

func (p *Process) onBootReplace(e *entry) {
	if old := p.gossip.find(e.state.replaced); old != nil && old.alive && !old.state.dead() {
		return // refused with an error in the log
	}
	p.metadata.setJoining(e.address, e.state.tokens)
	p.metadata.replacing[e.address] = e.state.replaced
	p.metadata.setHost(e.state.hostID, e.address)
	p.changed()
}

func (p *Process) onLeaving(e *entry) {
	if !p.metadata.isMember(e.address) {
		p.metadata.setNormal(e.address, e.state.tokens)
	}
	p.metadata.version++
	p.metadata.leaving[e.address] = true
	p.changed()
}

// excise takes out one that has left or was removed.
func (p *Process) excise(e *entry) {
	if host := e.state.hostID; host != "" {
		delete(p.disk.hints, host)
	}
	p.removeEndpoint(e.address)
	if !e.state.expires.IsZero() {
		p.line.At(e.state.expires, "forget", func() {
			if p.gossip.find(e.address) == e && !e.alive && !p.metadata.isMember(e.address) {
				p.evict(e)
			}
		})
	}
}

func (p *Process) onRemoving(e *entry) {
	switch {
	case !p.metadata.isMember(e.address):
		p.removeEndpoint(e.address)
	case e.state.word == statusRemoved:
		p.excise(e)
	default:
		p.metadata.version++
		p.metadata.leaving[e.address] = true
		p.changed()
	}
}

// savePeer writes to system.peers_v2 what a restart begins with.
func (p *Process) savePeer(e *entry) {
	s := e.state
	p.disk.peers[e.address] = peer{hostID: s.hostID, tokens: s.tokens, dc: s.dc, rack: s.rack, release: s.release,
		schema: s.schema}
}
