package safeguard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
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
