package facts

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// NetworkPolicy says whether Helenus keeps the network policy of the ring: what the spec says, else
// what the ring was made with. A ring that an earlier release of Helenus made has none, and where
// the ledger is lost that which is there counts: nobody is locked out by a guess.
func (s *Snapshot) NetworkPolicy() v1alpha1.NetworkPolicyMode {
	switch l, asked := s.Ledger, s.Cluster.Spec.NetworkPolicy().Mode; {
	case asked != "":
		return asked
	case l != nil && l.MadeWith != nil:
		return cmp.Or(l.MadeWith.NetworkPolicy, v1alpha1.NetworkPolicyNone)
	case s.begun(), l == nil && s.hasNodes() && !s.Shared.Has("NetworkPolicy",
		v1alpha1.NetworkPolicyName(s.Cluster.Name)):
		return v1alpha1.NetworkPolicyNone
	}
	return v1alpha1.NetworkPolicyManaged
}

// CQLForbidden says that the network policy of the ring lets the operator's pod reach no CQL. Peers
// that may be the operator, as far as can be told from the name of its namespace, count as such.
func (s *Snapshot) CQLForbidden() bool {
	own := s.Install.Namespace
	return s.NetworkPolicy() == v1alpha1.NetworkPolicyManaged && own != "" && own != s.Cluster.Namespace &&
		s.Shared.NetworkPolicies[v1alpha1.NetworkPolicyName(s.Cluster.Name)] != nil &&
		!slices.ContainsFunc(s.Cluster.Spec.NetworkPolicy().Clients, func(p v1alpha1.NetworkPeer) bool {
			if p.NamespaceSelector == nil {
				return p.IPBlock != nil
			}
			named := p.NamespaceSelector.MatchLabels[corev1.LabelMetadataName]
			return named == "" || named == own
		})
}
