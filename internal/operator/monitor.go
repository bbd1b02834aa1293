package operator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/cluster/upkeep"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/observe"
)

// Monitors keeps the PodMonitors of clusters while Kubernetes has that kind, which comes and goes
// with the operator of Prometheus.
type Monitors struct {
	Reader *observe.Reader
	Writer *act.Writer

	ctx        context.Context // of the watch of PodMonitors, which outlives a pass
	namespaces []string
	manager    manager.Manager
	controller controller.Controller
	// unwatch ends the watch of PodMonitors; nil if there is none.
	unwatch context.CancelFunc
	memories
}

// definition is that of the kind of PodMonitors.
func definition() *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: render.MonitorDefinition}}
	out.APIVersion, out.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	return out
}

// watch has a manager make passes when a cluster changes, its PodMonitor, or the definition. They
// are made one after the other.
func (r *Monitors) watch(ctx context.Context, m manager.Manager, namespaces []string) (err error) {
	r.ctx, r.manager, r.namespaces = ctx, m, namespaces
	all := func(ctx context.Context, _ client.Object) []reconcile.Request {
		var clusters v1alpha1.CassandraClusterList
		if err := m.GetClient().List(ctx, &clusters); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the clusters for their PodMonitors")
		}
		var out []reconcile.Request
		for i := range clusters.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&clusters.Items[i])})
		}
		return out
	}
	r.controller, err = ctrl.NewControllerManagedBy(m).
		Named("podmonitor").
		For(&v1alpha1.CassandraCluster{}, builder.WithPredicates(meaningful())).
		Watches(definition(), handler.EnqueueRequestsFromMapFunc(all)).
		Build(r)
	return err
}

// Reconcile makes one pass over the PodMonitor of a cluster.
func (r *Monitors) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m, log := r.memory(request.NamespacedName), ctrl.LoggerFrom(ctx)
	is, err := r.follow(ctx)
	switch {
	case err != nil:
		pause := m.failed()
		log.Error(err, "watch PodMonitors", "again", pause.String())
		return ctrl.Result{RequeueAfter: pause}, nil
	case !is:
		return ctrl.Result{}, nil
	}
	cluster, have, err := r.Reader.Monitor(ctx, request.NamespacedName)
	switch {
	case err != nil:
		pause := m.failed()
		log.Error(err, "observe the PodMonitor", "again", pause.String())
		return ctrl.Result{RequeueAfter: pause}, nil
	case cluster == nil:
		r.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	plan := upkeep.Monitor(cluster, have)
	done := r.Writer.Do(ctx, &facts.Snapshot{Cluster: cluster}, plan, nil, &consistency.Store{})
	raced, failed := sorted(done.Err)
	again := m.again(0, raced, failed)
	m.log(log, plan, done, again, raced, failed)
	return ctrl.Result{RequeueAfter: again}, nil
}

// follow begins and ends the watch of PodMonitors with the definition of the kind, and says whether
// Kubernetes has it.
func (r *Monitors) follow(ctx context.Context) (bool, error) {
	object := definition()
	err := r.manager.GetClient().Get(ctx, client.ObjectKeyFromObject(object), object)
	if gone := err == nil && object.DeletionTimestamp != nil; gone || client.IgnoreNotFound(err) == nil && err != nil {
		if r.unwatch != nil {
			r.unwatch()
			r.unwatch = nil
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get the definition of PodMonitors: %w", err)
	}
	if r.unwatch != nil {
		return true, nil
	}
	if _, err := r.manager.GetRESTMapper().RESTMapping(render.MonitorKind.GroupKind(),
		render.MonitorKind.Version); err != nil {
		if meta.IsNoMatchError(err) {
			err = fmt.Errorf("it is not served yet: %w", err)
		}
		return false, err
	}
	options := cache.Options{HTTPClient: r.manager.GetHTTPClient(), Scheme: r.manager.GetScheme(),
		Mapper:               r.manager.GetRESTMapper(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}),
		DefaultNamespaces:    cacheOptions(r.namespaces).DefaultNamespaces}
	monitors, err := cache.New(r.manager.GetConfig(), options)
	if err != nil {
		return false, fmt.Errorf("make a cache of PodMonitors: %w", err)
	}
	watching, unwatch := context.WithCancel(r.ctx)
	object.SetGroupVersionKind(render.MonitorKind)
	wake := func(ctx context.Context, o *metav1.PartialObjectMetadata) []reconcile.Request {
		return ofCluster(ctx, o)
	}
	if err := r.controller.Watch(source.Kind(monitors, object,
		handler.TypedEnqueueRequestsFromMapFunc(wake))); err != nil {
		unwatch()
		return false, fmt.Errorf("watch PodMonitors: %w", err)
	}
	r.unwatch = unwatch
	go func() {
		if err := monitors.Start(watching); err != nil {
			ctrl.Log.Error(err, "watch PodMonitors")
		}
	}()
	return true, nil
}
