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
)

// Name of the task or backup of a schedule for one of its times: two operators never make two.
func Name(schedule string, at time.Time) string { return fmt.Sprintf("%s-%d", schedule, at.Unix()/60) }

// pass is one look at a schedule, of whatever it makes.
type pass struct {
	facts.Timing
	object  plan.Object
	cluster string
	spec    *v1alpha1.Timing
	now     time.Time
	// what it makes: its kind, its word for people, and the reason of the event.
	kind, what, event string
	// there are the objects of that kind by name: true if the schedule has made it.
	there map[string]bool
	// make is what it makes, by a name.
	make   func(name string) plan.Object
	draft  plan.Draft
	status *v1alpha1.ScheduleStatus
	// create is what to make; nil for nothing.
	create plan.Object
	// said are the events, once the status is written.
	said []plan.Write
}

// Next is what is to be done about a schedule of tasks now.
func Next(s *facts.Schedule, now time.Time) plan.Plan {
	if s.Schedule.DeletionTimestamp != nil {
		return plan.Plan{}
	}
	status := s.Schedule.Status.DeepCopy()
	p := &pass{Timing: s.Timing, object: s.Schedule, cluster: s.Schedule.Spec.Cluster.Name,
		spec: &s.Schedule.Spec.Timing, now: now, kind: "CassandraTask", what: "task", event: v1alpha1.EventTaskCreated,
		there: map[string]bool{}, status: &status.ScheduleStatus,
		make: func(name string) plan.Object { return taskFor(s.Schedule, name) }}
	for _, t := range s.Tasks {
		p.there[t.Name] = owned(s.Schedule, t)
	}
	surplus := history(s, status)
	p.decide("", "")
	named := plan.Named(s.Schedule).(*v1alpha1.CassandraTaskSchedule)
	named.Status = *status
	return p.write(named, equality.Semantic.DeepEqual(named.Status, s.Schedule.Status), surplus)
}

// decide when to run, and whether now. A reason is why it does not run at all.
func (p *pass) decide(reason, message string) {
	after, wrong, why := p.times()
	if after != nil {
		wrong, why = reason, message
	}
	switch {
	case wrong != "":
		p.status.NextScheduleTime = nil
		p.draft.Stall(wrong, "%s", why)
		p.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, wrong, why)
		p.condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, wrong, why)
	case p.spec.Suspend:
		p.status.NextScheduleTime = nil
		p.ready(v1alpha1.ReasonSuspended, "no "+p.what+" is made: spec.suspend is true")
	default:
		p.run(after)
		p.ready(v1alpha1.ReasonScheduled, "a "+p.what+" is made at each time of the schedule")
		p.draft.Wake = min(lookAgain, max(time.Second, p.status.NextScheduleTime.Sub(p.now)))
	}
	p.status.ObservedGeneration = p.object.GetGeneration()
}

// run makes what is due, if there is one, and says when the next will be. The time that
// the status has is due when it has come, whatever the spec says by now. One that has not come
// follows the spec: no time before now is due by a change of it.
func (p *pass) run(after func(time.Time) time.Time) {
	next := time.Time{}
	switch {
	case p.status.NextScheduleTime != nil:
		next = p.status.NextScheduleTime.Time
	case p.status.ObservedGeneration == 0:
		next = after(p.object.GetCreationTimestamp().Time)
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

// due does what is to be done about times that have come: it runs once at most, for the last.
func (p *pass) due(times []time.Time) {
	if len(times) == 0 {
		return
	}
	last := times[len(times)-1]
	set(&p.status.LastScheduleTime, last)
	name := Name(p.object.GetName(), last)
	own, taken := p.there[name]
	late := "no " + p.what + " could be made in time"
	times = slices.DeleteFunc(times, func(t time.Time) bool { return p.there[Name(p.object.GetName(), t)] })
	switch {
	case own: // made by a pass whose status was not written
		p.say(corev1.EventTypeNormal, p.event, p.kind+" "+name)
		p.skip(times, late+"; one was made for all")
	case taken:
		p.skip(times, p.kind+" "+name+" exists, and is not of this schedule")
	case p.status.Active != "":
		p.skip(times, p.kind+" "+p.status.Active+" has not finished")
	case p.now.Sub(last) >= onTime && p.spec.Missed == v1alpha1.MissedSkip:
		p.skip(times, late+", and spec.missed is Skip")
	default:
		p.create, p.status.Active = p.make(name), name
		p.say(corev1.EventTypeNormal, p.event, p.kind+" "+name)
		p.skip(times[:len(times)-1], late+"; one was made for all")
	}
}

// skip counts times at which nothing was made.
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

// write puts the writes in their order. What is made comes before the status: with its name it is
// made once, and the status says that it was. What the status must know of an object is written
// before that is deleted.
func (p *pass) write(named plan.Object, same bool, surplus []plan.Write) plan.Plan {
	if p.create != nil {
		p.draft.Write(plan.Write{Verb: plan.Create, Object: p.create, Live: true})
	}
	if !same {
		p.draft.Write(plan.Write{Verb: plan.ApplyStatus, Object: named, UID: p.object.GetUID(),
			ResourceVersion: p.object.GetResourceVersion()})
	}
	p.draft.Write(p.said...)
	p.draft.Write(surplus...)
	return p.draft.Plan
}

func (p *pass) ready(reason, message string) {
	meta.RemoveStatusCondition(&p.status.Conditions, v1alpha1.ConditionStalled)
	p.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, reason, message)
}

func (p *pass) condition(kind string, is metav1.ConditionStatus, reason, message string) {
	now := metav1.NewTime(p.now).Rfc3339Copy()
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason,
		Message: message, ObservedGeneration: p.object.GetGeneration(), LastTransitionTime: now})
}

// set a time of the status, unless it is that already.
func set(field **metav1.Time, t time.Time) {
	if *field == nil || !(*field).Time.Equal(t) {
		*field = &metav1.Time{Time: t}
	}
}
