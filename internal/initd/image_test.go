package initd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
)

func TestImageIsReported(t *testing.T) {
	dir, err := os.MkdirTemp("", "initd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	image := t.TempDir()
	conf := filepath.Join(image, "conf")
	write(t, filepath.Join(image, "real", "cassandra.yaml"), "cluster_name: image\n")
	write(t, filepath.Join(image, "real", "triggers", "README.txt"), "triggers\n")
	write(t, filepath.Join(image, "elsewhere"), "linked\n")
	write(t, filepath.Join(image, "java", "release"), "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n")
	for link, target := range map[string]string{conf: "real", filepath.Join(image, "real", "linked"): "../elsewhere",
		filepath.Join(image, "real", "dangling"): "nowhere"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("JAVA_HOME", filepath.Join(image, "java"))
	t.Setenv("DB_PASSWORD", "not for the agent")

	c := startContainerIn(t, dir, conf, time.Hour)
	first := c.now()
	if first.Image.ConfigDir != conf || first.Image.CassandraHome != "/opt/here" ||
		!strings.Contains(first.Image.JavaRelease, `JAVA_VERSION="17.0.15"`) {
		t.Errorf("image %+v", first.Image)
	}
	if first.Image.Environment["CASSANDRA_HOME"] != "/opt/here" || first.Image.Environment["DB_PASSWORD"] != "" {
		t.Errorf("environment %v", first.Image.Environment)
	}
	for name, want := range map[string]string{"cassandra.yaml": "cluster_name: image\n",
		"triggers/README.txt": "triggers\n", "linked": "linked\n"} {
		got, err := os.ReadFile(filepath.Join(first.Image.Base, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(first.Image.Base, "dangling")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dangling link was copied: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, initapi.SocketName)); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("socket mode %v, %v", info.Mode(), err)
	}

	// The container is restarted: killed hard, its socket and its copy stay behind.
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.end()
	write(t, filepath.Join(image, "real", "cassandra.yaml"), "cluster_name: newer\n")
	c = startContainerIn(t, dir, conf, time.Hour)
	second := c.now()
	if second.Incarnation == first.Incarnation || second.Image.Base == first.Image.Base {
		t.Errorf("incarnation %q and base %q stayed", second.Incarnation, second.Image.Base)
	}
	if got, err := os.ReadFile(filepath.Join(second.Image.Base, "cassandra.yaml")); err != nil ||
		string(got) != "cluster_name: newer\n" {
		t.Errorf("refreshed copy: %q, %v", got, err)
	}
	if _, err := os.Stat(first.Image.Base); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the former copy stayed: %v", err)
	}
	if _, err := c.Start(background, first, 1, jvm()); !initclient.Refused(err, initapi.CodeIncarnation) {
		t.Errorf("start decided for the former container: %v", err)
	}
}

func TestAMissingOrHugeConfigurationIsNamed(t *testing.T) {
	huge := t.TempDir()
	write(t, filepath.Join(huge, "file"), "")
	if err := os.Truncate(filepath.Join(huge, "file"), maxConfigBytes+1); err != nil {
		t.Fatal(err)
	}
	for conf, want := range map[string]string{"/no/such/conf": "/no/such/conf", huge: "holds more than"} {
		t.Setenv("CASSANDRA_CONF", conf)
		i := newInit(t)
		i.cfg.Dir = t.TempDir()
		if err := i.readImage(); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "CASSANDRA_CONF") {
			t.Errorf("%s: %v", conf, err)
		}
	}
}
