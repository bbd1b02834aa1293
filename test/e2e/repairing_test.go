//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// untilRepaired is more than a hundredth of a day, after which a table is due here, and a wave.
const untilRepaired = 40 * time.Minute

// fillForRepair writes rows that a node misses, into a table that keeps deletions for no longer
// than a day.
func fillForRepair(t *testing.T, ring *scene.Ring, laggard string) error {
	t.Helper()
	return errors.Join(ring.FillWithout(t.Context(), gocql.Quorum, laggard),
		ring.KeepDeletions(t.Context(), 24*time.Hour))
}

// TestRepairedByItself: rows that a node has missed, and that nobody keeps hints of, are there once
// the schedule has repaired their table, and nobody has asked for it.
func TestRepairedByItself(t *testing.T) {
	onlyInFull(t)
	ring := emptyForGrowth(t, "e2e-repair", func(s *v1alpha1.CassandraClusterSpec) {
		s.Repair.Target, s.Repair.Intensity = "1%", "100%"
	})
	laggard := ring.NodeNames(t.Context())[1]
	took(t, "rows are written that a node misses",
		func() error { return fillForRepair(t, ring, laggard) })
	written := time.Now()
	const table = scene.Keyspace + ".rows"
	took(t, "the table is repaired", func() error {
		return ring.Until(t.Context(), untilRepaired, "repair of "+table, func(now follow.Sight) error {
			c, there := now.Cluster(ring.Name)
			if !there || c.Status.Repair == nil {
				return fmt.Errorf("nothing is known of repairs")
			}
			for _, is := range c.Status.Repair.Tables {
				if is.Name == table && is.LastRepaired != nil && is.LastRepaired.After(written) {
					return nil
				}
			}
			return fmt.Errorf("status.repair is %+v", c.Status.Repair)
		})
	})
	took(t, "its rows are read from the node itself", func() error {
		return ring.ReadThrough(t.Context(), laggard, gocql.One)
	})
}
