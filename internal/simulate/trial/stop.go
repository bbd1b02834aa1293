package trial

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// stopScenarios are those in which a ring is stopped as a whole.
func stopScenarios() []*Scenario {
	// The agents hear of the table within ten minutes.
	short := []Act{{Name: "create a table", Do: keepDeletions},
		passing("ten minutes", 10*time.Minute, again)}
	stop := Act{Name: "stop", Do: whileWriting(stopping(true)), Until: isStopped, Within: 30 * time.Minute}
	start := Act{Name: "start", Do: respec(stopping(false)), Until: again, Within: 30 * time.Minute}
	with := func(acts ...Act) []Act { return append(slices.Clone(short), acts...) }
	return []*Scenario{
		scenario("stop", "a ring is stopped while clients write, and stays so", threeRacks, stop, anHour(isStopped)),
		scenario("stop-start", "a ring is stopped for longer than a table keeps its deletions, and starts again "+
			"at other addresses", threeRacks, with(stop, anHour(isStopped), start)...),
		inBoth(scenario("stop-two-datacenters", "a ring of two datacenters is stopped and starts again", twoCenters,
			Act{Name: "stop", Do: respec(stopping(true)), Until: isStopped, Within: 30 * time.Minute}, start)),
		startingInVain(2, trying(scenario("stop-crossed", "a ring is stopped, and each node starts at the address "+
			"that another had", threeRacks,
			Act{Name: "stop", Do: func(w *world.World) error {
				pods := w.Pods.Sandboxes()
				for i, s := range pods {
					w.Kube.HandAddress(s.Name(), pods[(i+1)%len(pods)].Address())
				}
				return whileWriting(stopping(true))(w)
			}, Until: isStopped, Within: 30 * time.Minute}, start))),
		scenario("stop-changed", "a ring is stopped, gets another setting meanwhile, and takes it over in turn "+
			"when it has started", threeRacks, stop,
			Act{Name: "change it", Do: respec(concurrentWrites("20"))}, anHour(isStopped),
			Act{Name: "start", Do: respec(stopping(false)), Until: rolledOut, Within: time.Hour}),
		scenario("stop-after-one", "a ring is stopped of which a node was down for longer than a table keeps its "+
			"deletions: that one alone waits for the user when it starts", threeRacks, with(
			Act{Name: "lose", Do: first((*kube.Cluster).Lose), Until: readyNodes(2), Within: 10 * time.Minute},
			anHour(),
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }),
				Until: all(allBut(v1alpha1.PhaseDownTooLong), serves(2)), Within: 15 * time.Minute},
			stop, anHour(isStopped),
			Act{Name: "start", Do: respec(stopping(false)), Within: 30 * time.Minute,
				Until: all(allBut(v1alpha1.PhaseDownTooLong), serves(2), started)})...),
		scenario("stop-without-one", "a ring is stopped for longer than a table keeps its deletions, and a host "+
			"is lost meanwhile: the others start without it", threeRacks, with(stop,
			Act{Name: "lose", Do: first((*kube.Cluster).Lose)}, anHour(isStopped),
			Act{Name: "start", Do: respec(stopping(false)), Within: 30 * time.Minute,
				Until: all(serves(2), readyNodes(2), started)},
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }),
				Until: again, Within: 15 * time.Minute})...),
		scenario("stop-beside-lost", "a ring is stopped while a host is lost: the others stop, and that "+
			"one is named until it is heard of", threeRacks,
			Act{Name: "lose", Do: first((*kube.Cluster).Lose), Until: readyNodes(2),
				Within: 10 * time.Minute},
			Act{Name: "stop", Do: respec(stopping(true)), Within: time.Hour,
				Until: all(serves(0), blockedWith(v1alpha1.BlockedAgentUnreachable, clusterName+"-dc1-r1-0"))},
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }),
				Until: isStopped, Within: 15 * time.Minute}, start),
		alone(scenario("stop-hints", "hints are not sent while a ring is to stop, and it stops after a while and "+
			"names them", threeRacks,
			Act{Name: "lose", Do: first((*kube.Cluster).Lose), Until: readyNodes(2), Within: 10 * time.Minute},
			Act{Name: "write", Do: func(w *world.World) error {
				lastPod(w).JVM().PauseHints(true)
				w.WriteOn(60)
				return nil
			}}, passing("five minutes", 5*time.Minute),
			Act{Name: "return", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }), Until: again,
				Within: 15 * time.Minute},
			Act{Name: "stop", Do: respec(stopping(true)), Within: 30 * time.Minute,
				Until: all(isStopped, blockedWith(v1alpha1.BlockedHintsNotDelivered,
					clusterName+"-dc1-r3-0 keeps hints for "+clusterName+"-dc1-r1-0",
					"the ring was stopped all the same"))}, start)),
		both(scenario("stop-datacenter", "one of two datacenters is stopped while clients write; the other one takes "+
			"over a setting meanwhile, and serves; the first starts again and takes it over, too", twoOfThree,
			stopAlone, Act{Name: "change it", Do: respec(concurrentWrites("20")), Within: time.Hour,
				Until: all(dcStopped, setIn("dc1", "20"))},
			anHour(dcStopped, serves(3)), startAlone(rolledOut))),
		waiting(both(scenario("stop-datacenter-long", "one of two datacenters is stopped for longer than a table "+
			"keeps its deletions: its nodes wait for the user when it is to start, and hold nothing up", twoOfThree,
			with(
				stopAlone, anHour(dcStopped, serves(3)),
				startAlone(all(allWait, serves(3), started)),
				Act{Name: "change it", Do: respec(concurrentWrites("20"))}, anHour(allWait, serves(3)))...))),
		stopsOnlyReplicas(),
		trying(both(scenario("stop-datacenter-back", "one of two datacenters is to stop, and at once no more",
			twoOfThree, Act{Name: "stop", Do: func(w *world.World) error {
				w.Line.After(20*time.Second, "it is not to stop", func() { _ = respec(stoppingAlone(false))(w) })
				return whileWriting(stoppingAlone(true))(w)
			}, Until: again, Within: 30 * time.Minute}))),
	}
}

// waiting is a scenario that ends while a roll-out waits.
func waiting(s *Scenario) *Scenario {
	s.Waits = true
	return s
}

func stopping(yes bool) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Stopped = yes }
}

// twoOfThree are two datacenters of three racks.
var twoOfThree = shape{datacenters: 2, racks: 3, nodes: 1}

// both has the client write to two datacenters of three racks.
func both(s *Scenario) *Scenario {
	s.Acts[1].Do = func(w *world.World) error { return w.WriteRows(20, map[string]int{"dc1": 3, "dc2": 3}) }
	return s
}

var stopAlone = Act{Name: "stop", Do: whileWriting(stoppingAlone(true)), Until: dcStopped, Within: 30 * time.Minute}

func startAlone(until func(*world.World) bool) Act {
	return Act{Name: "start", Do: respec(stoppingAlone(false)), Until: until, Within: time.Hour}
}

func stoppingAlone(yes bool) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].Stopped = yes }
}

// stopsOnlyReplicas is to stop a datacenter that alone has a keyspace.
func stopsOnlyReplicas() *Scenario {
	accept := func(w *world.World) error {
		e := exceptionOf(w, v1alpha1.ExceptionAcceptUnavailable, "")
		e.Keyspace = world.Keyspace
		return respec(func(s *v1alpha1.CassandraClusterSpec) { s.Exceptions = append(s.Exceptions, e) })(w)
	}
	s := scenario("stop-datacenter-alone", "one of two datacenters is to stop, and a keyspace has replicas there "+
		"alone: it does not, and serves, until a person accepts that it is unavailable", twoOfThree,
		Act{Name: "stop", Do: respec(stoppingAlone(true)), Within: 30 * time.Minute,
			Until: either(blockedWith(v1alpha1.BlockedOnlyReplicas, "dc2", world.Keyspace), dcStopped)},
		Act{Name: "write there", Within: 15 * time.Minute,
			Until: func(w *world.World) bool { return w.WriteWithin("dc2", "alone", 5) == 5 }},
		passing("ten minutes", 10*time.Minute, serves(6)),
		Act{Name: "accept it", Do: accept, Until: dcStopped, Within: 30 * time.Minute},
		startAlone(all(started, serves(6))))
	s.Acts[1].Do = func(w *world.World) error { return w.WriteRows(20, map[string]int{"dc2": 3}) }
	return s
}

// isStopped says that nothing of the ring runs, and that the cluster says so.
func isStopped(w *world.World) bool {
	c := get(w)
	return c != nil && c.Status.Step != nil && strings.HasPrefix(c.Status.Step.Message, "stopped since ") &&
		len(w.Pods.Sandboxes()) == 0 && c.Status.ReadyNodes == 0
}

// dcStopped says that nothing of the second datacenter runs, that the cluster says since when and
// what comes of it, and that the first one serves.
func dcStopped(w *world.World) bool {
	for _, s := range w.Pods.Sandboxes() {
		if s.Datacenter() == "dc2" {
			return false
		}
	}
	return started(w) && serves(3)(w) &&
		blockedWith(v1alpha1.NoticeDatacenterStopped, "dc2 is stopped since", "have to be repaired")(w)
}

// setIn says that all nodes of a datacenter have a number of concurrent writes.
func setIn(datacenter, value string) func(*world.World) bool {
	return func(w *world.World) bool {
		return !slices.ContainsFunc(w.Server.Objects("CassandraNode"), func(o client.Object) bool {
			n := o.(*v1alpha1.CassandraNode)
			return n.Spec.Datacenter == datacenter &&
				(string(n.Spec.Configuration.CassandraYaml["concurrent_writes"].Raw) != value ||
					n.Status.Configuration == nil || n.Status.Configuration.RestartNeeded || !n.Status.Ready)
		})
	}
}

// allWait says that every node of the second datacenter waits for the user.
func allWait(w *world.World) bool {
	return !slices.ContainsFunc(w.Server.Objects("CassandraNode"), func(o client.Object) bool {
		n := o.(*v1alpha1.CassandraNode)
		return n.Spec.Datacenter == "dc2" && n.Status.Phase != v1alpha1.PhaseDownTooLong
	}) && blockedWith(v1alpha1.NoticeNodeNotStarting, "start-anyway")(w)
}

// started says that a stop is over, and its start with it.
func started(w *world.World) bool {
	c := get(w)
	return c != nil && c.Status.ObservedGeneration == c.Generation &&
		(c.Status.Step == nil || c.Status.Step.Name != string(ledger.StopRing) &&
			c.Status.Step.Name != string(ledger.StopDatacenter))
}

// wasAsked: a ring is stopped as a whole, or one of its datacenters, because a user says so.
func (o *checker) wasAsked(s *ledger.Step) {
	c := get(o.w)
	if c == nil || o.Fault != nil {
		return
	}
	if s.Kind == ledger.StopRing && !c.Spec.Stopped {
		o.violated("I1: the ring is to stop, and nobody has asked for that")
	}
	for _, dc := range c.Spec.Datacenters {
		if s.Kind == ledger.StopDatacenter && slices.Contains(s.Datacenters, dc.Name) &&
			dc.Stopped != (s.Stage == ledger.StageClose) {
			o.violated("I1: datacenter %s is in the stage %s, and nobody has asked for that", dc.Name, s.Stage)
		}
	}
}

// stopsWith says that nodes of a datacenter are stopped together now, or were.
func (o *checker) stopsWith(datacenter string) bool {
	return o.lastLedger.Stops() != "" || o.lastLedger.StoppedDatacenter(datacenter) != nil ||
		o.stepStops() && slices.Contains(o.lastLedger.Step.Datacenters, datacenter)
}

func (o *checker) stepStops() bool {
	return o.lastLedger != nil && o.lastLedger.Step != nil && o.lastLedger.Step.Kind == ledger.StopDatacenter
}

// stoppedAlone is how many nodes have records of datacenters that are stopped alone.
func (o *checker) stoppedAlone() (nodes int) {
	for _, object := range o.w.Server.Objects("CassandraNode") {
		if n := object.(*v1alpha1.CassandraNode); o.lastLedger.StoppedDatacenter(n.Spec.Datacenter) != nil {
			nodes++
		}
	}
	return nodes
}

// stops judges a node that is asked to go down with all others, of the ring or of its datacenter:
// none of these is open to clients any more, and none keeps hints for another node that is up, for
// as long as they are waited for.
func (t *turn) stops(n *v1alpha1.CassandraNode) {
	const waits = 10 * time.Minute
	if t.Fault != nil || t.lastLedger.Step == nil || t.w.Line.Now().Sub(t.lastLedger.Step.OpenedAt) >= waits {
		return // others may have come back just now
	}
	goes := func(s *pod.Sandbox) bool { return !t.stepStops() || s.Datacenter() == n.Spec.Datacenter }
	up := map[string]string{}
	for _, s := range t.w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.Mode() == string(facts.ModeNormal) {
			up[j.HostID()] = s.Name()
			if j.NativeOpen() && goes(s) {
				t.violated("I1: node %s is asked to stop with all others while %s is open to clients", n.Name, s.Name())
			}
		}
	}
	for _, s := range t.w.Pods.Sandboxes() {
		if s.JVM() == nil || !goes(s) {
			continue
		}
		for hostID, files := range s.Content(v1alpha1.VolumeData).Data.Hints() {
			if files > 0 && up[hostID] != "" {
				t.violated("node %s is asked to stop with all others while %s keeps hints for %s", n.Name, s.Name(),
					up[hostID])
			}
		}
	}
}

// starts judges the start of a node with all others: in each datacenter the address of a pod that
// is there is that of a seed.
func (o *checker) starts(s *pod.Sandbox) {
	if o.Fault != nil || o.lastLedger.Stops() != ledger.StageOpen {
		return
	}
	seeds, _ := o.w.Server.Object("ConfigMap", keyOf(v1alpha1.SeedsName(clusterName))).(*corev1.ConfigMap)
	found := map[string]bool{}
	for _, other := range o.w.Pods.Sandboxes() {
		found[other.Datacenter()] = found[other.Datacenter()] || seeds != nil &&
			slices.Contains(strings.Split(seeds.Data[layout.SeedsKey], ","), other.Address().String())
	}
	for dc, is := range found {
		if !is {
			o.violated("node %s starts with all others, and no seed of datacenter %s is there", s.Name(), dc)
		}
	}
}

// inBoth has the client write to two datacenters.
func inBoth(s *Scenario) *Scenario {
	s.Acts[1].Do = func(w *world.World) error { return w.WriteRows(20, map[string]int{"dc1": 2, "dc2": 2}) }
	return s
}
