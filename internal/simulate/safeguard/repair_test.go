package safeguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
)

// unknowing JVMs know nothing of the first repair of each range: it is lost with what would tell of
// it. One whose agent is trusting takes a repair of which nothing is known for one that has ended
// well.
type unknowing struct {
	execute.JVM
	began    map[string]bool
	trusting bool
}

func (f unknowing) StartRepair(ctx context.Context, keyspace string, o cassandra.RepairOptions) (int, error) {
	const unknown = 1 << 20
	if of := fmt.Sprint(keyspace, o.Tables, o.Ranges); !f.began[of] {
		f.began[of] = true
		return unknown, nil
	}
	return f.JVM.StartRepair(ctx, keyspace, o)
}

func (f unknowing) RepairStatus(ctx context.Context, command int) (cassandra.RepairStatus, error) {
	status, err := f.JVM.RepairStatus(ctx, command)
	if f.trusting && status.State == cassandra.RepairUnknown {
		status.State = cassandra.RepairCompleted
	}
	return status, err
}

// A range is repaired when Cassandra says so, and not when nothing is known of its repair any more.
func TestARepairOfWhichNothingIsKnown(t *testing.T) {
	s := found(t, "repair-deadlines")
	s.Acts = s.Acts[:len(s.Acts)-1]
	s.Acts[len(s.Acts)-1].Within = 3 * time.Hour // before all of it is due again
	wrap := func(trusting bool) trial.Trial {
		began := map[string]bool{}
		return trial.Trial{Scenario: s, Seed: 1, Wrap: host(func(_ *pod.Sandbox, h *execute.Host) {
			h.JVM = unknowing{h.JVM, began, trusting}
		})}
	}
	holds(t, wrap(false))
	caught(t, wrap(true), "lose the rows of a replica is not over after")
}
