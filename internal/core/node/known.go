package node

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
)

// knowRecord waits for the node's record, and refuses one that is of another cluster.
func knowRecord(p *pass) outcome {
	if p.Self.Incomplete != "" {
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedPodIncomplete, p.Self.Incomplete)
	}
	if p.Record == nil {
		return wait(v1alpha1.PhaseWaiting,
			"waits for its CassandraNode: it was neither read from the API server nor kept on the disk")
	}
	if uid := p.Record.Spec.Cluster.UID; uid != p.Self.ClusterUID {
		return blocked(v1alpha1.PhaseFailed, v1alpha1.BlockedRecordOfOtherCluster,
			fmt.Sprintf("the record belongs to the cluster with uid %s, this pod to %s: the pod must be made again",
				uid,
				p.Self.ClusterUID))
	}
	return done
}

// endAgent ends an agent that the record wants to have started later. The next one starts after
// that time by the same clock, even if that differs from all others: none ends again and again.
func endAgent(p *pass) outcome {
	after := p.Record.Spec.AgentStartedAfter
	if after == nil || !p.Self.StartedAt.Before(after.Time) || p.now.Before(after.Time) {
		return done
	}
	return act(EndAgent{Why: "the record asks for an agent that started later"})
}

// keepRecord writes the record down whenever its spec changes, once the disk is this node's.
func keepRecord(p *pass) outcome {
	if p.Memory.ClusterUID != p.Self.ClusterUID || p.Memory.Node != p.Self.Node {
		return done
	}
	kept := p.Memory.Record
	if kept != nil && kept.UID == p.Record.UID && kept.Generation == p.Record.Generation &&
		slices.Equal(p.Memory.Seeds, p.Seeds) {
		return done
	}
	return act(KeepRecord{Why: "the record or the seeds changed"})
}

// withdrawStale withdraws intents that were not begun and are not to be any more: taken back by the
// operator, or out of date.
func withdrawStale(p *pass) outcome {
	spec := &p.Record.Spec
	if p.Memory.ClusterUID == "" && !p.Disk.Known && !p.running() {
		return done // the answer is to be durable, so the disk must be known first
	}
	if t := spec.Join; t != nil && (p.Memory.Join == nil || p.Memory.Join.ID != t.ID) {
		if why, over := p.outOfDate(&t.Intent); over {
			return act(WithdrawJoin{ID: t.ID, Why: Why(why)})
		}
	}
	if r := spec.Restart; r != nil && (p.Memory.Restart == nil || p.Memory.Restart.ID != r.ID) {
		if why, over := p.outOfDate(&r.Intent); over {
			return act(WithdrawRestart{ID: r.ID, Why: Why(why)})
		}
	}
	for i := range spec.Operations {
		o := &spec.Operations[i]
		if why, over := p.outOfDate(&o.Intent); over && p.Memory.Operation(o.ID) == nil {
			return act(WithdrawOperation{ID: o.ID, Why: Why(why)})
		}
	}
	return done
}
