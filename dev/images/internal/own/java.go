package own

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"helenus.io/helenus/dev/images/internal/lock"
)

// JavaAgent is a Java agent of the project itself.
type JavaAgent struct {
	// Directory of its sources in the repository, and of the files that it reads.
	Directory string
	// Class that the JVM calls at its start.
	Class string
}

// What Java agents are compiled by and against. The classes of one compiler are the same on every
// host, and those of Dropwizard that they use are the same in all releases of Cassandra.
var (
	javaCompiler = lock.Coordinates{Group: "org.eclipse.jdt", ID: "ecj", Version: "3.33.0"}
	javaLibrary  = lock.Coordinates{Group: "io.dropwizard.metrics", ID: "metrics-core", Version: "3.1.5"}
)

// compileJava makes the jar of an agent: for Java 11, which is the oldest that runs Cassandra 4.1.
func (b *Builder) compileJava(ctx context.Context, agent JavaAgent, locked *lock.File, work string) (string, error) {
	var jars []string
	for _, c := range []lock.Coordinates{javaCompiler, javaLibrary} {
		artifact, err := find(locked, c)
		if err != nil {
			return "", err
		}
		jar, err := b.Jar(ctx, artifact)
		if err != nil {
			return "", err
		}
		// The cache names files by their hash, and a library must be called a jar.
		named := filepath.Join(work, c.FileName())
		if jar, err = filepath.Abs(jar); err != nil {
			return "", err
		}
		if err := os.Symlink(jar, named); err != nil {
			return "", err
		}
		jars = append(jars, named)
	}
	directory := filepath.Join(b.Repository, agent.Directory)
	sources, err := filepath.Glob(filepath.Join(directory, "*.java"))
	if err != nil || len(sources) == 0 {
		return "", fmt.Errorf("compile %s: there is no source of Java in %s: %w", agent.Class, directory, err)
	}
	classes := filepath.Join(work, "classes")
	command := exec.CommandContext(ctx, "java", append([]string{"-jar", jars[0], "--release", "11", "-proc:none",
		"-encoding", "UTF-8", "-cp", jars[1], "-d", classes}, sources...)...)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile %s: %w\n%s", agent.Class, err, bytes.TrimSpace(out))
	}
	jar := filepath.Join(work, filepath.Base(agent.Directory)+".jar")
	if err := pack(jar, "Manifest-Version: 1.0\r\nPremain-Class: "+agent.Class+"\r\n\r\n", os.DirFS(classes),
		os.DirFS(directory)); err != nil {
		return "", fmt.Errorf("pack %s: %w", agent.Class, err)
	}
	return jar, nil
}

// pack writes a jar of the classes and of the tables that they read, without times.
func pack(file, manifest string, classes, directory fs.FS) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // what was not written fails below
	archive := zip.NewWriter(out)
	entry, err := archive.Create("META-INF/MANIFEST.MF")
	if err != nil {
		return err
	}
	if _, err := io.WriteString(entry, manifest); err != nil {
		return err
	}
	for _, from := range []struct {
		files   fs.FS
		pattern string
	}{{classes, ".class"}, {directory, ".tsv"}} {
		if err := fs.WalkDir(from.files, ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != from.pattern {
				return err
			}
			text, err := fs.ReadFile(from.files, path)
			if err != nil {
				return err
			}
			entry, err := archive.Create(path)
			if err != nil {
				return err
			}
			_, err = entry.Write(text)
			return err
		}); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return out.Close()
}
