package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"helenus.io/helenus/internal/inspect"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/internal/observe"
)

// ownNamespace is the file in which Kubernetes tells a pod its namespace.
const ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// addInspection lets people ask for the plan of a cluster. Every replica listens; the one that does
// not lead says who does.
func addInspection(m manager.Manager, r *Reconciler, o Options) error {
	if o.InspectAddress == "" || o.InspectAddress == "0" {
		return nil
	}
	lease := client.ObjectKey{Namespace: leaseNamespace(o), Name: inspectapi.LeaseName}
	if err := m.Add(&inspect.Server{
		Address: o.InspectAddress,
		Reviews: inspect.Reviews{Live: m.GetAPIReader(), Client: m.GetClient()},
		Leads:   leads(m.Elected(), m.GetAPIReader(), lease, o.Log),
		Inspect: func(ctx context.Context, key types.NamespacedName) (*inspectapi.Inspection, error) {
			return r.inspect(ctx, key, time.Now)
		},
		Now: time.Now,
		Log: o.Log.WithName("inspect"),
	}); err != nil {
		return fmt.Errorf("add the server for plans: %w", err)
	}
	return nil
}

// leaseNamespace is where the leader's Lease is: as leader election finds it, the namespace of the
// pod if none was given.
func leaseNamespace(o Options) string {
	if o.LeaseNamespace != "" {
		return o.LeaseNamespace
	}
	own, err := os.ReadFile(ownNamespace)
	if err != nil {
		return "" // not in a pod: leader election has to be told, and says so
	}
	return strings.TrimSpace(string(own))
}

// leads says whether this replica leads, which is so from the moment that elected is closed until
// the process ends; else the pod that holds the lease.
func leads(elected <-chan struct{}, from client.Reader, lease client.ObjectKey,
	log logr.Logger) func(context.Context) (bool, string) {
	return func(ctx context.Context) (bool, string) {
		select {
		case <-elected:
			return true, ""
		default:
		}
		held := &coordinationv1.Lease{}
		if err := from.Get(ctx, lease, held); err != nil {
			log.V(1).Info("cannot say who leads", "reason", err.Error())
			return false, ""
		}
		return false, inspectapi.LeaderOf(held)
	}
}

// inspect observes a cluster and decides as a pass does, between two passes of that cluster, and
// leaves it at that.
func (r *Reconciler) inspect(ctx context.Context, key types.NamespacedName,
	now func() time.Time) (*inspectapi.Inspection, error) {
	// No memory is made for a name that somebody thought of.
	m := r.known(key)
	if m == nil {
		return nil, inspect.ErrNoCluster
	}
	if err := lock(ctx, &m.running); err != nil {
		return nil, err
	}
	defer m.running.Unlock()
	snapshot, err := r.Reader.Cluster(ctx, key, &m.store)
	switch {
	case errors.Is(err, observe.ErrBehind):
		return nil, fmt.Errorf("%w: %w", inspect.ErrNotNow, err)
	case err != nil:
		return nil, err
	case snapshot == nil:
		return nil, inspect.ErrNoCluster
	}
	at := now()
	by := inspectapi.Operator{Pod: hostname(), Version: snapshot.Install.Version}
	return inspectapi.Of(snapshot, r.decide(snapshot, at), by, at), nil
}

// known is the memory of a cluster that had a pass; nil if it had none.
func (r *Reconciler) known(key types.NamespacedName) *memory {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.clusters[key]
}

// lock waits for a mutex no longer than a context lasts.
func lock(ctx context.Context, mutex *sync.Mutex) error {
	held := make(chan struct{})
	go func() {
		mutex.Lock()
		select {
		case held <- struct{}{}:
		case <-ctx.Done():
			mutex.Unlock()
		}
	}()
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: a pass of the cluster takes long", inspect.ErrNotNow)
	}
}

// hostname is the name of the pod.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	name, _, _ = strings.Cut(name, ".")
	return name
}
