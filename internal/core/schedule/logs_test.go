package schedule

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// keeping is a schedule that keeps commit logs, of an age in hours.
func keeping(name string, age int, mode v1alpha1.PointInTimeMode) v1alpha1.CassandraBackupSchedule {
	made := time.Date(2026, 3, 1, 3-age, 0, 0, 0, time.UTC)
	s := v1alpha1.CassandraBackupSchedule{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		CreationTimestamp: metav1.NewTime(made)}}
	s.Spec.Cluster.Name, s.Spec.Schedule, s.Spec.TimeZone, s.Spec.Keep.Last = "orders", "0 3 * * *", "UTC", 1
	s.Spec.PointInTime = &v1alpha1.PointInTime{Mode: mode, Retention: metav1.Duration{Duration: 72 * time.Hour}}
	return s
}

// One schedule of a cluster keeps its logs: the oldest that asks for it. Another makes nothing.
func TestOneScheduleKeepsTheLogs(t *testing.T) {
	other := keeping("other", 9, v1alpha1.PointInTimeOn)
	other.Spec.Cluster.Name = "others"
	gone := keeping("gone", 8, v1alpha1.PointInTimeOn)
	gone.DeletionTimestamp = &metav1.Time{}
	all := []v1alpha1.CassandraBackupSchedule{other, gone, keeping("off", 7, v1alpha1.PointInTimeOff),
		keeping("young", 1, v1alpha1.PointInTimeOn), keeping("b", 2, v1alpha1.PointInTimeOn),
		keeping("a", 2, v1alpha1.PointInTimeOn)}
	keeper := KeepsLogs(all, "orders")
	if keeper == nil || keeper.Name != "a" || KeepsLogs(all[:3], "orders") != nil {
		t.Fatalf("the keeper is %v", keeper)
	}
	for name, refused := range map[string]bool{"a": false, "young": true, "off": false} {
		var of *v1alpha1.CassandraBackupSchedule
		for i := range all {
			if all[i].Name == name {
				of = &all[i]
			}
		}
		p := NextBackup(&facts.BackupSchedule{Timing: facts.Timing{Zone: time.UTC, Cluster: true}, Schedule: of,
			Store: true, Keeper: keeper}, time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC))
		for _, w := range p.Writes {
			if w.Verb != plan.ApplyStatus {
				continue
			}
			status := w.Object.(*v1alpha1.CassandraBackupSchedule).Status
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionStalled)
			taken := c != nil && c.Reason == v1alpha1.ReasonPointInTimeTaken &&
				strings.Contains(c.Message, "Schedule a ")
			if taken != refused || (status.PointInTime != nil) != (name == "a") {
				t.Errorf("%s: %+v", name, status)
			}
		}
	}
}

// One line says what all members cover.
func TestCoverageInOneLine(t *testing.T) {
	s := keeping("a", 1, v1alpha1.PointInTimeOn)
	at := func(minute int) *metav1.Time {
		out := metav1.NewTime(time.Date(2026, 3, 1, 3, minute, 0, 0, time.UTC))
		return &out
	}
	logs := func(all ...*v1alpha1.CommitLogStatus) (out []v1alpha1.CassandraNode) {
		for i, l := range all {
			n := v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: string(rune('x' + i))}}
			n.Spec.Member, n.Status.CommitLog = &v1alpha1.Member{}, l
			out = append(out, n)
		}
		return append(out, v1alpha1.CassandraNode{}) // one that has not joined
	}
	for want, records := range map[string][]v1alpha1.CassandraNode{
		"the cluster has no members yet": logs(),
		"covered from 2026-03-01T03:07:00Z, and follows": logs(&v1alpha1.CommitLogStatus{CoveredFrom: at(5)},
			&v1alpha1.CommitLogStatus{CoveredFrom: at(7)}),
		"not covered: nothing is in the store of node y": logs(&v1alpha1.CommitLogStatus{CoveredFrom: at(5)}, nil),
		"covered from 2026-03-01T03:05:00Z to 2026-03-01T03:09:00Z; node y: no route": logs(
			&v1alpha1.CommitLogStatus{CoveredFrom: at(5), CoveredTo: at(10)},
			&v1alpha1.CommitLogStatus{CoveredFrom: at(5), CoveredTo: at(9), Problem: "no route"}),
		"not covered: at no time are the logs of all members in the store": logs(
			&v1alpha1.CommitLogStatus{CoveredFrom: at(5), CoveredTo: at(6)},
			&v1alpha1.CommitLogStatus{CoveredFrom: at(7)}),
	} {
		got := coverage(&facts.BackupSchedule{Schedule: &s, Keeper: &s, Records: records})
		if got == nil || got.Message != want || (got.CoveredFrom == nil) == strings.HasPrefix(want, "covered") {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// The backup from before the time that the logs are kept for is not deleted.
func TestTheBackupOfTheLogsStays(t *testing.T) {
	s, now := keeping("a", 1, v1alpha1.PointInTimeOn), time.Date(2026, 3, 9, 3, 0, 0, 0, time.UTC)
	var own []*v1alpha1.CassandraBackup
	for _, days := range []int{6, 4, 2, 0} {
		own = append(own, kept(v1alpha1.BackupComplete, now.AddDate(0, 0, -days)))
	}
	own = append(own, kept(v1alpha1.BackupFailed, now.AddDate(0, 0, -3)))
	of := &facts.BackupSchedule{Schedule: &s}
	if got := anchored(of, own, now); got != own[1] {
		t.Errorf("%v stays", got)
	}
	if got := anchored(of, own[2:], now); got != own[2] {
		t.Errorf("%v stays, of those that are later", got)
	}
	own[1].Status.Restorable = &v1alpha1.Restorable{}
	if got := anchored(of, own, now); got != own[0] {
		t.Errorf("%v stays, and the one before lacks a node", got)
	}
	s.Spec.PointInTime.Mode = v1alpha1.PointInTimeOff
	if got := anchored(of, own, now); got != nil {
		t.Errorf("%v stays without logs", got)
	}
}
