package upkeep

import (
	"fmt"

	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/config/settings"
)

// checkCompatibility refuses a mode that does not follow the one which every member has. Once all
// have one, what they write needs it; until then it can be taken back.
func (k *Keeper) checkCompatibility() error {
	lowest, sameLine, line := len(config.CompatibilityModes), true, settings.LineOf(k.Cluster.Spec.Version)
	for _, name := range k.Members() {
		if n := k.Live(name); n != nil {
			c := &n.Record.Spec.Configuration
			lowest = min(lowest, config.CompatibilityMode(c.CassandraYaml))
			sameLine = sameLine && settings.LineOf(c.Version) == line
		}
	}
	for i := range k.Wanted {
		w := &k.Wanted[i]
		mode := config.CompatibilityMode(w.Configuration.CassandraYaml)
		if lowest == len(config.CompatibilityModes) || mode == lowest || mode == lowest+1 && sameLine {
			continue
		}
		have, want := config.CompatibilityModes[lowest], config.CompatibilityModes[mode]
		why := "a mode that all members have is not left"
		if mode > lowest {
			why = fmt.Sprintf("the modes are %s, each when every member has the release and the mode before",
				config.CompatibilityModes)
		}
		return fmt.Errorf("node.cassandraYaml.%s: %s → %s (rack %s/%s): %s; take the change back",
			config.CompatibilityModeSetting, have, want, w.Datacenter, w.Rack, why)
	}
	return nil
}
