package guard

import (
	"fmt"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// While two releases are in the ring, or one is on its way there, only a roll-out may begin.
func TestReleases(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Snapshot)
		want   string
	}{
		"one": {func(*facts.Snapshot) {}, ""},
		// no roll-out would end this: every record is what the spec describes
		"the patch release of the image of a user": {func(s *facts.Snapshot) {
			s.Nodes["b"].Agent.Ring.ReleaseVersion = "5.0.9"
		}, ""},
		"another line that runs": {func(s *facts.Snapshot) { s.Nodes["b"].Agent.Ring.ReleaseVersion = "4.1.10" },
			"[] the members have different releases of Cassandra: 5.0 (node a), 4.1 (node b)"},
		"a record": {func(s *facts.Snapshot) { s.Nodes["c"].Record.Spec.Configuration.Version = "4.1.10" },
			"[c] Cassandra 5.0.6 has not reached c yet"},
		"the spec": {func(s *facts.Snapshot) { s.Cluster.Spec.Version = "5.0.9" },
			"[a b c] Cassandra 5.0.9 has not reached a, b, c yet"},
		"a record of a member without one": {func(s *facts.Snapshot) { s.Nodes["c"].Record = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			names := []string{"a", "b", "c"}
			s := ringOf(names...)
			s.Cluster = &v1alpha1.CassandraCluster{Spec: v1alpha1.CassandraClusterSpec{Version: "5.0.6"}}
			for _, n := range s.Nodes {
				n.Record = &v1alpha1.CassandraNode{}
				n.Record.Spec.Configuration.Version = "5.0.6"
			}
			c.change(s)
			var got string
			for _, r := range Check(Nodes{s, names}, releases...) {
				got += fmt.Sprintf("%v %s", r.Nodes, r.Message)
			}
			if got != c.want {
				t.Errorf("they say %q, want %q", got, c.want)
			}
		})
	}
}
