package upkeep

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// Monitor keeps the PodMonitor of a cluster, or takes it away where there is to be none; have is
// what is there of its name, nil for nothing. One of somebody else is left alone.
func Monitor(cluster *v1alpha1.CassandraCluster, have *unstructured.Unstructured) plan.Plan {
	k, want := &Keeper{draft: &plan.Draft{}}, render.PodMonitor(cluster)
	existing := map[string]*unstructured.Unstructured{}
	if have != nil {
		existing[have.GetName()] = have
	}
	ours := have != nil && (have.GetLabels()[v1alpha1.LabelClusterUID] == string(cluster.UID) ||
		facts.Owned(have, string(cluster.UID)))
	switch {
	case have != nil && !ours:
		return plan.Plan{Steps: []plan.Report{{Step: "PodMonitor", Outcome: plan.Wait, Message: "there is one of the " +
			"name that is not of this cluster: it stays as it is"}}}
	case want != nil:
		ensure(k, existing, want, repairMonitor, edited)
	case ours && have.GetDeletionTimestamp() == nil:
		k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(have), UID: have.GetUID(),
			Why: "metrics.podMonitor.mode is None, or the cluster is being deleted"})
	}
	return k.draft.Plan
}

func repairMonitor(now, want *unstructured.Unstructured) bool {
	now.Object["spec"] = want.Object["spec"]
	return true
}
