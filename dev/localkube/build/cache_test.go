package build

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"helenus.io/helenus/dev/localkube/versions"
)

func TestMissing(t *testing.T) {
	c := Open(t.TempDir(), release)
	if got := c.Missing(APIOnly()); !slices.Equal(got, APIOnly()) {
		t.Fatalf("in an empty cache %v is missing, want %v", got, APIOnly())
	}
	if err := os.MkdirAll(filepath.Dir(c.Path(Etcd)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Path(Etcd), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Missing(APIOnly()), []string{APIServer}; !slices.Equal(got, want) {
		t.Fatalf("with etcd built %v is missing, want %v", got, want)
	}
}

func TestEveryBinaryHasOneRecipe(t *testing.T) {
	for _, binary := range append(All(), Runtime()...) {
		found := 0
		for _, r := range recipes(release) {
			if r.Packages[binary] != "" {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s is built by %d recipes, want 1", binary, found)
		}
	}
	if _, err := recipeOf(release, "cloud-controller-manager"); err == nil {
		t.Error("no error for a binary that nothing builds")
	}
}

// What changes a binary must change its folder; building anew what is there is
// minutes lost.
func TestFolderDependsOnTheRecipeAlone(t *testing.T) {
	r := recipes(release)[0]
	if again := recipes(release)[0]; again.folder() != r.folder() {
		t.Error("equal recipes have different folders")
	}
	for name, change := range map[string]func(*recipe){
		"flags":      func(r *recipe) { r.LDFlags += " -X a=b" },
		"generation": func(r *recipe) { r.Generation++ },
		"target":     func(r *recipe) { r.Target = "linux/riscv64" },
		"module":     func(r *recipe) { r.Module = "example.com/x@v1.0.0" },
		"source":     func(r *recipe) { r.Sources = map[string]string{"etcd/main.go": "package main"} },
		"version":    func(r *recipe) { r.Version = versions.Kubernetes{Major: 1, Minor: 35, Patch: 5} },
	} {
		changed := recipes(release)[0]
		change(&changed)
		if changed.folder() == r.folder() {
			t.Errorf("another %s has the same folder", name)
		}
	}
}
