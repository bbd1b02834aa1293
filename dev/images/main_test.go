package main

import (
	"io/fs"
	"maps"
	"os"
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
		for _, c := range i.Artifacts() {
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

// The Dockerfile makes the same images: commands, jars by hash, users, labels.
func TestDockerfileAgrees(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, stages, _ := strings.Cut(string(text), "FROM scratch")
	for _, i := range own.Images {
		_, stage, found := strings.Cut(stages, " AS "+i.Name+"\n")
		stage, _, _ = strings.Cut(stage, "\nFROM ")
		if !found {
			t.Errorf("the Dockerfile has no stage %s", i.Name)
			continue
		}
		want := []string{"USER " + i.User, `ENTRYPOINT ["` + i.Entrypoint[0] + `"]`, i.Description}
		for file, agent := range i.Java {
			want = append(want, "/out/*.jar")
			for _, line := range []string{"COPY " + path.Clean(agent.Directory), path.Base(file), agent.Class} {
				if !strings.Contains(string(text), line) {
					t.Errorf("the Dockerfile does not compile %s: it has no %q", file, line)
				}
			}
		}
		for file := range i.Binaries {
			want = append(want, "/out/"+path.Base(file))
		}
		for _, line := range want {
			if !strings.Contains(stage, line) {
				t.Errorf("stage %s has no %q", i.Name, line)
			}
		}
		if len(i.Artifacts()) == 0 {
			continue
		}
		lockText, err := fs.ReadFile(locks, "locks/"+i.Name+"-"+own.AnyArchitecture+".json")
		if err != nil {
			t.Fatal(err)
		}
		locked, err := lock.Parse(lockText)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range i.Artifacts() {
			n := slices.IndexFunc(locked.Maven, func(a lock.Artifact) bool { return a.Name == c.String() })
			if n < 0 {
				t.Errorf("%s is not locked", c)
				continue
			}
			if line := locked.Maven[n].SHA256 + "  "; !strings.Contains(string(text), line) ||
				!strings.Contains(string(text), c.Group+":"+c.ID+":"+c.Version) {
				t.Errorf("the Dockerfile does not take %s, or does not check %q", c, line)
			}
		}
	}
}
