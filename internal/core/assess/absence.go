package assess

import (
	"fmt"
	"time"

	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
)

// Absence says from when on nodes of a datacenter that do not run since a time, while others do,
// are not as before when they are back, and why. Without a time it says after how long.
func Absence(s *facts.Snapshot, datacenter string, since time.Time) string {
	window, kept := time.Duration(-1), time.Duration(0)
	for _, n := range s.Records() {
		if agent := n.CurrentAgent(); agent != nil && agent.GCGrace > 0 && (kept == 0 || agent.GCGrace < kept) {
			kept = agent.GCGrace
		}
		if n.Record.Spec.Datacenter != datacenter {
			continue
		}
		if w := config.HintWindow(&n.Record.Spec.Configuration); window < 0 || w < window {
			window = w
		}
	}
	at := func(d time.Duration) string {
		if since.IsZero() {
			return d.String()
		}
		return since.Add(d).UTC().Format(time.RFC3339)
	}
	said := fmt.Sprintf("back after %s its nodes have to be repaired, since the others keep what they miss for %s",
		at(max(window, 0)), max(window, 0))
	if kept == 0 {
		return said + "; for how long deletions are kept is not known, and back after that each starts only by a " +
			"person's word"
	}
	return said + fmt.Sprintf("; back after %s each starts only by a person's word (kubectl helenus start-anyway), or "+
		"as a node of a new datacenter, since the others keep deletions for %s", at(kept), kept)
}
