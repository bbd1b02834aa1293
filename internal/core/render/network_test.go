package render

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
)

// endpoint is a pod, or with an address alone something outside of Kubernetes.
type endpoint struct {
	namespace string
	labels    map[string]string
	address   string
}

// reaches evaluates policies as the API describes them: a pod that no policy selects is open, and
// one that is selected takes what any rule of any of them lets in. That is not what a network
// plugin does, but what one is asked to do.
func reaches(policies []*networkingv1.NetworkPolicy, from, to endpoint, port int32) bool {
	selected := false
	for _, p := range policies {
		if p.Namespace != to.namespace || !selects(&p.Spec.PodSelector, to.labels) ||
			!slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			continue
		}
		selected = true
		for _, rule := range p.Spec.Ingress {
			open := len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(o networkingv1.NetworkPolicyPort) bool {
				return *o.Protocol == corev1.ProtocolTCP && (o.Port == nil || o.Port.IntVal == port)
			})
			if open && (len(rule.From) == 0 || slices.ContainsFunc(rule.From,
				func(peer networkingv1.NetworkPolicyPeer) bool { return is(peer, p.Namespace, from) })) {
				return true
			}
		}
	}
	return !selected
}

func is(peer networkingv1.NetworkPolicyPeer, namespace string, from endpoint) bool {
	if block := peer.IPBlock; block != nil {
		in := func(cidr string) bool {
			return from.address != "" && netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(from.address))
		}
		return in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
	}
	if from.namespace == "" {
		return false
	}
	if peer.NamespaceSelector == nil {
		return from.namespace == namespace && selects(peer.PodSelector, from.labels)
	}
	of := map[string]string{corev1.LabelMetadataName: from.namespace}
	return selects(peer.NamespaceSelector, of) && (peer.PodSelector == nil || selects(peer.PodSelector, from.labels))
}

func selects(by *metav1.LabelSelector, have map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		panic(err)
	}
	return selector.Matches(labels.Set(have))
}

// Who reaches which port of a ring's pods, pair by pair; other pods are not closed by it.
func TestWhoMayReachARing(t *testing.T) {
	of := func(c *v1alpha1.CassandraCluster, node string) endpoint {
		return endpoint{c.Namespace, nodeLabels(OwnerOf(c), "dc1", "r1", node), "10.1.0.1"}
	}
	orders := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "1"}}
	carts := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "carts", UID: "2"}}
	again := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "orders", UID: "3"}}
	operator := map[string]string{v1alpha1.LabelName: "helenus", v1alpha1.LabelComponent: "operator"}
	named := map[string]endpoint{
		"member":            of(orders, "orders-dc1-r1-1"),
		"other ring":        of(carts, "carts-dc1-r1-0"),
		"ring elsewhere":    of(again, "orders-dc1-r1-0"),
		"operator":          {"helenus-system", operator, "10.1.0.2"},
		"false operator":    {"web", operator, "10.1.0.3"},
		"client":            {"shop", map[string]string{"app": "till"}, "10.1.0.4"},
		"client elsewhere":  {"web", map[string]string{"app": "till"}, "10.1.0.5"},
		"other elsewhere":   {"web", map[string]string{"app": "cat"}, "10.1.0.6"},
		"prometheus":        {"monitoring", map[string]string{"app": "prometheus"}, "10.1.0.7"},
		"outside":           {address: "192.0.2.1"},
		"excepted, outside": {address: "192.0.2.129"},
	}
	all := slices.Sorted(maps.Keys(named))
	web := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "web"}}
	monitoring := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "monitoring"}}
	till := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
		Operator: metav1.LabelSelectorOpIn, Values: []string{"till"}}}}
	block := v1alpha1.NetworkPeer{IPBlock: &v1alpha1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.128/25"}}}
	const native, storage, tls, asked, health, metrics = layout.NativePort, layout.StoragePort,
		layout.TLSStoragePort, layout.FactsPort, layout.HealthPort, layout.MetricsPort
	for name, c := range map[string]struct {
		spec v1alpha1.NetworkPolicy
		want map[int32][]string
	}{
		"nothing said": {v1alpha1.NetworkPolicy{}, map[int32][]string{native: {"client", "member", "other ring"}}},
		"no clients": {v1alpha1.NetworkPolicy{Clients: []v1alpha1.NetworkPeer{}},
			map[int32][]string{native: {"member"}}},
		"clients": {v1alpha1.NetworkPolicy{Clients: []v1alpha1.NetworkPeer{{PodSelector: till},
			{NamespaceSelector: web, PodSelector: till}, block}},
			map[int32][]string{native: {"client", "client elsewhere", "member", "outside"}}},
		"pods of all namespaces": {v1alpha1.NetworkPolicy{
			Clients: []v1alpha1.NetworkPeer{{NamespaceSelector: &metav1.LabelSelector{}}}},
			map[int32][]string{native: {"client", "client elsewhere", "false operator", "member", "operator",
				"other elsewhere", "other ring", "prometheus", "ring elsewhere"}}},
		"metrics": {v1alpha1.NetworkPolicy{Clients: []v1alpha1.NetworkPeer{},
			Metrics: []v1alpha1.NetworkPeer{{NamespaceSelector: monitoring}}},
			map[int32][]string{native: {"member"}, metrics: {"prometheus"}}},
		"external": {v1alpha1.NetworkPolicy{Clients: []v1alpha1.NetworkPeer{}, External: []v1alpha1.NetworkPeer{block}},
			map[int32][]string{native: {"member"}, storage: {"member", "outside"}, tls: {"member", "outside"}}},
	} {
		orders.Spec.Security = &v1alpha1.Security{NetworkPolicy: &c.spec}
		policies := []*networkingv1.NetworkPolicy{NetworkPolicy(orders, facts.Install{Namespace: "helenus-system"})}
		for port, usual := range map[int32][]string{native: nil, storage: {"member"}, tls: {"member"},
			asked: {"member", "operator"}, health: nil, metrics: nil, layout.JolokiaPort: nil, 22: nil} {
			want := c.want[port]
			if want == nil {
				want = usual
			}
			got := slices.DeleteFunc(slices.Clone(all), func(who string) bool {
				return !reaches(policies, named[who], of(orders, "orders-dc1-r1-0"), port)
			})
			if !slices.Equal(got, want) {
				t.Errorf("%s: port %d is reached by %q, want %q", name, port, got, want)
			}
			for _, other := range all {
				if to := named[other]; other != "member" && to.namespace != "" &&
					!reaches(policies, named["outside"], to, port) {
					t.Errorf("%s: port %d of %s is closed by it", name, port, other)
				}
			}
		}
	}
}

// An operator that does not know its namespace is known by its labels.
func TestAnOperatorOfAnUnknownNamespaceIsLetIn(t *testing.T) {
	cluster := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "1"}}
	policies := []*networkingv1.NetworkPolicy{NetworkPolicy(cluster, facts.Install{})}
	to := endpoint{"shop", nodeLabels(OwnerOf(cluster), "dc1", "r1", "orders-dc1-r1-0"), ""}
	from := endpoint{"x", map[string]string{v1alpha1.LabelName: "helenus", v1alpha1.LabelComponent: "operator"}, ""}
	if !reaches(policies, from, to, layout.FactsPort) || reaches(policies, from, to, layout.NativePort) {
		t.Error("the operator does not reach its port, or reaches more")
	}
}
