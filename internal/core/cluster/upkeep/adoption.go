package upkeep

import (
	"fmt"
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// claimOfOthers is a claim under one of our names that another cluster has left.
type claimOfOthers struct{ name, node string }

func (c claimOfOthers) String() string { return c.name }

// claimsOfOthers are the claims under our names that belong to another cluster, by the uid of that
// cluster.
func (k *Keeper) claimsOfOthers() map[string][]claimOfOthers {
	out := map[string][]claimOfOthers{}
	for _, name := range k.Names() {
		for _, volume := range slices.Sorted(maps.Keys(k.Nodes[name].Claims)) {
			c := k.Nodes[name].Claims[volume].Claim
			if c == nil || k.OwnsClaim(k.Nodes[name], c) {
				continue
			}
			of := c.Labels[v1alpha1.LabelClusterUID]
			out[of] = append(out[of], claimOfOthers{name: c.Name, node: name})
		}
	}
	return out
}

// adoptableClaims says whether the claims that are there are just those that the spec needs:
// without volumes.adopt none of an earlier cluster, with it all data volumes of that one and of no
// other. Nothing is made before that.
func (k *Keeper) adoptableClaims() plan.Result {
	adopt := string(k.Adopts())
	others := k.claimsOfOthers()
	for _, uid := range slices.Sorted(maps.Keys(others)) {
		if uid != "" && uid == adopt {
			continue
		}
		k.draft.Stall(v1alpha1.ReasonForeignDisks, "%s", foreignClaims(uid, others[uid]))
		return plan.Stopped("claims of an earlier cluster are in the way")
	}
	if adopt == "" {
		return plan.Nothing()
	}
	var missing []string
	var extra []claimOfOthers
	for _, w := range k.Wanted {
		for _, v := range render.Volumes(w.Pod) {
			if n := k.Nodes[w.Name]; n == nil || n.Claims[v.Name] == nil || !k.MayUse(n.Claims[v.Name].Claim) {
				missing = append(missing, v1alpha1.ClaimName(v.Name, w.Name))
			}
		}
	}
	for _, claim := range others[adopt] {
		if k.Describes(claim.node) == nil {
			extra = append(extra, claim)
		}
	}
	switch {
	case len(missing) > 0:
		k.draft.Stall(v1alpha1.ReasonAdoptionIncomplete,
			"claim %s of the cluster with uid %s is not there: with a disk missing nothing is started, since it "+
				"would join empty; restore it, or describe a cluster without that node", words.List(missing, 3), adopt)
		return plan.Stopped("not all disks to adopt are there")
	case len(extra) > 0:
		k.draft.Stall(v1alpha1.ReasonAdoptionIncomplete,
			"claim %s of the cluster with uid %s belongs to a node that the spec does not describe: describe all its "+
				"nodes", words.List(extra, 3), adopt)
		return plan.Stopped("the spec does not describe all nodes to adopt")
	}
	return plan.Nothing()
}

func foreignClaims(uid string, claims []claimOfOthers) string {
	if uid == "" {
		return fmt.Sprintf("claim %s was not made by Helenus: delete or rename it, or choose another name for the "+
			"cluster", words.List(claims, 3))
	}
	return fmt.Sprintf("claim %s holds data of an earlier cluster with uid %s: delete the claims; or create the "+
		"cluster again with bootstrap.adopt.clusterUID: %s, which uses them", words.List(claims, 3), uid, uid)
}
