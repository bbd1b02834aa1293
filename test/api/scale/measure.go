package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"helenus.io/helenus/api/v1alpha1"
)

// Patience with what must happen at some time.
const (
	toForm   = time.Hour
	toChange = time.Minute
	look     = 100 * time.Millisecond
)

// bench is one measurement under way.
type bench struct {
	options
	fleet    *fleet
	operator *operator
	config   *rest.Config
	// kubeconfig is the file by which the operator finds the API server.
	kubeconfig string
	folder     string
	say        func(string, ...any)

	mu sync.Mutex
	// appeared are the records that the API server has told of, with the time.
	appeared map[string]time.Time
	heard    chan struct{}
}

func newBench(config *rest.Config, kubeconfig, folder string, o options, say func(string, ...any)) *bench {
	return &bench{options: o, config: config, kubeconfig: kubeconfig, folder: folder, say: say,
		appeared: map[string]time.Time{}, heard: make(chan struct{}, 1)}
}

func measure(ctx context.Context, config *rest.Config, kubeconfig string, o options,
	say func(string, ...any)) (out *figures, err error) {
	folder, err := os.MkdirTemp("", "helenus-scale-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := newBench(config, kubeconfig, folder, o, say)
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	if b.operator, err = startOperator(ctx, o.operator, kubeconfig, folder); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nthe operator's last words:\n%s", err, b.operator.words())
		}
		b.operator.stop()
	}()
	return b.run(ctx)
}

// prepare installs the definitions, and has the fleet run.
func (b *bench) prepare(ctx context.Context) error {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if _, err := envtest.InstallCRDs(b.config,
		envtest.CRDInstallOptions{Paths: []string{b.definitions}, ErrorIfPathMissing: true}); err != nil {
		return fmt.Errorf("install definitions: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("make scheme: %w", err)
	}
	again := true // there may have been a bench in this process
	m, err := manager.New(b.config, manager.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &again}})
	if err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	b.fleet = &fleet{Client: m.GetClient(), perRack: b.perRack, ctx: ctx, rings: map[types.UID]*ring{},
		agents: map[types.UID]*agent{}}
	if err := b.fleet.begin(m); err != nil {
		return err
	}
	records, err := m.GetCache().GetInformer(ctx, &v1alpha1.CassandraNode{})
	if err != nil {
		return fmt.Errorf("follow records: %w", err)
	}
	if _, err := records.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: b.note}); err != nil {
		return fmt.Errorf("follow records: %w", err)
	}
	go func() { _ = m.Start(ctx) }() // it ends with ctx
	if !m.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the API server does not tell what it has")
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host}},
	} {
		if err := b.fleet.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// note takes down when a record appeared.
func (b *bench) note(object any) {
	record, ok := object.(*v1alpha1.CassandraNode)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.appeared[record.Name] = time.Now()
	select {
	case b.heard <- struct{}{}:
	default:
	}
}

func (b *bench) run(ctx context.Context) (*figures, error) {
	out := &figures{}
	begun := time.Now()
	for i := range b.clusters {
		if err := b.fleet.Create(ctx, clusterOf(i, b.perRack)); err != nil {
			return nil, fmt.Errorf("create cluster %d: %w", i, err)
		}
	}
	if err := b.untilAllServe(ctx); err != nil {
		return nil, err
	}
	out.formed = time.Since(begun)
	b.say("%d clusters stand after %s", b.clusters, out.formed.Round(time.Second))
	if err := b.rest(ctx); err != nil {
		return nil, err
	}
	var err error
	if out.afterForming, err = b.operator.memory(); err != nil {
		return nil, err
	}
	b.operator.stop()
	if err := b.fleet.any().fallSilent(ctx); err != nil {
		return nil, err
	}
	second, err := startOperator(ctx, b.options.operator, b.kubeconfig, b.folder)
	if err != nil {
		return nil, err
	}
	b.operator = second
	b.say("the operator is started again, and one agent has fallen silent")
	if err := b.rest(ctx); err != nil {
		return nil, err
	}
	if out.afterStart, err = b.operator.memory(); err != nil {
		return nil, err
	}
	if out.changes, err = b.change(ctx); err != nil {
		return nil, err
	}
	if out.afterChanges, err = b.operator.memory(); err != nil {
		return nil, err
	}
	return out, nil
}

// change raises the size of one cluster after the other by a node, and measures how long it takes
// from the request until the API server tells of its record. Then it is taken back, so that all are
// idle again.
func (b *bench) change(ctx context.Context) ([]time.Duration, error) {
	var out []time.Duration
	order := rand.Perm(b.clusters) //nolint:gosec // any order
	for i := range b.changes {
		name := clusterName(order[i%len(order)])
		took, err := b.changeOne(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("change %s: %w", name, err)
		}
		out = append(out, took)
		if (i+1)%50 == 0 {
			b.say("%d of %d changes, the slowest took %s", i+1, b.changes, slices.Max(out))
		}
	}
	return out, nil
}

func (b *bench) changeOne(ctx context.Context, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, toChange)
	defer cancel()
	newcomer := v1alpha1.NodeName(name, "dc1", "r1", b.perRack)
	b.mu.Lock()
	delete(b.appeared, newcomer)
	b.mu.Unlock()
	begun := time.Now()
	if err := b.resize(ctx, name, b.perRack+1); err != nil {
		return 0, err
	}
	at, err := b.untilAppears(ctx, newcomer)
	if err != nil {
		return 0, err
	}
	if err := b.resize(ctx, name, b.perRack); err != nil {
		return 0, err
	}
	return at.Sub(begun), b.until(ctx, toChange, newcomer+" is let go", func(ctx context.Context) (bool, error) {
		err := b.fleet.Get(ctx, client.ObjectKey{Namespace: namespace, Name: newcomer}, &v1alpha1.CassandraNode{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

func (b *bench) resize(ctx context.Context, name string, nodes int32) error {
	patch, err := size(nodes)
	if err != nil {
		return err
	}
	return b.fleet.Patch(ctx, &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: name}}, patch)
}

func (b *bench) untilAppears(ctx context.Context, record string) (time.Time, error) {
	for {
		b.mu.Lock()
		at, appeared := b.appeared[record]
		b.mu.Unlock()
		if appeared {
			return at, nil
		}
		select {
		case <-b.heard:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("await record %s: %w", record, ctx.Err())
		}
	}
}

// untilAllServe waits until every cluster says that it is ready.
func (b *bench) untilAllServe(ctx context.Context) error {
	said := time.Now()
	return b.until(ctx, toForm, "all clusters are ready", func(ctx context.Context) (bool, error) {
		list := &v1alpha1.CassandraClusterList{}
		if err := b.fleet.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return false, err
		}
		ready := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
				ready++
			}
		}
		if time.Since(said) > 15*time.Second {
			said = time.Now()
			b.say("%d of %d clusters are ready", ready, b.clusters)
		}
		return ready == b.clusters, nil
	})
}

func (b *bench) until(ctx context.Context, limit time.Duration, what string,
	is func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, look, limit, true, is); err != nil {
		return fmt.Errorf("await that %s: %w", what, err)
	}
	return nil
}

// rest lets time pass in which nothing happens.
func (b *bench) rest(ctx context.Context) error {
	select {
	case <-time.After(b.idle):
		return nil
	case <-b.operator.ended:
		return fmt.Errorf("the operator has ended: %s", b.operator.command.ProcessState)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func clusterName(i int) string { return fmt.Sprintf("c%03d", i) }

func clusterOf(i int, perRack int32) *v1alpha1.CassandraCluster {
	gib := resource.MustParse("10Gi")
	return &v1alpha1.CassandraCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName(i)},
		Spec: v1alpha1.CassandraClusterSpec{
			Version: release,
			Node: &v1alpha1.NodeTemplate{
				NodeSettings: v1alpha1.NodeSettings{
					Storage: &v1alpha1.Storage{
						Claims: &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: &gib}},
					},
				},
			},
			Datacenters: []v1alpha1.Datacenter{{
				Name: "dc1", NodesPerRack: perRack, Racks: []v1alpha1.Rack{{Name: "r1"}, {Name: "r2"}, {Name: "r3"}},
			}},
		},
	}
}

// resident is the memory of a process, in bytes.
type resident struct{ now, most uint64 }

// figures of one measurement.
type figures struct {
	formed                                 time.Duration
	afterForming, afterStart, afterChanges resident
	changes                                []time.Duration
}

// percentile is the least of the durations that so many percent of them do not exceed.
func percentile(of []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

func (f *figures) markdown(o options) string {
	var out strings.Builder
	nodes := 3 * int(o.perRack)
	fmt.Fprintf(&out, "%d clusters of %d nodes, formed all at once in %s.\n\n", o.clusters, nodes,
		f.formed.Round(time.Second))
	fmt.Fprintf(&out, "| from the change of a spec to the first write, %d changes, 1 of %d agents silent | "+
		"|\n|---|---:|\n", len(f.changes), o.clusters*nodes)
	for _, percent := range []int{50, 90, 99, 100} {
		fmt.Fprintf(&out, "| %d %% of them | %d ms |\n", percent, percentile(f.changes, percent).Milliseconds())
	}
	fmt.Fprintf(&out, "\n| resident memory of the operator | MiB | at most |\n|---|---:|---:|\n")
	for _, row := range []struct {
		name string
		resident
	}{{"after all clusters formed at once", f.afterForming}, {"after a start beside clusters that stand", f.afterStart},
		{"after the changes", f.afterChanges}} {
		fmt.Fprintf(&out, "| %s | %.0f | %.0f |\n", row.name, float64(row.now)/(1<<20), float64(row.most)/(1<<20))
	}
	return out.String()
}
