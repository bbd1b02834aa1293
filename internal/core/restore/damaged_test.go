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
