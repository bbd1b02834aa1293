package operator

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/inspect"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/threads"
)

// workers is how many clusters have a pass at the same time.
const workers = 16

// Options of an operator.
type Options struct {
	// Install is what the operator was installed with.
	Install facts.Install
	// Namespaces it watches; none means all.
	Namespaces []string
	// LeaderElection makes one of several replicas the leader, by a Lease in LeaseNamespace.
	LeaderElection bool
	LeaseNamespace string
	// MetricsAddress and HealthAddress are where it listens, such as :8080; 0 turns one off.
	MetricsAddress string
	HealthAddress  string
	// InspectAddress is where it answers `kubectl helenus plan` and `console`, such as
	// 127.0.0.1:8082; 0 turns it off.
	InspectAddress string
	Console        Console
	Log            logr.Logger
}

// Run runs an operator until the context ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("register kinds: %w", err)
		}
	}
	certificate, err := inspect.NewCertificate(time.Now())
	if err != nil {
		return err
	}
	labels, err := o.Console.labels(certificate.Certificate[0])
	if err != nil {
		return err
	}
	m, err := ctrl.NewManager(config, manager.Options{
		Scheme:                        scheme,
		Logger:                        o.Log,
		Cache:                         cacheOptions(o.Namespaces),
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              inspectapi.LeaseName,
		LeaderElectionNamespace:       o.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionLabels:          labels,
		Metrics:                       server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
	})
	if err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	for name, add := range map[string]func(string, healthz.Checker) error{"live": m.AddHealthzCheck,
		"ready": m.AddReadyzCheck} {
		if err := add(name, healthz.Ping); err != nil {
			return fmt.Errorf("add health check: %w", err)
		}
	}
	if err := add(ctx, m, o, certificate); err != nil {
		return err
	}
	return m.Start(ctx)
}

// add builds the loop on a manager.
func add(ctx context.Context, m manager.Manager, o Options, certificate tls.Certificate) error {
	now := threads.Goroutines{}.Now // a clock that is set must not end the time that nodes are given
	signing := &authorities{secrets: m.GetAPIReader(), now: time.Now}
	woken := make(chan event.GenericEvent, 1024)
	wake := func(key types.NamespacedName) {
		woken <- event.GenericEvent{
			Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace,
				Name: key.Name}},
		}
	}
	agents := &observe.Agents{
		Dial:    observe.Over(signing.source, time.Now),
		Reach:   observe.ReachCQL,
		Threads: threads.Goroutines{},
		Wake:    wake,
	}
	r := &Reconciler{
		Reader: &observe.Reader{Cache: m.GetClient(), Live: m.GetAPIReader(), Agents: agents,
			Lookout: &observe.Lookout{Live: m.GetAPIReader(), Wake: wake, Threads: threads.Goroutines{}},
			Install: o.Install, Store: store.Open, Now: now},
		Writer: &act.Writer{Client: m.GetClient(), Live: m.GetAPIReader(), Recorder: m.GetEventRecorder("helenus"),
			Now: now},
		Status:  m.GetClient(),
		Metrics: NewMetrics(metrics.Registry),
		Now:     now,
		Board:   &inspect.Board{},
	}
	b := ctrl.NewControllerManagedBy(m).
		Named("cassandracluster").
		For(&v1alpha1.CassandraCluster{}, builder.WithPredicates(meaningful())).
		WatchesRawSource(source.Channel(woken, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	for _, object := range watched() {
		b = b.Watches(object, handler.EnqueueRequestsFromMapFunc(ofCluster))
	}
	b = b.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(ofHost(m.GetClient())),
		builder.WithPredicates(telling()))
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("build controller: %w", err)
	}
	for _, backups := range []bool{false, true} {
		schedules := &Schedules{Reader: r.Reader, Writer: r.Writer, Now: time.Now, Backups: backups, Metrics: r.Metrics}
		if err := schedules.watch(m); err != nil {
			return fmt.Errorf("build controller of schedules: %w", err)
		}
	}
	monitors := &Monitors{Reader: r.Reader, Writer: r.Writer}
	if err := monitors.watch(ctx, m, o.Namespaces); err != nil {
		return fmt.Errorf("build controller of PodMonitors: %w", err)
	}
	if err := addProof(m, o, r.Metrics.Proven); err != nil {
		return err
	}
	restores := &Restores{Reader: r.Reader, Writer: r.Writer, Now: time.Now}
	if err := restores.watch(m); err != nil {
		return err
	}
	stores := &BackupStores{Reader: r.Reader, Writer: r.Writer, Now: time.Now}
	if err := stores.watch(m); err != nil {
		return err
	}
	sweeps := &Sweeps{Reader: r.Reader, Writer: r.Writer, Now: time.Now}
	if err := sweeps.watch(m); err != nil {
		return err
	}
	verifications := &Verifications{Reader: r.Reader, Writer: r.Writer, Now: time.Now}
	if err := verifications.watch(m); err != nil {
		return err
	}
	deletions := &Backups{Reader: r.Reader, Writer: r.Writer, Now: time.Now}
	if err := deletions.watch(m); err != nil {
		return err
	}
	return addInspection(m, r, o, certificate)
}

// watched are the kinds whose objects wake their cluster.
func watched() []client.Object {
	return []client.Object{
		&v1alpha1.CassandraNode{}, &v1alpha1.CassandraTask{}, &v1alpha1.CassandraRestore{},
		&v1alpha1.CassandraBackup{}, &v1alpha1.CassandraBackupSchedule{}, &corev1.Pod{},
		&corev1.PersistentVolumeClaim{}, &corev1.Service{},
		&corev1.ConfigMap{},
		&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &policyv1.PodDisruptionBudget{},
		&networkingv1.NetworkPolicy{},
	}
}

// ofCluster is the cluster that an object names in its labels, and a task, a restore, a backup or a
// schedule of them in its spec.
func ofCluster(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.LabelCluster]
	switch o := object.(type) {
	case *v1alpha1.CassandraTask:
		name = o.Spec.Cluster.Name
	case *v1alpha1.CassandraRestore:
		name = o.Spec.Cluster.Name
	case *v1alpha1.CassandraBackup:
		name = o.Spec.Cluster.Name
	case *v1alpha1.CassandraBackupSchedule:
		name = o.Spec.Cluster.Name
	}
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}
