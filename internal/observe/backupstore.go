package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/schedule"
)

// BackupStore gathers what is known about one store of backups, and the content of its Secrets,
// on which nothing is decided. It returns nil if there is no such store. Seen holds our own writes
// that must be visible first.
func (r *Reader) BackupStore(ctx context.Context, key types.NamespacedName, seen *consistency.Store) (
	*facts.BackupStore, map[string][]byte, error) {
	object := &v1alpha1.CassandraBackupStore{}
	if there, err := r.alone(ctx, "CassandraBackupStore", key, object, seen); !there {
		return nil, nil, err
	}
	s := &facts.BackupStore{Object: object}
	secret, version, missing, err := r.secretsOf(ctx, key.Namespace, &object.Spec)
	s.Secret, s.SecretMissing = version, missing
	return s, secret, err
}

// secretsOf reads the Secrets of a store, with their versions, or finds which one is missing.
func (r *Reader) secretsOf(ctx context.Context, namespace string, of *v1alpha1.BackupStoreSpec) (
	content map[string][]byte, version, missing string, err error) {
	var versions []string
	content, err = store.Secrets(of, func(name string) (map[string][]byte, error) {
		secret := &corev1.Secret{}
		if err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret); err != nil {
			if apierrors.IsNotFound(err) {
				missing = name
			}
			return nil, fmt.Errorf("get Secret %s: %w", name, err)
		}
		versions = append(versions, secret.ResourceVersion)
		return secret.Data, nil
	})
	if missing != "" {
		return nil, "", missing, nil
	}
	return content, strings.Join(versions, "."), "", err
}

// StoredClusters are the uids of the clusters of a namespace, and of those of its backups in a
// store. What it has of a ring that was made for a restore goes as a whole, and is not swept.
func (r *Reader) StoredClusters(ctx context.Context, of types.NamespacedName) ([]types.UID, error) {
	var clusters v1alpha1.CassandraClusterList
	var backups v1alpha1.CassandraBackupList
	for _, list := range []client.ObjectList{&clusters, &backups} {
		if err := r.Cache.List(ctx, list, client.InNamespace(of.Namespace)); err != nil {
			return nil, fmt.Errorf("list clusters and backups: %w", err)
		}
	}
	var out []types.UID
	for i := range clusters.Items {
		if c := &clusters.Items[i]; c.Labels[v1alpha1.LabelRestoreUID] == "" {
			out = append(out, c.UID)
		}
	}
	for i := range backups.Items {
		if b := &backups.Items[i]; b.Spec.Store.Name == of.Name && b.Status.ClusterUID != "" && !b.Temporary() {
			out = append(out, b.Status.ClusterUID)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// BackupVerification gathers what is known about a backup and its verification, and the content of
// the Secrets of its store, on which nothing is decided. It returns nil if there is no such backup.
func (r *Reader) BackupVerification(ctx context.Context, key types.NamespacedName, store *consistency.Store) (
	*facts.BackupVerification, map[string][]byte, error) {
	b := &v1alpha1.CassandraBackup{}
	if there, err := r.alone(ctx, "CassandraBackup", key, b, store); !there {
		return nil, nil, err
	}
	v := &facts.BackupVerification{Object: b}
	if b.DeletionTimestamp != nil || b.Status.Phase != v1alpha1.BackupComplete {
		return v, nil, nil
	}
	if err := r.madeBy(ctx, v); err != nil {
		return nil, nil, err
	}
	if !v.Newest && b.Annotations[v1alpha1.AnnotationVerify] == "" {
		return v, nil, nil // nobody wants it verified
	}
	in, secret, err := r.BackupStore(ctx, types.NamespacedName{Namespace: key.Namespace, Name: b.Spec.Store.Name},
		&consistency.Store{})
	if in != nil {
		v.Store, v.SecretMissing = in.Object, in.SecretMissing
	}
	return v, secret, err
}

// madeBy finds the schedule that has made a backup, and whether it has a later one.
func (r *Reader) madeBy(ctx context.Context, v *facts.BackupVerification) error {
	b, uid := v.Object, v.Object.Labels[v1alpha1.LabelScheduleUID]
	of := &v1alpha1.CassandraBackupSchedule{}
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Labels[v1alpha1.LabelSchedule]}
	switch err := r.Cache.Get(ctx, key, of); {
	case uid == "" || apierrors.IsNotFound(err) || err == nil && string(of.UID) != uid:
		return nil
	case err != nil:
		return fmt.Errorf("get CassandraBackupSchedule %s: %w", key.Name, err)
	}
	var all v1alpha1.CassandraBackupList
	if err := r.Cache.List(ctx, &all, client.InNamespace(b.Namespace)); err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	v.Schedule, v.Newest = of, !slices.ContainsFunc(all.Items, func(other v1alpha1.CassandraBackup) bool {
		return other.Labels[v1alpha1.LabelScheduleUID] == uid && other.Status.Phase == v1alpha1.BackupComplete &&
			b.Status.FinishedAt.Before(other.Status.FinishedAt)
	})
	return nil
}

// LogRetentions says for how long commit logs are kept in a store, by the uid of the cluster.
func (r *Reader) LogRetentions(ctx context.Context, of types.NamespacedName) (map[types.UID]time.Duration, error) {
	var clusters v1alpha1.CassandraClusterList
	var schedules v1alpha1.CassandraBackupScheduleList
	for _, list := range []client.ObjectList{&clusters, &schedules} {
		if err := r.Cache.List(ctx, list, client.InNamespace(of.Namespace)); err != nil {
			return nil, fmt.Errorf("list clusters and schedules: %w", err)
		}
	}
	out := map[types.UID]time.Duration{}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if s := schedule.KeepsLogs(schedules.Items, c.Name); s != nil && s.Spec.Store.Name == of.Name {
			out[c.UID] = s.Spec.PointInTime.Retention.Duration
		}
	}
	return out, nil
}
