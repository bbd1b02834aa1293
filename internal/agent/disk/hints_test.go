package disk

import (
	"maps"
	"testing"
	"testing/fstest"
)

func TestHints(t *testing.T) {
	const a, b = "0a1b2c3d-0a1b-4a1b-8a1b-0a1b2c3d4e5f", "1a1b2c3d-0a1b-4a1b-8a1b-0a1b2c3d4e5f"
	files := fstest.MapFS{}
	for _, name := range []string{a + "-1763640000000-2.hints", a + "-1763640000000-2.crc32",
		a + "-1763640010000-3.hints", b + "-1763640000000-2.hints", b + "-1763640000000-2.hints.corrupt.hints",
		"hints", ".hints"} {
		files["hints/"+name] = &fstest.MapFile{}
	}
	if got, err := Hints(files); err != nil || !maps.Equal(got, map[string]int{a: 2, b: 1}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Hints(fstest.MapFS{}); err != nil || got == nil || len(got) > 0 {
		t.Errorf("before Cassandra has made the directory: %v, %v", got, err)
	}
	if got, err := Hints(fstest.MapFS{"hints": &fstest.MapFile{}}); err == nil || got != nil {
		t.Errorf("of what is no directory: %v, %v", got, err)
	}
}
