package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

func TestDiffOfSettings(t *testing.T) {
	tests := []struct {
		name, version, old, wanted string
		hot, restart               string
	}{
		{"same", "5.0.6", `{"concurrent_reads": 32}`, `{"concurrent_reads": 32}`, "", ""},
		{"notation", "5.0.6", `{"read_request_timeout_in_ms": 60000, "memtable": {"configurations": {}}}`,
			`{"memtable": { "configurations": {} }, "read_request_timeout": "1m"}`, "", ""},
		{"null", "5.0.6", `{"concurrent_reads": null}`, `{}`, "", ""},
		{"hot", "5.0.6", `{}`, `{"compaction_throughput": "32MiB/s", "hinted_handoff_enabled": false}`,
			"compaction_throughput hinted_handoff_enabled", ""},
		{"hot under an old name", "5.0.6", `{"read_request_timeout": "5s"}`, `{"read_request_timeout_in_ms": 6000}`,
			"read_request_timeout", ""},
		{"hot by removal", "5.0.6", `{"read_request_timeout": "6s"}`, `{}`, "read_request_timeout", ""},
		{"restart", "5.0.6", `{}`, `{"concurrent_reads": 64}`, "", "cassandraYaml.concurrent_reads"},
		{"no value to go back to", "5.0.6", `{"concurrent_compactors": 2}`, `{}`, "",
			"cassandraYaml.concurrent_compactors"},
		{"not exactly by JMX", "5.0.6", `{}`, `{"compaction_throughput": "100KiB/s"}`, "",
			"cassandraYaml.compaction_throughput"},
		{"exactly, in another unit", "5.0.6", `{}`, `{"compaction_throughput": "2048KiB/s"}`, "compaction_throughput",
			""},
		{"a guardrail", "5.0.6", `{}`, `{"partition_size_warn_threshold": "1GiB"}`, "partition_size_warn_threshold",
			""},
		{"a guardrail without operation", "4.1.10", `{}`, `{"columns_per_table_warn_threshold": 5}`, "",
			"cassandraYaml.columns_per_table_warn_threshold"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Diff(configurationOf(test.version, test.old), configurationOf(test.version, test.wanted))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(got.Hot, " ") != test.hot || strings.Join(got.Restart, " ") != test.restart {
				t.Errorf("got %+v; want hot %q, restart %q", got, test.hot, test.restart)
			}
		})
	}
}

func TestDiffOfTheRest(t *testing.T) {
	heap := resource.MustParse("4Gi")
	sameHeap := resource.MustParse("4096Mi")
	old := configurationOf("5.0.6", "")
	old.JVM = &v1alpha1.JVM{Heap: &heap}
	old.Environment = []v1alpha1.EnvironmentVariable{{Name: "A", Value: "1"}, {Name: "B", Value: ""}}
	wanted := configurationOf("5.0.6", "")
	wanted.JVM = &v1alpha1.JVM{Heap: &sameHeap, GCLog: v1alpha1.GCLogStdout}
	wanted.Environment = []v1alpha1.EnvironmentVariable{{Name: "B"}, {Name: "A", Value: "1"}}
	got, err := Diff(old, wanted)
	if err != nil || len(got.Hot)+len(got.Restart) > 0 {
		t.Errorf("the same in another notation: %+v, %v", got, err)
	}
	wanted.JVM = &v1alpha1.JVM{Options: []string{"-da"}, GCLog: v1alpha1.GCLogNone, ClassPath: []string{"/x.jar"}}
	wanted.Environment = []v1alpha1.EnvironmentVariable{{Name: "A", Value: "2"}, {Name: "C"}}
	wanted.Revision, wanted.Version, wanted.NumTokens = 2, "5.0.7", 8
	got, err = Diff(old, wanted)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"revision", "version", "numTokens", "jvm.heap", "jvm.options", "jvm.gcLog", "jvm.classPath",
		"environment[A]", "environment[B]", "environment[C]"}
	if !slices.Equal(got.Restart, want) {
		t.Errorf("got %v, want %v", got.Restart, want)
	}
}

func TestHash(t *testing.T) {
	heap, sameHeap := resource.MustParse("4Gi"), resource.MustParse("4096Mi")
	one := configurationOf("5.0.6", `{"a": {"y": 1, "x": null}, "b": [1.0]}`)
	one.JVM = &v1alpha1.JVM{Heap: &heap}
	one.Environment = []v1alpha1.EnvironmentVariable{{Name: "B", Value: "2"}, {Name: "A", Value: "1"}}
	same := configurationOf("5.0.9", `{ "b": [ 1.0 ], "a": {"y": 1}, "c": null }`)
	same.JVM = &v1alpha1.JVM{Heap: &sameHeap, GCLog: v1alpha1.GCLogStdout, Options: []string{}}
	same.Environment = []v1alpha1.EnvironmentVariable{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
	same.ClusterName = "other"
	if a, b := hashOf(t, one), hashOf(t, same); a != b {
		t.Errorf("the hash depends on notation: %s, %s", a, b)
	}
	for name, change := range map[string]func(c *v1alpha1.NodeConfiguration){
		"revision": func(c *v1alpha1.NodeConfiguration) { c.Revision++ },
		"setting": func(c *v1alpha1.NodeConfiguration) {
			c.CassandraYaml = settingsOf(`{"a": {"y": 2}, "b": [1.0]}`)
		},
		"heap": func(c *v1alpha1.NodeConfiguration) { c.JVM = &v1alpha1.JVM{} },
		"option": func(c *v1alpha1.NodeConfiguration) {
			c.JVM = &v1alpha1.JVM{Heap: &heap, Options: []string{"-da"}}
		},
		"gc log": func(c *v1alpha1.NodeConfiguration) {
			c.JVM = &v1alpha1.JVM{Heap: &heap, GCLog: v1alpha1.GCLogNone}
		},
		"environment": func(c *v1alpha1.NodeConfiguration) { c.Environment = c.Environment[:1] },
	} {
		changed := *one
		change(&changed)
		if hashOf(t, &changed) == hashOf(t, one) {
			t.Errorf("a change of %s does not change the hash", name)
		}
	}
	// Of revision 1 for ever: another value would restart every node of every cluster.
	const pinned = "0554e6c8e51f841d707797fccd657ca6ae4eb223f72e3e931300a000066285b2"
	if got := hashOf(t, one); got != pinned {
		t.Errorf("the hash of revision 1 has changed to %s", got)
	}
	bad := configurationOf("5.0.6", "")
	bad.CassandraYaml = v1alpha1.Settings{"a": {Raw: []byte("{")}}
	if _, err := Hash(bad); err == nil {
		t.Error("a value that is no JSON was hashed")
	}
}

func hashOf(t *testing.T, c *v1alpha1.NodeConfiguration) string {
	t.Helper()
	hash, err := Hash(c)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestHotWrites(t *testing.T) {
	rendered := []byte("compaction_throughput: 2048KiB/s\nread_request_timeout_in_ms: " +
		"4000\nkeyspaces_fail_threshold: 20\nhinted_handoff_enabled: false\npartition_size_warn_threshold: " +
		"1GiB\nread_consistency_levels_warned: [ONE, TWO]\nphi_convict_threshold: 8.5\n")
	names := []string{
		"compaction_throughput", "read_request_timeout", "keyspaces_fail_threshold", "keyspaces_warn_threshold",
		"hinted_handoff_enabled",
		"partition_size_warn_threshold", "read_consistency_levels_warned", "phi_convict_threshold",
		"write_request_timeout",
	}
	got, err := HotWrites("5.0.6", names, rendered)
	if err != nil {
		t.Fatal(err)
	}
	want := []Write{
		{MBean: storageService, Attribute: "CompactionThroughputMbPerSec", Value: int64(2), Settings: names[:1]},
		{MBean: storageService, Attribute: "ReadRpcTimeout", Value: int64(4000), Settings: names[1:2]},
		{MBean: guardrails, Operation: "setKeyspacesThreshold(int,int)", Arguments: []any{int64(-1), int64(20)},
			Settings: names[2:4]},
		{MBean: storageProxy, Attribute: "HintedHandoffEnabled", Value: false, Settings: names[4:5]},
		{MBean: guardrails, Operation: "setPartitionSizeThreshold(java.lang.String,java.lang.String)",
			Arguments: []any{"1GiB", nil}, Settings: names[5:6]},
		{MBean: guardrails, Attribute: "ReadConsistencyLevelsWarnedCSV", Value: "ONE,TWO", Settings: names[6:7]},
		{MBean: failureDetector, Attribute: "PhiConvictThreshold", Value: 8.5, Settings: names[7:8]},
		// Not in the file: Cassandra's default.
		{MBean: storageService, Attribute: "WriteRpcTimeout", Value: int64(2000), Settings: names[8:]},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	for name, text := range map[string]string{"concurrent_reads": "",
		"compaction_throughput": "compaction_throughput: 5B/s\n", "concurrent_compactors": ""} {
		if writes, err := HotWrites("5.0.6", []string{name}, []byte(text)); err == nil {
			t.Errorf("%s can be set at run time by %+v", name, writes)
		}
	}
}

// Each setter is of settings that its lines know, and of a form that their type has.
func TestSettersAreOfKnownSettings(t *testing.T) {
	for name, of := range setters {
		for _, line := range settings.Lines() {
			s, hot := setterOf(name, line)
			if !hot {
				continue
			}
			table, err := settings.For(line + ".0")
			if err != nil {
				t.Fatal(err)
			}
			for _, argument := range append([]string{name}, s.arguments...) {
				setting := table.Lookup(argument)
				if setting == nil {
					t.Errorf("%s: %s is not known", line, argument)
					continue
				}
				if kind, quantity := kinds[s.form]; quantity && kind != setting.Type {
					t.Errorf("%s: %s is a %s and set in %s", line, argument, setting.Type, s.form)
				}
			}
		}
		if len(of) == 0 {
			t.Errorf("%s has no setter", name)
		}
		if _, owned := ownedSetting(name); owned {
			t.Errorf("%s is set by Helenus", name)
		}
	}
}
