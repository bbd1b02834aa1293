package cassandra

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"helenus.io/helenus/internal/jolokia"
)

// RepairOptions say what StartRepair repairs and how. The zero value is a full repair of all ranges
// that the node holds, between all replicas, one range at a time on each of them in parallel.
type RepairOptions struct {
	// PrimaryRangesOnly repairs only what the node is first owner of; then every node of the ring
	// must be repaired.
	PrimaryRangesOnly bool
	// Datacenters limits it to replicas there, which must include the node's own; empty: all.
	Datacenters []string
	// Hosts limits it to replicas at these addresses, the node's own among them; empty: all. Of
	// each range that the node has it needs two.
	Hosts []string
	// Incremental compares only what no repair has seen before, and marks it as repaired. All
	// replicas must be up.
	Incremental bool
	// Tables limits it to these; empty: all.
	Tables []string
	// Ranges limits it to these, as "start:end", each of which lies in a range that the node holds.
	// The replicas of one datacenter at a time work on them. Empty: all that the node holds.
	Ranges []string
}

// wire is the form of RepairOption.parse. What Cassandra would choose is said outright where
// releases could differ.
func (o RepairOptions) wire() map[string]string {
	options := map[string]string{
		"parallelism":  "parallel",
		"primaryRange": strconv.FormatBool(o.PrimaryRangesOnly),
		"incremental":  strconv.FormatBool(o.Incremental),
		"jobThreads":   "1",
		"trace":        "false",
		// A keyspace with one replica has nothing to compare, which is no error.
		"ignoreUnreplicatedKeyspaces": "true",
	}
	if len(o.Datacenters) > 0 {
		options["dataCenters"] = strings.Join(o.Datacenters, ",")
	}
	if len(o.Tables) > 0 {
		options["columnFamilies"] = strings.Join(o.Tables, ",")
	}
	if len(o.Ranges) > 0 {
		options["ranges"], options["parallelism"] = strings.Join(o.Ranges, ","), "dc_parallel"
	}
	if len(o.Hosts) > 0 {
		options["hosts"] = strings.Join(o.Hosts, ",")
	}
	return options
}

// StartRepair starts a repair of one keyspace and returns its command number for RepairStatus. Zero
// means that there is nothing to repair: the keyspace has one replica, or the node no range of it.
func (n *Node) StartRepair(ctx context.Context, keyspace string, options RepairOptions) (int, error) {
	var command int
	request := jolokia.Exec(beanStorageService, "repairAsync(java.lang.String,java.util.Map)", keyspace, options.wire())
	if err := n.call(ctx, request, &command); err != nil {
		return 0, fmt.Errorf("start repair of keyspace %s: %w", keyspace, err)
	}
	return command, nil
}

// StopRepairs fails all repairs that this node has started, and all that it takes part in for
// others (ActiveRepairService#terminateSessions, 4.1 and 5.0).
func (n *Node) StopRepairs(ctx context.Context) error {
	if err := n.call(ctx, jolokia.Exec(beanStorageService, "forceTerminateAllRepairSessions()"), nil); err != nil {
		return fmt.Errorf("stop repairs: %w", err)
	}
	return nil
}

// RepairState is where a repair stands.
type RepairState string

// States of a repair. RepairUnknown is a command that this JVM does not know: it was restarted
// since, so the repair is not running.
const (
	RepairInProgress RepairState = "IN_PROGRESS"
	RepairCompleted  RepairState = "COMPLETED"
	RepairFailed     RepairState = "FAILED"
	RepairUnknown    RepairState = "UNKNOWN"
)

// RepairStatus is where a repair stands and what it said last.
type RepairStatus struct {
	State    RepairState
	Messages []string
}

// RepairStatus asks for a repair by its command number. Command numbers count from 1 in each JVM:
// keep the start time of the JVM with them, or an old number may name another repair.
func (n *Node) RepairStatus(ctx context.Context, command int) (RepairStatus, error) {
	var wire []string
	if err := n.call(ctx, jolokia.Exec(beanStorageService, "getParentRepairStatus(int)", command), &wire); err != nil {
		return RepairStatus{}, fmt.Errorf("read status of repair %d: %w", command, err)
	}
	return repairStatus(command, wire)
}

// commandsAtOnce is how many command numbers RunningRepairs asks for in one exchange.
const commandsAtOnce = 32

// RunningRepairs are the numbers of the repairs that run, of those after a command: up to so many
// numbers in a row that this JVM does not know.
func (n *Node) RunningRepairs(ctx context.Context, after int) ([]int, error) {
	var running []int
	for known := true; known; after += commandsAtOnce {
		requests := make([]jolokia.Request, commandsAtOnce)
		for i := range requests {
			requests[i] = jolokia.Exec(beanStorageService, "getParentRepairStatus(int)", after+1+i)
		}
		answers, err := n.jmx.Do(ctx, requests...)
		if err != nil {
			return nil, fmt.Errorf("read which repairs run: %w", err)
		}
		known = false
		for i := range answers {
			var wire []string
			if err := answers[i].Decode(&wire); err != nil {
				return nil, fmt.Errorf("read which repairs run: %w", whileStarting(err))
			}
			status, err := repairStatus(after+1+i, wire)
			if err != nil {
				return nil, err
			}
			known = known || status.State != RepairUnknown
			if status.State == RepairInProgress {
				running = append(running, after+1+i)
			}
		}
	}
	return running, nil
}

func repairStatus(command int, wire []string) (RepairStatus, error) {
	if len(wire) == 0 {
		return RepairStatus{State: RepairUnknown}, nil
	}
	status := RepairStatus{State: RepairState(wire[0]), Messages: wire[1:]}
	switch status.State {
	case RepairInProgress, RepairCompleted, RepairFailed:
		return status, nil
	default:
		return RepairStatus{}, fmt.Errorf("read status of repair %d: %w: unknown state %q", command,
			jolokia.ErrProtocol, wire[0])
	}
}
