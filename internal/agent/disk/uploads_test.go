package disk

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Lines of an upload are there for another agent, until they are cleared; a disk that has none, or
// takes none, is no error.
func TestUploads(t *testing.T) {
	volume := t.TempDir()
	for _, dir := range []string{"", volume} { // no directory of the agent is there yet
		u := Uploads(dir)
		u.Add("one", "id key")
		u.Clear("one")
		if len(u.Names()) > 0 || u.Lines("one") != nil {
			t.Errorf("%q has %q, %q", dir, u.Names(), u.Lines("one"))
		}
	}
	if err := os.Mkdir(filepath.Join(volume, ownDir), 0o750); err != nil {
		t.Fatal(err)
	}
	Uploads(volume).Add("one", "id key")
	Uploads(volume).Add("one", "1 part")
	Uploads(volume).Add("two", "id other")
	u := Uploads(volume)
	if got := u.Lines("one"); !slices.Equal(got, []string{"id key", "1 part"}) {
		t.Errorf("one has %q", got)
	}
	u.Clear("two")
	if got := u.Names(); !slices.Equal(got, []string{"one"}) || u.Lines("two") != nil {
		t.Errorf("there is %q, and two has %q", got, u.Lines("two"))
	}
}
