package safeguard

import (
	"context"
	"errors"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// theStandby is the name of the second operator of a world.
const theStandby = world.UserOperator + "-2"

// standby starts an operator that watches and becomes the leader later.
func standby() trial.Act {
	return trial.Act{Name: "a standby starts",
		Do: func(w *world.World) error { w.StartStandby(world.Install); return nil },
		Until: func(w *world.World) bool {
			all := w.Operators()
			return len(all) == 2 && all[1].Started()
		}, Within: time.Minute}
}

func freeze(until func(*world.World) bool, within time.Duration, kinds ...string) trial.Act {
	return freezeAfter(100*time.Millisecond, until, within, kinds...) // it has seen everything up to here
}

func freezeAfter(d time.Duration, until func(*world.World) bool, within time.Duration, kinds ...string) trial.Act {
	return trial.Act{Name: "the view of the standby stands still", Do: func(w *world.World) error {
		w.Line.RunFor(d)
		w.Operators()[1].Freeze(kinds...)
		return nil
	}, Until: until, Within: within}
}

// failover makes the standby the leader; its view continues a while later.
func failover() []trial.Act {
	return []trial.Act{
		{Name: "the standby leads", Do: func(w *world.World) error {
			if len(w.Operators()) != 2 {
				return errors.New("there is no standby")
			}
			w.Operators()[0].Kill()
			w.Operators()[0].Lead()
			w.Line.RunFor(45 * time.Second) // a budget that was left closed is opened within a minute
			return nil
		}},
		{Name: "its view continues", Do: func(w *world.World) error { w.Operators()[0].Thaw(); return nil },
			Until: trial.Serves, Within: 10 * time.Minute},
	}
}

// claimsLeft says that the cluster is being deleted and only claims are left of its nodes.
func claimsLeft(w *world.World) bool {
	c := trial.Cluster(w)
	return c != nil && c.DeletionTimestamp != nil && len(w.Server.Objects("Pod")) == 0 &&
		len(w.Server.Objects("PersistentVolumeClaim")) > 0
}

// recreated is the scenario of most published losses of data: the leader fails over to one whose
// view still shows the deletion of an earlier cluster of the name. Kinds are those of which it
// stands still; all if none is named.
func recreated(t *testing.T, kinds ...string) *trial.Scenario {
	t.Helper()
	s := found(t, "recreate")
	s = s.With("recreate-stale-standby", "delete", standby())
	for i := range s.Acts {
		if s.Acts[i].Name == "delete" {
			s.Acts[i].Until = claimsLeft
		}
	}
	gone := func(w *world.World) bool { return trial.Cluster(w) == nil }
	// It has seen that no pod is left, and not yet that the claims go.
	s = s.With(s.Name, "create again", freezeAfter(40*time.Millisecond, gone, 20*time.Minute, kinds...))
	return s.With(s.Name, "", failover()...)
}

func TestDeletesByUID(t *testing.T) {
	s := recreated(t)
	refused := refusals{}
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(nothing, refused)})
	refused.want(t, refusal{theStandby, "delete", "PersistentVolumeClaim", byUID})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(of(claims, identity{uid: true}), refusals{})}, "I3")
}

// formedTwice is the scenario of two clusters of one name, and of a standby that saw the first one
// form and nothing after that.
func formedTwice() *trial.Scenario {
	s := trial.Named("create-twice-stale-standby",
		"a cluster is made twice, and a standby that saw the first one form leads when the second serves", true,
		deleteClaims, standby(),
		freeze(trial.Serves, time.Minute),
		trial.Act{Name: "delete", Do: func(w *world.World) error {
			w.Network.Forget(world.Namespace + "." + clusterName)
			return w.User().Delete(context.Background(), trial.Cluster(w).DeepCopy())
		}, Until: func(w *world.World) bool { return trial.Cluster(w) == nil }, Within: 20 * time.Minute},
		trial.Act{Name: "create again", Do: func(w *world.World) error {
			return w.User().Create(context.Background(), trial.ThreeRacks(deleteClaims))
		}, Until: trial.Serves, Within: 30 * time.Minute})
	return s.With(s.Name, "", failover()...)
}

// A status is written to the version that was seen: in a write to a status the API server does not
// look at the uid.
func TestStatusByVersion(t *testing.T) {
	s := formedTwice()
	refused := refusals{}
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(nothing, refused)})
	refused.want(t, refusal{theStandby, "status", "CassandraCluster", byVersion})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(of(clusters, identity{version: true}), refusals{})},
		"I5: operator-2 writes CassandraCluster")
}

// budgetReplaced is the scenario of a standby that saw the first budget of a ring which formed,
// while somebody deletes that afterwards and it is recreated.
func budgetReplaced() *trial.Scenario {
	budget := func(w *world.World) client.Object {
		return w.Server.Object("PodDisruptionBudget", keyOf(clusterName+"-dc1"))
	}
	s := trial.Named("budget-replaced", "a budget is deleted and recreated, and a standby that saw the first one "+
		"still closed leads", false, nil)
	s = s.With(s.Name, "create", standby())
	s.Acts[1].Until = func(w *world.World) bool { return budget(w) != nil }
	s = s.With(s.Name, "",
		freeze(trial.Serves, 15*time.Minute, "PodDisruptionBudget"),
		trial.Act{Name: "delete the budget", Do: func(w *world.World) error {
			return w.User().Delete(context.Background(), budget(w))
		}, Until: func(w *world.World) bool { return budget(w) != nil }, Within: time.Minute},
		trial.Act{Name: "the leader ends, and somebody edits the budget", Do: func(w *world.World) error {
			w.Operators()[0].Kill()
			edited := budget(w).DeepCopyObject().(*policyv1.PodDisruptionBudget)
			edited.Spec.MinAvailable.IntVal = 1 // so that whoever writes what it should be changes something
			return w.User().Update(context.Background(), edited)
		}})
	return s.With(s.Name, "",
		trial.Act{Name: "the standby leads", Do: func(w *world.World) error {
			w.Operators()[0].Lead()
			w.Line.RunFor(time.Minute)
			return nil
		}},
		trial.Act{Name: "its view continues", Do: func(w *world.World) error { w.Operators()[0].Thaw(); return nil },
			Until: trial.Serves, Within: 10 * time.Minute})
}

func TestChangesByUID(t *testing.T) {
	s := budgetReplaced()
	refused := refusals{}
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(nothing, refused)})
	refused.want(t, refusal{theStandby, "patch", "PodDisruptionBudget", byUID})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(of(budgets, identity{uid: true}), refusals{})},
		"I5: operator-2 writes PodDisruptionBudget")
}

// deletionBegun is the scenario of a standby that saw the first of two clusters when its deletion
// had only just begun: to its knowledge all nodes have to be stopped.
func deletionBegun() *trial.Scenario {
	s := trial.Named("recreate-standby-at-the-beginning",
		"a standby that saw the deletion of an earlier cluster begin leads when the next one serves", true,
		deleteClaims, standby(),
		trial.Act{Name: "delete", Do: func(w *world.World) error {
			w.Operators()[1].Freeze("CassandraNode", "Pod", "PersistentVolumeClaim", "ConfigMap", "PodDisruptionBudget")
			w.Network.Forget(world.Namespace + "." + clusterName)
			return w.User().Delete(context.Background(), trial.Cluster(w).DeepCopy())
		}},
		freeze(func(w *world.World) bool { return trial.Cluster(w) == nil }, 20*time.Minute),
		trial.Act{Name: "create again", Do: func(w *world.World) error {
			return w.User().Create(context.Background(), trial.ThreeRacks(deleteClaims))
		}, Until: trial.Serves, Within: 30 * time.Minute})
	return s.With(s.Name, "", failover()...)
}

// A change of a record names uid and version, of which each is enough where the record is another
// one.
func TestRecordsByUIDAndVersion(t *testing.T) {
	s := deletionBegun()
	for _, c := range []struct {
		without identity
		by      precondition
	}{
		{identity{}, byVersion},
		{identity{uid: true}, byVersion},
		{identity{version: true}, byUID},
	} {
		refused := refusals{}
		holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(of(records, c.without), refused)})
		refused.want(t, refusal{theStandby, "patch", "CassandraNode", c.by})
	}
	caught(t, trial.Trial{Scenario: s, Seed: 1,
		Wrap: stripping(of(records, identity{uid: true, version: true}), refusals{})},
		"I5: operator-2 writes CassandraNode")
}
