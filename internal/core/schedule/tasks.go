package schedule

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// owned says that a schedule has made a task.
func owned(s *v1alpha1.CassandraTaskSchedule, t *v1alpha1.CassandraTask) bool {
	return facts.Owned(t, string(s.UID))
}

// history puts into the status what the tasks have come to, and returns the deletions of those that
// have finished and are too many.
func history(s *facts.Schedule, status *v1alpha1.CassandraTaskScheduleStatus) (surplus []plan.Write) {
	status.Active = ""
	finished := map[v1alpha1.TaskPhase][]*v1alpha1.CassandraTask{}
	for _, t := range s.Tasks {
		switch {
		case !owned(s.Schedule, t) || t.DeletionTimestamp != nil:
		case !t.Status.Finished():
			status.Active = t.Name
		default:
			finished[t.Status.Phase] = append(finished[t.Status.Phase], t)
			last := status.LastResult
			if last == nil || last.FinishedAt.Before(t.Status.FinishedAt) {
				status.LastResult = &v1alpha1.ScheduledResult{Task: t.Name, Phase: t.Status.Phase,
					FinishedAt: t.Status.FinishedAt}
			}
		}
	}
	for _, of := range []struct {
		phase v1alpha1.TaskPhase
		keep  *int32
		field string
	}{
		{v1alpha1.TaskSucceeded, s.Schedule.Spec.KeepSucceeded, "spec.keepSucceeded"},
		{v1alpha1.TaskFailed, s.Schedule.Spec.KeepFailed, "spec.keepFailed"},
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
func taskFor(s *v1alpha1.CassandraTaskSchedule, name string) *v1alpha1.CassandraTask {
	yes := true
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
