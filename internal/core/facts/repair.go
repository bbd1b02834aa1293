package facts

import (
	"cmp"

	"helenus.io/helenus/api/v1alpha1"
)

// RepairMode says who repairs tables: what the spec says, else what the ring was made with.
func (s *Snapshot) RepairMode() v1alpha1.RepairMode {
	made := v1alpha1.RepairMode("")
	if s.Ledger != nil && s.Ledger.MadeWith != nil {
		made = s.Ledger.MadeWith.Repair
	}
	return cmp.Or(s.Cluster.Spec.Repair.Mode, made, v1alpha1.RepairRecommend)
}
