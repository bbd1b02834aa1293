package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"helenus.io/helenus/dev/images/internal/cache"
)

func TestPruneKeepsLayersInUse(t *testing.T) {
	c, err := cache.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"used", "old", "lost"} {
		if err := os.WriteFile(c.Layer(key), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	note := func(image string, layers ...string) {
		text, err := json.Marshal(built{Layers: layers})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.Image(image)+".json", text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	note("there", c.Layer("used"))
	if err := os.WriteFile(c.Image("there"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	note("gone", c.Layer("lost")) // its image file is missing
	if err := prune(c); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"used": true, "old": false, "lost": false} {
		if got := cache.Exists(c.Layer(key)); got != want {
			t.Errorf("layer %s: kept %v, want %v", key, got, want)
		}
	}
}

func TestExpand(t *testing.T) {
	got := expand([]string{"own", "cassandra-5.0.6"})
	if want := []string{"helenus", "helenus-agent", "cassandra-5.0.6"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRecipeDependsOnTheNamedCode(t *testing.T) {
	id := func(text string, packages ...string) string {
		a := &app{recipe: fstest.MapFS{
			"jre/jre.go":         {Data: []byte("package jre")},
			"layer/layer.go":     {Data: []byte(text)},
			"layer/some_test.go": {Data: []byte("test " + text)},
		}}
		id, err := a.recipeID(packages...)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if id("a", "layer") == id("b", "layer") {
		t.Error("other code, same recipe")
	}
	if id("a", "jre") != id("b", "jre") {
		t.Error("code of another package changed the recipe")
	}
	if id("a") == id("b") {
		t.Error("the recipe of everything does not see every package")
	}
}

func TestCommandsSayWhatIsWrong(t *testing.T) {
	t.Setenv("HELENUS_CACHE", t.TempDir())
	for name, c := range map[string]struct {
		arguments []string
		want      string
	}{
		"unknown image":     {[]string{"build", "cassandra-9.9"}, `no image "cassandra-9.9"; there are cassandra-`},
		"no lock file":      {[]string{"build", "cassandra-5.0.6"}, "make it with `images lock cassandra-5.0.6`"},
		"not a repository":  {[]string{"build", "helenus", "--repo", "."}, "--repo"},
		"path of no image":  {[]string{"path", "x"}, "no image"},
		"lock in the wrong": {[]string{"lock", "--dir", "/nowhere"}, "run this in dev/images"},
	} {
		t.Run(name, func(t *testing.T) {
			root := New(fstest.MapFS{}, fstest.MapFS{"layer/layer.go": {}})
			root.SetArgs(c.arguments)
			root.SetOut(&strings.Builder{})
			root.SetErr(&strings.Builder{})
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}
