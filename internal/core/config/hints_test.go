package config

import (
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

func TestHintWindow(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{}`:                                              3 * time.Hour,
		`{"max_hint_window":"30m"}`:                       30 * time.Minute,
		`{"max_hint_window_in_ms":60000}`:                 time.Minute,
		`{"max_hint_window":null}`:                        3 * time.Hour,
		`{"max_hint_window":"half a day"}`:                0,
		`{"hinted_handoff_enabled":true}`:                 3 * time.Hour,
		`{"hinted_handoff_enabled":false}`:                0,
		`{"hinted_handoff_disabled_datacenters":[]}`:      3 * time.Hour,
		`{"hinted_handoff_disabled_datacenters":["dc2"]}`: 0,
	} {
		for _, version := range []string{"4.1.10", "5.0.6"} {
			c := &v1alpha1.NodeConfiguration{Version: version, CassandraYaml: settingsOf(text)}
			if got := HintWindow(c); got != want {
				t.Errorf("%s with %s: %s, want %s", version, text, got, want)
			}
		}
	}
}

func TestSyncPeriod(t *testing.T) {
	for version, of := range map[string]map[string]time.Duration{
		"4.1.10": {`{"commitlog_sync_period":"1m"}`: time.Minute, `{"commitlog_sync_period_in_ms":20000}`: 20 * time.Second},
		"5.0.9":  {`{"commitlog_sync_period":"10s"}`: 10 * time.Second, `{"commitlog_sync":"batch"}`: 0, `{}`: 0},
	} {
		for text, want := range of {
			c := &v1alpha1.NodeConfiguration{Version: version, CassandraYaml: settingsOf(text)}
			if got := SyncPeriod(c); got != want {
				t.Errorf("%s with %s: %s, want %s", version, text, got, want)
			}
		}
	}
}
