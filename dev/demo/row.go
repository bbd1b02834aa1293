package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/cqlclient"
	"helenus.io/helenus/dev/demo/progress"
)

// row writes a row through one node and reads it through another, in the next rack, both at QUORUM:
// two of three copies must know it.
func (u *up) row(ctx context.Context) error {
	nodes := nodeNames(u.sample)
	writer, reader := nodes[0], nodes[min(1, len(nodes)-1)]
	written := fmt.Sprintf("Helenus was believed, %s", time.Now().UTC().Format(time.RFC3339))
	err := u.steps.Run(ctx, "a row is written at QUORUM through "+writer,
		func(ctx context.Context, s *progress.Step) error {
			s.Note("%q", written)
			return u.through(ctx, writer, func(session *cqlclient.Session) error {
				for _, statement := range []string{
					createKeyspace(u.sample),
					"CREATE TABLE IF NOT EXISTS demo.greetings (id text PRIMARY KEY, message text)",
				} {
					if err := session.Query(statement).ExecContext(ctx); err != nil {
						return fmt.Errorf("%s: %w", statement, err)
					}
				}
				return session.Query("INSERT INTO demo.greetings (id, message) VALUES (?, ?)", "first",
					written).Consistency(gocql.Quorum).ExecContext(ctx)
			})
		})
	if err != nil {
		return err
	}
	return u.steps.Run(ctx, "it is read at QUORUM through "+reader, func(ctx context.Context, s *progress.Step) error {
		return u.through(ctx, reader, func(session *cqlclient.Session) error {
			var got string
			if err := session.Query("SELECT message FROM demo.greetings WHERE id = ?",
				"first").Consistency(gocql.Quorum).ScanContext(ctx, &got); err != nil {
				return err
			}
			if got != written {
				return fmt.Errorf("read %q, and %q was written", got, written)
			}
			s.Note("%q", got)
			return nil
		})
	})
}

func (u *up) through(ctx context.Context, pod string, do func(*cqlclient.Session) error) error {
	session, err := cqlclient.Connect(ctx, u.cluster, u.namespace, pod)
	if err != nil {
		return err
	}
	defer session.Close()
	return do(session)
}

// createKeyspace gives every datacenter the copies that the cluster plans for.
func createKeyspace(cluster *v1alpha1.CassandraCluster) string {
	replication := []string{"'class': 'NetworkTopologyStrategy'"}
	for i := range cluster.Spec.Datacenters {
		dc := &cluster.Spec.Datacenters[i]
		one := &v1alpha1.CassandraCluster{
			Spec: v1alpha1.CassandraClusterSpec{Datacenters: cluster.Spec.Datacenters[i : i+1]},
		}
		replication = append(replication, fmt.Sprintf("'%s': %d", orElse(dc.DatacenterName, dc.Name),
			min(int(dc.PlannedReplicationFactor), nodesOf(one))))
	}
	return "CREATE KEYSPACE IF NOT EXISTS demo WITH replication = {" + strings.Join(replication, ", ") + "}"
}

// nodeNames are the first nodes of each rack, in the order of the racks.
func nodeNames(cluster *v1alpha1.CassandraCluster) []string {
	var names []string
	for _, dc := range cluster.Spec.Datacenters {
		for _, rack := range dc.Racks {
			names = append(names, v1alpha1.NodeName(cluster.Name, dc.Name, rack.Name, 0))
		}
	}
	return names
}
