package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/garbage"
	"helenus.io/helenus/internal/backup/store"
)

// swept is a store with a clock. Each deletion takes its time.
type swept struct {
	store.Directory
	t       *testing.T
	now     time.Time
	takes   time.Duration
	deleted func(key string)
	// locked keys cannot be deleted.
	locked map[string]bool
}

func newSwept(t *testing.T) *swept {
	return &swept{Directory: store.Directory(t.TempDir()), t: t, now: time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)}
}

func (s *swept) Delete(ctx context.Context, key string) error {
	s.now = s.now.Add(s.takes)
	if s.deleted != nil {
		s.deleted(key)
	}
	if s.locked[key] {
		return fmt.Errorf("delete object %s: %w", key, store.ErrLocked)
	}
	return s.Directory.Delete(ctx, key)
}

// write an object of an age.
func (s *swept) write(key, content string, age time.Duration) {
	s.t.Helper()
	at := s.now.Add(-age)
	if err := s.Put(s.t.Context(), key, strings.NewReader(content), int64(len(content))); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(string(s.Directory), key), at, at); err != nil {
		s.t.Fatal(err)
	}
}

func sumOf(n int) string { return fmt.Sprintf("%064x", n+1) }

func (s *swept) blobs(age time.Duration, all ...int) {
	for _, n := range all {
		s.write(format.BlobKey("c", sumOf(n)), "12345", age)
	}
}

func (s *swept) manifest(backup string, age time.Duration, blobs ...int) {
	m := &format.Manifest{Version: format.Version, Backup: backup, Cluster: "c"}
	table := format.SSTable{}
	for _, n := range blobs {
		f := format.File{Name: "Data.db", SHA256: sumOf(n)}
		if n%2 > 0 { // what is in a pack is no blob of its own
			f.Name, f.Files = format.Pack, []format.File{{Name: "TOC.txt", SHA256: sumOf(n + 1)}}
		}
		table.Files = append(table.Files, f)
	}
	m.Tables = []format.Table{{SSTables: []format.SSTable{table}}}
	text, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(format.ManifestKey("c", backup, "h"), string(text), age)
}

func (s *swept) sweep() (*format.Marks, error) {
	return Sweep(s.t.Context(), s, "c", garbage.Default, func() time.Time { return s.now })
}

// left are the numbers of the blobs that are there.
func (s *swept) left() (all []int) {
	s.t.Helper()
	for _, key := range listed(s.t, s) {
		for n := range 300 {
			if key == format.BlobKey("c", sumOf(n)) {
				all = append(all, n)
			}
		}
	}
	return all
}

const old = 8 * day

const day = 24 * time.Hour

// What is locked stays, and keeps nothing else from being deleted. It goes when it is not locked
// any more, without another day.
func TestSweepOfWhatIsLocked(t *testing.T) {
	s := newSwept(t)
	s.blobs(old, 0, 1, 2)
	s.manifest("b1", 15*day, 0) // of a backup that is never described
	if _, err := s.sweep(); err != nil {
		t.Fatal(err)
	}
	s.locked = map[string]bool{format.BlobKey("c", sumOf(1)): true, format.ManifestKey("c", "b1", "h"): true}
	for range 2 {
		s.now = s.now.Add(day)
		marks, err := s.sweep()
		if err != nil || marks.Locked != 1 || !slices.Contains(s.left(), 1) || slices.Contains(s.left(), 2) {
			t.Errorf("%+v, %v; left are %d", marks, err, s.left())
		}
	}
	s.locked, s.now = nil, s.now.Add(day)
	if marks, err := s.sweep(); err != nil || marks.Locked != 0 || slices.Contains(s.left(), 1) {
		t.Errorf("%+v, %v; left are %d", marks, err, s.left())
	}
}

// A blob goes after two looks, a day apart, unless somebody has named it by then.
func TestSweep(t *testing.T) {
	s := newSwept(t)
	if marks, err := s.sweep(); marks != nil || err != nil || len(listed(t, s)) > 0 {
		t.Fatalf("an empty store: %+v, %v", marks, err)
	}
	s.blobs(old, 0, 1, 2, 3)
	s.blobs(time.Hour, 4)
	s.manifest("b1", day, 0)
	s.write("d/blobs/ff/ff", "another cluster's", old)
	marks, err := s.sweep()
	if err != nil || marks.Blobs != 5 || marks.Bytes != 25 || marks.Marked != 3 || marks.MarkedBytes != 15 ||
		marks.Deleted != 0 || len(s.left()) != 5 {
		t.Fatalf("%+v, %v", marks, err)
	}
	last, err := LastMarks(t.Context(), s, "c")
	if err != nil || Due(last, s.now.Add(day-1)) || !Due(last, s.now.Add(day)) || !Due(last, s.now.Add(-1)) || !Due(nil, s.now) {
		t.Errorf("last %+v, %v", last, err)
	}
	s.manifest("b2", 0, 1)
	s.write(format.PinKey("c", sumOf(2), "b3-h-1"), "", 0)
	s.now = s.now.Add(day)
	if marks, err = s.sweep(); err != nil || marks.Deleted != 1 || !slices.Equal(s.left(), []int{0, 1, 2, 4}) {
		t.Errorf("%+v, %v; left are %d", marks, err, s.left())
	}
	if len(marks.All()) > 0 || len(marks.Unreliable()) != 3 {
		t.Errorf("not to be relied on: %v", marks.Unreliable())
	}
	s.now = s.now.Add(2*day + time.Hour) // the pin is over, and nobody has written a manifest
	if marks, err = s.sweep(); err != nil || marks.Marked != 1 || !slices.Equal(s.left(), []int{0, 1, 2, 4}) {
		t.Errorf("%+v, %v; left are %d", marks, err, s.left())
	}
	s.now = s.now.Add(day)
	if marks, err = s.sweep(); err != nil || marks.Deleted != 1 || !slices.Equal(s.left(), []int{0, 1, 4}) {
		t.Errorf("%+v, %v; left are %d", marks, err, s.left())
	}
	// A leader that was replaced in the midst of a batch may delete it once more.
	gone, err := format.ParseSum(sumOf(2))
	if _, is := marks.Unreliable()[gone]; err != nil || !is || len(marks.Unreliable()) != 1 {
		t.Errorf("not to be relied on: %v, %v", marks.Unreliable(), err)
	}
	if garbage.Default.Settle <= garbage.Default.Batch {
		t.Error("a pin is relied on before the deletions of a batch are over")
	}
	if keys, err := list(t.Context(), s, format.MarksPrefix("c")); err != nil || len(keys) != 1 {
		t.Errorf("marks %q, %v", keys, err)
	}
	if there := slices.Contains(listed(t, s), "d/blobs/ff/ff"); !there {
		t.Error("another cluster has lost a file")
	}
}

// Manifests of backups that were never described hold their blobs for two weeks.
func TestWhatIsNeverDescribedGoes(t *testing.T) {
	s := newSwept(t)
	s.blobs(30*day, 0, 1, 2)
	s.manifest("b1", 30*day, 0)
	s.write(format.BackupKey("c", "b1"), "{}", 30*day)
	s.manifest("b2", undescribed+1, 1)
	s.manifest("b3", undescribed, 2)
	s.write(format.LeftOutKey("c", "r1", "m", "h", "t"), "", leftOut+1)
	s.write(format.LeftOutKey("c", "r2", "m", "h", "t"), "", leftOut)
	if marks, err := s.sweep(); err != nil || marks.Marked != 1 {
		t.Errorf("%+v, %v", marks, err)
	}
	if keys, err := list(t.Context(), s, format.ManifestPrefix("c")); err != nil ||
		!slices.Equal(keys, []string{format.ManifestKey("c", "b1", "h"), format.ManifestKey("c", "b3", "h")}) {
		t.Errorf("manifests %q, %v", keys, err)
	}
	if keys, err := list(t.Context(), s, format.LeftOut("c")); err != nil ||
		!slices.Equal(keys, []string{format.LeftOutKey("c", "r2", "m", "h", "t")}) {
		t.Errorf("left out %q, %v", keys, err)
	}
}

// What one backup alone has is counted, whichever of its nodes do, and the commit logs.
func TestWhatBackupsHaveAlone(t *testing.T) {
	s := newSwept(t)
	s.blobs(day, 0, 1, 2, 3, 4)
	s.manifest("b1", day, 0, 1)
	s.manifest("b2", day, 1, 2, 3)
	text, err := json.Marshal(&format.Manifest{Version: format.Version, Backup: "b2", Cluster: "c",
		Tables: []format.Table{{SSTables: []format.SSTable{{Files: []format.File{{SHA256: sumOf(3)}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	s.write(format.ManifestKey("c", "b2", "other"), string(text), day)
	s.write(format.LogPrefix("c", "h")+"CommitLog-7-1.log/1/0000000000", "123", day)
	marks, err := s.sweep()
	if want := []format.Alone{{Backup: "b1", Bytes: 5}, {Backup: "b2", Bytes: 10}}; err != nil ||
		!slices.Equal(marks.Alone, want) || marks.LogBytes != 3 {
		t.Errorf("%+v, %v", marks, err)
	}
}

// Nothing is deleted where something cannot be understood.
func TestNothingIsSwept(t *testing.T) {
	for name, change := range map[string]func(*swept){
		"a manifest of a later version": func(s *swept) { s.write(format.ManifestKey("c", "b9", "h"), `{"version":2}`, 0) },
		"a manifest that is none":       func(s *swept) { s.write(format.ManifestKey("c", "b9", "h"), "<html>", 0) },
		"a manifest of another cluster": func(s *swept) { s.write(format.ManifestKey("c", "b9", "h"), `{"version":1}`, 0) },
		"a manifest without hashes": func(s *swept) {
			s.write(format.ManifestKey("c", "b9", "h"),
				`{"version":1,"cluster":"c","tables":[{"sstables":[{"files":[{"name":"Data.db"}]}]}]}`, 0)
		},
		"a pin of nothing": func(s *swept) { s.write("c/pins/x/b9", "", 0) },
		"marks of another version": func(s *swept) {
			s.write(format.MarksKey("c", s.now.Add(time.Second)), `{"version":2}`, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSwept(t)
			s.blobs(old, 0)
			if marks, err := s.sweep(); err != nil || marks.Marked != 1 {
				t.Fatalf("%+v, %v", marks, err)
			}
			change(s)
			s.now = s.now.Add(25 * time.Hour)
			if marks, err := s.sweep(); err == nil || len(s.left()) != 1 {
				t.Errorf("%+v, %v; left are %d", marks, err, s.left())
			}
		})
	}
	s := newSwept(t)
	s.blobs(-time.Hour, 0)
	if marks, err := s.sweep(); err == nil || !strings.Contains(err.Error(), "clock") {
		t.Errorf("%+v, %v", marks, err)
	}
}

// Deletions that take long are interrupted, and it is looked again who needs what.
func TestSweepLooksAgain(t *testing.T) {
	s := newSwept(t)
	var all []int
	for n := range 200 {
		all = append(all, n)
	}
	s.blobs(old, all...)
	if _, err := s.sweep(); err != nil {
		t.Fatal(err)
	}
	s.now, s.takes = s.now.Add(day), 10*time.Second
	first := ""
	s.deleted = func(key string) {
		if first == "" {
			first = key
			s.manifest("b1", 0, 199)
			s.write(format.PinKey("c", sumOf(198), "b2-h-1"), "", 0)
		}
	}
	marks, err := s.sweep()
	if err != nil || marks.Deleted != 198 || !slices.Equal(s.left(), []int{198, 199}) {
		t.Errorf("%+v, %v; left are %d", marks, err, s.left())
	}
}
