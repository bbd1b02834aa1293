package kube

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/simulate/timeline"
)

// Runtime runs pods on hosts: what containerd, images and programs are to kubelet.
type Runtime interface {
	// Sandbox makes a pod that has an address and its volumes by name; nothing runs in it yet.
	Sandbox(pod *corev1.Pod, host string, address netip.Addr, volumes map[string]*Volume) Sandbox
	// Destroy takes away for good what is on a volume.
	Destroy(v *Volume)
}

// Sandbox is a pod on a host.
type Sandbox interface {
	// Start starts a container. Exited is called once, when it has ended, however that came.
	Start(container, image string, exited func(code int))
	// Stop asks a container to end, as SIGTERM does.
	Stop(container string)
	// Kill ends it.
	Kill(container string)
	// Started says that the startup probe of a container passes, Ready the readiness probe.
	Started(container string) bool
	Ready(container string) bool
	// Remove lets the pod go: nothing runs in it any more.
	Remove()
}

// Volume is a disk of a host.
type Volume struct {
	// Name of the persistent volume.
	Name string
	Host string
	// Size in bytes, 0 for any.
	Size int64
	// Content is whatever the runtime keeps on it; nil on a new one.
	Content any
}

// Host of the cluster.
type Host struct {
	Name, Zone string
	// up says that the host runs; linked that its kubelet reaches the API server.
	up, linked bool
	// lost says that it was lost once.
	lost bool
	// scrapped says that it never comes back.
	scrapped bool
	// out says that it has the taint which says that it is out of service.
	out bool
	// cordoned says that no more pods are placed on it.
	cordoned bool
	// rejects is why kubelet refuses pods; no reason if it takes them.
	rejects failure
	// lingers is until when kubelet does not get to pods that were deleted by force.
	lingers time.Time
	// kubelet is its release; empty for one that does everything but resize pods. Full says that
	// it has no room for pods to become larger, for now.
	kubelet   string
	full      bool
	number    int
	addresses int
	ready     bool
}

// Options of a cluster.
type Options struct {
	Zones        []string
	HostsPerZone int
}

// Cluster is the part of Kubernetes that is not the API server.
type Cluster struct {
	line    *timeline.Timeline
	client  client.Client
	runtime Runtime
	hosts   []*Host
	volumes map[string]*Volume
	pods    map[types.UID]*pod
	order   []*pod
	placing *timeline.Event
	budgets *timeline.Event
	// broken images cannot be pulled.
	broken map[string]bool
	// private images are pulled by pods alone that name the Secret.
	private map[string]string
	// moved is how often a tag has become another image.
	moved map[string]int
	// handed are addresses for the next pods of some names.
	handed map[string]netip.Addr
}

// New makes the hosts, and a default storage class by the name standard, whose volumes are bound
// when a pod is placed.
func New(line *timeline.Timeline, c client.Client, runtime Runtime, o Options) (*Cluster, error) {
	k := &Cluster{line: line, client: c, runtime: runtime, volumes: map[string]*Volume{}, pods: map[types.UID]*pod{},
		broken: map[string]bool{}, private: map[string]string{}, moved: map[string]int{},
		handed: map[string]netip.Addr{}}
	for i := range max(o.HostsPerZone, 1) {
		for _, zone := range o.Zones {
			k.hosts = append(k.hosts, &Host{Name: fmt.Sprintf("m-%s-%d", zone, i), Zone: zone, number: len(k.hosts) + 1,
				up: true, linked: true, ready: true})
		}
	}
	for _, m := range k.hosts {
		k.register(m)
	}
	return k, nil
}

func (m *Host) object() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name,
			Labels: map[string]string{corev1.LabelHostname: m.Name, corev1.LabelTopologyZone: m.Zone}},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: m.kubelet},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				Reason: "KubeletReady"}},
			Allocatable: corev1.ResourceList{
				corev1.ResourceMemory: *resource.NewQuantity(hostMemory, resource.BinarySI)}},
	}
}

// Break has an image that cannot be pulled.
func (k *Cluster) Break(image string) { k.broken[image] = true }

// Restrict has an image that only pods pull which name a Secret that exists.
func (k *Cluster) Restrict(image, secret string) { k.private[image] = secret }

// Move has a tag become another image, for pods that pull it from now on.
func (k *Cluster) Move(tag string) { k.moved[tag]++ }

// Hosts by name, in the order in which they were made.
func (k *Cluster) Hosts() []string {
	names := make([]string, len(k.hosts))
	for i, m := range k.hosts {
		names[i] = m.Name
	}
	return names
}

func (k *Cluster) host(name string) *Host {
	i := slices.IndexFunc(k.hosts, func(m *Host) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return k.hosts[i]
}

// Changed is to be called for every change that the API server makes to a pod, a claim, or a
// budget.
func (k *Cluster) Changed(object client.Object, deleted bool) {
	switch o := object.(type) {
	case *corev1.Pod:
		k.podChanged(o, deleted)
		k.reviewBudgets()
	case *corev1.PersistentVolumeClaim:
		k.claimChanged(o, deleted)
	default:
		k.reviewBudgets()
	}
}

// ReadyMayHaveChanged is to be called by the runtime when a probe of a pod may have another result
// than before.
func (k *Cluster) ReadyMayHaveChanged(uid types.UID) {
	if p := k.pods[uid]; p != nil {
		p.probe()
	}
}

// soon is the time that the parts of Kubernetes take to notice a change.
func (k *Cluster) soon() time.Duration {
	return k.line.Between(10*time.Millisecond, 150*time.Millisecond)
}

// update changes the present object, whatever version it has; one that is gone or was replaced is
// not changed.
func update[T client.Object](k *Cluster, object T, uid types.UID, change func(T) bool) {
	ctx := context.Background()
	if err := k.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil || object.GetUID() != uid ||
		!change(object) {
		return
	}
	if err := k.client.Update(ctx, object); err != nil && !apierrors.IsNotFound(err) {
		panic(fmt.Sprintf("update %T %s: %v", object, object.GetName(), err))
	}
}

func updateStatus[T client.Object](k *Cluster, object T, uid types.UID, change func(T) bool) {
	ctx := context.Background()
	if err := k.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil || object.GetUID() != uid ||
		!change(object) {
		return
	}
	if err := k.client.Status().Update(ctx, object); err != nil && !apierrors.IsNotFound(err) {
		panic(fmt.Sprintf("update status of %T %s: %v", object, object.GetName(), err))
	}
}
