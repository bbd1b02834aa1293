package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
)

// fakeStore is read alone.
type fakeStore struct {
	store.Store
	*world
}

func (f fakeStore) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	return f.store(ctx, key)
}

// List implements store.Store: there is no commit log.
func (fakeStore) List(context.Context, string, func(store.Object) error) error { return nil }

func restores(s *v1alpha1.CassandraNodeSpec) {
	s.Join = ticket()
	s.Join.Restore = &v1alpha1.DiskRestore{Cluster: "earlier", Backup: "b1", HostID: hostID,
		Roles: v1alpha1.RolesFresh}
}

// backedUp is a store with a backup of tables, each of one file.
func (w *world) backedUp(tables ...string) func(context.Context, string) (io.ReadCloser, error) {
	sum := sha256.Sum256([]byte("rows"))
	f := format.File{Name: "Data.db", Size: 4, SHA256: hex.EncodeToString(sum[:])}
	m := format.Manifest{Version: format.Version, Backup: "b1", Cluster: "earlier", Node: format.Node{HostID: hostID}}
	for _, name := range tables {
		keyspace, table, _ := strings.Cut(name, ".")
		m.Tables = append(m.Tables, format.Table{Keyspace: keyspace, Name: table, ID: "1",
			SSTables: []format.SSTable{{Name: "nb-1-big", Files: []format.File{f}}}})
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	return func(_ context.Context, key string) (io.ReadCloser, error) {
		content := string(manifest)
		if strings.Contains(key, "/blobs/") {
			content = "rows"
		}
		return io.NopCloser(strings.NewReader(content)), nil
	}
}

// No JVM starts before the disk is restored, however often the store fails.
func TestADiskIsRestoredBeforeTheJVMStarts(t *testing.T) {
	w := newWorld(t)
	failures := 0
	backup := w.backedUp("shop.t")
	w.store = func(ctx context.Context, key string) (io.ReadCloser, error) {
		if strings.Contains(key, "/blobs/") && failures < 2 {
			failures++
			return nil, errors.New("the store is not available")
		}
		return backup(ctx, key)
	}
	a, _ := w.run()
	w.await("word of the empty disk", func() bool { return w.lastStatus().Disk == v1alpha1.DiskEmpty })
	w.edit(a, restores)
	w.await("start", func() bool { return w.state.Process != nil })
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.memory.Join; failures != 2 || len(w.placed) != 1 || w.placed[0] != "shop/t-1/nb-1-big-Data.db" ||
		!j.Restored || j.Attempts != 1 {
		t.Errorf("%d failures, placed %v, %+v", failures, w.placed, j)
	}
}

// The commit log is replayed of the tables of users alone, at each start until the node was NORMAL:
// with those of Cassandra the node would take the peers of the one that it was made from for its
// own.
func TestALogIsReplayedOfTheTablesOfUsers(t *testing.T) {
	w := newWorld(t)
	w.logVolume = t.TempDir()
	w.store = w.backedUp("shop.orders", "system.peers_v2", "system_auth.roles", "shop.carts")
	a, _ := w.run()
	w.await("word of the empty disk", func() bool { return w.lastStatus().Disk == v1alpha1.DiskEmpty })
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) {
		restores(s)
		s.Join.Restore.PointInTime = &metav1.Time{Time: time.Date(2026, 3, 1, 14, 3, 10, 0, time.UTC)}
	})
	replays := func(start uint64) bool {
		t.Helper()
		w.await("start", func() bool { return w.state.Process != nil && w.state.Process.StartID == start })
		w.mu.Lock()
		defer w.mu.Unlock()
		until := string(w.installed[config.CommitLogArchiving])
		if strings.Contains(until, "restore_point_in_time=") && !strings.Contains(until, "=2026:03:01 14:03:10.000000\n") {
			t.Errorf("replayed %q", until)
		}
		return slices.Contains(w.command, "cassandra.replayList=shop.carts,shop.orders") && until != ""
	}
	if !replays(1) {
		t.Errorf("at the first start: %v", w.command)
	}
	dies := func(s *initapi.State) {
		s.Exits = append(s.Exits, initapi.Exit{Process: *s.Process, EndedAt: time.Now(), Code: 1})
		s.Process = nil
	}
	w.changeInit(dies)
	if !replays(2) {
		t.Errorf("at the start after a death: %v", w.command)
	}
	w.change(func() {
		w.ring = ring(false)
		w.disk.HasData, w.disk.Bootstrapped, w.disk.HostID = true, node.WordCompleted, hostID
	})
	w.await("join", func() bool { j := w.lastStatus().Join; return j != nil && j.FinishedAt != nil })
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) { s.Join, s.Member = nil, &v1alpha1.Member{HostID: hostID} })
	w.changeInit(dies)
	if replays(3) || len(w.installed[config.CommitLogArchiving]) > 0 {
		t.Errorf("at a start as a member: %v", w.command)
	}
}

// A ticket is taken back while the disk is being restored.
func TestARestoreGivesWay(t *testing.T) {
	w := newWorld(t)
	begun := make(chan struct{}, 100)
	w.store = func(ctx context.Context, _ string) (io.ReadCloser, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	a, _ := w.run()
	w.await("word of the empty disk", func() bool { return w.lastStatus().Disk == v1alpha1.DiskEmpty })
	w.edit(a, restores)
	<-begun
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) { s.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "test"} })
	w.await("its withdrawal", func() bool { j := w.lastStatus().Join; return j != nil && j.WithdrawnAt != nil })
}
