package operator

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/verify"
	"helenus.io/helenus/internal/core/backupstore"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/observe"
)

const (
	// verifiers is how many backups are verified at the same time, and verifyLimit how long one may
	// take.
	verifiers   = 2
	verifyLimit = 20 * time.Hour
)

// Verifications makes passes over CassandraBackups that are complete: observe, verify if that is
// due, decide, act. Only the leader makes them. One that is interrupted begins again.
type Verifications struct {
	Reader *observe.Reader
	Writer *act.Writer
	// Now is the time of day, as the host's clock says it.
	Now func() time.Time

	memories
}

// Reconcile makes one pass over a backup.
func (r *Verifications) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.pass(ctx, request.NamespacedName, r.Writer, func(own *consistency.Store) (*decision, error) {
		v, secret, err := r.Reader.BackupVerification(ctx, request.NamespacedName, own)
		if v == nil || err != nil {
			return nil, err //nolint:wrapcheck // it is ours
		}
		if sample := backupstore.VerificationDue(v, r.Now()); sample != nil {
			found, problem := r.verify(ctx, v, secret, sample)
			// It may have taken hours.
			if v, _, err = r.Reader.BackupVerification(ctx, request.NamespacedName, own); v == nil || err != nil {
				return nil, err //nolint:wrapcheck // so is this
			}
			if v.Verified = found; problem != nil {
				v.Problem = problem.Error()
			}
		}
		return &decision{Plan: backupstore.NextVerification(v, r.Now())}, nil
	})
}

func (r *Verifications) verify(ctx context.Context, v *facts.BackupVerification, secret map[string][]byte,
	sample *backupstore.Sample) (*facts.VerifiedBackup, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	in, err := store.Open(v.Store.Spec, secret)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	of := v.Object.Status
	from, to := backupstore.Part(v, r.Now())
	found, err := verify.Backup(ctx, in, string(of.ClusterUID), of.ID, sample.Percent, from, to, sample.Bandwidth)
	return found, err //nolint:wrapcheck // it says what it is about
}

// watch has a manager make passes over a backup when its phase changes, and when one is asked for.
func (r *Verifications) watch(m manager.Manager) error {
	if err := ctrl.NewControllerManagedBy(m).
		Named("cassandrabackupverification").
		For(&v1alpha1.CassandraBackup{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: asksToVerify})).
		WithOptions(controller.Options{MaxConcurrentReconciles: verifiers}).
		Complete(r); err != nil {
		return fmt.Errorf("build controller of verifications: %w", err)
	}
	return nil
}

func asksToVerify(e event.UpdateEvent) bool {
	old, isOld := e.ObjectOld.(*v1alpha1.CassandraBackup)
	now, isNow := e.ObjectNew.(*v1alpha1.CassandraBackup)
	return isOld && isNow && (old.Status.Phase != now.Status.Phase ||
		old.Annotations[v1alpha1.AnnotationVerify] != now.Annotations[v1alpha1.AnnotationVerify])
}
