package scene

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/cqlclient"
)

// Keyspace of all rows that a scene writes.
const Keyspace = "e2e"

// Rows is how many rows Fill writes: enough to reach every range of rings of this size, few
// enough to cost nothing.
const Rows = 200

// Replication of the keyspace: in each datacenter as many copies as the cluster plans for.
func replication(spec v1alpha1.CassandraClusterSpec) string {
	options := []string{"'class': 'NetworkTopologyStrategy'"}
	for _, dc := range spec.Datacenters {
		name := dc.Name
		if dc.DatacenterName != "" {
			name = dc.DatacenterName
		}
		options = append(options, fmt.Sprintf("'%s': %d", name, dc.PlannedReplicationFactor))
	}
	return "{" + strings.Join(options, ", ") + "}"
}

// RowText is what the i-th row has.
func RowText(i int) string { return fmt.Sprintf("row %d was acknowledged", i) }

// through does something with a session through a node.
func (r *Ring) through(ctx context.Context, node string, do func(*cqlclient.Session) error) error {
	session, err := r.Session(ctx, node)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := do(session); err != nil {
		return fmt.Errorf("through node %s: %w", node, err)
	}
	return nil
}

// Fill makes the keyspace and writes rows at a consistency level, a share of them through each
// node.
func (r *Ring) Fill(ctx context.Context, level gocql.Consistency) error {
	if err := r.makeTables(ctx); err != nil {
		return err
	}
	return r.writeRows(ctx, level, r.NodeNames(ctx))
}

// FillWithout does the same through the others while some nodes are not in the ring, and no hints
// are kept for them: afterwards they lack all rows, and only a repair, or a read that asks them and
// others, brings these to them.
func (r *Ring) FillWithout(ctx context.Context, level gocql.Consistency, laggards ...string) error {
	if err := r.makeTables(ctx); err != nil {
		return err
	}
	others := slices.DeleteFunc(r.NodeNames(ctx), func(name string) bool { return slices.Contains(laggards, name) })
	each := func(names []string, command string) error {
		for _, name := range names {
			if _, err := r.Run(ctx, name, "nodetool", command); err != nil {
				return fmt.Errorf("nodetool %s on %s: %w", command, name, err)
			}
		}
		return nil
	}
	sees := func(state string) error {
		for _, name := range others {
			for _, laggard := range laggards {
				err := r.Sees(ctx, name, func(members []string) bool {
					return slices.ContainsFunc(members, func(m string) bool {
						return strings.HasPrefix(m, state+" "+r.address(ctx, laggard)+" ")
					})
				})
				if err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := errors.Join(each(others, "disablehandoff"), each(laggards, "disablegossip"),
		sees("DN")); err != nil {
		return err
	}
	if err := r.writeRows(ctx, level, others); err != nil {
		return err
	}
	return errors.Join(each(laggards, "enablegossip"), sees("UN"), each(others, "enablehandoff"))
}

func (r *Ring) address(ctx context.Context, node string) string {
	for _, n := range r.Nodes(ctx) {
		if n.Name == node {
			return n.Status.Address
		}
	}
	return ""
}

func (r *Ring) makeTables(ctx context.Context) error {
	return r.define(ctx,
		"CREATE KEYSPACE IF NOT EXISTS "+Keyspace+" WITH replication = "+replication(r.Spec),
		"CREATE TABLE IF NOT EXISTS "+Keyspace+".rows (id int PRIMARY KEY, value text)",
		"CREATE TABLE IF NOT EXISTS "+Keyspace+".client (run text, partition int, sequence bigint, PRIMARY KEY "+
			"((run, partition), sequence))",
		"CREATE TABLE IF NOT EXISTS "+Keyspace+".registers (run text, id int, value bigint, PRIMARY KEY ((run, id)))")
}

// MakeTables makes empty tables, numbered from one number to another.
func (r *Ring) MakeTables(ctx context.Context, from, to int) error {
	var statements []string
	for i := from; i < to; i++ {
		statements = append(statements,
			fmt.Sprintf("CREATE TABLE %s.t%d (id int PRIMARY KEY, value text)", Keyspace, i))
	}
	return r.define(ctx, statements...)
}

// KeepDeletions has the table of rows keep deletions for no longer than this, in whole seconds.
func (r *Ring) KeepDeletions(ctx context.Context, d time.Duration) error {
	return r.define(ctx, fmt.Sprintf("ALTER TABLE %s.rows WITH gc_grace_seconds = %d", Keyspace, d/time.Second))
}

// Replicate gives the keyspace so many replicas in the first datacenter.
func (r *Ring) Replicate(ctx context.Context, replicas int) error {
	return r.define(ctx, fmt.Sprintf("ALTER KEYSPACE %s WITH replication = "+
		"{'class': 'NetworkTopologyStrategy', '%s': %d}", Keyspace, r.Spec.Datacenters[0].Name, replicas))
}

// define changes the schema, by one statement after the other.
func (r *Ring) define(ctx context.Context, statements ...string) error {
	nodes := r.NodeNames(ctx)
	if len(nodes) == 0 {
		return fmt.Errorf("%s: the ring has no nodes", statements[0])
	}
	return r.through(ctx, nodes[0], func(s *cqlclient.Session) error {
		for _, statement := range statements {
			if err := s.Query(statement).ExecContext(ctx); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

func (r *Ring) writeRows(ctx context.Context, level gocql.Consistency, nodes []string) error {
	for n, node := range nodes {
		err := r.through(ctx, node, func(s *cqlclient.Session) error {
			for i := n; i < Rows; i += len(nodes) {
				if err := s.Query("INSERT INTO "+Keyspace+".rows (id, value) VALUES (?, ?)", i,
					RowText(i)).Consistency(level).ExecContext(ctx); err != nil {
					return fmt.Errorf("write row %d at %s: %w", i, level, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// muchSize is how many random bytes each row has that FillMuch writes, and Much how many MiB take
// more than a minute to read or stream where the nodes are slow.
const (
	muchSize = 64 << 10
	Much     = 125
)

// FillMuch writes so many MiB into a table.
func (r *Ring) FillMuch(ctx context.Context, mebibytes int) error {
	if err := r.define(ctx, "CREATE TABLE "+Keyspace+".much (id int PRIMARY KEY, value blob)"); err != nil {
		return err
	}
	return r.through(ctx, r.NodeNames(ctx)[0], func(s *cqlclient.Session) error {
		value := make([]byte, muchSize)
		source := rand.NewChaCha8([32]byte{})
		for i := range mebibytes << 20 / muchSize {
			_, _ = source.Read(value) // never fails
			if err := s.Query("INSERT INTO "+Keyspace+".much (id, value) VALUES (?, ?)", i,
				value).Consistency(gocql.Quorum).ExecContext(ctx); err != nil {
				return fmt.Errorf("write row %d of much: %w", i, err)
			}
		}
		return nil
	})
}

// Slow has nodes compact and stream 1 MiB a second, which is the least that Cassandra can be asked
// for, or as much as they do by default.
func (r *Ring) Slow(ctx context.Context, nodes []string, slow bool) error {
	compaction, stream := "64", "24"
	if slow {
		compaction, stream = "1", "1"
	}
	for _, name := range nodes {
		for _, command := range [][]string{{"setcompactionthroughput", compaction},
			{"setstreamthroughput", "-m", stream}, {"setstreamthroughput", "-e", stream}} {
			if _, err := r.Run(ctx, name, append([]string{"nodetool"}, command...)...); err != nil {
				return fmt.Errorf("nodetool %s on %s: %w", strings.Join(command, " "), name, err)
			}
		}
	}
	return nil
}

// ReadBack reads all rows through every node, and fails if one is missing or not as it was written.
// Peers may see a node as down for a moment after it is ready, so what is unavailable is asked
// again; what is wrong is not.
func (r *Ring) ReadBack(ctx context.Context, level gocql.Consistency) error {
	for _, node := range r.NodeNames(ctx) {
		if err := r.ReadThrough(ctx, node, level); err != nil {
			return err
		}
	}
	return nil
}

// ReadThrough reads all rows through one node.
func (r *Ring) ReadThrough(ctx context.Context, node string, level gocql.Consistency) error {
	return r.through(ctx, node, func(s *cqlclient.Session) error {
		var seen map[int]string
		err := r.poll(ctx, reaction, "all rows can be read at "+level.String(), func(ctx context.Context) error {
			var err error
			seen, err = readAll(ctx, s, level)
			return err
		})
		if err != nil {
			return err
		}
		return compare(seen, level)
	})
}

// readAll reads all rows by their ids.
func readAll(ctx context.Context, s *cqlclient.Session, level gocql.Consistency) (map[int]string, error) {
	iter := s.Query("SELECT id, value FROM " + Keyspace + ".rows").Consistency(level).IterContext(ctx)
	seen := map[int]string{}
	var id int
	var value string
	for iter.Scan(&id, &value) {
		seen[id] = value
	}
	if err := iter.Close(); err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return seen, nil
}

// compare says what is wrong with the rows that were read.
func compare(seen map[int]string, level gocql.Consistency) error {
	for i := range Rows {
		if value, found := seen[i]; !found || value != RowText(i) {
			return fmt.Errorf("row %d is %q at %s, and %q was acknowledged; %d of %d rows were read", i, value, level,
				RowText(i), len(seen), Rows)
		}
	}
	if len(seen) != Rows {
		return fmt.Errorf("%d rows were read at %s, and %d were written", len(seen), level, Rows)
	}
	return nil
}

const doomed = Keyspace + ".doomed"

// WriteDoomed writes rows at ALL into a table that keeps deletions for a second.
func (r *Ring) WriteDoomed(ctx context.Context) error {
	if err := r.define(ctx,
		"CREATE TABLE "+doomed+" (id int PRIMARY KEY) WITH gc_grace_seconds = 1"); err != nil {
		return err
	}
	return r.forDoomed(ctx, "INSERT INTO "+doomed+" (id) VALUES (?)")
}

// DeleteDoomed deletes these rows at ALL.
func (r *Ring) DeleteDoomed(ctx context.Context) error {
	return r.forDoomed(ctx, "DELETE FROM "+doomed+" WHERE id = ?")
}

func (r *Ring) forDoomed(ctx context.Context, statement string) error {
	return r.through(ctx, r.NodeNames(ctx)[0], func(s *cqlclient.Session) error {
		for i := range Rows {
			if err := s.Query(statement, i).Consistency(gocql.All).ExecContext(ctx); err != nil {
				return fmt.Errorf("%s for row %d: %w", statement, i, err)
			}
		}
		return nil
	})
}

// NoneHasRisen fails if any of the rows that were deleted is there again.
func (r *Ring) NoneHasRisen(ctx context.Context) error {
	return r.through(ctx, r.NodeNames(ctx)[0], func(s *cqlclient.Session) error {
		var count int
		err := s.Query("SELECT count(*) FROM "+doomed).Consistency(gocql.All).ScanContext(ctx, &count)
		if err == nil && count > 0 {
			err = fmt.Errorf("%d of %d rows are there that were deleted", count, Rows)
		}
		return err
	})
}
