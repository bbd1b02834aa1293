package settings

import (
	"archive/zip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func fixture(t testing.TB) []byte {
	t.Helper()
	class, err := os.ReadFile("testdata/Config.class")
	if err != nil {
		t.Fatal(err)
	}
	return class
}

func TestReadFindsSettingsAndOldNames(t *testing.T) {
	jar := filepath.Join(t.TempDir(), "cassandra.jar")
	file, err := os.Create(jar)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	entry, err := archive.Create("org/apache/cassandra/config/Config.class")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(fixture(t)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}

	got, err := Read(jar)
	if err != nil {
		t.Fatal(err)
	}
	want := []Setting{
		{Name: "cluster_name", Type: "String"},
		{Name: "data_file_directories", Type: "String[]"},
		{Name: "first_name", Type: "int", ReplacedBy: "renamed"},
		{Name: "going_away", Type: "boolean", Deprecated: true},
		{Name: "max_hint_window", Type: "String"},
		{Name: "max_hint_window_in_ms", Type: "String", Deprecated: true, ReplacedBy: "max_hint_window",
			Converter: "MILLIS_DURATION_INT"},
		{Name: "num_tokens", Type: "int"},
		{Name: "renamed", Type: "int"},
		{Name: "second_name", Type: "int", Deprecated: true, ReplacedBy: "renamed"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestReadFailsWithoutClass(t *testing.T) {
	if _, err := Read(filepath.Join(t.TempDir(), "none.jar")); err == nil {
		t.Error("reading a jar that is not there succeeded")
	}
}

func TestUnknown(t *testing.T) {
	known := []Setting{{Name: "cluster_name"}, {Name: "seed_provider"}, {Name: "broadcast_address"}}
	for name, c := range map[string]struct {
		yaml string
		want []string
	}{
		"all known": {"cluster_name: x\nseed_provider:\n  - class_name: y\n# broadcast_address: 1.2.3.4\n",
			nil},
		"in force":              {"cluster_name: x\nclustername: y\n", []string{"clustername"}},
		"offered":               {"# no_such: 1\n#other_one:\n", []string{"no_such", "other_one"}},
		"once":                  {"no_such: 1\n# no_such: 2\n", []string{"no_such"}},
		"words are no settings": {"# Note: this is text\n#   nested: 1\n  nested: 2\n# http://x\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unknown([]byte(c.yaml), known); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A damaged class must give an error or fields, never a panic or an endless loop.
func FuzzReadFields(f *testing.F) {
	class := fixture(f)
	f.Add(class)
	f.Add(class[:len(class)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := readFields(data)
		if err != nil && fields != nil {
			t.Error("both fields and an error")
		}
	})
}
