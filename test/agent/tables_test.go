//go:build cassandra

package agent

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/layout"
)

// TestTablesFromABackup has a ring that has grown since take in what tables had in a backup: merged
// with what was written later, in place of it, and into another keyspace with more replicas. What a
// table cannot hold is refused before the first byte.
func TestTablesFromABackup(t *testing.T) {
	w := newWorld(t)
	pods := []*pod{w.newPod(0), w.newPod(1)}
	w.setSeeds(pods[0].address)
	spec, to := w.bucket()
	for _, p := range pods {
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Configuration.CassandraYaml = v1alpha1.Settings{"materialized_views_enabled": {Raw: []byte("true")}}
		})
		p.start()
	}
	w.awaitEmpty(pods...)
	w.tickets(pods[0])
	w.member(pods[0], 15*time.Minute)
	c := gocql.NewCluster(net.JoinHostPort(pods[0].address, "9042"))
	c.Consistency, c.Timeout, c.ConnectTimeout, c.DisableInitialHostLookup = gocql.All, time.Minute, time.Minute, true
	session, err := c.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	do := func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if err := session.Query(s).ExecContext(t.Context()); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	count := func(query string, want int) {
		t.Helper()
		var got int
		if err := session.Query(query).ScanContext(t.Context(), &got); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", query, got, err, want)
		}
	}
	operate := func(p *pod, id string, o v1alpha1.OperationType, a *v1alpha1.OperationArguments,
		want v1alpha1.OperationPhase, words string) {
		t.Helper()
		began := time.Now()
		s := w.operate(t, p, id, o, a)
		t.Logf("%s %s took %.2f s", o, id, time.Since(began).Seconds())
		if s.Phase != want || !strings.Contains(s.Message, words) {
			t.Fatalf("%s %s: %+v, want %s with %q", o, id, s, want, words)
		}
	}
	const columns = `(k int, c int, s text static, at frozen<place>, v text, %s PRIMARY KEY (k, c))
		WITH CLUSTERING ORDER BY (c DESC)`
	const rows, id = 300, "20260301T030000Z-1"
	do(`CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 1}`,
		`CREATE TYPE shop.place (street text, number int)`, `CREATE TABLE shop.orders `+fmt.Sprintf(columns, "old text,"),
		`CREATE INDEX by_v ON shop.orders (v)`, `CREATE TABLE shop.counts (k int PRIMARY KEY, n counter)`,
		`UPDATE shop.counts SET n = n + 1 WHERE k = 1`)
	for k := range rows {
		do(fmt.Sprintf("INSERT INTO shop.orders (k, c, s, v, old, at) VALUES (%d, 1, 's', 'v%d', 'o', {street: 'a', "+
			"number: %d})", k, k%10, k))
	}
	do(`ALTER TABLE shop.orders DROP old`)
	source := w.record(pods[0].name).Status.HostID
	tag := v1alpha1.BackupTagPrefix + id
	backup := &v1alpha1.OperationArguments{Backup: &v1alpha1.BackupArguments{ID: id, Store: spec}}
	operate(pods[0], "snapshot", v1alpha1.OperationSnapshot, &v1alpha1.OperationArguments{Tag: tag}, "Succeeded", "")
	operate(pods[0], "upload", v1alpha1.OperationUpload, backup, "Succeeded", "")
	complete := backup.DeepCopy()
	complete.Backup.Members, complete.Backup.ClusterSpec = []string{source}, "{}"
	operate(pods[0], "complete", v1alpha1.OperationCompleteBackup, complete, "Succeeded", "")
	m, err := format.Decode[format.Manifest](object(t, to, format.ManifestKey(string(clusterUID), id, source)))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range m.Tables {
		if table.Keyspace == "shop" && table.Name == "orders" {
			t.Logf("the backup says of it:\n%s", table.Schema)
		}
	}

	w.change(pods[1].name, func(s *v1alpha1.CassandraNodeSpec) {
		s.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "grow/1"}, Mode: v1alpha1.JoinBootstrap,
			Tokens: tokens(1)}
	})
	w.member(pods[1], 15*time.Minute)
	do(`CREATE KEYSPACE copy WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 2}`,
		`CREATE TYPE copy.place (street text, number int, zip text)`,
		`CREATE TABLE copy.orders `+fmt.Sprintf(columns, "old text,"), `CREATE TABLE copy.lacks `+fmt.Sprintf(columns, ""),
		`CREATE TABLE copy.other `+strings.Replace(fmt.Sprintf(columns, "old text,"), "v text", "v int", 1),
		`CREATE TABLE copy.up `+strings.Replace(fmt.Sprintf(columns, "old text,"), "DESC", "ASC", 1),
		`CREATE TABLE shop.counted (k int PRIMARY KEY, n counter)`,
		`CREATE TABLE copy."Viewed" `+fmt.Sprintf(columns, "old text,"),
		`CREATE MATERIALIZED VIEW copy.by_v AS SELECT k, c, v FROM copy."Viewed" WHERE v IS NOT NULL AND k IS NOT NULL
		AND c IS NOT NULL PRIMARY KEY (v, k, c)`)
	// Later than the backup: rows that go by a tombstone for all, one for one, one that is newer.
	do(`INSERT INTO shop.orders (k, c, v) VALUES (3, 1, 'newer')`, `DELETE FROM shop.orders WHERE k = 4`)

	members := []string{source, w.record(pods[1].name).Status.HostID}
	arguments := func(tables ...v1alpha1.RestoredTable) *v1alpha1.OperationArguments {
		return &v1alpha1.OperationArguments{Restore: &v1alpha1.RestoreArguments{Tag: v1alpha1.RestoreTagPrefix + "1",
			Store: spec, Cluster: clusterUID, Backup: id, Tables: tables, Members: members}}
	}
	staging := filepath.Join(pods[0].root, layout.DataDir, "restore")
	for name, c := range map[string]struct {
		from, to, backup, words string
	}{
		"no-table":    {"shop.orders", "shop.orders_old", id, "there is no table shop.orders_old"},
		"no-keyspace": {"shop.orders", "shoq.orders", id, "there is no keyspace shoq"},
		"not-in-it":   {"shop.lorders", "shop.orders", id, "has no table shop.lorders"},
		"no-backup":   {"shop.orders", "", "20260301T030001Z-1", "the last that it has: " + id},
		"no-column":   {"shop.orders", "copy.lacks", id, "copy.lacks has no column old, which was text"},
		"other-type":  {"shop.orders", "copy.other", id, "column v of copy.other is int, and was text"},
		"other-order": {"shop.orders", "copy.up", id, "the primary key of copy.up is"},
		"counter":     {"shop.counts", "shop.counted", id, "shop.counts has counter n"},
		"views":       {"shop.orders", "copy.Viewed", id, "copy.Viewed has views, and is not replaced: drop copy.by_v first"},
	} {
		a := arguments(v1alpha1.RestoredTable{From: c.from, To: c.to})
		a.Restore.Backup, a.Restore.Replace = c.backup, name == "views"
		operate(pods[0], "refused/"+name, v1alpha1.OperationStageTables, a, "Failed", c.words)
		if _, err := os.Stat(staging); err == nil {
			t.Errorf("%s: something was downloaded", name)
		}
	}

	do(`TRUNCATE shop.orders`, `INSERT INTO shop.orders (k, c, v) VALUES (3, 1, 'newer')`,
		`DELETE FROM shop.orders WHERE k = 4`)
	a := arguments(v1alpha1.RestoredTable{From: "shop.orders"},
		v1alpha1.RestoredTable{From: "shop.orders", To: "copy.orders"})
	operate(pods[0], "early", v1alpha1.OperationLoadTables, a, "Failed", "what was downloaded is not there")
	for i, p := range pods {
		operate(p, fmt.Sprintf("stage/%d", i), v1alpha1.OperationStageTables, a, "Succeeded", "are downloaded")
	}
	count(`SELECT count(*) FROM shop.orders`, 1)
	for i, p := range pods {
		operate(p, fmt.Sprintf("load/%d", i), v1alpha1.OperationLoadTables, a, "Succeeded", "streamed")
	}
	for _, table := range []string{"shop.orders", "copy.orders"} {
		all := map[string]int{"shop.orders": rows - 1, "copy.orders": rows}[table]
		count("SELECT count(*) FROM "+table, all)
		count("SELECT at.number FROM "+table+" WHERE k = 77", 77)
	}
	count(`SELECT count(*) FROM shop.orders WHERE k = 3 AND v = 'newer' ALLOW FILTERING`, 1)
	count(`SELECT count(*) FROM shop.orders WHERE v = 'v5'`, rows/10)
	// In place of what was written later: that stays in the snapshot, and nothing else does.
	do(`INSERT INTO copy.orders (k, c, v) VALUES (9999, 1, 'later')`, `DELETE FROM copy.orders WHERE k = 4`)
	count(`SELECT count(*) FROM copy.orders`, rows)
	a = arguments(v1alpha1.RestoredTable{From: "shop.orders", To: "copy.orders"})
	a.Restore.Replace = true
	for i, p := range pods {
		operate(p, fmt.Sprintf("stage again/%d", i), v1alpha1.OperationStageTables, a, "Succeeded", "are downloaded")
	}
	table := &v1alpha1.OperationArguments{Keyspaces: []string{"copy"}, Tables: []string{"orders"}}
	kept := table.DeepCopy()
	kept.Tag = "replaced-orders"
	for i, p := range pods {
		operate(p, fmt.Sprintf("keep/%d", i), v1alpha1.OperationSnapshot, kept, "Succeeded", "snapshot replaced-orders")
	}
	operate(pods[0], "truncate", v1alpha1.OperationTruncate, table, "Succeeded", "truncated orders of copy")
	count(`SELECT count(*) FROM copy.orders`, 0)
	for i, p := range pods {
		operate(p, fmt.Sprintf("load again/%d", i), v1alpha1.OperationLoadTables, a, "Succeeded", "streamed")
	}
	count(`SELECT count(*) FROM copy.orders`, rows)
	count(`SELECT count(*) FROM copy.orders WHERE k = 9999`, 0)
	count(`SELECT count(*) FROM copy.orders WHERE k = 4`, 1)
	for _, p := range pods {
		files, _ := filepath.Glob(filepath.Join(p.root, layout.DataDir, "data", "copy", "orders-*", "snapshots",
			kept.Tag, "*-Data.db"))
		if len(files) == 0 {
			t.Errorf("%s keeps nothing of what was replaced", p.name)
		}
	}
	// The files of a node that is no member any more are another's.
	do(`TRUNCATE copy.orders`)
	a = arguments(v1alpha1.RestoredTable{From: "shop.orders", To: "copy.orders"})
	a.Restore.Tag, a.Restore.Members = v1alpha1.RestoreTagPrefix+"2", members[1:]
	operate(pods[0], "none", v1alpha1.OperationStageTables, a, "Failed", "was no member when the restore began")
	operate(pods[1], "stage", v1alpha1.OperationStageTables, a, "Succeeded", "")
	operate(pods[1], "load", v1alpha1.OperationLoadTables, a, "Succeeded", "")
	count(`SELECT count(*) FROM copy.orders`, rows)
	for i, p := range pods {
		operate(p, fmt.Sprintf("clear/%d", i), v1alpha1.OperationClearSnapshot, &v1alpha1.OperationArguments{
			Tag: fmt.Sprintf("%s%d", v1alpha1.RestoreTagPrefix, i+1)}, "Succeeded", "removed")
		left, _ := filepath.Glob(filepath.Join(p.root, layout.DataDir, "restore", "*"))
		if len(left) > 0 {
			t.Errorf("%s keeps %v", p.name, left)
		}
	}
}
