package operator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/cluster"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/status"
	"helenus.io/helenus/internal/inspect"
	"helenus.io/helenus/internal/observe"
)

const (
	// passMoment is the least time between two passes of one cluster: what happens within it is
	// seen by one. Passes that take long to decide are made less often, so that those of one
	// cluster use at most one part in passShare of a processor, whatever happens to it.
	passMoment = 200 * time.Millisecond
	passShare  = 5
	// passBurst is how many passes that write may follow so closely; then there is one in each
	// passInterval. Steps in which agents and operator answer each other are short, and two who
	// undo each other's writes do not use up the API server.
	passBurst    = 20
	passInterval = 500 * time.Millisecond
	// behindPause is when to look again if the event that the cache waits for is lost.
	behindPause = 2 * time.Second
	// firstPause and longestPause are the times between two passes that fail, if nothing happens to
	// the cluster in between.
	firstPause   = time.Second
	longestPause = time.Minute
)

// Reconciler makes passes: observe, decide, act, report.
type Reconciler struct {
	Reader  *observe.Reader
	Writer  *act.Writer
	Status  client.Client
	Metrics *Metrics
	Now     func() time.Time
	// Rules are the guards; nil for those of the product.
	Rules *guard.Rules
	// Board is where those who watch clusters look; nil if nobody can.
	Board *inspect.Board

	memories
}

// memories are those of all objects that have passes.
type memories struct {
	mutex sync.Mutex
	all   map[types.NamespacedName]*memory
}

// memory is what is kept of a cluster or a schedule between passes. Losing it costs nothing but a
// look.
type memory struct {
	// running holds what has its turn: a pass, or a request for the plan.
	running chan struct{}
	store   consistency.Store
	// rest is until when no pass is made, and pace what is left of those that may write.
	rest time.Time
	pace *rate.Limiter
	line string
	// failures are passes in a row that have failed, under the spec of a generation.
	failures   int
	generation int64
}

func (r *memories) memory(key types.NamespacedName) *memory {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.all == nil {
		r.all = map[types.NamespacedName]*memory{}
	}
	m := r.all[key]
	if m == nil {
		m = &memory{running: make(chan struct{}, 1), pace: rate.NewLimiter(rate.Every(passInterval), passBurst)}
		r.all[key] = m
	}
	return m
}

func (r *memories) forget(key types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.all, key)
}

// Reconcile makes one pass over a cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	key := request.NamespacedName
	m := r.memory(key)
	m.running <- struct{}{}
	defer func() { <-m.running }()
	started := r.Now()
	if left := m.left(started); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	decided, wrote := time.Time{}, false
	defer func() { m.made(started, decided, wrote) }()
	snapshot, err := r.Reader.Cluster(ctx, key, &m.store)
	switch {
	case errors.Is(err, observe.ErrBehind):
		ctrl.LoggerFrom(ctx).V(1).Info("waiting for the cache", "reason", err.Error())
		return ctrl.Result{RequeueAfter: behindPause}, nil
	case err != nil:
		wrote = true // it has asked the API server in vain, as a write would
		pause := m.failed()
		r.Metrics.Failed(key)
		ctrl.LoggerFrom(ctx).Error(err, "observe the cluster", "again", pause.String())
		return ctrl.Result{RequeueAfter: pause}, nil
	case snapshot == nil:
		r.Reader.Forget(key)
		r.Metrics.Forget(key)
		r.Board.Put(key, nil, started)
		r.forget(key)
		return ctrl.Result{}, nil
	}
	if m.generation != snapshot.Cluster.Generation {
		m.generation, m.failures = snapshot.Cluster.Generation, 0
	}
	plan := r.decide(snapshot, started)
	decided = r.Now()
	confirm := func(ctx context.Context) error { return r.Reader.Confirm(ctx, snapshot, &m.store) }
	done := r.Writer.Do(ctx, snapshot, plan, confirm, &m.store)
	next := statusAfter(snapshot, plan, done, started)
	told, published := r.publish(ctx, snapshot, next, &m.store)
	wrote = told || len(plan.Writes) > 0
	r.Metrics.Observe(key, status.Samples(snapshot, next, r.Now()), plan.Writes[:done.Done], r.Now().Sub(started))
	raced, failed := sorted(done.Err, done.Rejected, published, r.show(key, snapshot, plan, next, started))
	again := m.again(plan.Wake, raced, failed)
	if failed != nil {
		r.Metrics.Failed(key)
	}
	m.log(ctrl.LoggerFrom(ctx), plan, done, again, raced, failed)
	return ctrl.Result{RequeueAfter: again}, nil
}

// decide what to do about a cluster.
func (r *Reconciler) decide(s *facts.Snapshot, now time.Time) plan.Plan {
	if r.Rules != nil {
		return cluster.NextBy(*r.Rules, s, now)
	}
	return cluster.Next(s, now)
}

// sorted tells writes that lost a race from those that failed.
func sorted(errs ...error) (raced, failed error) {
	for _, err := range errs {
		switch {
		case err == nil:
		case lostRace(err):
			raced = errors.Join(raced, err)
		default:
			failed = errors.Join(failed, err)
		}
	}
	return raced, failed
}

// again says when to look at the cluster again. A write that lost a race is no failure: what it
// raced with wakes us, and we look again soon in any case. After others the pauses grow, so that an
// API server that has trouble, or a right that is lacking, is not asked every second for ever; what
// happens to the cluster wakes us all the same. Nothing of this is left to the queue, whose own
// pauses start over whenever a pass is put off.
func (m *memory) again(wake time.Duration, raced, failed error) time.Duration {
	if failed != nil {
		return m.failed()
	}
	m.failures = 0
	if raced != nil {
		return passMoment
	}
	return wake
}

// left says for how long the next pass has to wait.
func (m *memory) left(now time.Time) time.Duration {
	turn := m.pace.ReserveN(now, 1)
	defer turn.CancelAt(now)
	return max(m.rest.Sub(now), turn.DelayFrom(now))
}

// made counts a pass, also one whose writes were refused.
func (m *memory) made(started, decided time.Time, wrote bool) {
	m.rest = started.Add(max(passMoment, passShare*decided.Sub(started)))
	if wrote {
		m.pace.AllowN(started, 1)
	}
}

// failed counts a pass that has failed, and says when to try again.
func (m *memory) failed() time.Duration {
	const doublings = 6 // 64 s, more than the longest
	pause := min(firstPause<<min(m.failures, doublings), longestPause)
	m.failures++
	return pause
}

func lostRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, observe.ErrChanged) ||
		otherObject(err)
}

// otherObject says that an object of the name has another uid than the write was meant for, as the
// API server answers it to a patch: as an attempt to change the uid.
func otherObject(err error) bool {
	var answer apierrors.APIStatus
	return apierrors.IsInvalid(err) && errors.As(err, &answer) && answer.Status().Details != nil &&
		slices.ContainsFunc(answer.Status().Details.Causes,
			func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// statusAfter is the status after a pass, by what was done of its plan.
func statusAfter(s *facts.Snapshot, plan plan.Plan, done act.Result, now time.Time) v1alpha1.CassandraClusterStatus {
	failure := done.Err
	if failure != nil && lostRace(failure) {
		failure = nil // the next pass, a moment later, knows better
	}
	plan.Writes = plan.Writes[:done.Done]
	return status.Of(s, plan, failure, done.Rejected, now)
}

// publish writes the status if it says something else than the one that is there, and tells people
// what has changed: whoever's write is taken tells it, so that another operator, or the next one,
// does not. It says whether there was something to write.
func (r *Reconciler) publish(ctx context.Context, s *facts.Snapshot, next v1alpha1.CassandraClusterStatus,
	store *consistency.Store) (bool, error) {
	if equality.Semantic.DeepEqual(next, s.Cluster.Status) || released(s) {
		return false, nil
	}
	updated := s.Cluster.DeepCopy()
	updated.Status = next
	// Of the version that was seen: a uid in the patch would not be looked at, since a write to the
	// status takes the metadata from what is stored.
	patch := client.MergeFromWithOptions(s.Cluster.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if err := r.Status.Status().Patch(ctx, updated, patch,
		client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return true, client.IgnoreNotFound(err)
	}
	store.Wrote(consistency.Key{Kind: "CassandraCluster", Namespace: updated.Namespace, Name: updated.Name},
		updated.UID, updated.ResourceVersion)
	for _, e := range status.Events(s.Cluster.Status, next) {
		var related runtime.Object
		if n := s.Nodes[e.Node]; n != nil && n.Record != nil {
			related = n.Record
		}
		r.Writer.Recorder.Eventf(updated, related, e.Type, e.Reason, e.Action, "%s", e.Message)
	}
	return true, nil
}

// released says that a cluster is being deleted and no longer held by us: its status interests
// nobody.
func released(s *facts.Snapshot) bool {
	return s.Cluster.DeletionTimestamp != nil && !slices.Contains(s.Cluster.Finalizers, v1alpha1.FinalizerCluster)
}

// log writes one line for a pass, with the result of every step, if it did something or came to
// another result than the pass before.
func (m *memory) log(log logr.Logger, plan plan.Plan, done act.Result, again time.Duration, raced, failed error) {
	steps := make([]any, 0, 2*len(plan.Steps))
	line := ""
	for _, step := range plan.Steps {
		text := string(step.Outcome)
		if step.Message != "" {
			text += ": " + step.Message
		}
		steps = append(steps, step.Step, text)
		line += step.Step + text
	}
	if plan.Stalled != nil {
		steps = append(steps, "stalled", plan.Stalled.Reason+": "+plan.Stalled.Message)
		line += plan.Stalled.Message
	}
	writes := make([]string, 0, done.Done)
	for _, w := range plan.Writes[:done.Done] {
		writes = append(writes, w.String())
	}
	if len(writes) > 0 {
		steps = append(steps, "wrote", writes)
	}
	switch {
	case failed != nil:
		log.Error(failed, "pass", append(steps, "again", again.String())...)
	case raced != nil:
		log.Info("pass", append(steps, "lost a race", raced.Error())...)
	case len(writes) > 0 || line != m.line:
		log.Info("pass", steps...)
	}
	m.line = line
}
