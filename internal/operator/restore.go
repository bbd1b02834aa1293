package operator

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/temporary"
	"helenus.io/helenus/internal/observe"
)

// Restores makes passes over CassandraRestores with a point in time: over the rings that are made
// for them. What else becomes of a restore is up to its cluster.
type Restores struct {
	Reader *observe.Reader
	Writer *act.Writer
	// Now is the time of day, as the host's clock says it.
	Now func() time.Time

	memories
}

// Reconcile makes one pass over a restore.
func (r *Restores) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.pass(ctx, request.NamespacedName, r.Writer, func(own *consistency.Store) (*decision, error) {
		s, err := r.Reader.PointRestore(ctx, request.NamespacedName, own)
		if s == nil || err != nil {
			return nil, err //nolint:wrapcheck // it is ours
		}
		return &decision{Plan: temporary.Next(s, r.Now()),
			confirm: func(ctx context.Context) error { return r.Reader.ConfirmObject(ctx, s.Object) }}, nil
	})
}

// watch has a manager make passes over a restore when it changes, or what was made for it.
func (r *Restores) watch(m manager.Manager) error {
	if err := ctrl.NewControllerManagedBy(m).
		Named("cassandrarestore").
		For(&v1alpha1.CassandraRestore{}).
		Owns(&v1alpha1.CassandraCluster{}).
		Owns(&v1alpha1.CassandraBackup{}).
		Complete(r); err != nil {
		return fmt.Errorf("build controller of restores: %w", err)
	}
	return nil
}
