package upkeep

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// stopTimeout is how long a deleted cluster waits for an agent to stop its node in order before the
// pod is deleted all the same. helenus-init then stops the JVM by itself, in the pod's grace
// period.
const stopTimeout = 5 * time.Minute

// Deletion takes a deleted cluster apart: every node is stopped in order, then its pod goes, then,
// if the user said so, its claims, then its record, and last the ledger and the cluster itself. A
// claim outlives the cluster unless volumes.onClusterDeletion is Delete.
func (k *Keeper) Deletion() plan.Result {
	if k.Cluster.DeletionTimestamp == nil {
		return plan.Nothing()
	}
	if !slices.Contains(k.Cluster.Finalizers, v1alpha1.FinalizerCluster) {
		return plan.Waiting("the cluster is being deleted")
	}
	stopping, pods := 0, 0
	for _, n := range k.Records() {
		if n.Record.Spec.State == v1alpha1.StateRunning {
			k.update(n, false, "the cluster is being deleted", func(spec *v1alpha1.CassandraNodeSpec) {
				spec.State, spec.ClientTraffic = v1alpha1.StateStopped, v1alpha1.TrafficClosed
			})
			stopping++
		}
	}
	for _, name := range k.Names() {
		n := k.Nodes[name]
		if n.Pod == nil {
			continue
		}
		pods++
		if n.Pod.DeletionTimestamp == nil && k.mayDeletePod(n) {
			k.draft.Write(plan.DeletePod(n.Pod, "the cluster is being deleted and its node is stopped"))
		}
	}
	k.forceDeleteFromLostHosts("Deletion")
	if stopping > 0 || pods > 0 {
		return plan.Acting("stopping the nodes: %d pods left", pods)
	}
	if k.Cluster.Spec.Volumes.OnClusterDeletion == v1alpha1.ClaimDelete {
		if left := k.deleteClaims(); left > 0 {
			return plan.Acting("deleting the claims: %d left", left)
		}
		k.deletePasswords()
	}
	for _, t := range k.Tasks {
		if t.DeletionTimestamp == nil {
			k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(t), UID: t.UID,
				Why: "its cluster is being deleted"})
		}
	}
	for _, b := range k.Backups {
		if b.DeletionTimestamp == nil && !b.Status.Phase.Final() {
			k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(b), UID: b.UID,
				Why: "its cluster is being deleted, and it has not finished"})
		}
	}
	for _, r := range k.Restores {
		if r.DeletionTimestamp == nil && !r.Status.Finished() {
			k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(r), UID: r.UID,
				Why: "its cluster is being deleted, and it has not finished"})
		}
	}
	records := k.Records()
	for _, n := range records {
		k.removeRecord(n, "the cluster is being deleted")
	}
	if len(records) > 0 {
		return plan.Acting("removing %d records", len(records))
	}
	deleteEach(k, k.Shared.Services)
	deleteEach(k, k.Shared.Budgets)
	deleteEach(k, k.Shared.NetworkPolicies)
	deleteEach(k, k.Shared.RoleBindings)
	deleteEach(k, k.Shared.Roles)
	deleteEach(k, k.Shared.ServiceAccounts)
	deleteEach(k, k.Shared.Secrets)
	deleteEach(k, k.Shared.ConfigMaps)
	k.draft.Write(plan.Write{Verb: plan.Release, Object: k.Cluster, UID: k.Cluster.UID,
		Finalizer: v1alpha1.FinalizerCluster})
	return plan.Acting("releasing the cluster")
}

// deleteSecret deletes a Secret. It would go with its owner, too; but an owner that somebody took
// away is noticed late, since Secrets are not watched, and what stayed behind would be a key.
func (k *Keeper) deleteSecret(secret *corev1.Secret, why string) {
	if secret != nil && secret.DeletionTimestamp == nil {
		k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(secret), UID: secret.UID, Why: why})
	}
}

// deleteEach deletes objects of a kind. They would go with their owner, too, unless somebody took
// that away from them, as the deletion of a cluster as orphan does.
func deleteEach[P plan.Object](k *Keeper, objects map[string]P) {
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if o := objects[name]; o.GetDeletionTimestamp() == nil {
			k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(o), UID: o.GetUID(),
				Why: "the cluster is being deleted"})
		}
	}
}

// mayDeletePod says whether the pod of a node that is to be stopped can go: its agent has stopped
// the JVM in order, or never started one.
func (k *Keeper) mayDeletePod(n *facts.Node) bool {
	if n.Pod.Spec.NodeName == "" || n.Record == nil || n.Record.Spec.State == v1alpha1.StateDecommissioned {
		return true
	}
	if n.StatusIsCurrent() && n.Record.Status.ObservedGeneration == n.Record.Generation &&
		n.Record.Status.Phase == v1alpha1.PhaseStopped {
		return true
	}
	left := k.Cluster.DeletionTimestamp.Add(stopTimeout).Sub(k.Now)
	if left <= 0 {
		return true
	}
	k.draft.WakeIn(left)
	return false
}

// deleteClaims deletes the claims of the cluster, each by the uid it was seen with, and counts
// those that are still there.
func (k *Keeper) deleteClaims() int {
	left := 0
	for _, name := range k.Names() {
		for _, volume := range slices.Sorted(maps.Keys(k.Nodes[name].Claims)) {
			claim := k.Nodes[name].Claims[volume].Claim
			if claim == nil || !k.OwnsClaim(k.Nodes[name], claim) {
				continue
			}
			left++
			if claim.DeletionTimestamp == nil {
				k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(claim), UID: claim.UID,
					Why: "volumes.onClusterDeletion is Delete"})
			}
		}
	}
	return left
}

// removeRecord deletes a record, and in the next pass lets it go.
func (k *Keeper) removeRecord(n *facts.Node, why string) {
	switch {
	case n.Record.DeletionTimestamp == nil:
		for _, use := range k.uses() {
			k.deleteSecret(k.Shared.Secrets[v1alpha1.CertificateName(n.Name, use)], why)
		}
		k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(n.Record), UID: n.Record.UID, Why: why})
	case slices.Contains(n.Record.Finalizers, v1alpha1.FinalizerNode):
		k.draft.Write(plan.Write{Verb: plan.Release, Object: plan.Named(n.Record), UID: n.Record.UID,
			Finalizer: v1alpha1.FinalizerNode})
	}
}
