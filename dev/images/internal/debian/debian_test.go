package debian

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"helenus.io/helenus/dev/images/internal/layer"
)

func TestMirrorInList(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain": {"deb http://mirror.example/debian bookworm main\n", "http://mirror.example/debian"},
		"options": {"deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/d stable main contrib\n",
			"http://mirror.example/d"},
		"comment":       {"# deb http://mirror.example/debian bookworm main\n", ""},
		"another suite": {"deb http://other.example/x jammy main\n", ""},
		"security is not one": {"deb http://mirror.example/s bookworm-security main\ndeb http://mirror.example/d " +
			"bookworm main\n", "http://mirror.example/d"},
		"sources": {"deb-src http://mirror.example/debian bookworm main\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mirrorInList(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestMirrorInSources(t *testing.T) {
	text := "Types: deb\nURIs: http://other.example/x\nSuites: nodistro\nComponents: main\n\n" +
		"Types: deb\n# URIs: http://old.example\nURIs: http://mirror.example/debian\nSuites: bookworm " +
		"bookworm-updates\nComponents: main\n"
	if got, want := mirrorInSources(text), "http://mirror.example/debian"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := mirrorInSources("Types: deb\nURIs: http://x.example\nSuites: noble\nComponents: main\n"); got != "" {
		t.Errorf("took %q from another distribution", got)
	}
}

func TestMirrorFromEnvironment(t *testing.T) {
	t.Setenv("HELENUS_DEBIAN_MIRROR", "http://chosen.example/debian")
	if got, err := Mirror(); err != nil || got != "http://chosen.example/debian" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestPlannedPackages(t *testing.T) {
	text := "'http://mirror.example/p/libc6_2.36_amd64.deb' libc6_2.36-9+deb12u14_amd64.deb 2759320 MD5Sum:8d98\n" +
		"'http://mirror.example/p/x.deb' libattr1_1%3a2.5.1-4_amd64.deb 22164 MD5Sum:52fe\nNeed to get 1 kB\n"
	var got []string
	for _, match := range planned.FindAllStringSubmatch(text, -1) {
		got = append(got, match[1])
	}
	if want := []string{"libc6", "libattr1"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMerge(t *testing.T) {
	for name, want := range map[string]string{
		"bin/bash": "usr/bin/bash", "lib/x/y.so": "usr/lib/x/y.so", "lib64": "usr/lib64", "sbin/ip": "usr/sbin/ip",
		"usr/bin/x": "usr/bin/x", "library/x": "library/x", "etc/bin/x": "etc/bin/x",
	} {
		if got := Merge(name); got != want {
			t.Errorf("%s became %s, want %s", name, got, want)
		}
	}
}

func TestUnpackTar(t *testing.T) {
	var data bytes.Buffer
	archive := tar.NewWriter(&data)
	for _, h := range []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "./bin/perl", Typeflag: tar.TypeReg, Mode: 0o755, Size: 4},
		{Name: "./bin/perl5", Typeflag: tar.TypeLink, Linkname: "./bin/perl"},
		{Name: "./lib/x.so", Typeflag: tar.TypeSymlink, Linkname: "x.so.1"},
		{Name: "./usr/share/man/x", Typeflag: tar.TypeReg, Mode: 0o644},
	} {
		if err := archive.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := archive.Write([]byte("text")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	tree := layer.Tree{}
	if err := unpackTar(&data, tree, func(name string) bool {
		return !strings.HasPrefix(name, "usr/share/man")
	}); err != nil {
		t.Fatal(err)
	}
	program := layer.Entry{Mode: 0o755, Content: []byte("text")}
	want := layer.Tree{
		"tmp":           {Kind: layer.Directory, Mode: 0o777 | fs.ModeSticky},
		"usr/bin/perl":  program,
		"usr/bin/perl5": program,
		"usr/lib/x.so":  {Kind: layer.Symlink, Target: "x.so.1"},
	}
	if !reflect.DeepEqual(tree, want) {
		t.Errorf("got  %+v\nwant %+v", tree, want)
	}
}
