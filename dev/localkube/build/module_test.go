package build

import (
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"helenus.io/helenus/dev/localkube/versions"
)

// upstream is shaped like the go.mod of k8s.io/kubernetes: staging modules are
// required as v0.0.0 and replaced by paths; sample-controller is only replaced.
const upstream = `module k8s.io/kubernetes

go 1.25.0

godebug default=go1.25

require (
	github.com/spf13/cobra v1.10.0
	go.etcd.io/etcd/client/v3 v3.6.5
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.130.1
	k8s.io/kubelet v0.0.0
)

require go.etcd.io/etcd/server/v3 v3.6.5 // indirect

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kubelet => ./staging/src/k8s.io/kubelet
	k8s.io/sample-controller => ./staging/src/k8s.io/sample-controller
)
`

var release = versions.Kubernetes{Major: 1, Minor: 35, Patch: 4}

func parse(t *testing.T, content []byte) (requires, replaces map[string]string, f *modfile.File) {
	t.Helper()
	f, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatalf("the generated go.mod does not parse: %v\n%s", err, content)
	}
	requires, replaces = make(map[string]string), make(map[string]string)
	for _, r := range f.Require {
		requires[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range f.Replace {
		if r.New.Path != r.Old.Path {
			t.Errorf("%s is replaced by %s: only versions may be replaced", r.Old.Path, r.New.Path)
		}
		replaces[r.Old.Path] = r.New.Version
	}
	return requires, replaces, f
}

func equal(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for path, version := range want {
		if got[path] != version {
			t.Errorf("%s %s: %q, want %q", what, path, got[path], version)
		}
	}
	for path, version := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s %s %s is not wanted", what, path, version)
		}
	}
}

func TestKubernetesGoMod(t *testing.T) {
	content, err := kubernetesGoMod([]byte(upstream), release)
	if err != nil {
		t.Fatal(err)
	}
	requires, replaces, f := parse(t, content)
	equal(t, "require", requires, map[string]string{
		"github.com/spf13/cobra":    "v1.10.0",
		"go.etcd.io/etcd/client/v3": "v3.6.5",
		"go.etcd.io/etcd/server/v3": "v3.6.5",
		"k8s.io/api":                "v0.35.4",
		"k8s.io/klog/v2":            "v2.130.1",
		"k8s.io/kubelet":            "v0.35.4",
		"k8s.io/kubernetes":         "v1.35.4",
	})
	// One of the samples is not published for every release: what upstream does
	// not require must not be required.
	equal(t, "replace", replaces, map[string]string{
		"k8s.io/api": "v0.35.4", "k8s.io/kubelet": "v0.35.4", "k8s.io/sample-controller": "v0.35.4",
	})
	if f.Module.Mod.Path == "k8s.io/kubernetes" {
		t.Error("the module requires itself")
	}
	if len(f.Godebug) != 1 {
		t.Error("the settings that Kubernetes is released with are lost")
	}
}

func TestAddonsGoModPinsWhatKubernetesUses(t *testing.T) {
	content, err := addonsGoMod([]byte(upstream), release, map[string]string{"github.com/coredns/coredns": "v1.15.0"})
	if err != nil {
		t.Fatal(err)
	}
	requires, replaces, _ := parse(t, content)
	equal(t, "require", requires, map[string]string{"github.com/coredns/coredns": "v1.15.0"})
	equal(t, "replace", replaces, map[string]string{
		"github.com/spf13/cobra":    "v1.10.0",
		"go.etcd.io/etcd/client/v3": "v3.6.5",
		"go.etcd.io/etcd/server/v3": "v3.6.5",
		"k8s.io/api":                "v0.35.4",
		"k8s.io/klog/v2":            "v2.130.1",
		"k8s.io/kubelet":            "v0.35.4",
		"k8s.io/sample-controller":  "v0.35.4",
	})
}

func TestModuleGoModKeepsWhatUpstreamUses(t *testing.T) {
	const goMod = `module github.com/containerd/containerd/v2

go 1.26.8

require google.golang.org/grpc v1.83.2

require k8s.io/api v0.36.3 // indirect
`
	content, err := moduleGoMod([]byte(goMod), "github.com/containerd/containerd/v2@v2.3.7")
	if err != nil {
		t.Fatal(err)
	}
	requires, replaces, f := parse(t, content)
	equal(t, "require", requires, map[string]string{
		"github.com/containerd/containerd/v2": "v2.3.7",
		"google.golang.org/grpc":              "v1.83.2",
		"k8s.io/api":                          "v0.36.3",
	})
	if len(replaces) > 0 || f.Go.Version != "1.26.8" || f.Module.Mod.Path == "github.com/containerd/containerd/v2" {
		t.Errorf("the module requires itself, or is of another language:\n%s", content)
	}
	for _, content := range []string{"module example.com/x\n", "<html>"} {
		if _, err := moduleGoMod([]byte(content), "example.com/y@v1.0.0"); err == nil ||
			!strings.Contains(err.Error(), "parse the go.mod of example.com/y") {
			t.Errorf("%s: error %v, want one that names the module", content, err)
		}
	}
}

// One containerd is for all releases of Kubernetes, and is built once.
func TestContainerdDoesNotDependOnKubernetes(t *testing.T) {
	other := Open("/cache", versions.Kubernetes{Major: 1, Minor: 37, Patch: 2})
	for _, binary := range Runtime() {
		if a, b := Open("/cache", release).Path(binary), other.Path(binary); a != b {
			t.Errorf("%s is in %s and in %s", binary, a, b)
		}
	}
}

func TestGoModRefusesAnotherLayout(t *testing.T) {
	for name, content := range map[string]string{
		"another module":      "module example.com/x\n\ngo 1.25\n",
		"no staging":          "module k8s.io/kubernetes\n\ngo 1.25\n",
		"no language":         "module k8s.io/kubernetes\n",
		"not a go.mod at all": "<html>",
	} {
		if _, err := kubernetesGoMod([]byte(content), release); err == nil ||
			!strings.Contains(err.Error(), "parse the go.mod of k8s.io/kubernetes") {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
	}
}
