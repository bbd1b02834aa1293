package cassandra

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/pki"
)

var jsonNull = json.RawMessage("null")

// operation is one of a bean, with its signature in the words of JMX.
type operation struct {
	name, signature string
	// blocks says that it takes its time: it runs in a task of the JVM.
	blocks  bool
	since50 bool
	call    func(p *Process, arguments []json.RawMessage) (json.RawMessage, *javaError)
}

var operations map[string][]operation

func init() {
	ss := []operation{
		{name: "stopNativeTransport", signature: "()", call: plain((*Process).stopNative)},
		{name: "stopNativeTransport", signature: "(boolean)", since50: true, call: plain((*Process).stopNative)},
		{name: "startNativeTransport", signature: "()", call: plain((*Process).startNative)},
		{name: "drain", signature: "()", blocks: true, call: plain((*Process).drain)},
		{name: "decommission", signature: "(boolean)", blocks: true, call: (*Process).decommission},
		{name: "removeNode", signature: "(java.lang.String)", blocks: true, call: (*Process).removeNode},
		{name: "rebuild", signature: "(java.lang.String,java.lang.String,java.lang.String,java.lang.String,boolean)",
			since50: true, blocks: true, call: (*Process).rebuild},
		{name: "rebuild", signature: "(java.lang.String,java.lang.String,java.lang.String,java.lang.String)",
			blocks: true, call: (*Process).rebuild},
		{name: "rebuild", signature: "(java.lang.String)", blocks: true, call: (*Process).rebuild},
		{name: "forceKeyspaceCleanup", signature: "(int,java.lang.String,[Ljava.lang.String;)", blocks: true,
			call: (*Process).cleanup},
		{name: "forceKeyspaceFlush", signature: "(java.lang.String,[Ljava.lang.String;)", blocks: true,
			call: (*Process).flushKeyspace},
		{name: "loadNewSSTables", signature: "(java.lang.String,java.lang.String)", blocks: true,
			call: (*Process).loadNewSSTables},
		{name: "truncate", signature: "(java.lang.String,java.lang.String)", blocks: true, call: (*Process).truncate},
		{name: "bulkLoad", signature: "(java.lang.String)", blocks: true, call: (*Process).bulkLoad},
		{name: "takeSnapshot", signature: "(java.lang.String,java.util.Map,[Ljava.lang.String;)", blocks: true,
			call: (*Process).takeSnapshot},
		{name: "clearSnapshot", signature: "(java.lang.String,[Ljava.lang.String;)", blocks: true,
			call: (*Process).clearSnapshot},
		{name: "upgradeSSTables", signature: "(java.lang.String,boolean,long,int,[Ljava.lang.String;)", blocks: true,
			call: (*Process).upgradeSSTables},
		{name: "forceKeyspaceCompaction", signature: "(boolean,java.lang.String,[Ljava.lang.String;)", blocks: true,
			call: rewrites("", 1, "null")},
		{name: "garbageCollect", signature: "(java.lang.String,int,java.lang.String,[Ljava.lang.String;)", blocks: true,
			call: rewrites("Remove deleted data", 2, "0")},
		{name: "scrub", signature: "(boolean,boolean,boolean,boolean,int,java.lang.String,[Ljava.lang.String;)",
			blocks: true, call: rewrites("Scrub", 5, "0")},
		{name: "verify",
			signature: "(boolean,boolean,boolean,boolean,boolean,boolean,java.lang.String,[Ljava.lang.String;)",
			blocks:    true, call: rewrites("Verify", 6, "0")},
		{name: "rebuildSecondaryIndex", signature: "(java.lang.String,java.lang.String,[Ljava.lang.String;)",
			blocks: true, call: (*Process).rebuildIndex},
		{name: "forceTerminateAllRepairSessions", signature: "()", call: plain((*Process).terminateRepairs)},
		{name: "repairAsync", signature: "(java.lang.String,java.util.Map)", call: (*Process).repairAsync},
		{name: "getParentRepairStatus", signature: "(int)", call: (*Process).repairStatus},
		{name: "getKeyspaceReplicationInfo", signature: "(java.lang.String)", call: (*Process).replicationInfo},
		{name: "getPendingRangeToEndpointWithPortMap", signature: "(java.lang.String)", call: (*Process).pendingRanges},
	}
	operations = map[string][]operation{
		beanStorageService: ss,
		beanSnitch: {
			{name: "getDatacenter", signature: "(java.lang.String)",
				call: placed(func(dc, _ string) string { return dc })},
			{name: "getRack", signature: "(java.lang.String)",
				call: placed(func(_, rack string) string { return rack })},
		},
		beanBatchlogManager: { // clients write none here
			{name: "countAllBatches", signature: "()",
				call: func(*Process, []json.RawMessage) (json.RawMessage, *javaError) { return formatInt(0), nil }},
		},
		beanTables: {
			{name: "getSSTablesForKey", signature: "(java.lang.String)", call: (*Process).sstablesForKey},
		},
		beanCompactionManager: {
			{name: "stopCompactionById", signature: "(java.lang.String)", call: (*Process).stopCompaction},
		},
		beanCaches: { // there are none here
			{name: "invalidateKeyCache", signature: "()", call: plain(nothing)},
			{name: "invalidateRowCache", signature: "()", call: plain(nothing)},
			{name: "invalidateCounterCache", signature: "()", call: plain(nothing)},
		},
		beanRepairService: {
			{name: "getSessions", signature: "(boolean,java.lang.String)", call: (*Process).repairSessions},
		},
		beanMessaging: {
			{name: "reloadSslCertificates", signature: "()", call: plain((*Process).reloadCertificates)},
		},
		beanGossiper: {
			{name: "reloadSeeds", signature: "()", call: (*Process).reloadSeeds},
			{name: "assassinateEndpoint", signature: "(java.lang.String)", blocks: true, call: (*Process).assassinate},
		},
	}
}

// plain is an operation without arguments and result.
func plain(f func(p *Process) *javaError) func(*Process, []json.RawMessage) (json.RawMessage, *javaError) {
	return func(p *Process, _ []json.RawMessage) (json.RawMessage, *javaError) { return jsonNull, f(p) }
}

func nothing(*Process) *javaError { return nil }

// placed answers for the snitch.
func placed(part func(dc, rack string) string) func(*Process, []json.RawMessage) (json.RawMessage, *javaError) {
	return func(p *Process, arguments []json.RawMessage) (json.RawMessage, *javaError) {
		address, failed := addressArgument(arguments)
		if failed != nil {
			return nil, failed
		}
		return strconv.AppendQuote(nil, part(p.locationOf(address))), nil
	}
}

// addressArgument is the first argument, an address without its port.
func addressArgument(arguments []json.RawMessage) (netip.Addr, *javaError) {
	text, failed := argument[string](arguments, 0)
	if failed != nil {
		return netip.Addr{}, failed
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, exception("java.net.UnknownHostException", "%s: Name or service not known", text)
	}
	return address, nil
}

// stopNative closes CQL. That is not gossiped.
func (p *Process) stopNative() *javaError {
	p.native = false
	return nil
}

// startNative opens CQL, where the JVM is so far.
func (p *Process) startNative() *javaError {
	switch {
	case p.native:
		return nil
	case !p.complete:
		return exception(illegalState, "setup() must be called first for CassandraDaemon")
	case p.mode != modeNormal || p.drained || p.draining:
		return exception(illegalState, "Cannot start native transport: node is in mode %s", p.mode)
	}
	p.openNative()
	return nil
}

func (p *Process) openNative() {
	p.native = true
	if p.net.opened != nil {
		p.net.opened(p)
	}
	if own := p.gossip.find(p.address); own != nil && !own.state.ready {
		p.announce(func(s *state) { s.ready, s.readySaid = true, true })
	}
}

// drain leaves CQL and gossip and writes everything to disk. Called again it does nothing.
func (p *Process) drain() *javaError {
	if p.draining {
		p.await(context.Background(), func() bool { return !p.draining }, -1)
	}
	if p.drained {
		return nil
	}
	p.draining = true
	if p.main != nil {
		p.main.Kill() // a start that is under way comes to nothing
	}
	if p.mode == modeNormal || p.mode == modeStarting || p.mode == modeJoining {
		p.mode = modeDraining
	}
	p.native = false
	p.stopGossip()
	p.sleep(p.net.within(p.net.options.DrainMin, p.net.options.DrainMax))
	p.flushOrDie()
	p.messaging = false
	p.draining, p.drained = false, true
	p.mode = modeDrained
	p.changed()
	p.notify()
	return nil
}

func (p *Process) drainProgress() string {
	switch {
	case p.drained:
		return "Drained 7/7 ColumnFamilies"
	case p.draining:
		return "Drained 3/7 ColumnFamilies"
	default:
		return "Drained 0/0 ColumnFamilies"
	}
}

// stopGossip tells those that it sees alive, who then count it as shut down at once, and is silent.
// These do not gossip it. In Cassandra they may: in 5.0 with storage_compatibility_mode NONE, and
// else if the version that a receiver gives the status is higher than the one that others have.
func (p *Process) stopGossip() {
	if !p.gossip.active {
		return
	}
	own := p.gossip.find(p.address)
	if !own.state.silentShutdown() && p.joined {
		next := *own.state
		next.word, next.status, next.ready, next.readySaid = statusShutdown, "shutdown,true", false, true
		next.stopped, next.version = lastHeartbeat, lastHeartbeat
		for _, e := range p.gossip.entries {
			other := p.net.byAddress[e.address]
			if other == nil || other == p || !e.alive {
				continue
			}
			p.line.After(p.net.within(2*time.Millisecond, 50*time.Millisecond), "gossip shutdown", func() {
				if other.gossip.active && !other.frozen && !other.ended && p.net.linked(p.address, other.address) {
					other.learn(p.address, &next)
				}
			})
		}
		last := *own.state
		last.word, last.status, last.ready, last.readySaid = statusShutdown, "shutdown,true", false, true
		last.stopped = last.heartbeat(p.line.Now())
		own.state = &last
	}
	p.gossip.active = false
	p.changed()
	p.net.reconnect()
}

// reloadSeeds takes over what cassandra.yaml has now; an empty list changes nothing.
func (p *Process) reloadSeeds(_ []json.RawMessage) (json.RawMessage, *javaError) {
	y, err := p.net.parseYAML(p.options.Files["cassandra.yaml"])
	if err != nil || len(y.seeds()) == 0 {
		return jsonNull, nil
	}
	seeds := slices.DeleteFunc(y.seeds(), func(a netip.Addr) bool { return a == p.address })
	if len(seeds) > 0 && !slices.Equal(seeds, p.gossip.seeds) {
		p.gossip.seeds = seeds
		p.changed()
		p.net.reconnect()
	}
	return p.appendEndpoints(nil, "/", p.gossip.seeds), nil
}

// reloadCertificates takes over those of the files that are some; of others the log alone tells.
func (p *Process) reloadCertificates() *javaError {
	for _, use := range []v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients} {
		block, rest := pem.Decode(p.options.Files[config.KeyFile(use)])
		if block == nil {
			continue
		}
		if leaf, err := pki.ParseCertificates(rest); err == nil {
			p.certificates[use] = leaf[0]
		}
	}
	p.trusted = nil
	if bundle, err := pki.ParseCertificates(p.options.Files[config.TrustFile(v1alpha1.UseInternode)]); err == nil {
		for _, authority := range bundle {
			p.trusted = append(p.trusted, authority.SubjectKeyId)
		}
	}
	if p.gossips() {
		p.net.noteRefusals(p)
	}
	return nil
}

// Certificate that it shows at the port of a use; nil for none.
func (p *Process) Certificate(use v1alpha1.CertificateUse) *x509.Certificate {
	if !p.messaging || use == v1alpha1.UseClients && !p.native {
		return nil
	}
	return p.certificates[use]
}

// keyspaceOf finds a keyspace of an argument.
func (p *Process) keyspaceOf(arguments []json.RawMessage, i int) (string, keyspace, *javaError) {
	name, failed := argument[string](arguments, i)
	if failed != nil {
		return "", keyspace{}, failed
	}
	k, found := p.schema[name]
	if !found {
		return name, k, exception(illegalArgument, "Keyspace [%s] does not exist.", name)
	}
	return name, k, nil
}

func (p *Process) replicationInfo(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	_, k, failed := p.keyspaceOf(arguments, 0)
	if failed != nil {
		failed.message = "" // as the real one says it
		return nil, failed
	}
	return appendText(nil, k.told()), nil
}

func (p *Process) pendingRanges(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	_, k, failed := p.keyspaceOf(arguments, 0)
	if failed != nil {
		return nil, failed
	}
	out := []byte{'{'}
	for i, r := range p.pending(k.replication) {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendText(out, fmt.Sprintf("[%s, %s]", r.of.Start, r.of.End))
		out = append(out, ':')
		out = p.appendEndpoints(out, "", r.to)
	}
	return append(out, '}'), nil
}

// loadPeriod is how often LoadBroadcaster gossips the size of the data.
const loadPeriod = time.Minute

// loadChanges has the new size of the data gossiped when its time comes.
func (p *Process) loadChanges() {
	if p.loadDue || p.ended {
		return
	}
	p.loadDue = true
	p.line.After(p.net.within(0, loadPeriod), "load", func() {
		p.loadDue = false
		if own := p.gossip.find(p.address); own != nil && p.gossips() && own.state.load > 0 &&
			own.state.load != p.loadBytes() {
			p.announce(func(s *state) { s.load = p.loadBytes() })
		}
	})
}

// loadBytes is the size of its data, as LoadBroadcaster gossips it.
func (p *Process) loadBytes() int64 { return p.disk.Bytes() }

func formatInt(n int) json.RawMessage { return json.RawMessage(strconv.Itoa(n)) }
