package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/test/e2e/scene"
)

// readingRate is how many requests leave in a second, four of five of them reads: a tenth of what
// the nodes can do on two cores.
const readingRate = 100

// limit of what a node reads in a second of a backup that has one.
const limit = "50Mi"

// reading is an application that reads and writes rows, whatever becomes of its requests before. It
// is a process of its own beside the first node, and runs before all others, as on a host of its
// own: it does not wait for what the store does in this process.
type reading struct {
	process *exec.Cmd
	stop    io.Closer
	said    bytes.Buffer
	// end the application, which says what it has read.
	end func() ([]read, error)
}

// read is a row that was read, in time or not.
type read struct {
	At     time.Time
	Took   time.Duration
	Failed bool
}

// reads begins to read rows of a ring that was filled.
func (b *bench) reads(ctx context.Context, ring *scene.Ring) (*reading, error) {
	access, err := ring.Access(ctx)
	if err != nil {
		return nil, err
	}
	r := &reading{}
	if r.process, err = b.beside(ctx, ring, ring.NodeNames(ctx)[0], "nice", "--adjustment=-20"); err != nil {
		return nil, err
	}
	r.process.Args = append(r.process.Args, "reads")
	r.process.Stdout = &r.said
	in, err := r.process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	r.stop, r.end = in, sync.OnceValues(r.wait)
	if err := r.process.Start(); err != nil {
		return nil, fmt.Errorf("start a client: %w", err)
	}
	if err := json.NewEncoder(in).Encode(access); err != nil {
		_, ended := r.end()
		return nil, errors.Join(fmt.Errorf("say to a client what to read: %w", err), ended)
	}
	return r, nil
}

func (r *reading) wait() (all []read, err error) {
	if err := errors.Join(r.stop.Close(), r.process.Wait()); err != nil {
		return nil, fmt.Errorf("end a client: %w", err)
	}
	if err := json.Unmarshal(r.said.Bytes(), &all); err != nil {
		return nil, fmt.Errorf("read what a client has read: %w", err)
	}
	return all, nil
}

// readsOn is the command that reads and writes until its standard input ends, and then says what it
// has read.
func readsOn() *cobra.Command {
	return &cobra.Command{Use: "reads", Hidden: true, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		var access scene.Access
		if err := json.NewDecoder(c.InOrStdin()).Decode(&access); err != nil {
			return fmt.Errorf("read what to use: %w", err)
		}
		session, err := access.Session()
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer session.Close()
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, c.InOrStdin())
			ended <- err
		}()
		all, err := requests(session, ended)
		return errors.Join(err, json.NewEncoder(c.OutOrStdout()).Encode(all))
	}}
}

// requests are made until something has ended; the reads of them are said.
func requests(session *gocql.Session, ended <-chan error) (all []read, err error) {
	var mutex sync.Mutex
	var requests sync.WaitGroup
	defer requests.Wait()
	tick := time.NewTicker(time.Second / readingRate)
	defer tick.Stop()
	for began, sent := time.Now(), 0; ; {
		select {
		case err := <-ended:
			requests.Wait()
			return all, err
		case <-tick.C:
		}
		for due := int(time.Since(began) * readingRate / time.Second); sent < due; sent++ {
			n := sent
			requests.Go(func() {
				if one, is := request(session, n); is {
					mutex.Lock()
					defer mutex.Unlock()
					all = append(all, one)
				}
			})
		}
	}
}

// request makes the n-th one, and says whether it is a read. What is written is there already.
func request(session *gocql.Session, n int) (one read, is bool) {
	row := n % scene.Rows
	if n%5 == 0 {
		_ = session.Query("INSERT INTO "+scene.Keyspace+".rows (id, value) VALUES (?, ?)", row, scene.RowText(row)).
			Exec() // reads are what is measured
		return one, false
	}
	one.At = time.Now()
	err := session.Query("SELECT value FROM "+scene.Keyspace+".rows WHERE id = ?", row).Scan(new(string))
	one.Took, one.Failed = time.Since(one.At), err != nil
	return one, true
}

// within are the reads that began in some spans.
func within(reads []read, spans []span) []read {
	return slices.DeleteFunc(slices.Clone(reads), func(one read) bool {
		return !slices.ContainsFunc(spans, func(s span) bool { return !one.At.Before(s.from) && one.At.Before(s.to) })
	})
}

// reached is how many of some reads failed, and in what time 99 % of all had ended.
func reached(reads []read) (failed int, p99 time.Duration) {
	var took []time.Duration
	for _, r := range reads {
		took = append(took, r.Took)
		if r.Failed {
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
// in half a percent of the time.
func (b *bench) disturbs(ctx context.Context, ring *scene.Ring, u *backedUp) error {
	r, err := b.reads(ctx, ring)
	if err != nil {
		return err
	}
	defer func() { _, _ = r.end() }() // what fails before is said
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
		all, err := r.end()
		say("nothing", within(all, quiet))
		say("backups, "+limit+" a node", within(all, limited))
		return err
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
	all, ended := r.end()
	if err := errors.Join(err, ended); err != nil {
		return err
	}
	none, whileRepaired := within(all, quiet), within(all, repairing)
	spread := slices.Concat(none, oneOf(whileRepaired, len(none)/199))
	say("nothing", none)
	say("backups, "+limit+" a node", within(all, limited))
	say(fmt.Sprintf("a repair, one node after the other, %.0f s", covered(repairing).Seconds()), whileRepaired)
	say("the same in 0.5 % of the time", spread)
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
