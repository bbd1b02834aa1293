//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/test/e2e/scene"
)

// TestPointInTime: while a client writes rows with timestamps of its own, the JVM of one node is
// killed, and then those of all three at once. The ring goes with everything that Kubernetes has of
// it, and is restored in another namespace, from the store alone, to a time in the middle of the
// writes: every row is there that was acknowledged with a timestamp up to it, and
// none of later. In a run of all tests the table is brought back to that time in the ring itself
// before, and the other ring is rolled out and grows after that, as any other.
func TestPointInTime(t *testing.T) {
	withoutSharedRing(t)
	s, sample := open(t, "e2e-time"), sampleOf(t, "demo.yaml")
	sample.Spec.Node.Placement.HostAntiAffinity = v1alpha1.HostAntiAffinityPreferred
	sample.Spec.Node.CassandraYaml = v1alpha1.Settings{"commitlog_segment_size": {Raw: []byte(`"2MiB"`)}}
	var source *scene.Ring
	took(t, "a ring of three racks has formed", func() (err error) {
		source, err = s.Form(t.Context(), sample)
		return err
	})
	took(t, "rows are written", func() error { return source.Fill(t.Context(), gocql.All) })
	in, nodes := bucket(t, source), source.NodeNames(t.Context())
	keepLogs(t, source, len(nodes))
	var b *v1alpha1.CassandraBackup
	took(t, "it is backed up", func() (err error) {
		if err = source.MakeTimed(t.Context()); err == nil {
			b, err = source.BackUp(t.Context(), "before", "main")
		}
		return err
	})
	writer, err := source.WriteTimed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rest(t, 15*time.Second)
	took(t, "the JVM of one node is killed", func() (err error) {
		_, err = killed(t, source, nodes[0])
		return err
	})
	rest(t, 10*time.Second)
	first, last := time.Now(), time.Time{}
	took(t, "all JVMs are killed", func() (err error) {
		last, err = killed(t, source, nodes...)
		return err
	})
	rest(t, 20*time.Second)
	until := time.Now().Truncate(time.Second)
	rest(t, 5*time.Second)
	took(t, "one more is killed", func() (err error) {
		_, err = killed(t, source, nodes[1])
		return err
	})
	acknowledged := writer.End()
	took(t, "the time is covered", func() error { return source.Covered(t.Context(), in, until.Add(10*time.Second)) })

	// asOf are the rows that a ring has: those that were acknowledged up to that time, and none of
	// later. Cassandra marks what its commit log has ten times a second, and replays no more than
	// that: what was acknowledged just before all JVMs were killed is lost in the source, too.
	asOf := func(ring *scene.Ring) map[int]time.Time {
		t.Helper()
		there, err := ring.ReadTimed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const unmarked = time.Second
		early, missing, unsynced, late := 0, 0, 0, 0
		for id, row := range acknowledged {
			at := row.Timestamp
			if at.After(until) {
				continue
			}
			early++
			switch is := there[id]; {
			case is.Equal(at):
			case at.Before(last) && at.After(first.Add(-unmarked)):
				unsynced++
			default:
				missing++
				t.Logf("row %d of %s, %s after the first kill of all, is not there", id, at, at.Sub(first))
			}
		}
		for _, at := range there {
			if at.After(until) {
				late++
			}
		}
		t.Logf("%d of %d rows were acknowledged with a timestamp up to %s; %d are missing, and %d of those from %s "+
			"before all JVMs were killed; %d later ones are there", early, len(acknowledged), until.UTC(), missing, unsynced,
			unmarked, late)
		if missing > 0 || late > 0 || early == 0 || early == len(acknowledged) {
			t.Errorf("ring %s has not the state of that time", ring.Name)
		}
		return there
	}
	if *full {
		replacedAt(t, source, in, until)
		asOf(source)
	}
	spec := described(t, in, source, b)
	elsewhere := open(t, "e2e-time-again")
	copyStore(t, s, elsewhere)
	took(t, "it is deleted", func() error { return source.Delete(t.Context(), v1alpha1.ClaimDelete) })
	again := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Name: source.Name}, Spec: spec}
	again.Spec.ClusterName = "again"
	again.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{Store: v1alpha1.StoreReference{Name: "main"},
		Source: v1alpha1.RestoreSource{UID: source.UID}, PointInTime: &metav1.Time{Time: until}}}
	var heir *scene.Ring
	took(t, "a ring is made as it was", func() (err error) {
		heir, err = elsewhere.Form(t.Context(), again)
		return err
	})
	there := asOf(heir)
	took(t, "all rows of the backup are read at ALL through every node",
		func() error { return heir.ReadBack(t.Context(), gocql.All) })
	if !*full {
		return
	}
	while(t, heir, servedThroughout, "the ring that was made is rolled out", func() error {
		if err := heir.Edit(t.Context(), func(spec *v1alpha1.CassandraClusterSpec) {
			spec.Node.CassandraYaml["commitlog_segment_size"] = v1alpha1.Value{Raw: []byte(`"4MiB"`)}
		}); err != nil {
			return err
		}
		return heir.RolledOut(t.Context(), rollingOut)
	})
	grow(t, heir, "the ring that was made grows", 2*len(nodes),
		func(spec *v1alpha1.CassandraClusterSpec) { spec.Datacenters[0].NodesPerRack = 2 })
	if now, err := heir.ReadTimed(t.Context()); err != nil || !maps.Equal(now, there) {
		t.Errorf("afterwards it has %d of %d rows; %v", len(now), len(there), err)
	}
}

// replacedAt has a restore replace the rows of the table by those of a time, for which the operator
// makes a ring; and waits until nothing is left of that.
func replacedAt(t *testing.T, ring *scene.Ring, in store.Store, at time.Time) {
	t.Helper()
	o := &v1alpha1.CassandraRestore{ObjectMeta: metav1.ObjectMeta{Namespace: ring.Namespace, Name: "rows"},
		Spec: v1alpha1.CassandraRestoreSpec{Cluster: v1alpha1.TaskCluster{Name: ring.Name},
			Store: v1alpha1.BackupStoreReference{Name: "main"}, PointInTime: &metav1.Time{Time: at},
			Tables: []v1alpha1.RestoredTable{{From: scene.TimedTable}}, Mode: v1alpha1.RestoreReplace, Confirm: true}}
	while(t, ring, servedThroughout, "the table gets the rows of that time", func() (err error) {
		if err = ring.Kubernetes.Client.Create(t.Context(), o); err == nil {
			o, err = ring.Restored(t.Context(), o.Name)
		}
		if err == nil && (o.Status.Phase != v1alpha1.TaskSucceeded || o.Status.Source == nil) {
			err = fmt.Errorf("the restore is %+v", o.Status)
		}
		return err
	})
	then, backup := o.Name+"-then", &v1alpha1.CassandraBackup{}
	took(t, "nothing is left of the ring of that time", func() error {
		gone := "its cluster, claims, backup and files are gone"
		return ring.Until(t.Context(), growth, gone, func(now follow.Sight) error {
			if _, there := now.Cluster(then); there || len(now.Claims(then)) > 0 {
				return errors.New("cluster or claims are there")
			}
			key := client.ObjectKey{Namespace: ring.Namespace, Name: then}
			if err := ring.Kubernetes.Client.Get(t.Context(), key, backup); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the backup is %+v; %w", backup.Status, err)
			}
			return in.List(t.Context(), string(o.Status.Source.UID)+"/", func(o store.Object) error {
				return fmt.Errorf("%s is there", o.Key)
			})
		})
	})
}

// keepLogs has a schedule keep the commit logs of a ring, and waits until all nodes do.
func keepLogs(t *testing.T, ring *scene.Ring, nodes int) {
	t.Helper()
	schedule := &v1alpha1.CassandraBackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: ring.Namespace, Name: "logs"},
		Spec: v1alpha1.CassandraBackupScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: ring.Name},
			Store: v1alpha1.BackupStoreReference{Name: "main"}, Timing: v1alpha1.Timing{Schedule: "0 3 * * *"},
			Keep: v1alpha1.BackupRetention{Last: 1},
			PointInTime: &v1alpha1.PointInTime{Mode: v1alpha1.PointInTimeOn,
				UploadEvery: metav1.Duration{Duration: 5 * time.Second}}}}
	if err := ring.Kubernetes.Client.Create(t.Context(), schedule); err != nil {
		t.Fatal(err)
	}
	took(t, "commit logs are kept", func() error {
		return ring.Until(t.Context(), growth, "all nodes keep their commit logs", func(now follow.Sight) error {
			for _, n := range now.Nodes(ring.Name) {
				if n.Status.CommitLog == nil || n.Status.CommitLog.CoveredFrom == nil {
					return fmt.Errorf("node %s has %+v", n.Name, n.Status.CommitLog)
				}
			}
			return nil
		})
	})
}

// killed kills the JVMs of nodes at once, and waits until all serve again. It returns when the last
// one was killed.
func killed(t *testing.T, ring *scene.Ring, nodes ...string) (last time.Time, err error) {
	for _, node := range nodes {
		if err := ring.KillJVM(t.Context(), node); err != nil {
			return last, err
		}
	}
	last = time.Now()
	if err := ring.Until(t.Context(), growth, "it is seen that they are down", func(now follow.Sight) error {
		for _, n := range now.Nodes(ring.Name) {
			if n.Status.Ready && slices.Contains(nodes, n.Name) {
				return fmt.Errorf("node %s is ready", n.Name)
			}
		}
		return nil
	}); err != nil {
		return last, err
	}
	return last, ring.Serving(t.Context())
}

// described is the spec of a cluster as a backup in a store has it.
func described(t *testing.T, in store.Store, ring *scene.Ring, b *v1alpha1.CassandraBackup) (
	spec v1alpha1.CassandraClusterSpec) {
	t.Helper()
	content, err := in.Get(t.Context(), format.BackupKey(string(ring.UID), b.Status.ID))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	found, wrong := format.Decode[format.Backup](text)
	if err := errors.Join(err, content.Close(), wrong); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(found.Spec, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// copyStore makes the CassandraBackupStore main of one scene in another one, too.
func copyStore(t *testing.T, from, to *scene.Scene) {
	t.Helper()
	for name, o := range map[string]client.Object{"main-keys": &corev1.Secret{}, "main": &v1alpha1.CassandraBackupStore{}} {
		key := client.ObjectKey{Namespace: from.Namespace, Name: name}
		if err := from.Kubernetes.Client.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
		fresh := o.DeepCopyObject().(client.Object)
		fresh.SetNamespace(to.Namespace)
		fresh.SetResourceVersion("")
		fresh.SetUID("")
		fresh.SetManagedFields(nil)
		if err := to.Kubernetes.Client.Create(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
	}
}
