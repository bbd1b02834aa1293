package cql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
)

// ownKeyspaces are all keyspaces of Cassandra itself.
var ownKeyspaces = []string{
	"system", "system_schema", "system_auth", "system_distributed", "system_traces", "system_views",
	"system_virtual_schema", "system_cluster_metadata",
}

// Keyspaces reads how every keyspace is replicated, by name, from the node's own copy of the
// schema.
func (s *Session) Keyspaces(ctx context.Context) (map[string]cassandra.Replication, error) {
	iter := s.driver.Query("SELECT keyspace_name, replication FROM system_schema.keyspaces").IterContext(ctx)
	result := map[string]cassandra.Replication{}
	var name string
	var row map[string]string
	var problem error
	for iter.Scan(&name, &row) {
		replication, err := cassandra.ReplicationFromSchema(row)
		if err != nil && problem == nil {
			problem = fmt.Errorf("keyspace %s: %w", name, err)
		}
		result[name] = replication
		row = nil
	}
	if err := iter.Close(); err != nil {
		return nil, fmt.Errorf("read keyspaces: %w", err)
	}
	if problem != nil {
		return nil, fmt.Errorf("read keyspaces: %w", problem)
	}
	return result, nil
}

// Schema is what RaiseReplication reads and writes: a Session.
type Schema interface {
	Keyspaces(ctx context.Context) (map[string]cassandra.Replication, error)
	AlterKeyspace(ctx context.Context, name string, to cassandra.Replication) error
}

// AlterKeyspace replicates a keyspace so.
func (s *Session) AlterKeyspace(ctx context.Context, name string, to cassandra.Replication) error {
	return s.driver.Query(alterStatement(name, to)).ExecContext(ctx)
}

// RaiseReplication gives each keyspace at least so many replicas in each datacenter, and returns
// the names of those that it altered: see cassandra.Replication.Raised; of the system keyspaces,
// SimpleStrategy counts as none. Keyspaces that have it already are not changed, so that to call it
// again is harmless. All are looked at before any is altered, and each once more just before that:
// one that somebody else has changed meanwhile is left as it is, and ends it. One keyspace is
// altered at a time, each followed by awaitAgreement, which is usually the method of
// cassandra.Node: Cassandra 5.0 and older do not bear two changes of the schema at once, so only
// one node of a ring may be administered at a time.
//
// After replicas were added a repair or rebuild has to bring the data to them.
func RaiseReplication(ctx context.Context, s Schema, keyspaces map[string]map[string]int,
	awaitAgreement func(context.Context) error) ([]string, error) {
	return alterReplication(ctx, s, keyspaces, false, awaitAgreement)
}

// SetReplication is RaiseReplication for exactly so many replicas: see
// cassandra.Replication.Exactly. Before replicas are taken away, a repair has to bring what they
// alone have to the others.
func SetReplication(ctx context.Context, s Schema, keyspaces map[string]map[string]int,
	awaitAgreement func(context.Context) error) ([]string, error) {
	return alterReplication(ctx, s, keyspaces, true, awaitAgreement)
}

// change is what a replication is to become, from numbers of replicas by datacenter.
type change func(r cassandra.Replication, replicas map[string]int, fromSimple bool) (cassandra.Replication, error)

func alterReplication(ctx context.Context, s Schema, keyspaces map[string]map[string]int, exact bool,
	awaitAgreement func(context.Context) error) ([]string, error) {
	for name, replicas := range keyspaces {
		if err := checkReplicas(name, replicas, exact); err != nil {
			return nil, err
		}
	}
	to := change(cassandra.Replication.Raised)
	if exact {
		to = cassandra.Replication.Exactly
	}
	first, err := s.Keyspaces(ctx)
	if err != nil {
		return nil, err
	}
	targets, err := alteredKeyspaces(first, keyspaces, to)
	if err != nil {
		return nil, err
	}
	var altered []string
	for i, name := range slices.Sorted(maps.Keys(targets)) {
		if i > 0 { // the ring has taken a while to agree
			now, err := s.Keyspaces(ctx)
			if err != nil {
				return altered, err
			}
			if !now[name].Equal(first[name]) {
				return altered, fmt.Errorf("keyspace %s was %s and is %s: another client changes it", name, first[name],
					now[name])
			}
		}
		if err := s.AlterKeyspace(ctx, name, targets[name]); err != nil {
			return altered, fmt.Errorf("alter keyspace %s to %s: %w", name, targets[name], err)
		}
		altered = append(altered, name)
		if err := awaitAgreement(ctx); err != nil {
			return altered, fmt.Errorf("alter keyspace %s: %w", name, err)
		}
	}
	return altered, verify(ctx, s, altered, targets)
}

// alteredKeyspaces are those of the present ones that must be altered, as they are to be.
func alteredKeyspaces(present map[string]cassandra.Replication, keyspaces map[string]map[string]int,
	to change) (map[string]cassandra.Replication, error) {
	targets := map[string]cassandra.Replication{}
	for _, name := range slices.Sorted(maps.Keys(keyspaces)) {
		replication, exists := present[name]
		if !exists {
			return nil, fmt.Errorf("keyspace %s does not exist", name)
		}
		wanted, err := to(replication, keyspaces[name], slices.Contains(ring.SystemKeyspaces(), name))
		if err != nil {
			return nil, fmt.Errorf("keyspace %s: %w", name, err)
		}
		if !wanted.Equal(replication) {
			targets[name] = wanted
		}
	}
	return targets, nil
}

// verify reads back what was altered.
func verify(ctx context.Context, s Schema, altered []string, targets map[string]cassandra.Replication) error {
	if len(altered) == 0 {
		return nil
	}
	present, err := s.Keyspaces(ctx)
	if err != nil {
		return err
	}
	for _, name := range altered {
		if !present[name].Equal(targets[name]) {
			return fmt.Errorf("keyspace %s was altered to %s and is %s: another client changes it", name, targets[name],
				present[name])
		}
	}
	return nil
}

// ForgetStreamedRanges forgets which ranges of a keyspace the node has streamed in joins and
// rebuilds: the next rebuild of 4.1 would leave them out (StreamStateStore,
// RangeStreamer#fetchAsync). Where the node asks for a password a superuser alone may do that
// (Permission#INVALID_FOR_SYSTEM_KEYSPACES), and does not need to if there are none.
func (s *Session) ForgetStreamedRanges(ctx context.Context, keyspace string) error {
	var name string
	err := s.driver.Query("SELECT keyspace_name FROM system.available_ranges_v2 WHERE keyspace_name = ?", keyspace).
		ScanContext(ctx, &name)
	if errors.Is(err, gocql.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for streamed ranges of keyspace %s: %w", keyspace, err)
	}
	if err := s.driver.Query("DELETE FROM system.available_ranges_v2 WHERE keyspace_name = ?", keyspace).
		ExecContext(ctx); err != nil {
		if refusal := gocql.RequestError(nil); errors.As(err, &refusal) && refusal.Code() == gocql.ErrCodeUnauthorized {
			err = fmt.Errorf("do it as a superuser at this node, by cqlsh: DELETE FROM system.available_ranges_v2 "+
				"WHERE keyspace_name = '%s'; %w", keyspace, err)
		}
		return fmt.Errorf("forget the streamed ranges of keyspace %s: %w", keyspace, err)
	}
	return nil
}

// checkReplicas refuses what no keyspace can have. That it is left with none at all is refused
// where it is known what it has.
func checkReplicas(keyspace string, replicas map[string]int, exact bool) error {
	total := 0
	for datacenter, count := range replicas {
		if datacenter == "" || count < 0 {
			return fmt.Errorf("keyspace %s: %d replicas in datacenter %q are not possible", keyspace, count, datacenter)
		}
		total += count
	}
	if keyspace == "" || total == 0 && !exact {
		return fmt.Errorf("keyspace %q: no replicas in any datacenter", keyspace)
	}
	return nil
}

// alterStatement writes the statement; options cannot be bound as values.
func alterStatement(keyspace string, replication cassandra.Replication) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ALTER KEYSPACE %s WITH replication = {'class': %s", quoteName(keyspace),
		quoteText(replication.Strategy))
	for _, option := range slices.Sorted(maps.Keys(replication.Options)) {
		fmt.Fprintf(&b, ", %s: %s", quoteText(option), quoteText(replication.Options[option]))
	}
	b.WriteString("}")
	return b.String()
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func quoteText(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }

// Tables are the tables and views of users and of roles by their names, and the smallest positive
// gc_grace_seconds of those of users that have more than one replica; 0 if there is none. A node
// that was down for longer can bring deleted rows back. No bean of Cassandra shows this property.
func (s *Session) Tables(ctx context.Context) (tables []facts.Table, smallest time.Duration, err error) {
	keyspaces, err := s.Keyspaces(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, statement := range []string{
		"SELECT keyspace_name, table_name, id, gc_grace_seconds, compaction FROM system_schema.tables",
		"SELECT keyspace_name, view_name, id, gc_grace_seconds, compaction FROM system_schema.views",
	} {
		iter := s.driver.Query(statement).IterContext(ctx)
		var t facts.Table
		var id gocql.UUID
		var seconds int
		var compaction map[string]string
		for iter.Scan(&t.Keyspace, &t.Name, &id, &seconds, &compaction) {
			t.ID, t.GCGrace, t.Compaction = id.String(), time.Duration(seconds)*time.Second, compaction["class"]
			if seconds > 0 && keepsReplicas(t.Keyspace, keyspaces[t.Keyspace]) &&
				(smallest == 0 || t.GCGrace < smallest) {
				smallest = t.GCGrace
			}
			if !slices.Contains(ownKeyspaces, t.Keyspace) || t.Keyspace == "system_auth" {
				tables = append(tables, t)
			}
			compaction = nil
		}
		if err := iter.Close(); err != nil {
			return nil, 0, fmt.Errorf("read tables: %w", err)
		}
	}
	slices.SortFunc(tables, func(a, b facts.Table) int {
		return cmp.Or(strings.Compare(a.Keyspace, b.Keyspace), strings.Compare(a.Name, b.Name))
	})
	return tables, smallest, nil
}

// keepsReplicas says whether it is a user's keyspace with more than one replica. An unknown
// strategy counts as replicated: the answer is used to keep a node from starting.
func keepsReplicas(name string, replication cassandra.Replication) bool {
	if slices.Contains(ownKeyspaces, name) {
		return false
	}
	replicas, err := replication.Replicas()
	return err != nil || replicas != 1
}

// Describe has the statements that create the types, tables and views of a keyspace, with those
// that drop columns.
func (s *Session) Describe(ctx context.Context, keyspace string) (string, error) {
	iter := s.driver.Query("DESCRIBE KEYSPACE " + quoteName(keyspace) + " WITH INTERNALS").IterContext(ctx)
	var in, kind, name, statement, text string
	for iter.Scan(&in, &kind, &name, &statement) {
		if kind == "type" || kind == "table" || kind == "materialized_view" {
			text += statement + "\n"
		}
	}
	if err := iter.Close(); err != nil {
		return "", fmt.Errorf("describe keyspace %s: %w", keyspace, err)
	}
	return text, nil
}
