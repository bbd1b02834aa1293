package layer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func write(t *testing.T, tree Tree) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := tree.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func headers(t *testing.T, layer []byte) map[string]*tar.Header {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*tar.Header{}
	last := ""
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name < last && header.Name+"/" < last {
			t.Errorf("%s comes after %s", header.Name, last)
		}
		last = header.Name
		all[header.Name] = header
	}
}

// The same files give the same bytes, whenever and in whatever order they were
// put there.
func TestLayerDependsOnContentAlone(t *testing.T) {
	build := func(age time.Duration) []byte {
		directory := t.TempDir()
		for _, name := range []string{"b", "a", "c"} {
			file := filepath.Join(directory, name)
			if err := os.WriteFile(file, []byte("content of "+name), 0o640); err != nil {
				t.Fatal(err)
			}
			when := time.Now().Add(-age)
			if err := os.Chtimes(file, when, when); err != nil {
				t.Fatal(err)
			}
		}
		tree := Tree{}
		if err := tree.AddDir(directory, "opt/x"); err != nil {
			t.Fatal(err)
		}
		if err := tree.Add("/etc/y", Entry{Mode: 0o644, UID: 999, Content: []byte("y")}); err != nil {
			t.Fatal(err)
		}
		return write(t, tree)
	}
	first, second := build(0), build(48*time.Hour)
	if !bytes.Equal(first, second) {
		t.Fatal("two layers of the same files differ")
	}
	for name, header := range headers(t, first) {
		if header.ModTime.Unix() != 0 || header.Uname != "" || header.Gname != "" {
			t.Errorf("%s: time %v, owner %q, group %q: want none", name, header.ModTime, header.Uname, header.Gname)
		}
	}
}

func TestWriteAddsParentsAndKeepsAttributes(t *testing.T) {
	tree := Tree{
		"a/b/file": {Mode: 0o755, UID: 999, GID: 998, Content: []byte("12345")},
		"a/link":   {Kind: Symlink, Mode: 0o777, Target: "/x"},
		"tmp":      {Kind: Directory, Mode: 0o777 | fs.ModeSticky},
	}
	all := headers(t, write(t, tree))
	for name, want := range map[string]tar.Header{
		"a/":       {Typeflag: tar.TypeDir, Mode: 0o755},
		"a/b/":     {Typeflag: tar.TypeDir, Mode: 0o755},
		"a/b/file": {Typeflag: tar.TypeReg, Mode: 0o755, Uid: 999, Gid: 998, Size: 5},
		"a/link":   {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "/x"},
		"tmp/":     {Typeflag: tar.TypeDir, Mode: 0o1777},
	} {
		h := all[name]
		if h == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		got := tar.Header{Typeflag: h.Typeflag, Mode: h.Mode, Uid: h.Uid, Gid: h.Gid, Size: h.Size,
			Linkname: h.Linkname}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if len(all) != 5 {
		t.Errorf("got %d entries, want 5", len(all))
	}
}

func TestAddRefusesPathsOutside(t *testing.T) {
	for _, name := range []string{"", "/", "..", "../etc/passwd", "a/../../b"} {
		if err := (Tree{}).Add(name, Entry{}); err == nil {
			t.Errorf("adding %q succeeded", name)
		}
	}
}
