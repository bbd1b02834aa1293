package operator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/garbage"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	"helenus.io/helenus/internal/core/backupstore"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/observe"
)

// sweepLimit is what a sweep of one cluster may take. It is less than the time between when nodes
// must have written their manifests and when the first marked file is deleted.
const sweepLimit = 3 * time.Hour

// lengthOfUID is that of the uid of a cluster, below which a store has what is of it.
const lengthOfUID = 36

// Sweeps makes passes over what stores have of the clusters of their namespaces, one at a time:
// each is swept if that is due, and its status says what is there. Only the leader makes them.
type Sweeps struct {
	Reader *observe.Reader
	Writer *act.Writer
	// Now is the time of day, as the host's clock says it.
	Now func() time.Time

	memories
}

// Reconcile makes one pass over a store.
func (r *Sweeps) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.pass(ctx, request.NamespacedName, r.Writer, func(own *consistency.Store) (*decision, error) {
		s, secret, err := r.Reader.BackupStore(ctx, request.NamespacedName, own)
		if s == nil || err != nil {
			return nil, err //nolint:wrapcheck // it is ours
		}
		found := &facts.Sweep{Object: s.Object}
		if backupstore.Sweepable(s.Object) && s.SecretMissing == "" {
			if err := r.sweep(ctx, found, request.NamespacedName, secret); err != nil {
				return nil, fmt.Errorf("sweep the store: %w", err)
			}
		}
		return &decision{Plan: backupstore.NextSweep(found)}, nil
	})
}

// sweep what the store has of each cluster, if that is due.
func (r *Sweeps) sweep(ctx context.Context, found *facts.Sweep, key types.NamespacedName, secret map[string][]byte,
) error {
	clusters, err := r.Reader.StoredClusters(ctx, key)
	if err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	in, err := store.Open(found.Object.Spec, secret)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	retentions, err := r.Reader.LogRetentions(ctx, key)
	if err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	found.Swept, found.Problems = map[types.UID]*format.Marks{}, map[types.UID]string{}
	for _, uid := range clusters {
		marks, err := r.cluster(ctx, in, uid, retentions[uid])
		if err != nil {
			found.Problems[uid] = err.Error()
		} else if marks != nil {
			found.Swept[uid] = marks
		}
	}
	if err := r.latest(ctx, in, found); err != nil && len(clusters) == 0 { // else what was known stays
		return fmt.Errorf("look for backups: %w", err)
	}
	return nil
}

// latest finds the latest backup of each cluster in the store, those that are gone too: who has
// lost all but the store sees what there is.
func (r *Sweeps) latest(ctx context.Context, in store.Store, found *facts.Sweep) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	names, err := in.Directories(ctx)
	if err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	known, out := map[types.UID]*v1alpha1.StoredBackup{}, map[types.UID]*v1alpha1.StoredBackup{}
	for _, c := range found.Object.Status.Clusters {
		known[c.UID] = c.LatestBackup
	}
	for _, name := range names {
		uid, last := types.UID(name), ""
		if len(name) != lengthOfUID {
			continue // it has no backups
		}
		if err := in.List(ctx, format.BackupPrefix(name), func(o store.Object) error {
			last = o.Key
			return nil
		}); err != nil {
			return err //nolint:wrapcheck // so does this
		}
		id, has := format.BackupOf(last), known[uid]
		if id == "" {
			continue
		}
		if has != nil && has.ID == id { // what it says never changes
			out[uid] = has
			continue
		}
		b, err := sweep.Read[format.Backup](ctx, in, last)
		if err != nil {
			found.Problems[uid] = cmp.Or(found.Problems[uid], err.Error())
			continue
		}
		out[uid] = &v1alpha1.StoredBackup{ID: id, TakenAt: metav1.NewTime(b.TakenAt).Rfc3339Copy(),
			Cluster: b.Cluster.Namespace + "/" + b.Cluster.Name}
	}
	found.Latest = out
	return nil
}

func (r *Sweeps) cluster(ctx context.Context, in store.Store, of types.UID, logs time.Duration) (*format.Marks, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	uid := string(of)
	last, err := sweep.LastMarks(ctx, in, uid)
	if err != nil || !sweep.Due(last, r.Now()) {
		return last, err //nolint:wrapcheck // it says what it is about
	}
	if err := sweep.Log(ctx, in, uid, logs, r.Now(), func(ctx context.Context) error {
		return unread(ctx, r.Reader, of)
	}); err != nil {
		return last, err //nolint:wrapcheck // so does this
	}
	return sweep.Sweep(ctx, in, uid, garbage.Default, r.Now) //nolint:wrapcheck // and this
}

// watch has a manager make passes over a store when its spec changes.
func (r *Sweeps) watch(m manager.Manager) error {
	if err := ctrl.NewControllerManagedBy(m).
		Named("cassandrabackupstoresweep").
		For(&v1alpha1.CassandraBackupStore{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r); err != nil {
		return fmt.Errorf("build controller of sweeps: %w", err)
	}
	return nil
}
