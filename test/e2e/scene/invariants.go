package scene

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
)

// Invariants watches the objects of a namespace for what must never happen, whatever else does:
//
//   - a ticket to join as a new node, in a datacenter of which a node was ever let to serve
//   - an empty list of seeds, or none, once the ring is formed; a seed that is no address of a node
//   - a node whose host id changes, or two nodes that have the same
//   - a bound claim that is deleted, unless its cluster is, with the policy Delete, or the test deletes it
//   - a pod that is deleted, or a JVM that is started again, and nobody asked for it
//
// Kinds are watched apart, so that of two of them one is older: what one kind says about another is
// judged at the end.
type Invariants struct {
	mutex      sync.Mutex
	violations []string
	// suspects are judged when asked: each says whether it is innocent after all.
	suspects []suspect

	clusters map[types.UID]*clusterMemory
	// expected are the uids of objects that the test deletes itself, and names of nodes whose JVM
	// it kills.
	expected map[string]bool
	// left are nodes whose records say that they have left the ring.
	left map[string]bool
	// addresses that any node ever reported.
	addresses map[string]bool
}

type suspect struct {
	what     string
	innocent func() bool
}

// clusterMemory is what was seen of a cluster.
type clusterMemory struct {
	// deleting, and the policy that the spec had then.
	deleting bool
	policy   v1alpha1.ClaimPolicy
	// onScaleIn is the policy for claims of nodes that have left.
	onScaleIn v1alpha1.ClaimPolicy
	// served are the datacenters of which a node was let to serve.
	served map[string]bool
	// tickets are the ids of tickets that were seen.
	tickets map[string]bool
	// hostIDs by node.
	hostIDs map[string]string
	// replaced are the host ids whose place other members have taken.
	replaced map[string]bool
	// formed says that the ledger has a formed datacenter.
	formed bool
}

// NewInvariants knows of nothing yet.
func NewInvariants() *Invariants {
	return &Invariants{clusters: map[types.UID]*clusterMemory{}, expected: map[string]bool{},
		left: map[string]bool{}, addresses: map[string]bool{}}
}

// ExpectDeletion says that the test itself deletes an object.
func (v *Invariants) ExpectDeletion(object client.Object) { v.expect(string(object.GetUID())) }

// ExpectOtherPods says that the operator may give a node other pods, as often as it has to.
func (v *Invariants) ExpectOtherPods(node string) { v.expect("pods of " + node) }

// ExpectRestart says that the test ends the JVM of a node in its present pod.
func (v *Invariants) ExpectRestart(node string) { v.expect("restart of " + node) }

func (v *Invariants) expect(what string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.expected[what] = true
}

// Violations are what happened that must not, in the order in which it was seen.
func (v *Invariants) Violations() []string {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	out := slices.Clone(v.violations)
	for _, s := range v.suspects {
		if !s.innocent() {
			out = append(out, s.what)
		}
	}
	return out
}

func (v *Invariants) violated(format string, args ...any) {
	if what := fmt.Sprintf(format, args...); !slices.Contains(v.violations, what) {
		v.violations = append(v.violations, what)
	}
}

func (v *Invariants) suspect(innocent func() bool, format string, args ...any) {
	v.suspects = append(v.suspects, suspect{what: fmt.Sprintf(format, args...), innocent: innocent})
}

func (v *Invariants) cluster(uid types.UID) *clusterMemory {
	if v.clusters[uid] == nil {
		v.clusters[uid] = &clusterMemory{served: map[string]bool{}, tickets: map[string]bool{},
			hostIDs: map[string]string{}, replaced: map[string]bool{}}
	}
	return v.clusters[uid]
}

// Observe takes an event in.
func (v *Invariants) Observe(e follow.Event) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	switch o := e.Object().(type) {
	case *v1alpha1.CassandraCluster:
		memory := v.cluster(o.UID)
		memory.deleting = memory.deleting || o.DeletionTimestamp != nil || e.New == nil
		memory.policy, memory.onScaleIn = o.Spec.Volumes.OnClusterDeletion, o.Spec.Volumes.OnScaleIn
	case *v1alpha1.CassandraNode:
		if e.New != nil {
			v.node(e, o)
		}
	case *corev1.ConfigMap:
		v.configMap(e, o)
	case *corev1.PersistentVolumeClaim:
		if o.Spec.VolumeName != "" && (e.New == nil || o.DeletionTimestamp != nil) {
			v.claimDeleted(o)
		}
	case *corev1.Pod:
		if e.New == nil || o.DeletionTimestamp != nil {
			v.podDeleted(o)
		}
	}
}

func (v *Invariants) node(e follow.Event, n *v1alpha1.CassandraNode) {
	memory := v.cluster(n.Spec.Cluster.UID)
	if n.Status.Address != "" {
		v.addresses[n.Status.Address] = true
	}
	if n.Spec.ClientTraffic != v1alpha1.TrafficClosed {
		memory.served[n.Spec.Datacenter] = true
	}
	if t := n.Spec.Join; t != nil && !memory.tickets[t.ID] {
		memory.tickets[t.ID] = true
		if t.Mode == v1alpha1.JoinNew && memory.served[n.Spec.Datacenter] {
			v.violated("node %s was given the ticket %s to join as a new node although datacenter %s had served "+
				"clients", n.Name, t.ID, n.Spec.Datacenter)
		}
	}
	if n.Spec.State == v1alpha1.StateDecommissioned {
		v.left[n.Name] = true
	}
	for _, r := range n.Spec.Replaced {
		memory.replaced[r.HostID] = true
	}
	if m := n.Spec.Member; m != nil {
		v.hostID(memory, n.Name, m.HostID)
	}
	v.restarts(e, n)
}

func (v *Invariants) hostID(memory *clusterMemory, node, id string) {
	switch known := memory.hostIDs[node]; {
	case known == "" || known == id || memory.replaced[known] || v.left[node]:
	case memory.replaced[id]:
		return // an event of the record that came after one of the ledger
	default:
		v.violated("node %s had the host id %s and has %s", node, known, id)
	}
	for _, other := range slices.Sorted(maps.Keys(memory.hostIDs)) {
		if other != node && memory.hostIDs[other] == id {
			v.violated("nodes %s and %s have the same host id %s", other, node, id)
		}
	}
	memory.hostIDs[node] = id
}

// restarts of the JVM that the agent counts, in one pod.
func (v *Invariants) restarts(e follow.Event, n *v1alpha1.CassandraNode) {
	before, ok := e.Old.(*v1alpha1.CassandraNode)
	if !ok || n.Status.Restarts == nil || before.Status.PodUID != n.Status.PodUID {
		return
	}
	had := int32(0)
	if before.Status.Restarts != nil {
		had = before.Status.Restarts.Count
	}
	if n.Status.Restarts.Count > had && !v.expected["restart of "+n.Name] {
		v.violated("the JVM of node %s was started again (%s) and nobody asked for it: %s", n.Name,
			n.Status.Restarts.LastReason, n.Status.Message)
	}
}

func (v *Invariants) configMap(e follow.Event, m *corev1.ConfigMap) {
	uid := types.UID(m.Labels[v1alpha1.LabelClusterUID])
	if uid == "" {
		return
	}
	memory := v.cluster(uid)
	switch m.Name {
	case v1alpha1.LedgerName(m.Labels[v1alpha1.LabelCluster]):
		ledger, err := ledger.Decode(m.Data, uid)
		if err != nil {
			v.violated("the ledger %s cannot be read: %s", m.Name, err)
			return
		}
		memory.formed = memory.formed || len(ledger.Formed) > 0
		for _, id := range ledger.Replaced {
			memory.replaced[id] = true
		}
		for _, node := range slices.Sorted(maps.Keys(ledger.Members)) {
			v.hostID(memory, node, ledger.Members[node])
		}
	case v1alpha1.SeedsName(m.Labels[v1alpha1.LabelCluster]):
		v.seeds(e, m, memory)
	}
}

func (v *Invariants) seeds(e follow.Event, m *corev1.ConfigMap, memory *clusterMemory) {
	if e.New == nil {
		if memory.formed {
			v.suspect(func() bool { return v.expected[string(m.UID)] || memory.deleting },
				"the seeds %s of a formed ring were deleted", m.Name)
		}
		return
	}
	list := strings.FieldsFunc(m.Data[layout.SeedsKey], func(r rune) bool { return r == ',' })
	if len(list) == 0 && memory.formed {
		v.violated("the list of seeds %s of a formed ring is empty", m.Name)
	}
	for _, address := range list {
		v.suspect(func() bool { return v.addresses[address] }, "the seed %s in %s is the address of no node", address,
			m.Name)
	}
}

func (v *Invariants) claimDeleted(c *corev1.PersistentVolumeClaim) {
	memory := v.cluster(types.UID(c.Labels[v1alpha1.LabelClusterUID]))
	v.suspect(func() bool {
		return v.expected[string(c.UID)] || memory.deleting && memory.policy == v1alpha1.ClaimDelete ||
			memory.onScaleIn == v1alpha1.ClaimDelete && v.left[c.Labels[v1alpha1.LabelNode]]
	}, "the bound claim %s (uid %s) was deleted and nobody asked for it", c.Name, c.UID)
}

func (v *Invariants) podDeleted(p *corev1.Pod) {
	uid := types.UID(p.Labels[v1alpha1.LabelClusterUID])
	if uid == "" {
		return
	}
	memory := v.cluster(uid)
	v.suspect(func() bool {
		return v.expected[string(p.UID)] || v.expected["pods of "+p.Name] || memory.deleting || v.left[p.Name]
	},
		"pod %s (uid %s) was deleted and nobody asked for it", p.Name, p.UID)
}
