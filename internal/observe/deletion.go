package observe

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// BackupDeletion gathers what is known about a backup and its deletion, and the content of the
// Secret of its store, on which nothing is decided. It returns nil if there is no such backup.
func (r *Reader) BackupDeletion(ctx context.Context, key types.NamespacedName, store *consistency.Store) (
	*facts.BackupDeletion, map[string][]byte, error) {
	b := &v1alpha1.CassandraBackup{}
	if there, err := r.alone(ctx, "CassandraBackup", key, b, store); !there {
		return nil, nil, err
	}
	d := &facts.BackupDeletion{Object: b}
	if b.DeletionTimestamp == nil {
		return d, nil, nil
	}
	in, secret, err := r.BackupStore(ctx, types.NamespacedName{Namespace: key.Namespace, Name: b.Spec.Store.Name},
		&consistency.Store{})
	if err != nil {
		return nil, nil, err
	}
	if in != nil {
		d.Store, d.SecretMissing = &in.Object.Spec, in.SecretMissing
	}
	if d.Writers, err = r.writers(ctx, b); err != nil {
		return nil, nil, err
	}
	d.Readers, err = r.ReadersOf(ctx, b.Status.ClusterUID)
	return d, secret, err
}

// writers are the nodes that may still write to a backup: its operation is not taken from them, or
// has not ended.
func (r *Reader) writers(ctx context.Context, b *v1alpha1.CassandraBackup) (out []string, err error) {
	var all v1alpha1.CassandraNodeList
	if err := r.Live.List(ctx, &all, client.InNamespace(b.Namespace)); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for i := range all.Items {
		n := &all.Items[i]
		if slices.ContainsFunc(n.Spec.Operations, func(o v1alpha1.OperationIntent) bool {
			return ledger.OfIntent(o.ID) == string(b.UID)
		}) || slices.ContainsFunc(n.Status.Operations, func(o v1alpha1.OperationStatus) bool {
			return ledger.OfIntent(o.ID) == string(b.UID) && !o.Phase.Final()
		}) {
			out = append(out, n.Name)
		}
	}
	return out, nil
}

// ReadersOf may read the backups of a cluster, of any namespace: the clusters that are made from
// one and have not formed, and the restores into rings that have not ended. The cache has each that
// this operator makes.
func (r *Reader) ReadersOf(ctx context.Context, of types.UID) (out []string, err error) {
	var all v1alpha1.CassandraClusterList
	if err := r.Cache.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	uids := map[types.NamespacedName]types.UID{}
	for i := range all.Items {
		c := &all.Items[i]
		uids[client.ObjectKeyFromObject(c)] = c.UID
		forms := c.Status.Step != nil && c.Status.Step.Name == string(ledger.FormRing)
		formed := !forms && len(c.Status.Datacenters) > 0 && !slices.ContainsFunc(c.Status.Datacenters,
			func(d v1alpha1.DatacenterStatus) bool { return !d.Formed })
		if from := c.Spec.Restore(); from != nil && from.Source.UID == of && !formed {
			out = append(out, "cluster "+c.Namespace+"/"+c.Name)
		}
	}
	var restores v1alpha1.CassandraRestoreList
	if err := r.Cache.List(ctx, &restores); err != nil {
		return nil, fmt.Errorf("list restores: %w", err)
	}
	for i := range restores.Items {
		restore := &restores.Items[i]
		cluster := types.NamespacedName{Namespace: restore.Namespace, Name: restore.Spec.Cluster.Name}
		from, _ := restore.From(uids[cluster])
		if from == of && !restore.Status.Phase.Final() {
			out = append(out, "restore "+restore.Namespace+"/"+restore.Name)
		}
	}
	return out, nil
}
