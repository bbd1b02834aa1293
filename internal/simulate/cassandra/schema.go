package cassandra

import (
	"crypto/md5" //nolint:gosec // a name, as Cassandra makes it
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

const (
	partitioner = "org.apache.cassandra.dht.Murmur3Partitioner"
	// emptySchema is the version of a node that has no keyspace yet.
	emptySchema = "59adb24e-f3cd-3e02-97f0-5b395827453f"
	// migrationDelay is how long a node waits before it fetches a schema that differs, unless it
	// has just been started.
	migrationDelay = time.Minute
)

// Keyspaces of Cassandra itself that are replicated.
var replicatedSystem = []string{"system_auth", "system_distributed", "system_traces"}

func systemKeyspace(name string) bool {
	return name == "system" || name == "system_schema" || slices.Contains(replicatedSystem, name)
}

// schema is what one node knows of the keyspaces.
type schema map[string]keyspace

// keyspace with the timestamp of its last change, which decides between two versions of it.
type keyspace struct {
	replication ring.Replication
	// words are how Cassandra tells of a replication that only it understands; empty for others.
	words string
	at    int64
	// tables with their gc_grace_seconds.
	tables map[string]int
}

func (s schema) clone() schema {
	c := maps.Clone(s)
	if c == nil {
		c = schema{}
	}
	return c
}

func (s schema) names() []string { return slices.Sorted(maps.Keys(s)) }

// text is the schema in an order of its own, for its version.
func (s schema) text(line string) string {
	var b strings.Builder
	b.WriteString(line)
	for _, name := range s.names() {
		k := s[name]
		fmt.Fprintf(&b, "|%s %s %d", name, k.replication, k.at)
		for _, table := range slices.Sorted(maps.Keys(k.tables)) {
			fmt.Fprintf(&b, " %s=%d", table, k.tables[table])
		}
	}
	return b.String()
}

// told is the replication as Cassandra tells it.
func (k keyspace) told() string {
	if k.words != "" {
		return k.words
	}
	return k.replication.String()
}

// merge takes over what is newer elsewhere and says whether anything was.
func (s schema) merge(other schema) bool {
	changed := false
	for _, name := range other.names() {
		theirs := other[name]
		ours, found := s[name]
		if !found || theirs.at > ours.at || theirs.at == ours.at &&
			theirs.replication.String() > ours.replication.String() {
			s[name] = theirs
			changed = true
		}
	}
	return changed
}

// schemaVersion is the version of the node's schema: a digest of what it holds, so that nodes with
// the same schema have the same version.
func (p *Process) schemaVersion() string {
	if len(p.schema) == 0 {
		return emptySchema
	}
	if p.answer.schemaOf != len(p.schema) || p.answer.schema == "" {
		sum := md5.Sum([]byte(p.schema.text(p.majorRelease()))) //nolint:gosec // a name
		sum[6], sum[8] = sum[6]&0x0f|0x30, sum[8]&0x3f|0x80
		p.answer.schema = fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:])
		p.answer.schemaOf = len(p.schema)
	}
	return p.answer.schema
}

// majorRelease is the release without its patch: nodes of different ones do not exchange schemas.
func (p *Process) majorRelease() string { return majorOf(p.release) }

func majorOf(release string) string {
	if i := strings.LastIndexByte(release, '.'); i > 0 {
		return release[:i]
	}
	return release
}

// schemaChanged follows a change of the own schema: it is saved and gossiped.
func (p *Process) schemaChanged() {
	p.answer.schema = ""
	p.disk.schema = p.schema.clone()
	p.changed()
	if own := p.gossip.find(p.address); own != nil && own.state.schema != p.schemaVersion() {
		p.announce(func(s *state) { s.schema = p.schemaVersion() })
	}
}

// createSystemKeyspaces is what every node does when it joins: same names, same timestamps, so that
// all of them make the same.
func (p *Process) createSystemKeyspaces() {
	auth := 1
	if v, err := strconv.Atoi(p.settings.properties["cassandra.system_auth.default_rf"]); err == nil {
		auth = max(v, 1)
	}
	changed := false
	for i, factor := range []int{auth, 3, 2} {
		name := replicatedSystem[i]
		if _, found := p.schema[name]; found {
			continue
		}
		replication, err := ring.Simple(factor)
		if err != nil {
			continue
		}
		p.schema[name] = keyspace{replication: replication}
		changed = true
	}
	if changed {
		p.schemaChanged()
	}
}

// onSchema is the news of another node's schema version: one that differs is fetched, at once by a
// node that has just been started.
func (p *Process) onSchema(e *entry) {
	if e.state.schema == "" || e.state.schema == p.schemaVersion() || e.state.schema == emptySchema ||
		majorOf(e.state.release) != p.majorRelease() {
		return
	}
	delay := p.net.within(20*time.Millisecond, 200*time.Millisecond)
	if p.line.Now().Sub(p.started) > migrationDelay && len(p.schema) > 0 {
		delay += migrationDelay
	}
	p.line.After(delay, "fetch schema", func() { p.fetchSchema(e) })
}

func (p *Process) fetchSchema(e *entry) {
	if p.ended || p.frozen || !p.gossip.active || e.state.schema == p.schemaVersion() {
		return
	}
	source := p.net.byAddress[e.address]
	if source == nil || !p.reaches(source) || source.majorRelease() != p.majorRelease() {
		if e.alive {
			// asked again as long as it differs
			p.line.After(migrationDelay, "fetch schema", func() { p.fetchSchema(e) })
		}
		return
	}
	if p.schema.merge(source.schema) {
		p.schemaChanged()
	}
}

// reaches says that a message gets through to another node and is answered.
func (p *Process) reaches(other *Process) bool {
	return other == p || !other.ended && !other.frozen && !p.frozen && other.messaging &&
		p.net.linked(p.address, other.address)
}

// alter changes the schema through this node: it applies it, pushes it to all that it sees alive,
// and gossips the version.
func (p *Process) alter(name string, change func(k *keyspace)) {
	k := p.schema[name]
	k.tables = maps.Clone(k.tables)
	change(&k)
	k.at = p.net.timestamp(p)
	p.schema[name] = k
	p.schemaChanged()
	for _, e := range p.gossip.entries {
		if e.address == p.address || !e.alive || majorOf(e.state.release) != p.majorRelease() {
			continue
		}
		p.line.After(p.net.within(5*time.Millisecond, 100*time.Millisecond), "push schema", func() {
			if other := p.net.byAddress[e.address]; other != nil && !p.ended && other.gossip.active &&
				p.reaches(other) && other.schema.merge(p.schema) {
				other.schemaChanged()
			}
		})
	}
}

// timestamp is the next one that a node gives to a write: its clock, and never the same twice.
func (n *Network) timestamp(p *Process) int64 {
	at := p.now().UnixMicro()
	if at <= n.clock && n.clock-at < int64(time.Millisecond/time.Microsecond) {
		at = n.clock + 1
	}
	n.clock = at
	return at
}
