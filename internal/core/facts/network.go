package facts

import (
	"cmp"

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
