package settings

import (
	"encoding/json"
	"fmt"
	"math"
)

// bounds of a number; both ends are allowed.
type bounds struct{ least, most float64 }

var unlimited = math.Inf(1)

// ranges are the limits that Cassandra itself puts on numbers when it starts
// (config/DatabaseDescriptor.java, applySimpleConfig and below, the same in 4.1 and 5.0). A value
// outside of them is a JVM that does not start.
var ranges = map[string]bounds{
	"phi_convict_threshold":                 {5, 16},
	"concurrent_reads":                      {2, unlimited},
	"concurrent_writes":                     {2, unlimited},
	"concurrent_counter_writes":             {2, unlimited},
	"memtable_flush_writers":                {0, unlimited}, // 0 means that Cassandra chooses
	"memtable_cleanup_threshold":            {0.01, 0.99},
	"concurrent_compactors":                 {1, unlimited},
	"concurrent_materialized_view_builders": {1, unlimited},
	"snapshot_links_per_second":             {0, unlimited},
	"default_keyspace_rf":                   {1, unlimited},
}

func (s *Setting) checkRange(value any) []Problem {
	limits, limited := ranges[s.Present()]
	number, ok := value.(json.Number)
	if !limited || !ok {
		return nil
	}
	n, err := number.Float64()
	if err != nil || (n >= limits.least && n <= limits.most) {
		return nil
	}
	if limits.most == unlimited {
		return wrong("", value, fmt.Sprintf("%v or more", limits.least))
	}
	return wrong("", value, fmt.Sprintf("a number from %v to %v", limits.least, limits.most))
}
