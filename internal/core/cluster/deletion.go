package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// stopPatience is how long a deleted cluster waits for an agent to stop its node in order before the pod is deleted all the same. helenus-init then stops
// the JVM by itself, in the pod's grace period.
const stopPatience = 5 * time.Minute

// deletion takes a deleted cluster apart: every node is stopped in order, then its pod goes, then, if the user said so, its claims, then its record, and
// last the ledger and the cluster itself. A claim outlives the cluster unless volumes.onClusterDeletion is Delete.
func deletion(p *pass) result {
	if p.Cluster.DeletionTimestamp == nil {
		return done()
	}
	if !hasFinalizer(p.Cluster, v1alpha1.FinalizerCluster) {
		return wait("the cluster is being deleted")
	}
	p.ownAll()
	stopping, pods := 0, 0
	for _, n := range p.Records() {
		if n.Record.Spec.State != v1alpha1.StateStopped {
			record := render.ForApply(p.owner(), n.Record)
			record.Spec.State = v1alpha1.StateStopped
			record.Spec.ClientTraffic = v1alpha1.TrafficClosed
			p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Why: "the cluster is being deleted"})
			stopping++
		}
	}
	for _, name := range p.Names() {
		n := p.Nodes[name]
		if n.Pod == nil {
			continue
		}
		pods++
		if n.Pod.DeletionTimestamp == nil && p.mayDeletePod(n) {
			p.write(deletePod(n.Pod, "the cluster is being deleted and its node is stopped"))
		}
	}
	p.leaveHosts("Deletion")
	if stopping > 0 || pods > 0 {
		return act("stopping the nodes: %d pods left", pods)
	}
	if p.Cluster.Spec.Volumes.OnClusterDeletion == v1alpha1.ClaimDelete {
		if left := p.deleteClaims(); left > 0 {
			return act("deleting the claims: %d left", left)
		}
	}
	records := p.Records()
	for _, n := range records {
		p.removeRecord(n, "the cluster is being deleted")
	}
	if len(records) > 0 {
		return act("removing %d records", len(records))
	}
	if p.Ledger != nil && p.Ledger.UID != "" {
		p.write(plan.Write{Verb: plan.Delete, Object: render.Ledger(p.owner(), nil), UID: p.Ledger.UID, Why: "the cluster is being deleted"})
	}
	p.deleteSecret(p.Shared.Secrets[v1alpha1.AuthorityName(p.Cluster.Name)], "the cluster is being deleted")
	p.write(plan.Write{Verb: plan.Release, Object: p.Cluster, UID: p.Cluster.UID, Finalizer: v1alpha1.FinalizerCluster})
	return act("releasing the cluster")
}

// ownAll gives every object its owner back: what has none stays behind when the cluster goes.
func (p *pass) ownAll() {
	s := p.Shared
	ownEach(p, s.Services)
	ownEach(p, s.Budgets)
	ownEach(p, s.ServiceAccounts)
	ownEach(p, s.Roles)
	ownEach(p, s.RoleBindings)
	if seeds := s.ConfigMaps[v1alpha1.SeedsName(p.Cluster.Name)]; seeds != nil {
		p.own(seeds, render.Seeds(p.owner(), nil))
	}
}

// deleteSecret deletes a Secret. It would go with its owner, too; but an owner that somebody took away is noticed late, since Secrets are not watched, and what
// stayed behind would be a key.
func (p *pass) deleteSecret(secret *corev1.Secret, why string) {
	if secret != nil && secret.DeletionTimestamp == nil {
		p.write(plan.Write{Verb: plan.Delete, Object: named(secret), UID: secret.UID, Why: why})
	}
}

// ownEach makes the cluster the owner of objects of a kind.
func ownEach[P plan.Object](p *pass, objects map[string]P) {
	for _, name := range sortedKeys(objects) {
		p.own(objects[name], render.AgentServiceAccount(p.owner(), nil))
	}
}

// own gives an object the owner of another.
func (p *pass) own(have, like plan.Object) {
	if metav1.GetControllerOf(have) != nil || have.GetDeletionTimestamp() != nil {
		return
	}
	now := have.DeepCopyObject().(plan.Object)
	now.SetOwnerReferences(like.GetOwnerReferences())
	p.write(plan.Write{Verb: plan.Change, Object: now, Seen: have, UID: have.GetUID(), Why: "so that it goes with its owner"})
}

// mayDeletePod says whether the pod of a node that is to be stopped can go: its agent has stopped the JVM in order, or never started one.
func (p *pass) mayDeletePod(n *facts.Node) bool {
	if n.Pod.Spec.NodeName == "" || n.Record == nil {
		return true
	}
	if n.StatusIsCurrent() && n.Record.Status.ObservedGeneration == n.Record.Generation && n.Record.Status.Phase == v1alpha1.PhaseStopped {
		return true
	}
	patience := p.Cluster.DeletionTimestamp.Add(stopPatience).Sub(p.now)
	if patience <= 0 {
		return true
	}
	p.wakeIn(patience)
	return false
}

// deleteClaims deletes the claims of the cluster, each by the uid it was seen with, and counts those that are still there.
func (p *pass) deleteClaims() int {
	left := 0
	for _, name := range p.Names() {
		for _, volume := range sortedKeys(p.Nodes[name].Claims) {
			claim := p.Nodes[name].Claims[volume].Claim
			if claim == nil || !p.ownsClaim(p.Nodes[name], claim) {
				continue
			}
			left++
			if claim.DeletionTimestamp == nil {
				p.write(plan.Write{Verb: plan.Delete, Object: named(claim), UID: claim.UID, Why: "volumes.onClusterDeletion is Delete"})
			}
		}
	}
	return left
}

// ownsClaim says that a claim is this cluster's: it carries its uid, or a record pins its uid.
func (p *pass) ownsClaim(n *facts.Node, claim *corev1.PersistentVolumeClaim) bool {
	if claim.Labels[v1alpha1.LabelClusterUID] == string(p.Cluster.UID) {
		return true
	}
	return pinned(n, claim)
}

func pinned(n *facts.Node, claim *corev1.PersistentVolumeClaim) bool {
	if n.Record == nil {
		return false
	}
	for _, c := range n.Record.Spec.Claims {
		if c.UID == claim.UID {
			return true
		}
	}
	return false
}

// removeRecord deletes a record, and in the next pass lets it go.
func (p *pass) removeRecord(n *facts.Node, why string) {
	switch {
	case n.Record.DeletionTimestamp == nil:
		p.deleteSecret(n.Secret, why)
		p.write(plan.Write{Verb: plan.Delete, Object: named(n.Record), UID: n.Record.UID, Why: why})
	case hasFinalizer(n.Record, v1alpha1.FinalizerNode):
		p.write(plan.Write{Verb: plan.Release, Object: named(n.Record), UID: n.Record.UID, Finalizer: v1alpha1.FinalizerNode})
	}
}

func deletePod(pod *corev1.Pod, why string) plan.Write {
	return plan.Write{Verb: plan.Delete, Object: named(pod), UID: pod.UID, Why: why}
}

// named is an object with nothing but its type and name: all that a deletion needs.
func named(object plan.Object) plan.Object {
	meta := metav1.ObjectMeta{Name: object.GetName(), Namespace: object.GetNamespace()}
	switch object.(type) {
	case *corev1.Pod:
		return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta}
	case *corev1.PersistentVolumeClaim:
		return &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: meta}
	case *v1alpha1.CassandraNode:
		return &v1alpha1.CassandraNode{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CassandraNode"}, ObjectMeta: meta}
	default:
		return object
	}
}

func hasFinalizer(object metav1.Object, finalizer string) bool {
	for _, f := range object.GetFinalizers() {
		if f == finalizer {
			return true
		}
	}
	return false
}
