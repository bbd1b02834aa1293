package schedule

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

// KeepsLogs is the schedule that keeps the commit logs of a cluster, of those of its namespace: the
// oldest that asks for it; nil if none does.
func KeepsLogs(all []v1alpha1.CassandraBackupSchedule, cluster string) *v1alpha1.CassandraBackupSchedule {
	var out *v1alpha1.CassandraBackupSchedule
	for i := range all {
		s := &all[i]
		if s.Spec.Cluster.Name != cluster || !s.KeepsLogs() {
			continue
		}
		if out == nil || s.CreationTimestamp.Before(&out.CreationTimestamp) ||
			s.CreationTimestamp.Equal(&out.CreationTimestamp) && s.Name < out.Name {
			out = s
		}
	}
	return out
}

// anchored is the backup with which the time is covered for which logs are kept: the latest from
// before it, or the oldest, of those that lack no node; nil where this schedule keeps none.
func anchored(s *facts.BackupSchedule, own []*v1alpha1.CassandraBackup, now time.Time) (out *v1alpha1.CassandraBackup) {
	if !s.Schedule.KeepsLogs() {
		return nil
	}
	from := now.Add(-s.Schedule.Spec.PointInTime.Retention.Duration)
	for _, b := range own {
		if of := b.Status.Restorable; b.Status.Phase != v1alpha1.BackupComplete || of != nil && !of.SameShape {
			continue
		}
		if old := takenAt(b); out == nil || old.Before(takenAt(out)) && takenAt(out).After(from) ||
			old.After(takenAt(out)) && !old.After(from) {
			out = b
		}
	}
	return out
}

// coverage is what the logs of all members cover: nothing that changes while all is well. It is nil
// where this schedule keeps none.
func coverage(s *facts.BackupSchedule) *v1alpha1.PointInTimeStatus {
	if s.Keeper == nil || s.Keeper.UID != s.Schedule.UID {
		return nil
	}
	out := &v1alpha1.PointInTimeStatus{}
	var lacks []string
	why, members := "", 0
	for i := range s.Records {
		r := &s.Records[i]
		if r.Spec.Member == nil {
			continue
		}
		members++
		l := r.Status.CommitLog
		if l != nil && l.Problem != "" && why == "" {
			why = fmt.Sprintf("; node %s: %s", r.Name, l.Problem)
		}
		if l == nil || l.CoveredFrom == nil {
			lacks = append(lacks, r.Name)
			continue
		}
		if out.CoveredFrom == nil || out.CoveredFrom.Before(l.CoveredFrom) {
			out.CoveredFrom = l.CoveredFrom
		}
		if l.CoveredTo != nil && (out.CoveredTo == nil || l.CoveredTo.Before(out.CoveredTo)) {
			out.CoveredTo = l.CoveredTo
		}
	}
	show := func(t *metav1.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case members == 0:
		out.Message = "the cluster has no members yet"
	case len(lacks) > 0:
		out.CoveredFrom, out.CoveredTo = nil, nil
		out.Message = "not covered: nothing is in the store of node " + words.List(lacks, 3)
	case out.CoveredTo != nil && out.CoveredTo.Before(out.CoveredFrom):
		out.CoveredFrom, out.CoveredTo = nil, nil
		out.Message = "not covered: at no time are the logs of all members in the store"
	case out.CoveredTo != nil:
		out.Message = "covered from " + show(out.CoveredFrom) + " to " + show(out.CoveredTo)
	default:
		out.Message = "covered from " + show(out.CoveredFrom) + ", and follows"
	}
	out.Message = words.Shorten(out.Message+why, 2048)
	return out
}
