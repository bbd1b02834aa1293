package cassandra

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/agent/disk"
	table "helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ring"
)

// Modes of StorageService.
const (
	modeStarting           = "STARTING"
	modeJoining            = "JOINING"
	modeJoiningFailed      = "JOINING_FAILED"
	modeNormal             = "NORMAL"
	modeLeaving            = "LEAVING"
	modeDecommissioned     = "DECOMMISSIONED"
	modeDecommissionFailed = "DECOMMISSION_FAILED"
	modeDraining           = "DRAINING"
	modeDrained            = "DRAINED"
)

// begin is a JVM's life from its start to the end of CassandraDaemon.setup. What it returns ends
// the JVM.
func (p *Process) begin() *refusal {
	o := p.net.options
	jolokia, beans := p.net.within(o.JolokiaMin, o.JolokiaMax), p.net.within(o.BeansMin, o.BeansMax)
	var refused *refusal
	p.settings, refused = p.net.readSettings(p.release, p.address, p.options.Files, p.options.Command.Argv)
	p.sleep(jolokia)
	p.answers = true
	if fault := p.options.Fault; fault != nil {
		return &refusal{code: fault.Code, line: fault.FatalLine}
	}
	if refused != nil {
		return refused
	}
	p.net.noteRefusals(p)
	p.sleep(beans - jolokia)
	if refused := p.checkDisk(); refused != nil {
		return refused
	}
	p.readDisk()
	if p.beansBeforeJoin() {
		p.beans, p.proxy = true, p.is50()
	}
	p.sleep(p.net.within(500*time.Millisecond, 1500*time.Millisecond))
	p.proxy = p.beans
	if refused := p.prepareToJoin(); refused != nil {
		return refused
	}
	if refused := p.joinTokenRing(); refused != nil {
		return refused
	}
	if p.mode != modeNormal {
		return nil // a failed bootstrap: the JVM stays, without CQL
	}
	p.beans, p.proxy = true, true
	p.sleep(p.settings.settle)
	p.waitForPeers()
	if p.mode != modeNormal {
		return nil
	}
	p.complete = true
	if p.AsksPassword() {
		p.spawn("default superuser at "+p.address.String(), p.setDefaultRole)
	}
	if p.settings.startNative {
		p.openNative()
	}
	return nil
}

func (p *Process) is50() bool { return !strings.HasPrefix(p.release, "4.") }

// beansBeforeJoin is false for the releases that register the bean of StorageService only after the
// node has joined (CASSANDRA-19902).
func (p *Process) beansBeforeJoin() bool {
	return !slices.Contains([]string{"5.0.0", "5.0.1", "5.0.2"}, p.release)
}

// checkDisk are the startup checks that look at what an earlier start left.
func (p *Process) checkDisk() *refusal {
	d, s := p.disk, &p.settings
	if p.net.byAddress[p.address] != p {
		return configuration(fmt.Sprintf("/%s is in use by another process.  Change listen_address:storage_port in "+
			"cassandra.yaml to values that do not conflict with other services",
			p.net.name(p.address)))
	}
	if listen := s.text("listen_address", p.address.String()); listen != p.address.String() {
		return configuration(fmt.Sprintf("Unable to bind to address /%s:7000. Set listen_address in cassandra.yaml "+
			"to an interface you can bind to, e.g., your private IP address on EC2",
			listen))
	}
	if d.problem != "" {
		return &refusal{code: exitDisk, line: "JVM state determined to be unstable.  Exiting forcefully due to:: " +
			"org.apache.cassandra.io.FSReadError: " + d.problem}
	}
	if d.full {
		return outOfSpace()
	}
	if table.Older(p.release, d.newest) {
		return check(exitStartup, fmt.Sprintf("Detected unreadable sstables, which %s has written", d.newest))
	}
	l := d.log
	if l == nil {
		return nil
	}
	if l.clusterName != "" && l.clusterName != s.clusterName {
		return check(exitWrongConfig, fmt.Sprintf("Fatal exception during initialization: %sConfigurationException: "+
			"Saved cluster name %s != configured name %s",
			exceptions, l.clusterName, s.clusterName))
	}
	if l.dc != "" && l.dc != s.datacenter && s.properties["cassandra.ignore_dc"] != "true" {
		return check(exitWrongConfig, fmt.Sprintf("Cannot start node if snitch's data center (%s) differs from "+
			"previous data center (%s). Please fix the snitch configuration, decommission and rebootstrap this node "+
			"or use the flag -Dcassandra.ignore_dc=true.", s.datacenter, l.dc))
	}
	if l.rack != "" && l.rack != s.rack && s.properties["cassandra.ignore_rack"] != "true" {
		return check(exitWrongConfig, fmt.Sprintf("Cannot start node if snitch's rack (%s) differs from previous "+
			"rack (%s). Please fix the snitch configuration, decommission and rebootstrap this node or use the flag "+
			"-Dcassandra.ignore_rack=true.", s.rack, l.rack))
	}
	return nil
}

func outOfSpace() *refusal {
	return &refusal{code: exitDisk, line: "JVM state determined to be unstable.  Exiting forcefully due to:: " +
		"org.apache.cassandra.io.FSWriteError: java.io.IOException: No space left on device"}
}

// readDisk begins with what the disk remembers: the commit log is replayed, and the members that
// were known are known again, as unreachable.
func (p *Process) readDisk() {
	d, s := p.disk, &p.settings
	d.change(false, func(l *local) {
		l.clusterName, l.dc, l.rack, l.release, l.broadcast = s.clusterName, s.datacenter, s.rack, p.release,
			s.broadcast
	})
	p.schema = d.schema.clone()
	p.writeSSTables() // what was replayed
	p.loadHot()
	p.buildSeeds()
	for _, a := range d.peerAddresses() {
		if a == p.address {
			continue
		}
		saved := d.peers[a]
		p.gossip.add(&entry{address: a, state: &state{}, listed: listedUnreachable, silentSince: p.line.Now()})
		p.metadata.setNormal(a, saved.tokens)
		p.metadata.setHost(saved.hostID, a)
	}
	if l := d.log; !p.shouldBootstrap() && len(l.tokens) > 0 {
		// StorageService#populateTokenMetadata: it owns them from here on, long before it is NORMAL
		p.metadata.setNormal(p.address, l.tokens)
	}
}

func (d *Disk) peerAddresses() []netip.Addr {
	out := make([]netip.Addr, 0, len(d.peers))
	for a := range d.peers {
		out = append(out, a)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// buildSeeds takes the seeds of the file, without the node itself.
func (p *Process) buildSeeds() {
	p.gossip.seeds = slices.DeleteFunc(p.fileSeeds(), func(a netip.Addr) bool { return a == p.address })
}

// fileSeeds are those of cassandra.yaml as it is now: SimpleSeedProvider reads it at every look.
func (p *Process) fileSeeds() []netip.Addr {
	y, err := p.net.parseYAML(p.options.Files["cassandra.yaml"])
	if err != nil {
		return nil
	}
	return y.seeds()
}

// isSeed says that it is in its own list, and therefore never bootstraps.
func (p *Process) isSeed() bool { return slices.Contains(p.fileSeeds(), p.address) }

func (p *Process) shouldBootstrap() bool {
	return p.settings.autoBootstrap && p.disk.word() != disk.Completed && !p.isSeed()
}

// prepareToJoin looks at the ring before it says anything to it, and then begins to gossip.
func (p *Process) prepareToJoin() *refusal {
	d := p.disk
	override := p.settings.properties["cassandra.override_decommission"] == "true"
	if d.word() == disk.Decommissioned && !override {
		return fatalConfiguration("This node was decommissioned and will not rejoin the ring unless " +
			"-Dcassandra.override_decommission=true has been set, or all existing data is removed and the node is " +
			"bootstrapped again")
	}
	if p.settings.properties["cassandra.replace_token"] != "" || p.settings.properties["cassandra.replace_node"] != "" {
		return startup(runtimeException, "Replace method removed; use cassandra.replace_address instead")
	}
	if d.log.hostID == "" {
		id := p.net.newHostID()
		d.change(false, func(l *local) { l.hostID = id })
	}
	p.hostID = d.log.hostID
	replace, refused := p.replaceAddress()
	if refused != nil {
		return refused
	}
	own := &state{hostID: p.hostID}
	if replace.IsValid() {
		refused = p.prepareReplacement(replace, own)
	} else if p.settings.properties["cassandra.allow_unsafe_join"] != "true" {
		refused = p.checkForCollision()
	}
	if refused != nil {
		return refused
	}
	if d.word() == disk.Completed && len(d.log.tokens) > 0 {
		own.tokens = d.log.tokens
	}
	p.startGossip(own)
	return nil
}

// startGossip begins a generation.
func (p *Process) startGossip(own *state) {
	s := &p.settings
	p.disk.change(true, func(l *local) { l.generation = max(p.now().Unix(), l.generation+1) })
	p.generation = p.disk.log.generation
	own.generation, own.begun, own.extra, own.version = p.generation, p.line.Now(), 14, 14
	own.hostID, own.dc, own.rack, own.release = p.hostID, s.datacenter, s.rack, p.release
	own.internal = netip.AddrPortFrom(p.address, layout.StoragePort)
	own.native = netip.AddrPortFrom(s.broadcast, layout.NativePort)
	own.schema = p.schemaVersion()
	p.gossip.add(&entry{address: p.address, state: own, alive: true, listed: listedLive})
	p.metadata.setHost(p.hostID, p.address)
	p.gossip.active, p.messaging = true, true
	p.changed()
	p.net.reconnect()
	p.sleep(p.net.within(200*time.Millisecond, 400*time.Millisecond))
}

// joinTokenRing makes the node a member: with its saved tokens, with those it was given, or by
// bootstrap.
func (p *Process) joinTokenRing() *refusal {
	d := p.disk
	var owned []ring.Token
	if p.shouldBootstrap() {
		var refused *refusal
		if owned, refused = p.bootstrap(); refused != nil || p.mode == modeJoiningFailed {
			return refused
		}
	} else if owned = d.log.tokens; len(owned) > 0 {
		// Saved tokens count whatever came of the join that saved them.
		if len(owned) != p.settings.numTokens {
			return fatalConfiguration(fmt.Sprintf("Cannot change the number of tokens from %d to %d", len(owned),
				p.settings.numTokens))
		}
	} else {
		var refused *refusal
		if owned, refused = p.chooseTokens(); refused != nil {
			return refused
		}
	}
	p.createSystemKeyspaces()
	p.finishJoining(owned)
	return nil
}

// finishJoining makes it NORMAL.
func (p *Process) finishJoining(owned []ring.Token) {
	slices.Sort(owned)
	p.disk.change(true, func(l *local) { l.tokens, l.word = owned, disk.Completed })
	if p.replaces.IsValid() && p.replaces != p.address {
		p.removeEndpoint(p.replaces)
	}
	p.metadata.setNormal(p.address, owned)
	p.metadata.setHost(p.hostID, p.address)
	p.mode, p.joined, p.inited, p.failed = modeNormal, true, true, false
	p.normalAt = p.line.Now()
	if !table.Older(p.release, p.disk.newest) {
		p.disk.newest = p.release
	}
	p.announce(func(s *state) {
		s.word, s.tokens, s.replaced = statusNormal, owned, netip.Addr{}
		s.status = statusNormal + "," + owned[0].String()
		s.load = p.loadBytes()
	})
}

// chooseTokens are those of the configuration, or random ones.
func (p *Process) chooseTokens() ([]ring.Token, *refusal) {
	if given := p.settings.initialTokens; len(given) > 0 {
		for _, t := range given {
			if owner, taken := p.metadata.tokens[t]; taken && owner != p.address {
				return nil, fatalConfiguration(fmt.Sprintf("Bootstrapping to existing token %s is not allowed "+
					"(decommission/removenode the old node first).", t))
			}
		}
		return slices.Clone(given), nil
	}
	var out []ring.Token
	for len(out) < p.settings.numTokens {
		t := ring.Token(p.line.Dice().Int64() - p.line.Dice().Int64())
		if _, taken := p.metadata.tokens[t]; !taken && t != ring.MinToken && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out, nil
}

// waitForPeers is the check of connectivity at the end of a start: it waits for all that the node
// knows and that do not answer, those that left included.
func (p *Process) waitForPeers() {
	if p.settings.blockForPeers <= 0 {
		return
	}
	down := 0
	for _, e := range p.gossip.entries {
		if e.address != p.address && !e.alive && e.state.dc == p.settings.datacenter {
			down++
		}
	}
	if down >= 2 {
		p.sleep(p.settings.blockForPeers)
	}
}

// newHostID is a random UUID.
func (n *Network) newHostID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], n.line.Dice().Uint64())
	binary.BigEndian.PutUint64(b[8:], n.line.Dice().Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
