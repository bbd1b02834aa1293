package scene

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

// Timed is a client that writes rows at LOCAL_QUORUM with timestamps of its own. It knows which of
// them were acknowledged.
type Timed struct {
	*connection
	stop context.CancelFunc
	all  sync.WaitGroup

	mutex        sync.Mutex
	acknowledged map[int]TimedRow
}

// TimedRow is a row that was acknowledged.
type TimedRow struct{ Timestamp, Acknowledged time.Time }

const (
	// TimedTable has those rows.
	TimedTable = Keyspace + ".timed"
	// timedRate is how many rows are written in a second, each with so many bytes: a commit log of
	// small segments begins a new one every few seconds.
	timedRate, timedBytes = 100, 2048
)

// WriteTimed begins to write.
func (r *Ring) WriteTimed(ctx context.Context) (*Timed, error) {
	c, err := r.attach(ctx)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	t := &Timed{connection: c, stop: stop, acknowledged: map[int]TimedRow{}}
	t.all.Go(func() {
		tick := time.NewTicker(time.Second / timedRate)
		defer tick.Stop()
		for id := 0; ; id++ {
			select {
			case <-running.Done():
				return
			case <-tick.C:
			}
			t.all.Go(func() { t.write(running, id) })
		}
	})
	return t, nil
}

func (t *Timed) write(ctx context.Context, id int) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 2*clientTimeout+time.Second)
	defer done()
	at := time.Now().Truncate(time.Microsecond)
	err := t.on(ctx, func(session *gocql.Session) error {
		return session.Query("INSERT INTO "+TimedTable+" (id, value) VALUES (?, ?) USING TIMESTAMP ?", id,
			strings.Repeat("v", timedBytes), at.UnixMicro()).ExecContext(ctx)
	})
	if err == nil {
		row := TimedRow{Timestamp: at, Acknowledged: time.Now()}
		t.mutex.Lock()
		t.acknowledged[id] = row
		t.mutex.Unlock()
	}
}

// End ends the client, and returns what was acknowledged, by the ids of rows.
func (t *Timed) End() map[int]TimedRow {
	t.stop()
	t.all.Wait()
	leave(t.session.Load())
	return maps.Clone(t.acknowledged)
}

// MakeTimed makes the table of such rows.
func (r *Ring) MakeTimed(ctx context.Context) error {
	return r.define(ctx, "CREATE TABLE "+TimedTable+" (id int PRIMARY KEY, value text)")
}

// ReadTimed are the timestamps of the rows that all replicas together have.
func (r *Ring) ReadTimed(ctx context.Context) (map[int]time.Time, error) {
	c, err := r.attach(ctx)
	if err != nil {
		return nil, err
	}
	defer leaveAll([]*connection{c})
	out := map[int]time.Time{}
	err = r.poll(ctx, comeback, "all rows are read", func(ctx context.Context) error {
		clear(out)
		return c.on(ctx, func(session *gocql.Session) error {
			iter := session.Query("SELECT id, writetime(value) FROM " + TimedTable).Consistency(gocql.All).
				PageSize(100).IterContext(ctx)
			var id int
			for at := int64(0); iter.Scan(&id, &at); {
				out[id] = time.UnixMicro(at)
			}
			return iter.Close()
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read rows with timestamps: %w", err)
	}
	return out, nil
}

// Covered waits until the commit logs of all members in a store cover a time, without a hole.
func (r *Ring) Covered(ctx context.Context, in store.Store, until time.Time) error {
	cluster := string(r.UID)
	return r.poll(ctx, comeback, "the commit logs in the store cover "+until.String(), func(ctx context.Context) error {
		coverage := format.Coverage{}
		if err := in.List(ctx, format.CoveredPrefix(cluster), func(o store.Object) error {
			hostID, i, err := format.ParseCovered(cluster, o.Key)
			coverage.Add(hostID, i)
			return err
		}); err != nil {
			return err
		}
		for _, n := range r.Nodes(ctx) {
			of := coverage[n.Status.HostID]
			if len(of) != 1 || of[0].To.Before(until) {
				return fmt.Errorf("the commit log of %s covers %v; %+v", n.Name, of, n.Status.CommitLog)
			}
		}
		return nil
	})
}
