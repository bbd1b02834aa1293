package safeguard

import (
	"errors"
	"testing"
	"time"

	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// standby starts an operator that watches and becomes the leader later.
func standby() trial.Act {
	return trial.Act{Name: "a standby starts", Do: func(w *world.World) error { w.StartStandby(world.Install); return nil },
		Until: func(w *world.World) bool {
			all := w.Operators()
			return len(all) == 2 && all[1].Started()
		}, Within: time.Minute}
}

func freeze(until func(*world.World) bool, within time.Duration, kinds ...string) trial.Act {
	return trial.Act{Name: "the view of the standby stands still", Do: func(w *world.World) error {
		w.Line.RunFor(100 * time.Millisecond) // it has seen everything up to here
		w.Operators()[1].Freeze(kinds...)
		return nil
	}, Until: until, Within: within}
}

// failover makes the standby the leader; its view goes on a minute later.
func failover() []trial.Act {
	return []trial.Act{
		{Name: "the standby leads", Do: func(w *world.World) error {
			if len(w.Operators()) != 2 {
				return errors.New("there is no standby")
			}
			w.Operators()[0].Kill()
			w.Operators()[0].Lead()
			w.Line.RunFor(time.Minute)
			return nil
		}},
		{Name: "its view goes on", Do: func(w *world.World) error { w.Operators()[0].Thaw(); return nil }, Until: trial.Serves, Within: 10 * time.Minute},
	}
}

// claimsLeft says that the cluster is being deleted and only claims are left of its nodes.
func claimsLeft(w *world.World) bool {
	c := trial.Cluster(w)
	return c != nil && c.DeletionTimestamp != nil && len(w.Server.Objects("Pod")) == 0 && len(w.Server.Objects("PersistentVolumeClaim")) > 0
}

// recreated is the story of most published losses of data: the leader fails over to one whose view still shows the deletion of an earlier cluster of the name.
// Kinds are those of which it stands still; all if none is named.
func recreated(t *testing.T, kinds ...string) *trial.Scenario {
	t.Helper()
	s, err := trial.Find("recreate")
	if err != nil {
		t.Fatal(err)
	}
	s = s.With("recreate-stale-standby", "delete", standby())
	for i := range s.Acts {
		if s.Acts[i].Name == "delete" {
			s.Acts[i].Until = claimsLeft
		}
	}
	gone := func(w *world.World) bool { return trial.Cluster(w) == nil }
	s = s.With(s.Name, "create again", freeze(gone, 20*time.Minute, kinds...))
	return s.With(s.Name, "", failover()...)
}

func TestDeletesByUID(t *testing.T) {
	s := recreated(t)
	refused := map[string]int{}
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(nothing, refused)})
	if refused["delete"] == 0 {
		t.Errorf("no delete was refused: %v", refused)
	}
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(everything, map[string]int{})}, "I3")
}
