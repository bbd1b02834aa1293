package scene

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
)

const (
	first  = "11111111-1111-1111-1111-111111111111"
	second = "22222222-2222-2222-2222-222222222222"
)

func labels() map[string]string {
	return map[string]string{v1alpha1.LabelCluster: "orders", v1alpha1.LabelClusterUID: "u1"}
}

func cluster(change func(*v1alpha1.CassandraCluster)) *v1alpha1.CassandraCluster {
	c := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Name: "orders", UID: "u1"}}
	c.Spec.Volumes.OnClusterDeletion = v1alpha1.ClaimRetain
	change(c)
	return c
}

func node(name string, change func(*v1alpha1.CassandraNode)) *v1alpha1.CassandraNode {
	n := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Spec.Cluster = v1alpha1.ClusterReference{Name: "orders", UID: "u1"}
	n.Spec.Datacenter, n.Spec.ClientTraffic = "dc1", v1alpha1.TrafficClosed
	n.Status.PodUID, n.Status.Address = "p1", "10.0.0.1"
	change(n)
	return n
}

func ticket(id string) func(*v1alpha1.CassandraNode) {
	return func(n *v1alpha1.CassandraNode) {
		n.Spec.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: id}, Mode: v1alpha1.JoinNew}
	}
}

func member(id string) func(*v1alpha1.CassandraNode) {
	return func(n *v1alpha1.CassandraNode) { n.Spec.Member = &v1alpha1.Member{HostID: id} }
}

func left(n *v1alpha1.CassandraNode) {
	member(first)(n)
	n.Spec.State = v1alpha1.StateDecommissioned
}

func open(n *v1alpha1.CassandraNode) { n.Spec.ClientTraffic = v1alpha1.TrafficOpen }

func restarted(count int32) func(*v1alpha1.CassandraNode) {
	return func(n *v1alpha1.CassandraNode) { n.Status.Restarts = &v1alpha1.RestartsStatus{Count: count} }
}

func configMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels()},
		Data: map[string]string{key: value}}
}

func ledgerMap(formed string) *corev1.ConfigMap {
	return configMap("orders-ledger", "ledger.json", `{"clusterUID":"u1","steps":1,"formed":[`+formed+`]}`)
}

func seeds(list string) *corev1.ConfigMap { return configMap("orders-seeds", "seeds", list) }

func claim(volume string, deleting bool) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-a", UID: "c1", Labels: labels()}}
	c.Labels[v1alpha1.LabelNode] = "a"
	c.Spec.VolumeName = volume
	if deleting {
		c.DeletionTimestamp = &metav1.Time{}
	}
	return c
}

func pod(deleting bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "p1", Labels: labels()}}
	if deleting {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return p
}

func added(o client.Object) follow.Event             { return follow.Event{New: o} }
func changed(before, now client.Object) follow.Event { return follow.Event{Old: before, New: now} }
func gone(o client.Object) follow.Event              { return follow.Event{Old: o} }

func deleting(policy v1alpha1.ClaimPolicy) follow.Event {
	return added(cluster(func(c *v1alpha1.CassandraCluster) {
		c.DeletionTimestamp, c.Spec.Volumes.OnClusterDeletion = &metav1.Time{}, policy
	}))
}

func TestInvariants(t *testing.T) {
	as := func(*v1alpha1.CassandraNode) {}
	for _, c := range []struct {
		name   string
		expect func(*Invariants)
		events []follow.Event
		// violation that is to be found; empty if none is.
		violation string
	}{
		{name: "tickets before anybody serves", events: []follow.Event{added(node("a", ticket("1"))),
			added(node("b", ticket("2"))), added(node("a", open)), added(node("b", ticket("2")))}},
		{name: "a ticket after a node serves", events: []follow.Event{added(node("a", open)),
			added(node("b", ticket("2")))}, violation: "although datacenter dc1 had served"},
		{name: "a ticket in a datacenter that does not serve",
			events: []follow.Event{added(node("a", open)), added(node("b", func(n *v1alpha1.CassandraNode) {
				ticket("2")(n)
				n.Spec.Datacenter = "dc2"
			}))}},
		{name: "a ticket to replace", events: []follow.Event{added(node("a", open)),
			added(node("b", func(n *v1alpha1.CassandraNode) {
				ticket("2")(n)
				n.Spec.Join.Mode = v1alpha1.JoinReplace
			}))}},
		{name: "no seeds while forming", events: []follow.Event{added(ledgerMap("")), added(seeds(""))}},
		{name: "no seeds once formed", events: []follow.Event{added(ledgerMap(`"dc1"`)), added(seeds(""))},
			violation: "is empty"},
		{name: "seeds of a deleted cluster go", events: []follow.Event{added(ledgerMap(`"dc1"`)),
			gone(seeds("10.0.0.1")), deleting(v1alpha1.ClaimRetain)}},
		{name: "seeds go", events: []follow.Event{added(ledgerMap(`"dc1"`)), gone(seeds("10.0.0.1"))},
			violation: "were deleted"},
		{name: "seeds that report later", events: []follow.Event{added(seeds("10.0.0.1")), added(node("a", as))}},
		{name: "a seed that nobody is", events: []follow.Event{added(seeds("10.0.0.1,10.0.0.2")), added(node("a", as))},
			violation: "seed 10.0.0.2"},
		{name: "a ledger that is broken", events: []follow.Event{added(configMap("orders-ledger", "ledger.json", "{"))},
			violation: "cannot be read"},
		{name: "a host id stays", events: []follow.Event{added(node("a", member(first))),
			added(node("a", member(first))), added(node("b", member(second)))}},
		{name: "a host id changes", events: []follow.Event{added(node("a", member(first))),
			added(node("a", member(second)))}, violation: "had the host id"},
		{name: "a host id is taken twice", events: []follow.Event{added(node("a", member(first))),
			added(node("b", member(first)))}, violation: "the same host id"},
		{name: "a bound claim is deleted", events: []follow.Event{changed(claim("v", false), claim("v", true))},
			violation: "bound claim data-a"},
		{name: "a bound claim vanishes", events: []follow.Event{gone(claim("v", false))},
			violation: "bound claim data-a"},
		{name: "a claim of a node that has left", events: []follow.Event{
			added(cluster(func(c *v1alpha1.CassandraCluster) { c.Spec.Volumes.OnScaleIn = v1alpha1.ClaimDelete })),
			added(node("a", left)), gone(claim("v", true)), gone(pod(true)), added(node("a", member(second)))}},
		{name: "a claim of a node that has left, which is to stay",
			events: []follow.Event{added(node("a", left)), gone(claim("v", true))}, violation: "bound claim data-a"},
		{name: "a claim that was never bound", events: []follow.Event{gone(claim("", false))}},
		{name: "claims go with their cluster", events: []follow.Event{gone(claim("v", true)),
			deleting(v1alpha1.ClaimDelete)}},
		{name: "claims go although the policy is Retain",
			events:    []follow.Event{deleting(v1alpha1.ClaimRetain), gone(claim("v", true))},
			violation: "bound claim data-a"},
		{name: "the test deletes a claim", expect: func(v *Invariants) { v.ExpectDeletion(claim("v", false)) },
			events: []follow.Event{gone(claim("v", true))}},
		{name: "a pod is deleted", events: []follow.Event{changed(pod(false), pod(true))}, violation: "pod a"},
		{name: "the test deletes a pod", expect: func(v *Invariants) { v.ExpectDeletion(pod(false)) },
			events: []follow.Event{changed(pod(false), pod(true)), gone(pod(true))}},
		{name: "a node gets other pods", expect: func(v *Invariants) { v.ExpectOtherPods("a") },
			events: []follow.Event{changed(pod(false), pod(true)), gone(pod(true))}},
		{name: "another node gets other pods", expect: func(v *Invariants) { v.ExpectOtherPods("b") },
			events: []follow.Event{gone(pod(true))}, violation: "pod a"},
		{name: "pods go with their cluster", events: []follow.Event{changed(pod(false), pod(true)),
			deleting(v1alpha1.ClaimRetain)}},
		{name: "a JVM starts again", events: []follow.Event{changed(node("a", as), node("a", restarted(1)))},
			violation: "JVM of node a"},
		{name: "the test kills a JVM", expect: func(v *Invariants) { v.ExpectRestart("a") },
			events: []follow.Event{changed(node("a", as), node("a", restarted(1)))}},
		{name: "another pod counts again", events: []follow.Event{changed(node("a", as),
			node("a", func(n *v1alpha1.CassandraNode) {
				restarted(1)(n)
				n.Status.PodUID = "p2"
			}))}},
	} {
		v := NewInvariants()
		if c.expect != nil {
			c.expect(v)
		}
		for _, e := range c.events {
			v.Observe(e)
		}
		got := v.Violations()
		switch {
		case c.violation == "" && len(got) > 0:
			t.Errorf("%s: violations %q, want none", c.name, got)
		case c.violation != "" && (len(got) != 1 || !strings.Contains(got[0], c.violation)):
			t.Errorf("%s: violations %q, want one with %q", c.name, got, c.violation)
		}
	}
}
