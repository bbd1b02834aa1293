package upkeep

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// Labels and owners are how objects are found, selected by services and budgets, and collected.
// What somebody takes away of them is put back.

// repairMetadata puts back what belongs to the metadata of records, unless a record is written
// anyway: every write of one has it.
func (k *Keeper) repairMetadata() {
	owner := k.Owner()
	for _, n := range k.Records() {
		right := render.HasNodeLabels(n.Record.Labels, owner, n.Record) &&
			slices.Contains(n.Record.Finalizers, v1alpha1.FinalizerNode) &&
			render.BelongsTo(n.Record.OwnerReferences, owner)
		if right || n.Record.DeletionTimestamp != nil || k.draft.Has(n.Record) {
			continue
		}
		k.apply(n, render.ForApply(owner, n.Record), "somebody edited its metadata")
	}
}

// relabelPod gives a pod that runs the labels by which it is found and selected, and the labels and
// annotations of its record.
func (k *Keeper) relabelPod(n *facts.Node) {
	if render.Describes(k.Owner(), n.Record, n.Pod) {
		return
	}
	now, want := n.Pod.DeepCopy(), render.PodMetadata(k.Owner(), n.Record)
	want.OwnerReferences = n.Pod.OwnerReferences
	repairMeta(now, want)
	if made, ok := n.Pod.Annotations[v1alpha1.AnnotationTemplateHash]; ok { // whatever the note of keys says
		now.Annotations[v1alpha1.AnnotationTemplateHash] = made
	}
	k.draft.Write(plan.Write{Verb: plan.Change, Object: now, Seen: n.Pod, UID: n.Pod.UID,
		Why: "its labels and annotations are not those of its record"})
}

// relabelClaim puts back the labels of a claim, and makes an adopted one this cluster's own once
// the adoption is complete, so that it can be deleted, or adopted again, as such.
func (k *Keeper) relabelClaim(n *facts.Node, v render.Volume, claim *corev1.PersistentVolumeClaim) {
	if render.HasClaimLabels(claim.Labels, k.Owner(), n.Record, v.Name) {
		return
	}
	want, why := render.Claim(k.Owner(), n.Record, v).Labels, "somebody edited its labels"
	if of := claim.Labels[v1alpha1.LabelClusterUID]; of != want[v1alpha1.LabelClusterUID] {
		if why = "it was adopted"; !k.HasRing() || k.Ledger.Step != nil {
			delete(want, v1alpha1.LabelClusterUID)
		}
	}
	k.relabel(claim, want, why)
}

func (k *Keeper) relabel(have plan.Object, want map[string]string, why string) {
	if render.Within(want, have.GetLabels()) {
		return
	}
	now := have.DeepCopyObject().(plan.Object)
	addLabels(now, want)
	k.draft.Write(plan.Write{Verb: plan.Change, Object: now, Seen: have, UID: have.GetUID(), Why: why})
}
