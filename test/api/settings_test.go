package api

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/test/stock"
)

// settingsRefused is what the policy says about a cassandraYaml at a place, or empty.
func settingsRefused(t *testing.T, at string, settings map[string]any) string {
	t.Helper()
	object := base("CassandraCluster")
	must(t, put(object.Object, at+".cassandraYaml", settings))
	_, err := dynamicClient(t, server).Resource(clusters).Namespace("default").Create(t.Context(), object,
		metav1.CreateOptions{DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		return ""
	}
	said := denied.FindStringSubmatch(err.Error())
	if said == nil || said[1] != bySettings {
		t.Fatalf("refused by something else than %s: %v", bySettings, err)
	}
	return said[2]
}

func refusalOf(keys ...string) string {
	return "node.cassandraYaml: Helenus sets " + strings.Join(keys, ", ") +
		" by itself: leave out all of these; what to set instead is in the API reference, under What Helenus sets by " +
		"itself"
}

// TestOwnedSettings: each key that Helenus owns is refused at each level, whatever its value is,
// and others are free.
func TestOwnedSettings(t *testing.T) {
	all := map[string]any{}
	var keys []string
	for i, setting := range v1alpha1.OwnedSettings {
		all[setting.Key] = []any{"x", int64(1), true, []any{"x"}, map[string]any{"x": "y"}}[i%5]
		keys = append(keys, setting.Key)
		want := refusalOf(setting.Key)
		if got := settingsRefused(t, "spec.node", map[string]any{setting.Key: "x"}); got != want {
			t.Errorf("%s:\n  %s\nwant\n  %s", setting.Key, got, want)
		}
	}
	free := map[string]any{
		"concurrent_reads": int64(32), "enable_something_of_tomorrow": true,
		"memtable": map[string]any{"configurations": map[string]any{}},
	}
	for _, at := range []string{"spec.node", "spec.datacenters[0].node", "spec.datacenters[1].racks[0].node"} {
		if got, want := settingsRefused(t, at, all), refusalOf(keys...); got != want {
			t.Errorf("%s:\n  %s\nwant\n  %s", at, got, want)
		}
		if got := settingsRefused(t, at, free); got != "" {
			t.Errorf("%s: %s", at, got)
		}
	}
}

// TestStockConfiguration: the whole cassandra.yaml of an image, pasted as configuration, is refused
// in one message that names what has to be left out; without that it is taken.
func TestStockConfiguration(t *testing.T) {
	for _, line := range []string{"4.1", "5.0"} {
		files, err := stock.Files(line)
		must(t, err)
		settings := map[string]any{}
		must(t, yaml.Unmarshal(files["cassandra.yaml"], &settings))
		var owned []string
		for _, setting := range v1alpha1.OwnedSettings {
			if _, has := settings[setting.Key]; has {
				owned = append(owned, setting.Key)
			}
		}
		if !slices.Contains(owned, "seed_provider") || !slices.Contains(owned, "partitioner") {
			t.Fatalf("%s: the stock file has %q of what is owned", line, owned)
		}
		if got, want := settingsRefused(t, "spec.node", settings), refusalOf(owned...); got != want {
			t.Errorf("%s:\n  %s\nwant\n  %s", line, got, want)
		}
		for _, key := range owned {
			delete(settings, key)
		}
		if got := settingsRefused(t, "spec.node", settings); got != "" {
			t.Errorf("%s without what is owned: %s", line, got)
		}
	}
}
