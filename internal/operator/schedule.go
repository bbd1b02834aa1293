package operator

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/schedule"
	"helenus.io/helenus/internal/observe"
)

// Schedules makes passes over CassandraTaskSchedules: observe, decide, act.
type Schedules struct {
	Reader *observe.Reader
	Writer *act.Writer
	// Now is the time of day, as the host's clock says it.
	Now func() time.Time

	memories
}

// Reconcile makes one pass over a schedule.
func (r *Schedules) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := request.NamespacedName
	m := r.memory(key)
	s, err := r.Reader.Schedule(ctx, key, &m.store)
	switch {
	case errors.Is(err, observe.ErrBehind):
		return ctrl.Result{RequeueAfter: behindPause}, nil
	case err != nil:
		pause := m.failed()
		ctrl.LoggerFrom(ctx).Error(err, "observe the schedule", "again", pause.String())
		return ctrl.Result{RequeueAfter: pause}, nil
	case s == nil:
		r.forget(key)
		return ctrl.Result{}, nil
	}
	plan := schedule.Next(s, r.Now())
	confirm := func(ctx context.Context) error { return r.Reader.ConfirmSchedule(ctx, s) }
	done := r.Writer.Do(ctx, &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}}, plan, confirm, &m.store)
	raced, failed := sorted(done.Err)
	again := m.again(plan.Wake, raced, failed)
	m.log(ctrl.LoggerFrom(ctx), plan, done, again, raced, failed)
	return ctrl.Result{RequeueAfter: again}, nil
}

// watch has a manager make passes over a schedule when it, a task of it or its cluster changes.
func (r *Schedules) watch(m manager.Manager) error {
	return ctrl.NewControllerManagedBy(m).
		Named("cassandrataskschedule").
		For(&v1alpha1.CassandraTaskSchedule{}).
		Owns(&v1alpha1.CassandraTask{}).
		Watches(&v1alpha1.CassandraCluster{}, handler.EnqueueRequestsFromMapFunc(ofSchedules(m.GetClient())),
			builder.WithPredicates(comesOrGoes())).
		Complete(r)
}

// ofSchedules are the schedules that name a cluster.
func ofSchedules(view client.Reader) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) []reconcile.Request {
		var all v1alpha1.CassandraTaskScheduleList
		if err := view.List(ctx, &all, client.InNamespace(cluster.GetNamespace())); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the schedules of a cluster", "cluster", cluster.GetName())
			return nil
		}
		var out []reconcile.Request
		for i := range all.Items {
			if s := &all.Items[i]; s.Spec.Cluster.Name == cluster.GetName() {
				out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.Namespace,
					Name: s.Name}})
			}
		}
		return out
	}
}

// comesOrGoes lets through that a cluster is there, is to be deleted, or is gone.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}
