package upkeep

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// growVolumes has the records of nodes ask for larger volumes; their claims follow. That disturbs
// no node.
func (k *Keeper) growVolumes() {
	for _, c := range k.growing {
		k.update(c.node, false, "its volumes are to grow", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.Pod.Storage = c.wanted.Pod.Storage
		})
	}
}

// growClaim has a claim ask for as much as its record says. The storage driver and kubelet do the
// rest, while the pod runs.
func (k *Keeper) growClaim(n *facts.Node, v render.Volume) {
	c := n.Claims[v.Name]
	if !c.Bound() || v.Claim.Size == nil ||
		v.Claim.Size.Cmp(c.Claim.Spec.Resources.Requests[corev1.ResourceStorage]) <= 0 || k.CannotGrow(c, v) != "" ||
		slices.ContainsFunc(k.growing, func(g correction) bool { return g.node == n }) { // its record comes first
		return
	}
	now, has := c.Claim.DeepCopy(), c.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	now.Spec.Resources.Requests[corev1.ResourceStorage] = *v.Claim.Size
	k.draft.Write(plan.Write{Verb: plan.Change, Object: now, Seen: c.Claim, UID: c.Claim.UID,
		Why: fmt.Sprintf("it grows from %s to %s", &has, v.Claim.Size)})
}

// noticeGrowing names the claims that ask for more than their volumes have yet.
func (k *Keeper) noticeGrowing() {
	var nodes, claims []string
	for _, n := range k.Records() {
		before := len(claims)
		for _, c := range n.Claims {
			if c.Growing() {
				nodes, claims = append(nodes, n.Name), append(claims, growthInWords(c.Claim))
			}
		}
		slices.Sort(claims[before:])
	}
	if len(claims) > 0 {
		k.draft.Notice(v1alpha1.NoticeVolumeGrows, slices.Compact(nodes), "%s: the storage driver has not made the "+
			"volume as large yet; see the events of the claim if it stays so", words.List(claims, 3))
	}
}

// growthInWords says how far the growth of a claim is, and what its conditions say of it.
func growthInWords(claim *corev1.PersistentVolumeClaim) string {
	has, wants := claim.Status.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	out := fmt.Sprintf("claim %s has %s of %s", claim.Name, &has, &wants)
	for _, c := range claim.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			out += ", " + string(c.Type)
			if c.Message != "" {
				out += ": " + c.Message
			}
		}
	}
	return out
}
