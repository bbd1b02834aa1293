package cluster

import (
	"fmt"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
)

// The formats of 5.0 come one mode at a time, and are not left once all members have them.
func TestStorageCompatibilityMode(t *testing.T) {
	mode := func(name string) v1alpha1.Settings {
		if name == "" {
			return nil
		}
		return v1alpha1.Settings{"storage_compatibility_mode": {Raw: []byte(`"` + name + `"`)}}
	}
	const before, left = "the modes are [CASSANDRA_4 UPGRADING NONE]", "a mode that all members have is not left"
	for _, c := range []struct{ version, have, first, want, refused string }{
		{"5.0.6", "", "", "UPGRADING", ""},
		{"5.0.6", "UPGRADING", "UPGRADING", "NONE", ""},
		{"5.0.6", "CASSANDRA_4", "CASSANDRA_4", "", ""},
		{"5.0.6", "", "", "NONE", before},
		{"4.1.10", "", "", "UPGRADING", before},
		{"5.0.6", "UPGRADING", "UPGRADING", "", left},
		{"5.0.6", "NONE", "NONE", "UPGRADING", left},
		// the first node has the next one already
		{"5.0.6", "", "UPGRADING", "", ""},
		{"5.0.6", "", "UPGRADING", "NONE", before},
		{"5.0.6", "UPGRADING", "NONE", "UPGRADING", ""},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			w := formed(t)
			for i, name := range three {
				configuration := &w.snapshot.Nodes[name].Record.Spec.Configuration
				configuration.Version, configuration.CassandraYaml = c.version, mode(c.have)
				if i == 0 {
					configuration.CassandraYaml = mode(c.first)
				}
			}
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Node.CassandraYaml = mode(c.want) })
			made := w.pass()
			if c.refused != "" {
				wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, c.refused)
			} else if made.Stalled != nil {
				t.Errorf("refused: %s", made.Stalled.Message)
			}
		})
	}
}
