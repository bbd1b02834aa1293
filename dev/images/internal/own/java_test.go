package own

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
)

// The Java agent, which runs in every database, has at most 400 lines; blank ones do not count.
func TestTheJavaAgentStaysSmall(t *testing.T) {
	files, err := filepath.Glob("../../../../cmd/helenus-metrics/*.java")
	if err != nil || len(files) == 0 {
		t.Fatalf("sources %v, %v", files, err)
	}
	lines := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if len(bytes.TrimSpace(line)) > 0 {
				lines++
			}
		}
	}
	if lines > 400 {
		t.Errorf("%d lines", lines)
	}
}

// A jar of the same classes has the same bytes, and what the JVM looks for is its first entry.
func TestPackIsReproducible(t *testing.T) {
	classes := fstest.MapFS{"a/A.class": {Data: []byte("a")}, "a/notes.txt": {}}
	directory := fstest.MapFS{"t.tsv": {Data: []byte("t")}, "A.java": {}}
	var jars [][]byte
	for range 2 {
		file := filepath.Join(t.TempDir(), "a.jar")
		if err := pack(file, "Premain-Class: a.A\r\n", classes, directory); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		jars = append(jars, text)
	}
	if !bytes.Equal(jars[0], jars[1]) {
		t.Error("two jars of the same classes differ")
	}
	archive, err := zip.NewReader(bytes.NewReader(jars[0]), int64(len(jars[0])))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range archive.File {
		names = append(names, f.Name)
	}
	if want := []string{"META-INF/MANIFEST.MF", "a/A.class", "t.tsv"}; !slices.Equal(names, want) {
		t.Errorf("entries %q", names)
	}
}
