package cassandra

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/core/ring"
)

// bootstrap joins the ring with data: the tokens are announced, and after the ring delay, when
// everybody sends writes here too, the ranges are streamed. It may end in the mode JOINING_FAILED,
// in which the JVM stays.
func (p *Process) bootstrap() ([]ring.Token, *refusal) {
	if p.disk.word() != disk.InProgress {
		p.disk.setWord(disk.InProgress)
	}
	p.mode = modeJoining
	p.changed()
	if refused := p.waitForSchema(); refused != nil {
		return nil, refused
	}
	owned, refused := p.bootstrapTokens()
	if refused != nil {
		return nil, refused
	}
	p.disk.change(true, func(l *local) { l.tokens = owned })
	if p.replaces != p.address {
		p.announceBootstrap(owned)
		p.sleep(p.settings.ringDelay)
	}
	if !p.seenAnySeed() {
		return nil, startup(illegalState, fmt.Sprintf("Unable to contact any seeds: %s",
			p.appendEndpoints(nil, "/", p.gossip.seeds)))
	}
	pieces, refused := p.bootstrapPieces(owned)
	if refused != nil {
		return nil, refused
	}
	pieces, problem := p.withoutAvailable(pieces, true)
	if problem != "" {
		return nil, startup(illegalState, problem)
	}
	if err := p.stream(pieces); err != nil {
		p.failed = true
		p.logged = "Error while waiting on bootstrap to complete. Bootstrap will have to be restarted.: " +
			"java.util.concurrent.ExecutionException: org.apache.cassandra.streaming.StreamException: Stream failed: " +
			err.Error()
		if p.is50() {
			p.mode = modeJoiningFailed
		}
		p.changed()
		// 4.1 stays in the mode JOINING; either waits for the user or a restart.
		p.await(neverEnds, func() bool { return false }, -1)
	}
	return owned, nil
}

// stream takes the pieces of one source after the other. What has arrived is written down as
// available (system.available_ranges_v2).
func (p *Process) stream(pieces []piece) error {
	var sources []*Process
	for _, x := range pieces {
		if !slices.Contains(sources, x.from) {
			sources = append(sources, x.from)
		}
	}
	for _, source := range sources {
		of := slices.DeleteFunc(slices.Clone(pieces), func(x piece) bool { return x.from != source })
		if err := p.transfer(of); err != nil {
			return err
		}
		for _, x := range of {
			p.disk.available[x.name()] = true
		}
	}
	return nil
}

// name of a range as system.available_ranges_v2 has it.
func (x piece) name() string { return x.keyspace + " " + x.of.String() }

// withoutAvailable leaves out what an earlier join or rebuild has streamed, forgets that, or
// refuses to decide, as cassandra.reset_bootstrap_progress says (RangeStreamer#fetchAsync). 4.1
// never refuses, and forgets for a join alone (CASSANDRA-17679).
func (p *Process) withoutAvailable(pieces []piece, joins bool) ([]piece, string) {
	reset, given := p.settings.properties["cassandra.reset_bootstrap_progress"]
	if reset == "true" && (joins || p.is50()) {
		for _, x := range pieces {
			p.disk.forgetAvailable(x.keyspace)
		}
	}
	left := slices.DeleteFunc(slices.Clone(pieces), func(x piece) bool { return p.disk.available[x.name()] })
	if len(left) < len(pieces) && !given && p.is50() {
		return nil, "Discovered existing bootstrap data and cassandra.reset_bootstrap_progress " +
			"is not configured; aborting bootstrap. Please clean up local files manually and try again or set " +
			"cassandra.reset_bootstrap_progress=true to ignore. "
	}
	return left, ""
}

// forgetAvailable forgets what was streamed of a keyspace.
func (d *Disk) forgetAvailable(keyspace string) {
	maps.DeleteFunc(d.available, func(name string, _ bool) bool { return strings.HasPrefix(name, keyspace+" ") })
}

// schemaDelay is how long a bootstrap waits for schemas that it knows to differ
// (cassandra.schema_delay_ms).
const schemaDelay = 30 * time.Second

// waitForSchema lets gossip settle and waits for the schema of the others. A version that cannot be
// fetched ends the start.
func (p *Process) waitForSchema() *refusal {
	p.sleep(p.settings.settle)
	for waited := time.Duration(0); len(p.schema) == 0 && waited < p.settings.ringDelay; waited += time.Second {
		p.sleep(time.Second)
	}
	p.sleep(p.net.within(time.Second, 5*time.Second))
	for waited := time.Duration(0); p.outstandingSchema(); waited += time.Second {
		if waited >= schemaDelay {
			if p.settings.properties["cassandra.skip_schema_check"] == "true" {
				return nil
			}
			return startup(runtimeException, "Didn't receive schemas for all known versions within the timeout. Use "+
				"-Dcassandra.skip_schema_check=true to skip this check.")
		}
		p.sleep(time.Second)
	}
	return nil
}

// outstandingSchema says that a live member has another schema than this node.
func (p *Process) outstandingSchema() bool {
	return slices.ContainsFunc(p.gossip.entries, func(e *entry) bool {
		return e.address != p.address && e.alive && e.state.schema != "" && e.state.schema != emptySchema &&
			e.state.schema != p.schemaVersion()
	})
}

// bootstrapTokens are those of the replaced node, given ones, or random ones.
func (p *Process) bootstrapTokens() ([]ring.Token, *refusal) {
	if !p.replaces.IsValid() {
		if p.metadata.isMember(p.address) {
			return nil, startup(unsupportedOperation,
				"This node is already a member of the token ring; bootstrap aborted. (If replacing a dead node, "+
					"remove the old one from the ring first.)")
		}
		return p.chooseTokens()
	}
	if p.replaces == p.address {
		p.sleep(p.settings.ringDelay)
		return p.bootTokens, nil
	}
	wait := max(p.settings.broadcastEvery, 2*p.settings.ringDelay)
	if !p.is50() {
		wait = p.settings.broadcastEvery
	}
	p.sleep(wait)
	for _, t := range p.bootTokens {
		owner, found := p.metadata.tokens[t]
		if !found {
			return nil, startup(unsupportedOperation, fmt.Sprintf("Cannot replace token %s which does not exist!", t))
		}
		if e := p.gossip.find(owner); e != nil &&
			(e.alive || e.flows || p.line.Now().Sub(e.silentSince) < p.settings.ringDelay) {
			return nil, startup(unsupportedOperation, "Cannot replace a live node... ")
		}
	}
	return p.bootTokens, nil
}

func (p *Process) announceBootstrap(owned []ring.Token) {
	sorted := slices.Sorted(slices.Values(owned))
	p.metadata.setJoining(p.address, sorted)
	if p.replaces.IsValid() {
		p.metadata.replacing[p.address] = p.replaces
	}
	p.announce(func(s *state) {
		s.tokens = sorted
		if p.replaces.IsValid() {
			s.word, s.replaced, s.status = statusBootReplace, p.replaces, statusBootReplace+","+p.net.name(p.replaces)
			return
		}
		s.word, s.status = statusBoot, statusBoot+","+sorted[0].String()
	})
}

// seenAnySeed says that a seed is known by gossip.
func (p *Process) seenAnySeed() bool {
	if len(p.gossip.seeds) == 0 {
		return true
	}
	return slices.ContainsFunc(p.gossip.seeds, func(a netip.Addr) bool {
		e := p.gossip.find(a)
		return e != nil && e.state.generation > 0
	})
}

// bootstrapPieces says what is streamed from whom. A node that joins takes each range from the
// replica that gives it up, which must be alive; one that replaces takes it from any.
func (p *Process) bootstrapPieces(owned []ring.Token) ([]piece, *refusal) {
	before := circleOf(p.ringsNow().present.Without(p.address.String()))
	base := before.Ring
	if p.replaces.IsValid() {
		base = base.Without(p.replaces.String())
	}
	after, err := base.With(p.ringNode(p.address, owned))
	if err != nil || before.Len() == 0 {
		return nil, nil // the first node of a ring has nobody to take anything from
	}
	strict := !p.replaces.IsValid() && p.settings.properties["cassandra.consistent.rangemovement"] != "false"
	var pieces []piece
	var missing []string
	for _, name := range p.schema.names() {
		forEachRange(before, circleOf(after), p.schema[name].replication, func(of ring.Range, was, is []netip.Addr) {
			if !slices.Contains(is, p.address) {
				return
			}
			sources := slices.Clone(was)
			losing := slices.DeleteFunc(slices.Clone(was), func(a netip.Addr) bool { return slices.Contains(is, a) })
			if strict && len(losing) > 0 {
				sources = losing
			}
			for _, a := range sources {
				if source := p.liveProcess(a); source != nil && a != p.replaces {
					pieces = append(pieces, piece{name, of, source, p})
					return
				}
			}
			if strict && len(losing) > 0 {
				missing = append(missing, fmt.Sprintf("Full(/%s,%s)", p.net.name(losing[0]), of))
			}
		})
	}
	if len(missing) > 0 {
		return nil, startup(illegalState, "Necessary replicas for strict consistency were removed by source filters: "+
			strings.Join(missing[:min(len(missing), 3)], ", ")+" was filtered out because it was down")
	}
	return pieces, nil
}

// replaceAddress is the address of the node to be replaced, if that is asked for and has not been
// done.
func (p *Process) replaceAddress() (netip.Addr, *refusal) {
	firstBoot, always := p.settings.properties["cassandra.replace_address_first_boot"],
		p.settings.properties["cassandra.replace_address"]
	text := firstBoot
	if text == "" {
		text = always
	}
	if text == "" {
		return netip.Addr{}, nil
	}
	if p.disk.word() == disk.Completed {
		if firstBoot != "" {
			return netip.Addr{}, nil
		}
		return netip.Addr{}, startup(runtimeException,
			"Cannot replace address with a node that is already bootstrapped")
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, startup(runtimeException,
			"Replacement host name could not be resolved or scope_id was specified for a global IPv6 address")
	}
	if !p.shouldBootstrap() && p.settings.properties["cassandra.allow_unsafe_replace"] != "true" {
		return netip.Addr{}, startup(runtimeException,
			"Replacing a node without bootstrapping risks invalidating consistency guarantees as the expected data "+
				"may not be present until repair is run. To perform this operation, please restart with "+
				"-Dcassandra.allow_unsafe_replace=true")
	}
	return a, nil
}

// prepareReplacement finds whom to replace, and takes over its tokens.
func (p *Process) prepareReplacement(replaced netip.Addr, own *state) *refusal {
	known, refused := p.shadowRound()
	if refused != nil {
		return refused
	}
	s, found := known[replaced]
	if !found {
		return startup(runtimeException, fmt.Sprintf("Cannot replace_address /%s because it doesn't exist in gossip",
			p.net.name(replaced)))
	}
	if len(s.tokens) == 0 {
		return startup(runtimeException, fmt.Sprintf("Could not find tokens for /%s to replace", p.net.name(replaced)))
	}
	p.replaces, p.bootTokens = replaced, s.tokens
	if replaced == p.address {
		p.hostID = s.hostID
		p.disk.change(false, func(l *local) { l.hostID = s.hostID })
		own.word, own.status, own.tokens = statusHibernate, "hibernate,true", s.tokens
	}
	return nil
}
