package schedule

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

const (
	// onTime is how late a task may be made without being missed: an operator restarts in less.
	onTime = 5 * time.Minute
	// lookAgain is how long a pass may rely on what the clock says: it may be set.
	lookAgain = time.Minute
	// longestSkipped is a bound of the schema.
	longestSkipped = 512
	late           = "no task could be made in time; one was made for all"
)

// Name of the task of a schedule for one of its times: two operators never make two.
func Name(schedule string, at time.Time) string { return fmt.Sprintf("%s-%d", schedule, at.Unix()/60) }

// pass is one look at a schedule.
type pass struct {
	*facts.Schedule
	object *v1alpha1.CassandraTaskSchedule
	now    time.Time
	// tasks of the namespace by name.
	tasks  map[string]*v1alpha1.CassandraTask
	draft  plan.Draft
	status v1alpha1.CassandraTaskScheduleStatus
	// create is the task to make; nil for none.
	create *v1alpha1.CassandraTask
	// said are the events, once the status is written.
	said []plan.Write
}

// Next is what is to be done about a schedule now.
func Next(s *facts.Schedule, now time.Time) plan.Plan {
	if s.Schedule.DeletionTimestamp != nil {
		return plan.Plan{}
	}
	p := &pass{Schedule: s, object: s.Schedule, now: now, status: *s.Schedule.Status.DeepCopy(),
		tasks: map[string]*v1alpha1.CassandraTask{}}
	for _, t := range s.Tasks {
		p.tasks[t.Name] = t
	}
	surplus := p.history()
	times, reason, message := p.times()
	switch {
	case times == nil:
		p.status.NextScheduleTime = nil
		p.draft.Stall(reason, "%s", message)
		p.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)
		p.condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
	case s.Schedule.Spec.Suspend:
		p.status.NextScheduleTime = nil
		p.ready(v1alpha1.ReasonSuspended, "no task is made: spec.suspend is true")
	default:
		p.run(times)
		p.ready(v1alpha1.ReasonScheduled, "a task is made at each time of the schedule")
		p.draft.Wake = min(lookAgain, max(time.Second, p.status.NextScheduleTime.Sub(now)))
	}
	p.status.ObservedGeneration = s.Schedule.Generation
	p.write(surplus)
	return p.draft.Plan
}

// run makes the task that is due, if there is one, and says when the next will be. The time that
// the status has is due when it has come, whatever the spec says by now. One that has not come
// follows the spec: no time before now is due by a change of it.
func (p *pass) run(after func(time.Time) time.Time) {
	next := time.Time{}
	switch {
	case p.status.NextScheduleTime != nil:
		next = p.status.NextScheduleTime.Time
	case p.status.ObservedGeneration == 0:
		next = after(p.object.CreationTimestamp.Time)
	}
	since := p.now
	if last := p.status.LastScheduleTime; last != nil && last.After(since) {
		since = last.Time // the clock was set back
	}
	var due []time.Time
	for t := next; !t.IsZero() && !t.After(p.now); t = after(t) {
		due = append(due, t)
	}
	p.due(due)
	set(&p.status.NextScheduleTime, after(since))
}

// due does what is to be done about times that have come: at most one task is made, for the last.
func (p *pass) due(times []time.Time) {
	if len(times) == 0 {
		return
	}
	last := times[len(times)-1]
	set(&p.status.LastScheduleTime, last)
	name := Name(p.object.Name, last)
	there := p.tasks[name]
	times = slices.DeleteFunc(times, func(t time.Time) bool {
		made := p.tasks[Name(p.object.Name, t)]
		return made != nil && p.own(made)
	})
	switch {
	case there != nil && p.own(there): // made by a pass whose status was not written
		p.say(corev1.EventTypeNormal, v1alpha1.EventTaskCreated, "CassandraTask "+name)
		p.skip(times, late)
	case there != nil:
		p.skip(times, "CassandraTask "+name+" exists, and is not of this schedule")
	case p.status.Active != "":
		p.skip(times, "CassandraTask "+p.status.Active+" has not finished")
	case p.now.Sub(last) >= onTime && p.object.Spec.Missed == v1alpha1.MissedSkip:
		p.skip(times, "no task could be made in time, and spec.missed is Skip")
	default:
		p.create, p.status.Active = p.taskFor(name), name
		p.say(corev1.EventTypeNormal, v1alpha1.EventTaskCreated, "CassandraTask "+name)
		p.skip(times[:len(times)-1], late)
	}
}

// skip counts times at which no task was made.
func (p *pass) skip(times []time.Time, why string) {
	if len(times) == 0 {
		return
	}
	which := times[0].UTC().Format(time.RFC3339)
	if len(times) > 1 {
		which = fmt.Sprintf("%d times from %s to %s", len(times), which,
			times[len(times)-1].UTC().Format(time.RFC3339))
	}
	p.status.Skipped += int64(len(times))
	p.status.LastSkipped = words.Shorten(which+": "+why, longestSkipped)
	p.say(corev1.EventTypeWarning, v1alpha1.EventRunSkipped, p.status.LastSkipped)
}

func (p *pass) say(kind, reason, message string) {
	p.said = append(p.said, plan.Write{Verb: plan.Event, Object: p.object, EventType: kind, Reason: reason,
		Why: message})
}

// write puts the writes in their order. The task comes before the status: with its name it is made
// once, and the status says that it was. What the status must know of a task is written before that
// is deleted.
func (p *pass) write(surplus []plan.Write) {
	if p.create != nil {
		p.draft.Write(plan.Write{Verb: plan.Create, Object: p.create, Live: true})
	}
	if !equality.Semantic.DeepEqual(p.status, p.object.Status) {
		object := plan.Named(p.object).(*v1alpha1.CassandraTaskSchedule)
		object.Status = p.status
		p.draft.Write(plan.Write{Verb: plan.ApplyStatus, Object: object, UID: p.object.UID,
			ResourceVersion: p.object.ResourceVersion})
	}
	p.draft.Write(p.said...)
	p.draft.Write(surplus...)
}

func (p *pass) ready(reason, message string) {
	meta.RemoveStatusCondition(&p.status.Conditions, v1alpha1.ConditionStalled)
	p.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, reason, message)
}

func (p *pass) condition(kind string, is metav1.ConditionStatus, reason, message string) {
	now := metav1.NewTime(p.now).Rfc3339Copy()
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason,
		Message: message, ObservedGeneration: p.object.Generation, LastTransitionTime: now})
}

// set a time of the status, unless it is that already.
func set(field **metav1.Time, t time.Time) {
	if *field == nil || !(*field).Time.Equal(t) {
		*field = &metav1.Time{Time: t}
	}
}
