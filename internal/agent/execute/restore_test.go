package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

// fakeStore is read alone.
type fakeStore struct {
	store.Store
	*world
}

func (f fakeStore) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	return f.store(ctx, key)
}

func restores(s *v1alpha1.CassandraNodeSpec) {
	s.Join = ticket()
	s.Join.Restore = &v1alpha1.DiskRestore{Cluster: "earlier", Backup: "b1", HostID: hostID,
		Roles: v1alpha1.RolesFresh}
}

// No JVM starts before the disk is restored, however often the store fails.
func TestADiskIsRestoredBeforeTheJVMStarts(t *testing.T) {
	w := newWorld(t)
	sum := sha256.Sum256([]byte("rows"))
	f := format.File{Name: "Data.db", Size: 4, SHA256: hex.EncodeToString(sum[:])}
	manifest, err := json.Marshal(format.Manifest{Version: format.Version, Backup: "b1", Cluster: "earlier",
		Node: format.Node{HostID: hostID}, Tables: []format.Table{{Keyspace: "shop", Name: "t", ID: "1",
			SSTables: []format.SSTable{{Name: "nb-1-big", Files: []format.File{f}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	failures := 0
	w.store = func(_ context.Context, key string) (io.ReadCloser, error) {
		content := string(manifest)
		if strings.Contains(key, "/blobs/") {
			if content = "rows"; failures < 2 {
				failures++
				return nil, errors.New("the store is not available")
			}
		}
		return io.NopCloser(strings.NewReader(content)), nil
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
