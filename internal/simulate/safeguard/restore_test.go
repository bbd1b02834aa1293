package safeguard

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"testing"

	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// otherTokens has the description of a backup say of the nodes of each rack that they had each
// other's tokens, so that the operator gives them those.
func otherTokens(s *trial.Scenario) *trial.Scenario {
	at := slices.IndexFunc(s.Acts, func(a trial.Act) bool { return a.Name == "back up" })
	s.Acts = slices.Insert(s.Acts, at+1, trial.Act{Name: "mix up", Do: func(w *world.World) error {
		var failed error
		w.Pods.Bucket.Change("/backups/", func(content []byte) []byte {
			b, err := format.Decode[format.Backup](content)
			if err == nil {
				for i := 0; i < len(b.Nodes); i += 2 { // two in each rack, by name
					b.Nodes[i].Tokens, b.Nodes[i+1].Tokens = b.Nodes[i+1].Tokens, b.Nodes[i].Tokens
				}
				content, err = json.Marshal(b)
			}
			failed = err
			return content
		})
		return failed
	}})
	return s
}

// early says of each file of the client's keyspace that it is there before it is.
type early struct{ execute.Disk }

func (d early) PlaceFile(keyspace, table, name string, size int64, sum string, content io.Reader) error {
	if keyspace == world.Keyspace {
		return nil
	}
	return d.Disk.PlaceFile(keyspace, table, name, size, sum, content)
}

// Rows lie where their tokens are, and are there before clients come.
func TestWhatARestoreRestsOn(t *testing.T) {
	s := found(t, "form-restored")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	const missed = "a write that was acknowledged is lost"
	caught(t, trial.Trial{Scenario: s, Seed: 1,
		Wrap: host(func(_ *pod.Sandbox, h *execute.Host) { h.Disk = early{h.Disk} })}, missed)
	caught(t, trial.Trial{Scenario: otherTokens(s), Seed: 1}, missed)
}

// A ring that has not the rows that it is asked for serves nobody.
func TestARestoredRingIsChecked(t *testing.T) {
	s := found(t, "form-restored-roles")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	caught(t, trial.Trial{Scenario: s, Seed: 1,
		Wrap: host(func(_ *pod.Sandbox, h *execute.Host) { h.Disk = early{h.Disk} })},
		"is not as bootstrap.restore.checks wants it")
}

// unloaded says of the rows in each directory that they are with their owners before they are.
type unloaded struct{ execute.JVM }

func (unloaded) BulkLoad(context.Context, string) error { return nil }

// Rows are with their new owners before clients come, whatever ends meanwhile.
func TestWhatARestoreInAnotherShapeRestsOn(t *testing.T) {
	s := found(t, "form-restored-smaller")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	caught(t, trial.Trial{Scenario: s, Seed: 1,
		Wrap: host(func(_ *pod.Sandbox, h *execute.Host) { h.JVM = unloaded{h.JVM} })},
		"a write that was acknowledged is lost")
}

// unremoved says of the rows of each table that they are removed, and they are not.
type unremoved struct{ execute.JVM }

func (unremoved) Truncate(context.Context, string, string) error { return nil }

// A table has the rows of a backup and, where these replace others, no others from before.
func TestWhatARestoreOfTablesRestsOn(t *testing.T) {
	for name, c := range map[string]struct {
		broken func(execute.JVM) execute.JVM
		by     string
	}{
		"tables-merged":   {func(j execute.JVM) execute.JVM { return unloaded{j} }, "a write that was acknowledged is lost"},
		"tables-replaced": {func(j execute.JVM) execute.JVM { return unremoved{j} }, "has rows that were to go"},
	} {
		s := found(t, name)
		holds(t, trial.Trial{Scenario: s, Seed: 1})
		caught(t, trial.Trial{Scenario: s, Seed: 1,
			Wrap: host(func(_ *pod.Sandbox, h *execute.Host) { h.JVM = c.broken(h.JVM) })}, c.by)
	}
}
