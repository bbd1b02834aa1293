package safeguard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	agentdisk "helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// presumed is a store of which each manifest counts as written, as long as it is not there.
type presumed struct{ store.Store }

func (p presumed) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	content, err := p.Store.Get(ctx, key)
	if !errors.Is(err, store.ErrNotFound) || !strings.HasSuffix(key, ".manifest") {
		return content, err
	}
	parts := strings.Split(key, "/")
	text, err := json.Marshal(format.Manifest{Version: format.Version, Cluster: parts[0],
		Backup: strings.TrimSuffix(parts[3], ".manifest"), Node: format.Node{HostID: parts[2]}})
	return io.NopCloser(bytes.NewReader(text)), err
}

// late is a store of which each file counts as written, as long as it is not there.
type late struct{ store.Store }

func (l late) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	if strings.Contains(key, "/blobs/") {
		return nil
	}
	return l.Store.Put(ctx, key, content, size)
}

// The description of a backup comes after the manifests of all of its members, and a manifest after
// its files.
func TestADescriptionComesLast(t *testing.T) {
	wrap := func(broken func(store.Store) store.Store) trial.Trial {
		return trial.Trial{Scenario: found(t, "backup"), Seed: 1, Wrap: host(func(_ *pod.Sandbox, h *execute.Host) {
			open := h.Store
			h.Store = func(ctx context.Context, spec *v1alpha1.BackupStoreSpec) (store.Store, error) {
				s, err := open(ctx, spec)
				return broken(s), err
			}
		})}
	}
	holds(t, wrap(func(s store.Store) store.Store { return s }))
	caught(t, wrap(func(s store.Store) store.Store { return presumed{s} }), "it is described without the manifest of")
	caught(t, wrap(func(s store.Store) store.Store { return late{s} }), "is not there")
}

// named takes each file for the first one that had its name, as a store would that has them by
// that.
type named struct {
	execute.Disk
	had map[string][]byte
}

func (n named) Snapshots(tag string) ([]agentdisk.Snapshot, error) {
	all, err := n.Disk.Snapshots(tag)
	for _, s := range all {
		for i := range s.Files {
			key := s.Keyspace + "/" + s.Table + "/" + s.Files[i].Name
			if n.had[key] == nil {
				file, err := s.Files[i].Open()
				if err != nil {
					return nil, err
				}
				if n.had[key], err = io.ReadAll(file); err != nil {
					return nil, err
				}
			}
			s.Files[i].Size = int64(len(n.had[key]))
			s.Files[i].Open = func() (io.ReadSeekCloser, error) { return unclosed{bytes.NewReader(n.had[key])}, nil }
		}
	}
	return all, err
}

type unclosed struct{ *bytes.Reader }

func (unclosed) Close() error { return nil }

// Generations are used again, and some files are changed in place: a blob is of one content,
// whatever the file is called.
func TestABlobIsOfOneContent(t *testing.T) {
	s := found(t, "backup")
	again := &v1alpha1.CassandraBackup{Spec: v1alpha1.CassandraBackupSpec{
		Cluster: v1alpha1.TaskCluster{Name: clusterName}, Store: v1alpha1.BackupStoreReference{Name: "main"}}}
	again.Namespace, again.Name = world.Namespace, "again"
	s.Acts = slices.Concat(s.Acts, []trial.Act{
		waiting(2 * time.Minute), // until the client has written all
		{Name: "write each row again, and back up", Within: 30 * time.Minute, Do: func(w *world.World) error {
			return errors.Join(w.WriteRows(20, nil), w.User().Create(context.Background(), again.DeepCopy()))
		}, Until: func(w *world.World) bool {
			b, _ := w.Server.Object("CassandraBackup", keyOf(again.Name)).(*v1alpha1.CassandraBackup)
			return b != nil && b.Status.Phase == v1alpha1.BackupComplete && trial.Serves(w)
		}}})
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	of := map[string]map[string][]byte{}
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: host(func(s *pod.Sandbox, h *execute.Host) {
		if of[s.Name()] == nil {
			of[s.Name()] = map[string][]byte{}
		}
		h.Disk = named{h.Disk, of[s.Name()]}
	})}, "nodes have it")
}
