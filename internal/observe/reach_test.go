package observe

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/threads"
)

// CQL that the network policy forbids is tried at a node that serves, once in five minutes however
// often the cluster is looked at, and the cluster is woken when the answer is another.
func TestForbiddenCQLIsTriedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, answers := types.NamespacedName{Namespace: "shop", Name: "orders"}, true
		var tried []string
		woken := 0
		a := Agents{Dial: func(Target) Asker { return says{err: context.Canceled} },
			Wake: func(types.NamespacedName) { woken++ }, Threads: threads.Goroutines{},
			Reach: func(_ context.Context, address string) bool { tried = append(tried, address); return answers }}
		node := func(ready, asked bool, address string) *facts.Node {
			n := &facts.Node{Name: address, Record: &v1alpha1.CassandraNode{},
				Pod: &corev1.Pod{Status: corev1.PodStatus{PodIP: address}}}
			if n.Record.Status.Ready = ready; asked {
				n.Agent = &facts.Agent{}
			}
			return n
		}
		s := &facts.Snapshot{Install: facts.Install{Namespace: "helenus-system"},
			Cluster: &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}},
			Shared: facts.Shared{NetworkPolicies: map[string]*networkingv1.NetworkPolicy{
				v1alpha1.NetworkPolicyName("orders"): {}}}}
		spec := func(mode v1alpha1.NetworkPolicyMode) {
			s.Cluster.Spec.Security = &v1alpha1.Security{NetworkPolicy: &v1alpha1.NetworkPolicy{Mode: mode}}
		}
		spec(v1alpha1.NetworkPolicyManaged)
		s.Nodes = map[string]*facts.Node{"a": node(false, true, "10.0.0.1"), "b": node(true, false, "10.0.0.2")}
		want := func(what string, tries, wakes int, reached string) {
			t.Helper()
			s.CQLReached = nil
			a.reach(key, s)
			synctest.Wait()
			got := "not known"
			if s.CQLReached != nil {
				got = map[bool]string{true: "yes", false: "no"}[*s.CQLReached]
			}
			if len(tried) != tries || woken != wakes || got != reached {
				t.Errorf("%s: tried at %q, woken %d times, reached: %s; want %d tries, %d, %s", what, tried, woken, got,
					tries, wakes, reached)
			}
		}
		want("no node serves and answers", 0, 0, "not known")
		s.Nodes["c"] = node(true, true, "10.0.0.3")
		want("the first pass", 1, 1, "not known")
		want("the next", 1, 1, "yes")
		<-time.After(reachInterval)
		want("after the interval", 2, 1, "yes")
		want("the next", 2, 1, "yes")
		answers = false
		<-time.After(reachInterval)
		want("it is enforced now", 3, 2, "yes")
		want("the next", 3, 2, "no")
		spec(v1alpha1.NetworkPolicyNone)
		want("there is to be none", 3, 2, "not known")
		spec(v1alpha1.NetworkPolicyManaged)
		want("and again", 4, 3, "not known")
		a.Forget(key)
		want("it is forgotten", 5, 4, "not known")
		if tried[0] != "10.0.0.3" {
			t.Errorf("tried at %q", tried)
		}
	})
}

func TestReachCQL(t *testing.T) {
	const address = "127.0.90.42"
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address+":9042")
	if err != nil {
		t.Fatal(err)
	}
	if !ReachCQL(t.Context(), address) {
		t.Error("CQL is not reached where it listens")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if ReachCQL(t.Context(), address) {
		t.Error("CQL is reached where nothing listens")
	}
}
