//go:build cassandra

package config

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

// These tests let the real Cassandra read what is rendered. For each line they want a directory
// with the jars of a release, and the java that it runs on (11 for 4.1, 17 for 5.0); javac (17)
// must be on the path:
//
//	mvn -f settings/export/pom.xml -Dcassandra.version=5.0.6 dependency:copy-dependencies -DoutputDirectory=/tmp/cassandra-5.0
//	CASSANDRA_JARS_5_0=/tmp/cassandra-5.0 CASSANDRA_JAVA_5_0=/usr/lib/jvm/java-17/bin/java go test -tags cassandra -run Cassandra .
//
// The releases are those that the files in package stock are of. CASSANDRA_IMAGE_5_0 may name the
// configuration directory of an image, which is then rendered too; with it, and with the jars of
// its release, TestCassandraLoads/5.0/image tries another release.
//
// A line whose variables are not set is skipped; without any the tests fail.

type installation struct{ line, jars, java, classes string }

func installations(t *testing.T) []installation {
	t.Helper()
	var found []installation
	for _, line := range both {
		suffix := strings.ReplaceAll(line, ".", "_")
		jars, java := os.Getenv("CASSANDRA_JARS_"+suffix), os.Getenv("CASSANDRA_JAVA_"+suffix)
		if jars == "" || java == "" {
			t.Logf("Cassandra %s is not tried: CASSANDRA_JARS_%s and CASSANDRA_JAVA_%s are not set", line, suffix,
				suffix)
			continue
		}
		classes := t.TempDir()
		compile := exec.CommandContext(t.Context(), "javac", "--release", "11", "-proc:none", "-cp",
			filepath.Join(jars, "*"), "-d", classes, "testdata/load/Load.java")
		if out, err := compile.CombinedOutput(); err != nil {
			t.Fatalf("compile Load.java: %v\n%s", err, out)
		}
		found = append(found, installation{line, jars, java, classes})
	}
	if len(found) == 0 {
		t.Fatal("no Cassandra is given")
	}
	return found
}

// java runs Load with options, in a directory with the rendered files.
func (i installation) run(t *testing.T, dir string, options []string, arguments ...string) (stdout, stderr string) {
	t.Helper()
	classPath := strings.Join([]string{dir, i.classes, filepath.Join(i.jars, "*")}, ":")
	command := exec.CommandContext(t.Context(), i.java,
		append(append(options, "-cp", classPath, "Load"), arguments...)...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		t.Fatalf("java %s: %v\n%s\n%s", strings.Join(options, " "), err, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

func TestCassandraLoads(t *testing.T) {
	for _, installed := range installations(t) {
		for i := range goldenCases {
			c := &goldenCases[i]
			for _, line := range c.versions {
				if line == installed.line {
					t.Run(line+"/"+c.name, func(t *testing.T) { installed.load(t, c, baseOf(t, line)) })
				}
			}
		}
		// The files of an image, if they are given: the whole of them, with the comments of their
		// authors.
		if image := os.Getenv("CASSANDRA_IMAGE_" + strings.ReplaceAll(installed.line, ".", "_")); image != "" {
			t.Run(installed.line+"/image", func(t *testing.T) {
				installed.load(t, &goldenCases[0], readFiles(t, image))
			})
		}
	}
}

// load renders a case into a directory, starts the real JVM with the real options on it, and
// compares what Cassandra understood.
func (i installation) load(t *testing.T, c *goldenCase, base Files) {
	node := nodeOf(i.line)
	dir, data := t.TempDir(), t.TempDir()
	node.Directories = Directories{Configuration: dir, Logs: filepath.Join(data, "logs"),
		Temporary: data}.OnVolumes(data, "")
	if c.change != nil {
		c.change(&node)
	}
	if strings.HasPrefix(node.Directories.Commitlog, "/var") {
		node.Directories = node.Directories.OnVolumes(data, filepath.Join(data, "second"))
	}
	heap := resource.MustParse("256Mi")
	jvm := v1alpha1.JVM{}
	if node.Configuration.JVM != nil {
		jvm = *node.Configuration.JVM
	}
	jvm.Heap = &heap
	node.Configuration.JVM = &jvm
	files, err := Render(base, node)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start, err := StartOf(node, c.ticket)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := i.run(t, dir, i.options(files, start, node))
	got := map[string]string{}
	for line := range strings.Lines(stdout) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.Contains(key, " ") {
			got[key] = value
		}
	}
	for key, want := range expectation(&node, c) {
		if got[key] != want {
			t.Errorf("Cassandra has %s=%s, want %s", key, got[key], want)
		}
	}
	if !strings.Contains(stdout, "Configuration location") || strings.Contains(stdout+stderr, "in ch.qos.logback") {
		t.Errorf("logging does not work as rendered:\n%s\n%s", stdout, stderr)
	}
	if log, err := os.ReadFile(filepath.Join(node.Directories.Logs, "system.log")); err != nil ||
		!bytes.Contains(log, []byte("Configuration location")) {
		t.Errorf("system.log for the agent: %v\n%s", err, log)
	}
	if t.Failed() {
		t.Logf("%s\n%s", stdout, stderr)
	}
}

// options of the JVM as bin/cassandra puts them together, without Java agents, which are not
// installed here.
func (i installation) options(files Files, start Start, node Node) []string {
	ofJava := map[string]string{"4.1": "jvm11-server.options", "5.0": "jvm17-server.options"}[i.line]
	var options []string
	for _, name := range []string{ServerOptions, ofJava} {
		for _, option := range parseOptions(files[name]).options() {
			if !strings.HasPrefix(option, "-javaagent:") {
				options = append(options, strings.Fields(option)...)
			}
		}
	}
	options = append(options, "-XX:TieredStopAtLevel=1", "-Dcassandra.logdir="+node.Directories.Logs,
		"-Dlogback.configurationFile=logback.xml")
	for at := 1; at < len(start.Arguments); at += 2 {
		options = append(options, "-D"+start.Arguments[at+1])
	}
	return options
}

func expectation(n *Node, c *goldenCase) map[string]string {
	want := map[string]string{
		"cluster_name": "shop.orders", "num_tokens": "4", "ports": "7000 9042", "location": "DC1 r1",
		"policies": "die die", "block_for_peers": "-1",
		"initial_tokens": "[]", "auto_bootstrap": "true", "broadcast_address": "", "rpc_address": "0.0.0.0",
		"replace": "", "system_auth_rf": "",
		"listen_address":        longForm(n.Address.StringExpanded(), n.Address.Is6()),
		"broadcast_rpc_address": longForm(n.Address.StringExpanded(), n.Address.Is6()),
		"data_file_directories": fmt.Sprintf("[%s]", n.Directories.Data),
		"commitlog_directory":   n.Directories.Commitlog,
		"seeds":                 "[10.1.0.5, 10.1.0.6]",
		"concurrent_reads":      "32", "read_timeout": "5000", "phi_convict_threshold": "8.0",
		"start_native_transport": "false",
	}
	switch c.name {
	case "ticket-new":
		want["initial_tokens"] = "[-9223372036854775808, -4611686018427387904, 0, 4611686018427387904]"
		want["auto_bootstrap"], want["system_auth_rf"] = "false", "3"
	case "ticket-bootstrap":
		want["initial_tokens"] = "[1, 2, 3, 4]"
	case "ticket-replace":
		want["replace"] = "10.1.0.9"
	case "broadcast-address":
		want["broadcast_address"] = "203.0.113.7"
	case "ipv6":
		want["rpc_address"], want["seeds"] = "0:0:0:0:0:0:0:0", "[fd00:10:244:0:0:0:0:5, fd00:10:244:0:0:0:0:6]"
	case "settings":
		want["concurrent_reads"] = "64"
		if n.Configuration.Version == releases["5.0"] {
			want["phi_convict_threshold"] = "12.0"
		}
	case "old-names":
		want["read_timeout"] = "4000"
	}
	return want
}

// longForm writes an IPv6 address as Java does, without leading zeros and without the two colons.
func longForm(expanded string, ipv6 bool) string {
	if !ipv6 {
		return expanded
	}
	groups := strings.Split(expanded, ":")
	for i, group := range groups {
		if groups[i] = strings.TrimLeft(group, "0"); groups[i] == "" {
			groups[i] = "0"
		}
	}
	return strings.Join(groups, ":")
}

// Every setter is a method of the beans of that line.
func TestCassandraHasTheSetters(t *testing.T) {
	beans := map[string]string{
		storageService:  "org.apache.cassandra.service.StorageServiceMBean",
		storageProxy:    "org.apache.cassandra.service.StorageProxyMBean",
		failureDetector: "org.apache.cassandra.gms.FailureDetectorMBean",
		guardrails:      "org.apache.cassandra.db.guardrails.GuardrailsMBean",
	}
	for _, installed := range installations(t) {
		var methods []string
		for _, name := range slices.Sorted(maps.Keys(setters)) {
			s, hot := setterOf(name, installed.line)
			if !hot {
				continue
			}
			method, parameters := "set"+s.attribute, 1
			if s.operation != "" {
				method, _, _ = strings.Cut(s.operation, "(")
				parameters = len(s.arguments)
			}
			methods = append(methods, fmt.Sprintf("%s#%s#%d", beans[s.bean], method, parameters))
		}
		if stdout, stderr := installed.run(t, t.TempDir(), nil, methods...); strings.Contains(stdout, "missing=") ||
			len(methods) == 0 {
			t.Errorf("%s (%d methods asked for): %s\n%s", installed.line, len(methods), stdout, stderr)
		}
	}
}

// What Validate accepts, Cassandra reads: the defaults of all settings, written out.
func TestCassandraReadsAllDefaults(t *testing.T) {
	for _, installed := range installations(t) {
		version := releases[installed.line]
		table, err := settings.For(version)
		if err != nil {
			t.Fatal(err)
		}
		configuration := configurationOf(version, "")
		configuration.CassandraYaml = v1alpha1.Settings{}
		for i := range table.Settings {
			setting := &table.Settings[i]
			raw, known := defaultOf(setting, "")
			if _, owned := ownedSetting(setting.Name); owned || !known || setting.ReplacedBy != "" {
				continue
			}
			if inRelease, _ := setting.KnownIn(version); inRelease {
				configuration.CassandraYaml[setting.Name] = v1alpha1.Value{Raw: raw}
			}
		}
		// Defaults that mean «not set», which Cassandra refuses when they are written.
		for _, name := range []string{"commitlog_sync_period", "commitlog_sync_group_window",
			"commitlog_sync_batch_window_in_ms"} {
			delete(configuration.CassandraYaml, name)
		}
		for _, problem := range Validate(configuration, 8<<30) {
			t.Errorf("%s: %s", installed.line, problem)
		}
		c := goldenCase{name: plain, change: func(n *Node) {
			n.Configuration.CassandraYaml = configuration.CassandraYaml
		}}
		t.Run(installed.line, func(t *testing.T) { installed.load(t, &c, baseOf(t, installed.line)) })
	}
}
