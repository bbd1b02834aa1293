package config

import (
	"bytes"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

// HintWindow is for how long a node keeps the writes that another one missed; 0 where it keeps none
// for some of them. A value that cannot be read counts as none: then a repair is due too often, and
// never too rarely.
func HintWindow(c *v1alpha1.NodeConfiguration) time.Duration {
	table, err := settings.For(c.Version)
	if err != nil {
		return 0
	}
	if v, set := c.CassandraYaml["hinted_handoff_enabled"]; set && !v.IsNull() && string(v.Raw) != "true" {
		return 0
	}
	if v, set := c.CassandraYaml["hinted_handoff_disabled_datacenters"]; set && !v.IsNull() &&
		!bytes.Equal(v.Raw, []byte("[]")) {
		return 0
	}
	return duration(c, table, "max_hint_window")
}

// SyncPeriod is how long Cassandra may acknowledge writes that are not in its commit log yet, as
// the user sets it; 0 where the image does.
func SyncPeriod(c *v1alpha1.NodeConfiguration) time.Duration {
	table, err := settings.For(c.Version)
	if err != nil {
		return 0
	}
	return duration(c, table, "commitlog_sync_period")
}

// duration is a setting under any of its names, or its default.
func duration(c *v1alpha1.NodeConfiguration, table *settings.Table, of string) time.Duration {
	setting, raw := table.Lookup(of), []byte(`"`+table.Lookup(of).Default+`"`)
	for _, name := range table.Names(of) {
		if v, set := c.CassandraYaml[name]; set && !v.IsNull() {
			setting, raw = table.Lookup(name), v.Raw
		}
	}
	amount, _ := setting.Quantity(raw)
	return time.Duration(amount)
}
