package safeguard

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// A roll-out that has two nodes at once give up the data in their pods is caught.
func TestOneNodeAtATimeGivesUpItsPod(t *testing.T) {
	s := found(t, "ephemeral-rollout")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	two := writing(func(c client.Client) client.Client { return inTwos{c} })
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: two}, "with its data")
}

// An agent that forgets who its node was by its ticket before its disk was lost is caught: the node
// would join twice by one ticket, without the rows that others count on.
func TestALostDiskEndsATicket(t *testing.T) {
	s := *found(t, "ephemeral-rollout")
	change := s.Acts[len(s.Acts)-1]
	end := change.Until
	change.Until = func(w *world.World) bool {
		n := recordAt(w, first)
		return n.Spec.Join != nil && n.Status.Join != nil && n.Status.Join.ID == n.Spec.Join.ID &&
			n.Status.Join.FinishedAt != nil
	}
	s.Name, s.Acts = "ephemeral-joined", append(slices.Clone(s.Acts[:len(s.Acts)-1]), change,
		trial.Act{Name: "delete the pod of one that has just joined",
			Do: func(w *world.World) error { return deletePod(w, first) }, Until: end, Within: 4 * time.Hour})
	holds(t, trial.Trial{Scenario: &s, Seed: 1})
	caught(t, trial.Trial{Scenario: &s, Seed: 1, Wrap: host(func(_ *pod.Sandbox, h *execute.Host) {
		h.Record = nameless{h.Record}
	})}, "starts on an empty disk")
}

// nameless are records that do not say who a node was.
type nameless struct{ recordOf }

func (f nameless) Record() (*v1alpha1.CassandraNode, bool) {
	record, known := f.recordOf.Record()
	if record == nil {
		return nil, known
	}
	record = record.DeepCopy()
	record.Status.HostID = ""
	return record, known
}

// inTwos deletes a second pod with each.
type inTwos struct{ client.Client }

func (d inTwos) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	err := d.Client.Delete(ctx, object, options...)
	const another = clusterName + "-dc1-r3-0"
	if _, is := object.(*corev1.Pod); !is || object.GetName() == another {
		return err
	}
	return errors.Join(err, d.Client.Delete(ctx,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: another}}))
}
