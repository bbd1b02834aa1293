package safeguard

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// ready of a host, by the API server.
func readiness(w *world.World, host string) corev1.ConditionStatus {
	n, _ := w.Server.Object("Node", types.NamespacedName{Name: host}).(*corev1.Node)
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

// tainted is the scenario of a host that was out of service and is back, of which a standby saw
// only the first half; it becomes the leader while the host is cut off and its JVM serves, which no
// member tells.
func tainted(l *lines) *trial.Scenario {
	host := func(w *world.World) string { return w.Kube.Hosts()[0] }
	do := func(f func(*world.World)) func(*world.World) error {
		return func(w *world.World) error { f(w); return nil }
	}
	silent := func(w *world.World) bool { return readiness(w, host(w)) == corev1.ConditionUnknown }
	return trial.Named("tainted-stale-standby",
		"a host was out of service, is back, and is cut off when a standby leads that saw only the first", true, nil,
		standby(),
		trial.Act{Name: "lose", Do: do(func(w *world.World) { w.Kube.Lose(host(w)) }), Until: silent,
			Within: 10 * time.Minute},
		trial.Act{Name: "say that it is gone", Do: do(func(w *world.World) { w.Kube.Taint(host(w)) })},
		freeze(nil, 0, "Node"),
		trial.Act{Name: "return", Do: do(func(w *world.World) {
			w.Kube.Untaint(host(w))
			w.Kube.Return(host(w), true)
		}), Until: trial.Serves, Within: 15 * time.Minute},
		trial.Act{Name: "cut off", Do: do(func(w *world.World) {
			l.w, l.cut[first] = w, true
			w.Partition(host(w), false)
		}), Until: silent,
			Within: 10 * time.Minute},
		trial.Act{Name: "the standby leads", Do: do(func(w *world.World) {
			w.Operators()[0].Kill()
			w.Operators()[0].Lead()
			w.Line.RunFor(5 * time.Minute)
			w.Operators()[0].Thaw()
			clear(l.cut)
			w.Heal(host(w))
		}), Until: trial.Serves, Within: 15 * time.Minute},
	)
}

// believing answers from the cache what an operator asks of hosts.
type believing struct {
	client.Reader
	cache client.Reader
}

func (b believing) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	if _, host := object.(*corev1.Node); host {
		return b.cache.Get(ctx, key, object, options...)
	}
	return b.Reader.Get(ctx, key, object, options...)
}

func TestHostsAreLookedAtLiveBeforeForce(t *testing.T) {
	l := lines{cut: map[string]bool{}, last: map[string]*facts.Agent{}}
	s := tainted(&l)
	refuses(t, holds(t, trial.Trial{Scenario: s, Seed: 1, Tell: true, Wrap: l.unlit()}), "the host is not gone")
	clear(l.cut)
	away := l.unlit()
	away.Live = func(_ *world.Operator, live, cache client.Reader) client.Reader { return believing{live, cache} }
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: away}, "proof")
}
