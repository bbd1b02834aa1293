package safeguard

import (
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
	"helenus.io/helenus/test/memdisk"
)

// lastLost is a volume on which what the journal wrote last is not there when the agent starts
// again: as if it were written after its effect, and the agent had died between the two.
func lastLost(w world.Wrap) world.Wrap {
	w.Host = func(s *pod.Sandbox, h execute.Host) execute.Host {
		volume := s.Content(v1alpha1.VolumeData).Files
		previous := volume.Files()[journal.PreviousPath]
		volume.Put(journal.Path, []byte(previous))
		if previous == "" {
			volume.Put(journal.Path, nil)
		}
		return h
	}
	return w
}

// allLost is a volume on which nothing of the journal is there when the agent starts again.
func allLost(w world.Wrap) world.Wrap {
	w.Host = func(s *pod.Sandbox, h execute.Host) execute.Host {
		volume := s.Content(v1alpha1.VolumeData).Files
		volume.Put(journal.Path, nil)
		volume.Put(journal.PreviousPath, nil)
		return h
	}
	return w
}

// remembering counts the starts of agents at which the journal said that a JVM was started by it
// before.
func remembering(w world.Wrap, starts *int) world.Wrap {
	w.Host = func(_ *pod.Sandbox, h execute.Host) execute.Host {
		h.Journal = reader{h.Journal, starts}
		return h
	}
	return w
}

type reader struct {
	execute.Journal
	starts *int
}

func (r reader) Load() (node.Memory, error) {
	m, err := r.Journal.Load()
	if m.Start != nil {
		*r.starts++
	}
	return m, err
}

// The journal before the effect: an agent that died must find what it had begun, or it refuses its
// own disk, or takes what it did for something that went wrong.
func TestJournalBeforeEffect(t *testing.T) {
	s := found(t, "create-3")
	undisturbed := run(t, trial.Trial{Scenario: s, Seed: 1})
	for _, c := range []struct {
		name string
		lose func(world.Wrap) world.Wrap
		by   []string
	}{
		{"the last write", lastLost, []string{"act create is not over"}},
		{"all", allLost, []string{"act create is not over"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if underRace && c.name == "all" {
				t.Skip("of the two the other is enough")
			}
			starts := 0
			var noticed []string
			for _, m := range undisturbed.Points {
				if m.What != first+"/"+journal.PreviousPath+".new" || m.Does != string(memdisk.OpCreate) {
					continue
				}
				tr := trial.Trial{Scenario: s, Seed: 1, Fault: &trial.Fault{Kind: "agent-killed-after", At: m},
					Wrap: remembering(world.Wrap{}, &starts)}
				if result := tr.Run(kindsOf(t), &undisturbed.End); !result.Fired || len(result.Violations) > 0 {
					t.Errorf("%s with the journal: fault injected %v, %v", tr, result.Fired, result.Violations)
				}
				tr.Wrap = c.lose(world.Wrap{})
				noticed = append(noticed, tr.Run(kindsOf(t), &undisturbed.End).Violations...)
				if saysAll(noticed, c.by...) {
					break
				}
			}
			if starts == 0 {
				t.Error("no agent found in its journal that it had started a JVM")
			}
			if !saysAll(noticed, c.by...) {
				t.Errorf("not all of %q are said without the journal: %q", c.by, noticed)
			}
		})
	}
}

// The journal of the member that a node adopts is its own as long as the record says so. When the
// record was missing as an action ended, the agent forgot all of it, and began an empty one on that
// disk.
func TestJournalOutlivesTheRecord(t *testing.T) {
	tr, err := trial.Parse("adopt/1/records-deleted@operator:update:ConfigMap/orders-ledger:7")
	if err != nil {
		t.Fatal(err)
	}
	if !holds(t, tr).Fired {
		t.Error("the fault was not injected")
	}
}
