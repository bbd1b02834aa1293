package safeguard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// atOnce is the scenario of two nodes of different racks that are asked to restart at the same
// moment, as two operators would ask that know nothing of each other. A client writes meanwhile.
func atOnce() *trial.Scenario {
	const refused, id = "a write was refused", "restart-of-another"
	asked := []string{first, last}
	var probe func(w *world.World, times int)
	probe = func(w *world.World, times int) {
		if acknowledged, all := w.Probe(); acknowledged < all {
			w.Notes[refused] = fmt.Sprintf("%d of %d writes are refused while two nodes restart", all-acknowledged, all)
		}
		if times > 0 {
			w.Line.After(200*time.Millisecond, "a client writes", func() { probe(w, times-1) })
		}
	}
	return trial.Named("at-once", "two nodes are asked to restart at once", true, nil,
		trial.Act{Name: "ask both", Do: func(w *world.World) error {
			for len(w.Operators()) > 0 {
				w.Operators()[0].Kill()
			}
			for _, name := range asked {
				n := recordAt(w, name).DeepCopy()
				n.Spec.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: id}}
				if err := w.User().Update(context.Background(), n); err != nil {
					return err
				}
			}
			probe(w, 600)
			return nil
		}, Until: func(w *world.World) bool {
			return !slices.ContainsFunc(asked, func(name string) bool {
				r := recordAt(w, name).Status.Restart
				return r == nil || r.ID != id || r.FinishedAt == nil
			})
		}, Within: 10 * time.Minute},
		unharmed(func(w *world.World) []string {
			if words := w.Notes[refused]; words != "" {
				return []string{words}
			}
			return nil
		}),
		trial.Act{Name: "an operator starts", Do: func(w *world.World) error {
			w.StartOperator(w.Installed)
			return nil
		}})
}

// unannounced are agents of which nobody hears that they go down.
func unannounced() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.Peers = unsaid{h.Peers} })
}

type unsaid struct{ execute.Peers }

func (u unsaid) Ask(ctx context.Context, addresses []string, address, hostID string) ([]facts.Peer, []string) {
	answers, silent := u.Peers.Ask(ctx, addresses, address, hostID)
	for i := range answers {
		answers[i].GoingDown = false
	}
	return answers, silent
}
