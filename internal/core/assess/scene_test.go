package assess

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

const first, second, third = "orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"

var (
	now  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	when = metav1.NewTime(now)
)

// scene is a formation of three nodes, as far as it is known: two are NORMAL, and the agent of the
// second answers while no JVM of it runs.
type scene struct {
	*facts.Snapshot
	// n is the second node.
	n *facts.Node
	// lost says that the ledger is lost.
	lost bool
}

func newScene(t *testing.T) *scene {
	t.Helper()
	size, one := resource.MustParse("10Gi"), int32(1)
	s := &facts.Snapshot{
		Cluster: &v1alpha1.CassandraCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop", UID: "cluster-uid", Generation: 1},
			Spec: v1alpha1.CassandraClusterSpec{
				Version: "5.0.6",
				Datacenters: []v1alpha1.Datacenter{{
					Name: "dc1", NumTokens: 4, PlannedReplicationFactor: 3,
					Racks: []v1alpha1.Rack{{Name: "r1", Nodes: &one}, {Name: "r2", Nodes: &one},
						{Name: "r3", Nodes: &one}},
				}},
				Node: &v1alpha1.NodeTemplate{
					NodeSettings: v1alpha1.NodeSettings{
						Storage: &v1alpha1.Storage{
							Claims: &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: &size}},
						},
					},
				},
			},
		},
		Install: facts.Install{Version: "test", ImageRepository: "cassandra", AgentImage: "helenus-agent:test"},
		Nodes:   map[string]*facts.Node{},
		Ledger: &ledger.Ledger{ClusterUID: "cluster-uid", Steps: 1, Step: &ledger.Step{
			ID: "step", Kind: ledger.FormRing, Stage: ledger.StageTickets, Datacenters: []string{"dc1"},
			Nodes: []string{first, second, third},
		}},
	}
	for _, w := range render.WantedNodes(s.Cluster, s.Install) {
		n := &facts.Node{Name: w.Name, Record: render.Record(render.OwnerOf(s.Cluster), w, nil, ""),
			Claims: map[string]*facts.Claim{}}
		n.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: w.Name, UID: types.UID("pod-" + w.Name),
			Annotations: map[string]string{
				v1alpha1.AnnotationTemplateHash: render.PodHash(w.Pod),
			}}}
		n.Pod.Spec.NodeName, n.Pod.Status.Phase = "host-1", corev1.PodRunning
		id := s.Ledger.Step.IntentID("join", w.Name)
		n.Record.Spec.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: id}, Mode: v1alpha1.JoinNew}
		n.Record.Status.PodUID, n.Record.Status.Join = n.Pod.UID, &v1alpha1.IntentStatus{ID: id, StartedAt: &when}
		n.Agent = &facts.Agent{PodUID: n.Pod.UID, Address: "address-" + w.Name, Disk: v1alpha1.DiskJoining,
			Process: facts.ProcessAbsent}
		s.Nodes[w.Name] = n
	}
	for _, name := range []string{first, third} {
		n := s.Nodes[name]
		n.Record.Status.Join.FinishedAt, n.Record.Status.Disk = &when, v1alpha1.DiskMember
		n.Agent.Disk, n.Agent.Process, n.Agent.HostID = v1alpha1.DiskMember, facts.ProcessRunning, "host-"+name
		n.Agent.Ring = &facts.Ring{Mode: facts.ModeNormal, HostID: "host-" + name}
	}
	n := s.Nodes[second]
	n.Agent.Address, n.Agent.HostID = "10.9.9.9", "agent-id"
	n.Record.Status.HostID, n.Record.Status.Address, n.Record.Status.Disk = "status-id", "10.9.9.8",
		v1alpha1.DiskJoining
	return &scene{Snapshot: s, n: n}
}

// view of the scene as it is now.
func (s *scene) view() *View {
	v := NewView(s.Snapshot, now)
	if s.lost {
		return v.Without(s.Ledger)
	}
	return v
}

// wanted is what the spec describes of the second node.
func (s *scene) wanted(t *testing.T) render.Wanted {
	t.Helper()
	for _, w := range render.WantedNodes(s.Cluster, s.Install) {
		if w.Name == second {
			return w
		}
	}
	t.Fatalf("the spec does not describe %s", second)
	return render.Wanted{}
}

// sees has the first node see an endpoint.
func (s *scene) sees(e facts.Endpoint) {
	ring := s.Nodes[first].Agent.Ring
	ring.Endpoints = append(ring.Endpoints, e)
}

// containers of the second node's pod, of which one waits and one runs.
var waitingContainer = corev1.ContainerStatus{
	Name: "cassandra", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
}

var runningContainer = corev1.ContainerStatus{
	Name: "cassandra", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
}

func hashOf(c *v1alpha1.NodeConfiguration) string {
	hash, err := config.Hash(c)
	if err != nil {
		panic(err) // it is that of a test
	}
	return hash
}
