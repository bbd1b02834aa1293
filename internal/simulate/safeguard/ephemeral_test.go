package safeguard

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
