package observe

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/facts"
)

// Every node of a cluster tells of every other, so that what is kept of answers would grow with the
// square of its size. Nearly always all see the same.

// keep makes a new answer cheap to keep and to decide on: what it says of the ring is told apart
// from what others say by a digest, and what others said already is kept once. Nobody may change an
// answer from then on.
func (a *Agents) keep(cluster types.NamespacedName, answer *facts.Agent) {
	if answer.Ring == nil {
		return
	}
	answer.Ring.Endpoints = slices.Clone(answer.Ring.Endpoints) // the decoder has left room for as many again
	answer.Ring.KeepView()
	if other := a.sameView(cluster, answer.Ring); other != nil {
		takeOver(answer.Ring.Endpoints, other.Endpoints)
		if maps.Equal(answer.Ring.Keyspaces, other.Keyspaces) {
			answer.Ring.Keyspaces = other.Keyspaces
		}
	}
}

// sameView is the ring in the kept answer of any node of the cluster that sees the same; nil if
// there is none.
func (a *Agents) sameView(cluster types.NamespacedName, r *facts.Ring) *facts.Ring {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	view := r.View()
	for t, c := range a.contacts {
		if t.Cluster != cluster {
			continue
		}
		if answer, _, _ := c.get(); answer != nil && answer.Ring != nil && answer.Ring.View() == view {
			return answer.Ring
		}
	}
	return nil
}

// takeOver has endpoints share their texts and tokens with equal ones. The loads are not equal:
// each node hears of them at another time.
func takeOver(endpoints, equal []facts.Endpoint) {
	for i := range endpoints {
		load := endpoints[i].Load
		endpoints[i] = equal[i]
		endpoints[i].Load = load
	}
}
