package operator

import (
	"context"
	"errors"
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
	key := request.NamespacedName
	m := r.memory(key)
	d, secret, err := r.Reader.BackupDeletion(ctx, key, &m.store)
	switch {
	case errors.Is(err, observe.ErrBehind):
		return ctrl.Result{RequeueAfter: behindPause}, nil
	case err != nil:
		pause := m.failed()
		ctrl.LoggerFrom(ctx).Error(err, "observe the backup", "again", pause.String())
		return ctrl.Result{RequeueAfter: pause}, nil
	case d == nil:
		r.forget(key)
		return ctrl.Result{}, nil
	}
	if backupstore.Removable(d, r.Now()) {
		err := r.remove(ctx, d, secret)
		if d.Removed = err == nil; err != nil {
			d.Problem = err.Error()
		}
	}
	if err := ctx.Err(); err != nil {
		return ctrl.Result{}, err // the operator ends, so nothing was found
	}
	plan := backupstore.NextDeletion(d, r.Now())
	done := r.Writer.Do(ctx, &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}}, plan, nil, &m.store)
	raced, failed := sorted(done.Err)
	again := m.again(plan.Wake, raced, failed)
	m.log(ctrl.LoggerFrom(ctx), plan, done, again, raced, failed)
	return ctrl.Result{RequeueAfter: again}, nil
}

// remove the backup from its store.
func (r *Backups) remove(ctx context.Context, d *facts.BackupDeletion, secret map[string][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	in, err := store.Open(*d.Store, secret)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	of := d.Object.Status.ClusterUID
	return sweep.Remove(ctx, in, string(of), d.Object.BackupID(), func(ctx context.Context) error {
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
