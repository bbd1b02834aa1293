package observe

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
)

// A plan may rest on it that a claim never had a volume. It is looked at again before a step is
// taken.
func TestAClaimThatHasGotAVolumeSinceIsAChange(t *testing.T) {
	for name, c := range map[string]struct {
		seen    func(*corev1.PersistentVolumeClaim)
		since   func(context.Context, client.Client, *corev1.PersistentVolumeClaim) error
		changed bool
	}{
		"nothing happened": {nil, func(context.Context, client.Client, *corev1.PersistentVolumeClaim) error {
			return nil
		}, false},
		"a volume is bound": {nil, func(ctx context.Context, live client.Client,
			c *corev1.PersistentVolumeClaim) error {
			c.Status.Phase = corev1.ClaimBound
			return live.Status().Update(ctx, c)
		}, true},
		"a volume is chosen": {nil, func(ctx context.Context, live client.Client,
			c *corev1.PersistentVolumeClaim) error {
			c.Spec.VolumeName = "v"
			return live.Update(ctx, c)
		}, true},
		"it is gone": {nil, func(ctx context.Context, live client.Client, c *corev1.PersistentVolumeClaim) error {
			return live.Delete(ctx, c)
		}, true},
		"it is another one": {nil, func(ctx context.Context, live client.Client,
			c *corev1.PersistentVolumeClaim) error {
			c.UID = types.UID("claim-2")
			return live.Update(ctx, c)
		}, true},
		"it had a volume, and is gone": {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" },
			func(ctx context.Context, live client.Client, c *corev1.PersistentVolumeClaim) error {
				return live.Delete(ctx, c)
			}, false},
	} {
		seen := claim()
		if c.seen != nil {
			c.seen(seen)
		}
		r := reader(t, record("record-1"), seen)
		if err := confirmedSince(t, r, seen, c.since); errors.Is(err, ErrChanged) != c.changed ||
			err != nil && !c.changed {
			t.Errorf("%s: %v, want a change: %v", name, err, c.changed)
		}
	}
}

// confirmedSince looks at the cluster, has something happen to an object of it, and returns what
// Confirm says then.
func confirmedSince[T client.Object](t *testing.T, r *Reader, seen T,
	since func(context.Context, client.Client, T) error) error {
	t.Helper()
	s, err := r.Cluster(t.Context(), orders, &consistency.Store{})
	if err != nil {
		t.Fatal(err)
	}
	live := r.Live.(client.Client)
	if err := live.Get(t.Context(), client.ObjectKeyFromObject(seen), seen); err != nil {
		t.Fatal(err)
	}
	if err := since(t.Context(), live, seen); err != nil {
		t.Fatal(err)
	}
	return r.Confirm(t.Context(), s, &consistency.Store{})
}

// What is decided on is the ledger as it was seen.
func TestALedgerThatIsAnotherSinceIsAChange(t *testing.T) {
	for name, c := range map[string]struct {
		since   func(context.Context, client.Client, *corev1.ConfigMap) error
		changed bool
	}{
		"nothing happened": {func(context.Context, client.Client, *corev1.ConfigMap) error { return nil }, false},
		"it was written": {func(ctx context.Context, live client.Client, m *corev1.ConfigMap) error {
			m.Data["x"] = "y"
			return live.Update(ctx, m)
		}, true},
		"it is gone": {func(ctx context.Context, live client.Client, m *corev1.ConfigMap) error {
			return live.Delete(ctx, m)
		}, true},
		"it is another one": {func(ctx context.Context, live client.Client, m *corev1.ConfigMap) error {
			m.UID = "ledger-2"
			return live.Update(ctx, m)
		}, true},
	} {
		seen := withLedger(t)
		seen.UID = "ledger-1"
		r := reader(t, record("record-1"), claim(), seen)
		if err := confirmedSince(t, r, seen, c.since); errors.Is(err, ErrChanged) != c.changed ||
			err != nil && !c.changed {
			t.Errorf("%s: %v, want a change: %v", name, err, c.changed)
		}
	}
}

// A plan writes the ledger first, and then what is to be done by it.
func TestWhatThePlanItselfWroteIsNoChange(t *testing.T) {
	for name, since := range map[string]func(client.Object){
		"alone":               nil,
		"and somebody since":  func(o client.Object) { o.SetAnnotations(map[string]string{"x": "y"}) },
		"and it is recreated": func(o client.Object) { o.SetUID("another") },
	} {
		for _, kind := range []string{"ConfigMap", "CassandraNode"} {
			l, n, own := withLedger(t), record("record-1"), &consistency.Store{}
			l.UID = "ledger-1"
			r := reader(t, n, claim(), l)
			s, err := r.Cluster(t.Context(), orders, &consistency.Store{})
			if err != nil {
				t.Fatal(err)
			}
			var o client.Object = n
			if kind == "ConfigMap" {
				o = l
			}
			write := func(change func(client.Object)) {
				live := r.Live.(client.Client)
				if err := live.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
					t.Fatal(err)
				}
				change(o)
				if err := live.Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			write(func(o client.Object) { o.SetGeneration(o.GetGeneration() + 1) })
			own.Wrote(consistency.Key{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}, o.GetUID(),
				o.GetResourceVersion())
			changed := since != nil
			if changed {
				write(since)
			}
			if err := r.Confirm(t.Context(), s, own); errors.Is(err, ErrChanged) != changed || err != nil && !changed {
				t.Errorf("%s was written by the plan, %s: %v, want a change: %v", kind, name, err, changed)
			}
		}
	}
}

// The labels of a record or a pod may be gone when a plan is confirmed that puts them back.
func TestWhatHasLostItsLabelsIsConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		strip, since func(*v1alpha1.CassandraNode, *corev1.Pod)
		changed      bool
	}{
		"a record": {func(n *v1alpha1.CassandraNode, _ *corev1.Pod) { n.Labels = nil }, nil, false},
		"a record that has them again": {func(n *v1alpha1.CassandraNode, _ *corev1.Pod) { n.Labels = nil },
			func(n *v1alpha1.CassandraNode, _ *corev1.Pod) { n.Labels = record("record-1").Labels }, false},
		"a record that is another": {func(n *v1alpha1.CassandraNode, _ *corev1.Pod) { n.Labels = nil },
			func(n *v1alpha1.CassandraNode, _ *corev1.Pod) { n.UID = "record-2" }, true},
		"a pod": {func(_ *v1alpha1.CassandraNode, p *corev1.Pod) { p.Labels = nil }, nil, false},
		"a pod that is another": {func(_ *v1alpha1.CassandraNode, p *corev1.Pod) { p.Labels = nil },
			func(_ *v1alpha1.CassandraNode, p *corev1.Pod) { p.UID = "pod-2" }, true},
	} {
		n := record("record-1")
		p := podOf(n)
		c.strip(n, p)
		r := reader(t, n, p, claim())
		s, err := r.Cluster(t.Context(), orders, &consistency.Store{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Nodes[first].Record == nil || s.Nodes[first].Pod == nil {
			t.Fatalf("%s: not found: %+v", name, s.Nodes[first])
		}
		if c.since != nil {
			live := r.Live.(client.Client)
			for _, o := range []client.Object{n, p} {
				if err := live.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
					t.Fatal(err)
				}
			}
			c.since(n, p)
			for _, o := range []client.Object{n, p} {
				if err := live.Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
		}
		err = r.Confirm(t.Context(), s, &consistency.Store{})
		if errors.Is(err, ErrChanged) != c.changed || err != nil && !c.changed {
			t.Errorf("%s: %v, want a change: %v", name, err, c.changed)
		}
	}
}

// A task that has finished, gone or been deleted since begins nothing. What else its status says by
// now is no change.
func TestATaskThatHasFinishedSinceIsAChange(t *testing.T) {
	status := func(phase v1alpha1.TaskPhase) func(context.Context, client.Client, *v1alpha1.CassandraTask) error {
		return func(ctx context.Context, live client.Client, task *v1alpha1.CassandraTask) error {
			task.Status.Phase = phase
			return live.Update(ctx, task)
		}
	}
	for name, c := range map[string]struct {
		cluster string
		since   func(context.Context, client.Client, *v1alpha1.CassandraTask) error
		changed bool
	}{
		"it runs":      {orders.Name, status(v1alpha1.TaskRunning), false},
		"it succeeded": {orders.Name, status(v1alpha1.TaskSucceeded), true},
		"it failed":    {orders.Name, status(v1alpha1.TaskFailed), true},
		"it is gone": {orders.Name, func(ctx context.Context, live client.Client, task *v1alpha1.CassandraTask) error {
			return live.Delete(ctx, task)
		}, true},
		"it is another one": {orders.Name, func(ctx context.Context, live client.Client,
			task *v1alpha1.CassandraTask) error {
			task.UID = "task-2"
			return live.Update(ctx, task)
		}, true},
		"that of another cluster failed": {"carts", status(v1alpha1.TaskFailed), false},
	} {
		seen := &v1alpha1.CassandraTask{}
		seen.Namespace, seen.Name, seen.UID, seen.Spec.Cluster.Name = orders.Namespace, "flush", "task-1", c.cluster
		r := reader(t, record("record-1"), claim(), seen)
		if err := confirmedSince(t, r, seen, c.since); errors.Is(err, ErrChanged) != c.changed ||
			err != nil && !c.changed {
			t.Errorf("%s: %v, want a change: %v", name, err, c.changed)
		}
	}
}

// What a restore has replaced since is not replaced again.
func TestRowsThatAreReplacedSinceAreAChange(t *testing.T) {
	kept := func(truncated *metav1.Time) func(context.Context, client.Client, *v1alpha1.CassandraRestore) error {
		return func(ctx context.Context, live client.Client, r *v1alpha1.CassandraRestore) error {
			r.Status.Message = "later"
			r.Status.Replaced.TruncatedAt = truncated
			return live.Update(ctx, r)
		}
	}
	at := metav1.Unix(1, 0)
	for truncated, changed := range map[*metav1.Time]bool{nil: false, &at: true} {
		seen := &v1alpha1.CassandraRestore{Status: v1alpha1.CassandraRestoreStatus{
			Replaced: &v1alpha1.ReplacedRows{Snapshot: "replaced-1", KeptAt: at}}}
		seen.Namespace, seen.Name, seen.UID, seen.Spec.Cluster.Name = orders.Namespace, "carts", "restore-1", orders.Name
		r := reader(t, record("record-1"), claim(), seen)
		if err := confirmedSince(t, r, seen, kept(truncated)); errors.Is(err, ErrChanged) != changed ||
			err != nil && !changed {
			t.Errorf("truncated at %v: %v", truncated, err)
		}
	}
}
