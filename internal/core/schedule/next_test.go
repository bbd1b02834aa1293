package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// world is a schedule and its tasks, as an API server has them.
type world struct {
	t     *testing.T
	facts *facts.Schedule
	now   time.Time
	// created are the names of all tasks ever made, skipped what was said of others.
	created, skipped []string
	writes           int
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// newWorld has a schedule of every day at 02:00, made at noon of 1 March.
func newWorld(t *testing.T) *world {
	now, three := at("2026-03-01T12:00:00Z"), int32(3)
	return &world{t: t, now: now, facts: &facts.Schedule{Timing: facts.Timing{Cluster: true, Zone: time.UTC},
		Schedule: &v1alpha1.CassandraTaskSchedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "s-1", ResourceVersion: "1",
				Generation: 1, CreationTimestamp: metav1.NewTime(now)},
			Spec: v1alpha1.CassandraTaskScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"},
				Timing:        v1alpha1.Timing{Schedule: "0 2 * * *", TimeZone: "UTC", Missed: v1alpha1.MissedRunOnce},
				KeepSucceeded: &three,
				KeepFailed:    &three, Template: v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush}}}}}
}

func (w *world) spec() *v1alpha1.CassandraTaskScheduleSpec { return &w.facts.Schedule.Spec }
func (w *world) status() v1alpha1.CassandraTaskScheduleStatus {
	return w.facts.Schedule.Status
}

// pass carries a plan out; statusLost ends it before the status is written, as a crash does.
func (w *world) pass(statusLost ...bool) plan.Plan {
	w.t.Helper()
	p := Next(w.facts, w.now)
	for i := range p.Writes {
		switch write := &p.Writes[i]; write.Verb {
		case plan.Create:
			task := write.Object.(*v1alpha1.CassandraTask)
			if !write.Live || slices.ContainsFunc(w.facts.Tasks,
				func(t *v1alpha1.CassandraTask) bool { return t.Name == task.Name }) {
				w.t.Errorf("%s is created, live %t", task.Name, write.Live)
			}
			task.UID, task.CreationTimestamp = types.UID("t-"+task.Name), metav1.NewTime(w.now)
			w.facts.Tasks = append(w.facts.Tasks, task)
			w.created = append(w.created, task.Name)
		case plan.ApplyStatus:
			if len(statusLost) > 0 {
				return p
			}
			text, err := json.Marshal(write.Object)
			stored := &v1alpha1.CassandraTaskSchedule{}
			if err := errors.Join(err, json.Unmarshal(text, stored)); err != nil {
				w.t.Fatal(err)
			}
			w.facts.Schedule.Status = stored.Status
		case plan.Delete:
			w.facts.Tasks = slices.DeleteFunc(w.facts.Tasks,
				func(t *v1alpha1.CassandraTask) bool { return t.UID == write.UID })
		case plan.Event:
			if write.Reason == v1alpha1.EventRunSkipped {
				w.skipped = append(w.skipped, write.Why)
			}
		default:
			w.t.Errorf("unknown write %s", write)
		}
	}
	w.writes += len(p.Writes)
	return p
}

// at makes passes at times, in which tasks end at once.
func (w *world) at(times ...string) {
	w.t.Helper()
	for _, t := range times {
		w.now = at(t)
		w.pass()
		w.finish(v1alpha1.TaskSucceeded)
		w.pass()
	}
}

func (w *world) finish(phase v1alpha1.TaskPhase) {
	for _, t := range w.facts.Tasks {
		if !t.Status.Finished() {
			now := metav1.NewTime(w.now)
			t.Status.Phase, t.Status.FinishedAt = phase, &now
		}
	}
}

func (w *world) want(skipped int, times ...string) {
	w.t.Helper()
	var names []string
	for _, t := range times {
		names = append(names, fmt.Sprintf("nightly-%d", at(t).Unix()/60))
	}
	if !slices.Equal(w.created, names) {
		w.t.Errorf("created %q, want those of %q: %q", w.created, times, names)
	}
	if w.status().Skipped != int64(skipped) {
		w.t.Errorf("%d skipped, want %d: %q", w.status().Skipped, skipped, w.skipped)
	}
}

func TestATaskIsMadeAtItsTime(t *testing.T) {
	w := newWorld(t)
	w.spec().Template.Keyspaces = []string{"cart"}
	if p := w.pass(); p.Wake != lookAgain || !w.status().NextScheduleTime.Time.Equal(at("2026-03-02T02:00:00Z")) {
		t.Errorf("wakes in %s, next %v", p.Wake, w.status().NextScheduleTime)
	}
	w.now = at("2026-03-02T01:59:30Z")
	if p := w.pass(); p.Wake != 30*time.Second {
		t.Errorf("wakes in %s", p.Wake)
	}
	w.want(0)
	w.now = at("2026-03-02T02:00:00Z")
	w.pass()
	w.want(0, "2026-03-02T02:00:00Z")
	task := w.facts.Tasks[0]
	if ref := metav1.GetControllerOf(task); ref == nil || ref.UID != "s-1" || ref.Kind != "CassandraTaskSchedule" ||
		task.Labels[v1alpha1.LabelSchedule] != "nightly" || task.Spec.Cluster.Name != "orders" ||
		task.Spec.Type != v1alpha1.TaskFlush || !slices.Equal(task.Spec.Keyspaces, []string{"cart"}) {
		t.Errorf("made %+v", task)
	}
	status := w.status()
	if status.Active != task.Name || status.LastScheduleTime == nil || status.ObservedGeneration != 1 ||
		!status.NextScheduleTime.Time.Equal(at("2026-03-03T02:00:00Z")) ||
		!meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("status %+v", status)
	}
	before := w.writes
	for range 5 {
		w.now = w.now.Add(time.Hour)
		w.pass()
	}
	if w.writes != before {
		t.Errorf("%d writes while nothing happens", w.writes-before)
	}
	w.finish(v1alpha1.TaskFailed)
	w.pass()
	if status := w.status(); status.Active != "" || status.LastResult.Phase != v1alpha1.TaskFailed ||
		status.LastResult.Task != task.Name || w.writes != before+1 {
		t.Errorf("status %+v after %d writes", status, w.writes-before)
	}
}

// No second run for the same minute: whoever looks, however often, and whatever the clock does.
func TestNoSecondRunForTheSameMinute(t *testing.T) {
	const night = "2026-03-02T02:00:00Z"
	t.Run("a pass ends before the status is written", func(t *testing.T) {
		w := newWorld(t)
		w.pass()
		w.now = at(night)
		w.pass(true)
		w.now = w.now.Add(10 * time.Minute)
		if p := w.pass(); !slices.ContainsFunc(p.Writes,
			func(w plan.Write) bool { return w.Reason == v1alpha1.EventTaskCreated }) {
			t.Errorf("nobody is told: %s", p)
		}
		w.finish(v1alpha1.TaskSucceeded)
		w.pass()
		w.want(0, night)
	})
	t.Run("the clock is set back", func(t *testing.T) {
		w := newWorld(t)
		w.pass()
		w.at("2026-03-02T02:00:10Z", "2026-03-02T01:50:00Z", night, "2026-03-02T02:01:00Z")
		w.want(0, night)
		w.facts.Schedule.Generation++
		w.spec().Schedule = "0 1,2 * * *"
		w.at("2026-03-02T00:30:00Z", "2026-03-02T01:00:00Z", night)
		w.want(0, night)
		w.at("2026-03-03T01:00:00Z")
		w.want(0, night, "2026-03-03T01:00:00Z")
	})
	t.Run("it is deleted by hand", func(t *testing.T) {
		w := newWorld(t)
		w.pass()
		w.now = at(night)
		w.pass()
		w.facts.Tasks = nil
		w.at("2026-03-02T02:00:01Z", "2026-03-02T09:00:00Z")
		w.want(0, night)
		if w.status().Active != "" {
			t.Errorf("status %+v", w.status())
		}
	})
	t.Run("an operator that has seen nothing of it makes the same", func(t *testing.T) {
		w := newWorld(t)
		w.pass()
		w.now = at(night)
		first, second := Next(w.facts, w.now), Next(w.facts, w.now.Add(59*time.Second))
		if a, b := first.Writes[0].Object.GetName(), second.Writes[0].Object.GetName(); a != b {
			t.Errorf("%s and %s", a, b)
		}
	})
	t.Run("another's task has the name", func(t *testing.T) {
		w := newWorld(t)
		w.pass()
		w.facts.Tasks = []*v1alpha1.CassandraTask{{ObjectMeta: metav1.ObjectMeta{Name: Name("nightly", at(night))}}}
		w.at(night, "2026-03-02T02:03:00Z")
		w.want(1)
	})
}

func TestMissedRunsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		missed  v1alpha1.MissedPolicy
		look    string
		made    []string
		skipped int
	}{
		"once":                       {v1alpha1.MissedRunOnce, "2026-03-05T11:00:00Z", []string{"2026-03-05T02:00:00Z"}, 3},
		"none":                       {v1alpha1.MissedSkip, "2026-03-05T11:00:00Z", nil, 4},
		"the last one is in time":    {v1alpha1.MissedSkip, "2026-03-05T02:04:00Z", []string{"2026-03-05T02:00:00Z"}, 3},
		"a minute late is in time":   {v1alpha1.MissedSkip, "2026-03-02T02:01:00Z", []string{"2026-03-02T02:00:00Z"}, 0},
		"five minutes late is not":   {v1alpha1.MissedSkip, "2026-03-02T02:05:00Z", nil, 1},
		"nothing is missed that was": {v1alpha1.MissedRunOnce, "2026-03-02T01:00:00Z", nil, 0},
	} {
		for _, seen := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, seen before %t", name, seen), func(t *testing.T) {
				w := newWorld(t)
				w.spec().Missed = c.missed
				if seen {
					w.pass()
				}
				w.at(c.look, c.look)
				w.want(c.skipped, c.made...)
				if last := c.look[:len("2026-03-05")] + "T02:00:00Z"; c.skipped+len(c.made) > 0 &&
					!w.status().LastScheduleTime.Time.Equal(at(last)) {
					t.Errorf("status %+v", w.status())
				}
				if len(w.skipped) > 1 {
					t.Errorf("said %q", w.skipped)
				}
			})
		}
	}
}

func TestARunIsSkippedWhileTheOneBeforeRuns(t *testing.T) {
	w := newWorld(t)
	w.pass()
	w.now = at("2026-03-02T02:00:00Z")
	w.pass()
	w.now = at("2026-03-03T02:00:00Z")
	w.pass()
	w.pass()
	w.want(1, "2026-03-02T02:00:00Z")
	want := "2026-03-03T02:00:00Z: CassandraTask " + w.created[0] + " has not finished"
	if w.status().LastSkipped != want || !slices.Equal(w.skipped, []string{want}) {
		t.Errorf("said %q, status %q", w.skipped, w.status().LastSkipped)
	}
	w.at("2026-03-03T05:00:00Z", "2026-03-04T02:00:00Z")
	w.now = at("2026-03-05T02:00:00Z")
	w.pass()
	w.facts.Tasks[2].DeletionTimestamp = &metav1.Time{Time: w.now}
	w.at("2026-03-06T02:00:00Z")
	w.want(1, "2026-03-02T02:00:00Z", "2026-03-04T02:00:00Z", "2026-03-05T02:00:00Z", "2026-03-06T02:00:00Z")
}

// What the spec comes to say of times that are over makes no task for them.
func TestAChangeIsNotForThePast(t *testing.T) {
	w := newWorld(t)
	w.pass()
	w.spec().Schedule, w.facts.Schedule.Generation = "30 12 * * *", 2
	w.at("2026-03-01T13:00:00Z")
	w.want(0)
	w.spec().Suspend, w.facts.Schedule.Generation = true, 3
	w.at("2026-03-01T14:00:00Z")
	if c := meta.FindStatusCondition(w.status().Conditions, v1alpha1.ConditionReady); c.Status != metav1.ConditionTrue ||
		c.Reason != v1alpha1.ReasonSuspended || w.status().NextScheduleTime != nil {
		t.Errorf("status %+v", w.status())
	}
	w.spec().Suspend, w.facts.Schedule.Generation = false, 4
	w.at("2026-03-05T14:00:00Z", "2026-03-06T12:30:00Z")
	w.want(0, "2026-03-06T12:30:00Z")
}

func TestHistoryIsKept(t *testing.T) {
	w := newWorld(t)
	two, none := int32(2), int32(0)
	w.spec().KeepSucceeded, w.spec().KeepFailed = &two, &none
	stranger := &v1alpha1.CassandraTask{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	stranger.Status.Phase = v1alpha1.TaskFailed
	w.facts.Tasks = append(w.facts.Tasks, stranger)
	w.pass()
	w.at("2026-03-02T02:00:00Z", "2026-03-03T02:00:00Z", "2026-03-04T02:00:00Z")
	w.now = at("2026-03-05T02:00:00Z")
	w.pass()
	w.finish(v1alpha1.TaskFailed)
	w.pass()
	w.pass()
	var names []string
	for _, task := range w.facts.Tasks {
		names = append(names, task.Name)
	}
	if !slices.Equal(names, []string{"mine", w.created[1], w.created[2]}) {
		t.Errorf("kept %q of %q", names, w.created)
	}
	if got := w.status().LastResult; got.Task != w.created[3] || got.Phase != v1alpha1.TaskFailed {
		t.Errorf("result %+v", got)
	}
}

// Hours that the clocks of a zone skip have no run, and hours that they repeat have two, as with a
// CronJob.
func TestTimesOfAZone(t *testing.T) {
	for name, c := range map[string]struct {
		schedule, zone, from string
		want                 []string
	}{
		"in winter": {"30 2 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", []string{"2026-01-01T01:30:00Z"}},
		"in summer": {"30 2 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", []string{"2026-07-01T00:30:00Z"}},
		"an hour that is not": {"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		"an hour that is twice": {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"}},
		"each hour, when one is not": {"0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		"a midnight that is not": {"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z",
			[]string{"2026-04-24T21:00:00Z"}},
		"a zone of half an hour": {"0 0 * * 1", "Asia/Kolkata", "2026-03-01T00:00:00Z", []string{"2026-03-01T18:30:00Z"}},
		"by names":               {"15 4 1 JAN,JUL *", "UTC", "2026-03-01T00:00:00Z", []string{"2026-07-01T04:15:00Z"}},
		"a leap day":             {"0 0 29 2 *", "UTC", "2026-03-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			w.spec().Schedule, w.facts.Zone, w.now = c.schedule, zone, at(c.from)
			w.facts.Schedule.CreationTimestamp = metav1.NewTime(w.now)
			w.pass()
			for _, want := range c.want {
				if got := w.status().NextScheduleTime.Time; !got.Equal(at(want)) {
					t.Fatalf("next %s, want %s", got, want)
				}
				w.at(want)
			}
			w.want(0, c.want...)
		})
	}
}

func TestWhatIsStalled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		reason string
		words  []string
	}{
		"a minute that is none": {func(w *world) { w.spec().Schedule = "61 * * * *" }, v1alpha1.ReasonInvalidSpec,
			[]string{"spec.schedule", `"61 * * * *"`, "minute 0-59"}},
		"a step of none": {func(w *world) { w.spec().Schedule = "*/0 * * * *" }, v1alpha1.ReasonInvalidSpec,
			[]string{"spec.schedule", "*/0"}},
		"six fields": {func(w *world) { w.spec().Schedule = "0 0 2 * * *" }, v1alpha1.ReasonInvalidSpec,
			[]string{"spec.schedule"}},
		"a descriptor": {func(w *world) { w.spec().Schedule = "@every 1h" }, v1alpha1.ReasonInvalidSpec,
			[]string{"spec.schedule", "five fields"}},
		"a zone in the schedule": {func(w *world) { w.spec().Schedule = "TZ=Asia/Tokyo 0 2 * * *" },
			v1alpha1.ReasonInvalidSpec, []string{"spec.schedule", "five fields"}},
		"a broken zone in it": {func(w *world) { w.spec().Schedule = "TZ=0" }, v1alpha1.ReasonInvalidSpec,
			[]string{"spec.schedule"}},
		"a day that is none": {func(w *world) { w.spec().Schedule = "0 0 30 2 *" }, v1alpha1.ReasonInvalidSpec,
			[]string{"spec.schedule", "five years"}},
		"a zone that is none": {func(w *world) { w.spec().TimeZone, w.facts.Zone = "Europe/Atlantis", nil },
			v1alpha1.ReasonInvalidSpec, []string{"spec.timeZone", "Europe/Atlantis", "UTC or Europe/Berlin"}},
		"no cluster": {func(w *world) { w.facts.Cluster = false }, v1alpha1.ReasonClusterMissing,
			[]string{"spec.cluster.name", "orders", "create it"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			good, zone := *w.spec(), w.facts.Zone
			w.pass()
			w.writes = 0
			c.change(w)
			w.at("2026-03-02T02:00:00Z", "2026-03-02T02:00:10Z")
			stalled := meta.FindStatusCondition(w.status().Conditions, v1alpha1.ConditionStalled)
			if stalled == nil || stalled.Reason != c.reason ||
				!meta.IsStatusConditionFalse(w.status().Conditions, v1alpha1.ConditionReady) {
				t.Fatalf("status %+v", w.status())
			}
			for _, word := range c.words {
				if !strings.Contains(stalled.Message, word) {
					t.Errorf("%q does not say %q", stalled.Message, word)
				}
			}
			if w.writes != 1 {
				t.Errorf("%d writes", w.writes)
			}
			*w.spec(), w.facts.Zone, w.facts.Cluster = good, zone, true
			w.at("2026-03-02T12:00:00Z", "2026-03-03T02:00:00Z")
			w.want(0, "2026-03-03T02:00:00Z")
			if meta.FindStatusCondition(w.status().Conditions, v1alpha1.ConditionStalled) != nil {
				t.Errorf("status %+v", w.status())
			}
		})
	}
}

func TestOneThatIsDeletedMakesNothing(t *testing.T) {
	w := newWorld(t)
	w.pass()
	w.now = at("2026-03-02T02:00:00Z")
	w.facts.Schedule.DeletionTimestamp = &metav1.Time{Time: w.now}
	if p := w.pass(); len(p.Writes) > 0 {
		t.Errorf("%s", p)
	}
}
