package disk

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPlaceSSTable(t *testing.T) {
	const name = "nb-7-big"
	files := map[string][]byte{"Data.db": []byte("new"), "Index.db": []byte("new"), "TOC.txt": []byte("new")}
	for of, c := range map[string]struct {
		before []string
		// blocked is a directory in the way of a file; want is what is there afterwards.
		blocked string
		want    string
	}{
		"nothing there":                {nil, "", "nb-7-big-Data.db nb-7-big-Index.db nb-7-big-TOC.txt"},
		"another SSTable":              {[]string{"nb-70-big-Data.db"}, "", "nb-7-big-Data.db nb-7-big-Index.db nb-7-big-TOC.txt nb-70-big-Data.db"},
		"left at its beginning":        {[]string{"nb-7-big-Index.db"}, "", "nb-7-big-Data.db nb-7-big-Index.db nb-7-big-TOC.txt"},
		"left before its end":          {[]string{"nb-7-big-Index.db", "nb-7-big-TOC.txt", unplaced}, "", "nb-7-big-Data.db nb-7-big-Index.db nb-7-big-TOC.txt"},
		"left by another release":      {[]string{"nb-7-big-Data.db", "nb-7-big-Other.db"}, "", "nb-7-big-Data.db nb-7-big-Index.db nb-7-big-TOC.txt"},
		"ends while it removes":        {[]string{"nb-7-big-Data.db"}, "nb-7-big-Index.db", "nb-7-big-Index.db"},
		"ends before it has the data":  {nil, unplaced, "helenus.tmp"},
		"there is no such table there": {nil, ".", ""},
	} {
		t.Run(of, func(t *testing.T) {
			volume := t.TempDir()
			table := filepath.Join(volume, "data", "system_auth", "roles-1")
			if c.blocked != "." {
				if err := os.MkdirAll(table, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range c.before {
				if err := os.WriteFile(filepath.Join(table, file), []byte("old and longer"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.blocked != "" && c.blocked != "." {
				if err := os.MkdirAll(filepath.Join(table, c.blocked, "x"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			root, err := os.OpenRoot(volume)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close() //nolint:errcheck // ends the test
			err = PlaceSSTable(root, DefaultLayout(), "system_auth", "roles-1", name, files)
			if (err != nil) != (c.blocked != "") {
				t.Errorf("error %v", err)
			}
			got := map[string]string{}
			entries, _ := os.ReadDir(table)
			for _, e := range entries {
				content, _ := os.ReadFile(filepath.Join(table, e.Name()))
				got[e.Name()] = string(content)
			}
			if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != c.want {
				t.Errorf("there are %s, want %s", names, c.want)
			}
			for component := range files {
				if content := got[name+"-"+component]; err == nil && content != "new" {
					t.Errorf("%s is %q", component, content)
				}
			}
		})
	}
}
