package sweep

import (
	"context"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

// Remove deletes one backup of a cluster: its description first, without which nobody begins to
// read it, and then its manifests, unless somebody had begun before. Its blobs stay: others may
// share them. What was deleted before is no error, so that it can be repeated.
func Remove(ctx context.Context, s store.Store, cluster, backup string, unread func(context.Context) error) error {
	if err := s.Delete(ctx, format.BackupKey(cluster, backup)); err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	if err := unread(ctx); err != nil {
		return err
	}
	var manifests []string
	if err := s.List(ctx, format.ManifestPrefix(cluster), func(o store.Object) error {
		if format.BackupOf(o.Key) == backup {
			manifests = append(manifests, o.Key)
		}
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	for _, key := range manifests {
		if err := s.Delete(ctx, key); err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
	}
	return nil
}

// RemoveAll deletes one backup of a cluster, and then all that the store has of the cluster, unless
// that has another backup there.
func RemoveAll(ctx context.Context, s store.Store, cluster, backup string, unread func(context.Context) error) error {
	if err := Remove(ctx, s, cluster, backup, unread); err != nil {
		return err
	}
	others, err := list(ctx, s, format.BackupPrefix(cluster))
	if err != nil || len(others) > 0 {
		return err
	}
	return s.List(ctx, cluster+"/", func(o store.Object) error { //nolint:wrapcheck // it says what it is about
		return s.Delete(ctx, o.Key) //nolint:wrapcheck // so does this
	})
}
