package config

import (
	"encoding/json"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
)

// CompatibilityModeSetting is the setting by which a ring comes from the formats of 4.1 to those of
// 5.0.
const CompatibilityModeSetting = "storage_compatibility_mode"

// CompatibilityModes are its values, one after the other. The first is that of the image's own
// file.
//
//nolint:gochecknoglobals // a table
var CompatibilityModes = []string{"CASSANDRA_4", "UPGRADING", "NONE"}

// CompatibilityMode is the place of a node's mode among them.
func CompatibilityMode(s v1alpha1.Settings) int {
	set := s[CompatibilityModeSetting].Raw
	if set == nil {
		return 0
	}
	var name string
	if json.Unmarshal(set, &name) != nil {
		return 0 // what it may be is checked elsewhere
	}
	return max(slices.Index(CompatibilityModes, name), 0)
}

// OldestSSTables is the version of SSTables that 4.1 writes.
const OldestSSTables = "nb"

// SSTables is the version of those that a node writes. Another selected_format has a version of its
// own, and what is there in the other format stays (BigFormat.BigVersion#current_version and
// CompactionManager#performSSTableRewrite, 4.1 and 5.0).
func SSTables(c *v1alpha1.NodeConfiguration) string {
	if CompatibilityMode(c.CassandraYaml) == 0 {
		return OldestSSTables
	}
	return "oa"
}
