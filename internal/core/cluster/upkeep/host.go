package upkeep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// forceDeleteFromLostHosts deletes by force the pods of hosts that are gone for certain, and says
// of hosts that are merely silent what would make it so. A pod that is told to stop on a host that
// no longer is stays for ever otherwise, and its node with it.
func (k *Keeper) forceDeleteFromLostHosts(step string) {
	silent := map[string][]*facts.Node{}
	for _, name := range k.Names() {
		n := k.Nodes[name]
		if n.Unplaced() {
			continue
		}
		host := n.Pod.Spec.NodeName
		why := k.HostGone(host)
		switch {
		case why == "":
			if ready := facts.HostReady(k.Hosts[host]); ready != nil && ready.Status != corev1.ConditionTrue {
				silent[host] = append(silent[host], n)
			}
		case n.Agent != nil:
			// Whoever said so was wrong, or its agent is about to fall silent.
			k.draft.Block(step, v1alpha1.BlockedRemovedHostStillAnswers, []string{n.Name},
				"host %s %s, but the agent of node %s answers from there: waits until it no longer answers, or the "+
					"host is registered again", host, why, n.Name)
		case k.SeesAlive(n) != "":
			k.draft.Block(step, v1alpha1.BlockedRemovedHostStillAnswers, []string{n.Name},
				"host %s %s, but node %s sees node %s alive: waits until no node does, half a minute after its end "+
					"at the latest, or the host is registered again", host, why, k.SeesAlive(n), n.Name)
		case k.LeavesHost(n):
			k.draft.Write(plan.Write{Verb: plan.DeleteByForce, Object: plan.Named(n.Pod), UID: n.Pod.UID, Host: host,
				Why: fmt.Sprintf("host %s %s", host, why)})
		}
	}
	for _, host := range slices.Sorted(maps.Keys(silent)) {
		k.blockOnUnreachable(step, k.Hosts[host], silent[host])
	}
}

// blockOnUnreachable tells people of a host that is not ready, and of the nodes whose pods are on
// it.
func (k *Keeper) blockOnUnreachable(step string, host *corev1.Node, nodes []*facts.Node) {
	stay := ""
	if slices.ContainsFunc(nodes, func(n *facts.Node) bool { return n.Pod.DeletionTimestamp != nil }) {
		stay = ", told to stop or not"
	}
	k.draft.Block(step, v1alpha1.BlockedHostUnreachable, names(nodes),
		"host %s %s. Cassandra may still run there, so pod %s is kept%s. Waits until the host is ready, or known to "+
			"be gone. %s",
		host.Name, notReady(host), words.List(names(nodes), 5), stay, proof(host.Name))
}

// notReady says since when a host is not ready, and why.
func notReady(host *corev1.Node) string {
	ready := facts.HostReady(host)
	since := ready.LastTransitionTime.UTC().Format(time.RFC3339)
	if ready.Status == corev1.ConditionUnknown {
		return "has not been heard of since about " + since
	}
	return strings.TrimSuffix(fmt.Sprintf("is not ready since %s: %s", since, cmp.Or(ready.Message, ready.Reason)),
		": ")
}

func proof(host string) string {
	return fmt.Sprintf("If the host is gone for good, say so: delete its Node object, or taint it, kubectl taint "+
		"node %s %s=nodeshutdown:NoExecute", host, corev1.TaintNodeOutOfService)
}

// noticeUnusableDisks names the nodes whose volumes are on hosts that are gone, or silent, so that
// no pod of theirs can run.
func (k *Keeper) noticeUnusableDisks() {
	for _, n := range k.Records() {
		if !n.Unplaced() {
			continue
		}
		for _, volume := range slices.Sorted(maps.Keys(n.Claims)) {
			if c := n.Claims[volume]; c.Volume != nil && c.Volume.Spec.NodeAffinity != nil {
				k.noticeUnusableDisk(n, c)
			}
		}
	}
}

// noticeFailingDisks names the nodes whose agents cannot write to their volumes. That alone is
// never the end of a member: its JVM may serve on.
func (k *Keeper) noticeFailingDisks() {
	var names, why []string
	for _, n := range k.Records() {
		if c := meta.FindStatusCondition(n.Record.Status.Conditions, v1alpha1.ConditionDiskFailing); c != nil {
			names, why = append(names, n.Name), append(why, fmt.Sprintf("node %s: %s", n.Name, c.Message))
		}
	}
	if len(names) > 0 {
		k.draft.Notice(v1alpha1.NoticeDiskFailing, names, "%s. To give the disk up: kubectl helenus replace %s "+
			"--planned. If the volume is well elsewhere, drain the host. If its JVM ends and nobody sees it up for "+
			"spec.replacement.after, the node is replaced", words.List(why, 3), names[0])
	}
}

func (k *Keeper) noticeUnusableDisk(n *facts.Node, c *facts.Claim) {
	silent, unusable := k.Unusable(c.Volume)
	if !unusable {
		return
	}
	volume := fmt.Sprintf("volume %s of claim %s, which node %s has its data on, can be used on host %s alone",
		c.Volume.Name, c.Claim.Name, n.Name, words.List(facts.Places(c.Volume), 3))
	if silent != nil {
		k.draft.Notice(v1alpha1.NoticeVolumeHostUnavailable, []string{n.Name},
			"%s, which %s; the node waits until that host is ready", volume, notReady(silent))
		return
	}
	k.draft.Notice(v1alpha1.NoticeVolumeHostUnavailable, []string{n.Name},
		"%s, which is gone; the node waits until there is a host of that name with that disk, or until it is replaced "+
			"(spec.replacement)", volume)
}
