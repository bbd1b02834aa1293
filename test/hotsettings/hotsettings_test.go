package hotsettings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"helenus.io/helenus/internal/jolokia"
)

// beans is a node that has nothing but attributes. Thresholds are set in pairs, as on a real one.
type beans struct {
	values map[string]any // by attribute
	// stuck attributes accept a value and keep the old one; refusing ones throw.
	stuck, refusing map[string]bool
	writes          []string
}

func (b *beans) answer(t testing.TB, body json.RawMessage) json.RawMessage {
	var requests []struct {
		Type, Operation string
		Attribute       any
		Value           any
		Arguments       []any
	}
	if err := json.Unmarshal(body, &requests); err != nil {
		t.Fatal(err)
	}
	var answers []string
	for _, r := range requests {
		answer := map[string]any{"status": 200, "value": nil}
		switch r.Type {
		case "read":
			name := r.Attribute.([]any)[0].(string)
			value, found := b.values[name]
			if !found {
				answer = map[string]any{"status": 404, "error_type": "javax.management.AttributeNotFoundException",
					"error": name}
				break
			}
			answer["value"] = map[string]any{name: value}
		case "write":
			answer = b.set(r.Attribute.(string), r.Value)
		case "exec":
			name, _, _ := strings.Cut(strings.TrimPrefix(r.Operation, "set"), "Threshold(")
			for i, half := range []string{"WarnThreshold", "FailThreshold"} {
				answer = b.set(name+half, r.Arguments[i])
			}
		}
		encoded, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, string(encoded))
	}
	return json.RawMessage("[" + strings.Join(answers, ",") + "]")
}

func (b *beans) set(name string, value any) map[string]any {
	if b.refusing[name] {
		return map[string]any{"status": 400, "error_type": "java.lang.IllegalArgumentException", "error": "no"}
	}
	b.writes = append(b.writes, fmt.Sprintf("%s=%v", name, value))
	if !b.stuck[name] {
		b.values[name] = value
	}
	return map[string]any{"status": 200, "value": nil}
}

func (b *beans) node(t testing.TB) *jolokia.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(b.answer(t, body)) // the client says if it did not come
	}))
	t.Cleanup(server.Close)
	client, err := jolokia.New(jolokia.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestApplySettings(t *testing.T) {
	b := &beans{values: map[string]any{
		"MaxHintWindow": 10800000, "CompactionThroughtputBytesPerSec": 64 << 20, "HintedHandoffEnabled": true,
		"PhiConvictThreshold":    8.0,
		"KeyspacesWarnThreshold": 10, "KeyspacesFailThreshold": -1, "PartitionSizeWarnThreshold": nil,
		"PartitionSizeFailThreshold":     "1GiB",
		"ReadConsistencyLevelsWarnedCSV": "ALL,ONE", "StreamThroughputMebibytesPerSecAsDouble": 0.5,
		"ColumnIndexSizeInKiB": -1,
	}}
	node, ctx := b.node(t), context.Background()
	same := map[string]any{
		"max_hint_window": "3h", "compaction_throughput": "65536KiB/s", "hinted_handoff_enabled": "true",
		"phi_convict_threshold":    8,
		"keyspaces_warn_threshold": json.Number("10"), "keyspaces_fail_threshold": -1,
		"partition_size_warn_threshold": nil,
		"partition_size_fail_threshold": "1024MiB", "read_consistency_levels_warned": []any{"one", "ALL"},
	}
	if changed, err := Apply(ctx, node, "5.0.6", same); err != nil || len(changed) != 0 || len(b.writes) != 0 {
		t.Fatalf("nothing differs: changed %v, wrote %v, error %v", changed, b.writes, err)
	}
	changed, err := Apply(ctx, node, "5.0.6", map[string]any{
		"max_hint_window": "10800001ms", "hinted_handoff_enabled": true, "keyspaces_fail_threshold": 20,
		"partition_size_fail_threshold":  nil,
		"read_consistency_levels_warned": []any{"ANY"}, "hinted_handoff_throttle": "2MiB",
	})
	if want := []string{"hinted_handoff_throttle", "keyspaces_fail_threshold", "max_hint_window",
		"partition_size_fail_threshold", "read_consistency_levels_warned"}; err != nil ||
		!reflect.DeepEqual(changed, want) {
		t.Errorf("changed %v, error %v; want %v", changed, err, want)
	}
	if want := []string{
		"HintedHandoffThrottleInKB=2048", "KeyspacesWarnThreshold=10", "KeyspacesFailThreshold=20",
		"MaxHintWindow=1.0800001e+07",
		"PartitionSizeWarnThreshold=<nil>", "PartitionSizeFailThreshold=<nil>", "ReadConsistencyLevelsWarnedCSV=any",
	}; !reflect.DeepEqual(b.writes, want) {
		t.Errorf("wrote %v\nwant  %v", b.writes, want)
	}
	values, err := Read(ctx, node, "5.0.6",
		[]string{"stream_throughput_outbound", "column_index_size", "hinted_handoff_throttle",
			"partition_size_fail_threshold"})
	if want := map[string]string{"stream_throughput_outbound": "524288", "column_index_size": "null",
		"keyspaces_fail_threshold": ""}; err != nil ||
		values["stream_throughput_outbound"] != want["stream_throughput_outbound"] ||
		values["column_index_size"] != want["column_index_size"] || values["partition_size_fail_threshold"] != "null" {
		t.Errorf("settings %v, error %v", values, err)
	}
	if _, known := values["hinted_handoff_throttle"]; known {
		t.Errorf("a setting that no bean shows has a value: %v", values)
	}
}

func TestBothHalvesOfAPairChangeTogether(t *testing.T) {
	b := &beans{values: map[string]any{"TablesWarnThreshold": 10, "TablesFailThreshold": 20}}
	changed, err := Apply(context.Background(), b.node(t), "4.1.10",
		map[string]any{"tables_warn_threshold": 30, "tables_fail_threshold": 40})
	if err != nil || len(changed) != 2 {
		t.Errorf("changed %v, error %v", changed, err)
	}
	// Neither half is ever set to a warning above the failure.
	if !slices.Equal(b.writes[:2], []string{"TablesWarnThreshold=30", "TablesFailThreshold=40"}) {
		t.Errorf("wrote %v", b.writes)
	}
}

func TestWhatIsNotHotChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		release string
		values  map[string]any
		hot     error
	}{
		"a setting that needs a restart": {"5.0.6", map[string]any{"concurrent_reads": 32}, ErrNotHot},
		"a setting of a later release":   {"4.1.10", map[string]any{"drop_keyspace_enabled": true}, ErrNotHot},
		"more exact than the attribute":  {"5.0.6", map[string]any{"compaction_throughput": "100KiB/s"}, ErrNotHot},
		"the default of Cassandra":       {"5.0.6", map[string]any{"column_index_size": nil}, ErrNotHot},
		"one of two": {"5.0.6", map[string]any{"max_hint_window": "1h", "concurrent_reads": 32},
			ErrNotHot},
		"a number instead of a duration":   {"5.0.6", map[string]any{"max_hint_window": 1000}, nil},
		"a unit that Cassandra has not":    {"5.0.6", map[string]any{"max_hint_window": "1w"}, nil},
		"text instead of a truth":          {"5.0.6", map[string]any{"hinted_handoff_enabled": "yes"}, nil},
		"a list instead of a single value": {"5.0.6", map[string]any{"max_hint_window": []any{"1h"}}, nil},
		"a number in a list":               {"5.0.6", map[string]any{"table_properties_warned": []any{1}}, nil},
		"too large": {"5.0.6", map[string]any{"max_hints_size_per_host": "9999999999999GiB"},
			nil},
		"no number":     {"5.0.6", map[string]any{"phi_convict_threshold": "NaN"}, nil},
		"half a number": {"5.0.6", map[string]any{"tombstone_warn_threshold": 1.5}, nil},
	} {
		node := (&beans{}).node(t)
		changed, err := Apply(context.Background(), node, c.release, c.values)
		if err == nil || changed != nil || errors.Is(err, ErrNotHot) != (c.hot != nil) {
			t.Errorf("%s: changed %v, error %v; want ErrNotHot: %v", name, changed, err, c.hot != nil)
		}
	}
}

func TestSettingsThatDoNotTakeEffectAreErrors(t *testing.T) {
	stuck := &beans{values: map[string]any{"RpcTimeout": 10000}, stuck: map[string]bool{"RpcTimeout": true}}
	if changed, err := Apply(context.Background(), stuck.node(t), "5.0.6",
		map[string]any{"request_timeout": "5s"}); !errors.Is(err, ErrNotHot) ||
		!strings.Contains(err.Error(), "request_timeout") {
		t.Errorf("accepted without effect: changed %v, error %v", changed, err)
	}
	refusing := &beans{values: map[string]any{"RpcTimeout": 10000}, refusing: map[string]bool{"RpcTimeout": true}}
	if changed, err := Apply(context.Background(), refusing.node(t), "5.0.6",
		map[string]any{"request_timeout": "5s"}); !errors.Is(err, jolokia.ErrException) ||
		!strings.Contains(err.Error(), "request_timeout") {
		t.Errorf("refused: changed %v, error %v", changed, err)
	}
}

func TestTheTableIsOfOnePiece(t *testing.T) {
	keys := map[string]bool{}
	for _, s := range All() {
		if keys[s.Key] {
			t.Errorf("setting %s comes twice", s.Key)
		}
		keys[s.Key] = true
		if s.Bean == "" || s.Unit < 1 || s.ReadUnit < 1 || s.Write == "" || s.Since != since41 && s.Since != since50 {
			t.Errorf("setting %s is incomplete: %+v", s.Key, s)
		}
		if s.Operation != "" && s.PairKeys[0] != s.Key && s.PairKeys[1] != s.Key {
			t.Errorf("setting %s is not of its own pair %v", s.Key, s.PairKeys)
		}
	}
}

// TestCanonicalValuesSurvive shows that a value written to the file, read from it, sent to the bean
// and read back is the same.
func TestCanonicalValuesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(All()).Draw(t, "setting")
		var value any
		switch s.Form {
		case FormBoolean:
			value = rapid.Bool().Draw(t, "value")
		case FormNumber:
			value = rapid.Float64Range(0, 100).Draw(t, "value")
		case FormList:
			value = rapid.SliceOf(rapid.StringMatching(`[A-Za-z_]{1,8}`)).Draw(t, "value")
		case FormText:
			value = rapid.StringMatching(`[a-z0-9]{1,8}`).Filter(func(s string) bool { return s != off }).Draw(t,
				"value")
		default:
			number := rapid.Int64Range(0, 1<<20).Draw(t, "value") * s.Unit
			value = s.InYAML(fmt.Sprint(number))
		}
		canonical, err := s.Canonical(value)
		if err != nil {
			t.Fatalf("%v: %v", value, err)
		}
		if again, err := s.Canonical(s.InYAML(canonical)); err != nil || again != canonical {
			t.Fatalf("%v is %s, and from the file %s, error %v", value, canonical, again, err)
		}
		sent, err := s.Form.toBean(canonical, s.Unit)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := s.Form.fromBean(raw, s.Unit); err != nil || back != canonical {
			t.Fatalf("%v is %s, sent as %s, read as %s, error %v", value, canonical, raw, back, err)
		}
	})
}

// FuzzCanonical shows that whatever text a user writes is refused, or has one canonical value that
// stays.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"10s", "64MiB/s", "null", "", "-1", "1e3", "true", "ALL,one", "9223372036854775807B",
		"0x10", " 5 KiB "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range []Form{FormInteger, FormNumber, FormBoolean, FormText, FormDuration, FormSize, FormRate,
			FormList, FormSizeText} {
			s := Setting{Form: form}
			canonical, err := s.Canonical(text)
			if err != nil {
				continue
			}
			if again, err := s.Canonical(s.InYAML(canonical)); err != nil || again != canonical {
				t.Fatalf("%s %q is %q, and then %q, error %v", form, text, canonical, again, err)
			}
		}
	})
}
