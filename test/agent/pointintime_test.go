//go:build cassandra

package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/layout"
)

func (w *world) session(p *pod) *gocql.Session {
	w.t.Helper()
	c := gocql.NewCluster(net.JoinHostPort(p.address, "9042"))
	c.Consistency, c.Timeout, c.ConnectTimeout = gocql.LocalQuorum, 20*time.Second, 20*time.Second
	c.DisableInitialHostLookup = true
	session, err := c.CreateSession()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(session.Close)
	return session
}

// known are rows by their key, with the timestamps at which they were written, in microseconds.
type known struct {
	mu   sync.Mutex
	rows map[int]int64
}

// write rows of some KiB until it fails, as it does when the JVM is killed.
func (k *known) write(session *gocql.Session, ended chan<- error) {
	value := strings.Repeat("v", 2048)
	for i := 0; ; i++ {
		at := time.Now().UnixMicro()
		if err := session.Query(`INSERT INTO shop.orders (k, v) VALUES (?, ?) USING TIMESTAMP ?`, i, value, at).
			ExecContext(context.Background()); err != nil {
			ended <- err
			return
		}
		k.mu.Lock()
		k.rows[i] = at
		k.mu.Unlock()
	}
}

func covered(t *testing.T, from store.Store) format.Coverage {
	t.Helper()
	out := format.Coverage{}
	if err := from.List(t.Context(), format.CoveredPrefix(string(clusterUID)), func(o store.Object) error {
		hostID, i, err := format.ParseCovered(string(clusterUID), o.Key)
		out.Add(hostID, i)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPointInTime has a node whose commit log is kept, by what its agent does, killed while a
// client writes; and another one born from its backup and that log, up to a time in the middle of
// the writes: what was acknowledged with a timestamp before it is there, and nothing later.
func TestPointInTime(t *testing.T) {
	w := newWorld(t)
	spec, to := w.bucket()
	w.part("plain", func(t *testing.T) { w.pointInTime(t, 0, "", spec, to) })
	w.part("LZ4", func(t *testing.T) { w.pointInTime(t, 2, `[{"class_name": "LZ4Compressor"}]`, spec, to) })
}

func (w *world) pointInTime(t *testing.T, ordinal int, compression string, spec v1alpha1.BackupStoreSpec,
	to store.Store) {
	p := w.newPod(ordinal)
	w.setSeeds(p.address)
	w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
		s.Configuration.CassandraYaml = v1alpha1.Settings{"commitlog_segment_size": {Raw: []byte(`"1MiB"`)}}
		if compression != "" {
			s.Configuration.CassandraYaml["commitlog_compression"] = v1alpha1.Value{Raw: []byte(compression)}
		}
		s.CommitLog = &v1alpha1.CommitLogArchive{Store: spec, MaxDisk: 10,
			UploadEvery: metav1.Duration{Duration: 3 * time.Second}}
	})
	p.start()
	w.awaitEmpty(p)
	w.tickets(p)
	w.member(p, 5*time.Minute)
	session := w.session(p)
	for _, statement := range []string{
		`CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 1}`,
		`CREATE TABLE shop.orders (k int PRIMARY KEY, v text)`,
		`CREATE TABLE shop.empty (k int PRIMARY KEY, v text)`,
		`INSERT INTO shop.orders (k, v) VALUES (-1, 'in the backup')`,
	} {
		if err := session.Query(statement).ExecContext(t.Context()); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	r := w.await(p.name, "covered", time.Minute, func(r *v1alpha1.CassandraNode) bool {
		return r.Status.CommitLog != nil && r.Status.CommitLog.CoveredFrom != nil
	})
	hostID, tokens := r.Status.HostID, r.Status.Tokens
	backup := fmt.Sprintf("20260301T030000Z-%d", ordinal)
	about := &v1alpha1.OperationArguments{Backup: &v1alpha1.BackupArguments{ID: backup, Store: spec}}
	if s := w.operate(t, p, backup+"/snapshot", v1alpha1.OperationSnapshot,
		&v1alpha1.OperationArguments{Tag: v1alpha1.BackupTagPrefix + backup}); s.Phase != v1alpha1.OperationSucceeded {
		t.Fatalf("%+v", s)
	}
	k, ended := &known{rows: map[int]int64{}}, make(chan error, 1)
	go k.write(session, ended)
	if s := w.operate(t, p, backup+"/upload", v1alpha1.OperationUpload, about); s.Phase != v1alpha1.OperationSucceeded {
		t.Fatalf("%+v", s)
	}
	<-time.After(20 * time.Second)
	// Cassandra deletes segments whose rows are flushed.
	for _, keyspace := range []string{"shop", "system", "system_schema", "system_auth", "system_distributed",
		"system_traces"} {
		if answer := p.jolokia(`{"type":"exec","mbean":"org.apache.cassandra.db:type=StorageService","operation":` +
			`"forceKeyspaceFlush(java.lang.String,[Ljava.lang.String;)","arguments":["` + keyspace +
			`",[]]}`); !strings.Contains(answer, `"status":200`) {
			t.Fatalf("flush %s: %s", keyspace, answer)
		}
	}
	<-time.After(5 * time.Second)
	until := time.Now().Truncate(time.Second)
	<-time.After(5 * time.Second)
	p.kill(p.jvm(), syscall.SIGKILL)
	t.Logf("the client ends: %v", <-ended)
	session.Close()
	deadline := time.Now().Add(time.Minute)
	for {
		c := covered(t, to)[hostID]
		if len(c) != 1 || c[0].From.After(r.Status.CommitLog.CoveredFrom.Time) {
			t.Fatalf("there is a hole: %v", c)
		}
		if !c[0].To.Before(until) {
			t.Logf("covered %s, %.1f s after T", c[0], time.Since(until).Seconds())
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("covered %s does not come to %s", c[0], until)
		}
		<-time.After(time.Second)
	}
	p.end()
	segments := map[string]int64{}
	if err := to.List(t.Context(), format.LogPrefix(string(clusterUID), hostID), func(o store.Object) error {
		_, s, _, err := format.ParsePart(string(clusterUID), o.Key)
		segments[s.Name] += o.Size
		return err
	}); err != nil {
		t.Fatal(err)
	}
	links, _ := filepath.Glob(filepath.Join(p.root, layout.DataDir, ".helenus/log/*.log"))
	there, _ := filepath.Glob(filepath.Join(p.root, layout.DataDir, "commitlog/*.log"))
	t.Logf("%d rows acknowledged; %d segments in the store, %d links, %d in the commit log", len(k.rows), len(segments),
		len(links), len(there))
	for _, name := range there {
		delete(segments, filepath.Base(name))
	}
	if len(segments) == 0 {
		t.Errorf("no segment is in the store that Cassandra has deleted")
	}

	q := w.newPod(ordinal + 1)
	w.setSeeds(q.address)
	w.change(q.name, func(s *v1alpha1.CassandraNodeSpec) {
		s.Configuration.ClusterName, s.Configuration.RackName = "test.reborn", "r1"
	})
	q.start()
	w.awaitEmpty(q)
	began := time.Now()
	w.change(q.name, func(s *v1alpha1.CassandraNodeSpec) {
		s.Join = ticket("restore/"+q.name, tokens...)
		s.Join.Restore = &v1alpha1.DiskRestore{Store: spec, Cluster: clusterUID, Backup: backup, HostID: hostID,
			Roles: v1alpha1.RolesFresh, PointInTime: &metav1.Time{Time: until}}
	})
	w.member(q, 5*time.Minute)
	t.Logf("joined %.1f s after its ticket", time.Since(began).Seconds())
	session = w.session(q)
	found := map[int]int64{}
	var key int
	var at int64
	rows := session.Query(`SELECT k, writetime(v) FROM shop.orders`).PageSize(100).IterContext(t.Context())
	for rows.Scan(&key, &at) {
		found[key] = at
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	early, missing, late := 0, 0, 0
	for key, at := range k.rows {
		if at <= until.UnixMicro() {
			early++
			if found[key] != at {
				missing++
			}
		}
	}
	for _, at := range found {
		if at > until.UnixMicro() {
			late++
		}
	}
	t.Logf("T is %s; %d of %d rows were acknowledged with a timestamp before it, %d are missing, %d later ones there",
		until.UTC(), early, len(k.rows), missing, late)
	if missing > 0 || late > 0 || early == 0 || early == len(k.rows) || found[-1] == 0 {
		t.Errorf("it is not the state of that time; row of the backup %d", found[-1])
	}
	var peers int
	if err := session.Query(`SELECT count(*) FROM system.peers_v2`).ScanContext(t.Context(), &peers); err != nil ||
		peers != 0 {
		t.Errorf("%d peers, %v", peers, err)
	}
	// What is written later is not held to that time when the JVM starts again.
	if err := session.Query(`INSERT INTO shop.empty (k, v) VALUES (1, 'later')`).ExecContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-time.After(11 * time.Second) // until it is synced
	session.Close()
	q.kill(q.jvm(), syscall.SIGKILL)
	w.await(q.name, "down", time.Minute, func(r *v1alpha1.CassandraNode) bool { return !r.Status.Ready })
	w.await(q.name, "ready again", 5*time.Minute, func(r *v1alpha1.CassandraNode) bool { return r.Status.Ready })
	var v string
	if err := w.session(q).Query(`SELECT v FROM shop.empty WHERE k = 1`).ScanContext(t.Context(), &v); err != nil ||
		v != "later" {
		t.Errorf("what was written after the restore is %q, %v", v, err)
	}
	text, err := os.ReadFile(filepath.Join(q.root, layout.RenderedDir, config.CommitLogArchiving))
	if err != nil || strings.Contains(string(text), "restore_point_in_time=2") {
		t.Errorf("the point in time is still in %s: %v", config.CommitLogArchiving, err)
	}
	q.end()
}
