package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/archive"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/node"
)

const (
	// lookAtLogEvery is how often segments of the commit log are linked: one lives for longer.
	lookAtLogEvery = time.Second
	// uploadLimit is what one upload of what has grown may take.
	uploadLimit = 10 * time.Minute
	// storeStays is for how long a store of the commit log is used before its Secret is read again.
	storeStays = 10 * time.Minute
	// logBehind is how long ago what the store has of the log may end before that is said.
	logBehind = 5 * time.Minute
)

// commitLog is what the agent keeps of the commit log in a store.
type commitLog struct {
	*archive.Log
	hostID  string
	cleared bool
	// problem of linking, and of the last upload.
	linking, uploading string

	to       store.Store
	of       v1alpha1.BackupStoreSpec
	openedAt time.Time
}

// followLog keeps the commit log of a member while its record says where.
func (a *Agent) followLog(ctx context.Context) {
	if a.host.LogVolume == "" {
		return
	}
	a.host.Threads.Together(0,
		func() {
			for ctx.Err() == nil {
				a.LookAtLog()
				a.host.Threads.Wait(ctx, lookAtLogEvery, nil)
			}
		},
		func() {
			for ctx.Err() == nil {
				a.host.Threads.Wait(ctx, a.UploadLog(ctx), nil)
			}
		})
}

// logWanted is where the log is to be kept, of which member, and how long Cassandra may acknowledge
// what is not in it; nil for nowhere. It is not known before a record is. The lock is held.
func (a *Agent) logWanted() (wanted *v1alpha1.CommitLogArchive, hostID string, sync time.Duration, known bool) {
	var record *v1alpha1.CassandraNode
	if a.host.Record != nil {
		record, known = a.host.Record.Record()
	}
	memory := node.Own(a.memory, a.self, record)
	if !known {
		record = memory.Record.Object(a.self.Node)
	}
	if record == nil || memory.Member == nil || memory.LeftAt != nil {
		return nil, "", 0, known
	}
	return record.Spec.CommitLog, memory.Member.HostID, config.SyncPeriod(&record.Spec.Configuration), true
}

// LookAtLog links what has appeared of the log.
func (a *Agent) LookAtLog() {
	a.mu.Lock()
	wanted, hostID, sync, known := a.logWanted()
	l, now := &a.log, a.host.Threads.Now()
	if l.Log != nil && (known && wanted == nil || l.hostID != hostID) {
		_ = l.Close()
		*l = commitLog{}
	}
	a.mu.Unlock()
	if !known {
		return
	}
	err := func() (err error) {
		if wanted == nil {
			if !l.cleared {
				err = archive.Forget(a.host.LogVolume)
				l.cleared = err == nil
			}
			return err //nolint:wrapcheck // it says what it is about
		}
		if sync > archive.LongestSync {
			return fmt.Errorf("commitlog_sync_period is %s: with more than %s it is not known what the log has", sync,
				archive.LongestSync)
		}
		opened := l.Log
		if opened == nil {
			if opened, err = archive.Open(a.host.LogVolume, hostID, now); err != nil {
				return err //nolint:wrapcheck // it says what it is about
			}
			a.mu.Lock()
			l.Log, l.hostID, l.cleared = opened, hostID, false
			a.mu.Unlock()
		}
		most, err := archive.Share(a.host.LogVolume, wanted.MaxDisk)
		if err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
		return opened.Look(now, most) //nolint:wrapcheck // so does this
	}()
	a.sayLog(&l.linking, err)
}

// UploadLog sends what has grown of the log, and says when to do so again.
func (a *Agent) UploadLog(ctx context.Context) time.Duration {
	a.mu.Lock()
	wanted, _, _, _ := a.logWanted()
	opened := a.log.Log
	a.mu.Unlock()
	if wanted == nil || opened == nil {
		return lookAtLogEvery
	}
	bounded, cancel := a.host.Threads.WithTimeout(ctx, uploadLimit)
	defer cancel()
	err := a.uploadLog(bounded, opened, wanted)
	if ctx.Err() != nil {
		return 0
	}
	a.sayLog(&a.log.uploading, err)
	return wanted.UploadEvery.Duration
}

func (a *Agent) uploadLog(ctx context.Context, opened *archive.Log, wanted *v1alpha1.CommitLogArchive) error {
	l, now := &a.log, a.host.Threads.Now()
	if l.to == nil || !equality.Semantic.DeepEqual(l.of, wanted.Store) || now.Sub(l.openedAt) > storeStays {
		to, err := a.host.Store(ctx, &wanted.Store)
		if err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
		l.to, l.of, l.openedAt = to, *wanted.Store.DeepCopy(), now
	}
	err := opened.Upload(ctx, l.to, string(a.self.ClusterUID))
	if err != nil {
		l.to = nil // its Secret may be another by now
	}
	return err //nolint:wrapcheck // it says what it is about
}

// sayLog notes a problem, and has the status written if what it says of the log has changed.
func (a *Agent) sayLog(where *string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && errors.Is(err, context.Canceled) {
		return
	}
	*where = ""
	if err != nil {
		*where = err.Error()
	}
	if found := a.logFacts(); found != a.logSaid {
		a.logSaid = found
		a.wake.Set()
	}
}

// logFacts is what is decided on. The lock is held.
func (a *Agent) logFacts() node.Log {
	if a.log.Log == nil {
		return node.Log{Problem: a.log.linking}
	}
	from, to, hole := a.log.Covered()
	out := node.Log{From: from, Hole: hole}
	if to.IsZero() {
		out.From = time.Time{}
	}
	if begun := latest(from, to); a.host.Threads.Now().Sub(begun) > logBehind {
		out.Until = to
		out.Problem = "nothing was sent for longer than 5 minutes"
		for _, problem := range []string{a.log.linking, a.log.uploading} {
			if problem != "" {
				out.Problem = problem
			}
		}
	}
	return out
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
