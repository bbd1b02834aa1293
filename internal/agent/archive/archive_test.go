package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

const (
	cluster = "c1"
	hostID  = "11111111-1111-1111-1111-111111111111"
)

// disk is the volume of a commit log that Cassandra writes.
type disk struct {
	t   *testing.T
	dir string
}

func newDisk(t *testing.T) disk {
	d := disk{t, t.TempDir()}
	if err := os.MkdirAll(filepath.Join(d.dir, logDir), 0o750); err != nil {
		t.Fatal(err)
	}
	return d
}

func name(id int64) string { return fmt.Sprintf("CommitLog-7-%d.log", id) }

func (d disk) path(id int64) string { return filepath.Join(d.dir, logDir, name(id)) }

// begin a segment: a header, and room for what is written later.
func (d disk) begin(id int64) {
	d.t.Helper()
	head := binary.BigEndian.AppendUint32(nil, 7)
	head = binary.BigEndian.AppendUint64(head, uint64(id))
	head = append(append(binary.BigEndian.AppendUint16(head, 2), "{}"...), 1, 2, 3, 4)
	if err := os.WriteFile(d.path(id), append(head, make([]byte, 4096)...), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// write a section and mark it, as Cassandra does when it syncs.
func (d disk) write(id int64, text string) {
	d.t.Helper()
	file, err := os.OpenFile(d.path(id), os.O_RDWR, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // of a test
	at, err := Synced(file, id, 0)
	if at == 0 {
		at, err = header(file)
	}
	marker := binary.BigEndian.AppendUint32(nil, uint32(at+markerSize+int64(len(text))))
	marker = binary.BigEndian.AppendUint32(marker, markerSum(id, at))
	_, wrote := file.WriteAt(append(marker, text...), at)
	if err = errors.Join(err, wrote); err != nil {
		d.t.Fatal(err)
	}
}

func (d disk) remove(id int64) {
	d.t.Helper()
	if err := os.Remove(d.path(id)); err != nil {
		d.t.Fatal(err)
	}
}

// clock of a test, in seconds after the first segment.
func at(seconds int) time.Time {
	return time.UnixMilli(1_700_000_000_000).Add(time.Duration(seconds) * time.Second)
}

func open(t *testing.T, d disk, seconds int) *Log {
	t.Helper()
	l, err := Open(d.dir, hostID, at(seconds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func look(t *testing.T, l *Log, seconds int) {
	t.Helper()
	if err := l.Look(at(seconds), 1<<20); err != nil {
		t.Fatal(err)
	}
}

// stored is the text of each segment in a store, and what is covered, in seconds.
func stored(t *testing.T, s store.Store) (segments map[string]string, covered []string) {
	t.Helper()
	segments = map[string]string{}
	all, err := list(t.Context(), s, cluster, hostID)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range all {
		for _, p := range of.parts {
			content, err := s.Get(t.Context(), p.Key)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(content)
			if err = errors.Join(err, content.Close()); err != nil {
				t.Fatal(err)
			}
			segments[of.Name] += string(text)
		}
	}
	if err := s.List(t.Context(), format.CoveredPrefix(cluster), func(o store.Object) error {
		_, i, err := format.ParseCovered(cluster, o.Key)
		covered = append(covered, fmt.Sprintf("%.0f-%.0f", i.From.Sub(at(0)).Seconds(), i.To.Sub(at(0)).Seconds()))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return segments, covered
}

// failing fails after so many requests, with what was asked for done or not.
type failing struct {
	store.Store
	left int
	done bool
}

func (f *failing) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	if f.left--; f.left < 0 {
		if f.done {
			_ = f.Store.Put(ctx, key, content, size)
		}
		return errors.New("no route")
	}
	return f.Store.Put(ctx, key, content, size)
}

// The first id of a JVM is its time; segments of two lives, one with a hole, one without.
func TestCoverage(t *testing.T) {
	first, second := at(-10).UnixMilli()+1, at(31).UnixMilli()+1
	d, s := newDisk(t), store.Directory(t.TempDir())
	d.begin(first)
	d.write(first, "before")
	l := open(t, d, 0)
	look(t, l, 0)
	upload := func(want ...string) {
		t.Helper()
		if err := l.Upload(t.Context(), s, cluster); err != nil {
			t.Fatal(err)
		}
		if _, got := stored(t, s); !slices.Equal(got, want) {
			t.Errorf("covered %v, want %v", got, want)
		}
	}
	upload() // what was acknowledged before the look may not be marked
	look(t, l, 1)
	d.write(first, "one")
	look(t, l, 2)
	upload("0-1")
	d.begin(first + 1)
	look(t, l, 3)
	d.write(first+1, "two")
	d.remove(first) // its rows are flushed
	look(t, l, 4)
	upload("0-3")
	if left, err := l.links(); err != nil || len(left) != 1 || left[0].id != first+1 {
		t.Errorf("links %v, %v", left, err)
	}
	look(t, l, 30)
	upload("0-5") // nothing is written: all of 25 s ago is marked
	// Another JVM replays what the first one has left, which nobody missed.
	l = open(t, d, 31)
	d.begin(second)
	d.remove(first + 1)
	look(t, l, 32)
	d.write(second, "three")
	look(t, l, 33)
	upload("0-32")
	if _, _, hole := l.Covered(); hole != "" {
		t.Errorf("a hole: %s", hole)
	}
	// While the agent was down two segments came, and one went.
	l = open(t, d, 40)
	d.begin(second + 2)
	d.write(second+2, "four")
	look(t, l, 41)
	upload("0-32")
	look(t, l, 42)
	d.write(second+2, "five")
	look(t, l, 43)
	upload("0-32", "41-42")
	if _, _, hole := l.Covered(); !strings.Contains(hole, fmt.Sprint(second+1)) {
		t.Errorf("hole %q", hole)
	}
}

// What is sent is what is marked, once, whichever request fails, and whether it is done or not.
func TestUploadIsResumed(t *testing.T) {
	for left := range 4 {
		for _, done := range []bool{false, true} {
			d, s := newDisk(t), store.Directory(t.TempDir())
			id := at(-10).UnixMilli() + 1
			d.begin(id)
			d.write(id, "one")
			l := open(t, d, 0)
			look(t, l, 0)
			f := &failing{Store: s, left: left, done: done}
			_ = l.Upload(t.Context(), f, cluster)
			d.write(id, "two")
			look(t, l, 1)
			_ = l.Upload(t.Context(), f, cluster)
			l = open(t, d, 2) // the agent was killed
			d.write(id, "three")
			look(t, l, 2)
			look(t, l, 3)
			d.write(id, "four")
			d.remove(id)
			if err := l.Upload(t.Context(), s, cluster); err != nil {
				t.Fatal(err)
			}
			got, _ := stored(t, s)
			for _, text := range []string{"one", "two", "three", "four"} {
				if strings.Count(got[name(id)], text) != 1 {
					t.Errorf("after %d requests, done %t: %q", left, done, got)
				}
			}
			// It comes back as it was.
			to := t.TempDir()
			m := &format.Manifest{Cluster: cluster, Node: format.Node{HostID: hostID}, TakenAt: time.Now(),
				Tables: []format.Table{{Keyspace: "shop", Name: "orders"}, {Keyspace: "system_auth", Name: "roles"},
					{Keyspace: "logs", Name: "all"}}}
			if err := Fetch(t.Context(), s, to, m, []string{"shop"}, at(10)); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(to, logDir, name(id)))
			if tables, replayed := Replayed(to); err != nil || replayed != nil || string(text) != got[name(id)] ||
				!slices.Equal(tables, []string{"shop.orders"}) {
				t.Errorf("%q, %v; tables %v, %v", text, err, tables, replayed)
			}
		}
	}
}

// A store that takes nothing costs no more than its share of the disk, and the hole is known.
func TestTheLogIsBounded(t *testing.T) {
	d, id := newDisk(t), at(-10).UnixMilli()+1
	l := open(t, d, 0)
	for i := range int64(8) {
		d.begin(id + i)
		d.write(id+i, strings.Repeat("x", 3000))
		if err := l.Look(at(int(i)), 20<<10); err != nil {
			t.Fatal(err)
		}
		d.remove(id + i)
	}
	if err := l.Look(at(9), 20<<10); err != nil {
		t.Fatal(err)
	}
	left, err := l.links()
	if err != nil || len(left) == 0 || len(left) > 5 || left[len(left)-1].id != id+7 {
		t.Errorf("links %v, %v", left, err)
	}
	if from, _, hole := l.Covered(); !from.After(at(0)) || !strings.Contains(hole, "its share") {
		t.Errorf("covered from %s, hole %q", from, hole)
	}
}

// In an encrypted store no object has what was written, and the log that is read there is the same.
func TestTheLogIsEncrypted(t *testing.T) {
	dir, d, id := t.TempDir(), newDisk(t), at(-10).UnixMilli()+1
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Encrypt(store.Directory(dir), "backup-key", []byte(identity.String()))
	if err != nil {
		t.Fatal(err)
	}
	d.begin(id)
	l := open(t, d, 0)
	for i := range 3 {
		d.write(id, fmt.Sprintf("row %d of a customer", i))
		look(t, l, i)
		if err := l.Upload(t.Context(), s, cluster); err != nil {
			t.Fatal(err)
		}
		l = open(t, d, i) // the agent was killed: what is there is found by its length
		look(t, l, i)
	}
	written, err := os.ReadFile(d.path(id))
	if err != nil {
		t.Fatal(err)
	}
	got, covered := stored(t, s)
	if text := got[name(id)]; !strings.HasPrefix(string(written), text) || !strings.Contains(text, "row 2 of") ||
		len(covered) == 0 {
		t.Errorf("stored %q, covered %v", text, covered)
	}
	if err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("customer")) {
			t.Errorf("%s has what was written", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// What was damaged in the store, or lacks a part, is refused.
func TestFetchIsWhole(t *testing.T) {
	d, id := newDisk(t), at(-10).UnixMilli()+1
	for what, damage := range map[string]func(dir string, parts []string) error{
		"a part is missing": func(dir string, parts []string) error { return os.Remove(filepath.Join(dir, parts[0])) },
		"a part is short": func(dir string, parts []string) error {
			return os.Truncate(filepath.Join(dir, parts[1]), 3)
		},
		"a marker is another": func(dir string, parts []string) error {
			text, err := os.ReadFile(filepath.Join(dir, parts[1]))
			text = bytes.Repeat([]byte{7}, len(text))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, parts[1]), text, 0o600))
		},
	} {
		dir := t.TempDir()
		s := store.Directory(dir)
		d.begin(id)
		l := open(t, d, 0)
		var parts []string
		for i := range 2 {
			d.write(id, "text")
			look(t, l, i)
			if err := l.Upload(t.Context(), s, cluster); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.List(t.Context(), format.LogPrefix(cluster, hostID), func(o store.Object) error {
			parts = append(parts, o.Key)
			return nil
		}); err != nil || len(parts) != 2 {
			t.Fatalf("parts %v, %v", parts, err)
		}
		if err := damage(dir, parts); err != nil {
			t.Fatal(err)
		}
		m := &format.Manifest{Cluster: cluster, Node: format.Node{HostID: hostID}, TakenAt: time.Now(),
			Tables: []format.Table{{Keyspace: "shop", Name: "orders"}}}
		if err := Fetch(t.Context(), s, t.TempDir(), m, nil, at(10)); err == nil {
			t.Errorf("%s: it is taken", what)
		}
		if err := os.RemoveAll(filepath.Join(d.dir, linkDir)); err != nil {
			t.Fatal(err)
		}
	}
}
