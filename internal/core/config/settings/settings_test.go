package settings

import (
	"strings"
	"testing"
)

func tableOf(t *testing.T, version string) *Table {
	t.Helper()
	table, err := For(version)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTablesHangTogether(t *testing.T) {
	for _, line := range Lines() {
		table := tableOf(t, line+".0")
		if len(table.Settings) < 400 {
			t.Errorf("%s knows only %d settings", line, len(table.Settings))
		}
		for i := range table.Settings {
			s := &table.Settings[i]
			if present := table.Lookup(s.Present()); present == nil {
				t.Errorf("%s: %s is replaced by %s, which is not known", line, s.Name, s.Present())
			}
			if units, _ := unitsOf(s.Type); units != nil && factorOf(units, s.Unit) == 0 {
				t.Errorf("%s: %s has the unit %q, which is none of a %s", line, s.Name, s.Unit, s.Type)
			}
			if s.Default != "" && (s.Type == Duration || s.Type == Size || s.Type == Rate) {
				if problems := s.Check([]byte(`"` + s.Default + `"`)); len(problems) > 0 {
					t.Errorf("%s: the default of %s is refused: %v", line, s.Name, problems)
				}
			}
		}
		for name := range ranges {
			if table.Lookup(name) == nil {
				t.Errorf("%s: the range of %s is of no setting", line, name)
			}
		}
	}
}

func TestFor(t *testing.T) {
	for version, want := range map[string]string{
		"5.0.6": "", "4.1.10": "", "5.0.99": "", "5.0.6-shop.3": "",
		"5.0": "want three numbers", "five": "want three numbers", "5.0.x": "want three numbers",
		"3.11.19": "4.1 and 5.0 are known", "6.0.0": "4.1 and 5.0 are known",
	} {
		_, err := For(version)
		switch {
		case want == "" && err != nil:
			t.Errorf("For(%s): %v", version, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("For(%s) = %v; want %q", version, err, want)
		}
	}
}

func TestKnownIn(t *testing.T) {
	table := tableOf(t, "5.0.6")
	s := table.Lookup("compressed_read_ahead_buffer_size")
	if s == nil {
		t.Fatal("compressed_read_ahead_buffer_size is not in the table")
	}
	for version, want := range map[string]bool{"5.0.3": false, "5.0.4": true, "5.0.6": true, "5.0.12": true} {
		known, why := s.KnownIn(version)
		if known != want {
			t.Errorf("known in %s: %v (%s); want %v", version, known, why, want)
		}
	}
}

func TestNames(t *testing.T) {
	table := tableOf(t, "5.0.6")
	for _, name := range []string{"read_request_timeout", "read_request_timeout_in_ms"} {
		if got := strings.Join(table.Names(name), " "); got != "read_request_timeout read_request_timeout_in_ms" {
			t.Errorf("Names(%s) = %s", name, got)
		}
	}
	if got := table.Names("no_such_setting"); len(got) != 1 || got[0] != "no_such_setting" {
		t.Errorf("Names of an unknown setting = %v", got)
	}
}

func TestNearest(t *testing.T) {
	table := tableOf(t, "5.0.6")
	for name, want := range map[string]string{
		"concurent_reads":        "concurrent_reads",
		"read_request_timout":    "read_request_timeout",
		"compaction_troughput":   "compaction_throughput",
		"something_quite_others": "",
		"x":                      "",
	} {
		if got := table.Nearest(name); got != want {
			t.Errorf("Nearest(%s) = %q, want %q", name, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name, value string
		want        string // "" if the value is right
	}{
		{"concurrent_reads", `64`, ""},
		{"concurrent_reads", `1`, "is 1; want 2 or more"},
		{"concurrent_reads", `"64"`, `is "64"; want a whole number`},
		{"concurrent_reads", `64.5`, "is 64.5; want a whole number"},
		{"concurrent_reads", `3000000000`, "want a whole number from -2147483648 to 2147483647"},
		{"snapshot_links_per_second", `3000000000`, ""},
		{"snapshot_links_per_second", `-1`, "is -1; want 0 or more"},
		{"phi_convict_threshold", `12`, ""},
		{"phi_convict_threshold", `17`, "want a number from 5 to 16"},
		{"auto_snapshot", `false`, ""},
		{"auto_snapshot", `"false"`, `is "false"; want true or false`},
		{"read_request_timeout", `"10s"`, ""},
		{"read_request_timeout", `"10"`, "want a duration: a whole number followed by ms, s, m, h, d, such as 10s"},
		{"read_request_timeout", `10`, "is 10; want a duration"},
		{"read_request_timeout", `"5us"`, "want a duration"},
		{"read_request_timeout", `"-5s"`, "want a duration"},
		{"key_cache_save_period", `14400`, ""},
		{"key_cache_save_period", `"14400"`, ""},
		{"key_cache_save_period", `"4h"`, ""},
		{"key_cache_save_period", `"10ms"`, "want a duration: a whole number followed by s, m, h, d, such as 10s"},
		{"commitlog_segment_size", `"64MiB"`, ""},
		{"commitlog_segment_size", `"64MB"`, "want a size: a whole number followed by MiB, GiB, such as 10MiB"},
		{"commitlog_segment_size", `"64KiB"`, "want a size"},
		{"commitlog_segment_size", `"9999999GiB"`, "less than 2147483647MiB"},
		{"compaction_throughput", `"64MiB/s"`, ""},
		{"compaction_throughput", `"64MiB"`, "want a rate: a whole number followed by B/s, KiB/s, MiB/s, such as " +
			"10MiB/s"},
		{"compaction_throughput_mb_per_sec", `64`, ""},
		{"commitlog_sync", `"periodic"`, ""},
		{"commitlog_sync", `"PERIODIC"`, `is "PERIODIC"; want one of periodic, batch, group`},
		{"read_consistency_levels_warned", `["ONE","TWO"]`, ""},
		{"read_consistency_levels_warned", `["ONE","Two"]`, `[1] is "Two"; want one of`},
		{"read_consistency_levels_warned", `"ONE"`, "want a list"},
		{"memtable", `{"configurations": {"default": {"inherits": "trie"}}}`, ""},
		{"memtable", `{"configuration": {}}`, ".configuration is not known here; known are configurations"},
		{"memtable", `{"configurations": {"default": {"extends": "trie"}}}`,
			".configurations.default.extends is not known here"},
		{"memtable", `[]`, "want a mapping"},
		{"commitlog_compression", `[{"class_name": "LZ4Compressor"}]`, ""},
		{"commitlog_compression", `[{"class": "LZ4Compressor"}]`,
			"[0].class is not known here; known are class_name, parameters"},
		{"commitlog_compression", `[]`, "is a list of 0 elements"},
		{"default_compaction", `"UnifiedCompactionStrategy"`, ""},
		{"auto_snapshot_ttl", `30`, "is 30; want a string (in quotes)"},
		{"auto_snapshot_ttl", `"30d"`, ""},
		{"startup_checks", `{"check_filesystem_ownership": {"enabled": false}}`, ""},
		{"memtable_cleanup_threshold", `1e-3`, "want a number from 0.01 to 0.99"},
		{"memtable_cleanup_threshold", `1e999`, "want a number of double precision"},
		{"auto_snapshot", `tru`, "is no JSON value"},
	}
	table := tableOf(t, "5.0.6")
	for _, test := range tests {
		setting := table.Lookup(test.name)
		if setting == nil {
			t.Errorf("%s is not known", test.name)
			continue
		}
		var got []string
		for _, p := range setting.Check([]byte(test.value)) {
			got = append(got, strings.TrimSpace(p.Path+" "+p.Message))
		}
		text := strings.Join(got, "; ")
		if (test.want == "") != (text == "") || !strings.Contains(text, test.want) {
			t.Errorf("%s: %s: got %q, want %q", test.name, test.value, text, test.want)
		}
	}
}

func TestQuantity(t *testing.T) {
	table := tableOf(t, "5.0.6")
	tests := []struct {
		name, value string
		want        int64
		known       bool
	}{
		{"read_request_timeout", `"5s"`, 5e9, true},
		{"read_request_timeout_in_ms", `5000`, 5e9, true},
		{"compaction_throughput_mb_per_sec", `64`, 64 << 20, true},
		{"compaction_throughput", `"64MiB/s"`, 64 << 20, true},
		{"stream_throughput_outbound_megabits_per_sec", `200`, 0, false},
		{"commitlog_segment_size", `"64MiB"`, 64 << 20, true},
		{"commitlog_segment_size", `"99999999999999GiB"`, 0, false},
		{"concurrent_reads", `32`, 0, false},
		{"read_request_timeout", `5`, 0, false},
	}
	for _, test := range tests {
		got, known := table.Lookup(test.name).Quantity([]byte(test.value))
		if got != test.want || known != test.known {
			t.Errorf("%s: %s is %d, %v; want %d, %v", test.name, test.value, got, known, test.want, test.known)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("read_request_timeout", []byte(`"10s"`))
	f.Add("memtable", []byte(`{"configurations": {"a": [1, null, {"b": "c"}]}}`))
	f.Add("commitlog_compression", []byte(`[{"class_name": 5}]`))
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		for _, table := range tables {
			setting := table.Lookup(name)
			if setting == nil {
				table.Nearest(name)
				continue
			}
			problems := setting.Check(value)
			if amount, known := setting.Quantity(value); known && amount < 0 {
				t.Errorf("%s: %s is the negative amount %d (%v)", name, value, amount, problems)
			}
		}
	})
}
