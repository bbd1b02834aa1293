package safeguard

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// hasty takes an agent that does not answer for one that says that its disk is empty.
type hasty struct {
	observe.Asker
	target observe.Target
}

func (h hasty) Facts(ctx context.Context) (*facts.Agent, error) { return h.or(h.Asker.Facts(ctx)) }

func (h hasty) WaitFacts(ctx context.Context, digest string, limit time.Duration) (*facts.Agent, error) {
	return h.or(h.Asker.WaitFacts(ctx, digest, limit))
}

func (h hasty) or(answer *facts.Agent, err error) (*facts.Agent, error) {
	if err == nil {
		return answer, nil
	}
	t := h.target
	return &facts.Agent{
		ClusterUID: t.UID, Node: t.Node, PodUID: t.Pod, Address: t.Address, Disk: v1alpha1.DiskEmpty,
		Phase: v1alpha1.PhaseWaiting, Process: facts.ProcessAbsent,
	}, nil
}

// loseLedgerAnd deletes the ledger and records, at once and while no operator runs; another one
// starts then.
func loseLedgerAnd(w *world.World, records ...client.Object) error {
	w.Operators()[0].Kill()
	if err := w.User().Delete(context.Background(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ledgerKey.Namespace,
			Name: ledgerKey.Name}}); err != nil {
		return err
	}
	for _, o := range records {
		n := o.(*v1alpha1.CassandraNode).DeepCopy()
		n.Finalizers = nil
		if err := w.User().Update(context.Background(), n); err != nil {
			return err
		}
		if err := w.User().Delete(context.Background(), n); err != nil {
			return err
		}
	}
	w.StartOperator(world.Install)
	return nil
}

// allLostWhileAway is the scenario of a cluster whose ledger and records are deleted while one of
// its hosts is down.
func allLostWhileAway() *trial.Scenario {
	return trial.Named("ledger-and-records-lost",
		"the ledger and all records are deleted at once while a host is cut off and no operator runs", true, nil,
		trial.Act{Name: "cut off", Do: func(w *world.World) error { w.Partition(w.Kube.Hosts()[0], true); return nil },
			Until: notServing, Within: 10 * time.Minute},
		trial.Act{Name: "delete", Do: func(w *world.World) error {
			members := ledgerOf(w).Members
			if err := loseLedgerAnd(w, w.Server.Objects("CassandraNode")...); err != nil {
				return err
			}
			w.Line.RunFor(3 * time.Minute)
			if l := ledgerOf(w); l != nil && !maps.Equal(l.Members, members) {
				return fmt.Errorf("the members %v are rebuilt as %v", members, l.Members)
			}
			return nil
		}},
		trial.Act{Name: "heal", Do: func(w *world.World) error { w.Heal(w.Kube.Hosts()[0]); return nil },
			Until: trial.Serves, Within: 20 * time.Minute})
}

// A lost ledger is rebuilt when every disk has said what it holds: silence is no answer.
func TestALostLedgerIsRebuiltFromAllDisks(t *testing.T) {
	s := allLostWhileAway()
	refuses(t, holds(t, trial.Trial{Scenario: s, Seed: 1, Tell: true}),
		"the ledger is lost; waiting for what the disks of")
	away := world.Wrap{Asker: func(_ *world.Operator, t observe.Target, a observe.Asker) observe.Asker {
		return hasty{a, t}
	}}
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: away}, "are rebuilt as")
}
