package operator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/observe"
)

// clockwork is a reconciler of a cluster whose writes and reads fail as is said, and a clock that
// the test moves.
type clockwork struct {
	*Reconciler
	client client.Client
	now    time.Time
	writes error
	reads  error
	told   *told
}

// told are the events that were recorded, as reason, name and version of the object and node.
type told []string

func (t *told) Eventf(regarding, related runtime.Object, _, reason, _, _ string, _ ...any) {
	line := reason + " of " + regarding.(client.Object).GetName()
	if n, is := related.(*v1alpha1.CassandraNode); is {
		line += ", node " + n.Name
	}
	*t = append(*t, line)
}

func newClockwork(t *testing.T) *clockwork {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &clockwork{now: at(), told: &told{}}
	c.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(someCluster()).WithStatusSubresource(
		&v1alpha1.CassandraCluster{},
	).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if c.writes != nil {
				return c.writes
			}
			return w.Create(ctx, o, options...)
		},
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			if c.reads != nil {
				return c.reads
			}
			return w.List(ctx, l, options...)
		},
	}).Build()
	now := func() time.Time { return c.now }
	c.Reconciler = &Reconciler{
		Reader: &observe.Reader{Cache: c.client, Live: c.client, Agents: &observe.Agents{},
			Install: facts.Install{Version: "v1", AgentImage: "agent"}, Now: now},
		Writer: &act.Writer{Client: c.client, Live: c.client, Recorder: c.told, Now: now},
		Status: c.client, Metrics: NewMetrics(prometheus.NewRegistry()), Now: now,
	}
	return c
}

// pauses makes passes, each when the one before asked for it, and returns what each asked for.
func (c *clockwork) pauses(t *testing.T, passes int) []time.Duration {
	t.Helper()
	var out []time.Duration
	for range passes {
		result, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: orders})
		if err != nil {
			t.Fatalf("the queue would choose the pause: %v", err)
		}
		out = append(out, result.RequeueAfter)
		c.now = c.now.Add(result.RequeueAfter)
	}
	return out
}

func seconds(n ...int) []time.Duration {
	out := make([]time.Duration, len(n))
	for i := range n {
		out[i] = time.Duration(n[i]) * time.Second
	}
	return out
}

func want(t *testing.T, what string, got, want []time.Duration) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: pauses of %v, want %v", what, got, want)
	}
}

func TestPassesThatFailAreMadeSlowerAndSlower(t *testing.T) {
	broken := apierrors.NewInternalError(errors.New("etcd has no leader"))
	t.Run("writes", func(t *testing.T) {
		c := newClockwork(t)
		c.writes = broken
		want(t, "failing", c.pauses(t, 9), seconds(1, 2, 4, 8, 16, 32, 60, 60, 60))
		c.writes = nil
		if c.pauses(t, 1); c.known(orders).failures != 0 {
			t.Error("a pass that succeeds does not end the failures")
		}
		c.writes = broken
		if err := c.client.DeleteAllOf(t.Context(), &corev1.Service{},
			client.InNamespace(orders.Namespace)); err != nil {
			t.Fatal(err)
		}
		want(t, "failing again", c.pauses(t, 3), seconds(1, 2, 4))
	})
	t.Run("reads", func(t *testing.T) {
		c := newClockwork(t)
		c.reads = broken
		want(t, "failing", c.pauses(t, 8), seconds(1, 2, 4, 8, 16, 32, 60, 60))
	})
	t.Run("reads that events ask for", func(t *testing.T) {
		c := newClockwork(t)
		c.reads = broken
		before := c.memory(orders).pace.TokensAt(c.now)
		if c.pauses(t, 1); c.memory(orders).pace.TokensAt(at()) != before-1 {
			t.Error("a pass that cannot read costs nothing")
		}
	})
	t.Run("until the spec changes", func(t *testing.T) {
		c := newClockwork(t)
		c.writes = broken
		c.pauses(t, 8)
		changed := &v1alpha1.CassandraCluster{}
		if err := c.client.Get(t.Context(), orders, changed); err != nil {
			t.Fatal(err)
		}
		changed.Generation++
		if err := c.client.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		want(t, "under another spec", c.pauses(t, 3), seconds(1, 2, 4))
	})
	t.Run("and races are none", func(t *testing.T) {
		c := newClockwork(t)
		c.writes = apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("x").GroupResource(), "x",
			errors.New("changed"))
		want(t, "losing", c.pauses(t, 5), slices.Repeat([]time.Duration{passMoment}, 5))
	})
	t.Run("and do not keep an event waiting", func(t *testing.T) {
		c := newClockwork(t)
		c.writes = broken
		c.pauses(t, 8)
		c.now = c.now.Add(-longestPause + firstPause) // an event wakes the cluster a second after the last pass
		c.writes = nil
		if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: orders}); err != nil {
			t.Fatal(err)
		}
		ledger := v1alpha1.LedgerName("orders")
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: ledger},
			&corev1.ConfigMap{}); err != nil {
			t.Errorf("the pass did nothing: %v", err)
		}
	})
}

// With events that do not end, passes that write nothing follow on each other after a moment, those
// that write in a burst and then once in an interval, and long ones after many times what they
// took.
func TestPassesAreMadeByWhatTheyCost(t *testing.T) {
	for name, c := range map[string]struct {
		wrote  bool
		took   time.Duration
		passes int
		within time.Duration
	}{
		"those that write nothing": {passes: 2*passBurst + 1, within: 2 * passBurst * passMoment},
		"those that write a few":   {wrote: true, passes: passBurst, within: (passBurst - 1) * passMoment},
		"those that write":         {wrote: true, passes: 4 * passBurst, within: 3 * passBurst * passInterval},
		"long ones":                {took: passMoment, passes: 4, within: 3 * passShare * passMoment},
	} {
		t.Run(name, func(t *testing.T) {
			m, now := (&memories{}).memory(orders), at()
			for n := range c.passes {
				for left := m.left(now); left > 0; left = m.left(now) {
					now = now.Add(left)
				}
				m.made(now, now.Add(c.took), c.wrote)
				if n < c.passes-1 {
					now = now.Add(c.took)
				}
			}
			if got := now.Sub(at()).Round(time.Millisecond); got != c.within {
				t.Errorf("%d passes within %v, want %v", c.passes, got, c.within)
			}
		})
	}
	c := newClockwork(t)
	request := ctrl.Request{NamespacedName: orders}
	if _, err := c.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if result, err := c.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != passMoment {
		t.Errorf("a pass at once after another one: %v, %v", result, err)
	}
}

// Two operators look at the same: the one whose status is taken tells what has changed, the other
// nothing. What is told already is not told again.
func TestWhoeverWritesTheStatusTellsWhatHasChanged(t *testing.T) {
	c := newClockwork(t)
	seen := someCluster()
	if err := c.client.Get(t.Context(), orders, seen); err != nil {
		t.Fatal(err)
	}
	s := &facts.Snapshot{Cluster: seen, Nodes: map[string]*facts.Node{"n1": {Name: "n1",
		Record: &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}}}
	decided := plan.Plan{Stalled: &plan.Stall{Reason: v1alpha1.ReasonNameTaken},
		Blocked: []v1alpha1.BlockedStep{{Step: "Join", Reason: v1alpha1.BlockedMemberDown, Nodes: []string{"n1"}}}}
	publish := func() error {
		_, err := c.publish(t.Context(), s, statusAfter(s, decided, act.Result{}, c.now), &consistency.Store{})
		return err
	}
	want := told{"StepBlocked of orders, node n1", "Stalled of orders"}
	if err := publish(); err != nil || !slices.Equal(*c.told, want) {
		t.Errorf("told %q (%v), want %q", *c.told, err, want)
	}
	if err := publish(); !apierrors.IsConflict(err) || !slices.Equal(*c.told, want) {
		t.Errorf("after another has written: told %q (%v)", *c.told, err)
	}
	if err := c.client.Get(t.Context(), orders, seen); err != nil {
		t.Fatal(err)
	}
	if err := publish(); err != nil || !slices.Equal(*c.told, want) {
		t.Errorf("the next operator: told %q (%v)", *c.told, err)
	}
}

// A time that was computed in UTC, and comes back from the API server in the zone of this host.
func TestAStatusThatSaysTheSameIsNotWritten(t *testing.T) {
	s := &facts.Snapshot{Cluster: someCluster()}
	s.Cluster.Status.Repair = &v1alpha1.RepairStatus{Oldest: &v1alpha1.OldestRepair{
		Deadline: metav1.NewTime(time.Unix(1e9, 0).Local())}}
	next := *s.Cluster.Status.DeepCopy()
	next.Repair.Oldest.Deadline = metav1.NewTime(time.Unix(1e9, 0).UTC())
	r := &Reconciler{Status: reading(t)}
	if wrote, err := r.publish(t.Context(), s, next, &consistency.Store{}); wrote || err != nil {
		t.Errorf("written: %v, %v", wrote, err)
	}
}
