package execute

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/threads"
)

// writeStatus keeps the record's status what it is to be: one write for a change, none while
// nothing changes. Changes that come while a write is under way, or within a moment of it, are
// written together.
func (a *Agent) writeStatus(ctx context.Context) {
	const moment = 200 * time.Millisecond
	// beside is between two writes while the agent of another pod of the node writes, too, as one
	// does that was deleted by force and runs on. Neither can know which of them will last.
	const beside = 5 * time.Second
	written := false
	var refused *v1alpha1.CassandraNodeStatus // one that the server does not take as it is
	row := 0
	for ctx.Err() == nil {
		if row > 0 {
			pause := min(firstRetry<<min(row-1, 10), longestRetry)
			a.host.Threads.Wait(ctx, pause/2+time.Duration(a.random()*float64(pause)/2), nil)
		} else {
			a.host.Threads.Wait(ctx, threads.Forever, a.report)
		}
		if ctx.Err() != nil {
			return
		}
		record, wanted := a.statusToWrite()
		if record != nil && written && record.Status.PodUID != a.self.PodUID {
			a.host.Threads.Wait(ctx, beside, nil)
			record, wanted = a.statusToWrite()
		}
		if record == nil || sameStatus(wanted, refused) {
			row = 0
			continue
		}
		if err := a.host.Record.WriteStatus(ctx, record.UID, wanted); err != nil {
			if ctx.Err() != nil {
				return
			}
			row++
			a.host.Logf("%v", err)
			continue
		}
		row, refused, written = 0, nil, true
		if left, still := a.statusToWrite(); left != nil && sameStatus(still, wanted) {
			refused = wanted
			a.host.Logf("write status: the API server keeps something else than it was given; it is not written " +
				"again until it changes")
		}
		a.wake.Set()
		a.host.Threads.Wait(ctx, moment, nil)
	}
}

// statusToWrite is nil if the record is not known, or has the status already.
func (a *Agent) statusToWrite() (*v1alpha1.CassandraNode, *v1alpha1.CassandraNodeStatus) {
	if a.host.Record == nil {
		return nil, nil
	}
	record, known := a.host.Record.Record()
	if !known || record == nil || record.Spec.Cluster.UID != a.self.ClusterUID {
		return nil, nil
	}
	a.mu.Lock()
	wanted, reportable := a.decision.Status, a.reportable
	a.mu.Unlock()
	if !reportable || sameStatus(&wanted, &record.Status) {
		return nil, nil
	}
	return record, &wanted
}

// sameStatus compares two statuses in what is written of them.
func sameStatus(a, b *v1alpha1.CassandraNodeStatus) bool { return equality.Semantic.DeepEqual(a, b) }
