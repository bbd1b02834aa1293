package config

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
)

func TestMemoryOf(t *testing.T) {
	tests := []struct {
		heap  string
		limit int64
		want  Memory
		fails string
	}{
		{"", 8 << 30, Memory{4 << 30, 1638 << 20}, ""},
		{"", 128 << 30, Memory{31 << 30, 26214 << 20}, ""},
		{"", 3_000_000_000, Memory{1430 << 20, 572 << 20}, ""},
		{"6Gi", 8 << 30, Memory{6 << 30, 1638 << 20}, ""},
		{"6Gi", 0, Memory{6 << 30, 0}, ""},
		{"2G", 8 << 30, Memory{1907 << 20, 1638 << 20}, ""},
		{"", 0, Memory{}, "set resources.limits.memory or jvm.heap"},
		{"", 200 << 20, Memory{}, "a heap of 100 MiB is too small"},
		{"-1", 8 << 30, Memory{}, "too small"},
	}
	for _, test := range tests {
		jvm := &v1alpha1.JVM{}
		if test.heap != "" {
			heap := resource.MustParse(test.heap)
			jvm.Heap = &heap
		}
		got, err := MemoryOf(jvm, test.limit)
		if got != test.want || (err == nil) != (test.fails == "") ||
			err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("heap %q, limit %d: %v, %v; want %v, %q", test.heap, test.limit, got, err, test.want, test.fails)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(n *Node, base Files)
		want   string
	}{
		{"revision", func(n *Node, _ Files) { n.Configuration.Revision = 99 },
			"revision 99 is not known to this Helenus (newest: 1)"},
		{"version", func(n *Node, _ Files) { n.Configuration.Version = "6.0.0" }, "Cassandra 6.0.0 is not supported"},
		{"no address", func(n *Node, _ Files) { n.Address = netip.Addr{} }, "is not the address of a pod"},
		{"wildcard", func(n *Node, _ Files) { n.Address = netip.IPv4Unspecified() }, "is not the address of a pod"},
		{"no seeds", func(n *Node, _ Files) { n.Seeds = nil }, "a node without seeds would form a ring of its own"},
		{"odd seed", func(n *Node, _ Files) { n.Seeds = append(n.Seeds, netip.Addr{}) }, "is no address"},
		{"path", func(n *Node, _ Files) { n.Directories.Data = "data" }, "path of data"},
		{"path with space", func(n *Node, _ Files) { n.Jolokia.Jar = "/a b" }, "path of Jolokia jar"},
		{"credential", func(n *Node, _ Files) { n.Jolokia.Password = "" }, "port, user and password of Jolokia"},
		{"no file", func(_ *Node, base Files) { delete(base, Logback) }, "the image has no logback.xml"},
		{"odd yaml", func(_ *Node, base Files) { base[CassandraYAML] = []byte("- a\n") },
			"cassandra.yaml: the document is no mapping"},
		{"odd xml", func(_ *Node, base Files) { base[Logback] = []byte("<a><b></a>") },
			"logback.xml: XML syntax error"},
		{"no console", func(_ *Node, base Files) { base[Logback] = []byte("<configuration><root/></configuration>") },
			"no appender writes to the console"},
		{"memory", func(n *Node, _ Files) { n.MemoryLimit = 0 }, "the size of the heap is not known"},
		{"setting", func(n *Node, _ Files) {
			n.Configuration.CassandraYaml = v1alpha1.Settings{"concurrent_reads": {Raw: []byte("{")}}
		}, "concurrent_reads: parse JSON value"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			node, base := nodeOf("5.0"), baseOf(t, "5.0")
			test.change(&node, base)
			if _, err := Render(base, node); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want %q", err, test.want)
			}
		})
	}
}

// What Helenus sets wins over a record that has it all the same.
func TestOwnedKeysWin(t *testing.T) {
	node := nodeOf("5.0")
	node.Configuration.CassandraYaml = settingsOf(
		`{"listen_address": "9.9.9.9", "initial_token": "5", "seed_provider": []}`,
	)
	node.Configuration.JVM = &v1alpha1.JVM{Options: []string{"-Xmx77G", "-Dcassandra.gossip_settle_min_wait_ms=77"}}
	files, err := Render(baseOf(t, "5.0"), node)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		for _, foreign := range []string{"9.9.9.9", "\ninitial_token", "77G", "min_wait_ms=77"} {
			if bytes.Contains(data, []byte(foreign)) {
				t.Errorf("%s contains %q", name, foreign)
			}
		}
	}
}

func TestWithSeeds(t *testing.T) {
	node, base := nodeOf("5.0"), baseOf(t, "5.0")
	first, err := Render(base, node)
	if err != nil {
		t.Fatal(err)
	}
	node.Seeds = []netip.Addr{netip.MustParseAddr("10.1.0.8")}
	second, err := Render(base, node)
	if err != nil {
		t.Fatal(err)
	}
	got, err := WithSeeds(first[CassandraYAML], node.Seeds)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, second[CassandraYAML]) || bytes.Equal(got, first[CassandraYAML]) {
		t.Errorf("other seeds in a rendered file are not what rendering with them gives:\n%s", got)
	}
	if _, err := WithSeeds(got, nil); err == nil {
		t.Error("no seeds were accepted")
	}
}

func TestIPv4MappedAddresses(t *testing.T) {
	node, base := nodeOf("5.0"), baseOf(t, "5.0")
	want, err := Render(base, node)
	if err != nil {
		t.Fatal(err)
	}
	node.Address = netip.MustParseAddr("::ffff:10.1.0.7")
	node.Seeds = []netip.Addr{netip.MustParseAddr("::ffff:10.1.0.5"), node.Seeds[1]}
	got, err := Render(base, node)
	if err != nil {
		t.Fatal(err)
	}
	for name := range want {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("%s depends on the form of an address", name)
		}
	}
}

func TestProperties(t *testing.T) {
	got := string(setProperties([]byte("# dc=example\ndc = old\nrack=old\nother=1\ndc=twice"),
		[]property{{"dc", "Süd \\ 1"}, {"rack", " 😀"}, {"new", ""}}))
	want := "# dc=example\ndc=S\\u00fcd \\\\ 1\nrack=\\ \\ud83d\\ude00\nother=1\nnew=\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStartOfRefuses(t *testing.T) {
	four := []string{"1", "2", "3", "4"}
	replace := &v1alpha1.ReplaceTarget{Address: "10.1.0.9"}
	tests := []struct {
		name   string
		ticket v1alpha1.JoinTicket
		want   string
	}{
		{"new without tokens", v1alpha1.JoinTicket{Mode: v1alpha1.JoinNew}, "the mode New needs tokens"},
		{"too few tokens", v1alpha1.JoinTicket{Mode: v1alpha1.JoinNew, Tokens: four[:3]},
			"the ticket has 3 tokens, the node 4 (num_tokens)"},
		{"a token twice", v1alpha1.JoinTicket{Mode: v1alpha1.JoinBootstrap, Tokens: []string{"1", "2", "3", "1"}},
			"token 1 occurs twice"},
		{"no token", v1alpha1.JoinTicket{Mode: v1alpha1.JoinNew,
			Tokens: []string{"1", "2", "3", "9223372036854775808"}}, "is no token"},
		{"another form", v1alpha1.JoinTicket{Mode: v1alpha1.JoinNew, Tokens: []string{"1", "2", "3", "+4"}},
			"is no token"},
		{"replace without member", v1alpha1.JoinTicket{Mode: v1alpha1.JoinReplace},
			"a replaced member belongs to the mode Replace"},
		{"replaced member of another mode", v1alpha1.JoinTicket{Mode: v1alpha1.JoinNew, Tokens: four, Replace: replace},
			"a replaced member belongs to the mode Replace"},
		{"replace with tokens", v1alpha1.JoinTicket{Mode: v1alpha1.JoinReplace, Tokens: four, Replace: replace},
			"tokens of its own"},
		{"replace at own address", v1alpha1.JoinTicket{Mode: v1alpha1.JoinReplace,
			Replace: &v1alpha1.ReplaceTarget{Address: "::ffff:10.1.0.7"}}, "has the address of this pod"},
		{"replaced name", v1alpha1.JoinTicket{Mode: v1alpha1.JoinReplace,
			Replace: &v1alpha1.ReplaceTarget{Address: "node"}}, "address of the replaced member"},
		{"replication of another mode", v1alpha1.JoinTicket{Mode: v1alpha1.JoinBootstrap,
			SystemAuthReplicationFactor: 3}, "belongs to the mode New"},
		{"mode", v1alpha1.JoinTicket{Mode: "Copy"}, `mode "Copy" is not known`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := StartOf(nodeOf("5.0"), &test.ticket); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want %q", err, test.want)
			}
		})
	}
}

func TestFilesThatHelenusRendersCannotBeGiven(t *testing.T) {
	for name, refused := range map[string]bool{
		"cassandra.yaml": true, "cassandra-rackdc.properties": true, "jvm-server.options": true,
		"jvm17-server.options": true,
		"jolokia.properties":   true, "logback.xml": false, "cqlshrc": false, "jvm-clients.options": false,
		"my-cassandra.yaml": false,
	} {
		base := Files{"logback.xml": []byte("image's")}
		files, err := WithGiven(base, Files{name: []byte("user's")})
		if refused != (err != nil) || err == nil && string(files[name]) != "user's" {
			t.Errorf("%s: %q, %v", name, files, err)
		}
		if string(base["logback.xml"]) != "image's" {
			t.Error("the image's files were changed")
		}
	}
}

func TestClassPath(t *testing.T) {
	node := Node{Configuration: v1alpha1.NodeConfiguration{
		JVM:         &v1alpha1.JVM{ClassPath: []string{"/extra/*.jar", "/opt/one.jar"}},
		Environment: []v1alpha1.EnvironmentVariable{{Name: "EXTRA_CLASSPATH", Value: "/x"}},
	}}
	start, err := StartOf(node, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range start.Environment {
		if v.Name == "EXTRA_CLASSPATH" {
			got = append(got, v.Value)
		}
	}
	if len(got) != 1 || got[0] != "/extra/*:/opt/one.jar" {
		t.Errorf("got %q", got)
	}
}
