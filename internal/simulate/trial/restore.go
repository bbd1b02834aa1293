package trial

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/world"
)

// backupID of the one backup of a world, and storeName of the store that it is in.
const (
	backupID  = "20260101T000000Z"
	storeName = "main"
)

// restored has a ring with passwords recreated from a backup after all of it was deleted, its
// disks too, in a shape. What the client has written before stays on its account.
func (s shape) restored(name, about string, from v1alpha1.Restore, to shape) *Scenario {
	secure := func(c *v1alpha1.CassandraCluster) {
		deleteClaims(c)
		c.Spec.Security = nil
	}
	return scenario(name, about, s.with(secure),
		passing("until the client has written all", 2*time.Minute, ready),
		Act{Name: "back up", Do: remember(backUp), Within: time.Minute, Until: ready},
		Act{Name: "delete", Do: remove, Until: goneWithClaims, Within: 20 * time.Minute, Despite: true},
		Act{Name: "restore", Do: func(w *world.World) error {
			return w.User().Create(context.Background(), to.cluster(secure, func(c *v1alpha1.CassandraCluster) {
				c.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: from.DeepCopy()}
				c.Spec.Bootstrap.Restore.Store, c.Spec.Bootstrap.Restore.SourceGone =
					v1alpha1.StoreReference{Name: storeName}, true
				c.Spec.Bootstrap.Restore.Source.UID = types.UID(w.Notes[former])
			}))
		}, Until: all(ready, asked), Within: 30 * time.Minute})
}

// restoredSmaller has it recreated with fewer nodes, from the latest backup. The ledger is lost and
// the operators end while rows are streamed, when there is a later one, which nobody can read.
func (s shape) restoredSmaller(name, about string, to shape) *Scenario {
	out := s.restored(name, about, v1alpha1.Restore{Roles: v1alpha1.RolesFresh,
		LatestBefore: &metav1.Time{Time: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}}, to)
	last := &out.Acts[len(out.Acts)-1]
	until := last.Until
	last.Until = streams
	out.Acts = append(out.Acts, Act{Name: "lose the ledger and kill the operators", Do: func(w *world.World) error {
		put(w, format.BackupKey(w.Notes[former], backupID+"-2"), nil)
		return errors.Join(client.IgnoreNotFound(deleteLedger(w)), restartOperator(w))
	}, Until: until, Within: 30 * time.Minute})
	return out
}

// streams says that a node streams rows of a backup, or is about to.
func streams(w *world.World) bool {
	for _, s := range w.Pods.Sandboxes() {
		record, _ := w.Server.Object("CassandraNode", keyOf(s.Name())).(*v1alpha1.CassandraNode)
		if record != nil && slices.ContainsFunc(record.Spec.Operations, func(o v1alpha1.OperationIntent) bool {
			return o.Type == v1alpha1.OperationLoadTables
		}) {
			return true
		}
	}
	return false
}

// replicationOf is how the keyspaces of a node are replicated, by what it has saved of its schema.
func replicationOf(saved []byte) (map[string]map[string]string, error) {
	var has struct {
		Schema []struct{ Name, Replication string }
	}
	if err := json.Unmarshal(saved, &has); err != nil {
		return nil, fmt.Errorf("decode schema: %w", err)
	}
	out := map[string]map[string]string{}
	for _, k := range has.Schema {
		class, options, err := ring.SplitReplication(k.Replication)
		if err != nil {
			return nil, err
		}
		options["class"] = class
		out[k.Name] = options
	}
	return out, nil
}

// backUp puts into the store what the nodes hold, as agents do.
func backUp(w *world.World) error {
	ctx := context.Background()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: storeName}}
	of := &v1alpha1.CassandraBackupStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: storeName},
		Spec: v1alpha1.BackupStoreSpec{S3: &v1alpha1.S3Store{Bucket: "backups", Region: "eu-1",
			SecretName: storeName}},
	}
	if err := errors.Join(w.User().Create(ctx, secret), w.User().Create(ctx, of)); err != nil {
		return err
	}
	uid := w.Notes[former]
	description := format.Backup{Version: format.Version, ID: backupID,
		Cluster: format.Cluster{UID: uid, Name: clusterName, Namespace: world.Namespace, CassandraName: ringName}}
	spec, err := json.Marshal(get(w).Spec)
	if err != nil {
		return err
	}
	description.Spec = spec
	for _, s := range w.Pods.Sandboxes() {
		record := w.Server.Object("CassandraNode", keyOf(s.Name())).(*v1alpha1.CassandraNode)
		if record.Status.Phase != v1alpha1.PhaseNormal {
			continue // it has no snapshot
		}
		m := format.Manifest{Version: format.Version, Backup: backupID, Cluster: uid, Node: format.Node{
			Name: s.Name(), HostID: record.Status.HostID, Tokens: record.Status.Tokens,
			Datacenter: record.Spec.Configuration.DatacenterName, Rack: record.Spec.Configuration.RackName,
			CassandraVersion: record.Status.Version,
		}}
		files := s.Content(v1alpha1.VolumeData).Data.Saved()
		if m.Replication, err = replicationOf(files["system_schema"]); err != nil {
			return err
		}
		description.Replication = m.Replication
		for _, keyspace := range slices.Sorted(maps.Keys(files)) {
			sum := sha256.Sum256(files[keyspace])
			f := format.File{Name: "Data.db", Size: int64(len(files[keyspace])), SHA256: hex.EncodeToString(sum[:])}
			name := "rows"
			if keyspace == "system_schema" {
				name = "keyspaces"
			}
			m.Tables = append(m.Tables, format.Table{Keyspace: keyspace, Name: name, ID: "1",
				Schema:   cassandra.CreateTable(keyspace, name),
				SSTables: []format.SSTable{{Name: "nb-1-big", Files: []format.File{f}}}})
			put(w, format.BlobKey(uid, f.SHA256), files[keyspace])
		}
		if err := putJSON(w, format.ManifestKey(uid, backupID, m.Node.HostID), m); err != nil {
			return err
		}
		description.Nodes = append(description.Nodes, m.Node)
	}
	return putJSON(w, format.BackupKey(uid, backupID), description)
}

func putJSON(w *world.World, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	put(w, key, text)
	return nil
}

// put an object where no agent did: its writing is not judged.
func put(w *world.World, key string, content []byte) { w.Pods.Bucket.Objects[key] = content }
