//go:build cassandra

package cql

import (
	"context"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/jolokia"
	"helenus.io/helenus/test/hotsettings"
)

// realNode reaches the node that the environment names, by both ways. The ring has one datacenter
// and is there for tests.
func realNode(t *testing.T) (*Session, *nodeview.Node) {
	t.Helper()
	address, url := os.Getenv("HELENUS_CQL_ADDRESS"), os.Getenv("HELENUS_JOLOKIA_URL")
	if address == "" || url == "" {
		t.Skip("HELENUS_CQL_ADDRESS or HELENUS_JOLOKIA_URL is not set: no node to check")
	}
	session, err := Connect(t.Context(), netip.MustParseAddrPort(address), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session, nodeview.New(realClient(t))
}

func realClient(t *testing.T) *jolokia.Client {
	t.Helper()
	client, err := jolokia.New(jolokia.Config{URL: os.Getenv("HELENUS_JOLOKIA_URL"),
		User: os.Getenv("HELENUS_JOLOKIA_USER"), Password: os.Getenv("HELENUS_JOLOKIA_PASSWORD")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestRealReplication(t *testing.T) {
	session, node := realNode(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	view, err := node.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	datacenter := view.Gossip[0].Datacenter
	for _, replicas := range []int{1, 2, min(3, len(view.HostIDs))} {
		wanted := map[string]map[string]int{}
		for _, name := range ring.SystemKeyspaces() {
			wanted[name] = map[string]int{datacenter: replicas, "gone": 0}
		}
		if _, err := RaiseReplication(ctx, session, wanted, node.AwaitSchemaAgreement); err != nil {
			t.Fatal(err)
		}
		altered, err := RaiseReplication(ctx, session, wanted, node.AwaitSchemaAgreement)
		if err != nil || len(altered) != 0 {
			t.Errorf("the second time %v were altered, error %v", altered, err)
		}
		schema, err := node.Schema(ctx)
		if err != nil {
			t.Fatal(err)
		}
		overCQL, err := session.Keyspaces(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, keyspace := range schema.Keyspaces {
			if !keyspace.Replication.Equal(overCQL[keyspace.Name]) {
				t.Errorf("keyspace %s is %s over JMX and %s over CQL", keyspace.Name, keyspace.Replication,
					overCQL[keyspace.Name])
			}
			if want := cassandra.PerDatacenter(wanted[keyspace.Name]); wanted[keyspace.Name] != nil &&
				!keyspace.Replication.Equal(want) {
				t.Errorf("keyspace %s is %s, want %s", keyspace.Name, keyspace.Replication, want)
			}
		}
	}
	for name, wanted := range map[string]map[string]map[string]int{
		"a keyspace that does not exist":   {"no_such_keyspace": {datacenter: 1}},
		"a datacenter that does not exist": {"system_traces": {"no_such_datacenter": 1}},
	} {
		if altered, err := RaiseReplication(ctx, session, wanted, node.AwaitSchemaAgreement); err == nil ||
			len(altered) != 0 {
			t.Errorf("%s: altered %v, error %v", name, altered, err)
		}
	}
}

func TestRealGCGrace(t *testing.T) {
	session, node := realNode(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exec := func(statement string) {
		t.Helper()
		if err := session.driver.Query(statement).ExecContext(ctx); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		if err := node.AwaitSchemaAgreement(ctx); err != nil {
			t.Fatal(err)
		}
	}
	view, err := node.View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	datacenter := view.Gossip[0].Datacenter
	exec(`DROP KEYSPACE IF EXISTS "HelenusTest"`)
	exec(`DROP KEYSPACE IF EXISTS helenus_single`)
	defer exec(`DROP KEYSPACE IF EXISTS "HelenusTest"`)
	defer exec(`DROP KEYSPACE IF EXISTS helenus_single`)
	_, before, err := session.Tables(ctx)
	if err != nil {
		t.Fatal(err)
	}
	exec(`CREATE KEYSPACE helenus_single WITH replication = {'class': 'NetworkTopologyStrategy', '` + datacenter +
		`': 1}`)
	exec(`CREATE TABLE helenus_single.t (k int PRIMARY KEY) WITH gc_grace_seconds = 10`)
	if tables, grace, err := session.Tables(ctx); err != nil || grace != before ||
		!slices.ContainsFunc(tables, func(t facts.Table) bool { return t.Keyspace == "helenus_single" }) {
		t.Errorf("with a table of one replica the smallest gc_grace is %s, was %s, tables %+v, error %v", grace, before,
			tables, err)
	}
	exec(`CREATE KEYSPACE "HelenusTest" WITH replication = {'class': 'NetworkTopologyStrategy', '` + datacenter +
		`': 2}`)
	exec(`CREATE TABLE "HelenusTest".zero (k int PRIMARY KEY) WITH gc_grace_seconds = 0`)
	exec(`CREATE TABLE "HelenusTest".hour (k int PRIMARY KEY) WITH gc_grace_seconds = 3600`)
	exec(`CREATE TABLE "HelenusTest".days (k int PRIMARY KEY)`)
	tables, grace, err := session.Tables(ctx)
	if err != nil || grace != time.Hour || len(tables) == 0 || len(tables[0].ID) != 36 || tables[0].Compaction == "" {
		t.Errorf("smallest gc_grace is %s, tables %+v, error %v; want 1h", grace, tables, err)
	}
	// A name that needs quotes.
	if altered, err := RaiseReplication(ctx, session, map[string]map[string]int{"HelenusTest": {datacenter: 3}},
		node.AwaitSchemaAgreement); err != nil || len(altered) != 1 {
		t.Errorf("altered %v, error %v", altered, err)
	}
}

// TestRealTokens asks the node for the token of each key that package ring has from Cassandra's
// classes.
func TestRealTokens(t *testing.T) {
	session, node := realNode(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	text, err := os.ReadFile("../../core/ring/testdata/keys.golden")
	if err != nil {
		t.Fatal(err)
	}
	exec := func(statement string) {
		t.Helper()
		if err := session.driver.Query(statement).ExecContext(ctx); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec(`DROP KEYSPACE IF EXISTS helenus_tokens`)
	exec(`CREATE KEYSPACE helenus_tokens WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`)
	defer exec(`DROP KEYSPACE IF EXISTS helenus_tokens`)
	made := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		var types, names, values []string
		for i, column := range fields[1:] {
			name, value, _ := strings.Cut(column, ":")
			if name == "text" {
				value = "'" + value + "'"
			}
			types, names = append(types, name), append(names, "k"+strconv.Itoa(i))
			values = append(values, value)
		}
		table := "helenus_tokens." + strings.Join(types, "_")
		columns := strings.Join(names, ", ")
		if !made[table] {
			made[table] = true
			var definitions strings.Builder
			for i := range names {
				definitions.WriteString(names[i] + " " + types[i] + ", ")
			}
			exec("CREATE TABLE " + table + " (" + definitions.String() + "PRIMARY KEY ((" + columns + ")))")
			if err := node.AwaitSchemaAgreement(ctx); err != nil {
				t.Fatal(err)
			}
		}
		exec("INSERT INTO " + table + " (" + columns + ") VALUES (" + strings.Join(values, ", ") + ")")
		where := make([]string, len(names))
		for i := range names {
			where[i] = names[i] + " = " + values[i]
		}
		var token int64
		ask := "SELECT token(" + columns + ") FROM " + table + " WHERE " + strings.Join(where, " AND ")
		if err := session.driver.Query(ask).ScanContext(ctx, &token); err != nil {
			t.Fatalf("%s: %v", ask, err)
		}
		key, err := ring.ParseKey(fields[1:])
		if got := ring.TokenOf(key); err != nil || int64(got) != token {
			t.Errorf("%q: token %s, error %v; the node says %d", fields[1:], got, err, token)
		}
	}
	if len(made) < 8 {
		t.Errorf("only %d kinds of keys", len(made))
	}
}

// otherValues are values that differ from the defaults, where the form alone does not give one.
var otherValues = map[string]any{
	"paxos_variant": "v2", "read_consistency_levels_warned": []any{"ALL", "ONE"},
	"read_consistency_levels_disallowed": []any{"ANY"},
	"write_consistency_levels_warned":    []any{"ALL"}, "write_consistency_levels_disallowed": []any{"ONE", "TWO"},
	"table_properties_warned": []any{"comment"}, "table_properties_ignored": []any{"gc_grace_seconds", "comment"},
	"table_properties_disallowed": []any{"caching"},
	"snapshot_links_per_second":   77, "native_transport_max_concurrent_connections": 999,
	"native_transport_max_concurrent_connections_per_ip": 99,
	"data_disk_usage_percentage_warn_threshold":          70, "data_disk_usage_percentage_fail_threshold": 90,
	"maximum_replication_factor_warn_threshold": 7, "maximum_replication_factor_fail_threshold": 9,
	"minimum_replication_factor_warn_threshold": 3, "minimum_replication_factor_fail_threshold": 1,
	"repair_session_max_tree_depth": 18, "concurrent_compactors": 2, "concurrent_validations": 1,
	"concurrent_materialized_view_builders": 2,
	"default_keyspace_rf":                   2, "phi_convict_threshold": 9.5, "tombstone_failure_threshold": 200000,
	// Other values than the rule below gives, since these pairs have a default warning above it.
	"sai_sstable_indexes_per_query_warn_threshold": 40, "sai_sstable_indexes_per_query_fail_threshold": 60,
	"batch_size_warn_threshold": "6KiB", "batch_size_fail_threshold": "60KiB",
	"sai_string_term_size_fail_threshold": "9KiB", "sai_frozen_term_size_fail_threshold": "9KiB",
	"sai_vector_term_size_fail_threshold": "33KiB",
	"sai_vector_term_size_warn_threshold": "17KiB",
}

// otherValue is a value that the setting does not have by default.
func otherValue(setting hotsettings.Setting, present string) any {
	if value, found := otherValues[setting.Key]; found {
		return value
	}
	fails := strings.HasSuffix(setting.Key, "_fail_threshold")
	switch setting.Form {
	case hotsettings.FormBoolean:
		return present != "true"
	case hotsettings.FormDuration:
		return "123s"
	case hotsettings.FormRate:
		return "11MiB/s"
	case hotsettings.FormSize:
		return "7MiB"
	case hotsettings.FormSizeText:
		if fails {
			return "8MiB"
		}
		return "2KiB"
	default:
		if fails {
			return 1234
		}
		return 321
	}
}

// TestRealHotSettings gives every hot setting another value over JMX, and looks for it under the
// key of cassandra.yaml in the node's own table of settings. That shows that bean, attribute, unit
// and key belong together.
func TestRealHotSettings(t *testing.T) {
	session, node := realNode(t)
	client := realClient(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	state, err := node.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wanted, before := map[string]any{}, map[string]any{}
	for _, setting := range hotsettings.All() {
		if _, here := hotsettings.Lookup(setting.Key, state.ReleaseVersion); !here {
			continue
		}
		present, err := hotsettings.Read(ctx, client, state.ReleaseVersion, []string{setting.Key})
		if err != nil {
			t.Fatal(err)
		}
		value, known := present[setting.Key]
		if known && setting.InYAML(value) != nil || setting.Form == hotsettings.FormSizeText {
			before[setting.Key] = setting.InYAML(value)
		}
		wanted[setting.Key] = otherValue(setting, value)
	}
	defer func() {
		if _, err := hotsettings.Apply(ctx, client, state.ReleaseVersion, before); err != nil {
			t.Errorf("restore settings: %v", err)
		}
	}()
	// Pairs together, all others alone, so that one refusal does not hide the rest.
	for _, setting := range hotsettings.All() {
		values := map[string]any{}
		for _, key := range []string{setting.Key, setting.PairKeys[0], setting.PairKeys[1]} {
			if value, here := wanted[key]; here {
				values[key] = value
			}
		}
		if len(values) == 0 {
			continue
		}
		if _, err := hotsettings.Apply(ctx, client, state.ReleaseVersion, values); err != nil {
			t.Errorf("%v", err)
		}
	}
	shown := settingsTable(ctx, t, session)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		setting, _ := hotsettings.Lookup(key, state.ReleaseVersion)
		text, found := shown[key]
		if !found {
			t.Errorf("setting %s: not in system_views.settings", key)
			continue
		}
		want, err := setting.Canonical(wanted[key])
		if err != nil {
			t.Fatal(err)
		}
		// The table prints lists as Java does.
		got, err := setting.Canonical(strings.Trim(text, "[]"))
		if err != nil || got != want {
			t.Errorf("setting %s: the node's table has %q, error %v; want %s", key, text, err, want)
		}
	}
}

func settingsTable(ctx context.Context, t *testing.T, session *Session) map[string]string {
	t.Helper()
	iter := session.driver.Query("SELECT name, value FROM system_views.settings").IterContext(ctx)
	table := map[string]string{}
	var name string
	var value *string
	for iter.Scan(&name, &value) {
		if value != nil {
			table[name] = *value
		}
		value = nil
	}
	if err := iter.Close(); err != nil {
		t.Fatal(err)
	}
	return table
}

// TestRealSessionStaysOnOneNode counts what this process has open to native transports of the ring.
func TestRealSessionStaysOnOneNode(t *testing.T) {
	session, _ := realNode(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 20 {
		if _, err := session.Keyspaces(ctx); err != nil {
			t.Fatal(err)
		}
	}
	iter := session.driver.Query("SELECT address, port FROM system_views.clients").IterContext(ctx)
	rows, err := iter.SliceMap()
	if err != nil {
		t.Fatal(err)
	}
	const expected = 2
	if len(rows) != expected {
		t.Errorf("the node has %s clients, want %d: %v", strconv.Itoa(len(rows)), expected, rows)
	}
	for _, host := range session.driver.GetHosts() {
		if node := netip.MustParseAddrPort(os.Getenv("HELENUS_CQL_ADDRESS")); host.ConnectAddress().String() != node.Addr().String() {
			t.Errorf("the driver knows host %v", host)
		}
	}
}
