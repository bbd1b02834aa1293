package observe

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/core/consistency"
)

// A plan may rest on it that a claim never had a volume. It is looked at again before a step is taken.
func TestAClaimThatHasGotAVolumeSinceIsAChange(t *testing.T) {
	for name, c := range map[string]struct {
		seen    func(*corev1.PersistentVolumeClaim)
		since   func(context.Context, client.Client, *corev1.PersistentVolumeClaim) error
		changed bool
	}{
		"nothing happened": {nil, func(context.Context, client.Client, *corev1.PersistentVolumeClaim) error { return nil }, false},
		"a volume is bound": {nil, func(ctx context.Context, live client.Client, c *corev1.PersistentVolumeClaim) error {
			c.Status.Phase = corev1.ClaimBound
			return live.Status().Update(ctx, c)
		}, true},
		"a volume is chosen": {nil, func(ctx context.Context, live client.Client, c *corev1.PersistentVolumeClaim) error {
			c.Spec.VolumeName = "v"
			return live.Update(ctx, c)
		}, true},
		"it is gone": {nil, func(ctx context.Context, live client.Client, c *corev1.PersistentVolumeClaim) error {
			return live.Delete(ctx, c)
		}, true},
		"it is another one": {nil, func(ctx context.Context, live client.Client, c *corev1.PersistentVolumeClaim) error {
			c.UID = types.UID("claim-2")
			return live.Update(ctx, c)
		}, true},
		"it had a volume, and is gone": {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }, func(ctx context.Context, live client.Client, c *corev1.PersistentVolumeClaim) error {
			return live.Delete(ctx, c)
		}, false},
	} {
		seen := claim()
		if c.seen != nil {
			c.seen(seen)
		}
		r := reader(t, record("record-1"), seen)
		s, err := r.Cluster(t.Context(), orders, &consistency.Store{})
		if err != nil {
			t.Fatal(err)
		}
		live := r.Live.(client.Client)
		if err := live.Get(t.Context(), client.ObjectKeyFromObject(seen), seen); err != nil {
			t.Fatal(err)
		}
		if err := c.since(t.Context(), live, seen); err != nil {
			t.Fatal(err)
		}
		if err := r.Confirm(t.Context(), s); errors.Is(err, ErrChanged) != c.changed || err != nil && !c.changed {
			t.Errorf("%s: %v, want a change: %v", name, err, c.changed)
		}
	}
}
