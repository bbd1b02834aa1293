package pypi

import (
	"archive/zip"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/dev/images/internal/layer"
)

func TestParseWheelName(t *testing.T) {
	for file, want := range map[string][2]string{
		"cqlsh-6.2.2-py3-none-any.whl":                     {"cqlsh", "6.2.2"},
		"pure_sasl-0.5.1-py2.py3-none-any.whl":             {"pure-sasl", "0.5.1"},
		"wcwidth-0.9-1-cp310-abi3-manylinux2014_amd64.whl": {"wcwidth", "0.9"},
	} {
		name, version, err := parseWheelName(file)
		if err != nil || name != want[0] || version != want[1] {
			t.Errorf("%s: got %s %s %v, want %v", file, name, version, err, want)
		}
	}
	if _, _, err := parseWheelName("x.whl"); err == nil {
		t.Error("a name without version was accepted")
	}
}

func TestUnpackLeavesOut(t *testing.T) {
	wheel := filepath.Join(t.TempDir(), "x.whl")
	file, err := os.Create(wheel)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	for _, name := range []string{"x/__init__.py", "x/fast.so", "x-1.dist-info/METADATA"} {
		if _, err := archive.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	tree := layer.Tree{}
	if err := Unpack(wheel, tree, "lib", func(name string) bool {
		return !strings.HasSuffix(name, ".so")
	}); err != nil {
		t.Fatal(err)
	}
	got, want := slices.Sorted(maps.Keys(tree)), []string{"lib/x-1.dist-info/METADATA", "lib/x/__init__.py"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
