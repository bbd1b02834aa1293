package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/test/stock"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenCase is one rendering that is kept. The files of plain are kept in full, those of the
// others where they differ from plain.
type goldenCase struct {
	name     string
	versions []string
	change   func(n *Node)
	ticket   *v1alpha1.JoinTicket
}

const plain = "plain"

var both = []string{"4.1", "5.0"}

var goldenCases = []goldenCase{
	{name: plain, versions: both},
	{name: "ticket-new", versions: both, ticket: &v1alpha1.JoinTicket{
		Mode: v1alpha1.JoinNew, Tokens: []string{"-9223372036854775808", "-4611686018427387904", "0",
			"4611686018427387904"}, SystemAuthReplicationFactor: 3,
	}},
	{name: "ticket-bootstrap", versions: []string{"5.0"}, ticket: &v1alpha1.JoinTicket{
		Mode: v1alpha1.JoinBootstrap, Tokens: []string{"1", "2", "3", "4"},
	}},
	{name: "ticket-replace", versions: []string{"5.0"}, ticket: &v1alpha1.JoinTicket{
		Mode: v1alpha1.JoinReplace, Replace: &v1alpha1.ReplaceTarget{HostID: "6f6cb4e6-3bd1-4a85-9d0f-4f0f6c6f2d0e",
			Address: "10.1.0.9"},
	}},
	{name: "ipv6", versions: both, change: func(n *Node) {
		n.Address = netip.MustParseAddr("fd00:10:244::7")
		n.Seeds = []netip.Addr{netip.MustParseAddr("fd00:10:244::5"), netip.MustParseAddr("fd00:10:244::6")}
	}},
	{name: "commitlog-volume", versions: both, change: func(n *Node) {
		n.Directories = n.Directories.OnVolumes("/var/lib/cassandra", "/var/lib/cassandra-commitlog")
	}},
	{name: "settings", versions: []string{"5.0"}, change: func(n *Node) {
		n.Configuration.CassandraYaml = settingsOf(`{
			"concurrent_reads": 64,
			"compaction_throughput": "128MiB/s",
			"memtable": {"configurations": {"default": {"inherits": "trie"}}},
			"audit_logging_options": {"enabled": true, "included_keyspaces": "on, yes", "roll_cycle": "HOURLY"},
			"server_encryption_options": null,
			"phi_convict_threshold": 1.2e1,
			"auto_snapshot": false,
			"trace_type_query_ttl": "1h",
			"read_consistency_levels_warned": ["ONE", "TWO"],
			"guardrails_of_no_release": null
		}`)
	}},
	{name: "settings", versions: []string{"4.1"}, change: func(n *Node) {
		n.Configuration.CassandraYaml = settingsOf(`{
			"concurrent_reads": 64,
			"compaction_throughput": "128MiB/s",
			"commitlog_compression": [{"class_name": "LZ4Compressor"}],
			"hinted_handoff_enabled": false
		}`)
	}},
	{name: "passwords", versions: both, change: func(n *Node) {
		n.Configuration.Authentication = v1alpha1.AuthenticationPassword
		n.Configuration.CassandraYaml = settingsOf(`{"permissions_validity_in_ms": 5000}`)
	}},
	{name: "encryption-required", versions: both, change: func(n *Node) {
		n.Configuration.Encryption = &v1alpha1.NodeEncryption{Internode: v1alpha1.EncryptionRequired,
			Clients: v1alpha1.EncryptionRequired, ClientCertificates: v1alpha1.ClientCertificatesRequired}
	}},
	{name: "encryption-optional", versions: []string{"5.0"}, change: func(n *Node) {
		n.Configuration.Encryption = &v1alpha1.NodeEncryption{Internode: v1alpha1.EncryptionOptional,
			Clients: v1alpha1.EncryptionOptional, ClientCertificates: v1alpha1.ClientCertificatesNone}
	}},
	{name: "no-passwords", versions: []string{"5.0"}, change: func(n *Node) {
		n.Configuration.Authentication = v1alpha1.AuthenticationNone
	}},
	{name: "old-names", versions: both, change: func(n *Node) {
		n.Configuration.CassandraYaml = settingsOf(`{
			"read_request_timeout_in_ms": 4000,
			"compaction_throughput_mb_per_sec": 32,
			"key_cache_save_period": 7200,
			"native_transport_max_threads": 64,
			"enable_user_defined_functions": true
		}`)
	}},
	{name: "collector", versions: []string{"5.0"}, change: func(n *Node) {
		n.Configuration.JVM = &v1alpha1.JVM{Options: []string{"-XX:+UseZGC", "-XX:MaxTenuringThreshold=4",
			"-XX:MaxDirectMemorySize=3G"}, GCLog: v1alpha1.GCLogNone}
	}},
	{name: "collector", versions: []string{"4.1"}, change: func(n *Node) {
		n.Configuration.JVM = &v1alpha1.JVM{Options: []string{"-XX:+UseG1GC", "-XX:MaxGCPauseMillis=300"}}
	}},
	{name: "jvm", versions: []string{"5.0"}, change: func(n *Node) {
		heap := resource.MustParse("3Gi")
		n.Configuration.JVM = &v1alpha1.JVM{
			Heap: &heap, GCLog: v1alpha1.GCLogFile,
			Options: []string{"-XX:-UseNUMA", "-Xss512k", "-Dcassandra.maxHintTTL=3600", "-Dcassandra.maxHintTTL=7200",
				"-da", "-XX:ErrorFile=/var/log/cassandra/error"},
		}
		n.Configuration.Environment = []v1alpha1.EnvironmentVariable{{Name: "Z", Value: "last"},
			{Name: "MALLOC_ARENA_MAX", Value: "2"}}
	}},
}

// settingsOf parses settings as the API server does.
func settingsOf(text string) v1alpha1.Settings {
	var s v1alpha1.Settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(fmt.Sprintf("settings of a test: %v", err))
	}
	return s
}

var releases = map[string]string{"4.1": "4.1.10", "5.0": "5.0.6"}

func nodeOf(line string) Node {
	return Node{
		Configuration: v1alpha1.NodeConfiguration{
			Revision: 1, Version: releases[line], ClusterName: "shop.orders", DatacenterName: "DC1", RackName: "r1",
			NumTokens: 4,
		},
		Address: netip.MustParseAddr("10.1.0.7"),
		Seeds:   []netip.Addr{netip.MustParseAddr("10.1.0.5"), netip.MustParseAddr("10.1.0.6")},
		Directories: Directories{
			Configuration: "/helenus/conf", Logs: "/var/log/cassandra", Temporary: "/tmp",
		}.OnVolumes("/var/lib/cassandra", ""),
		MemoryLimit: 8 << 30,
		Jolokia:     Jolokia{Jar: "/helenus/lib/jolokia.jar", Port: 7777, User: "helenus", Password: `a\b=c:d`},
		Metrics:     &Metrics{Jar: "/helenus/lib/helenus-metrics.jar", Port: 7783},
	}
}

func baseOf(t testing.TB, line string) Files {
	t.Helper()
	files, err := stock.Files(line)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readFiles(t testing.TB, dir string) Files {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := Files{}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = data
	}
	return files
}

// renderCase renders a case with its start as one more file.
func renderCase(t testing.TB, c *goldenCase, line string) Files {
	t.Helper()
	node := nodeOf(line)
	if c.change != nil {
		c.change(&node)
	}
	files, err := Render(baseOf(t, line), node)
	if err != nil {
		t.Fatal(err)
	}
	start, err := StartOf(node, c.ticket)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, v := range start.Environment {
		fmt.Fprintf(&text, "%s=%s\n", v.Name, v.Value)
	}
	for _, argument := range start.Arguments {
		fmt.Fprintln(&text, argument)
	}
	files["start.txt"] = []byte(text.String())
	return files
}

func TestGolden(t *testing.T) {
	for i := range goldenCases {
		c := &goldenCases[i]
		for _, line := range c.versions {
			t.Run(line+"/"+c.name, func(t *testing.T) {
				files := renderCase(t, c, line)
				if c.name != plain {
					usual := renderCase(t, &goldenCases[0], line)
					maps.DeleteFunc(files, func(name string, data []byte) bool {
						return bytes.Equal(usual[name], data)
					})
				}
				dir := filepath.Join("testdata", "golden", line, c.name)
				if *update {
					writeGolden(t, dir, files)
				}
				want := readFiles(t, dir)
				for name := range files {
					if !bytes.Equal(files[name], want[name]) {
						t.Errorf("%s differs from %s (-update writes it again); got\n%s", name, dir, files[name])
					}
				}
				for name := range want {
					if _, rendered := files[name]; !rendered {
						t.Errorf("%s is in %s and was not rendered, or is as in plain", name, dir)
					}
				}
			})
		}
	}
}

func writeGolden(t *testing.T, dir string, files Files) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
