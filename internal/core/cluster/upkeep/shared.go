package upkeep

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// SharedObjects are those that a cluster has beside its nodes: services, the agents' account and
// rights, the certificate authority, disruption budgets. What somebody edited or deleted is put
// back. Later steps need not wait: writes are carried out in order.
func (k *Keeper) SharedObjects(rangesMove bool) plan.Result {
	before := len(k.draft.Writes)
	o := k.Owner()
	k.authorities()
	k.passwords()
	ensure(k, k.Shared.ServiceAccounts, render.AgentServiceAccount(o, k.Cluster.Spec.ServiceAccount), repairAccount,
		edited)
	ensure(k, k.Shared.Roles, render.AgentRole(o, k.secretsOfAgents()...), repairRole, edited)
	ensure(k, k.Shared.RoleBindings, render.AgentRoleBinding(o), repairBinding, edited)
	ensure(k, k.Shared.Services, render.NodesService(o, k.Cluster.Spec.Services), repairService, edited)
	for _, dc := range k.Datacenters() {
		ensure(k, k.Shared.Services, render.ClientService(o, dc, k.Cluster.Spec.Services), repairService, edited)
		k.budget(procedure.Budget(k.View, dc, rangesMove))
	}
	if !k.SpecRejected && !k.LedgerLost {
		removeOthers(k, k.Shared.Services, v1alpha1.ClientServiceName)
		removeOthers(k, k.Shared.Budgets, v1alpha1.DisruptionBudgetName)
	}
	if have := k.Shared.ConfigMaps[v1alpha1.RepairsName(o.Name)]; have != nil { // what it says is another step's
		ensure(k, k.Shared.ConfigMaps, render.Repairs(o, have.Data[render.RepairsKey]), repairConfig, edited)
	}
	k.network()
	if n := len(k.draft.Writes) - before; n > 0 {
		return plan.Result{Outcome: plan.Done, Message: words.Plural(n, "object") + " to repair"}
	}
	return plan.Nothing()
}

// removeOthers removes what a datacenter had of which there is nothing any more.
func removeOthers[P plan.Object](k *Keeper, existing map[string]P, nameOf func(cluster, datacenter string) string) {
	present := k.Datacenters()
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		o := existing[name]
		dc := o.GetLabels()[v1alpha1.LabelDatacenter]
		if dc != "" && name == nameOf(k.Cluster.Name, dc) && !slices.Contains(present, dc) &&
			o.GetDeletionTimestamp() == nil {
			k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(o), UID: o.GetUID(),
				Why: "its datacenter has left the ring"})
		}
	}
}

// budget repairs a disruption budget. Before that of a ring is opened the API server itself is
// looked at: a view that stood still does not show the step for which it was closed.
func (k *Keeper) budget(want *policyv1.PodDisruptionBudget) {
	ensure(k, k.Shared.Budgets, want, repairBudget, edited)
	if have := k.Shared.Budgets[want.Name]; have != nil && len(k.Ledger.Members) > 0 && opens(have, want) {
		k.draft.Writes[len(k.draft.Writes)-1].Live = true // one that opens differs, and is always changed
	}
}

// opens says that a budget is to leave less available than it does, or to let unready pods go.
func opens(have, want *policyv1.PodDisruptionBudget) bool {
	always := func(b *policyv1.PodDisruptionBudget) bool {
		return b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	}
	return have.Spec.MinAvailable != nil && want.Spec.MinAvailable.IntValue() < have.Spec.MinAvailable.IntValue() ||
		always(want) && !always(have)
}

// edited is why an object is changed that only somebody else can have changed, or a budget with its
// members.
const edited = "it is not what it should be"

// ensure creates an object that is missing, and repairs one that differs in what is ours: labels,
// owner, and what right sets. What others added stays, but not to lists and maps that are ours as a
// whole. If right says that the object cannot be changed to what it is to be, it is recreated.
func ensure[T any, P interface {
	*T
	plan.Object
}](k *Keeper, existing map[string]P, want P, right func(now, want P) bool, why string) {
	have, ok := existing[want.GetName()]
	if !ok {
		k.draft.Write(plan.Write{Verb: plan.Create, Object: want})
		return
	}
	switch now, possible := repaired(have, want, right); {
	case isRepaired(have, want, right):
	case possible:
		k.draft.Write(plan.Write{Verb: plan.Change, Object: now, Seen: have, UID: have.GetUID(), Why: why})
	case have.GetDeletionTimestamp() == nil:
		k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(want), UID: have.GetUID(),
			Why: "it is not what it should be, and cannot be changed to that; it is recreated"})
	}
}

// repaired is what an object is to be, and says whether it can be changed to that.
func repaired[P plan.Object](have, want P, right func(now, want P) bool) (P, bool) {
	now := have.DeepCopyObject().(P)
	possible := right(now, want)
	repairMeta(now, want)
	return now, possible
}

// isRepaired says that an object is what it is to be.
func isRepaired[P plan.Object](have, want P, right func(now, want P) bool) bool {
	now, possible := repaired(have, want, right)
	return possible && equality.Semantic.DeepEqual(have, now)
}

// repairMeta gives an object our labels and annotations, beside those of others, takes away those
// that the spec has no longer, and leaves it no owner but ours.
func repairMeta(now, want plan.Object) {
	before := render.AddedTo(now)
	now.SetLabels(without(now.GetLabels(), before.Labels))
	now.SetAnnotations(without(now.GetAnnotations(), append(before.Annotations, v1alpha1.AnnotationAdded)))
	addLabels(now, want.GetLabels())
	if wanted := want.GetAnnotations(); len(wanted) > 0 {
		annotations := map[string]string{}
		maps.Copy(annotations, now.GetAnnotations())
		maps.Copy(annotations, wanted)
		now.SetAnnotations(annotations)
	}
	now.SetOwnerReferences(want.GetOwnerReferences())
}

// without is a map without some keys.
func without(in map[string]string, keys []string) map[string]string {
	out := maps.Clone(in)
	for _, key := range keys {
		delete(out, key)
	}
	return out
}

// addLabels does not touch what is shared with others: a copy of an object has labels of its own.
func addLabels(now plan.Object, want map[string]string) {
	labels := map[string]string{}
	maps.Copy(labels, now.GetLabels())
	maps.Copy(labels, want)
	now.SetLabels(labels)
}

func repairAccount(now, want *corev1.ServiceAccount) bool {
	now.AutomountServiceAccountToken = want.AutomountServiceAccountToken
	return true
}

func repairRole(now, want *rbacv1.Role) bool {
	now.Rules = want.Rules
	return true
}

func repairBinding(now, want *rbacv1.RoleBinding) bool {
	now.Subjects = want.Subjects
	return now.RoleRef == want.RoleRef
}

// repairService keeps what Kubernetes has given to the service: ports of the hosts, and families of
// addresses where the spec names none. A service keeps its main family and its being headless for
// life.
func repairService(now, want *corev1.Service) bool {
	now.Spec.Selector, now.Spec.PublishNotReadyAddresses = want.Spec.Selector, want.Spec.PublishNotReadyAddresses
	ports := slices.Clone(want.Spec.Ports)
	for i := range ports {
		at := slices.IndexFunc(now.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == ports[i].Name })
		if at >= 0 && want.Spec.Type != corev1.ServiceTypeClusterIP {
			ports[i].NodePort = now.Spec.Ports[at].NodePort
		}
	}
	now.Spec.Ports, now.Spec.Type = ports, want.Spec.Type
	possible := (now.Spec.ClusterIP == corev1.ClusterIPNone) == (want.Spec.ClusterIP == corev1.ClusterIPNone)
	if families := want.Spec.IPFamilies; len(families) > 0 {
		possible = possible && (len(now.Spec.IPFamilies) == 0 || now.Spec.IPFamilies[0] == families[0])
		if len(families) == 1 && len(now.Spec.ClusterIPs) > 1 {
			now.Spec.ClusterIPs = now.Spec.ClusterIPs[:1:1]
		}
		now.Spec.IPFamilyPolicy, now.Spec.IPFamilies = want.Spec.IPFamilyPolicy, families
	}
	return possible
}

func repairBudget(now, want *policyv1.PodDisruptionBudget) bool {
	now.Spec = want.Spec
	return true
}

func repairConfig(now, want *corev1.ConfigMap) bool {
	possible := now.Immutable == nil || !*now.Immutable || maps.Equal(now.Data, want.Data)
	now.Data, now.BinaryData = want.Data, nil
	return possible
}
