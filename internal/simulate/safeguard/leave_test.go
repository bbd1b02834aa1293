package safeguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// shrinking begins a scenario with a ring of two nodes in the first of three racks, or in all of
// them, to which clients write.
func shrinking(name, about string, change func(*v1alpha1.CassandraCluster), acts ...trial.Act) *trial.Scenario {
	s := trial.Named(name, about, true, change, acts...)
	s.HostsPerZone, s.Grows = 2, true
	return s
}

func oneInEach(s *v1alpha1.CassandraClusterSpec) {
	s.Datacenters[0].NodesPerRack, s.Datacenters[0].Racks[0].Nodes = 1, nil
}

// replicated is the scenario of a ring of four that is to shrink although a keyspace has as many
// replicas.
func replicated(by string) *trial.Scenario {
	var f failures
	return shrinking("leave-replicas", "a ring of four with a keyspace of four replicas is to shrink",
		func(c *v1alpha1.CassandraCluster) { firstRackMore(&c.Spec) },
		trial.Act{Name: "create", Do: keyspace("four", map[string]int{"dc1": 4})}, waiting(time.Minute), f.watch(),
		respec("shrink", until(by, ledger.LeaveNode), oneInEach), waiting(10*time.Minute), unharmed(f.found))
}

// filled is the scenario of a ring of six that is to shrink to three, on which the data does not
// fit.
func filled(by string) *trial.Scenario {
	return shrinking("leave-filled", "a ring of six with more data than three have room for is to shrink",
		func(c *v1alpha1.CassandraCluster) { smallVolumes(c); nodeMore(&c.Spec) },
		trial.Act{Name: "write much", Do: func(w *world.World) error { return w.WriteRows(rowsOnSmall*3/2, nil) }},
		waiting(2*time.Minute), respec("shrink", until(by, ledger.LeaveNode), oneInEach), over(by),
		waiting(3*time.Minute), unharmed(fullDisks))
}

// uncleaned is the scenario of a ring that has grown, of which nobody has cleaned up the members,
// and that is to shrink again. Rows that a member does not own any more are deleted meanwhile, and
// the others have forgotten the deletions.
func uncleaned(by string) *trial.Scenario {
	s := growing("leave-uncleaned", "a ring that has grown, and was not cleaned up, shrinks",
		trial.Act{Name: "create a table", Do: func(w *world.World) error {
			session, err := sandbox(w, first).JVM().CQL(context.Background())
			if err != nil {
				return err
			}
			return session.CreateTable(context.Background(), world.Keyspace, "short", 10*time.Minute)
		}},
		waiting(time.Minute), respec("grow", trial.Serves, firstRackMore, cleanup(v1alpha1.AutomationRecommend)),
		trial.Act{Name: "delete rows", Do: deleteRows}, waiting(30*time.Minute),
		respec("shrink", until(by, ledger.LeaveNode), oneInEach), over(by),
		respec("clean up", grown, cleanup(v1alpha1.AutomationAutomatic)))
	return s
}

// fewRacks is the scenario of a ring of six that is to lose one of three racks, after which those
// of a zone are lost for a while.
func fewRacks(by string) *trial.Scenario {
	return shrinking("leave-racks", "a ring of six in three racks is to lose a rack, and a zone is lost",
		func(c *v1alpha1.CassandraCluster) { nodeMore(&c.Spec) },
		respec("take a rack out", until(by, ledger.LeaveNode), func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks = s.Datacenters[0].Racks[:2]
		}), over(by), zone((*kube.Cluster).Lose), waiting(time.Minute), unharmed(unserved),
		zone(func(k *kube.Cluster, host string) { k.Return(host, true) }), waiting(10*time.Minute))
}

// zone has something happen to every host of the first zone.
func zone(do func(*kube.Cluster, string)) trial.Act {
	return trial.Act{Name: "a zone", Do: func(w *world.World) error {
		for _, host := range w.Kube.Hosts() {
			if w.Kube.Zone(host) == w.Kube.Zone(w.Kube.Hosts()[0]) {
				do(w.Kube, host)
			}
		}
		return nil
	}}
}

// unserved says how many writes no quorum takes.
func unserved(w *world.World) []string {
	if taken, asked := w.Probe(); taken < asked || asked == 0 {
		return []string{fmt.Sprintf("of %d writes %d are not served", asked, asked-taken)}
	}
	return nil
}

// inUse is the scenario of a datacenter that is taken out of the spec while a keyspace has replicas
// there.
func inUse(by string) *trial.Scenario {
	var f failures
	s := growing("remove-in-use", "a datacenter is taken out of the spec while a keyspace has replicas there",
		respec("add", grown, extended()), f.watch(),
		respec("take it out", until(by, ledger.LeaveNode),
			func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = s.Datacenters[:1] }),
		waiting(10*time.Minute), unharmed(f.found))
	return s
}

// Without the repair what only the datacenter has leaves with it.
func TestADatacenterIsRepairedBeforeItGivesUpItsKeyspaces(t *testing.T) {
	s := found(t, "remove-datacenter")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: host(func(_ *pod.Sandbox, h *execute.Host) {
		h.JVM = repairsAnother{h.JVM}
	})}, "a write that was acknowledged is lost")
}

// Without the repair a replica that stays lacks what only those had that lose theirs.
func TestTheSystemKeyspacesAreRepairedBeforeTheyGetFewerReplicas(t *testing.T) {
	s := found(t, "lower-replication")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: host(func(_ *pod.Sandbox, h *execute.Host) {
		h.JVM = repairsAnother{h.JVM}
	})}, "a write that was acknowledged is lost")
}

// repairsAnother keyspace than the one that it is asked for.
type repairsAnother struct{ execute.JVM }

func (r repairsAnother) StartRepair(ctx context.Context, _ string, options cassandra.RepairOptions) (int, error) {
	return r.JVM.StartRepair(ctx, "system_traces", options)
}

func leaveCases() []guardCase {
	return []guardCase{
		{"DatacenterInUse", inUse("DatacenterInUse"), nil, "an operation of node"},
		{"TooManyReplicas", replicated("TooManyReplicas"), nil, "an operation of node"},
		{"TooFewRacks", fewRacks("TooFewRacks"), nil, "are not served"},
		{"TooLittleDisk", filled("TooLittleDisk"), nil, "no space left on device"},
		{"CleanupDue", uncleaned("CleanupDue"), nil, "the row is back"},
	}
}

func TestGuardsOfLeaving(t *testing.T) {
	for _, c := range leaveCases() {
		c.try(t)
	}
}
