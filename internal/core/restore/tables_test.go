package restore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/config"
)

// As Cassandra 5.0.9 has written it beside a snapshot.
const had = `CREATE TYPE IF NOT EXISTS shop.place (
    street text,
    number int
);
CREATE TABLE IF NOT EXISTS shop.orders (
    k int,
    "Day" int,
    c int,
    s text static,
    at frozen<place>,
    v text MASKED WITH system.mask_default(),
    old map<int, text>,
    PRIMARY KEY ((k, "Day"), c)
) WITH ID = 61b11610-e935-11f1-95e5-052ab39a97ca
    AND CLUSTERING ORDER BY (c DESC)
    AND caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}
    AND speculative_retry = '99p';
ALTER TABLE shop.orders DROP old USING TIMESTAMP 1795655092248000;
CREATE INDEX IF NOT EXISTS by_v ON shop.orders (v);
`

// As DESCRIBE of Cassandra 5.0.9 has it.
func TestViewProblem(t *testing.T) {
	const views = had + "CREATE MATERIALIZED VIEW shop.\"byV\" AS\n    SELECT k, v\n    FROM shop.orders\n    WHERE v IS NOT " +
		"NULL AND k IS NOT NULL\n    PRIMARY KEY (v, k)\n WITH ID = 1;\nCREATE MATERIALIZED VIEW shop.other AS\n" +
		"    SELECT *\n    FROM shop.orders_old\n    WHERE v IS NOT NULL\n    PRIMARY KEY (v, k)\n WITH ID = 2;\n"
	for table, want := range map[string]string{"shop.orders": "drop shop.byV first",
		"shop.orders_old": "drop shop.other first", "shop.order": ""} {
		if got := ViewProblem(table, views); (got != "") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", table, got, want)
		}
	}
}

func TestTableProblem(t *testing.T) {
	const create = `CREATE TABLE shop.orders (k int, "Day" int, c int, s text static, at frozen<place>, v text, ` +
		`old map<int, text>, PRIMARY KEY ((k, "Day"), c)) WITH CLUSTERING ORDER BY (c DESC)`
	for name, c := range map[string]struct {
		old, now string
		to, want string
	}{
		"the same":           {},
		"another name":       {old: "shop.orders", now: "shop.orders_old", to: "shop.orders_old"},
		"a column more":      {old: `    c int,`, now: "    c int,\n    b blob,"},
		"a field more":       {old: `    number int`, now: "    number int,\n    zip text"},
		"an option":          {old: "'99p'", now: "'50p'"},
		"no such table":      {to: "shop.other", want: "there is no table shop.other: create it first: CREATE TABLE shop.other ("},
		"a column is gone":   {old: "    v text MASKED WITH system.mask_default(),\n", want: "has no column v, which was text"},
		"a dropped one is":   {old: "    old map<int, text>,\n", want: "has no column old, which was map<int, text>"},
		"another type":       {old: "s text static", now: "s text", want: "column s of shop.orders is text, and was text static"},
		"another key":        {old: "((k, \"Day\"), c)", now: "(k, \"Day\", c)", want: "is (k, \"Day\", c) in the order"},
		"another order":      {old: "c DESC", now: "c ASC", want: "and was ((k, \"Day\"), c) in the order (c DESC) in the backup"},
		"another field":      {old: "    number int", now: "    number text", want: "begins with (street text, number text)"},
		"a type in its way":  {old: "shop.place", now: "shop.places", want: "has no type place, which was (street text, number int)"},
		"a keyspace without": {old: "shop.orders", now: "cart.orders", to: "cart.orders", want: "keyspace cart has no type place"},
	} {
		has := ParseSchema(strings.ReplaceAll(strings.ReplaceAll(had, "IF NOT EXISTS ", ""), c.old, c.now))
		if c.old == "" {
			has = ParseSchema(had)
		}
		got := TableProblem(v1alpha1.RestoredTable{From: "shop.orders", To: c.to}, ParseSchema(had), has)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	orders := v1alpha1.RestoredTable{From: "shop.orders"}
	if got := TableProblem(orders, ParseSchema(had), nil); !strings.HasSuffix(got, create) {
		t.Errorf("%s\ndoes not end with\n%s", got, create)
	}
	if got := TableProblem(orders, nil, ParseSchema(had)); !strings.Contains(got, "earlier release") {
		t.Errorf("a backup without a schema: %q", got)
	}
	counts := ParseSchema("CREATE TABLE shop.counts (\n    k int PRIMARY KEY,\n    n counter\n) WITH ID = 1;")
	orders.From = "shop.counts"
	if got := TableProblem(orders, counts, counts); !strings.Contains(got, "counter n") {
		t.Errorf("a counter: %q", got)
	}
}

func TestFormatProblem(t *testing.T) {
	for _, mode := range config.CompatibilityModes {
		c := &v1alpha1.NodeConfiguration{CassandraYaml: v1alpha1.Settings{
			config.CompatibilityModeSetting: v1alpha1.Value{Raw: fmt.Appendf(nil, "%q", mode)}}}
		for name, readable := range map[string]bool{"nb-1-big": true, "me-1-big": true, ".by_name/nb-1-big": true,
			"oa-1-big": mode != "CASSANDRA_4", "da-3g_1-bti": mode != "CASSANDRA_4"} {
			if got := FormatProblem(c, name); (got == "") != readable {
				t.Errorf("%s in %s: %q", name, mode, got)
			}
		}
	}
}

// Each node of a backup is exactly one member's, and its own if that is still there.
func TestShare(t *testing.T) {
	var nodes []format.Node
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		nodes = append(nodes, format.Node{HostID: id})
	}
	members, of := []string{"z", "b", "y"}, map[string][]string{}
	for _, m := range members {
		for _, id := range Share(nodes, members, m) {
			of[id] = append(of[id], m)
		}
	}
	if len(of) != len(nodes) || !slices.Equal(of["b"], []string{"b"}) {
		t.Errorf("shares %v", of)
	}
	for id, by := range of {
		if len(by) != 1 {
			t.Errorf("%s is taken by %v", id, by)
		}
	}
	if got := Share(nodes, members, "z"); len(got) > 2 {
		t.Errorf("one takes %v", got)
	}
}
