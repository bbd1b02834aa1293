package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImagesArePinnedByWhatWasLoaded(t *testing.T) {
	images, err := loaded("present  cassandra:5.0.6  sha256:aa  0.1s\nloaded  ghcr.io/x/helenus:dev  sha256:bb  " +
		"1.0s\nloaded  ghcr.io/x/helenus-agent:dev  sha256:cc  1.0s\n")
	if err != nil {
		t.Fatal(err)
	}
	if images.Operator != "ghcr.io/x/helenus:dev@sha256:bb" || images.Agent != "ghcr.io/x/helenus-agent:dev@sha256:cc" {
		t.Errorf("images %+v", images)
	}
	for _, out := range []string{"", "loaded  ghcr.io/x/helenus:dev  sha256:bb  1.0s\n", "all well\n"} {
		if _, err := loaded(out); err == nil {
			t.Errorf("no error for %q", out)
		}
	}
}

func TestTheCheckoutIsFoundFromBelow(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "dev", "demo")
	for _, folder := range []string{below, filepath.Join(top, "config")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := FindRepository(below); err == nil || !strings.Contains(err.Error(), "--repo") {
		t.Errorf("error %v, want one that says what to do", err)
	}
	if err := os.WriteFile(filepath.Join(top, ManifestPath), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := FindRepository(below); err != nil || got != top {
		t.Errorf("found %s, error %v; want %s", got, err, top)
	}
	if err := (Tools{Repository: top}).Check(); err == nil || !strings.Contains(err.Error(), "make local-tools") {
		t.Errorf("error %v, want one that says what to do", err)
	}
}
