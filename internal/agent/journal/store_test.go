package journal_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/test/memdisk"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}

// written returns a disk with one document, and its file.
func written(t testing.TB) (*memdisk.Disk, string) {
	t.Helper()
	disk := memdisk.New()
	store, _, _, err := journal.OpenStore[document](disk)
	ok(t, err)
	ok(t, store.Put(document{Number: 7, At: start, Begun: "cleanup-1"}))
	return disk, disk.Files()[journal.Path]
}

// TestTheFormOnDiskIsKept: what a released agent wrote is read by all later ones.
func TestTheFormOnDiskIsKept(t *testing.T) {
	_, file := written(t)
	golden := filepath.Join("testdata", "journal.json")
	if *update {
		ok(t, os.WriteFile(golden, []byte(file), 0o644))
	}
	want, err := os.ReadFile(golden)
	ok(t, err)
	if file != string(want) {
		t.Errorf("the form changed: raise the format, and keep reading the former one.\ngot:  %swant: %s", file, want)
	}
}

func TestARealVolume(t *testing.T) {
	dir := t.TempDir()
	volume, err := journal.OpenVolume(dir)
	ok(t, err)
	defer func() { _ = volume.Close() }()
	store, _, status, err := journal.OpenStore[document](volume)
	if status != journal.Absent || err != nil {
		t.Fatalf("empty volume: %s, %v", status, err)
	}
	marker := journal.Marker{ClusterUID: "u1", Node: "n", Volume: "data", CreatedAt: start}
	ok(t, journal.CreateMarker(volume, marker))
	ok(t, store.Put(document{Number: 1}))
	ok(t, store.Put(document{Number: 2}))

	again, err := journal.OpenVolume(dir)
	ok(t, err)
	defer func() { _ = again.Close() }()
	if _, got, status, err := journal.OpenStore[document](again); status != journal.Valid || got.Number != 2 {
		t.Errorf("read back: %s, %v, %+v", status, err, got)
	}
	if got, status, err := journal.ReadMarker(again); status != journal.Valid || got != marker {
		t.Errorf("marker read back: %s, %v, %+v", status, err, got)
	}
	previous, err := os.ReadFile(filepath.Join(dir, journal.PreviousPath))
	if err != nil || !strings.Contains(string(previous), `"number":1`) {
		t.Errorf("previous version: %s, %v", previous, err)
	}
	ok(t, os.WriteFile(filepath.Join(dir, journal.Path), make([]byte, journal.MaxFileBytes+1), 0o600))
	if _, _, status, err := journal.OpenStore[document](again); status != journal.Unreadable {
		t.Errorf("a huge file: %s, %v", status, err)
	}
	if _, err := journal.OpenVolume(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing volume: %v", err)
	}
}

func TestAVolumeCannotLeadOutOfItself(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	ok(t, os.Symlink(outside, filepath.Join(dir, journal.Dir)))
	volume, err := journal.OpenVolume(dir)
	ok(t, err)
	defer func() { _ = volume.Close() }()
	if err := journal.CreateMarker(volume, journal.Marker{ClusterUID: "u1", Node: "n", Volume: "data"}); err == nil {
		t.Error("a marker was written through a link out of the volume")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// TestDamageIsNeverReadAsAJournal flips each byte and cuts at each length.
func TestDamageIsNeverReadAsAJournal(t *testing.T) {
	disk, text := written(t)
	file := []byte(text)
	for at := range file {
		for _, mask := range []byte{0x01, 0x20, 0x80} {
			damaged := bytes.Clone(file)
			damaged[at] ^= mask
			disk.Put(journal.Path, damaged)
			_, got, status, err := journal.OpenStore[document](disk)
			if status == journal.Valid && (got.Number != 7 || got.Begun != "cleanup-1" || !got.At.Equal(start)) ||
				(status == journal.Valid) != (err == nil) {
				t.Fatalf("byte %d ^ %#x was read as %s, %v, %+v", at, mask, status, err, got)
			}
		}
		disk.Put(journal.Path, file[:at])
		// Only the newline at the end may be missing.
		if _, _, status, err := journal.OpenStore[document](disk); status != journal.Corrupt && at < len(file)-1 {
			t.Fatalf("cut at %d: %s, %v", at, status, err)
		}
	}
}

// sealed is a file with a right checksum.
func sealed(content string) string {
	return fmt.Sprintf(`{"format":1,"kind":"journal","checksum":%q,"content":%s}`, journal.Checksum([]byte(content)),
		content)
}

func TestWhatIsReadIsSaidPrecisely(t *testing.T) {
	_, valid := written(t)
	for name, c := range map[string]struct {
		file, previous string
		want           journal.Status
		message        string
	}{
		"nothing":               {"", "", journal.Absent, ""},
		"valid":                 {valid, "", journal.Valid, ""},
		"previous damaged":      {valid, "x", journal.Valid, ""},
		"only previous":         {"", valid, journal.Corrupt, "is gone while its previous version"},
		"only previous damaged": {"", "x", journal.Corrupt, "is gone while its previous version"},
		"damaged, previous":     {"x", valid, journal.Corrupt, "damaged"},
		"zeros":                 {"\x00\x00\x00", "", journal.Corrupt, "damaged"},
		"trailing":              {valid + "{}", "", journal.Corrupt, "damaged"},
		"newer format":          {`{"format":2,"anything":true}`, "", journal.Newer, "newer agent"},
		"format 0":              {`{}`, "", journal.Corrupt, "never existed"},
		"other kind": {strings.Replace(valid, `"journal"`, `"marker"`, 1), "", journal.Corrupt,
			`is a "marker"`},
		"unknown field": {sealed(`{"number":1,"extra":1}`), "", journal.Newer, `unknown field "extra"`},
		"right content": {sealed(`{"number":1}`), "", journal.Valid, ""},
	} {
		disk := memdisk.New()
		for path, content := range map[string]string{journal.Path: c.file, journal.PreviousPath: c.previous} {
			if content != "" {
				disk.Put(path, []byte(content))
			}
		}
		store, _, status, err := journal.OpenStore[document](disk)
		if status != c.want || (err == nil) != (c.message == "") ||
			err != nil && !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %s, %v", name, status, err)
		}
		if usable := status == journal.Valid || status == journal.Absent; (store != nil) != usable {
			t.Errorf("%s: store %v", name, store)
		}
	}
}

// unreadable answers every read with an error of the device.
type unreadable struct{ *memdisk.Disk }

func (unreadable) ReadFile(string) ([]byte, error) { return nil, errors.New("input/output error") }

func TestAnErrorOfTheVolumeIsNoAbsence(t *testing.T) {
	volume := unreadable{memdisk.New()}
	if store, _, status, err := journal.OpenStore[document](volume); status != journal.Unreadable || err == nil ||
		store != nil {
		t.Errorf("journal: %s, %v", status, err)
	}
	if _, status, err := journal.ReadMarker(volume); status != journal.Unreadable || err == nil {
		t.Errorf("marker: %s, %v", status, err)
	}
	refused(t, journal.CreateMarker(volume, journal.Marker{ClusterUID: "u", Node: "n", Volume: "data"}),
		"input/output error")
}

func TestTheSameDocumentIsNotWrittenAgain(t *testing.T) {
	disk, _ := written(t)
	store, got, _, err := journal.OpenStore[document](disk)
	ok(t, err)
	before := disk.Steps()
	ok(t, store.Put(got))
	if n := disk.Steps() - before; n > 0 {
		t.Errorf("%d steps were taken", n)
	}
}

func TestADocumentThatIsTooLargeIsRefused(t *testing.T) {
	disk, file := written(t)
	store, got, _, err := journal.OpenStore[document](disk)
	ok(t, err)
	got.Begun = strings.Repeat("x", journal.MaxFileBytes)
	refused(t, store.Put(got), "are more than")
	if disk.Files()[journal.Path] != file {
		t.Error("the file changed")
	}
}

func TestMarkers(t *testing.T) {
	mine := journal.Marker{ClusterUID: "u1", Node: "n", Volume: "data", CreatedAt: start}
	later, other := mine, mine
	later.CreatedAt, other.ClusterUID = start.AddDate(0, 0, 1), "u2"
	disk := memdisk.New()
	refused(t, journal.CreateMarker(disk, journal.Marker{ClusterUID: "u1", Node: "n"}), "must all be named")
	refused(t, journal.ReplaceMarker(disk, other, mine), "has no marker")
	ok(t, journal.CreateMarker(disk, mine))
	ok(t, journal.CreateMarker(disk, later))
	if got, _, _ := journal.ReadMarker(disk); got != mine {
		t.Errorf("a marker was written again: %+v", got)
	}
	refused(t, journal.CreateMarker(disk, other), "it is volume data of node n in cluster u1")
	refused(t, journal.ReplaceMarker(disk, journal.Marker{ClusterUID: "u3", Node: "n", Volume: "data"}, other),
		"it is volume data")
	ok(t, journal.ReplaceMarker(disk, mine, other))
	ok(t, journal.ReplaceMarker(disk, mine, other)) // again after a crash
	if got, _, _ := journal.ReadMarker(disk); got != other {
		t.Errorf("after adoption: %+v", got)
	}
	disk.Put(journal.MarkerPath, []byte("x"))
	refused(t, journal.CreateMarker(disk, mine), "damaged")
	refused(t, journal.ReplaceMarker(disk, other, mine), "damaged")
	_, file := written(t)
	disk.Put(journal.MarkerPath, []byte(file))
	refused(t, journal.CreateMarker(disk, mine), `is a "journal", not a volume marker`)
}

// FuzzOpenStore: nothing that lies on a volume makes the reader fail, and what it takes as valid it
// writes back as the same.
func FuzzOpenStore(f *testing.F) {
	_, file := written(f)
	f.Add([]byte(file), false)
	f.Add([]byte(`{"number":1,"done":{"a":"b"},"at":"2026-03-01T10:00:00+01:00"}`), true)
	f.Add([]byte(`{"format":2}`), false)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, file []byte, seal bool) {
		if seal { // past the checksum, which no fuzzer guesses
			file = []byte(sealed(string(bytes.TrimSpace(file))))
		}
		disk := memdisk.New()
		disk.Put(journal.Path, file)
		store, got, status, err := journal.OpenStore[document](disk)
		if (status == journal.Valid) != (err == nil) {
			t.Fatalf("%s, %v", status, err)
		}
		if status != journal.Valid {
			return
		}
		got.Number++
		if err := store.Put(got); err != nil {
			t.Skip(err)
		}
		if _, again, status, err := journal.OpenStore[document](disk); status != journal.Valid ||
			again.Number != got.Number || len(again.Done) != len(got.Done) {
			t.Fatalf("written back: %s, %v", status, err)
		}
	})
}
