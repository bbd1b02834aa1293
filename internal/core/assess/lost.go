package assess

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

// Unusable says that a volume can be used on no host that is there and ready, and names one that is
// merely silent; nil if all where it could be are gone for certain.
func (v *View) Unusable(volume *corev1.PersistentVolume) (silent *corev1.Node, unusable bool) {
	for _, name := range slices.Sorted(maps.Keys(v.Hosts)) {
		host := v.Hosts[name]
		if !facts.Reaches(volume, host) || facts.OutOfService(host) {
			continue
		}
		if ready := facts.HostReady(host); ready == nil || ready.Status == corev1.ConditionTrue {
			return nil, false // there is one where it can be used
		}
		silent = host
	}
	return silent, true
}

// OutOfReach is a claim of a node that has no place, whose volume is on hosts that are gone for
// certain; nil if there is none.
func (v *View) OutOfReach(n *facts.Node) *facts.Claim {
	if n == nil || n.Record == nil || !n.Unplaced() {
		return nil
	}
	for _, pin := range n.Record.Spec.Claims {
		c := n.Claims[pin.Volume]
		if c == nil || c.Claim == nil || c.Claim.UID != pin.UID || c.Volume == nil ||
			c.Volume.Spec.NodeAffinity == nil {
			continue
		}
		if silent, unusable := v.Unusable(c.Volume); unusable && silent == nil {
			return c
		}
	}
	return nil
}

// Found says that a member which was lost is back: its JVM runs, or another member sees it up.
func (v *View) Found(name string) bool {
	n := v.Nodes[name]
	if n == nil || n.Record == nil {
		return false
	}
	agent := n.CurrentAgent()
	return v.SeesAlive(n) != "" || agent != nil && agent.Process == facts.ProcessRunning
}

// DiskFails says that the agent of a node cannot write to its disk, and that no JVM runs there.
func (v *View) DiskFails(n *facts.Node) bool {
	agent := n.CurrentAgent()
	return agent != nil && agent.DiskFailing != "" && agent.Process == facts.ProcessAbsent
}

// FindsNoData says that the agent of a node which is to have data finds an empty disk, and that no
// JVM runs there.
func FindsNoData(agent *facts.Agent) bool {
	return agent != nil && agent.Phase == v1alpha1.PhaseDataLost && agent.Disk == v1alpha1.DiskEmpty &&
		agent.Process == facts.ProcessAbsent
}

func isEphemeral(n *facts.Node) bool { return n.Record.Spec.Pod.Storage.Ephemeral != nil }

// HasDataInPods says that nodes of a datacenter have their data in their pods.
func (v *View) HasDataInPods(datacenter string) bool {
	return slices.ContainsFunc(v.Records(),
		func(n *facts.Node) bool { return n.Record.Spec.Datacenter == datacenter && isEphemeral(n) })
}

// HoldsData says that the data of a member, or of what may be one, is in its pod, and goes with it.
// The node has a record.
func (v *View) HoldsData(n *facts.Node) bool {
	if !isEphemeral(n) || n.Pod == nil || podIsGone(n) || n.Record.Status.Phase == v1alpha1.PhaseDataLost ||
		n.Record.Spec.Join != nil && !v.hasJoined(n) {
		return false
	}
	is := v.Of(n.Name)
	return is.Started() || is.Joined()
}

// podIsGone says that the pod which an agent of a node last spoke from does not exist any more.
func podIsGone(n *facts.Node) bool {
	uid := n.Record.Status.PodUID
	return uid != "" && (n.Pod == nil || n.Pod.UID != uid)
}

// Lost says in words that follow the name of a member what of it is lost, so that it never comes
// back as it was; empty if nothing is, or that is not certain: the agent of its present pod finds
// an empty disk, or cannot write to its disk, and no JVM runs; or no pod of it can run, since its
// disk is on a host that is gone, or was in a pod that is.
func (v *View) Lost(name string) string {
	n := v.Live(name)
	hostID, member := v.Ledger.HostID(name)
	if n == nil || !member || n.Record.Spec.Member == nil || n.Record.Spec.Member.HostID != hostID ||
		v.Ledger.KeepsDown(n.Record.Spec.Datacenter) { // it is looked for when it is to start
		return ""
	}
	out := ""
	if agent := n.CurrentAgent(); agent != nil {
		if FindsNoData(agent) {
			out = "has lost its disk: the data volume is empty"
		} else if v.DiskFails(n) {
			out = "is down on a disk that fails: " + agent.DiskFailing
		}
	} else if c := v.OutOfReach(n); c != nil && !n.Asking {
		out = fmt.Sprintf("has lost its host: volume %s was on %s, which is gone", c.Volume.Name,
			words.List(facts.Places(c.Volume), 3))
	} else if isEphemeral(n) && podIsGone(n) && !n.Asking {
		out = "has lost its disk, which was in a pod that is gone"
	}
	if out == "" || v.SeesAlive(n) != "" { // which asks all
		return ""
	}
	return out
}
