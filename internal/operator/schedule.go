package operator

import (
	"context"
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
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/metrics"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/schedule"
	"helenus.io/helenus/internal/observe"
)

// Schedules makes passes over schedules: observe, decide, act.
type Schedules struct {
	Reader *observe.Reader
	Writer *act.Writer
	// Now is the time of day, as the host's clock says it.
	Now func() time.Time
	// Backups says that they are CassandraBackupSchedules; else they are CassandraTaskSchedules.
	Backups bool
	Metrics *Metrics

	memories
}

// Reconcile makes one pass over a schedule.
func (r *Schedules) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.pass(ctx, request.NamespacedName, r.Writer, func(own *consistency.Store) (*decision, error) {
		if r.Backups {
			return r.backups(ctx, request.NamespacedName, own)
		}
		s, err := r.Reader.Schedule(ctx, request.NamespacedName, own)
		if s == nil || err != nil {
			return nil, err //nolint:wrapcheck // it is ours
		}
		return r.confirmed(s.Schedule, schedule.Next(s, r.Now())), nil
	})
}

func (r *Schedules) backups(ctx context.Context, key types.NamespacedName, own *consistency.Store) (*decision, error) {
	s, err := r.Reader.BackupSchedule(ctx, key, own)
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // it is ours
	case s == nil:
		r.Metrics.Due(metrics.BackupDue, key, "", time.Time{})
		r.Metrics.Due(metrics.DrillDue, key, "", time.Time{})
		return nil, nil
	}
	now, cluster := r.Now(), s.Schedule.Spec.Cluster.Name
	r.Metrics.Due(metrics.BackupDue, key, cluster, schedule.BackupDue(s))
	r.Metrics.Due(metrics.DrillDue, key, cluster, schedule.DrillDue(s, now))
	return r.confirmed(s.Schedule, schedule.NextBackup(s, now)), nil
}

// confirmed is a plan that is carried out while the schedule is what was seen.
func (r *Schedules) confirmed(seen client.Object, p plan.Plan) *decision {
	return &decision{Plan: p,
		confirm: func(ctx context.Context) error { return r.Reader.ConfirmObject(ctx, seen) }}
}

// watch has a manager make passes over a schedule when it, what it has made, its cluster or its
// store changes.
func (r *Schedules) watch(m manager.Manager) error {
	named := builder.WithPredicates(comesOrGoes())
	b := ctrl.NewControllerManagedBy(m)
	if r.Backups {
		all := handler.EnqueueRequestsFromMapFunc(ofSchedules(m.GetClient(), backupSchedules))
		b = b.Named("cassandrabackupschedule").
			For(&v1alpha1.CassandraBackupSchedule{}).
			Owns(&v1alpha1.CassandraCluster{}).
			Watches(&v1alpha1.CassandraBackup{}, handler.EnqueueRequestsFromMapFunc(ofMade)).
			Watches(&v1alpha1.CassandraCluster{}, all, named).
			Watches(&v1alpha1.CassandraBackupStore{}, all, named)
	} else {
		b = b.Named("cassandrataskschedule").
			For(&v1alpha1.CassandraTaskSchedule{}).
			Owns(&v1alpha1.CassandraTask{}).
			Watches(&v1alpha1.CassandraCluster{},
				handler.EnqueueRequestsFromMapFunc(ofSchedules(m.GetClient(), taskSchedules)), named)
	}
	return b.Complete(r)
}

// ofMade is the schedule that a backup names in its labels.
func ofMade(_ context.Context, backup client.Object) []reconcile.Request {
	name := backup.GetLabels()[v1alpha1.LabelSchedule]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: backup.GetNamespace(), Name: name}}}
}

// taskSchedules, and backupSchedules, are those of a namespace that name an object.
func taskSchedules(ctx context.Context, view client.Reader, of client.Object) (names []string, err error) {
	var all v1alpha1.CassandraTaskScheduleList
	err = view.List(ctx, &all, client.InNamespace(of.GetNamespace()))
	for i := range all.Items {
		if s := &all.Items[i]; s.Spec.Cluster.Name == of.GetName() {
			names = append(names, s.Name)
		}
	}
	return names, err //nolint:wrapcheck // the caller says what
}

func backupSchedules(ctx context.Context, view client.Reader, of client.Object) (names []string, err error) {
	var all v1alpha1.CassandraBackupScheduleList
	err = view.List(ctx, &all, client.InNamespace(of.GetNamespace()))
	for i := range all.Items {
		s := &all.Items[i]
		name := s.Spec.Cluster.Name
		if _, store := of.(*v1alpha1.CassandraBackupStore); store {
			name = s.Spec.Store.Name
		}
		if name == of.GetName() {
			names = append(names, s.Name)
		}
	}
	return names, err //nolint:wrapcheck // the caller says what
}

// ofSchedules are the schedules that name an object.
func ofSchedules(view client.Reader, naming func(context.Context, client.Reader, client.Object) ([]string, error),
) handler.MapFunc {
	return func(ctx context.Context, of client.Object) []reconcile.Request {
		names, err := naming(ctx, view, of)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the schedules that name an object", "name", of.GetName())
		}
		var out []reconcile.Request
		for _, name := range names {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: of.GetNamespace(),
				Name: name}})
		}
		return out
	}
}

// comesOrGoes lets through that an object is there, is to be deleted, or is gone.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}
