package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/reach"
)

// Event is what became of an object. Old is nil for one that is new, New for one that is gone.
type Event struct {
	Old, New client.Object
}

// Object is the newest that is known of it.
func (e Event) Object() client.Object {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// Namespace is one namespace as the watches show it.
type Namespace struct {
	Name  string
	cache cache.Cache

	mutex    sync.Mutex
	changed  chan struct{}
	watchers []func(Event)
}

// Kinds of a namespace with Cassandra in it.
func Kinds() []client.Object {
	return []client.Object{
		&v1alpha1.CassandraCluster{}, &v1alpha1.CassandraNode{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{},
		&corev1.ConfigMap{},
	}
}

// OperatorKinds are those of the namespace of the operator.
func OperatorKinds() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &corev1.Pod{}}
}

// Start follows the objects of some kinds until ctx ends. It returns when all that exist are known.
// Each watcher is told of every event, those that exist already first; events of one kind come in
// their order.
func Start(ctx context.Context, config *rest.Config, namespace string, kinds []client.Object,
	watchers ...func(Event)) (*Namespace, error) {
	scheme, err := reach.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := cache.New(config, cache.Options{Scheme: scheme,
		DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		return nil, fmt.Errorf("follow namespace %s: %w", namespace, err)
	}
	n := &Namespace{Name: namespace, cache: c, changed: make(chan struct{}), watchers: watchers}
	var synced []toolscache.InformerSynced
	for _, kind := range kinds {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("follow %T in namespace %s: %w", kind, namespace, err)
		}
		handler, err := informer.AddEventHandler(n)
		if err != nil {
			return nil, fmt.Errorf("follow %T in namespace %s: %w", kind, namespace, err)
		}
		synced = append(synced, handler.HasSynced)
	}
	go func() { _ = c.Start(ctx) }() // ends with ctx; what it cannot watch shows as a wait that fails
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("follow namespace %s: %w", namespace, context.Cause(ctx))
	}
	return n, nil
}

// OnAdd and the next two are called by the watches.
func (n *Namespace) OnAdd(object any, _ bool) { n.tell(Event{New: asObject(object)}) }

// OnUpdate is called with a change, and now and then without one.
func (n *Namespace) OnUpdate(before, after any) {
	n.tell(Event{Old: asObject(before), New: asObject(after)})
}

// OnDelete is called with the last that was known of it.
func (n *Namespace) OnDelete(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	n.tell(Event{Old: asObject(object)})
}

func asObject(v any) client.Object {
	object, _ := v.(client.Object)
	return object
}

func (n *Namespace) tell(e Event) {
	if e.Old == nil && e.New == nil {
		return
	}
	for _, watcher := range n.watchers {
		watcher(e)
	}
	n.Wake()
}

// Wake has every wait look again: for what is no object of the namespace.
func (n *Namespace) Wake() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Namespace) next() <-chan struct{} {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.changed
}

// Condition is nil if it holds, and else says what is missing. Never makes it an error that no
// event will mend.
type Condition func(Sight) error

type never struct{ error }

func (n never) Unwrap() error { return n.error }

// Never says that a condition will not hold any more, whatever happens: the wait ends with this
// error at once.
func Never(err error) error { return never{err} }

// Until waits until a condition holds. After the deadline it gives up and says what was missing: a
// deadline is how long something may take before it counts as broken, and never what is waited for.
func (n *Namespace) Until(ctx context.Context, deadline time.Duration, what string, condition Condition) error {
	ctx, stop := context.WithTimeoutCause(ctx, deadline, fmt.Errorf("not within %s", deadline))
	defer stop()
	for {
		changed := n.next()
		missing := condition(Sight{ctx: ctx, namespace: n})
		if missing == nil {
			return nil
		}
		if over := (never{}); errors.As(missing, &over) {
			return fmt.Errorf("wait until %s: %w", what, over.error)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %w", what, context.Cause(ctx), missing)
		}
	}
}

// Now looks at what is known at this moment.
func (n *Namespace) Now(ctx context.Context) Sight { return Sight{ctx: ctx, namespace: n} }
