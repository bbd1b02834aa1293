package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// Sight is what is known of a namespace at one moment. Kinds are followed apart: of two objects one
// may be newer than the other.
type Sight struct {
	ctx       context.Context //nolint:containedctx // a Sight lives no longer than the call it is made in
	namespace *Namespace
}

// get reads an object from the cache, and says whether it is there.
func get[T client.Object](s Sight, name string, into T) (T, bool) {
	err := s.namespace.cache.Get(s.ctx, client.ObjectKey{Namespace: s.namespace.Name, Name: name}, into)
	return into, err == nil // the cache knows no other error than that it is not there
}

// Cluster is a CassandraCluster, and whether it is there.
func (s Sight) Cluster(name string) (*v1alpha1.CassandraCluster, bool) {
	return get(s, name, &v1alpha1.CassandraCluster{})
}

// Pod is a pod, and whether it is there.
func (s Sight) Pod(name string) (*corev1.Pod, bool) { return get(s, name, &corev1.Pod{}) }

// ConfigMap is a ConfigMap, and whether it is there.
func (s Sight) ConfigMap(name string) (*corev1.ConfigMap, bool) {
	return get(s, name, &corev1.ConfigMap{})
}

// Deployment is a Deployment, and whether it is there.
func (s Sight) Deployment(name string) (*appsv1.Deployment, bool) {
	return get(s, name, &appsv1.Deployment{})
}

// list reads the objects that are labelled as parts of a cluster.
func (s Sight) list(list client.ObjectList, cluster string) {
	// from memory
	_ = s.namespace.cache.List(s.ctx, list, client.InNamespace(s.namespace.Name),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster})
}

// Nodes are the records of a cluster, by name.
func (s Sight) Nodes(cluster string) []v1alpha1.CassandraNode {
	list := &v1alpha1.CassandraNodeList{}
	s.list(list, cluster)
	slices.SortFunc(list.Items, func(a, b v1alpha1.CassandraNode) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items
}

// Pods are the pods of a cluster, by name.
func (s Sight) Pods(cluster string) []corev1.Pod {
	list := &corev1.PodList{}
	s.list(list, cluster)
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items
}

// AllPods are the pods of the namespace, by name.
func (s Sight) AllPods() []corev1.Pod {
	list := &corev1.PodList{}
	_ = s.namespace.cache.List(s.ctx, list, client.InNamespace(s.namespace.Name)) // from memory
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items
}

// Claims are the persistent volume claims of a cluster, by name.
func (s Sight) Claims(cluster string) []corev1.PersistentVolumeClaim {
	list := &corev1.PersistentVolumeClaimList{}
	s.list(list, cluster)
	slices.SortFunc(list.Items, func(a, b corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items
}

// Serving holds when every node of a cluster serves clients, as its spec describes it and by its
// present pod, and the operator has nothing left to do. What only the user can resolve ends the
// wait.
func Serving(name string) Condition {
	return func(s Sight) error {
		cluster, found := s.Cluster(name)
		if !found {
			return fmt.Errorf("there is no CassandraCluster %s", name)
		}
		if cluster.Status.ObservedGeneration != cluster.Generation {
			return errors.New("the operator has not looked at it yet")
		}
		if stalled := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled); stalled != nil {
			return Never(fmt.Errorf("it is stalled: %s: %s", stalled.Reason, stalled.Message))
		}
		var not []string
		for _, node := range s.Nodes(name) {
			if why := notServing(s, &node); why != "" {
				not = append(not, node.Name+" "+why)
			}
		}
		ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case len(not) > 0:
			return errors.New(strings.Join(not, "; "))
		case ready == nil || ready.Status != "True":
			return fmt.Errorf("%s", stepOf(cluster))
		case meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReconciling):
			return fmt.Errorf("the operator is at work: %s", stepOf(cluster))
		case !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionHealthy):
			return errors.New(meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHealthy).Message)
		}
		return nil
	}
}

// notServing says why a node does not serve clients; empty if it does.
func notServing(s Sight, node *v1alpha1.CassandraNode) string {
	pod, found := s.Pod(node.Name)
	switch {
	case !found:
		return "has no pod"
	case pod.DeletionTimestamp != nil:
		return "has a pod that is being deleted"
	case node.Status.PodUID != pod.UID:
		return "has a pod whose agent has not reported yet"
	case !node.Status.Ready:
		return Phase(node)
	case !PodReady(pod):
		return "has a pod that is not Ready"
	}
	return ""
}

// Phase is what a node says of itself, in a few words.
func Phase(node *v1alpha1.CassandraNode) string {
	phase := string(node.Status.Phase)
	if phase == "" {
		phase = "has not reported"
	}
	if node.Status.Message != "" {
		phase += ": " + node.Status.Message
	}
	return phase
}

func stepOf(cluster *v1alpha1.CassandraCluster) string {
	if step := cluster.Status.Step; step != nil {
		return step.Name + ": " + step.Message
	}
	return "no step is open"
}

// PodReady says whether a pod has the condition Ready.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions,
		func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// PodTrouble says what Kubernetes says keeps a pod from running; empty if nothing does. Pull says
// that it is an image that cannot be had, which no waiting mends.
func PodTrouble(pod *corev1.Pod) (trouble string, pull bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "waits for a machine: " + c.Message, false
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch wait := c.State.Waiting; {
		case wait == nil:
		case wait.Reason == "ErrImagePull" || wait.Reason == "ImagePullBackOff" || wait.Reason == "InvalidImageName":
			return fmt.Sprintf("cannot pull image %s: %s", c.Image, wait.Message), wait.Reason != "ErrImagePull"
		case wait.Message != "":
			return fmt.Sprintf("container %s: %s: %s", c.Name, wait.Reason, wait.Message), false
		}
	}
	return "", false
}
