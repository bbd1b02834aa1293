package cluster

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
)

// wantPolicy says that the ring has a network policy, or none.
func (w *world) wantPolicy(want bool) {
	w.t.Helper()
	if got := w.snapshot.Shared.NetworkPolicies["orders"] != nil; got != want {
		w.t.Errorf("the ring has a network policy: %v, want %v", got, want)
	}
}

// networked changes what the spec says of the network policy; nil is nothing.
func networked(w *world, p *v1alpha1.NetworkPolicy) {
	w.t.Helper()
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Security = &v1alpha1.Security{NetworkPolicy: p}
	})
}

// A new ring has a network policy before it has pods, and keeps it by its ledger; the spec may say
// otherwise at any time, by no more than that one object. It goes with
// the cluster, and not before its pods.
func TestANewRingHasANetworkPolicy(t *testing.T) {
	w := withPasswords(t)
	if first := w.pass(); len(w.snapshot.Records()) == 0 {
		t.Fatalf("nothing is made:\n%s", first)
	}
	w.wantPolicy(true)
	w.settle()
	w.wantOpen()
	if got := w.snapshot.Ledger.MadeWith.NetworkPolicy; got != v1alpha1.NetworkPolicyManaged {
		t.Errorf("the ledger says that the ring was made with %q", got)
	}
	only := func(verb plan.Verb) {
		t.Helper()
		made := next(w)
		if len(made.Writes) != 1 || made.Writes[0].Verb != verb || plan.KindOf(made.Writes[0].Object) != "NetworkPolicy" ||
			verb != plan.Create && made.Writes[0].UID == "" {
			t.Errorf("want to %s a NetworkPolicy:\n%s", verb, made)
		}
		w.settle()
	}
	delete(w.snapshot.Shared.NetworkPolicies, "orders")
	only(plan.Create)
	w.snapshot.Shared.NetworkPolicies["orders"].Spec.Ingress = nil
	only(plan.Change)
	networked(w, &v1alpha1.NetworkPolicy{Metrics: everywhere})
	only(plan.Change)
	networked(w, &v1alpha1.NetworkPolicy{Mode: v1alpha1.NetworkPolicyNone, Metrics: everywhere})
	only(plan.Delete)
	w.wantPolicy(false)
	networked(w, nil)
	only(plan.Create)
	w.snapshot.Ledger = nil
	w.settle()
	w.wantPolicy(true)
	if got := w.snapshot.Ledger.MadeWith.NetworkPolicy; got != v1alpha1.NetworkPolicyManaged {
		t.Errorf("the ledger that is rebuilt says that the ring was made with %q", got)
	}
	w.deleteCluster()
	for range 10 {
		w.pass()
	}
	w.wantPolicy(false)
}

// A ring that was made without a network policy has none until the spec says so by name: whether an
// earlier release made it, or its spec said None, and also when its ledger is lost.
func TestARingMadeWithoutANetworkPolicyKeepsNone(t *testing.T) {
	for name, older := range map[string]bool{"older": true, "None": false} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			networked(w, nil)
			if w.snapshot.Cluster.Spec.Security.Authentication = nil; older {
				w.snapshot.Ledger.MadeWith = nil
				for _, n := range w.snapshot.Records() {
					n.Record.Spec.Configuration.Authentication, n.Hashes = "", nil
				}
			}
			if made := next(w); len(made.Writes) > 0 || made.Stalled != nil {
				t.Errorf("want nothing:\n%s", made)
			}
			w.snapshot.Ledger = nil
			w.settle()
			w.wantPolicy(false)
			networked(w, &v1alpha1.NetworkPolicy{Clients: []v1alpha1.NetworkPeer{}})
			wantStalled(t, w.settle(), v1alpha1.ReasonInvalidSpec, "without a mode", "set mode: Managed")
			w.wantPolicy(false)
			networked(w, &v1alpha1.NetworkPolicy{Mode: v1alpha1.NetworkPolicyManaged})
			w.settle()
			w.wantPolicy(true)
		})
	}
}

// Peers that no API server takes are refused by the path of the field, and the policy stays as it
// is.
func TestPeersAreRefused(t *testing.T) {
	block := func(cidr string, except ...string) v1alpha1.NetworkPeer {
		return v1alpha1.NetworkPeer{IPBlock: &v1alpha1.IPBlock{CIDR: cidr, Except: except}}
	}
	noLabel := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "not a label"}}
	noOperator := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}
	for want, p := range map[string]v1alpha1.NetworkPolicy{
		"security.networkPolicy.clients[0].podSelector: ": {Clients: []v1alpha1.NetworkPeer{{PodSelector: noLabel}}},
		"security.networkPolicy.metrics[0].namespaceSelector: ": {
			Metrics: []v1alpha1.NetworkPeer{{NamespaceSelector: noOperator}}},
		"security.networkPolicy.external[1].ipBlock.cidr is \"10.0.0.1/8\"": {
			External: []v1alpha1.NetworkPeer{block("10.0.0.0/8"), block("10.0.0.1/8")}},
		"ipBlock.cidr is \"10.0.0.0/33\"": {Clients: []v1alpha1.NetworkPeer{block("10.0.0.0/33")}},
		"ipBlock.except has \"10\"":       {Clients: []v1alpha1.NetworkPeer{block("10.0.0.0/8", "10")}},
		"ipBlock.except has 11.0.0.0/16, which must be a part of 10.0.0.0/8": {
			Clients: []v1alpha1.NetworkPeer{block("10.0.0.0/8", "11.0.0.0/16")}},
		"ipBlock.except has 10.0.0.0/8, which": {Clients: []v1alpha1.NetworkPeer{block("10.0.0.0/8", "10.0.0.0/8")}},
	} {
		w := withPasswords(t)
		w.settle()
		networked(w, &p)
		made := next(w)
		wantStalled(t, made, v1alpha1.ReasonInvalidSpec, want)
		if len(made.Writes) > 0 {
			t.Errorf("%s: something is written:\n%s", want, made)
		}
		delete(w.snapshot.Shared.NetworkPolicies, "orders") // there is none to restore
		if made := next(w); len(made.Writes) > 0 {
			t.Errorf("%s: something is written:\n%s", want, made)
		}
	}
}

// An operator that reaches what the policy forbids to it says so, and takes it back when it does so
// no longer. While that is not known, as when an operator starts, it says what was said before.
func TestAPolicyThatIsNotEnforcedIsSaid(t *testing.T) {
	w := withPasswords(t)
	w.snapshot.Install.Namespace = "helenus-system"
	w.settle()
	w.wantOpen()
	is := func(reached bool) *bool { return &reached }
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}}
	named := func(namespace string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
	}
	peer := func(p v1alpha1.NetworkPeer) *v1alpha1.NetworkPolicy {
		return &v1alpha1.NetworkPolicy{Clients: []v1alpha1.NetworkPeer{{PodSelector: web}, p}}
	}
	for _, c := range []struct {
		name    string
		reached *bool
		policy  *v1alpha1.NetworkPolicy
		want    bool
	}{
		{"nothing is known", nil, nil, false},
		{"it is reached", is(true), nil, true},
		{"an operator starts", nil, nil, true},
		{"it is reached no longer", is(false), nil, false},
		{"again nothing is known", nil, nil, false},
		{"by namespaces that may be the operator's", is(true), peer(v1alpha1.NetworkPeer{NamespaceSelector: web}), false},
		{"by a block", is(true), peer(v1alpha1.NetworkPeer{IPBlock: &v1alpha1.IPBlock{CIDR: "10.0.0.0/8"}}), false},
		{"by its namespace", is(true), peer(v1alpha1.NetworkPeer{NamespaceSelector: named("helenus-system")}), false},
		{"by another namespace", is(true), peer(v1alpha1.NetworkPeer{NamespaceSelector: named("web")}), true},
		{"no policy", is(true), &v1alpha1.NetworkPolicy{Mode: v1alpha1.NetworkPolicyNone}, false},
	} {
		networked(w, c.policy)
		w.settle()
		w.snapshot.CQLReached = c.reached
		made := next(w)
		w.snapshot.Cluster.Status.Notices = made.Notices
		said := slices.ContainsFunc(made.Notices, func(n v1alpha1.Notice) bool {
			return n.Reason == v1alpha1.NoticeNetworkPolicyNotEnforced
		})
		if said != c.want || len(made.Writes) > 0 {
			t.Errorf("%s: the notice is there: %v, want %v, and nothing to write:\n%s", c.name, said, c.want, made)
		}
	}
	networked(w, nil)
	w.settle()
	w.snapshot.Install.Namespace = w.snapshot.Cluster.Namespace
	w.snapshot.CQLReached = is(true)
	if made := next(w); len(made.Notices) > 0 {
		t.Errorf("an operator in the namespace of the ring is a client:\n%s", made)
	}
}
