package cluster

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// ephemeral is a formed ring of three whose data goes with its pods.
func ephemeral(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.snapshot.Cluster.Spec.Node.Storage = &v1alpha1.Storage{
		Ephemeral: &v1alpha1.EphemeralStorage{SizeLimit: quantity("10Gi")}}
	w.settle()
	w.wantOpen()
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.settle()
	return w
}

func otherGracePeriod(s *v1alpha1.CassandraClusterSpec) {
	s.Node.TerminationGracePeriodSeconds = ptr(int64(200))
}

// The data is on a volume of the pod, and there are no claims.
func TestAPodHasItsDataInIt(t *testing.T) {
	w := ephemeral(t)
	n := w.snapshot.Nodes[first]
	i := slices.IndexFunc(n.Pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == v1alpha1.VolumeData })
	if i < 0 || n.Pod.Spec.Volumes[i].EmptyDir == nil || n.Pod.Spec.Volumes[i].EmptyDir.SizeLimit.String() != "10Gi" {
		t.Errorf("its volumes are %+v", n.Pod.Spec.Volumes)
	}
	for _, c := range []corev1.Container{n.Pod.Spec.InitContainers[0], n.Pod.Spec.Containers[0]} {
		mounts := func(m corev1.VolumeMount) bool { return m.Name == v1alpha1.VolumeData }
		if !slices.ContainsFunc(c.VolumeMounts, mounts) {
			t.Errorf("container %s has no data volume", c.Name)
		}
	}
	if len(n.Claims)+len(n.Record.Spec.Claims) > 0 {
		t.Errorf("it has claims: %v, %v", n.Claims, n.Record.Spec.Claims)
	}
}

// Of a change that takes new pods a plan says what it costs, and one node follows after the other,
// however many may be down.
func TestAPlanSaysThatNodesAreReplaced(t *testing.T) {
	w := ephemeral(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		otherGracePeriod(s)
		s.Node.CassandraYaml = v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")}}
	})
	ahead := Ahead(w.snapshot, Next(w.snapshot, w.now), w.now)
	got := map[string]plan.Takes{}
	for _, c := range ahead.Changes {
		got[c.Field] = c.Takes
	}
	if got["node.terminationGracePeriodSeconds"] != plan.Replacement || len(ahead.Waves) != 3 {
		t.Errorf("got %v, waves %v", got, ahead.Waves)
	}
}

// A roll-out has one node replaced: it stops, the others are repaired, and only then its pod goes.
// Its record takes over the change with the ticket, and no other pod goes meanwhile.
func TestARollOutReplacesANode(t *testing.T) {
	w := ephemeral(t)
	w.work(constantly(v1alpha1.OperationCancelled)) // the repair runs until then
	pods, was := w.pods(), w.snapshot.Ledger.Members[first]
	w.change(otherGracePeriod)
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RenewNode && s.Stage == ledger.StageOperations })
	n := w.snapshot.Nodes[first]
	if n.Record.Spec.State != v1alpha1.StateStopped || w.pods()[first] != pods[first] {
		t.Fatalf("it is to be %s, and its pod is %v", n.Record.Spec.State, n.Pod)
	}
	w.work(constantly(v1alpha1.OperationSucceeded))
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RenewNode && s.Stage == ledger.StageTickets })
	for range 10 {
		if n.Record.Spec.Join == nil {
			w.pass()
		}
	}
	spec := n.Record.Spec
	if spec.Join == nil || spec.Join.Replace == nil || spec.Join.Replace.HostID != was ||
		spec.State != v1alpha1.StateRunning || *spec.Pod.TerminationGracePeriodSeconds != 200 || n.Pod != nil {
		t.Errorf("its record is %+v, its pod %v", spec, n.Pod)
	}
	if got := w.pods(); got[second] != pods[second] || got[three[2]] != pods[three[2]] {
		t.Errorf("the pods are %v, were %v", got, pods)
	}
}

// Until its pod goes a node has its data, and starts again on that if the change is taken back, or
// another one goes down.
func TestANodeKeepsItsPodUntilItsTicket(t *testing.T) {
	for name, disturb := range map[string]func(*world){
		"the change is taken back": func(w *world) {
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Node.TerminationGracePeriodSeconds = nil })
		},
		"another member goes down": goesDown(three[2]),
		"the ledger is lost": func(w *world) {
			w.snapshot.Ledger = nil
			delete(w.snapshot.Shared.ConfigMaps, v1alpha1.LedgerName("orders"))
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Node.TerminationGracePeriodSeconds = nil })
		},
	} {
		w := ephemeral(t)
		w.work(constantly(v1alpha1.OperationCancelled))
		pods := w.pods()
		w.change(otherGracePeriod)
		w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RenewNode && s.Stage == ledger.StageOperations })
		disturb(w)
		w.pass()
		w.settle()
		n := w.snapshot.Nodes[first]
		if n.Record.Spec.State != v1alpha1.StateRunning || n.Record.Spec.Join != nil || w.pods()[first] != pods[first] {
			t.Errorf("%s: it is to be %s in pod %s, was in %s: %s", name, n.Record.Spec.State, w.pods()[first],
				pods[first], ledgerInWords(w.snapshot.Ledger))
		}
	}
}

// A node that is to be repaired may lack what another one has: until then none gives its data up,
// and no pod is evicted.
func TestNodesAreRepairedBeforeOthersGiveTheirDataUp(t *testing.T) {
	w := ephemeral(t)
	pods := w.pods()
	due := []ledger.RepairDue{{Node: second, Reason: v1alpha1.RepairReplaced}}
	w.snapshot.Ledger.RepairDue = due
	w.change(otherGracePeriod)
	made := w.settle()
	budget := w.snapshot.Shared.Budgets[v1alpha1.DisruptionBudgetName("orders", "dc1")]
	if !slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
		return b.Reason == v1alpha1.BlockedRepairDue && strings.Contains(b.Message, "kubectl helenus repair "+second)
	}) || w.snapshot.Ledger.Step != nil || budget.Spec.MinAvailable.IntValue() != 3 {
		t.Errorf("blocked %v, step %v, evictions leave %v", made.Blocked, w.snapshot.Ledger.Step,
			budget.Spec.MinAvailable)
	}
	w.snapshot.Ledger.RepairDue = nil
	w.work(constantly(v1alpha1.OperationCancelled))
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RenewNode && s.Stage == ledger.StageOperations })
	w.snapshot.Ledger.RepairDue = due
	made = w.settle()
	if w.snapshot.Ledger.Step != nil || w.pods()[first] != pods[first] ||
		w.snapshot.Nodes[first].Record.Spec.State != v1alpha1.StateRunning {
		t.Errorf("step %s, pod %s of %s, blocked %v", ledgerInWords(w.snapshot.Ledger), w.pods()[first], pods[first],
			made.Blocked)
	}
}

// What a ring on ephemeral storage is not asked, and what can be changed of it.
func TestWhatARingOnEphemeralStorageRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.CassandraClusterSpec)
		want   string
	}{
		"another release": {func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" },
			"version: 5.0.6 → 5.0.9: a node on ephemeral storage"},
		"claims": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Storage = &v1alpha1.Storage{Claims: &v1alpha1.StorageClaims{
				Data: &v1alpha1.VolumeClaim{Size: quantity("10Gi")}}}
		}, "another kind of storage is for another datacenter"},
		"to stop": {func(s *v1alpha1.CassandraClusterSpec) { s.Stopped = true },
			"would be lost with the pods"},
		"to stop a datacenter": {func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Stopped = true },
			"would be lost with the pods"},
		"to adopt": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Bootstrap = &v1alpha1.Bootstrap{Adopt: &v1alpha1.Adoption{ClusterUID: "former"}}
		}, "bootstrap.adopt is set"},
		"another limit": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Storage = &v1alpha1.Storage{Ephemeral: &v1alpha1.EphemeralStorage{SizeLimit: quantity("20Gi")}}
		}, ""},
	} {
		w := ephemeral(t)
		w.change(c.change)
		switch made := Next(w.snapshot, w.now); {
		case c.want == "" && made.Stalled != nil:
			t.Errorf("%s: refused: %s", name, made.Stalled.Message)
		case c.want != "" && (made.Stalled == nil || !strings.Contains(made.Stalled.Message, c.want)):
			t.Errorf("%s: want it refused with %q: %+v", name, c.want, made.Stalled)
		}
	}
}
