package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/cassandra"
)

// topology is I2: it knows, by what the nodes themselves see, whether a ring can bear a change of
// it.
type topology struct {
	*checker
	// since is when each obstacle was first there, of those that there are.
	since map[obstacle]time.Time
}

// obstacle is what a change of the topology must not begin beside.
type obstacle struct {
	// kind is one of those below, and node who sees it, or has it.
	kind, node, what string
}

const (
	notNormal = "is not NORMAL"
	changing  = "sees a change of"
	down      = "does not reach"
	unseen    = "does not see" // that it is up
	strange   = "cannot tell where the replicas are of"
)

// settledBy is how long before a step an obstacle must have been there: whoever decides looks at
// the nodes just before it writes, and a fault may be injected in between.
const settledBy = time.Second / 2

// look notes what speaks against a change now.
func (t *topology) look() {
	now := map[obstacle]time.Time{}
	for _, o := range t.obstacles() {
		if since, before := t.since[o]; before {
			now[o] = since
		} else {
			now[o] = t.w.Line.Now()
		}
	}
	t.since = now
}

// obstacles of the ring that the last ledger describes.
func (t *topology) obstacles() []obstacle {
	if t.lastLedger == nil {
		return nil
	}
	up := map[string]bool{} // by name, and by address
	members := t.members(t.lastLedger.Members)
	for name, j := range members {
		up[name], up[j.Sight().Name] = true, true
	}
	var out []obstacle
	for name := range t.lastLedger.Members {
		if !up[name] {
			out = append(out, obstacle{kind: notNormal, node: name})
		}
	}
	for name, j := range members {
		sight := j.Sight()
		for _, what := range sight.Changing {
			out = append(out, obstacle{changing, name, what})
		}
		for _, what := range sight.Strange {
			out = append(out, obstacle{strange, name, "keyspace " + what})
		}
		for _, what := range sight.Down {
			kind := down
			if up[what] {
				kind = unseen
			}
			out = append(out, obstacle{kind, name, what})
		}
	}
	return out
}

// members are the JVMs of those that are NORMAL by their own word, as far as anybody can hear it.
func (t *topology) members(of map[string]string) map[string]*cassandra.Process {
	out := map[string]*cassandra.Process{}
	for _, s := range t.w.Pods.Sandboxes() {
		if _, member := of[s.Name()]; member && s.JVM() != nil && s.JVM().Mode() == string(facts.ModeNormal) &&
			!t.w.Isolated(s.Host()) {
			out[s.Name()] = s.JVM()
		}
	}
	return out
}

// opened judges a step that the operator begins.
func (t *topology) opened(step *ledger.Step, members map[string]string) {
	beside := []string{notNormal, changing, down, unseen, strange}
	t.wasAsked(step)
	if step.Class != ledger.Rollout && step.Kind != ledger.StopRing && step.Kind != ledger.StopDatacenter {
		releases := map[string]string{}
		for name, j := range t.members(members) {
			releases[j.Release()] = name
		}
		for _, name := range step.Wave() {
			if n, _ := t.w.Server.Object("CassandraNode", keyOf(name)).(*v1alpha1.CassandraNode); n != nil {
				releases[n.Spec.Configuration.Version] = name
			}
		}
		if len(releases) > 1 {
			t.violated("I9: %s is opened, and releases differ: %v", step.Kind, releases)
		}
	}
	switch step.Kind {
	case ledger.JoinNode:
		if slices.ContainsFunc(step.Wave(), t.hasTicket) {
			return // it continues: the ledger that had it was lost
		}
	case ledger.RenewNode, ledger.ReplaceNode, ledger.ReplaceTask, ledger.RemoveTask:
		beside = []string{changing, strange}
	case ledger.AddDatacenter:
	case ledger.LeaveNode:
		if slices.ContainsFunc(step.Wave(), t.isLeaving) {
			return // it continues: the ledger that had it was lost
		}
	case ledger.Cleanup:
		beside = []string{changing, unseen}
	default:
		return
	}
	if step.Kind != ledger.Cleanup {
		known := slices.Collect(maps.Values(members))
		for name, j := range t.members(members) {
			for _, id := range j.Sight().Members {
				if !slices.Contains(known, id) {
					t.violated("I2: %s is opened, and member %s sees %s, of which the ledger does not know", step.Kind,
						name, id)
				}
			}
		}
	}
	now := t.w.Line.Now()
	for _, o := range slices.SortedFunc(maps.Keys(t.since), obstacle.compare) {
		since := t.since[o]
		if slices.Contains(beside, o.kind) && now.Sub(since) >= settledBy {
			t.violated("I2: %s is opened, and %s", step.Kind, o.inWords(now.Sub(since)))
		}
	}
}

func (t *topology) isLeaving(name string) bool {
	record, _ := t.w.Server.Object("CassandraNode", keyOf(name)).(*v1alpha1.CassandraNode)
	return record != nil && slices.ContainsFunc(record.Spec.Operations,
		func(o v1alpha1.OperationIntent) bool { return o.Type == v1alpha1.OperationDecommission })
}

func (t *topology) hasTicket(name string) bool {
	record, _ := t.w.Server.Object("CassandraNode", keyOf(name)).(*v1alpha1.CassandraNode)
	return record != nil && record.Spec.Join != nil
}

func (o obstacle) inWords(d time.Duration) string {
	return strings.Join(strings.Fields(fmt.Sprintf("member %s %s %s", o.node, o.kind, o.what)),
		" ") + fmt.Sprintf(" for %s", d)
}

func (o obstacle) compare(other obstacle) int {
	return cmp.Or(cmp.Compare(o.kind, other.kind), cmp.Compare(o.node, other.node), cmp.Compare(o.what, other.what))
}
