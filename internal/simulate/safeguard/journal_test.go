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
)

// lastLost is a volume on which what the journal wrote last is not there when the agent starts again: as if it were written after its effect, and the agent
// had died between the two.
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

// remembering counts the starts of agents at which the journal said that a JVM was started by it before.
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

// The journal before the effect: an agent that died must find what it had begun, or it begins again, or refuses its own disk.
func TestJournalBeforeEffect(t *testing.T) {
	for _, c := range []struct {
		name, trial, by string
		lose            func(world.Wrap) world.Wrap
	}{
		{"the start of a JVM", "create-3/1/agent-killed-after@disk:create:orders-dc1-r1-0/.helenus/journal.previous.json.new:3", "act create is not over", lastLost},
		{"all", "create-3/1/agent-killed-after@disk:create:orders-dc1-r1-0/.helenus/journal.previous.json.new:4", "act create is not over", allLost},
		{"an operation", "create-3/1/agent-killed-after@disk:create:orders-dc1-r1-0/.helenus/journal.previous.json.new:11", "ends differently", lastLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, err := trial.Parse(c.trial)
			if err != nil {
				t.Fatal(err)
			}
			starts := 0
			tr.Wrap = remembering(world.Wrap{}, &starts)
			if result := holds(t, tr); !result.Fired || starts == 0 {
				t.Errorf("no agent found its journal: fault struck %v, %d starts", result.Fired, starts)
			}
			tr.Wrap = c.lose(world.Wrap{})
			caught(t, tr, c.by)
		})
	}
}
