//go:build cassandra

package agent

import (
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// TestSeedsThatNobodyHasAnyMore starts a member with the address of a pod without a JVM for its
// only seed, while its peer has moved to an address that it does not know. Cassandra asks for a
// minute and ends; when the list of seeds is corrected meanwhile the same JVM has to come up.
func TestSeedsThatNobodyHasAnyMore(t *testing.T) {
	w := newWorld(t)
	moved, asking, without := w.newPod(0), w.newPod(1), w.newPod(2)
	w.setSeeds(moved.address)
	for _, p := range []*pod{moved, asking, without} {
		p.start()
	}
	w.awaitEmpty(moved, asking, without)
	w.part("form", func(*testing.T) { w.form(moved, asking) })
	w.part("the peer moves", func(*testing.T) {
		asking.end()
		moved.end()
		moved.move("10.199.0.20")
		w.setSeeds(moved.address)
		moved.start()
		w.await(moved.name, "ready at its new address", 3*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Ready && r.Status.Address == moved.address
		})
	})
	w.part("the list is corrected while a member asks", func(t *testing.T) {
		w.setSeeds(without.address)
		asking.start()
		w.await(asking.name, "asks", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Phase == v1alpha1.PhaseStarting && asking.jvm() != 0 && asking.ask(t).Ring != nil
		})
		jvm := asking.jvm()
		w.setSeeds(moved.address)
		w.await(asking.name, "ready", 45*time.Second, func(r *v1alpha1.CassandraNode) bool { return r.Status.Ready })
		if now := asking.jvm(); now != jvm {
			t.Errorf("the JVM was pid %d and is %d", jvm, now)
		}
	})
}
