//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/test/e2e/scene"
)

// bucket serves an object store until the test ends, as the CassandraBackupStore main. Requests
// pass what is in front of it.
func bucket(t *testing.T, ring *scene.Ring, front ...func(http.Handler) http.Handler) *scene.Bucket {
	t.Helper()
	b, err := ring.Bucket(t.Context(), "main", front...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Close()
		if t.Failed() {
			return
		}
		// The next test of a shared ring makes another one.
		made := map[string]client.Object{"main": &v1alpha1.CassandraBackupStore{}, "main-keys": &corev1.Secret{}}
		for name, o := range made {
			o.SetNamespace(ring.Namespace)
			o.SetName(name)
			if err := client.IgnoreNotFound(ring.Kubernetes.Client.Delete(background, o)); err != nil {
				t.Errorf("delete the store: %v", err)
			}
		}
	})
	return b
}

// TestBackup: a ring that clients write to is backed up twice, the second time while a JVM is
// killed and the operator starts again. Each backup has all files of all nodes, and the second one
// sends less than the first. The operator reads both.
func TestBackup(t *testing.T) {
	ring := threeRacks(t)
	to := bucket(t, ring)
	nodes := ring.NodeNames(t.Context())
	var first, second *v1alpha1.CassandraBackup
	while(t, ring, servedThroughout, "the ring is backed up", func() (err error) {
		first, err = ring.BackUp(t.Context(), "first", "main")
		return err
	})
	while(t, ring, gapsAreShort, "the ring is backed up, and a JVM is killed", func() (err error) {
		if err = ring.KillJVM(t.Context(), nodes[0]); err == nil {
			second, err = ring.BackUp(t.Context(), "second", "main")
		}
		return err
	})
	if second.Status.NewBytes >= first.Status.NewBytes {
		t.Errorf("the second backup has sent %d bytes, the first %d", second.Status.NewBytes, first.Status.NewBytes)
	}
	for _, b := range []*v1alpha1.CassandraBackup{first, second} {
		if err := whole(t, to, b, len(nodes)); err != nil {
			t.Errorf("backup %s: %v", b.Name, err)
		}
		took(t, "backup "+b.Name+" is verified", func() error { return ring.Verify(t.Context(), b) })
	}
}

// TestTablesFromABackup: a table that was truncated comes back while clients write to others, and
// every replica has every row of it; so does one whose rows are replaced.
func TestTablesFromABackup(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	bucket(t, ring)
	took(t, "rows are written", func() error { return ring.Fill(t.Context(), gocql.All) })
	while(t, ring, servedThroughout, "a table is backed up, truncated, restored, and replaced", func() error {
		b, err := ring.BackUp(t.Context(), "before", "main")
		if err == nil {
			err = ring.Restore(t.Context(), "after", "main", b.Status.ID, v1alpha1.RestoreMerge)
		}
		if err == nil {
			err = ring.Restore(t.Context(), "again", "main", b.Status.ID, v1alpha1.RestoreReplace)
		}
		return err
	})
	for _, node := range ring.NodeNames(t.Context()) {
		if err := ring.ReadThrough(t.Context(), node, gocql.All); err != nil {
			t.Error(err)
		}
	}
}

// TestDamagedBackup: a bit of a file is flipped in the store. A verification finds it, and a table
// comes back without what that node had of it: the others have each row. When a file of a second
// node is damaged, too, a restore is refused, and no row is touched.
func TestDamagedBackup(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-damage")
	in, nodes := bucket(t, ring), ring.NodeNames(t.Context())
	const table = scene.Keyspace + ".rows"
	var b *v1alpha1.CassandraBackup
	took(t, "the ring is backed up", func() (err error) {
		b, err = ring.BackUp(t.Context(), "before", "main")
		return err
	})
	flipped(t, in, ring, b, nodes[0], table)
	took(t, "the damage is found", func() error {
		of, err := ring.Verified(t.Context(), b)
		if err == nil && (of.DamagedFiles == 0 || len(of.Damaged) != 1 || of.Damaged[0].Node != nodes[0] ||
			of.Damaged[0].Table != table || of.Damaged[0].Ranges == 0 || of.Damaged[0].Uncovered > 0) {
			err = fmt.Errorf("found is %+v", of)
		}
		return err
	})
	var done, refused *v1alpha1.CassandraRestore
	while(t, ring, servedThroughout, "the table is truncated, and restored from the others", func() (err error) {
		if err = ring.Restore(t.Context(), "without", "main", b.Status.ID, v1alpha1.RestoreMerge); err == nil {
			done, err = ring.Restored(t.Context(), "without")
		}
		return err
	})
	if want := "without what " + nodes[0] + " had of " + table; !strings.Contains(done.Status.Message, want) {
		t.Errorf("the restore says %q, and not %q", done.Status.Message, want)
	}
	took(t, "all rows are read at ALL through every node",
		func() error { return ring.ReadBack(t.Context(), gocql.All) })

	flipped(t, in, ring, b, nodes[1], table)
	took(t, "a restore is refused", func() (err error) {
		err = ring.Kubernetes.Client.Create(t.Context(), &v1alpha1.CassandraRestore{
			ObjectMeta: metav1.ObjectMeta{Namespace: ring.Namespace, Name: "refused"},
			Spec: v1alpha1.CassandraRestoreSpec{Cluster: v1alpha1.TaskCluster{Name: ring.Name},
				Store: v1alpha1.BackupStoreReference{Name: "main"}, Backup: b.Status.ID,
				Tables: []v1alpha1.RestoredTable{{From: table}}, Mode: v1alpha1.RestoreMerge}})
		if err == nil {
			refused, err = ring.Restored(t.Context(), "refused")
		}
		return err
	})
	if refused.Status.Phase != v1alpha1.TaskFailed ||
		!strings.Contains(refused.Status.Message, "no row has come back: ") ||
		!strings.Contains(refused.Status.Message, "may be left out") {
		t.Errorf("the restore is %s: %s", refused.Status.Phase, refused.Status.Message)
	}
	took(t, "all rows are read again", func() error { return ring.ReadBack(t.Context(), gocql.All) })
}

// flipped flips a bit in a store: of a file of a table that a node has in a backup, and that no
// other one has. Files of the same content are one.
func flipped(t *testing.T, in store.Store, ring *scene.Ring, b *v1alpha1.CassandraBackup, node, table string) {
	t.Helper()
	uid, named, of := string(ring.UID), map[string]int{}, []string{}
	for _, n := range b.Status.Nodes {
		text, err := object(t, in, format.ManifestKey(uid, b.Status.ID, n.Member))
		if err != nil {
			t.Fatal(err)
		}
		m, err := format.Decode[format.Manifest](text)
		if err != nil {
			t.Fatal(err)
		}
		for _, has := range m.Tables {
			for _, s := range has.SSTables {
				for _, f := range s.Files {
					named[f.BlobName()]++
					if n.Node == node && has.Keyspace+"."+has.Name == table && f.Size > 0 {
						of = append(of, f.BlobName())
					}
				}
			}
		}
	}
	i := slices.IndexFunc(of, func(name string) bool { return named[name] == 1 })
	if i < 0 {
		t.Fatalf("node %s has no file of %s that others have not: %v", node, table, of)
	}
	key := format.BlobKey(uid, of[i])
	content, err := object(t, in, key)
	if err == nil {
		content[len(content)/2] ^= 1
		err = errors.Join(in.Delete(t.Context(), key),
			in.Put(t.Context(), key, bytes.NewReader(content), int64(len(content))))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// object is what a store has by a key.
func object(t *testing.T, in store.Store, key string) ([]byte, error) {
	content, err := in.Get(t.Context(), key)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(content)
	return text, errors.Join(err, content.Close())
}

// TestRestoredElsewhere: a ring is backed up while a client writes rows with timestamps of its own,
// and is gone. Of its backup rings are made in another namespace: one as it was, one with fewer
// nodes in a datacenter of another name, one with more nodes and one datacenter in place of two, or
// one of the next release line. Every row is there that was acknowledged before the snapshots, and
// each node has what it owns.
func TestRestoredElsewhere(t *testing.T) {
	onlyInFull(t)
	withoutSharedRing(t)
	type change = func(*v1alpha1.CassandraClusterSpec)
	asItIs := func(*v1alpha1.CassandraClusterSpec) {}
	twoPerRack := func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NodesPerRack = 2 }
	for name, shape := range map[string]struct {
		source change
		heirs  []change
	}{
		"fewer": {twoPerRack, []change{twoPerRack, func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].DatacenterName = "east"
		}}},
		"more": {func(s *v1alpha1.CassandraClusterSpec) {
			second := s.Datacenters[0].DeepCopy()
			second.Name, second.PlannedReplicationFactor, second.Racks = "dc2", 1, second.Racks[:1]
			s.Datacenters = append(s.Datacenters, *second)
		}, []change{twoPerRack}},
		"newer": {func(s *v1alpha1.CassandraClusterSpec) { s.Version = oldestLine }, []change{asItIs}},
	} {
		t.Run(name, func(t *testing.T) { restoredElsewhere(t, "e2e-elsewhere-"+name, shape.source, shape.heirs...) })
	}
}

func restoredElsewhere(t *testing.T, namespace string, change func(*v1alpha1.CassandraClusterSpec),
	heirs ...func(*v1alpha1.CassandraClusterSpec)) {
	s, sample := open(t, namespace), sampleOf(t, "demo.yaml")
	sample.Spec.Node.Placement.HostAntiAffinity = v1alpha1.HostAntiAffinityPreferred
	formed := sample.DeepCopy()
	change(&formed.Spec)
	var source *scene.Ring
	took(t, "a ring has formed", func() (err error) {
		source, err = s.Form(t.Context(), formed)
		return err
	})
	took(t, "rows are written", func() error {
		return errors.Join(source.Fill(t.Context(), gocql.All), source.MakeTimed(t.Context()))
	})
	bucket(t, source)
	var b *v1alpha1.CassandraBackup
	var acknowledged map[int]scene.TimedRow
	took(t, "it is backed up", func() error {
		writer, err := source.WriteTimed(t.Context())
		if err != nil {
			return err
		}
		rest(t, 10*time.Second)
		b, err = source.BackUp(t.Context(), "before", "main")
		rest(t, 5*time.Second)
		acknowledged = writer.End()
		return err
	})
	elsewhere := open(t, namespace+"-again")
	copyStore(t, s, elsewhere)
	took(t, "it is deleted", func() error { return source.Delete(t.Context(), v1alpha1.ClaimDelete) })
	sample.Name, sample.Spec.ClusterName = "again", "another"
	sample.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{
		Store: v1alpha1.StoreReference{Name: "main"}, Source: v1alpha1.RestoreSource{UID: source.UID}, Backup: b.Status.ID}}
	for _, change := range heirs {
		again := sample.DeepCopy()
		change(&again.Spec)
		var heir *scene.Ring
		took(t, "another one is made from the backup", func() (err error) {
			heir, err = elsewhere.Form(t.Context(), again)
			return err
		})
		took(t, "all rows are read at ALL through every node",
			func() error { return heir.ReadBack(t.Context(), gocql.All) })
		wantTimed(t, heir, b, acknowledged)
		took(t, "it is deleted, too", func() error { return heir.Delete(t.Context(), v1alpha1.ClaimDelete) })
	}
}

// wantTimed fails if a ring that was made from a backup lacks a row that was acknowledged before
// it was taken, or if the client has not written before and after that.
func wantTimed(t *testing.T, heir *scene.Ring, b *v1alpha1.CassandraBackup, acknowledged map[int]scene.TimedRow) {
	t.Helper()
	there, err := heir.ReadTimed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before, missing := 0, 0
	for id, row := range acknowledged {
		if !row.Acknowledged.Before(b.Status.TakenAt.Time) {
			continue
		}
		before++
		if !there[id].Equal(row.Timestamp) {
			missing++
			t.Logf("row %d, acknowledged %s before the backup was taken, is not there", id,
				b.Status.TakenAt.Sub(row.Acknowledged))
		}
	}
	t.Logf("%d of %d rows were acknowledged before the backup was taken; %d of them are missing, and %d rows are there",
		before, len(acknowledged), missing, len(there))
	if missing > 0 || before == 0 || len(there) >= len(acknowledged) {
		t.Error("it is not what was acknowledged before the backup")
	}
}

// TestRestoreDrill: a schedule proves that the latest of its backups can be restored, by a ring of
// one node that has the rows that it must have, serves, and is gone afterwards with its volume; and
// it says which rows one has not.
func TestRestoreDrill(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-drill")
	bucket(t, ring)
	schedule := &v1alpha1.CassandraBackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: ring.Namespace, Name: "often"},
		Spec: v1alpha1.CassandraBackupScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: ring.Name},
			Store: v1alpha1.BackupStoreReference{Name: "main"}, Timing: v1alpha1.Timing{Schedule: "* * * * *"},
			Keep: v1alpha1.BackupRetention{Last: 1},
			Verify: &v1alpha1.BackupVerify{RestoreDrill: &v1alpha1.RestoreDrill{Schedule: "* * * * *",
				Checks: []v1alpha1.RowCheck{{Query: "SELECT count(*) FROM " + scene.Keyspace + ".rows", AtLeast: new(int64(1))}}}}}}
	if err := ring.Kubernetes.Client.Create(t.Context(), schedule); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(schedule)
	until := func(what string, is func(v1alpha1.RestoreDrillStatus) bool) error {
		return ring.Until(t.Context(), 3*growth, what, func(follow.Sight) error {
			if err := ring.Kubernetes.Client.Get(t.Context(), key, schedule); err != nil {
				return err
			}
			if d := schedule.Status.RestoreDrill; d == nil || !is(*d) {
				return fmt.Errorf("the status is %+v", schedule.Status)
			}
			return nil
		})
	}
	while(t, ring, servedThroughout, "a backup is proven, and one has too few rows", func() error {
		if err := until("a ring that was made from a backup has served", func(d v1alpha1.RestoreDrillStatus) bool {
			return d.LastProven != nil
		}); err != nil {
			return err
		}
		before := client.MergeFrom(schedule.DeepCopy())
		schedule.Spec.Verify.RestoreDrill.Checks[0].AtLeast = new(int64(1e12))
		if err := ring.Kubernetes.Client.Patch(t.Context(), schedule, before); err != nil {
			return err
		}
		if err := until("one has too few rows", func(d v1alpha1.RestoreDrillStatus) bool {
			return d.LastFailed != nil && strings.Contains(d.LastFailed.Message, "must have at least 1000000000000")
		}); err != nil {
			return err
		}
		t.Log(schedule.Status.RestoreDrill.LastFailed.Message)
		return ring.Kubernetes.Client.Delete(t.Context(), schedule)
	})
	took(t, "nothing of it is left", func() error {
		return ring.Until(t.Context(), growth, "its cluster and claims are gone", func(now follow.Sight) error {
			if _, there := now.Cluster(schedule.Name + "-drill"); there || len(now.Claims(schedule.Name+"-drill")) > 0 {
				return errors.New("they are there")
			}
			return nil
		})
	})
	wantRingSeen(t, ring)
}

// whole says what of a backup is not in a store.
func whole(t *testing.T, in store.Store, b *v1alpha1.CassandraBackup, nodes int) error {
	there, members := map[string]int64{}, map[string]bool{}
	if err := in.List(t.Context(), "", func(o store.Object) error { there[o.Key] = o.Size; return nil }); err != nil {
		return err
	}
	uid := ""
	for key := range there {
		if id, rest, _ := strings.Cut(key, "/"); rest == "backups/"+b.Status.ID+".json" {
			uid = id
		}
	}
	for _, n := range b.Status.Nodes {
		key := format.ManifestKey(uid, b.Status.ID, n.Member)
		if _, is := there[key]; !is || uid == "" {
			return fmt.Errorf("%s is not there", key)
		}
		members[n.Member] = true
		text, err := object(t, in, key)
		if err != nil {
			return err
		}
		m, err := format.Decode[format.Manifest](text)
		if err != nil {
			return err
		}
		for _, table := range m.Tables {
			for _, s := range table.SSTables {
				for _, f := range s.Files {
					if size, is := there[format.BlobKey(uid, f.SHA256)]; !is || size != f.Size {
						return fmt.Errorf("%s-%s of %s.%s of %s is not there", s.Name, f.Name, table.Keyspace, table.Name,
							n.Node)
					}
				}
			}
		}
	}
	if len(members) != nodes {
		return fmt.Errorf("it is of the members %v", members)
	}
	return nil
}
