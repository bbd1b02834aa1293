package cassandra

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helenus.io/helenus/dev/images/internal/layer"
)

// machine is a directory with the files of an image and stubs for programs that
// cannot run in a test.
type machine struct {
	t    *testing.T
	root string
}

// newMachine lays out the image of v. The stubs: java and cassandra print their
// arguments one on each line, id says the user is not root, ip has an address.
func newMachine(t *testing.T, v Version) *machine {
	t.Helper()
	m := &machine{t: t, root: t.TempDir()}
	tree := files(t, v)
	arguments := "#!/bin/sh\nfor a in \"$@\"; do echo \"[$a]\"; done\n"
	for name, text := range map[string]string{
		"stubs/cassandra":      arguments,
		javaHome + "/bin/java": arguments,
		javaHome + "/release":  "JAVA_VERSION=\"" + map[int]string{11: "11.0.24", 17: "17.0.19"}[v.Java] + "\"\n",
		"stubs/id":             "#!/bin/sh\necho 999\n",
		"stubs/numactl":        "#!/bin/sh\nexit 1\n",
		"stubs/ip": "#!/bin/sh\necho '1: lo    inet 127.0.0.1/8 scope host lo'\necho '2: eth0    " +
			"inet 10.1.2.3/24 scope global eth0'\n",
		home + "/lib/x.jar":          "",
		home + "/lib/jamm-0.4.0.jar": "",
		home + "/logs/keep":          "",
		"tmp/keep":                   "",
	} {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		tree[name] = layer.Entry{Mode: mode, Content: []byte(text)}
	}
	for name, entry := range tree {
		file := filepath.Join(m.root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, entry.Content, entry.Mode); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// run runs a program of the image and returns its output.
func (m *machine) run(env []string, name string, arguments ...string) (string, error) {
	command := exec.Command(filepath.Join(m.root, name), arguments...)
	command.Env = append([]string{
		"PATH=" + filepath.Join(m.root, "stubs") + ":" + os.Getenv("PATH"),
		"HOME=" + m.root,
		"JAVA_HOME=" + filepath.Join(m.root, javaHome),
		"CASSANDRA_HOME=" + filepath.Join(m.root, home),
		"CASSANDRA_CONF=" + filepath.Join(m.root, conf),
	}, env...)
	out, err := command.CombinedOutput()
	return string(out), err
}

func (m *machine) mustRun(env []string, name string, arguments ...string) string {
	m.t.Helper()
	out, err := m.run(env, name, arguments...)
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
	return out
}

func (m *machine) lines(name string) []string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

func wantLines(t *testing.T, what string, lines, want []string) {
	t.Helper()
	all := "\n" + strings.Join(lines, "\n") + "\n"
	for _, line := range want {
		if !strings.Contains(all, "\n"+line+"\n") {
			t.Errorf("%s has no line %q", what, line)
		}
	}
}

const entrypoint = "usr/local/bin/docker-entrypoint.sh"

func TestEntrypointEditsConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		env, yaml, rackdc []string
	}{
		"defaults": {nil, []string{
			"listen_address: 10.1.2.3", "broadcast_address: 10.1.2.3", "rpc_address: 0.0.0.0",
			"broadcast_rpc_address: 10.1.2.3",
			`      - seeds: "10.1.2.3"`, "cluster_name: 'Test Cluster'", "num_tokens: 16",
		}, []string{"dc=dc1", "rack=rack1"}},
		"everything": {[]string{
			"CASSANDRA_LISTEN_ADDRESS=10.0.0.1", "CASSANDRA_BROADCAST_ADDRESS=10.0.0.2",
			"CASSANDRA_RPC_ADDRESS=10.0.0.3",
			"CASSANDRA_BROADCAST_RPC_ADDRESS=10.0.0.4", "CASSANDRA_SEEDS=a,b", "CASSANDRA_CLUSTER_NAME=R&D / \\x",
			"CASSANDRA_NUM_TOKENS=4", "CASSANDRA_ENDPOINT_SNITCH=GossipingPropertyFileSnitch", "CASSANDRA_DC=west",
			"CASSANDRA_RACK=r 2",
		}, []string{
			"listen_address: 10.0.0.1", "broadcast_address: 10.0.0.2", "rpc_address: 10.0.0.3",
			"broadcast_rpc_address: 10.0.0.4",
			`      - seeds: "a,b"`, `cluster_name: R&D / \x`, "num_tokens: 4",
			"endpoint_snitch: GossipingPropertyFileSnitch",
		}, []string{"dc=west", "rack=r 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range Versions {
				m := newMachine(t, v)
				if out := m.mustRun(c.env, entrypoint, "cassandra", "-f"); out != "[-f]\n" {
					t.Errorf("cassandra was started with %q", out)
				}
				wantLines(t, v.Number+" cassandra.yaml", m.lines(conf+"/cassandra.yaml"), c.yaml)
				wantLines(t, v.Number+" rackdc", m.lines(conf+"/cassandra-rackdc.properties"), c.rackdc)
			}
		})
	}
}

func TestEntrypointArguments(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		want      string
	}{
		"none":         {nil, "[-f]\n"},
		"options":      {[]string{"-Dx=y"}, "[-f]\n[-Dx=y]\n"},
		"other":        {[]string{"echo", "a b"}, "a b\n"},
		"with options": {[]string{"cassandra", "-R"}, "[-R]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, Versions[0])
			before := strings.Join(m.lines(conf+"/cassandra.yaml"), "\n")
			if out := m.mustRun(nil, entrypoint, c.arguments...); out != c.want {
				t.Errorf("got %q, want %q", out, c.want)
			}
			after := strings.Join(m.lines(conf+"/cassandra.yaml"), "\n")
			if changed := before != after; changed != (name != "other") {
				t.Errorf("configuration changed: %v", changed)
			}
		})
	}
}

func TestCassandraStartsJava(t *testing.T) {
	for _, v := range Versions {
		t.Run(v.Number, func(t *testing.T) {
			m := newMachine(t, v)
			env := []string{"MAX_HEAP_SIZE=512m", "HEAP_NEWSIZE=128m", "JVM_EXTRA_OPTS=-Dextra=1 -Dmore=2",
				"JVM_OPTS=-Dbefore=1"}
			out := m.mustRun(env, home+"/bin/cassandra", "-f", "-p", "/tmp/pid", "-D", "given=1", "-H", "/dumps")
			wantLines(t, "command line", strings.Split(out, "\n"), []string{
				"[-Dbefore=1]", "[-Dextra=1]", "[-Dmore=2]", "[-Dgiven=1]", "[-XX:HeapDumpPath=/dumps]", "[-Xms512m]",
				"[-Xmx512m]",
				"[-XX:OnOutOfMemoryError=kill -9 %p]", "[-Dcassandra-foreground=yes]", "[-Dcassandra-pidfile=/tmp/pid]",
				"[-Xss256k]", "[-Djdk.attach.allowAttachSelf=true]", "[--add-exports]",
				"[java.sql/java.sql=ALL-UNNAMED]",
				"[-Dcassandra.jmx.local.port=7199]", "[-Dlogback.configurationFile=logback.xml]",
				"[-Dcassandra.storagedir=" + filepath.Join(m.root, home, "data") + "]",
				"[org.apache.cassandra.service.CassandraDaemon]",
			})
			classPath := "[" + filepath.Join(m.root, conf) + ":" + filepath.Join(m.root, home, "lib/jamm-0.4.0.jar") +
				":" + filepath.Join(m.root, home, "lib/x.jar") + "]"
			wantLines(t, "command line", strings.Split(out, "\n"), []string{"[-cp]", classPath})
		})
	}
}

func TestCassandraRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		stub, env string
		arguments []string
		want      string
	}{
		"root":             {"#!/bin/sh\necho 0\n", "MAX_HEAP_SIZE=512m", []string{"-f"}, "refusing to run as root"},
		"unknown argument": {"", "MAX_HEAP_SIZE=512m", []string{"-f", "more"}, "unknown argument"},
		"unknown option":   {"", "MAX_HEAP_SIZE=512m", []string{"-Z"}, "invalid option"},
		"other Java":       {"", "JAVA_HOME=/nowhere", []string{"-f"}, "does not support Java"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, Versions[1])
			if c.stub != "" {
				if err := os.WriteFile(filepath.Join(m.root, "stubs/id"), []byte(c.stub), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if name == "other Java" {
				stub := "#!/bin/sh\necho 'openjdk version \"21.0.1\" 2023-10-17' >&2\n"
				if err := os.WriteFile(filepath.Join(m.root, "stubs/java"), []byte(stub), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			out, err := m.run([]string{c.env, "HEAP_NEWSIZE=128m"}, home+"/bin/cassandra", c.arguments...)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("got %v and %q, want a failure with %q", err, out, c.want)
			}
		})
	}
}

func TestNodetoolPassesArguments(t *testing.T) {
	for name, c := range map[string]struct{ arguments, want []string }{
		"plain": {[]string{"status"}, []string{"[org.apache.cassandra.tools.NodeTool]", "[-p]", "[7199]", "[status]"}},
		"port": {[]string{"-h", "10.0.0.1", "-p", "7299", "status"},
			[]string{"[-p]", "[7299]", "[-h]", "[10.0.0.1]", "[status]"}},
		"spaces": {[]string{"snapshot", "-t", "a b"}, []string{"[-p]", "[7199]", "[snapshot]", "[-t]", "[a b]"}},
		"java": {[]string{"-Dx=y", "--ssl", "info"},
			[]string{"[-Dssl.enable=true]", "[org.apache.cassandra.tools.NodeTool]", "[-p]", "[7199]", "[info]"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, Versions[1])
			out := m.mustRun(nil, home+"/bin/nodetool", c.arguments...)
			if want := strings.Join(c.want, "\n") + "\n"; !strings.HasSuffix(out, want) {
				t.Errorf("the command line does not end with\n%s:\n%s", want, out)
			}
		})
	}
}
