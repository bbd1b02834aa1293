package operator

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/observe"
)

// decision is what a pass over an object beside clusters comes to.
type decision struct {
	plan.Plan
	// confirm asks, before something is written that cannot be taken back, whether what was seen
	// still holds; nil if no write of the plan needs it.
	confirm func(context.Context) error
}

// pass makes one over an object beside clusters: decide observes it, does with a store what is due,
// and decides; it returns nil if there is no such object. What it has decided is done.
func (r *memories) pass(ctx context.Context, key types.NamespacedName, writer *act.Writer,
	decide func(own *consistency.Store) (*decision, error)) (ctrl.Result, error) {
	m, log := r.memory(key), ctrl.LoggerFrom(ctx)
	d, err := decide(&m.store)
	if ended := ctx.Err(); ended != nil {
		return ctrl.Result{}, ended // the operator ends, so nothing was found
	}
	switch {
	case errors.Is(err, observe.ErrBehind):
		return ctrl.Result{RequeueAfter: behindPause}, nil
	case err != nil:
		pause := m.failed()
		log.Error(err, "observe and decide", "again", pause.String())
		return ctrl.Result{RequeueAfter: pause}, nil
	case d == nil:
		r.forget(key)
		return ctrl.Result{}, nil
	}
	done := writer.Do(ctx, &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}}, d.Plan, d.confirm, &m.store)
	raced, failed := sorted(done.Err)
	again := m.again(d.Wake, raced, failed)
	m.log(log, d.Plan, done, again, raced, failed)
	return ctrl.Result{RequeueAfter: again}, nil
}
