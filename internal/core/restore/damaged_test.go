package restore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/facts"
)

// Of each table of a node that has lost files it is said who else has the same ranges whole.
func TestDamaged(t *testing.T) {
	b := &format.Backup{Replication: map[string]map[string]string{
		"shop":          {"class": "org.apache.cassandra.locator.NetworkTopologyStrategy", "dc1": "2"},
		"logs":          {"class": "SimpleStrategy", "replication_factor": "1"},
		"system_schema": {"class": "LocalStrategy"}}}
	for i, id := range []string{"a", "b", "c"} {
		b.Nodes = append(b.Nodes, format.Node{HostID: id, Name: "n-" + id, Datacenter: "dc1", Rack: "r-" + id,
			Tokens: []string{fmt.Sprint(i * 100)}})
	}
	file := func(host, table, name string) facts.DamagedFile {
		keyspace, table, _ := strings.Cut(table, ".")
		return facts.DamagedFile{HostID: host, Node: "n-" + host, Keyspace: keyspace, Table: table, File: name,
			Why: "is missing"}
	}
	manifest := func(host string) facts.DamagedFile {
		return facts.DamagedFile{HostID: host, Node: "n-" + host, File: "its manifest", Why: "is missing"}
	}
	for name, c := range map[string]struct {
		files []facts.DamagedFile
		want  string
	}{
		"others have it":     {[]facts.DamagedFile{file("a", "shop.orders", "Data.db")}, "n-a shop.orders 0/2 [n-b n-c] 1"},
		"files of one table": {[]facts.DamagedFile{file("a", "shop.orders", "Data.db"), file("a", "shop.orders", "TOC.txt")}, "n-a shop.orders 0/2 [n-b n-c] 2"},
		"one replica alone":  {[]facts.DamagedFile{file("a", "logs.all", "Data.db")}, "n-a logs.all 1/1 [] 1"},
		"a node's own":       {[]facts.DamagedFile{file("a", "system_schema.tables", "Data.db")}, "n-a system_schema.tables 0/0 [] 1"},
		"the other one, too": {[]facts.DamagedFile{file("a", "shop.orders", "Data.db"), file("b", "shop.orders", "Data.db")},
			"n-a shop.orders 1/2 [n-c] 1, n-b shop.orders 1/2 [n-c] 1"},
		"another table of it": {[]facts.DamagedFile{file("a", "shop.orders", "Data.db"), file("b", "shop.carts", "Data.db")},
			"n-a shop.orders 0/2 [n-b n-c] 1, n-b shop.carts 0/2 [n-a n-c] 1"},
		"a manifest": {[]facts.DamagedFile{manifest("b"), file("a", "shop.orders", "Data.db")},
			"n-b  2/3 [n-c] 1, n-a shop.orders 1/2 [n-c] 1"},
	} {
		var got []string
		for _, d := range Damaged(b, c.files) {
			got = append(got, fmt.Sprintf("%s %s %d/%d %v %d", d.Node, d.Table, d.Uncovered, d.Ranges, d.CoveredBy,
				len(d.Files)))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
	}
	var many []facts.DamagedFile
	for i := range 100 {
		many = append(many, file("a", fmt.Sprintf("shop.t%d", i), "Data.db"))
	}
	if got := Damaged(b, slices.Concat(many, many)); len(got) != 32 || len(got[0].Files) != 2 {
		t.Errorf("%d tables, %d files", len(got), len(got[0].Files))
	}
}

// All that nodes had of a table is left out if, in each datacenter, a quorum of each range is left.
func TestLeaveOut(t *testing.T) {
	b := &format.Backup{Replication: map[string]map[string]string{"local": {"class": "LocalStrategy"},
		"simple": {"class": "SimpleStrategy", "replication_factor": "1"},
		"wide":   {"class": "SimpleStrategy", "replication_factor": "3"}}}
	for i, id := range strings.Split("abcdefg", "") {
		b.Nodes = append(b.Nodes, format.Node{HostID: id, Name: "n-" + id, Datacenter: "dc1", Rack: "r-" + id,
			Tokens: []string{fmt.Sprint(i * 100)}})
	}
	b.Nodes[6].Datacenter = "dc2"
	for _, n := range []string{"1", "2", "3", "4", "5", "9"} {
		b.Replication["rf"+n] = map[string]string{"class": "NetworkTopologyStrategy", "dc1": n, "dc2": "1"}
	}
	for text, want := range map[string]string{
		"a/rf3.t":                 "",
		"a/rf3.t d/rf3.t":         "", // of no range both have a replica
		"a/rf3.t b/rf3.u":         "",
		"a/rf3.t c/rf3.t":         "files of n-a, n-c are damaged: 1 may be left out (RF - quorum)",
		"a/rf1.t":                 "has 1 replica in datacenter dc1, and files of n-a are damaged: 0 may be left out",
		"a/rf2.t":                 "files of n-a are damaged: 0 may be left out",
		"a/rf4.t b/rf4.t":         "files of n-a, n-b are damaged: 1 may be left out",
		"a/rf5.t b/rf5.t":         "",
		"a/rf5.t b/rf5.t c/rf5.t": "files of n-a, n-b, n-c are damaged: 2 may be left out",
		"a/rf9.t b/rf9.t":         "", // six nodes have it
		"a/rf9.t b/rf9.t c/rf9.t": "has 6 replicas in datacenter dc1, and files of n-a, n-b, n-c are damaged: 2 may be",
		"g/rf3.t":                 "datacenter dc2, and files of n-g are damaged: 0 may be left out",
		"a/simple.t":              "0 may be left out",
		"a/wide.t":                "", // of all datacenters together
		"a/wide.t g/wide.t":       "has 3 replicas, and files of n-a, n-g are damaged: 1 may be left out",
		"a/local.t":               "does not say who had copies",
		"a/other.t":               "does not say who had copies",
		"x/rf3.t":                 "does not say who had copies of what node x had of rf3.t",
	} {
		var files []facts.DamagedFile
		var had []string
		for _, one := range strings.Fields(text) {
			host, table, _ := strings.Cut(one, "/")
			f := facts.DamagedFile{HostID: host}
			f.Keyspace, f.Table, _ = strings.Cut(table, ".")
			files, had = append(files, f), append(had, "n-"+host+" had of "+table)
		}
		got, err := LeaveOut(b, files)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err == nil && (!strings.HasPrefix(got, "; without what "+strings.Join(had, ", ")+": ") ||
			Without("done"+got) != got || Without("done") != "") {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// A node that the backup was taken without counts as one whose files are all damaged.
func TestWithoutANode(t *testing.T) {
	b := &format.Backup{Replication: map[string]map[string]string{
		"two":   {"class": "NetworkTopologyStrategy", "dc1": "2"},
		"three": {"class": "NetworkTopologyStrategy", "dc1": "3"}}}
	for i, id := range []string{"a", "b", "c", "d"} {
		b.Nodes = append(b.Nodes, format.Node{HostID: id, Name: "n-" + id, Datacenter: "dc1", Rack: "r-" + id,
			Tokens: []string{fmt.Sprint(i * 100)}})
	}
	b.Nodes, b.LeftOut = b.Nodes[:3], b.Nodes[3:]
	if err := LeavesOut(b, []string{"three", "system_schema"}); err != nil {
		t.Error(err)
	}
	err := LeavesOut(b, []string{"two"})
	if err == nil || !strings.Contains(err.Error(),
		"of keyspace two has 2 replicas in datacenter dc1, and those of n-d do "+
			"not count: 0 may be left out") {
		t.Error(err)
	}
	file := facts.DamagedFile{HostID: "a", Node: "n-a", Keyspace: "three", Table: "t"}
	if _, err := LeaveOut(b, []facts.DamagedFile{file}); err == nil ||
		!strings.Contains(err.Error(), "files of n-a, n-d are damaged or not in the backup: 1 may be left out") {
		t.Error(err)
	}
	file.Keyspace = "two"
	if got := Damaged(b, []facts.DamagedFile{file})[0]; got.Uncovered != 1 ||
		!slices.Equal(got.CoveredBy, []string{"n-b"}) {
		t.Errorf("%+v", got)
	}
	b.LeftOut[0].Tokens = nil
	if err := LeavesOut(b, []string{"three"}); err == nil ||
		!strings.Contains(err.Error(), "does not say which nodes have copies") {
		t.Error(err)
	}
}
