package jre

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"helenus.io/helenus/dev/images/internal/layer"
)

// modules of every runtime. java.se brings what Cassandra, nodetool and JMX
// clients name in code; the rest is found by name at run time, so that nothing
// but an error in production would tell of its absence.
var modules = []string{
	"java.se",
	"jdk.attach",           // sjk, agents loaded into a running JVM
	"jdk.crypto.ec",        // TLS with elliptic curves
	"jdk.httpserver",       // the Jolokia agent's server
	"jdk.jdwp.agent",       // debuggers
	"jdk.jfr",              // flight recorder
	"jdk.management",       // com.sun.management beans: memory, file descriptors
	"jdk.management.agent", // the JMX connector
	"jdk.management.jfr",   // flight recorder over JMX
	"jdk.naming.dns",       // DNS lookups by JNDI
	"jdk.naming.rmi",       // nodetool: without it, NoInitialContextException
	"jdk.net",              // extended socket options (TCP keep-alive)
	"jdk.security.auth",    // JAAS login modules
	"jdk.unsupported",      // sun.misc.Unsafe
	"jdk.xml.dom",          // completes java.xml
	"jdk.zipfs",            // jar files as file systems
}

// Build makes the runtime of a Java feature release (11, 17) from the unpacked
// OpenJDK packages and returns its files, below prefix. It runs the jlink of the
// packages, so they must be of this machine's architecture. Files are left in
// work.
func Build(ctx context.Context, packages layer.Tree, release int, work, prefix string) (layer.Tree, error) {
	home, err := unpack(packages, release, filepath.Join(work, "jdk"))
	if err != nil {
		return nil, fmt.Errorf("unpack JDK: %w", err)
	}
	out := filepath.Join(work, "jre")
	// No compression inside the image: the layer is compressed as a whole, and
	// class loading is faster. Ordered resources, because jlink of Java 11 writes
	// them in the order of a hash set that differs from run to run.
	if err := run(ctx, filepath.Join(home, "bin", "jlink"),
		"--module-path", filepath.Join(home, "jmods"), "--add-modules", strings.Join(modules, ","),
		"--strip-debug", "--no-header-files", "--no-man-pages", "--compress=0", "--order-resources=**", "--output",
		out); err != nil {
		return nil, err
	}
	// No class data archive: two dumps of the same runtime differ, and the layer
	// must not.
	tree := layer.Tree{}
	if err := tree.AddDir(out, prefix); err != nil {
		return nil, fmt.Errorf("collect runtime: %w", err)
	}
	return tree, nil
}

// unpack writes the JDK's files to directory and returns JAVA_HOME there.
// Absolute links, which lead to /etc on a normal machine, are turned to the
// copies inside directory.
func unpack(packages layer.Tree, release int, directory string) (string, error) {
	home := ""
	for name, entry := range packages {
		target := filepath.Join(directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return "", err
		}
		switch entry.Kind {
		case layer.Directory:
			if err := os.MkdirAll(target, 0o755); err != nil {
				return "", err
			}
		case layer.Symlink:
			link := entry.Target
			if filepath.IsAbs(link) {
				link = filepath.Join(directory, link)
			}
			if err := os.Symlink(link, target); err != nil {
				return "", err
			}
		case layer.Regular:
			if err := os.WriteFile(target, entry.Content, entry.Mode|fs.FileMode(0o600)); err != nil {
				return "", err
			}
			if strings.HasPrefix(name, "usr/lib/jvm/java-"+strconv.Itoa(release)+"-") &&
				strings.HasSuffix(name, "/bin/jlink") {
				home = filepath.Dir(filepath.Dir(target))
			}
		}
	}
	if home == "" {
		return "", fmt.Errorf("the packages hold no jlink of Java %d", release)
	}
	return home, nil
}

func run(ctx context.Context, name string, arguments ...string) error {
	command := exec.CommandContext(ctx, name, arguments...)
	// The machine's own Java options must not shape the image.
	command.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, bytes.TrimSpace(out))
	}
	return nil
}
