package restore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/backup/format"
)

func TestReplicated(t *testing.T) {
	one, two := map[string]int32{"east": 2}, map[string]int32{"east": 3, "west": 1}
	for name, c := range map[string]struct {
		had  string // class, then datacenter=replicas
		in   map[string]int32
		want string // or the problem
	}{
		"the same":                {"NetworkTopologyStrategy east=2", one, "east=2"},
		"fewer nodes":             {"NetworkTopologyStrategy east=3", one, "east=2"},
		"by its whole name":       {"org.apache.cassandra.locator.NetworkTopologyStrategy east=1", one, "east=1"},
		"one is gone":             {"NetworkTopologyStrategy east=2 west=3", one, "east=2"},
		"one is new":              {"NetworkTopologyStrategy east=3", two, "east=3"},
		"both are there":          {"NetworkTopologyStrategy east=3 west=2", two, "east=3 west=1"},
		"none is there":           {"NetworkTopologyStrategy dc1=1 dc2=2", one, "east=2"},
		"none is there of two":    {"NetworkTopologyStrategy dc1=1", two, "has NetworkTopologyStrategy {dc1: 1}"},
		"no datacenters":          {"SimpleStrategy replication_factor=2", one, "east=2"},
		"no datacenters, but two": {"SimpleStrategy replication_factor=2", two, "set datacenterName of one"},
		"a name like an option": {"SimpleStrategy replication_factor=1", map[string]int32{"replication_factor": 2},
			"replication_factor=1"},
		"no replicas": {"NetworkTopologyStrategy", one, ""},
		"transient":   {"NetworkTopologyStrategy east=3/1", one, "has 3/1 replicas in east"},
		"everywhere":  {"EverywhereStrategy", one, "is replicated by EverywhereStrategy"},
		"another's":   {"com.example.Strategy", one, "is replicated by com.example.Strategy"},
	} {
		parts := strings.Fields(c.had)
		had := map[string]string{"class": parts[0]}
		for _, option := range parts[1:] {
			dc, n, _ := strings.Cut(option, "=")
			had[dc] = n
		}
		to, problems := Replicated(map[string]map[string]string{"shop": had, "system_auth": had}, c.in)
		if len(to["system_auth"]) != len(c.in)+1 || to["system_auth"]["east"] == "2" {
			t.Errorf("%s: system_auth has %v", name, to["system_auth"])
		}
		if len(problems) > 0 {
			if !strings.HasPrefix(problems[0], "keyspace shop ") || !strings.Contains(problems[0], c.want) || c.want == "" {
				t.Errorf("%s: %q, want %q", name, problems, c.want)
			}
			continue
		}
		var got []string
		for _, dc := range slices.Sorted(maps.Keys(to["shop"])) {
			if dc != "class" {
				got = append(got, dc+"="+to["shop"][dc])
			}
		}
		if strings.Join(got, " ") != c.want || to["shop"]["class"] != strategies+"NetworkTopologyStrategy" {
			t.Errorf("%s: %v, want %s", name, to["shop"], c.want)
		}
		if !Same(to["shop"], "NetworkTopologyStrategy", options(to["shop"])) ||
			Same(to["shop"], "SimpleStrategy", options(to["shop"])) ||
			Same(to["shop"], "NetworkTopologyStrategy", map[string]string{"x": "1"}) {
			t.Errorf("%s: %v is not told from others", name, to["shop"])
		}
	}
}

func options(of map[string]string) map[string]string {
	out := maps.Clone(of)
	delete(out, "class")
	return out
}

func TestTablesOfUsers(t *testing.T) {
	var got []string
	m := &format.Manifest{Tables: []format.Table{
		{Keyspace: "system_schema", Name: "tables"}, {Keyspace: "system_auth", Name: "roles"},
		{Keyspace: "system_orders", Name: "a"}, {Keyspace: "shop", Name: "b", Schema: "CREATE TABLE IF NOT EXISTS"},
		{Keyspace: "shop", Name: "c", Schema: "\nCREATE MATERIALIZED VIEW IF NOT EXISTS shop.c AS SELECT"},
	}}
	for _, keyspaces := range [][]string{nil, {"shop"}} {
		for _, table := range Tables(m, keyspaces) {
			got = append(got, table.Keyspace+"."+table.Name)
		}
	}
	if fmt.Sprint(got) != "[system_orders.a shop.b shop.b]" {
		t.Errorf("%v", got)
	}
}
