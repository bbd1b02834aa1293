package schedule

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// own says that the schedule has made a task.
func (p *pass) own(t *v1alpha1.CassandraTask) bool {
	return facts.Owned(t, string(p.object.UID))
}

// history puts into the status what the tasks have come to, and returns the deletions of those that
// have finished and are too many.
func (p *pass) history() (surplus []plan.Write) {
	p.status.Active = ""
	finished := map[v1alpha1.TaskPhase][]*v1alpha1.CassandraTask{}
	for _, t := range p.Tasks {
		switch {
		case !p.own(t) || t.DeletionTimestamp != nil:
		case !t.Status.Finished():
			p.status.Active = t.Name
		default:
			finished[t.Status.Phase] = append(finished[t.Status.Phase], t)
			last := p.status.LastResult
			if last == nil || last.FinishedAt.Before(t.Status.FinishedAt) {
				p.status.LastResult = &v1alpha1.ScheduledResult{Task: t.Name, Phase: t.Status.Phase,
					FinishedAt: t.Status.FinishedAt}
			}
		}
	}
	for _, of := range []struct {
		phase v1alpha1.TaskPhase
		keep  *int32
		field string
	}{
		{v1alpha1.TaskSucceeded, p.object.Spec.KeepSucceeded, "spec.keepSucceeded"},
		{v1alpha1.TaskFailed, p.object.Spec.KeepFailed, "spec.keepFailed"},
	} {
		all := finished[of.phase]
		for i := 0; of.keep != nil && i < len(all)-int(*of.keep); i++ {
			surplus = append(surplus, plan.Write{Verb: plan.Delete, Object: plan.Named(all[i]), UID: all[i].UID,
				Why: of.field + " newer ones are kept"})
		}
	}
	return surplus
}

// taskFor is the task that the schedule makes.
func (p *pass) taskFor(name string) *v1alpha1.CassandraTask {
	s, yes := p.object, true
	return &v1alpha1.CassandraTask{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CassandraTask"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelSchedule:  s.Name,
				v1alpha1.LabelComponent: v1alpha1.ComponentTask,
				v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
				v1alpha1.LabelName:      "cassandra",
				v1alpha1.LabelInstance:  s.Spec.Cluster.Name,
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(),
				Kind: "CassandraTaskSchedule", Name: s.Name, UID: s.UID, Controller: &yes}}},
		Spec: v1alpha1.CassandraTaskSpec{Cluster: s.Spec.Cluster, TaskTemplate: *s.Spec.Template.DeepCopy()},
	}
}
