package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
)

// BackupStore gathers what is known about one store of backups, and the content of its Secret, on
// which nothing is decided. It returns nil if there is no such store. Store holds our own writes
// that must be visible first.
func (r *Reader) BackupStore(ctx context.Context, key types.NamespacedName, store *consistency.Store) (
	*facts.BackupStore, map[string][]byte, error) {
	object := &v1alpha1.CassandraBackupStore{}
	if err := r.Cache.Get(ctx, key, object); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	o := &objects{seen: map[consistency.Key]consistency.Seen{}}
	o.add("CassandraBackupStore", object)
	if err := r.caughtUp(ctx, "", o, store); err != nil {
		return nil, nil, err
	}
	secret := &corev1.Secret{}
	name := object.Spec.S3.SecretName
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("get Secret %s: %w", name, err)
	}
	return &facts.BackupStore{Object: object, Secret: secret.ResourceVersion}, secret.Data, nil
}
