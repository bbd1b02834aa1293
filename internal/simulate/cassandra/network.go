package cassandra

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/simulate/timeline"
)

// Network is what the nodes of a world reach each other by. It may hold several clusters; nodes of
// different cluster names do not talk.
type Network struct {
	line    *timeline.Timeline
	options Options
	// running are the processes in the order of their starts.
	running   []*Process
	byAddress map[netip.Addr]*Process
	// group of an address; two addresses of different groups do not reach each other. Absent is 0.
	group   map[netip.Addr]int
	groups  int
	blocked map[link]bool
	slow    map[netip.Addr]float64
	// echoMax is how long the first echo between two nodes may take.
	echoMax time.Duration
	// opened is told of each node that opens client traffic.
	opened func(*Process)
	// encrypts says that any node has ever had other options of encryption than the default.
	encrypts bool
	// refusals are nodes that began beside others of their cluster with which they do not connect.
	refusals []string
	// plainClient is the address of one that is connected to every node without encryption.
	plainClient string
	names       map[netip.Addr]string
	bulks       map[string]*bulk
	yamls       map[string]*yamlFile
	writes      []*Written
	clock       int64
	// prolonged is how much longer than usual cleanups and repairs take.
	prolonged time.Duration
	// failStreams is how many of the next streams fail.
	failStreams int
	written     int64
	// backedUp is up to when writes are in a backup, outdated up to when those that are in none are
	// to go.
	backedUp, outdated int64
	// doubled are operations that began on a node beside themselves.
	doubled []string
	disks   []*Disk
	// defaulted is told of each default superuser. hashes remembers which passwords fit.
	defaulted func(*Process)
	hashes    map[[2]string]bool
}

type link struct{ a, b netip.Addr }

func linkOf(a, b netip.Addr) link {
	if b.Less(a) {
		a, b = b, a
	}
	return link{a, b}
}

// New makes a network without nodes.
func New(line *timeline.Timeline, options Options) *Network {
	return &Network{
		line: line, options: options.withDefaults(), byAddress: map[netip.Addr]*Process{}, group: map[netip.Addr]int{},
		blocked: map[link]bool{},
		slow:    map[netip.Addr]float64{}, names: map[netip.Addr]string{}, bulks: map[string]*bulk{},
		yamls: map[string]*yamlFile{}, hashes: map[[2]string]bool{},
	}
}

// Process is the JVM that runs at an address; nil if there is none.
func (n *Network) Process(address netip.Addr) *Process { return n.byAddress[address] }

// Processes are all that run, in the order of their starts.
func (n *Network) Processes() []*Process { return slices.Clone(n.running) }

// Block cuts the link between two addresses. Gossip goes around it through others; echoes, writes
// and streams do not. One that is cut one way is the same: each answer takes the other way.
func (n *Network) Block(a, b netip.Addr) {
	n.blocked[linkOf(a, b)] = true
	n.reconnect()
}

// Unblock mends the link between two addresses.
func (n *Network) Unblock(a, b netip.Addr) {
	delete(n.blocked, linkOf(a, b))
	n.reconnect()
}

// Isolate cuts some addresses, such as those of a host, off from all others. They continue reaching
// each other.
func (n *Network) Isolate(addresses ...netip.Addr) {
	n.groups++
	for _, a := range addresses {
		n.group[a] = n.groups
	}
	n.reconnect()
}

// Heal gives isolated addresses the network back.
func (n *Network) Heal(addresses ...netip.Addr) {
	for _, a := range addresses {
		delete(n.group, a)
	}
	n.reconnect()
}

// Slow makes everything that a node does itself take so many times as long; 1 is as usual.
func (n *Network) Slow(address netip.Addr, factor float64) {
	if factor == 1 {
		delete(n.slow, address)
		return
	}
	n.slow[address] = factor
}

// SlowEcho has nodes see each other up late, each at any time of so long after it hears of the
// other; 0 is as usual.
func (n *Network) SlowEcho(longest time.Duration) { n.echoMax = longest }

// WatchOpened tells of each node that opens client traffic.
func (n *Network) WatchOpened(tell func(*Process)) { n.opened = tell }

// linked says that two addresses reach each other directly.
func (n *Network) linked(a, b netip.Addr) bool {
	if n.group[a] != n.group[b] || len(n.blocked) > 0 && n.blocked[linkOf(a, b)] {
		return false
	}
	if n.encrypts && a != b {
		p, q := n.byAddress[a], n.byAddress[b]
		return p == nil || q == nil || !p.refuses(q)
	}
	return true
}

// noteRefusals of a node that begins.
func (n *Network) noteRefusals(p *Process) {
	for _, q := range n.running {
		a, b := p.settings.encryption, q.settings.encryption
		if n.encrypts && q.gossips() && q.settings.clusterName == p.settings.clusterName &&
			p.refuses(q) {
			n.refusals = append(n.refusals, fmt.Sprintf("nodes %s and %s refuse each other: %+v, %+v", p.address,
				q.address, a, b))
		}
	}
}

// refuses says that one of two does not take a connection of the other: a certificate that is shown
// by either is to be signed by an authority that the other trusts.
func (p *Process) refuses(q *Process) bool {
	a, b := p.settings.encryption, q.settings.encryption
	trusts := func(p, q *Process) bool {
		leaf := q.certificates[v1alpha1.UseInternode]
		return leaf == nil || p.trusted == nil ||
			slices.ContainsFunc(p.trusted, func(key []byte) bool { return bytes.Equal(key, leaf.AuthorityKeyId) })
	}
	return !a.connects(b) || !b.connects(a) || a.encrypts && b.encrypts && (!a.optional || !b.optional) &&
		(!trusts(p, q) || !trusts(q, p))
}

// Refusals are all so far of nodes that do not connect with each other since one encrypts.
func (n *Network) Refusals() []string { return n.refusals }

// ConnectPlain has a client connected to every node without encryption; an empty address ends that.
func (n *Network) ConnectPlain(address string) { n.plainClient = address }

// encryption are the server_encryption_options of a node. The zero value has no keystore: it
// neither encrypts nor takes what is encrypted.
type encryption struct{ encrypts, optional, keystore bool }

func (y *yamlFile) encryption() encryption {
	out := encryption{}
	for line := range strings.Lines(y.blocks["server_encryption_options"]) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
		case "internode_encryption":
			out.encrypts = scalar(value) == "all"
		case "optional":
			out.optional = scalar(value) == "true"
		case "keystore":
			out.keystore = strings.HasPrefix(scalar(value), "/") // else it is that of the stock file
		}
	}
	return out
}

// connects says that another node takes a connection of this one. With optional it tries encryption
// first and plain then (OutboundConnection, InboundConnectionInitiator).
func (e encryption) connects(to encryption) bool {
	return e.encrypts && (to.encrypts || to.optional && to.keystore) ||
		(!e.encrypts || e.optional) && (!to.encrypts || to.optional)
}

// name is an address with the storage port, as Cassandra prints it.
func (n *Network) name(a netip.Addr) string {
	text, known := n.names[a]
	if !known {
		text = netip.AddrPortFrom(a, layout.StoragePort).String()
		n.names[a] = text
	}
	return text
}

// within takes a while of between low and high.
func (n *Network) within(low, high time.Duration) time.Duration { return n.line.Between(low, high) }

// reconnect finds out who hears whose heartbeats after something has changed: gossip flows between
// all that a chain of nodes joins, each of which knows, or is known by, the next and reaches it.
func (n *Network) reconnect() {
	part := n.parts()
	for i, q := range n.running {
		for j, p := range n.running {
			if i == j {
				continue
			}
			flows := part[i] >= 0 && part[i] == part[j]
			switch {
			case flows && !q.hears[p]:
				q.hears[p] = true
				n.contact(q, p)
			case !flows && q.hears[p]:
				delete(q.hears, p)
				q.silenced(p)
			}
		}
	}
}

// parts numbers the parts of the network that gossip is connected in, for each running process; -1
// for one that does not gossip.
func (n *Network) parts() []int {
	part := make([]int, len(n.running))
	for i := range part {
		part[i] = -1
	}
	var reached []int
	for i, p := range n.running {
		if part[i] >= 0 || !p.gossips() {
			continue
		}
		part[i] = i
		reached = append(reached[:0], i)
		for len(reached) > 0 {
			a := n.running[reached[len(reached)-1]]
			reached = reached[:len(reached)-1]
			for j, b := range n.running {
				if part[j] < 0 && b.gossips() && n.linked(a.address, b.address) &&
					a.settings.clusterName == b.settings.clusterName && (a.knows(b) || b.knows(a)) {
					part[j] = i
					reached = append(reached, j)
				}
			}
		}
	}
	return part
}

// contact has one node learn all that another knows, a point after gossip begins to flow between
// them.
func (n *Network) contact(q, p *Process) {
	n.line.After(n.lag(), "gossip", func() {
		if q.hears[p] {
			q.merge(p)
		}
	})
}

// lag is how long a piece of news takes to one receiver: its sender's next round, or that of
// somebody in between.
func (n *Network) lag() time.Duration {
	return n.within(n.options.GossipLagMin, n.options.GossipLagMax)
}

// remove takes an ended process out.
func (n *Network) remove(p *Process) {
	n.running = slices.DeleteFunc(n.running, func(r *Process) bool { return r == p })
	if n.byAddress[p.address] == p {
		delete(n.byAddress, p.address)
	}
	for _, q := range n.running {
		if q.hears[p] {
			delete(q.hears, p)
			q.silenced(p)
		}
	}
	n.reconnect()
}
