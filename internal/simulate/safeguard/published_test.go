package safeguard

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// The published bugs of other operators of Cassandra that Sieve (OSDI 2022) and Acto (SOSP 2023) have found, as far as Helenus has the operation in which they
// happened. The others are in docs/reliability.md, with the issue that brings their operation.

// named runs trials of the catalogue, with the fault that the name says.
func named(t *testing.T, names ...string) {
	t.Helper()
	if underRace {
		names = names[:1]
	}
	for _, name := range names {
		tr, err := trial.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		if result := holds(t, tr); !result.Fired {
			t.Errorf("%s: the fault did not strike", name)
		}
	}
}

// TestK8SSAND559: cass-operator saw the deletionTimestamp of an earlier datacenter of the same name again, behind an API server that lagged, and deleted the
// claims of the live one. Here the leader changes to a standby whose whole view is of the deletion: nothing of the new cluster may be touched.
func TestK8SSAND559(t *testing.T) {
	holds(t, trial.Trial{Scenario: recreated(t), Seed: 1})
}

// TestCassKop316: CassKop took the claims to delete by the cluster's name, not by its uid. Here only the cluster is seen as it was, being deleted, and everything
// else as it is: what carries the same name and another uid is not the old cluster's.
func TestCassKop316(t *testing.T) {
	holds(t, trial.Trial{Scenario: recreated(t, "CassandraCluster"), Seed: 1})
}

// TestInstaclustr402: instaclustr's operator chose claims by the labels of cluster and datacenter in a stale view. Here only claims and pods are seen as they were
// while the cluster is the new one: the claims of the former are nothing to delete or to use.
func TestInstaclustr402(t *testing.T) {
	holds(t, trial.Trial{Scenario: recreated(t, "PersistentVolumeClaim", "Pod"), Seed: 1})
}

// TestInstaclustr407: a pod that was seen as being deleted, in a stale view, cost its claim, and any deletion of a pod did so with deletePVCs. Here a pod is deleted
// under onClusterDeletion Delete, and the leader changes to one that still sees the pod go when its successor serves.
func TestInstaclustr407(t *testing.T) {
	s := trial.Named("pod-deleted-stale-standby", "a pod is deleted, and a standby that sees it going leads when its successor serves", true, deleteClaims,
		standby(),
		trial.Act{Name: "delete a pod", Do: func(w *world.World) error { return deletePod(w, first) }, Until: func(w *world.World) bool {
			p := w.Server.Object("Pod", keyOf(first))
			return p != nil && p.GetDeletionTimestamp() != nil
		}, Within: time.Minute},
		freeze(trial.Serves, 15*time.Minute))
	holds(t, trial.Trial{Scenario: s.With(s.Name, "", failover()...), Seed: 1})
}

// TestInstaclustr398: the deletionTimestamp of a pod was never seen, and so its claim was never deleted. Here the events of pods are missed while a cluster with
// its claims is deleted: nothing may be left.
func TestInstaclustr398(t *testing.T) {
	named(t,
		"delete-delete/1/skipped=Pod@operator:delete:Pod/orders-dc1-r1-0:1",
		"delete-delete/1/skipped=Pod@operator:delete:Pod/orders-dc1-r3-0:1",
		"delete-delete/1/stale-5=Pod@operator:delete:Pod/orders-dc1-r1-0:1",
		"delete-delete/1/stale-restart=Pod@operator:delete:Pod/orders-dc1-r1-0:1",
		"delete-delete/1/kill-after@operator:delete:Pod/orders-dc1-r1-0:1")
}

// TestCassKop321: a disruption budget was deleted and made again from a stale object with other numbers, and was weaker than asked. Here budgets are changed in
// place and close while a step is open: under every staleness each is made once and none deleted, and the end is the same.
func TestCassKop321(t *testing.T) {
	for _, kind := range []string{"stale-1=PodDisruptionBudget", "stale-5=PodDisruptionBudget", "stale-restart=PodDisruptionBudget", "second-operator"} {
		for _, at := range []string{"operator:create:PodDisruptionBudget/orders-dc1:1", "operator:patch:PodDisruptionBudget/orders-dc1:1"} {
			tr, err := trial.Parse("create-3/1/" + kind + "@" + at)
			if err != nil {
				t.Fatal(err)
			}
			if underRace && kind != "second-operator" {
				continue
			}
			result := holds(t, tr)
			name := "PodDisruptionBudget/orders-dc1"
			if end := result.End; !result.Fired || end.Created[name] != 1 || end.Deleted[name] != 0 {
				t.Errorf("%s: fault struck %v, the budget was made %d times and deleted %d times", tr, result.Fired, end.Created[name], end.Deleted[name])
			}
		}
	}
}

// TestCassKop342: a size was changed 2→1→0 while the operator looked away; it compared two specs with each other, and the pods of the first were never removed.
// Here the size goes 3→2→1 before the ring forms, and the middle is never seen: the end is that of a cluster which was created so.
func TestCassKop342(t *testing.T) {
	nodes := func(n int32) func(*v1alpha1.CassandraCluster) {
		return func(c *v1alpha1.CassandraCluster) {
			c.Spec.Datacenters[0].NodesPerRack, c.Spec.Datacenters[0].ReplicationFactor = n, 3
		}
	}
	s := trial.Named("shrink-unseen", "a cluster that finds no machines shrinks in two steps, of which the operator sees the last", false, nil)
	s.MachinesPerZone = 1
	s.Acts[0] = trial.Act{Name: "create", Do: func(w *world.World) error { return w.Person().Create(context.Background(), trial.ThreeRacks(nodes(3))) },
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

// TestK8SSAND1023: a crash between the two Secrets of the certificate authority left pods that could never start. Here a crash before or after any Secret
// changes nothing in the end.
func TestK8SSAND1023(t *testing.T) {
	var names []string
	for _, secret := range []string{"orders-ca", "orders-dc1-r1-0-tls", "orders-dc1-r3-0-tls"} {
		for _, kind := range []string{"kill-before", "kill-after", "timeout-effect"} {
			names = append(names, fmt.Sprintf("create-3/1/%s@operator:create:Secret/%s:1", kind, secret))
		}
	}
	named(t, names...)
}

// TestK8SSAND1362: a crash after the label that says Starting, before the call that starts: nobody called again. Here the tickets are written one by one, and the
// agent writes down that it starts before it does: a crash of either at that moment starts each node once, and once only.
func TestK8SSAND1362(t *testing.T) {
	var names []string
	for _, node := range []string{"orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"} {
		names = append(names,
			"create-3/1/kill-before@operator:patch:CassandraNode/"+node+":2",
			"create-3/1/kill-after@operator:patch:CassandraNode/"+node+":2",
			"create-3/1/agent-killed-after@disk:rename:"+node+"/.helenus/journal.json.new:3",
			"create-3/1/agent-killed-after@disk:syncdir:"+node+"/.helenus:4")
	}
	named(t, names...)
}

// misspelt is an option with which Java does not start.
func misspelt(c *v1alpha1.CassandraCluster) {
	c.Spec.Node.JVM.Options = append(c.Spec.Node.JVM.Options, "-XX:+ThereIsNoSuchOption")
}

// TestActoCassOperator324: while an update was in progress the StatefulSet was not reconciled, so that a bad value could not be withdrawn. Here a formation whose
// nodes do not start takes the correction.
func TestActoCassOperator324(t *testing.T) {
	s := trial.Named("never-starts", "a ring that cannot start is corrected", false, misspelt)
	s.Acts[0].Until, s.Acts[0].Within = func(w *world.World) bool {
		n, ok := w.Server.Object("CassandraNode", keyOf(first)).(*v1alpha1.CassandraNode)
		return ok && n.Status.Restarts != nil && n.Status.Restarts.Count > 2
	}, 10*time.Minute
	s = s.With(s.Name, "", trial.Edit("correct", func(c *v1alpha1.CassandraCluster) { c.Spec.Node.JVM.Options = nil }, trial.Serves, 20*time.Minute))
	likeFresh(t, trial.Trial{Scenario: s, Seed: 1}, nil)
}

// TestActoCassOperator330: labels that were taken out of the spec stayed on the Service. Here labels, annotations and settings are taken out again before the ring
// forms: nothing of them is left.
func TestActoCassOperator330(t *testing.T) {
	labelled := func(c *v1alpha1.CassandraCluster) {
		c.Spec.Node.Metadata = &v1alpha1.PodMetadata{Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"example.com/note": "x"}}
		c.Spec.Node.CassandraYaml = v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")}}
		nowhere(c)
	}
	s := unplaceable("labels-removed", labelled)
	s = s.With(s.Name, "", trial.Edit("take out", func(c *v1alpha1.CassandraCluster) {
		c.Spec.Node.Metadata, c.Spec.Node.CassandraYaml = nil, nil
		c.Spec.Datacenters = trial.ThreeRacks(nil).Spec.Datacenters
	}, trial.Serves, 20*time.Minute))
	likeFresh(t, trial.Trial{Scenario: s, Seed: 1}, nil)
}

// TestActoCassOperator334: a wrong affinity made a pod Pending, and the health gate refused the corrected spec because of it; the same is CassKop 20. Here a rack in
// a zone that does not exist is corrected.
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

// unplaceable begins with a cluster one of whose pods finds no machine.
func unplaceable(name string, change func(*v1alpha1.CassandraCluster)) *trial.Scenario {
	s := trial.Named(name, "a pod that finds no machine is corrected", false, change)
	s.Acts[0].Until, s.Acts[0].Within = func(w *world.World) bool {
		p, ok := w.Server.Object("Pod", keyOf(clusterName+"-dc1-r2-0")).(*corev1.Pod)
		return ok && len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Status == corev1.ConditionFalse
	}, 10*time.Minute
	return s
}

// likeFresh runs a trial that must end as if the cluster had been created as it is in the end.
func likeFresh(t *testing.T, tr trial.Trial, change func(*v1alpha1.CassandraCluster)) {
	t.Helper()
	fresh := trial.Named("fresh", "a cluster of the final spec", false, change)
	fresh.MachinesPerZone = tr.Scenario.MachinesPerZone
	result := trial.Trial{Scenario: fresh, Seed: 1}.Run(kindsOf(t), nil)
	for _, v := range result.Violations {
		t.Fatalf("fresh: %s", v)
	}
	got := run(t, tr)
	for _, v := range got.Violations {
		t.Errorf("%s: %s", tr, v)
	}
	for _, v := range trial.Unlike(got.End, result.End) {
		t.Errorf("%s: %s", tr, v)
	}
}

func edit(w *world.World, change func(*v1alpha1.CassandraCluster)) error {
	c := trial.Cluster(w).DeepCopy()
	change(c)
	return w.Person().Update(context.Background(), c)
}

func deletePod(w *world.World, name string) error {
	return w.Person().Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: name}})
}
