package observe

import (
	"context"
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // the image of the operator has no time zones

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	rules "helenus.io/helenus/internal/core/schedule"
)

// Schedule gathers what is known about one schedule. It returns nil if there is no such schedule.
// Store holds our own writes that must be visible first.
func (r *Reader) Schedule(ctx context.Context, key types.NamespacedName, store *consistency.Store) (*facts.Schedule,
	error) {
	schedule := &v1alpha1.CassandraTaskSchedule{}
	if err := r.Cache.Get(ctx, key, schedule); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	o := &objects{seen: map[consistency.Key]consistency.Seen{}}
	if err := r.Cache.List(ctx, &o.given, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	each(o, "CassandraTask", o.given.Items)
	o.add("CassandraTaskSchedule", schedule)
	if err := r.caughtUp(ctx, schedule.Spec.Cluster.Name, o, store); err != nil {
		return nil, err
	}
	s := &facts.Schedule{Schedule: schedule}
	for i := range o.given.Items {
		s.Tasks = append(s.Tasks, &o.given.Items[i])
	}
	slices.SortFunc(s.Tasks, byAge)
	var err error
	s.Timing, err = r.timing(ctx, key.Namespace, schedule.Spec.Cluster.Name, schedule.Spec.TimeZone)
	return s, err
}

// BackupSchedule gathers what is known about one schedule of backups, as Schedule does.
func (r *Reader) BackupSchedule(ctx context.Context, key types.NamespacedName, store *consistency.Store) (
	*facts.BackupSchedule, error) {
	schedule := &v1alpha1.CassandraBackupSchedule{}
	if err := r.Cache.Get(ctx, key, schedule); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	o := &objects{seen: map[consistency.Key]consistency.Seen{}}
	if err := r.Cache.List(ctx, &o.backups, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	each(o, "CassandraBackup", o.backups.Items)
	o.add("CassandraBackupSchedule", schedule)
	s := &facts.BackupSchedule{Schedule: schedule}
	if err := r.drill(ctx, s, o); err != nil {
		return nil, err
	}
	if err := r.caughtUp(ctx, schedule.Spec.Cluster.Name, o, store); err != nil {
		return nil, err
	}
	for i := range o.backups.Items {
		s.Backups = append(s.Backups, &o.backups.Items[i])
	}
	slices.SortFunc(s.Backups, byAge)
	var err error
	if s.Timing, err = r.timing(ctx, key.Namespace, schedule.Spec.Cluster.Name, schedule.Spec.TimeZone); err != nil {
		return nil, err
	}
	if err := r.Cache.List(ctx, &o.schedules, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("list schedules of backups: %w", err)
	}
	s.Keeper = rules.KeepsLogs(o.schedules.Items, schedule.Spec.Cluster.Name)
	if s.Keeper != nil && s.Keeper.UID == schedule.UID {
		if err := r.Cache.List(ctx, &o.records, client.InNamespace(key.Namespace),
			client.MatchingLabels{v1alpha1.LabelCluster: schedule.Spec.Cluster.Name}); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		s.Records = o.records.Items
	}
	s.Store, err = r.stays(ctx, &v1alpha1.CassandraBackupStore{}, key.Namespace, schedule.Spec.Store.Name)
	return s, err
}

// drill reads the cluster of a schedule, and the one that its restore drills make.
func (r *Reader) drill(ctx context.Context, s *facts.BackupSchedule, o *objects) error {
	return r.clusters(ctx, s.Schedule.Namespace, o, map[string]**v1alpha1.CassandraCluster{
		s.Schedule.Spec.Cluster.Name: &s.Source, rules.DrillName(s.Schedule.Name): &s.Drill})
}

// clusters reads those that are there, by name.
func (r *Reader) clusters(ctx context.Context, namespace string, o *objects,
	wanted map[string]**v1alpha1.CassandraCluster) error {
	for name, into := range wanted {
		found := &v1alpha1.CassandraCluster{}
		switch err := r.Cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, found); {
		case err == nil:
			*into = found
			o.add("CassandraCluster", found)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("get cluster %s: %w", name, err)
		}
	}
	return nil
}

// timing is what is known of any schedule.
func (r *Reader) timing(ctx context.Context, namespace, cluster, zone string) (out facts.Timing, err error) {
	if zone, err := time.LoadLocation(zone); err == nil {
		out.Zone = zone
	}
	out.Cluster, err = r.stays(ctx, &v1alpha1.CassandraCluster{}, namespace, cluster)
	return out, err
}

// stays says that an object is there, and not being deleted.
func (r *Reader) stays(ctx context.Context, object client.Object, namespace, name string) (bool, error) {
	switch err := r.Cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); {
	case err == nil:
		return object.GetDeletionTimestamp() == nil, nil
	case !apierrors.IsNotFound(err):
		return false, fmt.Errorf("get %s: %w", name, err)
	}
	return false, nil
}

// ConfirmObject reads a schedule or a restore from the API server itself, and returns ErrChanged if
// it is another than was seen: its status says what it has done.
func (r *Reader) ConfirmObject(ctx context.Context, seen client.Object) error {
	live, name := seen.DeepCopyObject().(client.Object), seen.GetName()
	switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), live); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %s is gone", ErrChanged, name)
	case err != nil:
		return fmt.Errorf("read %s: %w", name, err)
	case live.GetUID() != seen.GetUID() || live.GetResourceVersion() != seen.GetResourceVersion():
		return fmt.Errorf("%w: %s", ErrChanged, name)
	}
	return nil
}
