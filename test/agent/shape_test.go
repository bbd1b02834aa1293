//go:build cassandra

package agent

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
)

// connect opens a session at a pod, for as long as the test runs.
func connect(t *testing.T, p *pod, change func(*gocql.ClusterConfig)) *gocql.Session {
	t.Helper()
	c := gocql.NewCluster(net.JoinHostPort(p.address, fmt.Sprint(layout.NativePort)))
	c.Timeout, c.ConnectTimeout, c.DisableInitialHostLookup = time.Minute, time.Minute, true
	change(c)
	session, err := c.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// TestBornInAnotherShape has one node of another datacenter, which asks for passwords, begin with
// what two nodes of a ring had that asked nobody, each a replica of everything. CQL is closed until
// all rows are there.
func TestBornInAnotherShape(t *testing.T) {
	w := newWorld(t)
	sources := []*pod{w.newPod(0), w.newPod(1)}
	w.setSeeds(sources[0].address)
	spec, _ := w.bucket()
	succeeds := func(t *testing.T, p *pod, id string, o v1alpha1.OperationType, a *v1alpha1.OperationArguments) {
		t.Helper()
		began := time.Now()
		if s := w.operate(t, p, id, o, a); s.Phase != v1alpha1.OperationSucceeded {
			t.Fatalf("%s: %+v", id, s)
		}
		t.Logf("%s %s took %.2f s", o, id, time.Since(began).Seconds())
	}
	views := func(s *v1alpha1.CassandraNodeSpec) {
		s.Configuration.CassandraYaml = v1alpha1.Settings{"materialized_views_enabled": {Raw: []byte("true")}}
	}
	const rows, id = 300, "20260301T030000Z-1"
	var members []string
	w.part("source", func(t *testing.T) {
		for _, p := range sources {
			w.change(p.name, views)
			p.start()
		}
		w.awaitEmpty(sources...)
		w.form(sources...)
		var sessions []*gocql.Session
		for _, p := range sources {
			sessions = append(sessions, connect(t, p, func(c *gocql.ClusterConfig) { c.Consistency = gocql.All }))
			members = append(members, w.record(p.name).Status.HostID)
		}
		do := func(at int, statement string) {
			t.Helper()
			if err := sessions[at].Query(statement).ExecContext(t.Context()); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		for _, s := range []string{
			`ALTER KEYSPACE system_auth WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 2}`,
			`CREATE KEYSPACE "Shop" WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 2}`,
			`CREATE TYPE "Shop".place (street text, number int)`,
			`CREATE TABLE "Shop".orders (k int, c int, s text static, old text, at frozen<place>, v text,
				PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)`,
			`CREATE INDEX by_v ON "Shop".orders (v)`,
			`CREATE TABLE "Shop".counts (k int PRIMARY KEY, n counter)`,
			`CREATE TABLE "Shop".empty (k int PRIMARY KEY)`,
		} {
			do(0, s)
		}
		for k := range rows {
			do(k%2, fmt.Sprintf(`INSERT INTO "Shop".orders (k, c, s, v, old, at) VALUES (%d, 1, 's', 'v%d', 'o',
				{street: 'a', number: %d})`, k, k%10, k))
		}
		do(0, `ALTER TABLE "Shop".orders DROP old`) // of a table with a view none can be dropped
		do(0, `CREATE MATERIALIZED VIEW "Shop".by_number AS SELECT k, c, v FROM "Shop".orders
			WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)`)
		do(1, `DELETE FROM "Shop".orders WHERE k = 4`)
		for i := range 30 { // each of the two counts by itself, and has what the other has counted
			do(i%2, `UPDATE "Shop".counts SET n = n + 1 WHERE k = 1`)
		}
		do(1, `UPDATE "Shop".counts SET n = n - 7 WHERE k = 1`)
		for i, p := range sources {
			succeeds(t, p, "snapshot", v1alpha1.OperationSnapshot,
				&v1alpha1.OperationArguments{Tag: v1alpha1.BackupTagPrefix + id})
			succeeds(t, p, "upload", v1alpha1.OperationUpload,
				&v1alpha1.OperationArguments{Backup: &v1alpha1.BackupArguments{ID: id, Store: spec}})
			if i == 1 {
				succeeds(t, p, "complete", v1alpha1.OperationCompleteBackup, &v1alpha1.OperationArguments{
					Backup: &v1alpha1.BackupArguments{ID: id, Store: spec, Members: members, ClusterSpec: "{}"}})
			}
		}
	})
	for _, p := range sources {
		p.end()
	}
	w.part("another shape", func(t *testing.T) {
		logins, p := w.putSecrets(), w.newPod(2)
		w.setSeeds(p.address)
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			asksForPassword(s)
			views(s)
			s.Configuration.ClusterName, s.Configuration.DatacenterName = "test.reborn", "east"
		})
		p.start()
		w.awaitEmpty(p)
		began := time.Now()
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Join = ticket("restore/"+p.name, tokens(2)...)
			s.Join.Restore = &v1alpha1.DiskRestore{Store: spec, Cluster: clusterUID, Backup: id, HostID: members[0],
				Roles: v1alpha1.RolesFresh, Datacenters: map[string]int32{"east": 1}}
		})
		r := w.await(p.name, "joined", 5*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Join != nil && r.Status.Join.FinishedAt != nil && r.Status.Phase == v1alpha1.PhaseNormal
		})
		t.Logf("joined %.1f s after its ticket", time.Since(began).Seconds())
		tag := v1alpha1.RestoreTagPrefix + "1"
		a := &v1alpha1.OperationArguments{Restore: &v1alpha1.RestoreArguments{
			Tag: tag, Store: spec, Cluster: clusterUID,
			Backup: id, NewRing: true, Members: []string{r.Status.HostID}}}
		succeeds(t, p, "stage", v1alpha1.OperationStageTables, a)
		if s := w.operate(t, p, "load", v1alpha1.OperationLoadTables, a); s.Phase != v1alpha1.OperationSucceeded {
			t.Fatalf("%+v", s)
		}
		if c, err := net.DialTimeout("tcp", net.JoinHostPort(p.address, fmt.Sprint(layout.NativePort)),
			time.Second); err == nil {
			_ = c.Close()
			t.Error("CQL is open before the rows are there")
		}
		succeeds(t, p, "clear", v1alpha1.OperationClearSnapshot, &v1alpha1.OperationArguments{Tag: tag})
		w.joined(p, time.Minute)
		succeeds(t, p, "superuser", v1alpha1.OperationImportSuperuser, nil)
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficAdministrative })
		w.await(p.name, "administrative", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.ClientTraffic == v1alpha1.TrafficAdministrative
		})
		succeeds(t, p, "roles", v1alpha1.OperationSetRoles, &v1alpha1.OperationArguments{
			SuperuserSecret: superuserSecret, Replication: map[string]int32{"east": 1}})
		succeeds(t, p, "login", v1alpha1.OperationProveLogin,
			&v1alpha1.OperationArguments{SuperuserSecret: superuserSecret})
		for i, c := range []struct {
			query   string
			atLeast *int64
			says    string // with a colon if it is as it must be
		}{
			{`SELECT count(*) FROM "Shop".orders`, new(int64(rows - 1)), fmt.Sprint(": ", rows-1)},
			{`SELECT count(*), k FROM "Shop".orders`, new(int64(rows)), fmt.Sprintf("has %d, and must have", rows-1)},
			{`SELECT sum(n) FROM "Shop".counts`, new(int64(23)), ": 23"},
			{`SELECT n, k FROM "Shop".counts`, new(int64(24)), "has 23, and must have at least 24"},
			{`SELECT max(k) FROM "Shop".empty`, new(int64(0)), "has no number"},
			{`SELECT v, at FROM "Shop".orders`, new(int64(0)), "has no number"},
			{`SELECT k, c, at FROM "Shop".orders WHERE k = 77`, new(int64(77)), ": 77"},
			{`SELECT CAST(k AS decimal) FROM "Shop".orders WHERE k = 7`, new(int64(7)), ": 7"},
			{`SELECT CAST(k AS double) FROM "Shop".orders WHERE k = 7`, new(int64(7)), ": 7"},
			{`SELECT CAST(k AS tinyint) FROM "Shop".orders WHERE k = 7`, new(int64(7)), ": 7"},
			{`SELECT CAST(k AS varint) FROM "Shop".orders WHERE k = 7`, new(int64(7)), ": 7"},
			{`SELECT max(writetime(v)) FROM "Shop".orders`, new(began.Add(-time.Hour).UnixMicro()), ": 1"},
			{`SELECT JSON * FROM "Shop".orders`, nil, ": has a row"},
			{`SELECT * FROM "Shop".empty`, nil, "has no row"},
			{`SELECT v FROM "Shop".absent`, nil, "absent"},
		} {
			s := w.operate(t, p, fmt.Sprint("check-", i), v1alpha1.OperationCheckRows, &v1alpha1.OperationArguments{
				SuperuserSecret: superuserSecret, Checks: []v1alpha1.RowCheck{{Query: c.query, AtLeast: c.atLeast}}})
			if as := strings.HasPrefix(c.says, ":"); !strings.Contains(s.Message, c.says) ||
				as != (s.Phase == v1alpha1.OperationSucceeded) {
				t.Errorf("%s: %s %s, want %q", c.query, s.Phase, s.Message, c.says)
			}
		}
		session := connect(t, p, func(c *gocql.ClusterConfig) {
			c.Consistency = gocql.All
			c.Authenticator = gocql.PasswordAuthenticator{Username: logins.Superuser.User,
				Password: logins.Superuser.Password}
		})
		for query, want := range map[string]int{
			`SELECT count(*) FROM "Shop".orders`:                                                     rows - 1,
			`SELECT count(*) FROM "Shop".orders WHERE v = 'v3'`:                                      rows / 10,
			`SELECT count(*) FROM "Shop".by_number WHERE v = 'v5'`:                                   rows / 10,
			`SELECT at.number FROM "Shop".orders WHERE k = 77 LIMIT 1`:                               77,
			`SELECT n FROM "Shop".counts WHERE k = 1`:                                                23,
			`SELECT count(*) FROM "Shop".empty`:                                                      0,
			`SELECT count(*) FROM system_schema.dropped_columns WHERE keyspace_name = 'Shop'`:        1,
			`SELECT count(*) FROM system_auth.roles WHERE role = 'cassandra'`:                        1,
			`SELECT count(*) FROM system.peers_v2`:                                                   0,
			`SELECT count(*) FROM system_schema.keyspaces WHERE keyspace_name = 'system_auth'`:       1,
			`SELECT count(*) FROM system_schema.tables WHERE keyspace_name = 'Shop' ALLOW FILTERING`: 3,
		} {
			var got int64
			if err := session.Query(query).ScanContext(t.Context(), &got); err != nil || got != int64(want) {
				t.Errorf("%s: %d, %v; want %d", query, got, err, want)
			}
		}
		for _, keyspace := range []string{"Shop", "system_auth", "system_distributed", "system_traces"} {
			got, durable := map[string]string{}, false
			err := session.Query(`SELECT replication, durable_writes FROM system_schema.keyspaces WHERE
				keyspace_name = ?`, keyspace).ScanContext(t.Context(), &got, &durable)
			if err != nil || !durable || len(got) != 2 || got["east"] != "1" {
				t.Errorf("%s is replicated by %v, %t: %v", keyspace, got, durable, err)
			}
		}
		// A later count adds to the one in the backup.
		if err := session.Query(`UPDATE "Shop".counts SET n = n + 5 WHERE k = 1`).ExecContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		var n int64
		if err := session.Query(`SELECT n FROM "Shop".counts WHERE k = 1`).ScanContext(t.Context(), &n); err != nil ||
			n != 28 {
			t.Errorf("counted %d, %v; want 28", n, err)
		}
	})
}
