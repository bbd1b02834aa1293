package config

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

func configurationOf(version, yaml string) *v1alpha1.NodeConfiguration {
	c := &v1alpha1.NodeConfiguration{Revision: 1, Version: version}
	if yaml != "" {
		c.CassandraYaml = settingsOf(yaml)
	}
	return c
}

func TestValidateSettings(t *testing.T) {
	tests := []struct{ name, version, yaml, want string }{
		{"right", "5.0.6", `{"concurrent_reads": 32, "read_request_timeout_in_ms": 4000}`, ""},
		{"nulls are nothing", "5.0.6", `{"cluster_name": null, "no_such": null}`, ""},
		{"owned", "5.0.6", `{"cluster_name": "x"}`,
			"cassandraYaml.cluster_name: is set by Helenus: set spec.clusterName"},
		{"misspelt", "5.0.6", `{"concurent_reads": 32}`,
			"cassandraYaml.concurent_reads: is not known to Cassandra 5.0.6; did you mean concurrent_reads?"},
		{"misspelt old name", "5.0.6", `{"read_request_timeout_in_mss": 5}`,
			"did you mean read_request_timeout_in_ms (the old name of read_request_timeout)?"},
		{"nonsense", "5.0.6", `{"zzz": 5}`, "cassandraYaml.zzz: is not known to Cassandra 5.0.6"},
		{"of 5.0", "4.1.10", `{"sai_options": {}}`,
			"cassandraYaml.sai_options: is not known to Cassandra 4.1.10: only Cassandra 5.0 knows it"},
		{"removed in 5.0", "5.0.6", `{"concurrent_replicates": 32}`, "is not known to Cassandra 5.0.6: removed in 5.0"},
		{"of 3.11", "4.1.10", `{"start_rpc": true}`, "is not known to Cassandra 4.1.10: removed in 4.0 with Thrift"},
		{"of a later release", "5.0.3", `{"compressed_read_ahead_buffer_size": "256KiB"}`,
			"is not known to Cassandra 5.0.3: introduced in 5.0.4"},
		{"dots", "5.0.6", `{"server_encryption_options.keystore": "x"}`,
			"write nested settings as a mapping, not with dots"},
		{"two names", "5.0.6", `{"read_request_timeout_in_ms": 4000, "read_request_timeout": "4s"}`,
			"cassandraYaml.read_request_timeout_in_ms: is the same setting as read_request_timeout under its old " +
				"name; Cassandra accepts only one of them: keep read_request_timeout"},
		{"wrong type", "4.1.10", `{"concurrent_reads": "many"}`,
			`cassandraYaml.concurrent_reads: is "many"; want a whole number`},
		{"nested", "5.0.6", `{"memtable": {"configurations": {"a": {"b": 1}}}}`,
			"cassandraYaml.memtable.configurations.a.b: is not known here; known are class_name, inherits, parameters"},
		{"all at once, sorted", "5.0.6", `{"zzz": 1, "auto_snapshot": 1, "listen_address": "x"}`,
			"cassandraYaml.auto_snapshot: is 1; want true or false; cassandraYaml.listen_address: is set by Helenus: " +
				"a node's address is that of its pod; cassandraYaml.zzz: is not known to Cassandra 5.0.6"},
		{"version", "6.0.0", `{"zzz": 1}`, "version: Cassandra 6.0.0 is not supported"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expectProblems(t, Validate(configurationOf(test.version, test.yaml), 8<<30), test.want)
		})
	}
}

func expectProblems(t *testing.T, problems Problems, want string) {
	t.Helper()
	lines := make([]string, len(problems))
	for i := range problems {
		lines[i] = problems[i].String()
	}
	if got := strings.Join(lines, "; "); (want == "") != (len(problems) == 0) || !strings.Contains(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestValidateJVM(t *testing.T) {
	tests := []struct {
		name, version string
		heap          string
		options       []string
		limit         int64
		want          string
	}{
		{"right", "5.0.6", "4Gi", []string{"-XX:+UseZGC", "-Dx=y"}, 8 << 30, ""},
		{"default heap", "5.0.6", "", nil, 2 << 30, ""},
		{"no limit", "5.0.6", "", nil, 0, "jvm.heap: the size of the heap is not known: set resources.limits.memory " +
			"or jvm.heap"},
		{"heap without limit", "5.0.6", "4Gi", nil, 0, ""},
		{"heap too small", "5.0.6", "64Mi", nil, 8 << 30, "jvm.heap: a heap of 64 MiB is too small: at least 128 MiB"},
		{"heap too large", "5.0.6", "7Gi", nil, 8 << 30,
			"jvm.heap: a heap of 7168 MiB and 1638 MiB of direct memory are more than the memory limit of 8192 MiB"},
		{"less direct memory", "5.0.6", "7Gi", []string{"-XX:MaxDirectMemorySize=512m"}, 8 << 30, ""},
		{"more direct memory", "5.0.6", "7Gi", []string{"-XX:MaxDirectMemorySize=9000000T"}, 8 << 30,
			"is more than the memory limit"},
		{"odd direct memory", "5.0.6", "", []string{"-XX:MaxDirectMemorySize=half"}, 8 << 30,
			"jvm.options[0]: -XX:MaxDirectMemorySize=half: want a size"},
		{"heap as option", "5.0.6", "", []string{"-Dx=y", "-Xmx4G"}, 8 << 30,
			"jvm.options[1]: -Xmx4G is set by Helenus: set jvm.heap"},
		{"ticket", "5.0.6", "", []string{"-Dcassandra.initial_token=5"}, 8 << 30,
			"whether and how a node joins is decided by its ticket"},
		{"settings by property", "5.0.6", "", []string{"-Dcassandra.settings.rpc_address=x"}, 8 << 30,
			"is set by Helenus"},
		{"class path", "5.0.6", "", []string{"-cp"}, 8 << 30, "jvm.classPath"},
		{"options file", "5.0.6", "", []string{"@/tmp/options"}, 8 << 30, "options are listed here, one by one"},
		{"white space", "5.0.6", "", []string{"--add-opens a=b"}, 8 << 30,
			"contains white space: write each option on its own, and one with a value as --name=value"},
		{"quote", "5.0.6", "", []string{`-Dx="y"`}, 8 << 30, "contains a quote"},
		{"no option", "5.0.6", "", []string{"UseZGC"}, 8 << 30, `"UseZGC" is no option of the JVM`},
		{"two collectors", "5.0.6", "", []string{"-XX:+UseZGC", "-XX:+UseG1GC"}, 8 << 30,
			"jvm.options: -XX:+UseG1GC and -XX:+UseZGC are two garbage collectors"},
		{"one turned off", "5.0.6", "", []string{"-XX:+UseZGC", "-XX:-UseG1GC"}, 8 << 30, ""},
		{"a collector of Java 11", "4.1.10", "", []string{"-XX:+UseConcMarkSweepGC"}, 8 << 30, ""},
		{"a collector that Java 17 does not know", "5.0.9", "", []string{"-XX:+UseConcMarkSweepGC"}, 8 << 30,
			"jvm.options[0]: -XX:+UseConcMarkSweepGC is not known to Java 17, which Cassandra 5.0.9 runs on, but to Java 11"},
		{"a number that Java 17 does not know", "5.0.9", "", []string{"-XX:CMSInitiatingOccupancyFraction=75"}, 8 << 30,
			"is not known to Java 17"},
		{"an option of Java 17", "4.1.10", "", []string{"-XX:+ZUncommit"}, 8 << 30, "is not known to Java 11"},
		{"an option of Java 8", "4.1.10", "", []string{"-XX:+PrintGCDateStamps"}, 8 << 30, "but to Java 8"},
		{"what the Java of the image does not know is passed over", "5.0.9", "",
			[]string{"-XX:+IgnoreUnrecognizedVMOptions", "-XX:+PrintGCDateStamps"}, 8 << 30, ""},
		{"young generation with G1 of the image", "5.0.6", "", []string{"-Xmn1G"}, 8 << 30,
			"-Xmn1G cannot be set with the G1 collector"},
		{"young generation with CMS of the image", "4.1.10", "", []string{"-Xmn1G"}, 8 << 30, ""},
		{"young generation with G1 of the user", "4.1.10", "", []string{"-Xmn1G", "-XX:+UseG1GC"}, 8 << 30,
			"-Xmn1G cannot be set with the G1 collector"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := configurationOf(test.version, "")
			c.JVM = &v1alpha1.JVM{Options: test.options}
			if test.heap != "" {
				heap := resource.MustParse(test.heap)
				c.JVM.Heap = &heap
			}
			expectProblems(t, Validate(c, test.limit), test.want)
		})
	}
}

func TestValidateEnvironment(t *testing.T) {
	for name, want := range map[string]string{
		"X":               "",
		"EXTRA_CLASSPATH": "",
		"JVM_EXTRA_OPTS":  "environment[JVM_EXTRA_OPTS]: is set by Helenus: list options in jvm.options",
		"1X":              "environment[1X]: is no name of a variable",
		"A=B":             "environment[A=B]: is no name of a variable",
	} {
		c := configurationOf("5.0.6", "")
		c.Environment = []v1alpha1.EnvironmentVariable{{Name: name, Value: "v"}}
		expectProblems(t, Validate(c, 8<<30), want)
	}
	c := configurationOf("5.0.6", "")
	c.Environment = []v1alpha1.EnvironmentVariable{{Name: "X", Value: "a\x00b"}}
	expectProblems(t, Validate(c, 8<<30), "NUL")
}

// What rendering sets must be what users are told that Helenus owns.
func TestRenderedKeysAreOwned(t *testing.T) {
	for line := range releases {
		table, err := settings.For(releases[line])
		if err != nil {
			t.Fatal(err)
		}
		base, err := parseDocument(baseOf(t, line)[CassandraYAML])
		if err != nil {
			t.Fatal(err)
		}
		node := nodeOf(line)
		out, err := revision1YAML(baseOf(t, line)[CassandraYAML], &node, table)
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := parseDocument(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range namesOf(rendered) {
			before := base.value(name)
			if _, owned := ownedSetting(name); !owned && (before == nil || !sameValue(before, rendered.value(name))) {
				t.Errorf("%s: %s is rendered, but a user may set it", line, name)
			}
			if setting := table.Lookup(name); setting == nil {
				t.Errorf("%s: %s is rendered, but not known to Cassandra", line, name)
			}
		}
		for _, name := range revision1Removed {
			if _, owned := ownedSetting(name); !owned {
				t.Errorf("%s is removed, but a user may set it", name)
			}
		}
	}
}

// Whether Cassandra makes a superuser is the user's business in a ring of an earlier release alone.
func TestTheDelayOfTheDefaultSuperuser(t *testing.T) {
	for mode, refused := range map[v1alpha1.AuthenticationMode]bool{"": false, v1alpha1.AuthenticationNone: true,
		v1alpha1.AuthenticationPassword: true} {
		problems := Validate(&v1alpha1.NodeConfiguration{Version: "5.0.6", Authentication: mode,
			JVM: &v1alpha1.JVM{Options: []string{"-Dcassandra.superuser_setup_delay_ms=0"}}}, 4<<30)
		if (len(problems) > 0) != refused {
			t.Errorf("%q: %v", mode, problems)
		}
	}
}
