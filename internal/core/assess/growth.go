package assess

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// VolumesGrow says that what the spec changes of what tickets and disks rest on is nothing but that
// volumes become larger, and that they can: their claims are bound, and their classes allow it.
func (v *View) VolumesGrow(n *facts.Node, w render.Wanted) bool {
	if !v.fixed(n, w) || otherRing(n, w) || !equality.Semantic.DeepEqual(
		render.WithoutSizes(n.Record.Spec.Pod.Storage), render.WithoutSizes(w.Pod.Storage)) {
		return false
	}
	for _, volume := range render.Volumes(w.Pod) {
		if c := n.Claims[volume.Name]; !c.Bound() || v.CannotGrow(c, volume) != "" {
			return false
		}
	}
	return true
}

// CannotGrow says why a claim cannot become as large as a volume is to be; empty if it can, or is.
func (v *View) CannotGrow(c *facts.Claim, volume render.Volume) string {
	if volume.Claim.Size == nil {
		return ""
	}
	has := c.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch cmp := volume.Claim.Size.Cmp(has); {
	case cmp < 0:
		return fmt.Sprintf("claim %s has %s, and volumes do not shrink", c.Claim.Name, &has)
	case cmp == 0:
		return ""
	}
	class := ""
	if c.Claim.Spec.StorageClassName != nil {
		class = *c.Claim.Spec.StorageClassName
	}
	if !v.Expandable[class] {
		return fmt.Sprintf("storage class %q of claim %s does not let volumes grow (allowVolumeExpansion)", class,
			c.Claim.Name)
	}
	return ""
}
