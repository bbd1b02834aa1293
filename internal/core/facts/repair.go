package facts

import (
	"cmp"

	"helenus.io/helenus/api/v1alpha1"
)

// RepairMode says who repairs tables: what the spec says, else the operator, but for a ring that an
// earlier release of Helenus made.
func (s *Snapshot) RepairMode() v1alpha1.RepairMode {
	made := v1alpha1.RepairRecommend
	if s.Ledger != nil && s.Ledger.MadeWith != nil {
		made = v1alpha1.RepairAutomatic
	}
	return cmp.Or(s.Cluster.Spec.Repair.Mode, made)
}
