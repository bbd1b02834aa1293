package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster"
	"helenus.io/helenus/internal/inspect"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/internal/observe"
)

// addInspection lets people ask the replica that leads for the plan of a cluster.
func addInspection(m manager.Manager, r *Reconciler, o Options, certificate tls.Certificate) error {
	if o.InspectAddress == "" || o.InspectAddress == "0" {
		return nil
	}
	if err := m.Add(&inspect.Server{
		Address:     o.InspectAddress,
		Certificate: certificate,
		Reviews:     inspect.Reviews{Live: m.GetAPIReader(), Client: m.GetClient()},
		Inspect: func(ctx context.Context, key types.NamespacedName,
			spec *v1alpha1.CassandraClusterSpec) (*inspectapi.Inspection, error) {
			return r.inspect(ctx, key, spec, time.Now)
		},
		Now: time.Now,
		Log: o.Log.WithName("inspect"),
	}); err != nil {
		return fmt.Errorf("add the server for plans: %w", err)
	}
	return nil
}

// inspect observes a cluster and decides as a pass does, between two passes of that cluster, and
// leaves it at that. With a spec it decides as if the cluster had that.
func (r *Reconciler) inspect(ctx context.Context, key types.NamespacedName, spec *v1alpha1.CassandraClusterSpec,
	now func() time.Time) (*inspectapi.Inspection, error) {
	// No memory is made for a name that somebody thought of.
	m := r.known(key)
	if m == nil {
		return nil, inspect.ErrNoCluster
	}
	select {
	case m.running <- struct{}{}:
		defer func() { <-m.running }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: a pass of the cluster takes long", inspect.ErrNotNow)
	}
	snapshot, err := r.Reader.Cluster(ctx, key, &m.store)
	switch {
	case errors.Is(err, observe.ErrBehind):
		return nil, fmt.Errorf("%w: %w", inspect.ErrNotNow, err)
	case err != nil:
		return nil, err
	case snapshot == nil:
		return nil, inspect.ErrNoCluster
	}
	if spec != nil {
		judged, c := *snapshot, *snapshot.Cluster
		c.Spec = *spec
		judged.Cluster, snapshot = &c, &judged
	}
	at := now()
	made := r.decide(snapshot, at)
	out := inspectapi.Of(snapshot, made, inspectapi.Operator{Pod: hostname(), Version: snapshot.Install.Version}, at)
	out.RollOut = cluster.Ahead(snapshot, made, at)
	return out, nil
}

// known is the memory of a cluster that had a pass; nil if it had none.
func (r *Reconciler) known(key types.NamespacedName) *memory {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.all[key]
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
