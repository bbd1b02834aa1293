package safeguard

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// cached answers from the cache what an operator asks the API server in order to be sure: its
// cluster, records, pods and ledger.
type cached struct {
	client.Reader
	cache client.Reader
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	switch object.(type) {
	case *v1alpha1.CassandraCluster, *corev1.ConfigMap:
		return c.cache.Get(ctx, key, object, options...)
	default:
		return c.Reader.Get(ctx, key, object, options...)
	}
}

func (c cached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.cache.List(ctx, list, options...)
}

// notLive has an operator believe its cache.
func notLive(w world.Wrap) world.Wrap {
	w.Live = func(_ *world.Operator, live, cache client.Reader) client.Reader { return cached{live, cache} }
	return w
}

var ledgerKey = keyOf(v1alpha1.LedgerName(clusterName))

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: world.Namespace, Name: name}
}

// ledgerOf is the ledger as it is at the API server; nil if there is none.
func ledgerOf(w *world.World) *ledger.Ledger {
	m, _ := w.Server.Object("ConfigMap", ledgerKey).(*corev1.ConfigMap)
	if m == nil {
		return nil
	}
	l, err := ledger.Decode(m.Data, types.UID(m.Labels[v1alpha1.LabelClusterUID]))
	if err != nil {
		return nil
	}
	return l
}

// formedStale is the scenario of a formation that a standby sees up to the tickets, before it
// becomes the leader when clients are in. Kinds are those of which its view stands still; all if
// none is named. The image is given by digest: to note another one in a record would be refused
// before the ledger is written.
func formedStale(kinds ...string) *trial.Scenario {
	s := trial.Named("create-stale-standby", "a ring forms, and a standby that saw only the beginning leads", false,
		func(c *v1alpha1.CassandraCluster) {
			c.Spec.Image = "cassandra:5.0.6@sha256:" + strings.Repeat("0a", 32)
		})
	s = s.With(s.Name, "create", standby())
	create := &s.Acts[len(s.Acts)-1]
	create.Until = func(w *world.World) bool { l := ledgerOf(w); return l != nil && l.Step != nil }
	return s.With(s.Name, "", append([]trial.Act{freeze(trial.Serves, 15*time.Minute, kinds...)}, failover()...)...)
}

// The read past the cache before a step, and the compare-and-swap of the ledger, double each other.
func TestLiveReadAndLedger(t *testing.T) {
	s := formedStale()
	refuses(t, holds(t, trial.Trial{Scenario: s, Seed: 1, Tell: true}), "confirm before")

	refused := refusals{}
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: notLive(stripping(nothing, refused))})
	refused.want(t, refusal{theStandby, "update", "ConfigMap", byVersion})
	noSwap := of(isLedger, identity{version: true})
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: stripping(noSwap, refusals{})})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: notLive(stripping(noSwap, refusals{}))}, "I11")
}
