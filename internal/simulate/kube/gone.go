package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// register has the kubelet of a host make its Node object, if there is none.
func (k *Cluster) register(m *Host) {
	at := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	if k.uidOf(at) != "" {
		return
	}
	if err := k.client.Create(context.Background(), m.object()); err != nil {
		panic(fmt.Sprintf("create host %s: %v", m.Name, err))
	}
	update(k, at, k.uidOf(at), func(n *corev1.Node) bool {
		n.Spec.Taints = nil // the host is ready
		return true
	})
	m.ready = true
}

// Unregister deletes the Node object of a host, as the manager of hosts does, or a user, when it is
// gone for good.
func (k *Cluster) Unregister(name string) error {
	k.host(name).ready = false // for the scheduler there is none
	return client.IgnoreNotFound(k.client.Delete(context.Background(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// Taint declares a host to be out of service, as a user does who has switched it off. Its pods do
// not tolerate that and are told to stop.
func (k *Cluster) Taint(name string) {
	m := k.host(name)
	m.out = true
	k.line.After(time.Second, "eviction by taint", func() {
		for _, p := range k.onHost(m) {
			if m.out && !p.gone && p.seen.DeletionTimestamp == nil {
				if err := client.IgnoreNotFound(k.client.Delete(context.Background(), p.object(),
					client.Preconditions{UID: &p.seen.UID})); err != nil {
					panic(fmt.Sprintf("evict pod %s: %v", p.seen.Name, err))
				}
			}
		}
	})
	at := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	update(k, at, k.uidOf(at), func(n *corev1.Node) bool {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown",
			Effect: corev1.TaintEffectNoExecute})
		return true
	})
}

// Cordon has no more pods be placed on a host, or some again.
func (k *Cluster) Cordon(name string, yes bool) {
	k.host(name).cordoned = yes
	k.place()
	at := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	update(k, at, k.uidOf(at), func(n *corev1.Node) bool {
		n.Spec.Unschedulable = yes
		return true
	})
}

// Untaint takes that back.
func (k *Cluster) Untaint(name string) {
	k.host(name).out = false
	k.place()
	at := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	update(k, at, k.uidOf(at), func(n *corev1.Node) bool {
		before := len(n.Spec.Taints)
		n.Spec.Taints = without(n.Spec.Taints, corev1.TaintNodeOutOfService)
		return len(n.Spec.Taints) != before
	})
}

func without(taints []corev1.Taint, key string) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		if t.Key != key {
			out = append(out, t)
		}
	}
	return out
}
