package safeguard

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// Of the published bugs of other operators docs/reliability.md says for each what keeps Helenus
// from it. Here are those that no other test and no scenario of the sweep tries.

// TestObjectsAreOfAClusterByItsUID takes away that what carries the same name and another uid is
// not the old cluster's (CassKop 316, instaclustr 402): the leader changes to a standby that sees
// the deletion of an earlier cluster. In the first case it sees only the cluster as it was; no uid
// of a delete would help, since everything is seen that there is. In the second it sees the nodes
// of the former cluster, too, all stopped, and only the claims as they are.
func TestObjectsAreOfAClusterByItsUID(t *testing.T) {
	ofAnother(t, recreated(t, "CassandraCluster"), all, "*v1.PersistentVolumeClaim", "*v1alpha1.CassandraNode",
		"*v1.Pod")
	ofAnother(t, recreated(t, "CassandraCluster", "CassandraNode", "Pod", "ConfigMap"), claims,
		"*v1.PersistentVolumeClaim")
	// The other way round, the cluster is the new one and its claims and pods are seen as they
	// were: what is missing is asked for at the API server itself, by its name, and found. Without
	// that the record says which claims are its node's, and of what there is nothing is made twice.
	result := holds(t, trial.Trial{Scenario: recreated(t, "PersistentVolumeClaim", "Pod"), Seed: 1, Tell: true})
	refuses(t, result, "the cache does not show our own writes yet: Pod orders-dc1-r1-0")
}

// ofAnother wants a stale leader to let alone what is of another cluster of the name, although it
// sees it, and a claim of the living to be deleted otherwise.
func ofAnother(t *testing.T, s *trial.Scenario, these func(client.Object) bool, shown ...string) {
	t.Helper()
	others, refused := map[string]int{}, refusals{}
	wrap := byName(none, others)
	wrap.Client = stripping(nothing, refused).Client
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: wrap})
	for _, kind := range shown {
		if others[kind] == 0 {
			t.Errorf("no %s of the other cluster was seen: %v", kind, others)
		}
	}
	// it did take the former cluster for the present one
	refused.want(t, refusal{theStandby, "status", "CassandraCluster", byVersion})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: byName(these, map[string]int{})},
		"I3: claim data-orders-dc1-r1-0 is deleted with data on it while its cluster lives")
}

// TestCassKop342: a size was changed 2→1→0 while the operator looked away; it compared two specs
// with each other, and the pods of the first were never removed. Here the size goes 3→2→1 before
// the ring forms, and the middle is never seen: the end is that of a cluster which was created so.
func TestCassKop342(t *testing.T) {
	nodes := func(n int32) func(*v1alpha1.CassandraCluster) {
		return func(c *v1alpha1.CassandraCluster) {
			c.Spec.Datacenters[0].NodesPerRack, c.Spec.Datacenters[0].PlannedReplicationFactor = n, 3
		}
	}
	s := trial.Named("shrink-unseen", "a cluster that finds no hosts shrinks in two steps, of which the operator "+
		"sees the last", false, nil)
	s.HostsPerZone = 1
	s.Acts[0] = trial.Act{Name: "create", Do: func(w *world.World) error {
		return w.User().Create(context.Background(), trial.ThreeRacks(nodes(3)))
	},
		Until: func(w *world.World) bool { return len(w.Server.Objects("Pod")) == 9 }, Within: 5 * time.Minute}
	s = s.With(s.Name, "",
		trial.Act{Name: "shrink unseen", Do: func(w *world.World) error {
			w.Operators()[0].Freeze("CassandraCluster")
			if err := edit(w, nodes(2)); err != nil {
				return err
			}
			w.Line.RunFor(time.Minute)
			if err := edit(w, nodes(1)); err != nil {
				return err
			}
			w.Operators()[0].Kill()
			w.StartOperator(world.Install)
			return nil
		}, Until: trial.Serves, Within: 15 * time.Minute})
	fresh := trial.Named("fresh", "a cluster of the final spec", false, nodes(1))
	fresh.HostsPerZone = s.HostsPerZone
	want := holds(t, trial.Trial{Scenario: fresh, Seed: 1}).End
	for _, v := range trial.Unlike(holds(t, trial.Trial{Scenario: s, Seed: 1}).End, want) {
		t.Error(v)
	}
}

func edit(w *world.World, change func(*v1alpha1.CassandraCluster)) error {
	c := trial.Cluster(w).DeepCopy()
	change(c)
	return w.User().Update(context.Background(), c)
}

// The budget of a ring is closed while ranges move. A standby whose view of the ledger does not
// show the step yet would open it: what CassKop 321 made of the spec.
func TestABudgetIsNotOpenedFromThePast(t *testing.T) {
	closed := func(w *world.World) bool {
		l := ledgerOf(w)
		return l != nil && l.Step != nil && atLeast(w) == len(w.Server.Objects("CassandraNode"))
	}
	for _, kinds := range [][]string{{"ConfigMap"},
		{"CassandraCluster", "ConfigMap", "CassandraNode", "Pod", "PersistentVolumeClaim"}} {
		s := growing("grow-stale-standby", "a ring grows, and a standby leads that sees the budget and not the step",
			standby(), freeze(nil, 0, kinds...),
			respec("grow", closed, nodeMore),
			trial.Act{Name: "the standby leads", Do: func(w *world.World) error {
				w.Operators()[0].Kill()
				w.Operators()[0].Lead()
				w.Line.RunFor(20 * time.Second)
				return nil
			}},
			trial.Act{Name: "its view continues", Do: func(w *world.World) error {
				w.Operators()[0].Thaw()
				return nil
			}, Until: trial.Serves, Within: 2 * time.Hour})
		refuses(t, holds(t, trial.Trial{Scenario: s, Seed: 1, Tell: true}),
			`confirm before \"Change PodDisruptionBudget orders-dc1`)
		caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: notLive(world.Wrap{})},
			"budget: evictions may leave 2 of the 3 members of datacenter dc1 from now on, and JoinNode is open")
	}
}

// A wrong end is one, though nothing went wrong on the way, and its run is the only one.
func TestEndsAreHeldToTheSpec(t *testing.T) {
	s := trial.Named("fewer-replicas", "somebody takes replicas from a system keyspace", true, nil,
		trial.Act{Name: "alter", Do: func(w *world.World) error {
			// the others agree a moment later
			_, _ = w.Pods.Sandboxes()[0].JVM().SetKeyspaces(context.Background(),
				map[string]map[string]int{"system_auth": {"dc1": 1}})
			return nil
		}})
	caught(t, trial.Trial{Scenario: s, Seed: 1}, "replication: keyspace system_auth has 1 replicas in dc1")
}

// atLeast is how many pods the budget of the first datacenter leaves; 0 if there is none.
func atLeast(w *world.World) int {
	b, _ := w.Server.Object("PodDisruptionBudget", keyOf(clusterName+"-dc1")).(*policyv1.PodDisruptionBudget)
	if b == nil {
		return 0
	}
	return b.Spec.MinAvailable.IntValue()
}

func deletePod(w *world.World, name string) error {
	return w.User().Delete(context.Background(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: name}})
}
