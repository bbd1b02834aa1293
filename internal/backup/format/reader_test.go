package format_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

// asAge is the variable that has this program do what age does to decrypt.
const asAge = "HELENUS_TEST_AGE"

func TestMain(m *testing.M) {
	if os.Getenv(asAge) == "" {
		os.Exit(m.Run())
	}
	if err := decrypt(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// decrypt is age -d -i IDENTITIES [-o OUTPUT] INPUT.
func decrypt(args []string) error {
	flags := flag.NewFlagSet("age", flag.ContinueOnError)
	_ = flags.Bool("d", false, "")
	key, to := flags.String("i", "", ""), flags.String("o", "/dev/stdout", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	lines, err := os.Open(*key)
	if err != nil {
		return err
	}
	identities, err := age.ParseIdentities(lines)
	if err != nil {
		return err
	}
	from, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	r, err := age.Decrypt(bytes.NewReader(from), identities...)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(*to, text, 0o600)
}

// The reader of the guide reads what is written, encrypted or not, and notices what is missing or
// changed.
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
	sumOf := func(of string) string {
		sum := sha256.Sum256([]byte(of))
		return hex.EncodeToString(sum[:])
	}
	node := format.Node{Name: "orders-0", HostID: "host-1", Tokens: []string{"-1", "9"}}
	b := format.Backup{Version: format.Version, ID: id, Nodes: []format.Node{node},
		LeftOut: []format.Node{{Name: "orders-1", HostID: "host-2", Tokens: []string{"5"}}}}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	bin, lines := t.TempDir(), filepath.Join(t.TempDir(), "identities")
	if err := errors.Join(os.WriteFile(lines, []byte(identity.String()), 0o600),
		os.Symlink(os.Args[0], filepath.Join(bin, "age"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv(asAge, "1")
	for name, change := range map[string]func(dir, blob string) error{
		"":             func(_, _ string) error { return nil },
		"No such file": func(dir, blob string) error { return os.Remove(filepath.Join(dir, blob)) },
		"another content": func(dir, blob string) error {
			return os.WriteFile(filepath.Join(dir, blob), []byte("ROWS"), 0o600)
		},
		"version 2 of the format": func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, format.BackupKey(uid, id)), []byte(`{"version":2}`), 0o600)
		},
		"Statistics.db in ": func(dir, _ string) error {
			path := filepath.Join(dir, format.ManifestKey(uid, id, node.HostID))
			text, err := os.ReadFile(path)
			text = bytes.ReplaceAll(text, []byte(sumOf("statistics")), []byte(sumOf("others")))
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		},
		"encrypted": func(_, _ string) error { return nil },
		"returned non-zero": func(dir, blob string) error { // of what is encrypted
			path := filepath.Join(dir, blob)
			text, err := os.ReadFile(path)
			text[len(text)-1] ^= 1
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		},
	} {
		dir, target := t.TempDir(), t.TempDir()
		args := []string{"-c", reader, dir, uid, id, target}
		var to store.Store = store.Directory(dir)
		if name == "encrypted" || name == "returned non-zero" {
			args = append(args, lines)
			if to, err = store.Encrypt(to, "backup-key", []byte(identity.String())); err != nil {
				t.Fatal(err)
			}
		}
		put := func(key string, of any) {
			text, err := json.Marshal(of)
			if raw, is := of.(string); is {
				text = []byte(raw)
			}
			if err == nil {
				err = to.Put(t.Context(), key, bytes.NewReader(text), int64(len(text)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		blob := func(name, content string) format.File {
			f := format.File{Name: name, Size: int64(len(content)), SHA256: sumOf(content)}
			sum := sha256.Sum256([]byte(content))
			if is := store.BlobName(to, sum); is != sum {
				f.Blob = hex.EncodeToString(is[:])
			}
			put(format.BlobKey(uid, f.BlobName()), content)
			return f
		}
		f, pack := blob("Data.db", content), blob(format.Pack, "statisticsall")
		pack.Files = []format.File{{Name: "Statistics.db", Size: 10, SHA256: sumOf("statistics")},
			{Name: "Summary.db", SHA256: sumOf("")}, {Name: "TOC.txt", Size: 3, SHA256: sumOf("all")}}
		put(format.ManifestKey(uid, id, node.HostID), format.Manifest{Version: format.Version, Backup: id, Cluster: uid,
			TakenAt: time.Now(), Node: node, Tables: []format.Table{{Keyspace: "shop", Name: "empty", ID: "1"},
				{Keyspace: "shop", Name: "carts", ID: "2", SSTables: []format.SSTable{{Name: ".by_name/nb-1-big",
					Files: []format.File{f, pack}}}}}})
		put(format.BackupKey(uid, id), b)
		if err := change(dir, format.BlobKey(uid, f.BlobName())); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(context.Background(), "python3", args...).CombinedOutput()
		right := name == "" || name == "encrypted"
		if (err == nil) != right || !right && !strings.Contains(string(out), name) {
			t.Errorf("%q: %v, %s", name, err, out)
		}
		if !right {
			continue
		}
		got := map[string]string{}
		written, err := filepath.Glob(target + "/orders-0/shop/carts-2/.by_name/*")
		for _, path := range written {
			text, failed := os.ReadFile(path)
			got[filepath.Base(path)], err = string(text), errors.Join(err, failed)
		}
		if !maps.Equal(got, map[string]string{"nb-1-big-Data.db": content, "nb-1-big-Statistics.db": "statistics",
			"nb-1-big-Summary.db": "", "nb-1-big-TOC.txt": "all"}) || err != nil ||
			!strings.Contains(string(out), "orders-0 host-1 -1,9") ||
			!strings.Contains(string(out), "orders-1 was down") {
			t.Errorf("%q, %v, %s", got, err, out)
		}
	}
}
