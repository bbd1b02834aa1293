package facts

import "helenus.io/helenus/api/v1alpha1"

// Defaults of the namespace, by which the nodes of a ring are made.
type Defaults struct {
	// Node is what nodes are like where the spec says nothing; nil for none. The snapshot's cluster
	// has it already.
	Node *v1alpha1.NodeSettings
	// Problem is what is wrong with the ConfigMap; empty if nothing is.
	Problem string
}

// FollowsDefaults says that the ring is not made yet: until then its nodes follow the ConfigMap of
// the namespace, and after that what the ledger has of it.
func (s *Snapshot) FollowsDefaults() bool {
	return !s.begun() && (s.Ledger == nil || s.Ledger.MadeWith == nil)
}
