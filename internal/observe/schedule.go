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
	if zone, err := time.LoadLocation(schedule.Spec.TimeZone); err == nil {
		s.Zone = zone
	}
	cluster := &v1alpha1.CassandraCluster{}
	err := r.Cache.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: schedule.Spec.Cluster.Name}, cluster)
	switch {
	case err == nil:
		s.Cluster = cluster.DeletionTimestamp == nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get cluster: %w", err)
	}
	return s, nil
}

// ConfirmSchedule reads the schedule from the API server itself, and returns ErrChanged if it is
// another than the facts have: its status says for which times tasks were made.
func (r *Reader) ConfirmSchedule(ctx context.Context, s *facts.Schedule) error {
	live := &v1alpha1.CassandraTaskSchedule{}
	switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.Schedule), live); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: the schedule is gone", ErrChanged)
	case err != nil:
		return fmt.Errorf("read the schedule: %w", err)
	case live.UID != s.Schedule.UID || live.ResourceVersion != s.Schedule.ResourceVersion:
		return fmt.Errorf("%w: the schedule", ErrChanged)
	}
	return nil
}
