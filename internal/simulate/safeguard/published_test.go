package safeguard

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// The published bugs of other operators of Cassandra that Sieve (OSDI 2022) and Acto (SOSP 2023)
// have found, as far as Helenus has the operation in which they happened. The others are in
// docs/reliability.md, with the issue that brings their operation.

// named runs trials of the catalogue, with the fault that the name says.
func named(t *testing.T, names ...string) {
	t.Helper()
	if underRace {
		names = names[:1]
	}
	for _, name := range names {
		tr := parsed(t, name)
		if result := holds(t, tr); !result.Fired {
			t.Errorf("%s: the fault was not injected", name)
		}
	}
}

// parsed is a trial by its name.
func parsed(t *testing.T, name string) trial.Trial {
	t.Helper()
	tr, err := trial.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestK8SSAND559: cass-operator saw the deletionTimestamp of an earlier datacenter of the same name
// again, behind an API server that lagged, and deleted the claims of the live one. Here the leader
// changes to a standby whose whole view is of the deletion: its deletes are refused, because they
// are of what it saw.
func TestK8SSAND559(t *testing.T) {
	s := recreated(t)
	refused := refusals{}
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(nothing, refused)})
	refused.want(t, refusal{theStandby, "delete", "PersistentVolumeClaim", byUID})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(everything, refusals{})},
		"I3: claim data-orders-dc1-r1-0 is deleted with data on it while its cluster lives")
}

// TestCassKop316: CassKop took the claims to delete by the cluster's name, not by its uid. Here
// only the cluster is seen as it was, being deleted, and everything else as it is: what carries the
// same name and another uid is not the old cluster's. No uid of a delete would help, since
// everything is seen that there is.
func TestCassKop316(t *testing.T) {
	ofAnother(t, recreated(t, "CassandraCluster"), all, "*v1.PersistentVolumeClaim", "*v1alpha1.CassandraNode",
		"*v1.Pod")
}

// TestInstaclustr402: instaclustr's operator chose the claims to delete by the labels of cluster
// and datacenter, when it saw the deletion of an earlier one again. Here the nodes are those of the
// former cluster too, all stopped; the claims are seen as they are, and only they could be taken
// for its own.
func TestInstaclustr402(t *testing.T) {
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

// TestInstaclustr407: a pod that was seen as being deleted, in a stale view, cost its claim, and
// any deletion of a pod did so with deletePVCs. Here a pod is deleted under onClusterDeletion
// Delete, and the leader changes to one that still sees the pod go when its successor serves. No
// deletion of a pod touches a claim.
func TestInstaclustr407(t *testing.T) {
	going := func(w *world.World) bool {
		p := w.Server.Object("Pod", keyOf(first))
		return p != nil && p.GetDeletionTimestamp() != nil
	}
	s := trial.Named("pod-deleted-stale-standby", "a pod is deleted, and a standby leads when its successor serves",
		true, deleteClaims, standby(),
		trial.Act{Name: "delete a pod", Do: func(w *world.World) error { return deletePod(w, first) },
			Within: time.Minute, Until: func(w *world.World) bool { return going(w) && notServing(w) }},
		freeze(trial.Serves, 15*time.Minute))
	s = s.With(s.Name, "", failover()...)
	refused := refusals{}
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(nothing, refused)})
	// what it would say of the pod that it sees going
	refused.want(t, refusal{theStandby, "status", "CassandraCluster", byVersion})
}

// TestInstaclustr398: the deletionTimestamp of a pod was never seen, and so its claim was never
// deleted. Here the events of pods are missed while a cluster with its claims is deleted: nothing
// may be left. What is deleted follows from what is there.
func TestInstaclustr398(t *testing.T) {
	named(t,
		"delete-delete/1/stale-restart=Pod@operator:delete:Pod/orders-dc1-r1-0:1",
		"delete-delete/1/skipped=Pod@operator:delete:Pod/orders-dc1-r1-0:1",
		"delete-delete/1/skipped=Pod@operator:delete:Pod/orders-dc1-r3-0:1",
		"delete-delete/1/stale-5=Pod@operator:delete:Pod/orders-dc1-r1-0:1",
		"delete-delete/1/kill-after@operator:delete:Pod/orders-dc1-r1-0:1")
}

// TestCassKop321: a disruption budget was deleted and recreated from a stale object with other
// numbers, and was weaker than asked. Here budgets are changed in place and close while a step is
// open: under every staleness each is made once and none deleted, and the end is the same.
func TestCassKop321(t *testing.T) {
	var stale []trial.Trial
	for _, kind := range []string{"second-operator", "stale-1=PodDisruptionBudget", "stale-5=PodDisruptionBudget",
		"stale-restart=PodDisruptionBudget"} {
		stale = append(stale, parsed(t, "create-3/1/"+kind+"@operator:create:PodDisruptionBudget/orders-dc1:1"),
			parsed(t, "grow-rack/1/"+kind+"@operator:patch:PodDisruptionBudget/orders-dc1:1"))
	}
	if underRace {
		stale = stale[:1]
	}
	for _, tr := range stale {
		result := holds(t, tr)
		name := "PodDisruptionBudget/orders-dc1"
		if end := result.End; !result.Fired || end.Created[name] != 1 || end.Deleted[name] != 0 {
			t.Errorf("%s: fault injected %v, the budget was made %d times and deleted %d times", tr, result.Fired,
				end.Created[name], end.Deleted[name])
		}
	}
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
	likeFresh(t, trial.Trial{Scenario: s, Seed: 1}, nodes(1))
}

// TestK8SSAND1023: a crash between the two Secrets of the certificate authority left pods that
// could never start. Here a crash before or after any Secret changes nothing in the end, since each
// is looked for by itself.
func TestK8SSAND1023(t *testing.T) {
	var names []string
	for _, secret := range []string{"orders-agent-ca", "orders-dc1-r1-0-agent-tls", "orders-dc1-r3-0-agent-tls"} {
		for _, kind := range []string{"kill-before", "kill-after", "timeout-effect"} {
			names = append(names, fmt.Sprintf("create-3/1/%s@operator:create:Secret/%s:1", kind, secret))
		}
	}
	named(t, names...)
}

// TestK8SSAND1362: a crash after the label that says Starting, before the call that starts: nobody
// called again. Here the tickets are written one by one, and the agent writes down that it starts
// before it does: a crash of either at that moment starts each node once, and once only. What
// remembers is the ledger for the operator, and the journal for the agent.
func TestK8SSAND1362(t *testing.T) {
	create, err := trial.Find("create-3")
	if err != nil {
		t.Fatal(err)
	}
	begun := beginnings(t, create)
	for _, node := range []string{first, "orders-dc1-r2-0", last} {
		b := begun[node]
		for _, f := range []trial.Fault{
			{Kind: "kill-before", At: b.ticket},
			{Kind: "kill-after", At: b.ticket},
			{Kind: "agent-killed-after", At: b.renamed},
			{Kind: "agent-killed-after", At: b.durable},
		} {
			if underRace && (node != first || f.Kind == "kill-after") {
				continue
			}
			if result := holds(t, trial.Trial{Scenario: create, Seed: 1, Fault: &f}); !result.Fired {
				t.Errorf("%s: the fault was not injected", f)
			}
		}
	}
	starts := 0
	started := trial.Trial{Scenario: create, Seed: 1,
		Fault: &trial.Fault{Kind: "agent-killed-after", At: begun[first].next},
		Wrap:  remembering(world.Wrap{}, &starts)}
	if holds(t, started); starts == 0 {
		t.Error("the agent did not find in its journal that it had started a JVM")
	}
	started.Wrap = lastLost(world.Wrap{})
	caught(t, started, "act create is not over")
}

// misspelt is an option with which Java does not start.
func misspelt(c *v1alpha1.CassandraCluster) {
	c.Spec.Node.JVM.Options = append(c.Spec.Node.JVM.Options, "-XX:+ThereIsNoSuchOption")
}

// TestActoCassOperator324: while an update was in progress the StatefulSet was not reconciled, so
// that a bad value could not be withdrawn. Here a formation whose nodes do not start takes the
// correction.
func TestActoCassOperator324(t *testing.T) {
	s := trial.Named("never-starts", "a ring that cannot start is corrected", false, misspelt)
	s.Acts[0].Until, s.Acts[0].Within = func(w *world.World) bool {
		n, ok := w.Server.Object("CassandraNode", keyOf(first)).(*v1alpha1.CassandraNode)
		return ok && n.Status.Restarts != nil && n.Status.Restarts.Count > 2
	}, 10*time.Minute
	s = s.With(s.Name, "", trial.Edit("correct", func(c *v1alpha1.CassandraCluster) { c.Spec.Node.JVM.Options = nil },
		trial.Serves, 20*time.Minute))
	likeFresh(t, trial.Trial{Scenario: s, Seed: 1}, nil)
}

// TestActoCassOperator330: labels that were taken out of the spec stayed on the Service. Here
// labels, annotations and settings are taken out again before the ring forms: nothing of them is
// left, because records are changed by what differs. A client whose changes take nothing away
// leaves them.
func TestActoCassOperator330(t *testing.T) {
	labels := func(c *v1alpha1.CassandraCluster) {
		c.Spec.Node.Metadata = &v1alpha1.Metadata{Labels: map[string]string{"team": "shop"},
			Annotations: map[string]string{"example.com/note": "x"}}
		c.Spec.Node.CassandraYaml = v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")}}
	}
	s := unplaceable("labels-removed", func(c *v1alpha1.CassandraCluster) { labels(c); nowhere(c) })
	s = s.With(s.Name, "", trial.Edit("take out", func(c *v1alpha1.CassandraCluster) {
		c.Spec.Node.Metadata, c.Spec.Node.CassandraYaml = nil, nil
		c.Spec.Datacenters = trial.ThreeRacks(nil).Spec.Datacenters
	}, trial.Serves, 20*time.Minute))
	likeFresh(t, trial.Trial{Scenario: s, Seed: 1}, nil)
	adds := writing(func(c client.Client) client.Client { return adding{c} })
	holds(t, trial.Trial{Scenario: trial.Named("labelled", "a cluster with labels", false, labels), Seed: 1,
		Wrap: adds})
	found := caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: adds}, "act take out is not over")
	if record := found.End.Objects["CassandraNode/"+first]; !strings.Contains(record, `"labels":{"team":"shop"}`) {
		t.Errorf("the labels did not stay: %s", record)
	}
}

// TestActoCassOperator334: a wrong affinity made a pod Pending, and the health gate refused the
// corrected spec because of it; the same is CassKop 20. Here a rack in a zone that does not exist
// is corrected.
func TestActoCassOperator334(t *testing.T) {
	s := unplaceable("no-such-zone", nowhere)
	s = s.With(s.Name, "", trial.Edit("correct", func(c *v1alpha1.CassandraCluster) {
		c.Spec.Datacenters = trial.ThreeRacks(nil).Spec.Datacenters
	}, trial.Serves, 20*time.Minute))
	likeFresh(t, trial.Trial{Scenario: s, Seed: 1}, nil)
}

// nowhere puts a rack into a zone that does not exist.
func nowhere(c *v1alpha1.CassandraCluster) {
	c.Spec.Datacenters[0].Racks[1].Node.Placement.Zone = "nowhere"
}

// unplaceable begins with a cluster one of whose pods finds no host.
func unplaceable(name string, change func(*v1alpha1.CassandraCluster)) *trial.Scenario {
	s := trial.Named(name, "a pod that finds no host is corrected", false, change)
	s.Acts[0].Until, s.Acts[0].Within = func(w *world.World) bool {
		p, ok := w.Server.Object("Pod", keyOf(clusterName+"-dc1-r2-0")).(*corev1.Pod)
		return ok && len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Status == corev1.ConditionFalse
	}, 10*time.Minute
	return s
}

// likeFresh runs a trial that must end as if the cluster had been created as it is in the end.
func likeFresh(t *testing.T, tr trial.Trial, change func(*v1alpha1.CassandraCluster)) {
	t.Helper()
	got := run(t, tr)
	for _, v := range slices.Concat(got.Violations, trial.Unlike(got.End, fresh(t, tr, change))) {
		t.Errorf("%s: %s", tr, v)
	}
}

// fresh is the end of a cluster that is created as that of a trial is in the end.
func fresh(t *testing.T, tr trial.Trial, change func(*v1alpha1.CassandraCluster)) trial.End {
	t.Helper()
	s := trial.Named("fresh", "a cluster of the final spec", false, change)
	s.HostsPerZone = tr.Scenario.HostsPerZone
	return holds(t, trial.Trial{Scenario: s, Seed: 1}).End
}

func edit(w *world.World, change func(*v1alpha1.CassandraCluster)) error {
	c := trial.Cluster(w).DeepCopy()
	change(c)
	return w.User().Update(context.Background(), c)
}

func deletePod(w *world.World, name string) error {
	return w.User().Delete(context.Background(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: name}})
}
