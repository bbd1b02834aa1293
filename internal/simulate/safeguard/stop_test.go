package safeguard

import (
	"context"
	"errors"
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

// stopsUnheard is a stop of which the agent of a node hears a minute late.
func stopsUnheard(t *testing.T) *trial.Scenario {
	t.Helper()
	return found(t, "stop").With("stop-unheard", "stop", trial.Act{Name: "the watches of an agent tell it nothing",
		Do: func(w *world.World) error {
			pods := w.Pods.Sandboxes()
			if len(pods) == 0 {
				return errors.New("no pod runs")
			}
			w.Blind(pods[0], true)
			w.Line.After(time.Minute, "the watches start over", func() { w.Blind(pods[0], false) })
			return nil
		}})
}

// A ring is drained when no node is open to clients any more, and none keeps hints for another.
func TestAStopIsInOrder(t *testing.T) {
	unheard, hints := stopsUnheard(t), found(t, "stop-hints")
	refused := judged(t)
	if holds(t, trial.Trial{Scenario: unheard, Seed: 1}); refused["ClientTrafficOpen"] == 0 {
		t.Error("nothing was refused")
	}
	if holds(t, trial.Trial{Scenario: hints, Seed: 1}); refused["HintsNotDelivered"] == 0 {
		t.Error("nothing was refused")
	}
	judged(t, "ClientTrafficOpen", "HintsNotDelivered")
	caught(t, trial.Trial{Scenario: unheard, Seed: 1}, "is asked to stop with all others while")
	caught(t, trial.Trial{Scenario: hints, Seed: 1}, "keeps hints for")
}

// A datacenter is not stopped while nobody else could serve a keyspace.
func TestADatacenterIsNotStoppedWithTheOnlyReplicas(t *testing.T) {
	s := found(t, "stop-datacenter-alone")
	refused := judged(t)
	if holds(t, trial.Trial{Scenario: s, Seed: 1}); refused["OnlyReplicas"] == 0 {
		t.Error("nothing was refused")
	}
	judged(t, "OnlyReplicas")
	caught(t, trial.Trial{Scenario: s, Seed: 1}, "act write there is not over")
}

// A ring that was stopped for long starts without a node whose host was lost meanwhile, because the
// ledger says since when none ran; without that it waits for ever.
func TestACommonAbsenceIsKnown(t *testing.T) {
	s := found(t, "stop-without-one")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: world.Wrap{
		Client: func(_ *world.Operator, c client.Client) client.Client { return forgetsStops{c} },
	}}, "act start is not over")
}

// forgetsStops writes ledgers that do not say when a ring was stopped.
type forgetsStops struct{ client.Client }

func (f forgetsStops) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	m, is := o.(*corev1.ConfigMap)
	if is && strings.Contains(m.Data[ledger.Key], `"stopped":`) {
		l, err := ledger.Decode(m.Data, types.UID(m.Labels[v1alpha1.LabelClusterUID]))
		if err != nil {
			return err
		}
		l.Stopped = nil
		if m.Data, err = ledger.Encode(l); err != nil {
			return err
		}
	}
	return f.Client.Update(ctx, o, options...)
}
