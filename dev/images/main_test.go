package main

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/dev/images/internal/cassandra"
	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/own"
)

// Every image has a committed lock file that lists what its recipe names.
func TestLockFiles(t *testing.T) {
	want := map[string][]string{}
	for _, v := range cassandra.Versions {
		want[v.Image()+"-amd64.json"] = []string{"org.apache.cassandra:cassandra-all:" + v.Number}
	}
	for _, i := range own.Images {
		for _, c := range i.Jars {
			name := i.Name + "-" + own.AnyArchitecture + ".json"
			want[name] = append(want[name], c.String())
		}
	}
	files, err := fs.Glob(locks, "locks/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(locks, file)
		if err != nil {
			t.Fatal(err)
		}
		locked, err := lock.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if name := locked.Image + "-" + locked.Architecture + ".json"; name != path.Base(file) {
			t.Errorf("%s is the lock file %s", file, name)
		}
		again, err := locked.Format()
		if err != nil || string(again) != string(text) {
			t.Errorf("%s was not written by the command lock (%v)", file, err)
		}
		for _, artifact := range want[path.Base(file)] {
			if !slices.ContainsFunc(locked.Maven, func(a lock.Artifact) bool { return a.Name == artifact }) {
				t.Errorf("%s does not list %s", file, artifact)
			}
		}
		delete(want, path.Base(file))
	}
	if len(want) > 0 {
		t.Errorf("no lock file %s", strings.Join(slices.Sorted(maps.Keys(want)), ", "))
	}
}
