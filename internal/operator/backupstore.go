package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/backupstore"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/observe"
)

const (
	// checkers is how many stores are checked at the same time, and checkLimit how long a check may
	// take.
	checkers   = 4
	checkLimit = 3 * time.Minute
)

// BackupStores makes passes over CassandraBackupStores: observe, check if that is due, decide, act.
type BackupStores struct {
	Reader *observe.Reader
	Writer *act.Writer
	// Now is the time of day, as the host's clock says it.
	Now func() time.Time

	memories
}

// Reconcile makes one pass over a store.
func (r *BackupStores) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.pass(ctx, request.NamespacedName, r.Writer, func(own *consistency.Store) (*decision, error) {
		s, secret, err := r.Reader.BackupStore(ctx, request.NamespacedName, own)
		if s == nil || err != nil {
			return nil, err //nolint:wrapcheck // it is ours
		}
		if backupstore.Due(s, r.Now()) {
			s.Check = r.check(ctx, s, secret)
		}
		return &decision{Plan: backupstore.Next(s, r.Now())}, nil
	})
}

// check asks the service.
func (r *BackupStores) check(ctx context.Context, s *facts.BackupStore, secret map[string][]byte) *facts.StoreCheck {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	opened, err := store.Open(s.Object.Spec, secret)
	if err == nil {
		err = store.Check(ctx, opened, string(s.Object.UID), r.Now())
	}
	var problem *store.Problem
	switch {
	case err == nil:
		return &facts.StoreCheck{Reason: v1alpha1.ReasonStoreUsable,
			Message: "an object was written, read, listed and deleted; it could not be overwritten, nor read " +
				"without credentials"}
	case errors.As(err, &problem):
		return &facts.StoreCheck{Reason: problem.Reason, Message: err.Error()}
	default:
		return &facts.StoreCheck{Reason: v1alpha1.ReasonStoreUnreachable, Message: err.Error()}
	}
}

// watch has a manager make passes over a store when its spec changes.
func (r *BackupStores) watch(m manager.Manager) error {
	if err := ctrl.NewControllerManagedBy(m).
		Named("cassandrabackupstore").
		For(&v1alpha1.CassandraBackupStore{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: checkers}).
		Complete(r); err != nil {
		return fmt.Errorf("build controller of stores: %w", err)
	}
	return nil
}
