package cassandra

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"

	"helenus.io/helenus/internal/core/ring"
)

// Beans by name.
const (
	beanStorageService    = "org.apache.cassandra.db:type=StorageService"
	beanStorageProxy      = "org.apache.cassandra.db:type=StorageProxy"
	beanGuardrails        = "org.apache.cassandra.db:type=Guardrails"
	beanFailureDetector   = "org.apache.cassandra.net:type=FailureDetector"
	beanSnitch            = "org.apache.cassandra.db:type=EndpointSnitchInfo"
	beanMessaging         = "org.apache.cassandra.net:type=MessagingService"
	beanGossiper          = "org.apache.cassandra.net:type=Gossiper"
	beanBatchlogManager   = "org.apache.cassandra.db:type=BatchlogManager"
	beanCompactionManager = "org.apache.cassandra.db:type=CompactionManager"
	beanRepairService     = "org.apache.cassandra.db:type=RepairService"
	beanStreamManager     = "org.apache.cassandra.net:type=StreamManager"
	beanCaches            = "org.apache.cassandra.db:type=Caches"
	beanClients           = "org.apache.cassandra.metrics:type=Client,name=Connections"
	beanReadLatency       = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency"
	beanReadTotalLatency  = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=TotalLatency"
	// beanTables begins the names of those of tables, and stands for all of them.
	beanTables = "org.apache.cassandra.db:type=Tables"
)

// registered says whether a bean is there by now.
func (p *Process) registered(bean string) bool {
	switch bean {
	case beanStorageService, beanFailureDetector, beanGossiper, beanMessaging, beanStreamManager, beanGuardrails,
		beanSnitch, beanReadLatency, beanReadTotalLatency,
		beanCompactionManager, beanBatchlogManager, beanRepairService, beanCaches, beanTables:
		return p.beans
	case beanStorageProxy:
		return p.proxy
	case beanClients:
		return p.complete
	default:
		return false
	}
}

type attributeName struct{ bean, name string }

// attribute is one that is read only; those that can be written are hot settings.
type attribute struct {
	get     func(p *Process, out []byte, path string) ([]byte, *javaError)
	since50 bool
}

// answerCache keeps what is costly to write and seldom changes.
type answerCache struct {
	size     int
	schema   string
	schemaOf int
	tokens   []byte
	tokensOf int
}

var attributes = map[attributeName]attribute{}

func init() {
	add := func(bean, name string, get func(p *Process, out []byte) []byte) {
		attributes[attributeName{bean, name}] = attribute{get: func(p *Process, out []byte, _ string) ([]byte,
			*javaError) {
			return get(p, out), nil
		}}
	}
	text := func(name string, get func(p *Process) string) {
		add(beanStorageService, name, func(p *Process, out []byte) []byte { return appendText(out, get(p)) })
	}
	flag := func(name string, get func(p *Process) bool) {
		add(beanStorageService, name, func(p *Process, out []byte) []byte { return strconv.AppendBool(out, get(p)) })
	}
	endpoints := func(name string, get func(p *Process) []netip.Addr) {
		add(beanStorageService, name, func(p *Process, out []byte) []byte { return p.appendEndpoints(out, "", get(p)) })
	}
	ss := beanStorageService
	text("OperationMode", func(p *Process) string { return p.mode })
	text("ClusterName", func(p *Process) string { return p.settings.clusterName })
	add(ss, "LocalHostId", func(p *Process, out []byte) []byte {
		if p.hostID == "" {
			return append(out, "null"...)
		}
		return appendText(out, p.hostID)
	})
	text("ReleaseVersion", func(p *Process) string { return p.release })
	text("SchemaVersion", (*Process).schemaVersion)
	text("PartitionerName", func(*Process) string { return partitioner })
	text("DrainProgress", (*Process).drainProgress)
	text("RemovalStatusWithPort", func(p *Process) string {
		if p.removal == "" {
			return "No token removals in process."
		}
		return p.removal
	})
	flag("Joined", func(p *Process) bool { return p.metadata.isMember(p.address) })
	flag("Initialized", func(p *Process) bool { return p.inited })
	flag("Starting", func(p *Process) bool { return p.mode == modeStarting })
	flag("Draining", func(p *Process) bool { return p.draining })
	flag("Drained", func(p *Process) bool { return p.drained })
	flag("GossipRunning", func(p *Process) bool { return p.gossip.active })
	flag("NativeTransportRunning", func(p *Process) bool { return p.native })
	flag("BootstrapFailed", func(p *Process) bool { return p.failed })
	flag("Decommissioning", func(p *Process) bool { return p.leaving })
	flag("DecommissionFailed", func(p *Process) bool { return p.leaveFail })
	text("BootstrapState", func(p *Process) string {
		if w := p.disk.word(); w != "" {
			return string(w)
		}
		return "NEEDS_BOOTSTRAP"
	})
	for _, name := range []string{"BootstrapFailed", "Decommissioning", "DecommissionFailed", "BootstrapState"} {
		a := attributes[attributeName{ss, name}]
		a.since50 = true
		attributes[attributeName{ss, name}] = a
	}
	endpoints("LiveNodesWithPort", func(p *Process) []netip.Addr { return p.listed(listedLive) })
	endpoints("UnreachableNodesWithPort", func(p *Process) []netip.Addr { return p.listed(listedUnreachable) })
	endpoints("JoiningNodesWithPort", func(p *Process) []netip.Addr { return p.joiningNodes() })
	endpoints("LeavingNodesWithPort", func(p *Process) []netip.Addr { return sortedKeys(p.metadata.leaving) })
	endpoints("MovingNodesWithPort", func(*Process) []netip.Addr { return nil })
	add(ss, "EndpointWithPortToHostId", (*Process).appendHostIDs)
	add(ss, "TokenToEndpointWithPortMap", (*Process).appendTokens)
	add(ss, "NonLocalStrategyKeyspaces", func(p *Process, out []byte) []byte {
		return appendTexts(out, p.schema.names())
	})
	add(ss, "NonSystemKeyspaces", func(p *Process, out []byte) []byte {
		return appendTexts(out, slices.DeleteFunc(p.schema.names(), systemKeyspace))
	})
	add(ss, "Keyspaces", func(p *Process, out []byte) []byte {
		return appendTexts(out, append([]string{"system", "system_schema"}, p.schema.names()...))
	})
	add(beanFailureDetector, "AllEndpointStatesWithPort", (*Process).appendGossip)
	add(beanFailureDetector, "SimpleStatesWithPort", (*Process).appendLiveness)
	add(beanGossiper, "Seeds", func(p *Process, out []byte) []byte {
		return p.appendEndpoints(out, "/", p.gossip.seeds)
	})
	add(beanStorageProxy, "HintsInProgress", func(_ *Process, out []byte) []byte { return append(out, '0') })
	add(beanStorageProxy, "SchemaVersionsWithPort", (*Process).appendSchemaVersions)
	add(beanCompactionManager, "Compactions", (*Process).appendCompactions)
	add(beanClients, "Value", func(p *Process, out []byte) []byte {
		if p.net.plainClient == "" || !p.native {
			return append(out, "[]"...)
		}
		return append(out, `[{"address":"/`+p.net.plainClient+`:50000","driverName":"driver","driverVersion":"1",`+
			`"ssl":"false"}]`...)
	})
	for _, bean := range []string{beanReadLatency, beanReadTotalLatency} { // clients read nothing
		add(bean, "Count", func(_ *Process, out []byte) []byte { return append(out, '0') })
	}
	add(beanTables, "BuiltIndexes", func(_ *Process, out []byte) []byte { return append(out, "[]"...) })
	attributes[attributeName{beanStreamManager, "CurrentStreams"}] = attribute{get: (*Process).appendStreams}
}

// appendText writes a JSON string. What comes here needs escapes seldom.
func appendText(out []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			encoded, err := json.Marshal(text)
			if err != nil {
				return append(out, "null"...)
			}
			return append(out, encoded...)
		}
	}
	out = append(out, '"')
	out = append(out, text...)
	return append(out, '"')
}

func appendTexts(out []byte, texts []string) []byte {
	out = append(out, '[')
	for i, text := range texts {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendText(out, text)
	}
	return append(out, ']')
}

func (p *Process) appendEndpoints(out []byte, before string, endpoints []netip.Addr) []byte {
	out = append(out, '[')
	for i, a := range endpoints {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, before...)
		out = append(out, p.net.name(a)...)
		out = append(out, '"')
	}
	return append(out, ']')
}

// listed are the endpoints of one of the Gossiper's lists; the node itself is always live.
func (p *Process) listed(in listing) []netip.Addr {
	out := make([]netip.Addr, 0, len(p.gossip.entries))
	for _, e := range p.gossip.entries {
		if e.listed == in || in == listedLive && e.address == p.address {
			out = append(out, e.address)
		}
	}
	return out
}

func (p *Process) joiningNodes() []netip.Addr {
	seen := map[netip.Addr]bool{}
	for _, a := range p.metadata.joining {
		seen[a] = true
	}
	return sortedKeys(seen)
}

func sortedKeys[V any](m map[netip.Addr]V) []netip.Addr {
	out := make([]netip.Addr, 0, len(m))
	for a := range m {
		out = append(out, a)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

func (p *Process) appendHostIDs(out []byte) []byte {
	out = append(out, '{')
	for i, a := range sortedKeys(p.metadata.hosts) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, p.net.name(a)), ':')
		out = appendText(out, p.metadata.hosts[a])
	}
	return append(out, '}')
}

// appendTokens writes who owns each token, those of bootstrapping nodes included.
func (p *Process) appendTokens(out []byte) []byte {
	m := &p.metadata
	if p.answer.tokens == nil || p.answer.tokensOf != m.version {
		all := make([]ring.Token, 0, len(m.tokens)+len(m.joining))
		for t := range m.tokens {
			all = append(all, t)
		}
		for t := range m.joining {
			if _, owned := m.tokens[t]; !owned {
				all = append(all, t)
			}
		}
		slices.Sort(all)
		b := p.answer.tokens[:0]
		b = append(b, '{')
		for i, t := range all {
			if i > 0 {
				b = append(b, ',')
			}
			owner, normal := m.tokens[t]
			if joining, found := m.joining[t]; found && !normal || found && m.replacing[joining] == owner {
				owner = joining
			}
			b = append(b, '"')
			b = strconv.AppendInt(b, int64(t), 10)
			b = append(b, `":"`...)
			b = append(b, p.net.name(owner)...)
			b = append(b, '"')
		}
		b = append(b, '}')
		p.answer.tokens, p.answer.tokensOf = b, m.version
	}
	return append(out, p.answer.tokens...)
}

func (p *Process) appendLiveness(out []byte) []byte {
	out = append(out, '{')
	for i, e := range p.gossip.entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `"/`...)
		out = append(out, p.net.name(e.address)...)
		if e.alive {
			out = append(out, `":"UP"`...)
		} else {
			out = append(out, `":"DOWN"`...)
		}
	}
	return append(out, '}')
}

// appendSchemaVersions asks all that the node sees alive; one that does not answer costs the whole
// request timeout.
func (p *Process) appendSchemaVersions(out []byte) []byte {
	by := map[string][]netip.Addr{}
	var versions []string
	note := func(version string, a netip.Addr) {
		if _, known := by[version]; !known {
			versions = append(versions, version)
		}
		by[version] = append(by[version], a)
	}
	silent := false
	for _, e := range p.gossip.entries {
		other := p.net.byAddress[e.address]
		switch live := e.alive || e.address == p.address; {
		case live && other != nil && p.reaches(other):
			note(other.schemaVersion(), e.address)
		case e.listed == listedUnreachable || live:
			silent = silent || live
			note("UNREACHABLE", e.address)
		}
	}
	if silent {
		p.line.Sleep(p.net.options.ClientTimeout)
	}
	slices.Sort(versions)
	out = append(out, '{')
	for i, version := range versions {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, version), ':')
		out = p.appendEndpoints(out, "", by[version])
	}
	return append(out, '}')
}
