package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file is there whole and as it was backed up, or not at all.
func TestPlaceFile(t *testing.T) {
	const name, content = "nb-1-big-Data.db", "rows"
	sum := sha256.Sum256([]byte(content))
	wanted := hex.EncodeToString(sum[:])
	for of, c := range map[string]struct {
		content, before, left string
		kept, refused         bool
	}{
		"nothing is there":            {content: content},
		"it is there":                 {content: content, before: content, kept: true},
		"another one is there":        {content: content, before: "old"},
		"one of its size is there":    {content: content, before: "rowz"},
		"a part of it was written":    {content: content, left: "ro"},
		"more of another was written": {content: content, left: "much more"},
		"it has another byte":         {content: "rowz", refused: true},
		"it is too short":             {content: "row", refused: true},
		"it is too long":              {content: "rows!", refused: true},
	} {
		t.Run(of, func(t *testing.T) {
			volume := t.TempDir()
			path := filepath.Join(volume, "data", "shop", "orders-1", name)
			for file, text := range map[string]string{path: c.before, path + unfinished: c.left} {
				if text == "" {
					continue
				}
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(volume)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close() //nolint:errcheck // ends the test
			has := func() bool {
				return HasFile(root, DefaultLayout().File("shop", "orders-1", name), int64(len(content)), wanted)
			}
			if has() != c.kept {
				t.Errorf("it counts as there: %v", has())
			}
			err = PlaceFile(root, DefaultLayout().File("shop", "orders-1", name), int64(len(content)), wanted,
				strings.NewReader(c.content))
			if (err != nil) != c.refused || has() == c.refused {
				t.Errorf("error %v, there %v", err, has())
			}
			entries, _ := os.ReadDir(filepath.Dir(path))
			if want := map[bool]int{false: 1, true: 0}[c.refused]; len(entries) != want {
				t.Errorf("%d files are left", len(entries))
			}
		})
	}
}
