//go:build cassandra

package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/layout"
)

var component = regexp.MustCompile(`^([a-z]{2}-[^-]+-[a-z]+)-(.+)$`)

// upload writes all tables of a node that is stopped into a store as a backup, and returns its
// manifest.
func upload(t *testing.T, to store.Store, p *pod, n format.Node) *format.Manifest {
	t.Helper()
	m := &format.Manifest{Version: format.Version, Backup: "b1", Cluster: string(clusterUID), Node: n,
		TakenAt: time.Now(), Replication: map[string]map[string]string{"shop": nil, "logs": nil, "system_auth": nil}}
	data := filepath.Join(p.root, layout.DataDir, "data")
	directories, err := filepath.Glob(data + "/*/*")
	if err != nil || len(directories) == 0 {
		t.Fatalf("no tables in %s: %v", data, err)
	}
	put := func(key string, content []byte) {
		t.Helper()
		if err := to.Put(t.Context(), key, bytes.NewReader(content), int64(len(content))); err != nil &&
			!errors.Is(err, store.ErrExists) {
			t.Fatal(err)
		}
	}
	for _, dir := range directories {
		keyspace := filepath.Base(filepath.Dir(dir))
		name, id, _ := strings.Cut(filepath.Base(dir), "-")
		if keyspace == "system" {
			continue
		}
		table := format.Table{Keyspace: keyspace, Name: name, ID: id}
		sstables := map[string]int{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			parts := component.FindStringSubmatch(e.Name())
			if e.IsDir() || parts == nil {
				continue
			}
			content, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(content)
			f := format.File{Name: parts[2], Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
			put(format.BlobKey(m.Cluster, f.SHA256), content)
			at, known := sstables[parts[1]]
			if !known {
				at = len(table.SSTables)
				sstables[parts[1]] = at
				table.SSTables = append(table.SSTables, format.SSTable{Name: parts[1]})
			}
			table.SSTables[at].Files = append(table.SSTables[at].Files, f)
		}
		m.Tables = append(m.Tables, table)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	put(format.ManifestKey(m.Cluster, m.Backup, n.HostID), text)
	return m
}

// session opens one at a node that asks for passwords.
func (p *pod) session(t *testing.T, login cassandra.Login) *gocql.Session {
	t.Helper()
	c := gocql.NewCluster(netip.AddrPortFrom(netip.MustParseAddr(p.address), layout.NativePort).String())
	c.Consistency, c.Timeout, c.ConnectTimeout = gocql.LocalQuorum, 20*time.Second, 5*time.Second
	c.DisableInitialHostLookup = true
	c.Authenticator = gocql.PasswordAuthenticator{Username: login.User, Password: login.Password}
	session, err := c.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

// reborn looks at what a node has that was made from the backup.
func reborn(t *testing.T, session *gocql.Session, rows int, roles v1alpha1.RestoredRoles, logs int) {
	t.Helper()
	for query, want := range map[string]int{
		`SELECT count(*) FROM system_schema.keyspaces WHERE keyspace_name = 'logs'`:       logs,
		`SELECT count(*) FROM system_schema.tables WHERE keyspace_name = 'logs'`:          logs,
		`SELECT count(*) FROM system_schema.columns WHERE keyspace_name = 'logs'`:         2 * logs,
		`SELECT count(*) FROM system_schema.indexes WHERE keyspace_name = 'logs'`:         logs,
		`SELECT count(*) FROM system_schema.types WHERE keyspace_name = 'logs'`:           logs,
		`SELECT count(*) FROM system_schema.dropped_columns WHERE keyspace_name = 'logs'`: logs,
		`SELECT count(*) FROM shop.orders`:                                                rows,
		`SELECT count(*) FROM shop.orders WHERE v = 'v3'`:                                 rows / 10,
		`SELECT at.number FROM shop.orders WHERE k = 77`:                                  77,
		`SELECT count(*) FROM system_schema.dropped_columns WHERE keyspace_name = 'shop'`: 1,
		`SELECT count(*) FROM system_auth.roles WHERE role = 'clerk'`: map[v1alpha1.RestoredRoles]int{
			v1alpha1.RolesFresh: 0, v1alpha1.RolesRestore: 1}[roles],
		`SELECT count(*) FROM system.peers_v2`: 0,
	} {
		var got int
		if err := session.Query(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", query, got, err, want)
		}
	}
}

// TestBornFromABackup has a node with an empty disk, in a ring of another name, begin with what
// another one had: once with roles of its own and one of two keyspaces, and once with all and the
// roles in the backup. Nothing is left of a keyspace that does not come, when one of its name is
// made later.
func TestBornFromABackup(t *testing.T) {
	w := newWorld(t)
	source := w.newPod(0)
	w.setSeeds(source.address)
	logins := w.putSecrets()
	spec, backups := w.bucket()
	succeeds := func(p *pod, id string, o v1alpha1.OperationType, a *v1alpha1.OperationArguments) {
		w.t.Helper()
		if s := w.operate(w.t, p, id, o, a); s.Phase != v1alpha1.OperationSucceeded {
			w.t.Fatalf("%s: %+v", id, s)
		}
	}
	// opens makes the roles of a node that has joined, as the operator does, and opens it.
	opens := func(p *pod, written *v1alpha1.OperationArguments) {
		w.t.Helper()
		succeeds(p, "superuser", v1alpha1.OperationImportSuperuser, written)
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficAdministrative })
		w.await(p.name, "administrative", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.ClientTraffic == v1alpha1.TrafficAdministrative
		})
		succeeds(p, "roles", v1alpha1.OperationSetRoles, &v1alpha1.OperationArguments{SuperuserSecret: superuserSecret,
			Replication: map[string]int32{"dc1": 1}})
		succeeds(p, "login", v1alpha1.OperationProveLogin,
			&v1alpha1.OperationArguments{SuperuserSecret: superuserSecret})
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficOpen })
		w.await(p.name, "ready", time.Minute, func(r *v1alpha1.CassandraNode) bool { return r.Status.Ready })
	}
	const rows = 500
	var had format.Node
	w.part("source", func(t *testing.T) {
		w.change(source.name, asksForPassword)
		source.start()
		w.awaitEmpty(source)
		w.tickets(source)
		w.joined(source, 5*time.Minute)
		opens(source, nil)
		session, err := source.logIn(t.Context(), logins.Superuser)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		for _, statement := range []string{
			`CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 1}`,
			`CREATE TYPE shop.place (street text, number int)`,
			`CREATE TABLE shop.orders (k int PRIMARY KEY, v text, old text, at frozen<shop.place>)`,
			`CREATE INDEX by_v ON shop.orders (v)`,
			`CREATE KEYSPACE logs WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 1}`,
			`CREATE TYPE logs.place (street text)`,
			`CREATE TABLE logs.all (k int PRIMARY KEY, v text, old text)`,
			`CREATE INDEX by_v ON logs.all (v)`,
			`ALTER TABLE logs.all DROP old`,
			`INSERT INTO logs.all (k, v) VALUES (1, 'x')`,
			`CREATE ROLE clerk WITH PASSWORD = 'clerk' AND LOGIN = true`,
		} {
			if err := session.Change(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		for k := range rows {
			if err := session.Change(t.Context(), fmt.Sprintf("INSERT INTO shop.orders (k, v, old, at) VALUES "+
				"(%d, 'v%d', 'x', {street: 'a', number: %d})", k, k%10, k)); err != nil {
				t.Fatal(err)
			}
		}
		if err := session.Change(t.Context(), `ALTER TABLE shop.orders DROP old`); err != nil {
			t.Fatal(err)
		}
		w.change(source.name, func(s *v1alpha1.CassandraNodeSpec) { s.State = v1alpha1.StateStopped })
		r := w.await(source.name, "stopped", 2*time.Minute, phase(v1alpha1.PhaseStopped))
		had = format.Node{Name: source.name, HostID: r.Status.HostID, Datacenter: "dc1", Rack: "r1",
			Tokens: r.Status.Tokens, CassandraVersion: w.version}
		m := upload(t, backups, source, had)
		t.Logf("%d tables are backed up", len(m.Tables))
		source.end()
	})
	for i, roles := range []v1alpha1.RestoredRoles{v1alpha1.RolesFresh, v1alpha1.RolesRestore} {
		w.part("born with roles "+string(roles), func(t *testing.T) {
			logins = w.putSecrets() // others than the source had
			p := w.newPod(i + 1)
			w.setSeeds(p.address)
			w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
				asksForPassword(s)
				s.Configuration.ClusterName, s.Configuration.RackName = "test.reborn"+string(roles), "r1"
			})
			p.start()
			w.awaitEmpty(p)
			began := time.Now()
			w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
				s.Join = ticket("restore/"+p.name, had.Tokens...)
				s.Join.SystemAuthReplicationFactor = 1
				s.Join.Restore = &v1alpha1.DiskRestore{Store: spec, Cluster: clusterUID, Backup: "b1",
					HostID: had.HostID, Roles: roles}
				if roles == v1alpha1.RolesFresh {
					s.Join.Restore.Keyspaces = []string{"shop"}
				}
			})
			w.joined(p, 5*time.Minute)
			t.Logf("joined %.1f s after its ticket", time.Since(began).Seconds())
			if id := w.record(p.name).Spec.Member.HostID; id == had.HostID {
				t.Errorf("it has the host id of the source, %s", id)
			}
			var written *v1alpha1.OperationArguments
			if roles == v1alpha1.RolesRestore {
				now := metav1.NewTime(time.Now().Truncate(time.Second))
				written = &v1alpha1.OperationArguments{WrittenAt: &now}
			}
			opens(p, written)
			session := p.session(t, logins.Superuser)
			if roles == v1alpha1.RolesRestore {
				reborn(t, session, rows, roles, 1)
				p.end()
				return
			}
			reborn(t, session, rows, roles, 0)
			for _, statement := range []string{
				`CREATE KEYSPACE logs WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 1}`,
				`CREATE TABLE logs.some (k int PRIMARY KEY, v int)`,
			} {
				if err := session.Query(statement).Exec(); err != nil {
					t.Fatal(err)
				}
			}
			for _, state := range []v1alpha1.NodeState{v1alpha1.StateStopped, v1alpha1.StateRunning} {
				w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.State = state })
				w.await(p.name, string(state), 3*time.Minute, func(r *v1alpha1.CassandraNode) bool {
					return (r.Status.Phase == v1alpha1.PhaseStopped) == (state == v1alpha1.StateStopped) &&
						(state == v1alpha1.StateStopped || r.Status.Ready)
				})
			}
			session = p.session(t, logins.Superuser)
			for query, want := range map[string]int{
				`SELECT count(*) FROM system_schema.tables WHERE keyspace_name = 'logs'`:          1,
				`SELECT count(*) FROM system_schema.columns WHERE keyspace_name = 'logs'`:         2,
				`SELECT count(*) FROM system_schema.indexes WHERE keyspace_name = 'logs'`:         0,
				`SELECT count(*) FROM system_schema.dropped_columns WHERE keyspace_name = 'logs'`: 0,
				`SELECT count(*) FROM logs.some`:                                                  0,
			} {
				var got int
				if err := session.Query(query).Scan(&got); err != nil || got != want {
					t.Errorf("%s: %d, %v; want %d", query, got, err, want)
				}
			}
			p.end()
		})
	}
}
