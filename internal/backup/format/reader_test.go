package format_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

// The reader of the guide reads what is written, and notices what is missing or changed.
func TestTheReaderOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guide/backup-format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "```python\n")
	reader, _, found := strings.Cut(rest, "```")
	if lines := strings.Count(reader, "\n"); !found || lines > 100 {
		t.Fatalf("the reader has %d lines", lines)
	}
	const uid, id, content = "cluster-1", "20260301T030000Z-1", "rows"
	sum := sha256.Sum256([]byte(content))
	blob := format.BlobKey(uid, hex.EncodeToString(sum[:]))
	node := format.Node{Name: "orders-0", HostID: "host-1", Tokens: []string{"-1", "9"}}
	m := format.Manifest{Version: format.Version, Backup: id, Cluster: uid, TakenAt: time.Now(), Node: node,
		Tables: []format.Table{{Keyspace: "shop", Name: "empty", ID: "1"}, {Keyspace: "shop", Name: "carts", ID: "2",
			SSTables: []format.SSTable{{Name: ".by_name/nb-1-big", Files: []format.File{{Name: "Data.db",
				Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}}}}}}}
	b := format.Backup{Version: format.Version, ID: id, Nodes: []format.Node{node}}
	for name, change := range map[string]func(dir string) error{
		"": func(string) error { return nil },
		"No such file": func(dir string) error {
			return os.Remove(filepath.Join(dir, blob))
		},
		"another content": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, blob), []byte("ROWS"), 0o600)
		},
		"version 2 of the format": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, format.BackupKey(uid, id)), []byte(`{"version":2}`), 0o600)
		},
	} {
		dir, target := t.TempDir(), t.TempDir()
		put := func(key string, of any) {
			text, err := json.Marshal(of)
			if raw, is := of.(string); is {
				text = []byte(raw)
			}
			if err == nil {
				err = store.Directory(dir).Put(t.Context(), key, bytes.NewReader(text), int64(len(text)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		put(blob, content)
		put(format.ManifestKey(uid, id, node.HostID), m)
		put(format.BackupKey(uid, id), b)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(context.Background(), "python3", "-c", reader, dir, uid, id,
			target).CombinedOutput()
		if (err == nil) != (name == "") || !strings.Contains(string(out), name) {
			t.Errorf("%q: %v, %s", name, err, out)
		}
		if name != "" {
			continue
		}
		got, err := os.ReadFile(filepath.Join(target, "orders-0/shop/carts-2/.by_name/nb-1-big-Data.db"))
		if string(got) != content || err != nil || !strings.Contains(string(out), "orders-0 host-1 -1,9") {
			t.Errorf("%q, %v, %s", got, err, out)
		}
	}
}
