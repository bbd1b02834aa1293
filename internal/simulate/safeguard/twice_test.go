package safeguard

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// forced is the scenario of a pod that is deleted by force and runs on: its JVM serves beside the
// next pod of the node, on the same volume, until it is killed.
func forced(guard string) *trial.Scenario {
	var former *pod.Sandbox
	return trial.Named("forced-"+guard, "a pod is deleted by force, and its host is slow to end it", true, nil,
		trial.Act{Name: "delete by force", Do: func(w *world.World) error {
			former = sandbox(w, first)
			w.Kube.Linger(former.Host(), time.Hour)
			return w.User().Delete(context.Background(),
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: first}},
				client.GracePeriodSeconds(0))
		}, Until: func(w *world.World) bool { return heldBy(w, first, guard) }, Within: 5 * time.Minute},
		waiting(time.Minute),
		trial.Act{Name: "the former pod ends", Do: func(w *world.World) error {
			former.Kill(layout.CassandraContainer)
			former.Kill(layout.AgentContainer)
			w.Kube.Linger(former.Host(), 0)
			return nil
		}, Until: trial.Serves, Within: 15 * time.Minute})
}

// formerless agents are not told what other pods of their node answer.
func formerless() world.Wrap {
	return host(func(s *pod.Sandbox, h *execute.Host) { h.Peers = unrelated{h.Peers, s.Name()} })
}

type unrelated struct {
	execute.Peers
	own string
}

func (p unrelated) Ask(ctx context.Context, addresses []string, address, hostID string) ([]facts.Peer, []string) {
	answers, silent := p.Peers.Ask(ctx, addresses, address, hostID)
	return slices.DeleteFunc(answers, func(a facts.Peer) bool { return a.Node == p.own }), silent
}

// lockless inits start JVMs without the lock of the volume.
func lockless(wraps ...world.Wrap) world.Wrap {
	w := inTurn(wraps...)
	w.Lockless = true
	return w
}

// twiceCases are the three guards on a second JVM of a node: each holds alone.
func twiceCases() []agentCase {
	away := lockless(formerless(), strangers())
	const by = "two JVMs run on the data directory of node " + first
	return []agentCase{
		{"DataVolumeInUse", forced("DataVolumeInUse"), nil, inTurn(formerless(), strangers()), away, by},
		{"FormerPodAnswers", forced("FormerPodAnswers"), nil, lockless(strangers()), away, by},
		{"HostIDAlive", forced("HostIDAlive"), nil, lockless(formerless()), away, by},
	}
}

func TestNoNodeRunsTwice(t *testing.T) {
	for _, c := range twiceCases() {
		c.try(t)
	}
}
