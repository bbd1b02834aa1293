package upkeep

import (
	"encoding/json"
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

const compatibilityMode = "storage_compatibility_mode"

// compatibilityModes in which a ring comes from the formats of 4.1 to those of 5.0, one after the
// other. The first is that of the image's own file.
var compatibilityModes = []string{"CASSANDRA_4", "UPGRADING", "NONE"}

func modeOf(s v1alpha1.Settings) int {
	var name string
	if err := json.Unmarshal(s[compatibilityMode].Raw, &name); err != nil {
		return 0 // not set: what it may be is checked elsewhere
	}
	return max(slices.Index(compatibilityModes, name), 0)
}

// checkCompatibility refuses a mode that does not follow the one which every member has. Once all
// have one, what they write needs it; until then it can be taken back.
func (k *Keeper) checkCompatibility() error {
	lowest, sameLine := len(compatibilityModes), true
	for _, name := range k.Members() {
		if n := k.Live(name); n != nil {
			c := n.Record.Spec.Configuration
			lowest = min(lowest, modeOf(c.CassandraYaml))
			sameLine = sameLine && settings.LineOf(c.Version) == settings.LineOf(k.Cluster.Spec.Version)
		}
	}
	for _, w := range k.Wanted {
		mode := modeOf(w.Configuration.CassandraYaml)
		if lowest == len(compatibilityModes) || mode == lowest || mode == lowest+1 && sameLine {
			continue
		}
		have, want := compatibilityModes[lowest], compatibilityModes[mode]
		why := "a mode that all members have is not left"
		if mode > lowest {
			why = fmt.Sprintf("the modes are %s, each when every member has the release and the mode before",
				compatibilityModes)
		}
		return fmt.Errorf("node.cassandraYaml.%s: %s → %s (rack %s/%s): %s; take the change back", compatibilityMode,
			have, want, w.Datacenter, w.Rack, why)
	}
	return nil
}
