package cluster

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/upkeep"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// forming is a world in which all tickets are out and the nodes that are named do not come up.
func forming(t *testing.T, disk v1alpha1.DiskState, late ...string) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.lateDisk = disk
	for _, name := range late {
		w.late[name] = true
	}
	w.settle()
	if s := w.snapshot.Ledger.Step; s == nil || s.Stage != ledger.StageTickets {
		t.Fatalf("want a formation that waits, have %+v", s)
	}
	return w
}

func setting(name, value string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.CassandraYaml = v1alpha1.Settings{name: {Raw: []byte(value)}}
	}
}

func (w *world) change(change func(*v1alpha1.CassandraClusterSpec)) {
	change(&w.snapshot.Cluster.Spec)
	w.snapshot.Cluster.Generation++
}

func (w *world) pods() map[string]types.UID {
	out := map[string]types.UID{}
	for name, n := range w.snapshot.Nodes {
		if n.Pod != nil {
			out[name] = n.Pod.UID
		}
	}
	return out
}

var three = []string{"orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"}

// asSuccessor makes a world for another cluster of the same name, with the claims that an earlier
// one has left.
func asSuccessor(t *testing.T, old *world, adopt types.UID) *world {
	t.Helper()
	w := newWorld(t, old.snapshot.Cluster.Spec.Datacenters...)
	w.uids = 1000
	w.snapshot.Cluster.UID = "second-uid"
	w.snapshot.Cluster.Spec.Bootstrap = adopting(adopt)
	for name, n := range old.snapshot.Nodes {
		w.snapshot.Nodes[name] = &facts.Node{Name: name, Claims: n.Claims}
	}
	return w
}

func retained(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.settle()
	w.deleteCluster()
	for len(w.snapshot.Cluster.Finalizers) != 0 {
		w.pass()
	}
	return w
}

func (w *world) claims() map[types.UID]*corev1.PersistentVolumeClaim {
	out := map[types.UID]*corev1.PersistentVolumeClaim{}
	for _, n := range w.snapshot.Nodes {
		for _, c := range n.Claims {
			out[c.Claim.UID] = c.Claim
		}
	}
	return out
}

// disks makes every agent report what the earlier cluster has left on its disk.
func (w *world) disks() {
	for name, n := range w.snapshot.Nodes {
		if n.Agent != nil && n.Record.Spec.Member == nil {
			n.Agent.ClusterUID = "second-uid"
			n.Agent.Disk, n.Agent.HostID = v1alpha1.DiskMember, hostID(name)
			n.Agent.Owner = &v1alpha1.DiskOwner{ClusterUID: "cluster-uid", ClusterName: "shop.orders", Node: name}
		}
	}
}

func (w *world) deleteCluster() {
	when := metav1.NewTime(w.now)
	w.snapshot.Cluster.DeletionTimestamp = &when
}

func ptr[T any](v T) *T { return &v }

// replicated gives all nodes a keyspace of the user in their views.
func (w *world) replicated(keyspaces map[string]string) {
	w.keyspaces = keyspaces
	w.agents()
}

func nodesPerRack(n int32) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].NodesPerRack = n
		for i := range s.Datacenters[0].Racks {
			s.Datacenters[0].Racks[i].Nodes = nil
		}
	}
}

// until makes passes until the open step says so.
func (w *world) until(done func(*ledger.Step) bool) {
	w.t.Helper()
	for range 100 {
		if slices.ContainsFunc(w.snapshot.Ledger.Open(), done) {
			return
		}
		w.pass()
	}
	w.t.Fatalf("the step did not come, open are %+v", w.snapshot.Ledger.Open())
}

// joining is a ring of three nodes that a fourth is on its way into.
func joining(t *testing.T) *world {
	t.Helper()
	w := formed(t)
	w.late[newcomer] = true
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	w.settle()
	if s := w.snapshot.Ledger.Step; s == nil || s.Kind != ledger.JoinNode ||
		w.snapshot.Nodes[newcomer].Record.Spec.Join == nil {
		t.Fatalf("step %+v", s)
	}
	return w
}

// comes has the JVM of a node become NORMAL without its agent's saying that the ticket is done.
func (w *world) comes(n *facts.Node) {
	w.serve(n, n.Record.Spec.Join.Tokens)
	w.agents()
}

func uidOrNone(name string) types.UID {
	if name == "none" {
		return ""
	}
	return types.UID(name)
}

// wantBlocked wants a plan to report one thing at most, for this reason, of the second node and
// with these words.
func wantBlocked(t *testing.T, made plan.Plan, reason v1alpha1.Reason, words ...string) {
	t.Helper()
	all := reported(made)
	if reason == "" {
		if len(all) > 0 {
			t.Errorf("reported %+v", all)
		}
		return
	}
	if len(all) != 1 || all[0].Reason != reason || !slices.Equal(all[0].Nodes, []string{second}) {
		t.Fatalf("reported %+v, want %s of %s", all, reason, second)
	}
	for _, word := range words {
		if !strings.Contains(all[0].Message, word) {
			t.Errorf("message %q does not say %q", all[0].Message, word)
		}
	}
}

// preparing is a world whose second node's agent never answers, so that no ticket is out.
func preparing(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.absent[second] = true
	w.settle()
	if w.snapshot.Ledger.Step != nil {
		t.Fatal("a step is open")
	}
	return w
}

// writesOf are the writes of a plan on an object, in words: verb and kind.
func writesOf(p plan.Plan, name string) []string {
	var out []string
	for _, w := range p.Writes {
		if w.Object != nil && w.Object.GetName() == name {
			out = append(out, string(w.Verb)+" "+plan.KindOf(w.Object))
		}
	}
	return out
}

func wantWrites(t *testing.T, p plan.Plan, name string, want ...string) {
	t.Helper()
	if got := writesOf(p, name); !slices.Equal(got, want) {
		t.Errorf("on %s: %v, want %v:\n%s", name, got, want, p)
	}
}

func next(w *world) plan.Plan { return Next(w.snapshot, w.now) }

// deleting marks a record as being deleted.
func deleting(n *facts.Node) {
	when := metav1.Now()
	n.Record.DeletionTimestamp = &when
}

func formed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.settle()
	w.wantOpen()
	return w
}

// inStage is a world of three nodes whose first step has just come to a stage.
func inStage(t *testing.T, stage ledger.Stage) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	for range 100 {
		if l := w.snapshot.Ledger; l != nil && l.Step != nil && l.Step.Stage == stage {
			return w
		}
		w.pass()
	}
	t.Fatalf("never in stage %s", stage)
	return nil
}

// added is a datacenter for a ring that has data.
func added(name string, sizes ...int32) v1alpha1.Datacenter {
	dc := datacenter(name, sizes...)
	dc.Extend = &v1alpha1.Extend{LocalConsistencyOnly: true}
	return dc
}

// withShop is a datacenter to which keyspace shop is extended, of which its nodes are rebuilt.
func (w *world) withShop(dc v1alpha1.Datacenter) func(*v1alpha1.CassandraClusterSpec) {
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	dc.Extend.Keyspaces = []v1alpha1.ExtendedKeyspace{{Name: "shop"}}
	return func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, dc) }
}

// viewOf is what is known of a world now. What a test changes in the view, the world does not see;
// but the objects are the same.
func viewOf(w *world) *assess.View {
	seen := *w.snapshot
	seen.Ledger, seen.Cluster = w.snapshot.Ledger.Copy(), w.snapshot.Cluster.DeepCopy()
	return assess.NewView(&seen, w.now)
}

// keeperOver keeps up what is known in a view.
func keeperOver(v *assess.View) (*upkeep.Keeper, *plan.Draft) {
	draft := &plan.Draft{Plan: plan.Plan{Wake: interval}}
	return upkeep.New(v, draft), draft
}

// engineOver runs the procedures on what is known in a view.
func engineOver(v *assess.View) *procedure.Engine {
	keeper, draft := keeperOver(v)
	return procedure.NewEngine(v, draft, procedures(guard.All()), guard.All(), keeper.PublishSeedsOf)
}

const (
	first, second, third = "orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"

	firstOfRack, secondOfRack = "orders-dc1-r1-0", "orders-dc1-r1-1"
	ofNextRack                = "orders-dc1-r2-0"

	newcomer = "orders-dc1-r1-1"
)

// adopting begins with the disks of an earlier cluster, if one is given.
func adopting(uid types.UID) *v1alpha1.Bootstrap {
	if uid == "" {
		return nil
	}
	return &v1alpha1.Bootstrap{Adopt: &v1alpha1.Adoption{ClusterUID: uid}}
}

// open is the step that is open, of whatever class; nil if none is.
func (w *world) open() *ledger.Step {
	if open := w.snapshot.Ledger.Open(); len(open) > 0 {
		return open[0]
	}
	return nil
}
