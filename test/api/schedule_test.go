package api

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/schedule"
	"helenus.io/helenus/internal/observe"
	loop "helenus.io/helenus/internal/operator"
)

// told keeps the reasons of events.
type told []string

func (r *told) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) { *r = append(*r, reason) }

// TestASchedule: the operator, with its own rights, makes the task of a schedule at its time: once,
// whoever looks again, and one for all that were missed.
func TestASchedule(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, v1alpha1.AddToScheme(scheme))
	own := withToken(tokenOf(t, "helenus-system", "helenus", nil))
	c, err := ctrlclient.New(own, ctrlclient.Options{Scheme: scheme})
	must(t, err)
	user, err := ctrlclient.New(server, ctrlclient.Options{Scheme: scheme})
	must(t, err)
	in := namespace(t)
	cluster, given := base("CassandraCluster"), base("CassandraTaskSchedule")
	must(t, put(given.Object, "spec", map[string]any{"schedule": "* * * * *", "timeZone": "Europe/Berlin"}))
	for _, object := range []ctrlclient.Object{cluster, given} {
		object.SetNamespace(in)
		must(t, user.Create(t.Context(), object))
	}
	key := ctrlclient.ObjectKeyFromObject(given)
	now, events := time.Now(), &told{}
	reader := &observe.Reader{Cache: c, Live: c}
	writer := &act.Writer{Client: c, Live: c, Recorder: events, Now: time.Now}
	// pass is one of an operator that has just started.
	pass := func() (ctrl.Result, *v1alpha1.CassandraTaskSchedule) {
		t.Helper()
		o := loop.Schedules{Reader: reader, Writer: writer, Now: func() time.Time { return now }}
		result, err := o.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		must(t, err)
		s := &v1alpha1.CassandraTaskSchedule{}
		must(t, user.Get(t.Context(), key, s))
		return result, s
	}
	made := func() []v1alpha1.CassandraTask {
		t.Helper()
		all := &v1alpha1.CassandraTaskList{}
		must(t, user.List(t.Context(), all, ctrlclient.InNamespace(in), ctrlclient.MatchingLabels{
			v1alpha1.LabelSchedule: "nightly"}))
		return all.Items
	}

	result, s := pass()
	if result.RequeueAfter <= 0 || result.RequeueAfter > time.Minute || s.Status.NextScheduleTime == nil ||
		len(made()) != 0 {
		t.Fatalf("looks again in %s, status %+v, %d tasks", result.RequeueAfter, s.Status, len(made()))
	}
	if _, again := pass(); again.ResourceVersion != s.ResourceVersion {
		t.Errorf("written again: %+v", again.Status)
	}
	late, err := reader.Schedule(t.Context(), key, &consistency.Store{})
	must(t, err)
	now = s.Status.NextScheduleTime.Time
	_, s = pass()
	all := made()
	if len(all) != 1 || s.Status.Active != all[0].Name || !s.Status.LastScheduleTime.Time.Equal(now) ||
		all[0].Name != schedule.Name("nightly", now) || !metav1.IsControlledBy(&all[0], s) {
		t.Fatalf("status %+v, tasks %+v", s.Status, all)
	}
	if _, again := pass(); again.ResourceVersion != s.ResourceVersion || len(made()) != 1 {
		t.Errorf("the same minute again: %+v, %d tasks", again.Status, len(made()))
	}

	// an operator that was held up since before that has no second one made, not even by hand
	must(t, user.Delete(t.Context(), &all[0]))
	confirm := func(ctx context.Context) error { return reader.ConfirmObject(ctx, late.Schedule) }
	done := writer.Do(t.Context(), &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}},
		schedule.Next(late, now), confirm, &consistency.Store{})
	if done.Err == nil || !strings.Contains(done.Err.Error(), observe.ErrChanged.Error()) || len(made()) != 0 {
		t.Errorf("%v, %d tasks", done.Err, len(made()))
	}

	now = now.Add(3 * time.Hour)
	pass()
	_, s = pass()
	if len(made()) != 1 || s.Status.Skipped != 179 {
		t.Errorf("missed for three hours: %d tasks, status %+v", len(made()), s.Status)
	}
	if want := []string{"TaskCreated", "TaskCreated", "RunSkipped"}; !slices.Equal(*events, want) {
		t.Errorf("events %q, want %q", *events, want)
	}

	must(t, user.Delete(t.Context(), cluster))
	if _, s = pass(); s.Status.NextScheduleTime != nil || len(s.Status.Conditions) != 2 {
		t.Errorf("without its cluster: %+v", s.Status)
	}
}
