package safeguard

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/jolokia"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// growing begins a scenario with a ring of three to which clients write, where there are hosts for
// six.
func growing(name, about string, acts ...trial.Act) *trial.Scenario {
	s := trial.Named(name, about, true, nil, acts...)
	s.HostsPerZone, s.Grows = 2, true
	return s
}

// respec has the user change the spec.
func respec(name string, until func(*world.World) bool, changes ...func(*v1alpha1.CassandraClusterSpec)) trial.Act {
	return trial.Edit(name, func(c *v1alpha1.CassandraCluster) {
		for _, change := range changes {
			change(&c.Spec)
		}
	}, until, 20*time.Minute)
}

// nodeMore is a spec with a node more in each rack.
func nodeMore(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NodesPerRack = 2 }

func paused(is bool) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Paused = is }
}

func cleanup(is v1alpha1.Automation) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Automation.Cleanup = is }
}

// datacenterMore is a spec with a second datacenter in the zones of the first.
func datacenterMore(extend *v1alpha1.Extend) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		dc := s.Datacenters[0].DeepCopy()
		dc.Name, dc.Extend = "dc2", extend
		s.Datacenters = append(s.Datacenters, *dc)
	}
}

// until a guard has spoken, or, where it is taken away, until the step begins that it is to hold
// back.
func until(by string, step ledger.Kind) func(*world.World) bool {
	return func(w *world.World) bool {
		c := trial.Cluster(w)
		return c != nil && (blockedBy(w, by) || c.Status.Step != nil && c.Status.Step.Name == string(step))
	}
}

// prepared says that so many nodes have an empty disk and wait for their tickets.
func prepared(nodes int) func(*world.World) bool {
	return func(w *world.World) bool {
		n := 0
		for _, o := range w.Server.Objects("CassandraNode") {
			if o.(*v1alpha1.CassandraNode).Status.Disk == v1alpha1.DiskEmpty {
				n++
			}
		}
		return n == nodes
	}
}

// waiting lets time pass.
func waiting(d time.Duration) trial.Act {
	return trial.Act{Name: "wait", Do: func(w *world.World) error { w.Line.RunFor(d); return nil }}
}

func sandbox(w *world.World, node string) *pod.Sandbox {
	for _, s := range w.Pods.Sandboxes() {
		if s.Name() == node {
			return s
		}
	}
	return nil
}

const last = clusterName + "-dc1-r3-0"

// away is the scenario of a ring that is to grow while a member is down.
func away() *trial.Scenario {
	var host string
	return growing("grow-away", "a ring is to grow while a host is down",
		respec("make ready", prepared(3), nodeMore, paused(true)),
		trial.Act{Name: "lose a host", Do: func(w *world.World) error {
			host = sandbox(w, last).Host()
			w.Kube.Lose(host)
			return nil
		}},
		waiting(time.Minute),
		respec("grow", until("MemberDown", ledger.JoinNode), paused(false)),
		trial.Act{Name: "return it", Do: func(w *world.World) error { w.Kube.Return(host, true); return nil },
			Until: trial.Serves, Within: 2 * time.Hour},
	)
}

// leaving has a user take a member out of the ring by hand.
func leaving(node string) trial.Act {
	return trial.Act{Name: "decommission by hand", Do: func(w *world.World) error {
		client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:7777/jolokia/", User: "helenus",
			Password: "simulated", Transport: sandbox(w, node).JVM()})
		if err != nil {
			return err
		}
		w.Line.Go("nodetool", func() {
			_, _ = client.ExecBlocking(context.Background(),
				jolokia.Exec("org.apache.cassandra.db:type=StorageService", "decommission(boolean)", true))
		}, nil)
		return nil
	}, Until: func(w *world.World) bool { return sandbox(w, node).JVM().Mode() == string(facts.ModeLeaving) },
		Within: time.Minute}
}

// stays has the JVM of a member that leaves killed: it comes back as the member that it was.
func stays(node string) trial.Act {
	return trial.Act{Name: "kill its JVM", Do: func(w *world.World) error { sandbox(w, node).JVM().Kill(); return nil },
		Until: trial.Serves, Within: 2 * time.Hour}
}

// beside is the scenario of a ring that is to grow while a user takes a member out of it.
func beside() *trial.Scenario {
	return growing("grow-beside", "a ring is to grow while a member is being decommissioned by hand",
		respec("make ready", prepared(3), nodeMore, paused(true)),
		leaving(last), waiting(6*time.Second),
		respec("grow", until("TopologyChangeInProgress", ledger.JoinNode), paused(false)),
		stays(last),
	)
}

// cleanUpBeside is the scenario of a ring that is to be cleaned up while a user takes a member out
// of it.
func cleanUpBeside() *trial.Scenario {
	return growing("clean-up-beside", "a ring that has grown is to be cleaned up while a member is being "+
		"decommissioned by hand",
		respec("grow", trial.Serves, nodeMore, cleanup(v1alpha1.AutomationRecommend)),
		leaving(last), waiting(6*time.Second),
		respec("clean up", until("TopologyChangeInProgress", ledger.Cleanup), cleanup(v1alpha1.AutomationAutomatic)),
		stays(last),
	)
}

// cleanUpApart is the scenario of a ring that is to be cleaned up while one member cannot talk to
// the others.
func cleanUpApart() *trial.Scenario {
	return growing("clean-up-apart", "a ring that has grown is to be cleaned up while the others do not see a member",
		respec("grow", trial.Serves, nodeMore, cleanup(v1alpha1.AutomationRecommend)),
		trial.Act{Name: "isolate", Do: func(w *world.World) error {
			w.Network.Isolate(sandbox(w, last).Address())
			return nil
		}},
		waiting(time.Minute),
		respec("clean up", until("RingViewsDiffer", ledger.Cleanup), cleanup(v1alpha1.AutomationAutomatic)),
		waiting(10*time.Second),
		trial.Act{Name: "heal", Do: func(w *world.World) error {
			w.Network.Heal(sandbox(w, last).Address())
			return nil
		}, Until: trial.Serves, Within: 2 * time.Hour},
	)
}

// apart is the scenario of a ring that is to grow while one member cannot talk to the others, and
// of what happens meanwhile.
func apart(by string, meanwhile func(w *world.World) error) *trial.Scenario {
	return growing("grow-apart", "a ring is to grow while the others do not see a member",
		respec("make ready", prepared(3), nodeMore, paused(true)),
		trial.Act{Name: "isolate", Do: func(w *world.World) error {
			w.Network.Isolate(sandbox(w, last).Address())
			return nil
		}},
		waiting(time.Minute),
		trial.Act{Name: "meanwhile", Do: meanwhile},
		waiting(time.Minute),
		respec("grow", until(by, ledger.JoinNode), paused(false)),
		trial.Act{Name: "heal", Do: func(w *world.World) error {
			w.Network.Heal(sandbox(w, last).Address())
			return nil
		}, Until: trial.Serves, Within: 2 * time.Hour},
	)
}

// keyspace has a client make a keyspace.
func keyspace(name string, replicas map[string]int) func(*world.World) error {
	return func(w *world.World) error {
		session, err := sandbox(w, first).JVM().CQL(context.Background())
		if err != nil {
			return err
		}
		return session.CreateKeyspace(context.Background(), name, replicas)
	}
}

// setBack is the scenario of a ledger that is put back to how it was before a node joined, in a
// ring that is to grow further.
func setBack() *trial.Scenario {
	var before map[string]string
	return growing("grow-set-back", "the ledger of a ring that has grown is put back to how it was before",
		trial.Act{Name: "back up", Do: func(w *world.World) error {
			before = w.Server.Object("ConfigMap", ledgerKey).(*corev1.ConfigMap).DeepCopy().Data
			return nil
		}},
		respec("grow", trial.Serves, firstRackMore),
		trial.Act{Name: "restore", Do: func(w *world.World) error {
			m := w.Server.Object("ConfigMap", ledgerKey).(*corev1.ConfigMap).DeepCopy()
			m.Data = before
			return w.User().Update(context.Background(), m)
		}},
		respec("grow further", until("UnknownRingMember", ledger.JoinNode), nodeMore),
	)
}

// firstRackMore is a spec with a node more in the first rack.
func firstRackMore(s *v1alpha1.CassandraClusterSpec) {
	s.Datacenters[0].Racks[0].Nodes = new(int32(2))
}

// dirtyGrowth is the scenario of a node that is to join on the disk of an earlier cluster.
func dirtyGrowth(name string, acts ...trial.Act) *trial.Scenario {
	var v leftover
	s := trial.Named(name, "the volume of a node that is to join is the disk of an earlier cluster", true, deleteClaims,
		append([]trial.Act{
			v.deletion(), v.kept(),
			{
				Name: "create again", Do: func(w *world.World) error {
					return w.User().Create(context.Background(), trial.ThreeRacks(deleteClaims))
				},
				Until: trial.Serves, Within: 30 * time.Minute,
			},
			{Name: "dirty", Do: func(w *world.World) error { v.handOut(w); return nil }},
		}, acts...)...)
	s.HostsPerZone, s.Grows = 2, true
	return s
}

// lostWhileJoining is the scenario of a node that joins while its record and the ledger are lost.
func lostWhileJoining() *trial.Scenario {
	node := types.NamespacedName{Namespace: world.Namespace, Name: clusterName + "-dc1-r1-1"}
	return growing("grow-lost", "ledger and record are deleted while a node joins",
		respec("grow", func(w *world.World) bool {
			s := sandbox(w, node.Name)
			return s != nil && s.JVM() != nil && s.JVM().Mode() == string(facts.ModeJoining)
		}, firstRackMore),
		trial.Act{Name: "lose both", Do: func(w *world.World) error {
			return loseLedgerAnd(w, w.Server.Object("CassandraNode", node))
		},
			Until: until("JoiningDiskNotEmpty", ledger.JoinNode), Within: 20 * time.Minute})
}

// line is an operator's to the node that is to join, and may be cut.
type line struct {
	observe.Asker
	cut *bool
}

func (l line) Facts(ctx context.Context) (*facts.Agent, error) {
	if *l.cut {
		return nil, errors.New("no answer")
	}
	return l.Asker.Facts(ctx)
}

func (l line) WaitFacts(ctx context.Context, digest string, limit time.Duration) (*facts.Agent, error) {
	if *l.cut {
		return nil, errors.New("no answer")
	}
	return l.Asker.WaitFacts(ctx, digest, limit)
}

// A node that is not heard may have any disk.
func TestWhoJoinsHasToAnswer(t *testing.T) {
	const by = "JoiningNodeNotReady"
	cut := false
	wrap := world.Wrap{Asker: func(_ *world.Operator, t observe.Target, a observe.Asker) observe.Asker {
		if t.Node == clusterName+"-dc1-r1-1" {
			return line{a, &cut}
		}
		return a
	}}
	s := dirtyGrowth("grow-unheard", trial.Act{Name: "cut the line",
		Do: func(*world.World) error { cut = true; return nil }},
		respec("grow", until(by, ledger.JoinNode), firstRackMore), waiting(time.Minute), trial.Act{
			Name: "mend the line", Do: func(*world.World) error { cut = false; return nil },
			Until: until("JoiningDiskNotEmpty", ledger.JoinNode), Within: 20 * time.Minute,
		})
	refused := judged(t)
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: wrap})
	if refused[by] == 0 {
		t.Errorf("it has refused nothing: %v", refused)
	}
	judged(t, by)
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: wrap}, foreignTicket)
}

const foreignTicket = "gets a ticket for the disk of a member of another cluster"

// smallVolumes is a cluster whose volumes have room for some 4,700 rows: 100 kB are Cassandra's
// own, and a row takes 200 bytes.
func smallVolumes(c *v1alpha1.CassandraCluster) {
	c.Spec.Node.Storage.Claims.Data.Size = new(resource.MustParse("1Mi"))
}

// rowsOnSmall is how many rows a node of smallVolumes has room for, with some to spare.
const rowsOnSmall = 4000

// narrow is the scenario of a ring of one rack that gets another: the first node there has to hold
// what three hold in the first one.
func narrow(by string) *trial.Scenario {
	s := trial.Named("grow-narrow", "a ring of one rack gets another, whose first node has no room for what it is to "+
		"hold", true, func(c *v1alpha1.CassandraCluster) {
		smallVolumes(c)
		dc := &c.Spec.Datacenters[0]
		dc.Racks, dc.NodesPerRack, dc.PlannedReplicationFactor = dc.Racks[:1], 3, 2
	},
		trial.Act{Name: "write much", Do: func(w *world.World) error { return w.WriteRows(rowsOnSmall*3/2, nil) }},
		waiting(2*time.Minute),
		respec("grow", until(by, ledger.JoinNode), func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks = append(s.Datacenters[0].Racks, trial.ThreeRacks(nil).Spec.Datacenters[0].Racks[1])
		}),
		waiting(3*time.Minute), unharmed(fullDisks))
	for i := range s.Acts {
		if s.Acts[i].Name == "write" {
			s.Acts[i].Do = func(w *world.World) error { return w.WriteRows(20, map[string]int{"dc1": 2}) }
		}
	}
	s.HostsPerZone, s.Grows = 3, true
	return s
}

// lopsided is the scenario of a ring of which one rack alone grows. Clients write as much as its
// nodes together have room for.
func lopsided(by string) *trial.Scenario {
	s := trial.Named("grow-lopsided", "one of three racks is to have five nodes, the others one", true, smallVolumes,
		respec("grow", until(by, ledger.JoinNode),
			func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = new(int32(5)) }), over(by),
		trial.Act{Name: "write what there is room for", Do: func(w *world.World) error {
			const replicas = 3
			return w.WriteRows(serving(w)*rowsOnSmall/replicas, nil)
		}}, unharmed(fullDisks))
	s.HostsPerZone, s.Grows = 5, true
	return s
}

// anywhere is the scenario of a datacenter that is added to a ring whose clients read from any
// replica.
func anywhere(by string) *trial.Scenario {
	a := asking{keyspace: world.Keyspace, write: ring.All, read: ring.One}
	return growing("grow-anywhere", "a datacenter is added while clients read from any replica, whatever datacenter "+
		"it is in",
		a.reading(20*time.Minute), respec("grow", until(by, ledger.AddDatacenter),
			datacenterMore(&v1alpha1.Extend{Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: world.Keyspace}}})), over(by),
		waiting(time.Minute), unharmed(a.found))
}

// missing is the scenario of a datacenter to which a keyspace is to be extended that nobody has
// made.
func missing(by string) *trial.Scenario {
	var f failures
	return growing("grow-missing", "a datacenter is to get a keyspace that there is not",
		f.watch(), respec("grow", until(by, ledger.AddDatacenter),
			datacenterMore(&v1alpha1.Extend{Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "missing"}},
				LocalConsistencyOnly: true})), waiting(10*time.Minute), unharmed(f.found))
}

// placed is the scenario of a datacenter in which a keyspace has replicas before it is there, which
// clients made by create, write to and read from.
func placed(name string, create func(*world.World) error, write, read ring.Consistency) *trial.Scenario {
	const by = "ReplicasAlreadyPlaced"
	a := asking{keyspace: "placed", write: write, read: read}
	return growing(name, "a datacenter is added in which a keyspace has replicas already",
		waiting(2*time.Minute), trial.Act{Name: "place", Do: create}, waiting(time.Minute), a.reading(20*time.Minute),
		respec("grow", until(by, ledger.AddDatacenter), extended()), over(by), waiting(time.Minute),
		unharmed(a.found))
}

// simple has a client make a keyspace that is replicated without regard to datacenters.
func simple(name string) func(*world.World) error {
	return func(w *world.World) error {
		session, err := sandbox(w, first).JVM().CQL(context.Background())
		if err != nil {
			return err
		}
		return session.CreateSimpleKeyspace(context.Background(), name, 3)
	}
}

// extended is a datacenter that gets the keyspace of the clients.
func extended() func(*v1alpha1.CassandraClusterSpec) {
	return datacenterMore(&v1alpha1.Extend{Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: world.Keyspace}},
		LocalConsistencyOnly: true})
}

// unrepaired is the scenario of a datacenter that cannot be repaired, because a member of another
// has lost its disk meanwhile.
func unrepaired() *trial.Scenario {
	var f failures
	return growing("grow-disk-lost", "a host loses its disk while a datacenter is added",
		respec("grow", trial.Operates(v1alpha1.OperationRebuild), extended()),
		trial.Act{Name: "lose a disk", Do: func(w *world.World) error {
			host := sandbox(w, last).Host()
			w.Kube.Lose(host)
			w.Line.RunFor(time.Minute)
			w.Kube.Return(host, false)
			return nil
		}, Until: phase(last, v1alpha1.PhaseDataLost), Within: 15 * time.Minute},
		f.watch(), waiting(time.Hour), unharmed(f.found))
}

// guardCase is the scenario of a guard of the operator.
type guardCase struct {
	guard    string
	scenario *trial.Scenario
	// doubled are guards that refuse the same.
	doubled []string
	// by is what is said without it.
	by string
}

// try wants the guard to refuse, with those that double it away or not, and the harm to be caught
// without it.
func (c guardCase) try(t *testing.T) {
	t.Helper()
	t.Run(c.scenario.Name+"/"+c.guard, func(t *testing.T) {
		refused := judged(t)
		holds(t, trial.Trial{Scenario: c.scenario, Seed: 1})
		if refused[c.guard] == 0 {
			t.Errorf("it has refused nothing: %v", refused)
		}
		judged(t, append(c.doubled, c.guard)...)
		caught(t, trial.Trial{Scenario: c.scenario, Seed: 1}, c.by)
	})
}

// strangeKeyspace is the scenario of a ring that is to grow with a keyspace whose replicas only
// Cassandra can place. What does not need to know where they are goes on, and says what it leaves
// out.
func strangeKeyspace(by string) *trial.Scenario {
	return growing("grow-strange", "a ring is to grow that has a keyspace with transient replicas",
		respec("leave the cleanup", trial.Serves, firstRackMore, cleanup(v1alpha1.AutomationRecommend)),
		trial.Act{Name: "create", Do: func(w *world.World) error {
			session, err := sandbox(w, first).JVM().CQL(context.Background())
			if err != nil {
				return err
			}
			return session.CreateStrangeKeyspace(context.Background(), "strange",
				"NetworkTopologyStrategy {dc1=3/1}")
		}},
		respec("clean up", func(w *world.World) bool {
			n, _ := w.Server.Object("CassandraNode",
				types.NamespacedName{Namespace: world.Namespace, Name: first}).(*v1alpha1.CassandraNode)
			c := trial.Cluster(w)
			return n != nil && len(n.Spec.Operations) == 0 && c.Status.Step == nil && len(c.Status.Recommended) == 0
		}, cleanup(v1alpha1.AutomationAutomatic)),
		respec("grow", until(by, ledger.JoinNode), nodeMore))
}

func growthCases() []guardCase {
	const opened = "I2: JoinNode is opened"
	nothing := func(*world.World) error { return nil }
	return []guardCase{
		{"JoiningDiskNotEmpty", dirtyGrowth("grow-dirty",
			respec("grow", until("JoiningDiskNotEmpty", ledger.JoinNode), firstRackMore)), nil, foreignTicket},
		{"DiskNotEmpty", dirtyGrowth("datacenter-dirty",
			respec("grow", until("DiskNotEmpty", ledger.AddDatacenter),
				datacenterMore(&v1alpha1.Extend{LocalConsistencyOnly: true}))), nil, foreignTicket},
		{"JVMNotAbsent", lostWhileJoining(), []string{"JoiningDiskNotEmpty"},
			"gets a ticket for a disk that is not empty"},
		{"MemberDown", away(), []string{"RingViewsDiffer"}, opened},
		{"TopologyChangeInProgress", beside(), []string{"MemberDown"}, opened},
		{"RingViewsDiffer", apart("RingViewsDiffer", nothing), nil, opened},
		{"SchemaVersionsDiffer", apart("SchemaVersionsDiffer", keyspace("other", map[string]int{"dc1": 3})),
			[]string{"RingViewsDiffer"}, opened},
		{"UnknownRingMember", setBack(), nil, opened},
		{"ReplicationNotUnderstood", strangeKeyspace("ReplicationNotUnderstood"), nil, opened},
		{"TopologyChangeInProgress", cleanUpBeside(), nil, "I2: Cleanup is opened"},
		{"RingViewsDiffer", cleanUpApart(), nil, "I2: Cleanup is opened"},
		{"MemberDown", unrepaired(), nil, "an operation of node"},
		{"RacksUnbalanced", lopsided("RacksUnbalanced"), nil, "the disk of node " + clusterName + "-dc1-r2-0 is full"},
		{"DataVolumeTooSmall", narrow("DataVolumeTooSmall"), nil, " is full"},
		{"LocalConsistencyNotConfirmed", anywhere("LocalConsistencyNotConfirmed"), nil, "reads nothing at ONE"},
		{"ExtensionSourceMissing", missing("ExtensionSourceMissing"), nil, "an operation of node"},
		{"ReplicasAlreadyPlaced", placed("grow-simple", simple("placed"), ring.Quorum, ring.Quorum), nil,
			"reads nothing at QUORUM"},
		// The rows are on all replicas that there are, of which the datacenter that is not there
		// yet has none.
		{"ReplicasAlreadyPlaced", placed("grow-placed", keyspace("placed", map[string]int{"dc1": 3, "dc2": 1}),
			ring.Quorum, ring.One), nil, "reads nothing at ONE"},
	}
}

func TestGuardsOfGrowth(t *testing.T) {
	for _, c := range growthCases() {
		c.try(t)
	}
}
