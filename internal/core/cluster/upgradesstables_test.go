package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// SSTables are upgraded when a roll-out has changed the format of new ones, one rack after the
// other, and only then.
func TestWhenSSTablesAreUpgraded(t *testing.T) {
	upgrading := setting("storage_compatibility_mode", `"UPGRADING"`)
	lose := func(w *world) { w.snapshot.Ledger = nil }
	for name, c := range map[string]struct {
		change func(*v1alpha1.CassandraClusterSpec)
		// at some point while the roll-out is open, and when it is closed
		within, after func(*world)
		// fails is a node on which it always does
		fails       string
		want        []string
		recommended bool
		due         []string
	}{
		"another release": {change: func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" }},
		"the formats of 5.0": {change: upgrading, want: []string{"orders-dc1-r1-0 orders-dc1-r1-1",
			"orders-dc1-r2-0"}},
		"the ledger is lost halfway": {change: upgrading, within: lose,
			want: []string{"orders-dc1-r1-0 orders-dc1-r1-1", "orders-dc1-r2-0"}},
		"the ledger is lost afterwards": {change: upgrading, after: lose,
			want: []string{"orders-dc1-r1-0 orders-dc1-r1-1", "orders-dc1-r2-0"}},
		"the ledger is lost with another release": {after: lose,
			change: func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" }},
		"taken back halfway": {change: upgrading, within: func(w *world) { w.change(setting("concurrent_reads", "16")) },
			want: []string{"orders-dc1-r1-0 orders-dc1-r1-1", "orders-dc1-r2-0"}},
		"it is recommended": {change: func(s *v1alpha1.CassandraClusterSpec) {
			upgrading(s)
			s.Automation.UpgradeSSTables = v1alpha1.AutomationRecommend
		}, recommended: true, due: []string{firstOfRack, secondOfRack, ofNextRack}},
		"it fails on a node": {change: upgrading, fails: secondOfRack, due: []string{secondOfRack},
			want: []string{"orders-dc1-r1-0 orders-dc1-r1-1", "orders-dc1-r2-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, datacenter("dc1", 2, 1))
			w.settle()
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
			asked := map[string]int{}
			w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
				s := v1alpha1.OperationStatus{ID: o.ID, Phase: v1alpha1.OperationSucceeded}
				if o.Type == v1alpha1.OperationUpgradeSSTables {
					asked[n.Name]++
					if n.Name == c.fails {
						s.Phase, s.Message = v1alpha1.OperationFailed, "the disk is small"
					}
				}
				return []v1alpha1.OperationStatus{s}
			}
			w.change(c.change)
			if c.within != nil {
				w.settle() // until the first node has served
				c.within(w)
			}
			w.rolledOut()
			if c.after != nil {
				c.after(w)
			}
			var got []string
			steps := map[string]bool{}
			recommended := false
			for range 300 {
				made := w.pass()
				w.now = w.now.Add(10 * time.Second)
				for _, r := range made.Recommended {
					recommended = recommended || r.Operation == "UpgradeSSTables" && len(r.Nodes) == 3
				}
				l := w.snapshot.Ledger
				if l == nil {
					continue
				}
				for _, s := range l.Maintenance {
					if s.Kind == ledger.UpgradeSSTables && !steps[s.ID] {
						steps[s.ID] = true
						got = append(got, strings.Join(s.Nodes, " "))
					}
				}
			}
			if !slices.Equal(got, c.want) || recommended != c.recommended {
				t.Errorf("upgraded %q, recommended: %v; want %q", got, recommended, c.want)
			}
			if len(c.want) > 0 != (len(asked) == 3) {
				t.Errorf("asked %v", asked)
			}
			l := w.snapshot.Ledger
			if !slices.Equal(l.UpgradeSSTables, c.due) || len(l.Maintenance) > 0 ||
				l.IsPostponed(ledger.UpgradeSSTables, secondOfRack, w.now) != (c.fails != "") {
				t.Errorf("left: %s", ledgerInWords(l))
			}
		})
	}
}
