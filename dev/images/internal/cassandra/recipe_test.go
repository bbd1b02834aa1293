package cassandra

import (
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"helenus.io/helenus/dev/images/internal/layer"
	"helenus.io/helenus/dev/images/internal/lock"
	"helenus.io/helenus/dev/images/rootfs"
)

func TestKeepArtifact(t *testing.T) {
	for classifier, want := range map[string]bool{
		"": true, "native": true, "shaded": true, "linux-x86_64": true,
		"linux-aarch_64": false, "linux-riscv64": false, "osx-x86_64": false, "windows-x86_64": false,
	} {
		if got := keepArtifact("amd64")(lock.Coordinates{Classifier: classifier}); got != want {
			t.Errorf("classifier %q on amd64: kept %v, want %v", classifier, got, want)
		}
	}
}

func TestJarPath(t *testing.T) {
	v, err := Find("cassandra-5.0.6")
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]lock.Coordinates{
		"opt/cassandra/lib/apache-cassandra-5.0.6.jar": v.jar(),
		"opt/cassandra/lib/jamm-0.4.0.jar":             {Group: "com.github.jbellis", ID: "jamm", Version: "0.4.0"},
		"opt/cassandra/lib/epoll-1-linux-x86_64.jar": {Group: "io.netty", ID: "epoll", Version: "1",
			Classifier: "linux-x86_64"},
		"opt/cassandra/lib/x86_64/AmazonCorrettoCryptoProvider-2.2.0-linux-x86_64.jar": {
			Group: "software.amazon.cryptools", ID: "AmazonCorrettoCryptoProvider", Version: "2.2.0",
			Classifier: "linux-x86_64",
		},
	} {
		if got := jarPath(v, c, "amd64"); got != want {
			t.Errorf("%s lies at %s, want %s", c, got, want)
		}
	}
}

func TestKeepFile(t *testing.T) {
	for name, c := range map[string]struct {
		pkg  string
		want bool
	}{
		"usr/bin/bash":                                {"bash", true},
		"usr/share/doc/bash/copyright":                {"bash", true},
		"usr/share/doc/bash/changelog.gz":             {"bash", false},
		"usr/share/man/man1/bash.1.gz":                {"bash", false},
		"usr/bin/getopt":                              {"util-linux", true},
		"usr/bin/lsblk":                               {"util-linux", false},
		"usr/lib/x86_64-linux-gnu/gconv/ISO8859-1.so": {"libc6", false},
		"usr/lib/python3.11/lib-dynload/nis.cpython-311-x86_64-linux-gnu.so":  {"libpython3.11-stdlib", false},
		"usr/lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so": {"libpython3.11-stdlib", true},
		"usr/share/manual": {"x", true},
	} {
		if got := keepFile(c.pkg)(name); got != c.want {
			t.Errorf("%s of %s: kept %v, want %v", name, c.pkg, got, c.want)
		}
	}
}

func TestMissingLibrariesSpeaksOfBrokenFiles(t *testing.T) {
	tree := layer.Tree{"usr/bin/x": {Content: []byte("\x7fELF and then nothing")},
		"usr/bin/script": {Content: []byte("#!/bin/sh\n")}}
	if got := missingLibraries(tree); len(got) != 1 || !strings.HasPrefix(got[0], "usr/bin/x: ") {
		t.Errorf("got %q, want one about usr/bin/x", got)
	}
}

// files of a version as they go into its image.
func files(t *testing.T, v Version) layer.Tree {
	t.Helper()
	tree := layer.Tree{}
	if err := ownFiles(tree, v); err != nil {
		t.Fatal(err)
	}
	return tree
}

// The configuration directory is complete for the Java of the image, and the
// entry point and the operator can find in it what they change.
func TestConfigurationIsComplete(t *testing.T) {
	for _, v := range Versions {
		t.Run(v.Number, func(t *testing.T) {
			tree := files(t, v)
			for _, name := range []string{
				"cassandra.yaml", "cassandra-env.sh", "logback.xml", "logback-tools.xml", "cassandra-rackdc.properties",
				"commitlog_archiving.properties", "cassandra-jaas.config", "triggers/README.txt",
				"jvm-server.options", "jvm-clients.options",
				"jvm" + strconv.Itoa(v.Java) + "-server.options", "jvm" + strconv.Itoa(v.Java) + "-clients.options",
			} {
				entry, ok := tree[conf+"/"+name]
				if !ok {
					t.Errorf("%s is missing", name)
				} else if entry.UID != uid || entry.GID != gid || entry.Mode != 0o666 {
					t.Errorf("%s belongs to %d:%d with mode %o", name, entry.UID, entry.GID, entry.Mode)
				}
			}
			yaml := string(tree[conf+"/cassandra.yaml"].Content)
			for _, pattern := range []string{
				`(?m)^cluster_name:`, `(?m)^num_tokens:`, `(?m)^listen_address:`, `(?m)^rpc_address:`,
				`(?m)^endpoint_snitch:`,
				`(?m)^# broadcast_address:`, `(?m)^# broadcast_rpc_address:`, `(?m)^\s+- seeds:`,
			} {
				if found := regexp.MustCompile(pattern).FindAllString(yaml, -1); len(found) != 1 {
					t.Errorf("cassandra.yaml has %d lines %s, want 1", len(found), pattern)
				}
			}
			if !strings.Contains(string(tree[conf+"/cassandra-env.sh"].Content), "\nJMX_PORT=\"7199\"\n") {
				t.Error("nodetool would not find the port in cassandra-env.sh")
			}
			for _, script := range []string{"bin/cassandra", "bin/nodetool", "bin/cqlsh"} {
				if tree[home+"/"+script].Mode != 0o755 {
					t.Errorf("%s has mode %o", script, tree[home+"/"+script].Mode)
				}
			}
		})
	}
}

// A file of a version is only there because it differs from that of its line.
func TestOverlaysDiffer(t *testing.T) {
	for _, v := range Versions {
		line, version := layer.Tree{}, layer.Tree{}
		if err := ownFiles(line, Version{Number: v.Line() + ".none"}); err != nil {
			t.Fatal(err)
		}
		if err := ownFiles(version, v); err != nil {
			t.Fatal(err)
		}
		own, err := fs.Glob(rootfs.Files, v.Number+"/"+conf+"/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range own {
			name := conf + "/" + path.Base(file)
			if string(line[name].Content) == string(version[name].Content) {
				t.Errorf("%s is the same as in %s", file, v.Line())
			}
		}
	}
}

func TestToolsStartTheirClass(t *testing.T) {
	seen := map[string]bool{}
	for _, tool := range tools {
		if seen[tool.path] {
			t.Errorf("%s is listed twice", tool.path)
		}
		seen[tool.path] = true
		if !strings.Contains(tool.script(), " org.apache.cassandra.tools."+tool.class+" ") {
			t.Errorf("%s does not start %s:\n%s", tool.path, tool.class, tool.script())
		}
	}
}
