package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	"helenus.io/helenus/internal/core/backupstore"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/observe"
)

// removeLimit is how long the deletion of a backup in its store may take before it is tried again.
const removeLimit = 5 * time.Minute

// Backups makes passes over the deletion of CassandraBackups: observe, delete in the store if that
// is due, decide, act. What else becomes of them is up to their cluster.
type Backups struct {
	Reader *observe.Reader
	Writer *act.Writer
	// Now is the time of day, as the host's clock says it.
	Now func() time.Time

	memories
}

// Reconcile makes one pass over a backup.
func (r *Backups) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.pass(ctx, request.NamespacedName, r.Writer, func(own *consistency.Store) (*decision, error) {
		d, secret, err := r.Reader.BackupDeletion(ctx, request.NamespacedName, own)
		if d == nil || err != nil {
			return nil, err //nolint:wrapcheck // it is ours
		}
		if backupstore.Removable(d, r.Now()) {
			err := r.remove(ctx, d, secret)
			if d.Removed = err == nil; err != nil {
				d.Problem = err.Error()
			}
		}
		return &decision{Plan: backupstore.NextDeletion(d, r.Now())}, nil
	})
}

// remove the backup from its store.
func (r *Backups) remove(ctx context.Context, d *facts.BackupDeletion, secret map[string][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	in, err := store.Open(*d.Store, secret)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	of, remove := d.Object.Status.ClusterUID, sweep.Remove
	if d.Object.Temporary() {
		remove = sweep.RemoveAll
	}
	return remove(ctx, in, string(of), d.Object.BackupID(), func(ctx context.Context) error {
		return unread(ctx, r.Reader, of)
	})
}

// unread fails while backups of a cluster may be read.
func unread(ctx context.Context, r *observe.Reader, of types.UID) error {
	readers, err := r.ReadersOf(ctx, of)
	if err == nil && len(readers) > 0 {
		err = fmt.Errorf("%s may read it", strings.Join(readers, ", "))
	}
	return err
}

// watch has a manager make passes over each backup that changes.
func (r *Backups) watch(m manager.Manager) error {
	if err := ctrl.NewControllerManagedBy(m).
		Named("cassandrabackup").
		For(&v1alpha1.CassandraBackup{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: checkers}).
		Complete(r); err != nil {
		return fmt.Errorf("build controller of backups: %w", err)
	}
	return nil
}
