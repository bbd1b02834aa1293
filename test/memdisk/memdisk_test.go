package memdisk_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"helenus.io/helenus/test/memdisk"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file, synced or not.
func put(t *testing.T, d *memdisk.Disk, name, content string, sync bool) {
	t.Helper()
	f, err := d.Create(name)
	ok(t, err)
	_, err = f.Write([]byte(content))
	ok(t, err)
	if sync {
		ok(t, f.Sync())
	}
	ok(t, f.Close())
}

// outcomes are the sets of files that a loss of power can leave, sorted.
func outcomes(d *memdisk.Disk) []string {
	var all []string
	for _, left := range d.PowerLoss() {
		text := ""
		for _, name := range slices.Sorted(maps.Keys(left.Files())) {
			text += fmt.Sprintf("%s=%q ", name, left.Files()[name])
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestWhatALossOfPowerLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(d *memdisk.Disk)
		want []string
	}{
		"nothing done": {func(*memdisk.Disk) {}, []string{""}},
		"synced content, name not": {
			func(d *memdisk.Disk) { put(t, d, "a", "xy", true) },
			[]string{"", `a="xy" `},
		},
		"name synced, content not": {
			func(d *memdisk.Disk) { put(t, d, "a", "xy", false); ok(t, d.SyncDir(".")) },
			[]string{`a="" `, `a="\x00\x00" `, `a="x" `, `a="xy" `},
		},
		"both synced": {
			func(d *memdisk.Disk) { put(t, d, "a", "xy", true); ok(t, d.SyncDir(".")) },
			[]string{`a="xy" `},
		},
		"synced file replaced by rename": {
			func(d *memdisk.Disk) {
				put(t, d, "a", "old", true)
				ok(t, d.SyncDir("."))
				put(t, d, "b", "new", true)
				ok(t, d.Rename("b", "a"))
			},
			[]string{`a="new" `, `a="old" `, `a="old" b="new" `},
		},
		"file in a directory that is not durable": {
			func(d *memdisk.Disk) { ok(t, d.Mkdir("d")); put(t, d, "d/a", "x", true); ok(t, d.SyncDir("d")) },
			[]string{"", `d/a="x" `},
		},
		"written over without sync": {
			func(d *memdisk.Disk) {
				put(t, d, "a", "old", true)
				ok(t, d.SyncDir("."))
				put(t, d, "a", "nw", false)
			},
			[]string{`a="\x00\x00" `, `a="n" `, `a="nw" `, `a="old" `},
		},
	} {
		d := memdisk.New()
		c.do(d)
		if got := outcomes(d); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAKilledProcessLosesNothingThatItDid(t *testing.T) {
	d := memdisk.New()
	put(t, d, "a", "x", false)
	next := d.Kill()
	if got := next.Files()["a"]; got != "x" {
		t.Errorf("a is %q", got)
	}
	if got := outcomes(next); !slices.Contains(got, "") {
		t.Errorf("a kill made it durable: %q", got)
	}
}

func TestHooks(t *testing.T) {
	d, broken := memdisk.New(), errors.New("broken")
	var steps []string
	d.SetHook(func(s memdisk.Step, done bool) error {
		steps = append(steps, fmt.Sprintf("%s %d %v", s.Op, s.Number, done))
		switch {
		case s.Op == memdisk.OpMkdir && !done:
			return broken
		case s.Op == memdisk.OpCreate && done:
			return broken
		}
		return nil
	})
	if err := d.Mkdir("d"); !errors.Is(err, broken) {
		t.Errorf("mkdir: %v", err)
	}
	if _, err := d.Create("a"); !errors.Is(err, broken) {
		t.Errorf("create: %v", err)
	}
	if want := []string{"mkdir 0 false", "create 1 false", "create 1 true"}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	d.SetHook(nil)
	if _, err := d.ReadFile("a"); err != nil {
		t.Errorf("a step that took effect and failed: %v", err)
	}
	if _, err := d.Create("d/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	if err := d.Rename("none", "b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rename of nothing: %v", err)
	}
}

func TestPut(t *testing.T) {
	d := memdisk.New()
	d.Put("x/y/z", []byte("1"))
	if got := outcomes(d); !slices.Equal(got, []string{`x/y/z="1" `}) {
		t.Errorf("put: %q", got)
	}
	d.Put("x/y/z", nil)
	if got := outcomes(d); !slices.Equal(got, []string{""}) {
		t.Errorf("removed: %q", got)
	}
}
