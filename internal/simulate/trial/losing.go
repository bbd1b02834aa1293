package trial

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// losingScenarios are those in which the disk of a member is lost while a step is open: what can go
// on does, and the rest says by name whom it waits for, and can be withdrawn.
func losingScenarios() []*Scenario {
	const oldest, last = clusterName + "-dc1-r1-0", clusterName + "-dc2-r1-0"
	lost := func(node string) []string { return []string{node, "DataLost", "must be replaced"} }
	names := func(reason v1alpha1.Reason, node string, words ...string) func(*world.World) bool {
		return blockedWith(reason, append(lost(node), words...)...)
	}
	one := threeRacks.growing(2)
	anotherJoin := []Act{
		{Name: "ask for a join", Do: respec(nodesPerRack(2)), Until: names("MemberDown", oldest),
			Within: 15 * time.Minute},
		{Name: "take it back", Do: respec(nodesPerRack(1)), Until: not(names("MemberDown", oldest)),
			Within: 15 * time.Minute},
		anHour(names("OperationPostponed", oldest))}
	var out []*Scenario
	for _, l := range []struct {
		name, about string
		of          growing
		before      func(*v1alpha1.CassandraCluster)
		change      func(*v1alpha1.CassandraClusterSpec)
		open        func(*world.World) bool
		node        string
		says        func(*world.World) bool
		then        []Act
	}{
		{"disk-lost-cleanup", "the disk of a node is lost that is cleaned up after a join: its cleanup is postponed",
			one, nil, fourthRack, Operates(v1alpha1.OperationCleanup), oldest,
			names("OperationPostponed", oldest, "Cleanup"), anotherJoin},
		{"disk-lost-keyspaces", "the disk of a member is lost while the system keyspaces are repaired: the repair is " +
			"postponed", one, func(c *v1alpha1.CassandraCluster) { plannedReplicationFactor(1)(&c.Spec) },
			plannedReplicationFactor(3), Operates(v1alpha1.OperationRepair), oldest,
			names("OperationPostponed", oldest, "RaiseSystemKeyspaces"), anotherJoin},
		{"disk-lost-rebuild", "the disk of a member is lost from which a new datacenter is rebuilt: the others " +
			"have its data, and the repair waits", one, nil, secondDatacenter, Operates(v1alpha1.OperationRebuild),
			oldest, names("MemberDown", oldest), nil},
		{"disk-lost-rebuilt", "the disk of a node of a new datacenter is lost while it is rebuilt: client traffic " +
			"stays closed there", one, nil, secondDatacenter, Operates(v1alpha1.OperationRebuild), last,
			names("NodeDown", last, "Rebuild"), nil},
		{"disk-lost-join", "the disk of a member is lost from which a node streams that joins: the join is " +
			"withdrawn, and the ring is free", one, nil, fourthRack, joins, oldest,
			all(blockedWith("JoinFailed", "abandoned"), names("MemberDown", oldest), unavailableIf(refused)), []Act{
				{Name: "take it back", Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
					s.Datacenters[0].Racks = s.Datacenters[0].Racks[:3]
				}), Until: all(recordsAre(3), idle), Within: 30 * time.Minute},
				{Name: "change a setting", Do: respec(yamlSetting("compaction_throughput", `"32MiB/s"`)),
					Until: all(haveTaken(3), idle), Within: 30 * time.Minute}}},
		{"disk-lost-rollout", "the disk of a member is lost while a setting reaches the nodes: those restart that " +
			"the ring can do without", nineNodes.growing(3), nil, concurrentWrites("20"), all(haveTaken(1), serves(9)),
			clusterName + "-dc1-r2-0", all(haveTaken(4), blockedWith("ConsistencyWouldBeLost",
				clusterName+"-dc1-r2-0 down already"), not(noted(refused))), nil},
		{"disk-lost-version", "the disk of a member is lost while two releases are in the ring: those follow that " +
			"the ring can do without", nineNodes.growing(3),
			func(c *v1alpha1.CassandraCluster) { version("4.1.10")(&c.Spec) },
			version("5.0.9"), all(haveTaken(1), serves(9)), clusterName + "-dc1-r2-0", all(haveTaken(4),
				blockedWith("ConsistencyWouldBeLost", clusterName+"-dc1-r2-0 down already"), not(noted(refused))), nil},
	} {
		s := l.of.scenario(l.name, l.about, l.change)
		s.Acts[0] = l.of.create(leavesToUser)
		if l.before != nil {
			s.Acts[0] = l.of.create(leavesToUser, l.before)
		}
		s.Acts[len(s.Acts)-1].Until = l.open
		s.Acts = append(s.Acts, Act{Name: "lose the disk", Do: loseDiskOf(l.node), Until: l.says, Within: time.Hour})
		s.Acts = append(s.Acts, l.then...)
		out = append(out, alone(losing(s)))
	}
	return out
}

func fourthRack(s *v1alpha1.CassandraClusterSpec) {
	s.Datacenters[0].Racks = append(s.Datacenters[0].Racks,
		v1alpha1.Rack{Name: "r4", Node: &v1alpha1.NodeSettings{Placement: &v1alpha1.Placement{Zone: zones[3]}}})
}

// joins says that a node joins the ring just now.
func joins(w *world.World) bool {
	return slices.ContainsFunc(w.Pods.Sandboxes(), func(s *pod.Sandbox) bool {
		return s.JVM() != nil && s.JVM().Mode() == string(facts.ModeJoining)
	})
}

// idle says that no join is open. After a lost ledger a cleanup is, which waits for the lost disk.
func idle(w *world.World) bool {
	c := get(w)
	return c != nil && (c.Status.Step == nil || c.Status.Step.Name != string(ledger.JoinNode))
}

// refused notes that a client's write was.
const refused = "a write was refused"

func noted(what string) func(*world.World) bool {
	return func(w *world.World) bool { return w.Notes[what] != "" }
}

// unavailableIf says that the condition Available is False if something was noted.
func unavailableIf(what string) func(*world.World) bool {
	return func(w *world.World) bool {
		c := get(w)
		return w.Notes[what] == "" ||
			c != nil && meta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.ConditionAvailable)
	}
}

// probe has a client write through every node, so many times.
func probe(w *world.World, times int) {
	if acknowledged, asked := w.Probe(); acknowledged < asked {
		w.Notes[refused] = fmt.Sprintf("%s: %d of %d", w.Line.Now(), asked-acknowledged, asked)
	}
	if times > 0 {
		w.Line.After(2*time.Second, "a client writes", func() { probe(w, times-1) })
	}
}

// loseDiskOf has the host of a node go, and come back empty in a minute. Meanwhile a client writes.
func loseDiskOf(node string) func(*world.World) error {
	return func(w *world.World) error {
		w.Line.After(time.Minute, "a client writes", func() { probe(w, 60) })
		for _, s := range w.Pods.Sandboxes() {
			if host := s.Host(); s.Name() == node {
				w.Kube.Lose(host)
				w.Line.After(time.Minute, "the host returns empty", func() { w.Kube.Return(host, false) })
			}
		}
		return nil
	}
}
