package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/temporary"
)

// PointRestore gathers what is known about one restore with a point in time, as Schedule does. Of
// one from a backup it reads no more than the object.
func (r *Reader) PointRestore(ctx context.Context, key types.NamespacedName, store *consistency.Store) (
	*facts.PointRestore, error) {
	restore := &v1alpha1.CassandraRestore{}
	if err := r.Cache.Get(ctx, key, restore); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	s := &facts.PointRestore{Object: restore}
	if restore.Spec.PointInTime == nil {
		return s, nil
	}
	o := &objects{seen: map[consistency.Key]consistency.Seen{}}
	o.add("CassandraRestore", restore)
	name := temporary.Name(restore.Name)
	if err := r.clusters(ctx, key.Namespace, o, map[string]**v1alpha1.CassandraCluster{
		restore.Spec.Cluster.Name: &s.Cluster, name: &s.Ring}); err != nil {
		return nil, err
	}
	backup := &v1alpha1.CassandraBackup{}
	switch err := r.Cache.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, backup); {
	case err == nil:
		s.Backup = backup
		o.add("CassandraBackup", backup)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get backup %s: %w", name, err)
	}
	if err := r.caughtUp(ctx, "", o, store); err != nil {
		return nil, err
	}
	var err error
	s.Store, err = r.stays(ctx, &v1alpha1.CassandraBackupStore{}, key.Namespace, restore.Spec.Store.Name)
	return s, err
}
