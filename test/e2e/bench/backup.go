package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	"helenus.io/helenus/test/e2e/scene"
)

const (
	// filled is how many MiB each node has.
	filled = 256
	// uploadEvery is how often commit logs are sent, and following for how long it is seen how far
	// the store is behind.
	uploadEvery, following = 30 * time.Second, 150 * time.Second
	// uploaded is how often the upload is measured; the one in the middle counts.
	uploaded = 5
	// compacting bounds the compactions of what was filled.
	compacting = 5 * time.Minute
)

// compacted is in what nodetool compactionstats says of a node that compacts nothing.
var compacted = regexp.MustCompile(`pending tasks:? +0\b`)

// backedUp is what backups and repairs cost three nodes. What is 0 was not measured.
type backedUp struct {
	files, bytes int64
	up, down     transfer
	// again is of the second backup of what is unchanged: what the nodes asked for, and sent.
	again struct{ files, bytes, requests, sent int64 }
	// besides are the reads of a client beside something, the first beside nothing.
	besides []besides
	memory  []memory
	// behind are the ages of what the store had of the commit logs, in order of length.
	behind []time.Duration
	// formed are two empty rings, before and after one that was made from a backup, and fetching is
	// when that one got its files.
	formed, formedAgain, restored, fetching time.Duration
}

// backsUp measures what backups, repairs and a ring that is made from a backup cost.
func (b *bench) backsUp(ctx context.Context, sample *v1alpha1.CassandraCluster, f *figures) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the store, in this process, makes much garbage
	u := &backedUp{}
	f.backedUp = u
	var err error
	u.formed, err = b.form(ctx, shaped(sample, 3), func(ring *scene.Ring) error {
		return b.transfers(ctx, ring, u, func(bucket *scene.Bucket) (err error) {
			for _, measure := range []func() error{
				func() error { return b.uploadsAgain(ctx, ring, bucket, u) },
				func() error { return b.disturbs(ctx, ring, u) },
				func() error { return b.follows(ctx, ring, bucket, u) },
			} {
				err = errors.Join(err, measure()) // what fails says nothing of the next
			}
			return err
		})
	})
	if err == nil {
		u.formedAgain, err = b.form(ctx, shaped(sample, 3), nil)
	}
	return err
}

// transfers measures what nodes upload, and what they download into a ring in place of theirs, and
// something else between.
func (b *bench) transfers(ctx context.Context, ring *scene.Ring, u *backedUp, between func(*scene.Bucket) error) error {
	bucket, err := ring.Bucket(ctx, "main")
	if err != nil {
		return err
	}
	defer bucket.Close()
	if err := b.fills(ctx, ring); err != nil {
		return err
	}
	first, err := b.uploads(ctx, ring, bucket, u)
	if err != nil {
		return err
	}
	if between != nil {
		err = between(bucket)
	}
	return errors.Join(err, b.restores(ctx, ring, bucket, first, u))
}

// fills a ring, and waits until nothing is compacted any more: as from then on nothing is of the
// table that backups are measured by, each has the same files.
func (b *bench) fills(ctx context.Context, ring *scene.Ring) error {
	if err := errors.Join(ring.Fill(ctx, gocql.All), ring.FillMuch(ctx, filled)); err != nil {
		return err
	}
	for _, node := range ring.NodeNames(ctx) {
		for _, command := range []string{"flush", "disableautocompaction"} {
			if _, err := ring.Run(ctx, node, "nodetool", command, scene.Keyspace, "much"); err != nil {
				return fmt.Errorf("nodetool %s on %s: %w", command, node, err)
			}
		}
		for until := time.Now().Add(compacting); ; {
			out, err := ring.Run(ctx, node, "nodetool", "compactionstats")
			if err != nil {
				return fmt.Errorf("nodetool compactionstats on %s: %w", node, err)
			}
			if compacted.MatchString(out) {
				break
			}
			if time.Now().After(until) {
				return fmt.Errorf("node %s compacts for longer than %s: %s", node, compacting, out)
			}
			if err := pass(ctx, time.Second); err != nil { // nobody says when it is done
				return err
			}
		}
	}
	b.say("%s has %d MiB on each node", ring.Name, filled)
	return nil
}

// filesOf are the files of a backup by the names of its nodes, each content once.
func filesOf(ctx context.Context, in store.Store, backup *v1alpha1.CassandraBackup) (map[string][]format.File, error) {
	out := map[string][]format.File{}
	for _, n := range backup.Status.Nodes {
		key := format.ManifestKey(string(backup.Status.ClusterUID), backup.Status.ID, n.Member)
		m, err := sweep.Read[format.Manifest](ctx, in, key)
		if err != nil {
			return nil, err
		}
		known := map[string]bool{}
		for _, t := range m.Tables {
			for _, s := range t.SSTables {
				for _, f := range s.Files {
					if !known[f.BlobName()] {
						known[f.BlobName()] = true
						out[n.Node] = append(out[n.Node], f)
					}
				}
			}
		}
	}
	return out, nil
}

// What is taken of the memory of an agent.
func now(m scene.Memory) uint64       { return m.Now }
func anonymous(m scene.Memory) uint64 { return m.Anonymous }
func peak(m scene.Memory) uint64      { return m.Peak }

// sees what memory the agents of a ring have.
func (u *backedUp) sees(ctx context.Context, ring *scene.Ring, what string, of func(scene.Memory) uint64) error {
	all, err := ring.AgentMemories(ctx)
	if err != nil {
		return err
	}
	m := memory{what: what}
	for _, agent := range all {
		m.resident = append(m.resident, of(agent))
	}
	u.memory = append(u.memory, m)
	return nil
}

// uploads backs a ring up for the first time, and then measures that into other stores.
func (b *bench) uploads(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket, u *backedUp) (
	first *v1alpha1.CassandraBackup, err error) {
	if err := u.sees(ctx, ring, "agent, before it has sent anything", now); err != nil {
		return nil, err
	}
	if err := u.sees(ctx, ring, "of it, what is not of a file", anonymous); err != nil {
		return nil, err
	}
	if err := ring.ForgetPeaks(ctx); err != nil {
		return nil, err
	}
	if first, err = ring.BackUp(ctx, "first", "main"); err != nil {
		return nil, err
	}
	files, err := filesOf(ctx, bucket, first)
	if err != nil {
		return nil, err
	}
	var all []transfer
	for n := range uploaded {
		one, err := b.upload(ctx, ring, files, fmt.Sprintf("upload-%d", n))
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if err := u.sees(ctx, ring, "agent, the most while it sent", peak); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b transfer) int { return cmp.Compare(a.share(), b.share()) })
	u.up = all[len(all)/2]
	for _, n := range first.Status.Nodes {
		u.files, u.bytes = u.files+n.Files, u.bytes+n.Bytes
	}
	b.say("uploaded %d files of %d bytes: %+v, memory %v", u.files, u.bytes, all, u.memory)
	return first, nil
}

// upload backs a ring up into a store that has nothing yet, after dd and between a plain client and
// the same again: the store takes its memory from the host at first.
func (b *bench) upload(ctx context.Context, ring *scene.Ring, files map[string][]format.File, name string) (
	t transfer, err error) {
	bucket, err := ring.Bucket(ctx, name)
	if err != nil {
		return t, err
	}
	defer bucket.Close()
	before, err := b.putPlainly(ctx, ring, bucket, files)
	if err != nil {
		return t, err
	}
	if t.disks, err = dd(ctx, ring, readFiles, 0); err != nil {
		return t, err
	}
	if _, err := dd(ctx, ring, dropFiles+"echo 0 0", 0); err != nil {
		return t, err
	}
	began := time.Now()
	if _, err := ring.BackUp(ctx, name, name); err != nil {
		return t, err
	}
	by := byNodes(ctx, ring, bucket, began)
	for node, asked := range by {
		by[node] = upToManifest(asked)
	}
	t.agents, _ = moved(by)
	t.waiting = waiting(by, uploads)
	after, err := b.putPlainly(ctx, ring, bucket, files)
	t.clients = 2 / (1/before + 1/after)
	return t, err
}

// uploadsAgain backs up what has not changed.
func (b *bench) uploadsAgain(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket, u *backedUp) error {
	began := time.Now()
	second, err := ring.BackUp(ctx, "second", "main")
	if err != nil {
		return err
	}
	for _, asked := range byNodes(ctx, ring, bucket, began) {
		for _, a := range asked {
			u.again.requests++
			u.again.sent += a.Sent
		}
	}
	for _, n := range second.Status.Nodes {
		u.again.files, u.again.bytes = u.again.files+n.Files, u.again.bytes+n.Bytes
	}
	b.say("uploaded again: %+v, %d new bytes", u.again, second.Status.NewBytes)
	return nil
}

// follows has commit logs kept while a client writes, and sees how old what the store has of them
// becomes.
func (b *bench) follows(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket, u *backedUp) (
	err error) {
	schedule := &v1alpha1.CassandraBackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: ring.Namespace, Name: "logs"},
		Spec: v1alpha1.CassandraBackupScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: ring.Name},
			Store: v1alpha1.BackupStoreReference{Name: "main"}, Timing: v1alpha1.Timing{Schedule: "0 0 1 1 *"},
			Keep: v1alpha1.BackupRetention{Last: 1}, PointInTime: &v1alpha1.PointInTime{Mode: v1alpha1.PointInTimeOn,
				UploadEvery: metav1.Duration{Duration: uploadEvery}}}}
	if err := ring.Kubernetes.Client.Create(ctx, schedule); err != nil {
		return fmt.Errorf("create schedule %s: %w", schedule.Name, err)
	}
	r, err := b.reads(ctx, ring)
	if err != nil {
		return err
	}
	defer func() {
		_, ended := r.end()
		err = errors.Join(err, ended)
	}()
	nodes, given := len(ring.NodeNames(ctx)), time.Now()
	for begun := (time.Time{}); begun.IsZero() || time.Since(begun) < following; {
		ends := map[string]time.Time{}
		if err := bucket.List(ctx, format.CoveredPrefix(string(ring.UID)), func(o store.Object) error {
			hostID, i, err := format.ParseCovered(string(ring.UID), o.Key)
			if i.To.After(ends[hostID]) {
				ends[hostID] = i.To
			}
			return err
		}); err != nil {
			return err
		}
		switch {
		case len(ends) == nodes:
			if begun.IsZero() {
				begun = time.Now()
				b.say("the commit logs of %d nodes are kept", nodes)
			}
			oldest := slices.MinFunc(slices.Collect(maps.Values(ends)), time.Time.Compare)
			u.behind = append(u.behind, time.Since(oldest))
		case time.Since(given) > following:
			return fmt.Errorf("the commit logs of %d nodes are kept after %s", len(ends), following)
		}
		if err := pass(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
	slices.Sort(u.behind)
	b.say("the store was up to %s behind", u.behind[len(u.behind)-1])
	return ring.Kubernetes.Client.Delete(ctx, schedule)
}

// restores makes a ring from the first backup in place of the one that it was taken of, once it is
// known what disks and a plain client can do.
func (b *bench) restores(ctx context.Context, ring *scene.Ring, bucket *scene.Bucket, first *v1alpha1.CassandraBackup,
	u *backedUp) error {
	files, err := filesOf(ctx, bucket, first)
	if err != nil {
		return err
	}
	if u.down.clients, err = b.getPlainly(ctx, ring, bucket, files); err != nil {
		return err
	}
	if u.down.disks, err = dd(ctx, ring, writeFile, filled); err != nil {
		return err
	}
	c := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Name: ring.Name + "-again"},
		Spec: *ring.Spec.DeepCopy()}
	// Its volumes stay: ext4 passes over all files that were just deleted when it makes one.
	if err := ring.Delete(ctx, v1alpha1.ClaimRetain); err != nil {
		return err
	}
	c.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{
		Store:  v1alpha1.StoreReference{Name: "main"},
		Source: v1alpha1.RestoreSource{UID: ring.UID}, SourceGone: true, Backup: first.Status.ID}}
	began := time.Now()
	heir, err := ring.Form(ctx, c)
	if err != nil {
		return err
	}
	u.restored = time.Since(began)
	by := byNodes(ctx, heir, bucket, began)
	for node, asked := range by {
		by[node] = slices.DeleteFunc(asked, func(a scene.Asked) bool { return !isBlob(a) })
	}
	var during span
	u.down.agents, during = moved(by)
	u.fetching, u.down.waiting = during.to.Sub(during.from), waiting(by, downloads)
	if err := u.sees(ctx, heir, "agent of a node from a backup, the most since its start", peak); err != nil {
		return err
	}
	b.say("restored: %.1fs, of it %.1fs downloads, %+v", u.restored.Seconds(), u.fetching.Seconds(), u.down)
	return heir.ReadBack(ctx, gocql.All)
}

// reads prints how a client was served, beside nothing first.
func reads(b *strings.Builder, who string, of []besides) {
	if len(of) > 0 {
		fmt.Fprintf(b, "\n| %s | reads | failed | 99 %% within | |\n|---|---:|---:|---:|---:|\n", who)
	}
	for _, s := range of {
		fmt.Fprintf(b, "| %s | %d | %d | %.1f ms | %s |\n", s.what, s.reads, s.failed, s.p99.Seconds()*1000,
			ratio(s.p99, of[0].p99))
	}
}

// backups prints what backups and repairs cost.
func (f *figures) backups(b *strings.Builder) {
	u, alone := cmp.Or(f.backedUp, &backedUp{}), cmp.Or(f.alone, &backedUp{})
	if u.up.agents == 0 && alone.up.agents == 0 {
		return
	}
	if u.files > 0 {
		fmt.Fprintf(b, "\nThree nodes, %d files of %d MiB in all.\n", u.files, u.bytes>>20)
	}
	b.WriteString("\n| each node, MiB/s | agent | dd | plain client | of the slower | of one after the other | " +
		"waits for the store |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, row := range []struct {
		what string
		transfer
	}{{"upload, three at once", u.up}, {"download, into a new ring of three", u.down},
		{"upload, one with a processor for itself", alone.up},
		{"download, into a new ring of one with a processor for itself", alone.down}} {
		if row.agents > 0 {
			fmt.Fprintf(b, "| %s | %.0f | %.0f | %.0f | %.0f %% | %.0f %% | %.0f %% |\n", row.what,
				row.agents/(1<<20), row.disks/(1<<20), row.clients/(1<<20), 100*row.share(), 100*row.inTurn(),
				100*row.waiting)
		}
	}
	if a := u.again; a.files > 0 {
		fmt.Fprintf(b, "\nA second backup sent %.2f %% of the bytes, by %.2f requests for each of %d files.\n",
			100*float64(a.sent)/float64(a.bytes), float64(a.requests)/float64(a.files), a.files)
	}
	reads(b, "a client of three nodes, beside", u.besides)
	reads(b, "a client of one node with a processor for itself, beside", alone.besides)
	if n := len(u.behind); n > 0 {
		fmt.Fprintf(b, "\nCommit logs in the store, sent every %s: %.1f s behind, at most %.1f s.\n", uploadEvery,
			u.behind[n/2].Seconds(), u.behind[n-1].Seconds())
	}
	(&figures{memory: u.memory}).memories(b)
	if u.restored > 0 {
		empty := (u.formed + u.formedAgain) / 2
		fmt.Fprintf(b, "\n| a ring of three nodes | |\n|---|---:|\n| empty, before | %s |\n| empty, after | %s |\n"+
			"| from the backup | %s |\n| of it, downloads | %s |\n| against an empty one and the downloads | %s |\n",
			seconds(u.formed), seconds(u.formedAgain), seconds(u.restored), seconds(u.fetching),
			ratio(u.restored, empty+u.fetching))
	}
}
