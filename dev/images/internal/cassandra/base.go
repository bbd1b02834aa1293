package cassandra

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"helenus.io/helenus/dev/images/internal/cache"
	"helenus.io/helenus/dev/images/internal/debian"
	"helenus.io/helenus/dev/images/internal/layer"
	"helenus.io/helenus/dev/images/internal/lock"
)

// uid and gid of the user cassandra, as in the official image.
const uid, gid = 999, 999

// accounts are the users that programs look up.
var accounts = map[string]string{
	"etc/passwd": "root:x:0:0:root:/root:/bin/bash\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" +
		"cassandra:x:999:999::/home/cassandra:/bin/sh\n",
	"etc/group":         "root:x:0:\ntty:x:5:\nnogroup:x:65534:\ncassandra:x:999:\n",
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	// Container runtimes mount their own over it.
	"etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}

// base assembles the lowest layer: the Debian packages, without the traces of a
// package manager, and what their maintainer scripts would have made.
func base(ctx context.Context, c *cache.Cache, packages []lock.Package, architecture string) (layer.Tree, error) {
	tree := layer.Tree{}
	for _, p := range packages {
		if err := debian.Unpack(ctx, c.Download(p.SHA256), tree, keepFile(p.Name)); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", p.Name, err)
		}
	}
	for _, directory := range []string{"bin", "sbin", "lib", "lib64"} {
		tree[directory] = layer.Entry{Kind: layer.Symlink, Mode: 0o777, Target: "usr/" + directory}
	}
	for name, target := range map[string]string{
		"usr/bin/awk":                  "mawk",
		"usr/bin/sh":                   "dash",
		"usr/bin/which":                "which.debianutils",
		"usr/local/lib/libjemalloc.so": "/usr/lib/" + machines[architecture].triplet + "/libjemalloc.so.2",
	} {
		tree[name] = layer.Entry{Kind: layer.Symlink, Mode: 0o777, Target: target}
	}
	for name, text := range accounts {
		tree[name] = layer.Entry{Mode: 0o644, Content: []byte(text)}
	}
	tree["etc/ssl/certs/ca-certificates.crt"] = layer.Entry{Mode: 0o644, Content: certificates(tree)}
	for _, directory := range []string{"tmp", "var/tmp"} {
		tree[directory] = layer.Entry{Kind: layer.Directory, Mode: 0o777 | fs.ModeSticky}
	}
	for _, directory := range []string{"proc", "sys", "dev", "run"} {
		tree[directory] = layer.Entry{Kind: layer.Directory, Mode: 0o755}
	}
	if missing := missingLibraries(tree); len(missing) > 0 {
		return nil, fmt.Errorf("assemble Debian packages: libraries are missing: %s", strings.Join(missing, ", "))
	}
	return tree, nil
}

// certificates joins the trusted certificates into the bundle that programs
// read, and removes the single files.
func certificates(tree layer.Tree) []byte {
	const single = "usr/share/ca-certificates/"
	var bundle bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if strings.HasPrefix(name, single) {
			bundle.Write(tree[name].Content)
			delete(tree, name)
		}
	}
	return bundle.Bytes()
}

// missingLibraries finds shared libraries that a program or library in tree
// wants and that are not there; it guards against dropping one too many.
func missingLibraries(tree layer.Tree) []string {
	present := map[string]bool{}
	for name, entry := range tree {
		if entry.Kind != layer.Directory {
			present[path.Base(name)] = true
		}
	}
	var missing []string
	for name, entry := range tree {
		if entry.Kind != layer.Regular || !bytes.HasPrefix(entry.Content, []byte(elf.ELFMAG)) {
			continue
		}
		file, err := elf.NewFile(bytes.NewReader(entry.Content))
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		libraries, err := file.ImportedLibraries()
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", name, err))
		}
		for _, library := range libraries {
			if !present[library] {
				missing = append(missing, library+" of "+name)
			}
		}
	}
	slices.Sort(missing)
	return missing
}
