package node

import (
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// What is said of the commit log does not change while all is well, and only where it is kept.
func TestTheStatusOfTheLog(t *testing.T) {
	at := time.Date(2026, 3, 1, 3, 0, 0, 1, time.UTC)
	p := &pass{Facts: &Facts{Record: &v1alpha1.CassandraNode{}, Log: Log{From: at, Hole: "h"}}}
	var s v1alpha1.CassandraNodeStatus
	if p.reportLog(&s); s.CommitLog != nil {
		t.Errorf("it is not kept: %+v", s.CommitLog)
	}
	p.Record.Spec.CommitLog = &v1alpha1.CommitLogArchive{}
	if p.reportLog(&s); s.CommitLog == nil || s.CommitLog.CoveredTo != nil || s.CommitLog.Hole != "h" ||
		!s.CommitLog.CoveredFrom.Time.Equal(at.Truncate(time.Second).Add(time.Second)) {
		t.Errorf("%+v", s.CommitLog)
	}
	p.Log.Until, p.Log.Problem = at.Add(time.Minute), "no route"
	if p.reportLog(&s); s.CommitLog.Problem != "no route" ||
		!s.CommitLog.CoveredTo.Time.Equal(at.Add(time.Minute).Truncate(time.Second)) {
		t.Errorf("%+v", s.CommitLog)
	}
}
