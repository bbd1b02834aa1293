package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/test/e2e/scene"
)

// readingRate is how many requests leave in a second, four of five of them reads: a tenth of what
// the nodes can do on two cores.
const readingRate = 100

// limit of what a node reads in a second of a backup that has one.
const limit = "50Mi"

// reading is an application that reads and writes rows, whatever becomes of its requests before.
type reading struct {
	stop  context.CancelFunc
	all   sync.WaitGroup
	mutex sync.Mutex
	reads []read
}

// read is a row that was read, in time or not.
type read struct {
	at     time.Time
	took   time.Duration
	failed bool
}

// reads begins to read rows of a ring that was filled.
func (b *bench) reads(ctx context.Context, ring *scene.Ring) (*reading, error) {
	session, err := ring.Near(ctx)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	r := &reading{stop: stop}
	r.all.Go(func() {
		defer session.Close()
		var requests sync.WaitGroup
		defer requests.Wait()
		tick := time.NewTicker(time.Second / readingRate)
		defer tick.Stop()
		began, sent := time.Now(), 0
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for due := int(time.Since(began) * readingRate / time.Second); sent < due; sent++ {
				n := sent
				requests.Go(func() { r.request(session, n) })
			}
		}
	})
	return r, nil
}

// request makes the n-th one. What is written is there already.
func (r *reading) request(session *gocql.Session, n int) {
	row := n % scene.Rows
	if n%5 == 0 {
		_ = session.Query("INSERT INTO "+scene.Keyspace+".rows (id, value) VALUES (?, ?)", row, scene.RowText(row)).
			Exec() // reads are what is measured
		return
	}
	began := time.Now()
	err := session.Query("SELECT value FROM "+scene.Keyspace+".rows WHERE id = ?", row).Scan(new(string))
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.reads = append(r.reads, read{began, time.Since(began), err != nil})
}

// end ends the application.
func (r *reading) end() {
	r.stop()
	r.all.Wait()
}

// within are the reads that began in some spans.
func (r *reading) within(spans []span) []read {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(r.reads), func(one read) bool {
		return !slices.ContainsFunc(spans, func(s span) bool { return !one.at.Before(s.from) && one.at.Before(s.to) })
	})
}

// reached is how many of some reads failed, and in what time 99 % of all had ended.
func reached(reads []read) (failed int, p99 time.Duration) {
	var took []time.Duration
	for _, r := range reads {
		took = append(took, r.took)
		if r.failed {
			failed++
		}
	}
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return failed, took[len(took)*99/100]
}

// besides is how a client was served beside something.
type besides struct {
	what          string
	reads, failed int
	p99           time.Duration
}

// disturbs has a client read beside backups with a limit, into stores that have nothing yet, and
// beside a repair of all nodes, if there is more than one. A ring with so little data is repaired
// in 1 % of the time.
func (b *bench) disturbs(ctx context.Context, ring *scene.Ring, u *backedUp) error {
	r, err := b.reads(ctx, ring)
	if err != nil {
		return err
	}
	defer r.end()
	if err := pass(ctx, warming); err != nil {
		return err
	}
	var quiet, limited []span
	lull := func() error {
		began := time.Now()
		err := pass(ctx, calm)
		quiet = append(quiet, span{began, time.Now()})
		return err
	}
	for _, name := range []string{"limited-1", "limited-2"} {
		if err := lull(); err != nil {
			return err
		}
		during, err := b.limited(ctx, ring, name)
		if err != nil {
			return err
		}
		limited = append(limited, during)
	}
	if err := lull(); err != nil {
		return err
	}
	say := func(what string, reads []read) {
		failed, p99 := reached(reads)
		u.besides = append(u.besides, besides{what, len(reads), failed, p99})
		b.say("reads beside %s: %+v", what, u.besides[len(u.besides)-1])
	}
	if len(ring.NodeNames(ctx)) == 1 {
		say("nothing", r.within(quiet))
		say("backups, "+limit+" a node", r.within(limited))
		return nil
	}
	began := time.Now()
	t, err := ring.Give(ctx, "repair", v1alpha1.TaskTemplate{Type: v1alpha1.TaskRepair,
		Keyspaces: []string{scene.Keyspace}})
	if err == nil {
		err = ring.Finished(ctx, t)
	}
	repairing := []span{{began, time.Now()}}
	if err == nil {
		err = lull()
	}
	if err != nil {
		return err
	}
	none, whileRepaired := r.within(quiet), r.within(repairing)
	spread := slices.Concat(none, oneOf(whileRepaired, len(none)/99))
	say("nothing", none)
	say("backups, "+limit+" a node", r.within(limited))
	say(fmt.Sprintf("a repair, one node after the other, %.0f s", covered(repairing).Seconds()), whileRepaired)
	say("the same in 1 % of the time", spread)
	return nil
}

// oneOf takes some of the reads, evenly over the time.
func oneOf(reads []read, some int) (out []read) {
	some = min(some, len(reads))
	for i := range some {
		out = append(out, reads[i*len(reads)/some])
	}
	return out
}

// limited backs a ring up into a store of its own, and says when files were sent.
func (b *bench) limited(ctx context.Context, ring *scene.Ring, name string) (span, error) {
	bucket, err := ring.Bucket(ctx, name)
	if err != nil {
		return span{}, err
	}
	defer bucket.Close()
	began := time.Now()
	most := resource.MustParse(limit)
	if _, err := ring.BackUp(ctx, name, name, func(s *v1alpha1.CassandraBackupSpec) {
		s.Limits = &v1alpha1.BackupLimits{BandwidthPerNode: &most}
	}); err != nil {
		return span{}, err
	}
	rate, during := moved(byNodes(ctx, ring, bucket, began))
	b.say("backup %s sent %s of each node in a second, in %.1fs", name, mebibytes(uint64(rate)),
		during.to.Sub(during.from).Seconds())
	return during, nil
}
