package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/record"
	"helenus.io/helenus/internal/core/layout"
)

const (
	namespace = "scale"
	host      = "host"
)

// fleet does the part of Kubernetes and of the nodes: claims get volumes, pods run, agents do what
// their records say. Nodes beyond the size that the clusters began with get nothing.
type fleet struct {
	client.Client
	perRack int32
	// ctx is that of the agents.
	ctx context.Context //nolint:containedctx // agents outlive the pass that starts them

	mu     sync.Mutex
	rings  map[types.UID]*ring
	agents map[types.UID]*agent // by the uid of their pod
	pods   int
}

// begin has the fleet follow claims, pods and records.
func (f *fleet) begin(m manager.Manager) error {
	options := controller.Options{MaxConcurrentReconciles: 8}
	claims := builder.ControllerManagedBy(m).Named("claims").For(&corev1.PersistentVolumeClaim{}).WithOptions(options)
	if err := claims.Complete(reconcile.Func(f.claim)); err != nil {
		return fmt.Errorf("follow claims: %w", err)
	}
	nodes := builder.ControllerManagedBy(m).Named("nodes").For(&v1alpha1.CassandraNode{}).Watches(&corev1.Pod{},
		&handler.EnqueueRequestForObject{}).WithOptions(options)
	if err := nodes.Complete(reconcile.Func(f.node)); err != nil {
		return fmt.Errorf("follow nodes: %w", err)
	}
	return nil
}

// runs says that a node is one of those that its cluster began with.
func (f *fleet) runs(labels map[string]string) bool {
	var ordinal int32
	rack := v1alpha1.NodeName(labels[v1alpha1.LabelCluster], labels[v1alpha1.LabelDatacenter],
		labels[v1alpha1.LabelRack], 0)
	_, err := fmt.Sscanf(labels[v1alpha1.LabelNode], rack[:len(rack)-1]+"%d", &ordinal)
	return err == nil && ordinal < f.perRack
}

// claim gives a claim a volume, and lets it go when it is deleted.
func (f *fleet) claim(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := f.Get(ctx, r.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case claim.DeletionTimestamp != nil:
		claim.Finalizers = nil
		return again(f.Update(ctx, claim))
	case claim.Status.Phase != corev1.ClaimBound && f.runs(claim.Labels):
		claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
		return again(f.Status().Update(ctx, claim))
	}
	return reconcile.Result{}, nil
}

// again has another look when somebody else was faster.
func again(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	return reconcile.Result{}, err
}

// node runs the pod of a node, and its agent.
func (f *fleet) node(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	pod, node := &corev1.Pod{}, &v1alpha1.CassandraNode{}
	for _, object := range []client.Object{pod, node} {
		if err := f.Get(ctx, r.NamespacedName, object); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	switch {
	case !f.runs(pod.Labels):
		return reconcile.Result{}, nil
	case pod.Spec.NodeName == "":
		return again(f.SubResource("binding").Create(ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			Target:     corev1.ObjectReference{Kind: "Node", Name: host},
		}))
	case pod.Status.PodIP == "":
		return again(f.Status().Update(ctx, f.running(pod)))
	}
	a, err := f.agentOf(ctx, pod, node)
	if err != nil || a == nil {
		return reconcile.Result{RequeueAfter: time.Second}, err
	}
	status, err := a.follow(node)
	if err != nil || reflect.DeepEqual(status, &node.Status) {
		return reconcile.Result{}, err
	}
	patch, err := record.StatusPatch(node.UID, status)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("make status of %s: %w", node.Name, err)
	}
	return again(f.Status().Patch(ctx, node, client.RawPatch(types.JSONPatchType, patch)))
}

// running is a pod with an address of its own.
func (f *fleet) running(pod *corev1.Pod) *corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods++
	address := fmt.Sprintf("127.%d.%d.%d", 16+f.pods/62500, f.pods/250%250, 1+f.pods%250)
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	now := metav1.Now()
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: layout.CassandraContainer, Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
	return pod
}

// agentOf starts the agent of a pod when its certificate is there; nil before.
func (f *fleet) agentOf(ctx context.Context, pod *corev1.Pod, node *v1alpha1.CassandraNode) (*agent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.agents[pod.UID]; a != nil {
		return a, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: node.Namespace, Name: v1alpha1.CertificateName(node.Name, v1alpha1.UseAgent)}
	if err := f.Get(ctx, key, secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	cluster := node.Spec.Cluster.UID
	if f.rings[cluster] == nil {
		f.rings[cluster] = newRing()
	}
	a, err := start(f.ctx, f.rings[cluster], cluster, pod, secret)
	if err != nil {
		return nil, err
	}
	f.agents[pod.UID] = a
	return a, nil
}

// any agent of the fleet.
func (f *fleet) any() *agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.agents {
		return a
	}
	return nil
}

// size is a change of the number of nodes that the first rack of a cluster has.
func size(nodes int32) (client.Patch, error) {
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/datacenters/0/racks/0/nodes",
		"value": nodes}})
	if err != nil {
		return nil, fmt.Errorf("make patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, patch), nil
}
