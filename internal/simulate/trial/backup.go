package trial

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// backupScenarios are those in which a user has a ring backed up.
func backupScenarios() []*Scenario {
	given := Act{Name: "create store and backup", Do: giveBackup}
	until := func(a Act, is func(*world.World) bool) Act {
		a.Until, a.Within = is, 30*time.Minute
		return a
	}
	complete := all(again, backupComplete, nothingAsked)
	return []*Scenario{
		scenario("backup", "a ring that is written to is backed up", threeRacks, until(given, complete)),
		scenario("backup-agent", "an agent and an operator end while a ring is backed up", threeRacks,
			until(given, uploads),
			Act{Name: "kill an agent", Do: onePod(func(s *pod.Sandbox) { s.Kill(layout.AgentContainer) })},
			Act{Name: "kill the operators", Do: restartOperator, Until: complete, Within: 30 * time.Minute}),
		scenario("backup-deleted", "a backup is deleted while it runs, and leaves no snapshot", threeRacks,
			until(given, uploads),
			Act{Name: "delete the backup", Do: func(w *world.World) error {
				return w.User().Delete(context.Background(), backupOf())
			}, Until: all(again, nothingAsked), Within: 30 * time.Minute}),
		scenario("backup-without-host", "a ring is backed up while a host is down", threeRacks,
			Act{Name: "create store", Do: giveStore, Until: again, Within: 30 * time.Minute},
			Act{Name: "lose", Do: func(w *world.World) error { w.Kube.Lose(w.Kube.Hosts()[0]); return nil },
				Until: func(w *world.World) bool { return unheard(w, w.Kube.Hosts()[0]) }, Within: 5 * time.Minute},
			Act{Name: "create backup", Do: askForBackup, Until: either(backupComplete, rollsOut),
				Within: 2 * time.Hour},
			Act{Name: "bring it back", Do: func(w *world.World) error {
				w.Kube.Return(w.Kube.Hosts()[0], true)
				return nil
			}, Until: complete, Within: 2 * time.Hour}),
		alone(replacing(scenario("backup-disk-lost", "the disk of a member is lost while a ring is backed up: the "+
			"backup does without it at once, and the node is replaced",
			threeRacks.with(replacesBy(v1alpha1.ReplacementRepairBefore)), until(given, uploads),
			Act{Name: "lose the disk", Do: loseDiskOf(lostNode), Until: backupComplete,
				Within: 5 * time.Minute},
			Act{Name: "await another member", Until: all(replaced, grown), Within: time.Hour}))),
	}
}

const storeSecret = "keys"

func backupOf() *v1alpha1.CassandraBackup {
	return &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: "backup"},
		Spec: v1alpha1.CassandraBackupSpec{Cluster: v1alpha1.TaskCluster{Name: clusterName},
			Store: v1alpha1.BackupStoreReference{Name: "main"}}}
}

func giveBackup(w *world.World) error { return errors.Join(giveStore(w), askForBackup(w)) }

func askForBackup(w *world.World) error { return w.User().Create(context.Background(), backupOf()) }

func giveStore(w *world.World) error {
	ctx, person := context.Background(), w.User()
	return errors.Join(
		person.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: storeSecret},
			Data: map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("id"),
				v1alpha1.KeySecretAccessKey: []byte("key")}}),
		person.Create(ctx, &v1alpha1.CassandraBackupStore{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace,
			Name: "main"}, Spec: v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{Bucket: "backups", Region: "eu-1",
			SecretName: storeSecret}}}))
}

func backupComplete(w *world.World) bool {
	b, _ := w.Server.Object("CassandraBackup", keyOf("backup")).(*v1alpha1.CassandraBackup)
	return b != nil && b.Status.Phase == v1alpha1.BackupComplete
}

// rollsOut: a change that a fault has made goes first, and waits for the host.
func rollsOut(w *world.World) bool {
	c := get(w)
	return c != nil && c.Status.Step != nil && c.Status.Step.Name == string(ledger.RollOut)
}

// uploads: some files are in the store, and no manifest of them.
func uploads(w *world.World) bool { return len(w.Pods.Bucket.Objects) >= 4 }

// snapshots: no node that runs has one of a backup at the end; beside a fault one that Cassandra
// deletes by itself.
func (o *checker) snapshots() {
	for _, s := range o.w.Pods.Sandboxes() {
		data := s.Content(v1alpha1.VolumeData).Data
		for tag, keyspaces := range data.Snapshots() {
			if strings.HasPrefix(tag, v1alpha1.BackupTagPrefix) && len(keyspaces) > 0 &&
				(o.Fault == nil || data.Lasts(tag)) {
				o.violated("backup: node %s still has snapshot %s", s.Name(), tag)
			}
		}
	}
}

// described: when the description of a backup is written, all of it is there, and every row that
// was acknowledged before its first snapshot.
func (o *checker) described(key string) {
	objects := o.w.Pods.Bucket.Objects
	b, err := format.Decode[format.Backup](objects[key])
	if !strings.Contains(key, "/backups/") {
		return
	}
	if err != nil {
		o.violated("backup: %v", err)
		return
	}
	var nodes []map[string]map[string]int64
	for _, n := range b.Nodes {
		m, err := format.Decode[format.Manifest](objects[format.ManifestKey(b.Cluster.UID, b.ID, n.HostID)])
		if err != nil {
			o.violated("backup: it is described without the manifest of %s", n.Name)
			return
		}
		rows := map[string]map[string]int64{}
		for _, t := range m.Tables {
			for _, s := range t.SSTables {
				for _, f := range s.Files {
					of := map[string]int64{}
					if err := json.Unmarshal(objects[format.BlobKey(b.Cluster.UID, f.SHA256)], &of); err != nil {
						o.violated("backup: file %s of %s.%s of %s is not there", f.Name, t.Keyspace, t.Name, n.Name)
					}
					rows[t.Keyspace] = of
				}
			}
		}
		nodes = append(nodes, rows)
	}
	for _, missing := range o.w.Network.MissingIn(b.Cluster.CassandraName, b.TakenAt, nodes, len(b.LeftOut)) {
		o.violated("backup: %s", missing)
	}
}

// backup: what has finished stays so, and no backup is complete that is not described.
func (o *checker) backup(old, now *v1alpha1.CassandraBackup) {
	if old != nil && old.Status.Phase.Final() && old.Status.Phase != now.Status.Phase {
		o.violated("backup: it was %s and is %q", old.Status.Phase, now.Status.Phase)
	}
	cluster := get(o.w)
	if now.Status.Phase == v1alpha1.BackupComplete && cluster != nil &&
		o.w.Pods.Bucket.Objects[format.BackupKey(string(cluster.UID), now.Status.ID)] == nil {
		o.violated("backup: it is complete, and nothing describes it")
	}
}
