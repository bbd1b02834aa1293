package upkeep

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// freshAddresses is how many pods in a row are recreated because of their addresses. A pool of
// addresses that has only taken ones is a person's matter.
const freshAddresses = 3

// hasTakenAddress says that the pod of a node has the address of another member, by the word of its
// agent, which starts no JVM at it: the others would take the one for the other. Of two pods that
// got each other's addresses neither ever starts by itself, since the others remember both.
func hasTakenAddress(n *facts.Node) bool {
	agent := n.CurrentAgent()
	return agent != nil && agent.Phase == v1alpha1.PhaseAddressTaken && agent.Process == facts.ProcessAbsent
}

// takenAddress gives a node another pod, which gets an address of its own. It is counted as a
// failure of the pod: if the next one has a taken address too, it gets more time, since addresses
// are forgotten after a while. One goes at a time, looked at live: its agent must still say so.
func (k *Keeper) takenAddress(n *facts.Node) {
	why := n.CurrentAgent().Message
	f := k.countFailure(n, "AddressTaken", "has an address of another member: "+why)
	if f.Count > freshAddresses || k.HoldsData(n) {
		k.draft.Notice(v1alpha1.NoticeAddressConflict, []string{n.Name},
			"pod %s has an address of another member, as the %s one in a row: %s. Cassandra is not started in it; "+
				"delete the pod to get another", n.Name, words.Ordinal(f.Count), why)
		return
	}
	if left := f.left(k.Now); left > 0 {
		k.draft.WakeIn(left)
		k.draft.Notice(v1alpha1.NoticeAddressConflict, []string{n.Name},
			"pod %s has an address of another member: %s. Cassandra is not started in it; the pod is recreated after "+
				"%s", n.Name, why, f.due().Format(time.RFC3339))
		return
	}
	k.deleteAlone(plan.DeletePod(n.Pod, "it has an address of another member: "+why))
}
