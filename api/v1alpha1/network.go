package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NetworkPolicyMode is who keeps the network policy of a ring.
//
// +kubebuilder:validation:Enum=Managed;None
type NetworkPolicyMode string

const (
	// NetworkPolicyManaged – Helenus keeps a NetworkPolicy that allows the listed peers and denies
	// all other ingress.
	NetworkPolicyManaged NetworkPolicyMode = "Managed"
	// NetworkPolicyNone – Helenus keeps none.
	NetworkPolicyNone NetworkPolicyMode = "None"
)

// NetworkPolicy says who may reach the ports of a ring's pods. It has an effect where the network
// plugin enforces NetworkPolicies. All of it can be changed at any time.
type NetworkPolicy struct {
	// Mode: with Managed, Helenus keeps a NetworkPolicy for the pods of the ring, and nobody
	// reaches them but the ring itself, the operator, and whom clients, metrics and external name;
	// None keeps none. Default: what the ring was made with, which is Managed for a new ring; one
	// that was made by an earlier release has None.
	// +optional
	Mode NetworkPolicyMode `json:"mode,omitempty"`

	// Clients may reach CQL (9042). Default: all pods of the namespace. An empty list allows no
	// client.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Clients []NetworkPeer `json:"clients,omitzero"`

	// Metrics may read the metrics of the agents and of Cassandra (7782). Default: nobody.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	Metrics []NetworkPeer `json:"metrics,omitempty"`

	// External are members of the ring that are no pods of this cluster: they may reach the ports
	// between nodes (7000 and 7001). Default: nobody.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	External []NetworkPeer `json:"external,omitempty"`
}

// NetworkPeer is somebody who may reach a port: pods, or a block of addresses.
//
// +kubebuilder:validation:XValidation:rule=`has(self.namespaceSelector) || has(self.podSelector) || has(self.ipBlock)`,message=`{} is an empty peer and would allow all sources: write podSelector: {} for all pods of the namespace, namespaceSelector: {} for all pods of all namespaces, or an ipBlock`
// +kubebuilder:validation:XValidation:rule=`!has(self.ipBlock) || !has(self.namespaceSelector) && !has(self.podSelector)`,message=`ipBlock stands alone: pods that are selected are an entry of their own`
type NetworkPeer struct {
	// NamespaceSelector selects namespaces by their labels; {} is all of them. Without it the pods
	// are those of the cluster's namespace.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// PodSelector selects pods by their labels; {}, or nothing beside a namespaceSelector, is all
	// of them.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// IPBlock is a block of addresses, for what is not a pod.
	// +optional
	IPBlock *IPBlock `json:"ipBlock,omitempty"`
}

// IPBlock is a block of addresses.
type IPBlock struct {
	// CIDR, such as 10.0.0.0/8 or 2001:db8::/32.
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:Pattern=`^[0-9a-f.:]+/[0-9]+$`
	CIDR string `json:"cidr"`

	// Except are parts of it that are left out.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f.:]+/[0-9]+$`
	Except []string `json:"except,omitempty"`
}

// NetworkPolicy of the spec; an empty one if it says nothing.
func (s *CassandraClusterSpec) NetworkPolicy() NetworkPolicy {
	if s.Security == nil || s.Security.NetworkPolicy == nil {
		return NetworkPolicy{}
	}
	return *s.Security.NetworkPolicy
}
