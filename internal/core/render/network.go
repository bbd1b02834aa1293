package render

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
)

// NetworkPolicy lets nobody reach the pods of a cluster but the cluster itself, the operator, and
// whom the spec names. The kubelet's probes need no rule: the host of a pod always reaches it. What
// the pods reach is not limited.
func NetworkPolicy(cluster *v1alpha1.CassandraCluster, install facts.Install) *networkingv1.NetworkPolicy {
	owner, given := OwnerOf(cluster), cluster.Spec.NetworkPolicy()
	pods := metav1.LabelSelector{MatchLabels: podSelector(owner, "")}
	ring, clients := networkingv1.NetworkPolicyPeer{PodSelector: &pods}, peers(given.Clients)
	if given.Clients == nil {
		clients = []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}
	}
	policy := &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: owner.meta(v1alpha1.NetworkPolicyName(owner.Name), v1alpha1.ComponentCassandra),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: pods,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				admit(append(clients, ring), layout.NativePort),
				admit(append(peers(given.External), ring), layout.StoragePort, layout.TLSStoragePort),
				admit([]networkingv1.NetworkPolicyPeer{operatorOf(install), ring}, layout.FactsPort),
			},
		},
	}
	if len(given.Metrics) > 0 { // a rule without peers would let in everybody
		policy.Spec.Ingress = append(policy.Spec.Ingress, admit(peers(given.Metrics), layout.MetricsPort))
	}
	return policy
}

// operatorOf is the operator's pod, known by its labels and its namespace. One that runs in no pod
// is known by neither: it is let in where it runs on the hosts of the pods.
func operatorOf(install facts.Install) networkingv1.NetworkPolicyPeer {
	namespaces := &metav1.LabelSelector{}
	if install.Namespace != "" {
		namespaces.MatchLabels = map[string]string{corev1.LabelMetadataName: install.Namespace}
	}
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaces, PodSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{v1alpha1.LabelName: v1alpha1.ManagedBy,
			v1alpha1.LabelComponent: v1alpha1.ComponentOperator},
	}}
}

func peers(given []v1alpha1.NetworkPeer) []networkingv1.NetworkPolicyPeer {
	var out []networkingv1.NetworkPolicyPeer
	for _, p := range given {
		peer := networkingv1.NetworkPolicyPeer{NamespaceSelector: p.NamespaceSelector, PodSelector: p.PodSelector}
		if p.IPBlock != nil {
			peer.IPBlock = &networkingv1.IPBlock{CIDR: p.IPBlock.CIDR, Except: p.IPBlock.Except}
		}
		out = append(out, peer)
	}
	return out
}

func admit(from []networkingv1.NetworkPolicyPeer, ports ...int32) networkingv1.NetworkPolicyIngressRule {
	rule := networkingv1.NetworkPolicyIngressRule{From: from}
	for _, p := range ports {
		number, protocol := intstr.FromInt32(p), corev1.ProtocolTCP
		rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: &number, Protocol: &protocol})
	}
	return rule
}
