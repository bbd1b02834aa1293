package operator

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/status"
	"helenus.io/helenus/internal/inspect"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/internal/observe"
)

// addInspection lets people ask the replica that leads for the plan of a cluster, and watch it.
func addInspection(m manager.Manager, r *Reconciler, o Options, certificate tls.Certificate) error {
	served := &inspect.Server{
		Address:     o.InspectAddress,
		Certificate: certificate,
		Reviews:     inspect.Reviews{Live: m.GetAPIReader(), Client: m.GetClient()},
		Inspect: func(ctx context.Context, key types.NamespacedName,
			spec *v1alpha1.CassandraClusterSpec) (*inspectapi.Inspection, error) {
			return r.inspect(ctx, key, spec, time.Now)
		},
		Replicas: r.replicas,
		Board:    r.Board,
		Look:     r.look,
		Fleet: func(ctx context.Context, namespace string) ([]inspectapi.Brief, error) {
			return fleet(ctx, m.GetClient(), namespace)
		},
		Now: time.Now,
		Log: o.Log.WithName("inspect"),
	}
	if o.InspectAddress != "" && o.InspectAddress != "0" {
		if err := m.Add(served); err != nil {
			return fmt.Errorf("add the server for plans: %w", err)
		}
	}
	if !o.Console.served() {
		return nil
	}
	if err := m.Add(&inspect.Public{Server: served, Address: o.Console.Address, Hosts: o.Console.Hosts,
		CertificateDir: o.Console.CertificateDir, Leads: m.Elected(), Leader: func(ctx context.Context) (inspect.Leader, error) {
			return leader(ctx, m.GetAPIReader(), cmp.Or(o.LeaseNamespace, o.Install.Namespace), o.Console.Address)
		}}); err != nil {
		return fmt.Errorf("add the server for browsers: %w", err)
	}
	return nil
}

// inspect observes a cluster and decides as a pass does, between two passes of that cluster, and
// leaves it at that. With a spec it decides as if the cluster had that.
func (r *Reconciler) inspect(ctx context.Context, key types.NamespacedName, spec *v1alpha1.CassandraClusterSpec,
	now func() time.Time) (*inspectapi.Inspection, error) {
	var out *inspectapi.Inspection
	err := r.between(ctx, key, func(snapshot *facts.Snapshot) error {
		if spec != nil {
			judged, c := *snapshot, *snapshot.Cluster
			c.Spec, c.Status.ObservedGeneration = *spec, 0 // nobody has seen it
			if judged.Cluster = &c; judged.Defaults.Node != nil {
				judged.Cluster = render.WithDefaults(&c, judged.Defaults.Node)
			}
			snapshot = &judged
		}
		at := now()
		made := r.decide(snapshot, at)
		out = inspectapi.Of(snapshot, made, operatorOf(snapshot), at)
		out.RollOut = cluster.Ahead(snapshot, made, at)
		return nil
	})
	return out, err
}

// replicas says who holds a keyspace of a cluster, or a key of it.
func (r *Reconciler) replicas(ctx context.Context, key types.NamespacedName, keyspace string,
	token *ring.Token) (*status.Replicas, error) {
	var out *status.Replicas
	err := r.between(ctx, key, func(s *facts.Snapshot) (err error) {
		if out, err = status.ReplicasOf(s, keyspace, token); err != nil && !errors.Is(err, status.ErrNoKeyspace) {
			err = fmt.Errorf("%w: %w", inspect.ErrNotNow, err)
		}
		return err
	})
	return out, err
}

// between observes a cluster, and has something done with that before its next pass.
func (r *Reconciler) between(ctx context.Context, key types.NamespacedName, do func(*facts.Snapshot) error) error {
	// No memory is made for a name that somebody thought of.
	m := r.known(key)
	if m == nil {
		return inspect.ErrNoCluster
	}
	select {
	case m.running <- struct{}{}:
		defer func() { <-m.running }()
	case <-ctx.Done():
		return fmt.Errorf("%w: a pass of the cluster takes long", inspect.ErrNotNow)
	}
	snapshot, err := r.Reader.Cluster(ctx, key, &m.store)
	switch {
	case errors.Is(err, observe.ErrBehind):
		return fmt.Errorf("%w: %w", inspect.ErrNotNow, err)
	case err != nil:
		return err
	case snapshot == nil:
		return inspect.ErrNoCluster
	}
	return do(snapshot)
}

// look has those who watch a cluster shown what a pass would find now.
func (r *Reconciler) look(ctx context.Context, key types.NamespacedName) error {
	return r.between(ctx, key, func(s *facts.Snapshot) error {
		at := r.Now()
		return r.show(key, s, r.decide(s, at), s.Cluster.Status, at)
	})
}

// show puts up what a pass has found, if somebody watches the cluster.
func (r *Reconciler) show(key types.NamespacedName, s *facts.Snapshot, made plan.Plan,
	is v1alpha1.CassandraClusterStatus, at time.Time) error {
	if !r.Board.Watched(key) {
		return nil
	}
	view := inspectapi.ViewOf(s, made, cluster.Ahead(s, made, at), is, operatorOf(s), status.Serves)
	text, err := json.Marshal(view)
	if err != nil {
		return fmt.Errorf("encode the view of a cluster: %w", err)
	}
	r.Board.Put(key, text, at)
	return nil
}

// fleet lists the clusters that this operator watches.
func fleet(ctx context.Context, from client.Reader, namespace string) ([]inspectapi.Brief, error) {
	list := &v1alpha1.CassandraClusterList{}
	if err := from.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list CassandraClusters: %w", err)
	}
	out := make([]inspectapi.Brief, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, inspectapi.BriefOf(&list.Items[i]))
	}
	slices.SortFunc(out, func(a, b inspectapi.Brief) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Cluster, b.Cluster))
	})
	return out, nil
}

func operatorOf(s *facts.Snapshot) inspectapi.Operator {
	return inspectapi.Operator{Pod: hostname(), Version: s.Install.Version}
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
