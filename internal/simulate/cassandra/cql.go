package cassandra

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/cassandra/cql"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/simulate/process"
)

var neverEnds = context.Background()

// Session administers one node over CQL, with what cql.Session of the product does.
type Session struct {
	p    *Process
	user string
}

// CQL connects to the node, with a login that SetRoles makes if it asks for one. It is refused
// while the native transport is closed.
func (p *Process) CQL(ctx context.Context) (*Session, error) {
	s := &Session{p, v1alpha1.RoleOperator}
	err := s.round(ctx)
	if err == nil {
		err = p.letIn()
	}
	if err != nil {
		return nil, fmt.Errorf("connect to CQL at %s: %w", p.address, err)
	}
	return s, nil
}

// round is the time of a statement, which the node must be there for.
func (s *Session) round(ctx context.Context) error {
	p := s.p
	if p.NativeOpen() {
		if err := process.Sleep(ctx, p.line, p.net.within(time.Millisecond, 20*time.Millisecond)); err != nil {
			return err
		}
	}
	if !p.await(ctx, func() bool { return !p.frozen || p.ended }, p.net.options.ClientTimeout) {
		return timedOut(ctx)
	}
	if !p.NativeOpen() {
		return ErrNoCQL
	}
	return nil
}

// Keyspaces are how every replicated keyspace is replicated, by the node's own copy of the schema.
func (s *Session) Keyspaces(ctx context.Context) (map[string]cassandra.Replication, error) {
	if err := s.round(ctx); err != nil {
		return nil, fmt.Errorf("read keyspaces: %w", err)
	}
	out := map[string]cassandra.Replication{}
	for name, k := range s.p.schema {
		replication, err := cassandra.ParseReplication(k.told())
		if err != nil {
			return nil, err
		}
		out[name] = replication
	}
	return out, nil
}

// AlterKeyspace is cql.Session.AlterKeyspace.
func (s *Session) AlterKeyspace(ctx context.Context, name string, to cassandra.Replication) error {
	wanted, err := ring.ParseReplication(to.String())
	if err == nil {
		err = s.round(ctx)
	}
	if err == nil {
		err = s.p.refuseAlter(name, wanted)
	}
	if err != nil {
		return err
	}
	s.p.alter(name, func(k *keyspace) { k.replication = wanted })
	return nil
}

// RaiseReplication is cql.RaiseReplication.
func (s *Session) RaiseReplication(ctx context.Context, keyspaces map[string]map[string]int) ([]string, error) {
	return cql.RaiseReplication(ctx, s, keyspaces, s.AwaitAgreement)
}

// SetReplication is cql.SetReplication.
func (s *Session) SetReplication(ctx context.Context, keyspaces map[string]map[string]int) ([]string, error) {
	return cql.SetReplication(ctx, s, keyspaces, s.AwaitAgreement)
}

// refuseAlter is what AlterKeyspaceStatement refuses, 4.1 and 5.0: datacenters without a node;
// system_auth without one that has nodes (NetworkTopologyStrategy#validateExpectedOptions); and any
// change while a node that is known is not NORMAL, be it only stopped (validateNoRangeMovements).
func (p *Process) refuseAlter(name string, wanted ring.Replication) error {
	known := p.ringsNow().present.datacenters()
	for _, datacenter := range wanted.Datacenters() {
		if !slices.Contains(known, datacenter) {
			//nolint:staticcheck // Cassandra's words
			return fmt.Errorf("Unrecognized strategy option {%s} passed to NetworkTopologyStrategy",
				datacenter)
		}
	}
	for _, datacenter := range known {
		if name == "system_auth" && !slices.Contains(wanted.Datacenters(), datacenter) {
			//nolint:staticcheck // Cassandra's words
			return fmt.Errorf("Following datacenters have active nodes and must be present in replication options "+
				"for keyspace system_auth: [%s]", datacenter)
		}
	}
	var moving []string
	for _, e := range p.gossip.entries {
		switch e.state.word {
		case statusNormal, statusHibernate, statusLeft, statusRemoved:
		default:
			if e.address != p.address && e.listed != unlisted {
				moving = append(moving, "/"+p.net.name(e.address))
			}
		}
	}
	if len(moving) > 0 {
		//nolint:staticcheck // Cassandra's words
		return fmt.Errorf("Cannot alter RF while some endpoints are not in normal state (no range movements): %v",
			moving)
	}
	return nil
}

// AwaitAgreement returns when all nodes that answer have one schema version.
func (s *Session) AwaitAgreement(ctx context.Context) error {
	const pause = 200 * time.Millisecond
	for {
		if err := s.round(ctx); err != nil {
			return fmt.Errorf("await schema agreement: %w", err)
		}
		agreed := true
		for _, e := range s.p.gossip.entries {
			if other := s.p.liveProcess(e.address); other != nil && other.schemaVersion() != s.p.schemaVersion() {
				agreed = false
			}
		}
		if agreed {
			return nil
		}
		if s.p.line.Running() == nil {
			return fmt.Errorf("await schema agreement: not yet")
		}
		if err := process.Sleep(ctx, s.p.line, pause); err != nil {
			return fmt.Errorf("await schema agreement: %w", err)
		}
	}
}

// CreateKeyspace makes a keyspace with so many replicas in each datacenter.
func (s *Session) CreateKeyspace(ctx context.Context, name string, replicas map[string]int) error {
	replication, err := ring.NetworkTopology(replicas)
	if err != nil {
		return fmt.Errorf("create keyspace %s: %w", name, err)
	}
	return s.createKeyspace(ctx, name, replication)
}

// CreateSimpleKeyspace makes a keyspace with so many replicas whatever datacenter they are in.
func (s *Session) CreateSimpleKeyspace(ctx context.Context, name string, replicas int) error {
	replication, err := ring.Simple(replicas)
	if err != nil {
		return fmt.Errorf("create keyspace %s: %w", name, err)
	}
	return s.createKeyspace(ctx, name, replication)
}

// CreateStrangeKeyspace makes a keyspace of which Cassandra tells the replication in other words
// than Helenus understands. It has three replicas in dc1.
func (s *Session) CreateStrangeKeyspace(ctx context.Context, name, words string) error {
	if err := s.CreateKeyspace(ctx, name, map[string]int{"dc1": 3}); err != nil {
		return err
	}
	s.p.alter(name, func(k *keyspace) { k.words = words })
	return nil
}

func (s *Session) createKeyspace(ctx context.Context, name string, replication ring.Replication) error {
	if _, exists := s.p.schema[name]; exists {
		return fmt.Errorf("keyspace %s exists", name)
	}
	if err := s.round(ctx); err != nil {
		return fmt.Errorf("create keyspace %s: %w", name, err)
	}
	s.p.alter(name, func(k *keyspace) { k.replication = replication })
	return nil
}

// CreateTable makes a table that keeps deletions for so long.
func (s *Session) CreateTable(ctx context.Context, keyspaceName, table string, gcGrace time.Duration) error {
	if _, exists := s.p.schema[keyspaceName]; !exists {
		return fmt.Errorf("keyspace %s does not exist", keyspaceName)
	}
	if err := s.round(ctx); err != nil {
		return fmt.Errorf("create table %s.%s: %w", keyspaceName, table, err)
	}
	s.p.alter(keyspaceName, func(k *keyspace) {
		if k.tables == nil {
			k.tables = map[string]int{}
		}
		k.tables[table] = int(gcGrace / time.Second)
	})
	return nil
}

// defaultGrace is gc_grace_seconds of a table of which no trial asks how long it keeps deletions.
const defaultGrace = 240 * time.Hour

var countStatement = regexp.MustCompile(`^SELECT count\(\*\) FROM (\w+)\.\w+$`)

// Answer is cql.Session.Answer for the number of rows of a keyspace.
func (s *Session) Answer(ctx context.Context, query string) (cql.Answer, error) {
	count := countStatement.FindStringSubmatch(query)
	if count == nil {
		return cql.Answer{}, fmt.Errorf("no answer is known to %s", query)
	}
	if err := s.round(ctx); err != nil {
		return cql.Answer{}, err
	}
	keys := map[string]bool{}
	for _, other := range s.p.net.byAddress {
		for key := range other.disk.data[count[1]] {
			keys[key] = true
		}
	}
	rows := 0
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value, err := s.p.Read(count[1], key, ring.Quorum)
		if err != nil {
			return cql.Answer{}, err
		}
		if value != "" {
			rows++
		}
	}
	return cql.Answer{Rows: true, Number: new(big.Float).SetInt64(int64(rows))}, nil
}

// Tables is cql.Session.Tables.
func (s *Session) Tables(ctx context.Context) (tables []facts.Table, smallest time.Duration, err error) {
	if err := s.round(ctx); err != nil {
		return nil, 0, fmt.Errorf("read tables: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.p.schema)) {
		k := s.p.schema[name]
		if systemKeyspace(name) {
			continue
		}
		for _, table := range slices.Sorted(maps.Keys(k.tables)) {
			grace := time.Duration(k.tables[table]) * time.Second
			if grace > 0 && k.replication.TotalFactor() > 1 && (smallest == 0 || grace < smallest) {
				smallest = grace
			}
			sum := sha256.Sum256([]byte(name + "." + table)) // of a table whose id says nothing of its age
			tables = append(tables, facts.Table{
				ID: fmt.Sprintf("%x-%x-3%.3x-8%.3x-%x", sum[:4], sum[4:6], int(sum[6])<<4, int(sum[8])<<4,
					sum[10:16]),
				Keyspace: name, Name: table, GCGrace: cmp.Or(grace, defaultGrace),
				Compaction: "SizeTieredCompactionStrategy",
			})
		}
	}
	return tables, smallest, nil
}

// Tables is execute.JVM.Tables.
func (p *Process) Tables(ctx context.Context) ([]facts.Table, time.Duration, error) {
	s, err := p.CQL(ctx)
	if err != nil {
		return nil, 0, err
	}
	return s.Tables(ctx)
}

// ForgetStreamedRanges is execute.JVM.ForgetStreamedRanges.
func (p *Process) ForgetStreamedRanges(ctx context.Context, keyspace string) error {
	if _, err := p.CQL(ctx); err != nil {
		return err
	}
	p.disk.forgetAvailable(keyspace)
	return nil
}

// AlterKeyspaces is execute.JVM.AlterKeyspaces.
func (p *Process) AlterKeyspaces(ctx context.Context, least map[string]map[string]int) ([]string, error) {
	s, err := p.CQL(ctx)
	if err != nil {
		return nil, err
	}
	return s.RaiseReplication(ctx, least)
}

// SetKeyspaces is execute.JVM.SetKeyspaces.
func (p *Process) SetKeyspaces(ctx context.Context, exact map[string]map[string]int) ([]string, error) {
	s, err := p.CQL(ctx)
	if err != nil {
		return nil, err
	}
	return s.SetReplication(ctx, exact)
}
