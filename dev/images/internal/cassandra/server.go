package cassandra

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/layer"
	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/internal/pypi"
	"helenus.io/helenus/dev/images/rootfs"
)

// Places in the image, as in the official one.
const (
	home     = "opt/cassandra"
	conf     = "etc/cassandra"
	javaHome = "opt/java/openjdk"
)

// server assembles the highest layer: Cassandra, its scripts, configuration and
// cqlsh.
func server(c *cache.Cache, v Version, locked *lock.File) (layer.Tree, error) {
	tree := layer.Tree{}
	cassandraJar := ""
	for _, a := range locked.Maven {
		coordinates, err := a.Coordinates()
		if err != nil {
			return nil, err
		}
		file := c.Download(a.SHA256)
		if coordinates == v.jar() {
			cassandraJar = file
		}
		if err := tree.Add(jarPath(v, coordinates, locked.Architecture),
			layer.Entry{Mode: 0o644, File: file}); err != nil {
			return nil, err
		}
	}
	if cassandraJar == "" {
		return nil, fmt.Errorf("the lock file of %s does not list %s", v.Image(), v.jar())
	}
	for _, w := range locked.Python {
		if err := pypi.Unpack(c.Download(w.SHA256), tree, home+"/pylib", keepPython); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", w.Name, err)
		}
	}
	// cqlsh warns when the server is not the one it came with; the release has
	// both from one source.
	if name := home + "/pylib/cqlshlib/serverversion.py"; tree[name].Content != nil {
		tree[name] = layer.Entry{Mode: 0o644, Content: []byte(fmt.Sprintf("version = %q\n", v.Number))}
	}
	if err := ownFiles(tree, v); err != nil {
		return nil, err
	}
	if err := checkSettings(tree, cassandraJar); err != nil {
		return nil, err
	}
	if err := fromJar(tree, cassandraJar, v); err != nil {
		return nil, err
	}
	for name, target := range map[string]string{
		home + "/conf": "/" + conf,
		home + "/data": "/var/lib/cassandra",
		home + "/logs": "/var/log/cassandra",
	} {
		tree[name] = layer.Entry{Kind: layer.Symlink, Mode: 0o777, Target: target}
	}
	// Anyone may write there, so that any user id can be given to the container.
	for _, name := range []string{conf, "var/lib/cassandra", "var/log/cassandra"} {
		tree[name] = layer.Entry{Kind: layer.Directory, Mode: 0o777 | fs.ModeSticky, UID: uid, GID: gid}
	}
	tree[conf+"/triggers"] = layer.Entry{Kind: layer.Directory, Mode: 0o777, UID: uid, GID: gid}
	return tree, nil
}

// jarPath is where the release puts a jar file: its natives below the machine's
// name, and Cassandra's own under the name of the release.
func jarPath(v Version, c lock.Coordinates, architecture string) string {
	switch {
	case c == v.jar():
		return home + "/lib/apache-cassandra-" + v.Number + ".jar"
	case slices.Contains(v.natives(architecture), c):
		return home + "/lib/" + machines[architecture].kernel + "/" + c.FileName()
	default:
		return home + "/lib/" + c.FileName()
	}
}

// keepPython leaves out compiled extensions, which only make the driver faster
// and are most of its size, and their sources.
func keepPython(name string) bool {
	switch path.Ext(name) {
	case ".so", ".c", ".pyx", ".pxd", ".h", ".pyi":
		return false
	}
	return true
}

// ownFiles adds the files of rootfs: common, release line, version.
func ownFiles(tree layer.Tree, v Version) error {
	for _, directory := range []string{"common", v.Line(), v.Number} {
		files, err := fs.Sub(rootfs.Files, directory)
		if err != nil {
			return err
		}
		if _, err := fs.Stat(files, "."); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			return tree.Add(name, ownFile(name, content))
		})
		if err != nil {
			return fmt.Errorf("add files of %s: %w", directory, err)
		}
	}
	return nil
}

// ownFile gives a file of rootfs its permissions: an embedded file has none.
func ownFile(name string, content []byte) layer.Entry {
	entry := layer.Entry{Mode: 0o644, Content: content}
	switch {
	case strings.HasPrefix(name, conf+"/"):
		entry.Mode, entry.UID, entry.GID = 0o666, uid, gid
	case strings.Contains(name, "bin/") && path.Base(name) != "cassandra.in.sh":
		entry.Mode = 0o755
	}
	return entry
}

// fromJar takes the compiler hints out of Cassandra's jar, as its own build
// does, and adds a script for every tool whose class is in it.
func fromJar(tree layer.Tree, jar string, v Version) error {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return fmt.Errorf("open jar of Cassandra: %w", err)
	}
	defer func() { _ = archive.Close() }()
	hints, err := archive.Open("META-INF/hotspot_compiler")
	if err != nil {
		return fmt.Errorf("read compiler hints: %w", err)
	}
	defer func() { _ = hints.Close() }()
	content, err := io.ReadAll(hints)
	if err != nil {
		return fmt.Errorf("read compiler hints: %w", err)
	}
	tree[conf+"/hotspot_compiler"] = ownFile(conf+"/hotspot_compiler", content)

	for _, t := range tools {
		if t.since > v.Line() {
			continue
		}
		class := toolPackage + t.class
		file, err := archive.Open(strings.ReplaceAll(class, ".", "/") + ".class")
		if err != nil {
			return fmt.Errorf("add tool %s: %w", t.path, err)
		}
		_ = file.Close()
		tree[home+"/"+t.path] = layer.Entry{Mode: 0o755, Content: []byte(t.script())}
	}
	return nil
}
