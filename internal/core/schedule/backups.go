package schedule

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// failedKept is how many backups that are not complete stay: their status says what went wrong.
const failedKept = 3

// NextBackup is what is to be done about a schedule of backups now.
func NextBackup(s *facts.BackupSchedule, now time.Time) plan.Plan {
	of := s.Schedule
	if of.DeletionTimestamp != nil {
		return plan.Plan{}
	}
	status := of.Status.DeepCopy()
	p := &pass{Timing: s.Timing, object: of, cluster: of.Spec.Cluster.Name, spec: &of.Spec.Timing, now: now,
		kind: "CassandraBackup", what: "backup", event: v1alpha1.EventBackupCreated, there: map[string]bool{},
		status: &status.ScheduleStatus, make: func(name string) plan.Object { return backupFor(of, name) }}
	var own []*v1alpha1.CassandraBackup
	for _, b := range s.Backups {
		p.there[b.Name] = b.Labels[v1alpha1.LabelScheduleUID] == string(of.UID)
		if p.there[b.Name] && b.DeletionTimestamp == nil {
			own = append(own, b)
		}
	}
	outcome(own, status)
	reason, message := "", ""
	if !s.Store {
		reason, message = v1alpha1.ReasonStoreMissing, fmt.Sprintf("spec.store.name %q: there is no "+
			"CassandraBackupStore of this name in the namespace, or it is being deleted: create it, or name another",
			of.Spec.Store.Name)
	}
	if k := s.Keeper; of.KeepsLogs() && k != nil && k.UID != of.UID {
		reason, message = v1alpha1.ReasonPointInTimeTaken, fmt.Sprintf("spec.pointInTime: CassandraBackupSchedule %s "+
			"keeps the commit logs of cluster %s already: set mode Disabled in one of them", k.Name,
			of.Spec.Cluster.Name)
	}
	drills, problem := drillTimes(s, now)
	if problem != "" && reason == "" {
		reason, message = v1alpha1.ReasonInvalidSpec, problem
	}
	p.decide(reason, message)
	status.PointInTime = coverage(s)
	surplus := p.drill(s, own, drills, status)
	if (of.KeepsLogs() || Drills(of) != nil) && p.draft.Wake == 0 {
		p.draft.Wake = lookAgain
	}
	if s.Zone != nil {
		anchor := anchored(s, own, now)
		for _, b := range Expired(of.Spec.Keep, s.Zone, own, now) {
			if b == anchor || status.RestoreDrill.Restores(b.Status.ID) {
				continue // with the logs since then, a ring can be made for the time of their retention
			}
			surplus = append(surplus, plan.Write{Verb: plan.Delete, Object: plan.Named(b), UID: b.UID,
				Why: "spec.keep does not keep it"})
		}
	}
	named := plan.Named(of).(*v1alpha1.CassandraBackupSchedule)
	named.Status = *status
	return p.write(named, equality.Semantic.DeepEqual(named.Status, of.Status), surplus)
}

// outcome puts into the status what the backups have come to.
func outcome(own []*v1alpha1.CassandraBackup, status *v1alpha1.CassandraBackupScheduleStatus) {
	status.Active = ""
	for _, b := range own {
		if !b.Status.Phase.Final() {
			status.Active = b.Name
			continue
		}
		ended := &v1alpha1.ScheduledBackup{Name: b.Name, ID: b.Status.ID, Phase: b.Status.Phase,
			TakenAt: b.Status.TakenAt, FinishedAt: b.Status.FinishedAt}
		if last := status.LastBackup; last == nil || last.FinishedAt.Before(ended.FinishedAt) {
			status.LastBackup = ended
		}
		if last := status.LastComplete; b.Status.Phase == v1alpha1.BackupComplete &&
			(last == nil || last.FinishedAt.Before(ended.FinishedAt)) {
			status.LastComplete = ended
		}
		if of := b.Status.Verified; of != nil && of.At != nil &&
			(status.LastVerified == nil || !of.At.Before(&status.LastVerified.At)) {
			full := of.Full
			if full == nil && status.LastVerified != nil { // it was not the latest
				full = status.LastVerified.Full
			}
			status.LastVerified = &v1alpha1.ScheduledVerification{Name: b.Name, At: *of.At,
				DamagedFiles: of.DamagedFiles, Full: full}
		}
	}
}

// BackupDue is when the next complete backup of a schedule is due: it has passed if that time has
// brought none, or if the schedule is stalled since. It is zero while none is due.
func BackupDue(s *facts.BackupSchedule) time.Time {
	of := s.Schedule
	if of.DeletionTimestamp != nil || of.Spec.Suspend {
		return time.Time{}
	}
	if c := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionStalled); c != nil {
		return c.LastTransitionTime.Time
	}
	next, over := of.Status.NextScheduleTime, of.Status.LastScheduleTime
	times, err := parse(of.Spec.Schedule)
	if next == nil || err != nil || s.Zone == nil {
		return time.Time{}
	}
	since := of.CreationTimestamp.Time
	if last := of.Status.LastComplete; last != nil && last.TakenAt != nil {
		since = last.TakenAt.Time
	}
	if due := times.Next(since.In(s.Zone)); over != nil && !due.After(over.Time) {
		return due
	}
	return next.Time
}

// Expired are those of the backups of a schedule that are to be deleted, the oldest first. What has
// not finished stays, and so does the latest complete one.
func Expired(keep v1alpha1.BackupRetention, zone *time.Location, own []*v1alpha1.CassandraBackup, now time.Time,
) []*v1alpha1.CassandraBackup {
	var complete, failed []*v1alpha1.CassandraBackup
	for _, b := range own {
		switch {
		case b.Status.Phase == v1alpha1.BackupComplete:
			complete = append(complete, b)
		case b.Status.Phase.Final():
			failed = append(failed, b)
		}
	}
	newestFirst := func(a, b *v1alpha1.CassandraBackup) int { return takenAt(b).Compare(takenAt(a)) }
	slices.SortStableFunc(complete, newestFirst)
	slices.SortStableFunc(failed, newestFirst)
	stays := map[*v1alpha1.CassandraBackup]bool{}
	for _, rule := range []struct {
		count  int32
		period func(t time.Time) string
	}{
		{1, each}, // the latest one, whatever the spec says
		{keep.Last, each},
		{keep.Daily, func(t time.Time) string { return t.Format(time.DateOnly) }},
		{keep.Weekly, func(t time.Time) string {
			year, week := t.ISOWeek()
			return fmt.Sprint(year, week)
		}},
		{keep.Monthly, func(t time.Time) string { return t.Format("2006-01") }},
	} {
		seen := map[string]bool{}
		for _, b := range complete {
			period := rule.period(takenAt(b).In(zone))
			if period == "" {
				period = string(b.UID)
			}
			if !seen[period] && len(seen) < int(rule.count) {
				seen[period], stays[b] = true, true
			}
		}
	}
	for _, b := range failed[:min(failedKept, len(failed))] {
		stays[b] = true
	}
	least := time.Duration(0)
	if keep.MinimumAge != nil {
		least = keep.MinimumAge.Duration
	}
	var out []*v1alpha1.CassandraBackup
	for _, b := range slices.Concat(complete, failed) {
		if !stays[b] && now.Sub(takenAt(b)) >= least {
			out = append(out, b)
		}
	}
	slices.Reverse(out)
	return out
}

// each backup is a period of its own.
func each(time.Time) string { return "" }

// takenAt is when a backup was taken; when it was asked for, if none of it was.
func takenAt(b *v1alpha1.CassandraBackup) time.Time {
	if b.Status.TakenAt != nil {
		return b.Status.TakenAt.Time
	}
	return b.CreationTimestamp.Time
}

// backupFor is the backup that a schedule makes. It has no owner: it outlives its schedule.
func backupFor(s *v1alpha1.CassandraBackupSchedule, name string) *v1alpha1.CassandraBackup {
	b := &v1alpha1.CassandraBackup{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CassandraBackup"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{
			v1alpha1.LabelSchedule:    s.Name,
			v1alpha1.LabelScheduleUID: string(s.UID),
			v1alpha1.LabelComponent:   v1alpha1.ComponentBackup,
			v1alpha1.LabelManagedBy:   v1alpha1.ManagedBy,
			v1alpha1.LabelName:        "cassandra",
			v1alpha1.LabelInstance:    s.Spec.Cluster.Name,
		}},
		Spec: v1alpha1.CassandraBackupSpec{Cluster: s.Spec.Cluster, Store: s.Spec.Store,
			BackupTemplate: *s.Spec.Template.DeepCopy(), DeletionPolicy: s.Spec.DeletionPolicy},
	}
	if b.Spec.DeletionPolicy == v1alpha1.BackupDelete {
		b.Finalizers = []string{v1alpha1.FinalizerBackup}
	}
	return b
}
