package release

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/own"
)

var jar = lock.Coordinates{Group: "g", ID: "agent", Version: "1", Classifier: "javaagent"}

// write releases a small program, as both images and as the plugin, with the chart of the project.
func write(t *testing.T, key *Key) map[string][]byte {
	t.Helper()
	repository, sum := t.TempDir(), sha256.Sum256([]byte("jar"))
	for from, to := range map[string]string{"../own/testdata/repository": ".", "../../../../charts": "charts"} {
		if err := os.CopyFS(filepath.Join(repository, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"LICENSE": "as you like", "agent.jar": "jar"} {
		if err := os.WriteFile(filepath.Join(repository, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	image := own.Image{Name: "operator", Repository: "registry.example/operator",
		Binaries: map[string]string{"/hello": "./hello"}, Entrypoint: []string{"/hello"}}
	agent := image
	agent.Name, agent.Repository = "agent", "registry.example/agent"
	agent.Jars = map[string]lock.Coordinates{"/a.jar": jar}
	r := &Release{Version: "v1.2.3", Created: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC),
		URL: "https://example.test/v1.2.3", Repository: repository, Plugin: "./hello", Systems: []string{"linux"},
		Images: map[string]own.Image{"operator": image, "agent": agent},
		Jar: func(context.Context, lock.Artifact) (string, error) {
			return filepath.Join(repository, "agent.jar"), nil
		},
		Lock: func(name string) (*lock.File, error) {
			return &lock.File{Image: name, Maven: []lock.Artifact{{Name: jar.String(),
				SHA256: hex.EncodeToString(sum[:])}}}, nil
		},
		Key: key, Work: t.TempDir(), Out: t.TempDir()}
	if err := r.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	files, err := os.ReadDir(r.Out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if out[f.Name()], err = os.ReadFile(filepath.Join(r.Out, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// unpacked are the files of an archive.
func unpacked(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(strings.NewReader(string(archive)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		out[header.Name] = string(text)
	}
}

// Two releases of the same source from different directories have the same bytes, and what one says
// of another file is true of it.
func TestReleaseIsReproducible(t *testing.T) {
	files, again := write(t, nil), write(t, nil)
	want := []string{"agent-v1.2.3.oci.tar.gz", "agent-v1.2.3.spdx.json", "helenus-1.2.3.tgz", "helenus.yaml",
		"kubectl-helenus-v1.2.3-linux-amd64.tar.gz", "kubectl-helenus-v1.2.3-linux-arm64.tar.gz",
		"operator-v1.2.3.oci.tar.gz", "operator-v1.2.3.spdx.json"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Fatalf("files %q", got)
	}
	for name, text := range files {
		if string(again[name]) != string(text) {
			t.Errorf("%s is another one the second time", name)
		}
	}

	chart := unpacked(t, files["helenus-1.2.3.tgz"])
	if about := chart["helenus/Chart.yaml"]; !strings.Contains(about, "\nversion: 1.2.3\nappVersion: v1.2.3\n") {
		t.Errorf("Chart.yaml:\n%s", about)
	}
	digest := digestIn(t, unpacked(t, files["agent-v1.2.3.oci.tar.gz"])["index.json"])
	if values := chart["helenus/values.yaml"]; !strings.Contains(values, "    repository: registry.example/agent\n"+
		"    tag: v1.2.3\n    digest: "+digest+"\n") || strings.Contains(values, "registry.invalid") {
		t.Errorf("values.yaml does not name the images, such as %s:\n%s", digest, values)
	}
	if chart["helenus/templates/deployment.yaml"] == "" {
		t.Error("the chart has no templates")
	}

	for _, architecture := range architectures {
		name := "kubectl-helenus-v1.2.3-linux-" + architecture + ".tar.gz"
		entry := fmt.Sprintf("uri: https://example.test/v1.2.3/%s\n    sha256: %x\n", name, sha256.Sum256(files[name]))
		if !strings.Contains(string(files["helenus.yaml"]), entry) {
			t.Errorf("krew's manifest lacks %s:\n%s", entry, files["helenus.yaml"])
		}
		if plugin := unpacked(t, files[name]); plugin["kubectl-helenus"] == "" || plugin["LICENSE"] != "as you like" {
			t.Errorf("%s lacks a file", name)
		}
	}

	var inside struct {
		Packages []part `json:"packages"`
	}
	if err := json.Unmarshal(files["agent-v1.2.3.spdx.json"], &inside); err != nil {
		t.Fatal(err)
	}
	var locators []string
	for _, p := range inside.Packages {
		for _, of := range p.References {
			locators = append(locators, of.Locator)
		}
	}
	if len(locators) != 2 || !regexp.MustCompile(`^pkg:golang/std@1[.]`).MatchString(locators[0]) ||
		locators[1] != "pkg:maven/g/agent@1?classifier=javaagent" ||
		"sha256:"+inside.Packages[0].Checksums[0].Value != digest {
		t.Errorf("in the agent: %q of %+v", locators, inside.Packages[0])
	}
}
