package initd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"helenus.io/helenus/internal/initapi"
)

const maxConfigBytes = 16 << 20 // of the image's configuration directory; the official one has 0.2 MB

// readImage copies the image's configuration into the shared volume and collects facts for the
// agent.
func (i *Init) readImage() error {
	image := &i.state.Image
	image.Environment = initapi.EnvironmentOfImage(os.Environ())
	image.ConfigDir = cmp.Or(image.Environment["CASSANDRA_CONF"], "/etc/cassandra")
	image.CassandraHome = cmp.Or(image.Environment["CASSANDRA_HOME"], "/opt/cassandra")
	image.Jars, _ = filepath.Glob(filepath.Join(image.CassandraHome, "lib", "apache-cassandra-*.jar"))
	javaHome := image.Environment["JAVA_HOME"]
	if java, err := exec.LookPath("java"); javaHome == "" && err == nil {
		java, _ = filepath.EvalSymlinks(java)
		javaHome = filepath.Dir(filepath.Dir(java))
	}
	release, _ := os.ReadFile(filepath.Join(javaHome, "release")) // optional
	image.JavaRelease = string(release[:min(len(release), 4096)])

	// A name per incarnation: no reader sees half of the old copy and half of the new one.
	image.Base = filepath.Join(i.cfg.Dir, "base", i.state.Incarnation)
	old, _ := filepath.Glob(filepath.Join(i.cfg.Dir, "base", "*"))
	if err := i.copyTree(image.ConfigDir, image.Base+".partial"); err != nil {
		return fmt.Errorf("copy the image's configuration %s (CASSANDRA_CONF names it): %w", image.ConfigDir, err)
	}
	if err := os.Rename(image.Base+".partial", image.Base); err != nil {
		return fmt.Errorf("publish the configuration copy: %w", err)
	}
	for _, path := range old {
		_ = os.RemoveAll(path) // the next start removes it
	}
	return nil
}

// copyTree copies directories and regular files; symbolic links to files become files. A file that
// this user may not read is left out: the JVM, which runs as the same user, could not read it
// either.
func (i *Init) copyTree(src, dst string) error {
	src, err := filepath.EvalSymlinks(src)
	if err != nil {
		return err
	}
	var total int64
	return filepath.WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dst, strings.TrimPrefix(path, src))
		if entry.IsDir() {
			return os.MkdirAll(to, 0o775)
		}
		info, err := os.Stat(path) // of a link to nothing, or to a directory, none that is regular
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		if total += info.Size(); total > maxConfigBytes {
			return fmt.Errorf("%s holds more than %d bytes", src, maxConfigBytes)
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrPermission) {
			i.logf("left out %s: %v", path, err)
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, info.Mode().Perm()|0o440)
	})
}
