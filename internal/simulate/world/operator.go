package world

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/operator"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/process"
	"helenus.io/helenus/internal/simulate/timeline"
)

// Install is what operators are installed with.
var Install = facts.Install{Version: "simulated", ImageRepository: "cassandra", AgentImage: "helenus/agent:simulated"}

// Rules are the guards of all operators. A test takes some away for its time.
var Rules = guard.All()

// Operator is one run of the real operator, from the start of its process until it is killed.
type Operator struct {
	w          *World
	name       string
	install    facts.Install
	process    *process.Process
	cache      *apiserver.Cache
	reconciler *operator.Reconciler
	queue      map[types.NamespacedName]*item
	delivering map[string]*timeline.Event
	// seen are the uids of all objects that it has read.
	seen map[types.UID]bool
	// withheld are the kinds of which its view was not shown everything that it could have been,
	// frozen those of which it stands still.
	withheld, frozen map[string]bool
	// standby is one that watches and does not lead.
	standby bool
}

// item is a cluster in the queue of a controller.
type item struct {
	event    *timeline.Event
	at       time.Time
	running  bool
	dirty    bool
	failures int
}

// StartOperator starts one that leads, or believes that it does.
func (w *World) StartOperator(install facts.Install) *Operator {
	return w.startOperator(install, false)
}

// StartStandby starts one that watches and does nothing before it leads.
func (w *World) StartStandby(install facts.Install) *Operator { return w.startOperator(install, true) }

func (w *World) startOperator(install facts.Install, standby bool) *Operator {
	w.started++
	o := &Operator{w: w, standby: standby, name: fmt.Sprintf("%s-%d", UserOperator, w.started), install: install,
		queue: map[types.NamespacedName]*item{}, delivering: map[string]*timeline.Event{}, seen: map[types.UID]bool{},
		withheld: map[string]bool{}}
	w.operators = append(w.operators, o)
	o.process = process.Start(w.Line, o.name, o.run)
	o.process.StepClock(w.OperatorClock)
	o.process.OnEnd(func() {
		if o.cache != nil {
			o.cache.Close()
		}
		for i, other := range w.operators {
			if other == o {
				w.operators = append(w.operators[:i:i], w.operators[i+1:]...)
				break
			}
		}
	})
	return o
}

// Operators that run.
func (w *World) Operators() []*Operator { return w.operators }

// Name is also its user at the API server.
func (o *Operator) Name() string { return o.name }

// HasSeen says that it has read an object, by whatever way.
func (o *Operator) HasSeen(uid types.UID) bool { return o.seen[uid] }

// Kill ends it at once.
func (o *Operator) Kill() { o.process.Kill() }

// run is the process: it fills its cache, and looks at every cluster.
func (o *Operator) run(ctx context.Context, p *process.Process) {
	p.Wait(ctx, o.w.Line.Between(500*time.Millisecond, 2*time.Second), nil)
	wrap := &o.w.wrap
	o.cache = apiserver.NewCache(o.w.Server, operator.Cached, operator.Outline)
	cache := witnessReader{o.cache, o.seen, o.reads}
	reads := witness{o.w.Server.As(o.name), o.seen}
	writes, live := wrap.client(o, reads), wrap.live(o, reads, cache)
	agents := &observe.Agents{
		Dial: func(t observe.Target) observe.Asker {
			return wrap.asker(o, t, o.w.Pods.Dial(p, t.UID, t.Node, t.Pod, t.Address))
		},
		Wake: o.enqueue, Threads: p,
	}
	o.reconciler = &operator.Reconciler{
		Rules: &Rules,
		Reader: &observe.Reader{Cache: cache, Live: live, Agents: agents, Install: o.install, Now: p.Now,
			Store: func(v1alpha1.BackupStoreSpec, map[string][]byte) (store.Store, error) {
				return o.w.Pods.Bucket, nil
			}},
		Writer:  &act.Writer{Client: writes, Live: live, Recorder: recorder{o.w}, Now: p.Now},
		Status:  writes,
		Metrics: operator.NewMetrics(prometheus.NewRegistry()),
		Now:     p.Now,
	}
	o.all()
}

// all has every cluster looked at that its view shows.
func (o *Operator) all() {
	var clusters v1alpha1.CassandraClusterList
	if err := o.cache.List(context.Background(), &clusters); err != nil {
		panic(fmt.Sprintf("list clusters: %v", err)) // a cache answers always
	}
	for i := range clusters.Items {
		o.enqueue(client.ObjectKeyFromObject(&clusters.Items[i]))
	}
}

// Lead has a standby do what an operator does from now on.
func (o *Operator) Lead() {
	o.standby = false
	o.all()
}

// reads is told of every read of the view.
func (o *Operator) reads(object runtime.Object, stale func() bool) {
	if f := o.w.Faults.Misled; f != nil {
		if kind := strings.TrimSuffix(reflect.TypeOf(object).Elem().Name(), "List"); o.withheld[kind] {
			f(kind, stale)
		}
	}
}

// changed is an event for the cache: it is shown a moment later, in the order of its kind.
func (o *Operator) changed(e apiserver.Event) {
	if o.cache == nil {
		return
	}
	o.deliver(e.Kind)
}

func (o *Operator) deliver(kind string) {
	if o.delivering[kind] != nil {
		return
	}
	o.delivering[kind] = o.w.Line.After(o.w.Line.Between(5*time.Millisecond, 60*time.Millisecond),
		"informer of "+o.name, func() {
			delete(o.delivering, kind)
			if o.process.Dead() {
				return
			}
			if o.frozen[kind] || o.frozen[""] {
				return
			}
			lag := 0
			if f := o.w.Faults.Lag; f != nil {
				lag = f(o, kind)
			}
			events := o.cache.Deliver(kind, o.cache.Pending(kind)-lag)
			o.withheld[kind] = o.cache.Pending(kind) > 0
			if merged := merge(events); len(merged) < len(events) && o.w.Faults.Merge != nil &&
				o.w.Faults.Merge(o, kind) {
				events = merged
			}
			for _, e := range events {
				o.show(e)
			}
		})
}

// show wakes those whom a change concerns.
func (o *Operator) show(e apiserver.Event) {
	var old, now client.Object
	if e.Type != apiserver.Added {
		old = e.Old
	}
	if e.Type != apiserver.Deleted {
		now = e.New
	}
	wakes := operator.Wakes(o.cache, old, now)
	if f := o.w.Faults.Skip; f != nil && len(wakes) > 0 && f(o, e.Kind) {
		return
	}
	for _, key := range wakes {
		o.enqueue(key)
	}
}

// merge makes one change of all those of an object: what an informer sees that lists again after
// its watch broke. An object that gave way to another of its name has changed, then; one that came
// and went was never there.
func merge(events []apiserver.Event) []apiserver.Event {
	var out []apiserver.Event
	at := map[types.NamespacedName]int{}
	for _, e := range events {
		i, known := at[e.Key]
		if !known {
			at[e.Key] = len(out)
			out = append(out, e)
			continue
		}
		first := &out[i]
		absent := first.Type == apiserver.Added || first.Type == apiserver.Deleted && first.Old == nil
		switch {
		case e.Type == apiserver.Deleted:
			first.Type, first.New = apiserver.Deleted, e.New
			if absent {
				first.Old = nil
			}
		case absent:
			first.Type, first.Old, first.New = apiserver.Added, nil, e.New
		default:
			first.Type, first.New = apiserver.Modified, e.New
		}
	}
	return slices.DeleteFunc(out, func(e apiserver.Event) bool { return e.Type == apiserver.Deleted && e.Old == nil })
}

// enqueue has a cluster looked at as soon as can be.
func (o *Operator) enqueue(key types.NamespacedName) { o.enqueueIn(key, time.Millisecond) }

func (o *Operator) enqueueIn(key types.NamespacedName, d time.Duration) {
	if o.process.Dead() || o.standby {
		return
	}
	q := o.queue[key]
	if q == nil {
		q = &item{}
		o.queue[key] = q
	}
	at := o.w.Line.Now().Add(d)
	switch {
	case q.running:
		// Looked at again after the pass that is under way; the later wish of two counts only if
		// there is no earlier one.
		if !q.dirty || at.Before(q.at) {
			q.dirty, q.at = true, at
		}
		return
	case q.event != nil && !at.Before(q.at):
		return
	}
	o.w.Line.Cancel(q.event)
	q.at = at
	q.event = o.w.Line.After(d, "queue of "+o.name, func() {
		q.event = nil
		if !o.process.Dead() {
			q.running, q.dirty = true, false
			o.process.Go(func() { o.pass(key, q) })
		}
	})
}

// The limits of controller-runtime's queue.
const (
	firstRetry   = 5 * time.Millisecond
	longestRetry = 1000 * time.Second
)

func (o *Operator) pass(key types.NamespacedName, q *item) {
	ctx := logr.NewContext(context.Background(), o.logger())
	result, err := o.w.wrap.pass(o, o.reconciler).Reconcile(ctx, ctrl.Request{NamespacedName: key})
	q.running = false
	if q.dirty {
		o.enqueueIn(key, max(q.at.Sub(o.w.Line.Now()), 0))
	}
	switch {
	case err != nil:
		o.w.say(o.name, "pass of %s: %v", key.Name, err)
		o.enqueueIn(key, min(firstRetry<<min(q.failures, 20), longestRetry))
		q.failures++
	case result.RequeueAfter > 0:
		q.failures = 0
		o.enqueueIn(key, result.RequeueAfter)
	default:
		q.failures = 0
	}
}

func (o *Operator) logger() logr.Logger {
	if o.w.Trace == nil {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) { o.w.say(o.name, "%s %s", prefix, args) }, funcr.Options{Verbosity: 1})
}

// recorder takes the operator's events.
type recorder struct{ w *World }

func (r recorder) Eventf(_, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.w.say("event", "%s %s: "+note, append([]any{eventType, reason}, args...)...)
}

// CatchUp shows what was held back of a kind.
func (o *Operator) CatchUp(kind string) {
	if o.cache != nil && !o.process.Dead() {
		o.deliver(kind)
	}
}

// Freeze has the operator's view stand still, as behind an API server that lags: of some kinds, or
// of all if none is named.
func (o *Operator) Freeze(kinds ...string) {
	o.frozen = map[string]bool{"": len(kinds) == 0}
	for _, kind := range kinds {
		o.frozen[kind] = true
	}
}

// Thaw shows a frozen operator everything that has happened since.
func (o *Operator) Thaw() {
	o.frozen = nil
	for _, kind := range o.cache.Behind() {
		o.CatchUp(kind)
	}
}

// Started says that its view is filled.
func (o *Operator) Started() bool { return o.reconciler != nil }
