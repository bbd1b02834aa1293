package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// leaveHosts deletes by force the pods of hosts that are gone for certain, and says of hosts that are merely silent what would make it so. A pod that
// is told to stop on a host that no longer is stays for ever otherwise, and its node with it.
func (p *pass) leaveHosts(step string) {
	silent := map[string][]*facts.Node{}
	for _, name := range p.Names() {
		n := p.Nodes[name]
		if n.Unplaced() {
			continue
		}
		host := n.Pod.Spec.NodeName
		why := p.HostGone(host)
		switch {
		case why == "":
			if ready := facts.HostReady(p.Hosts[host]); ready != nil && ready.Status != corev1.ConditionTrue {
				silent[host] = append(silent[host], n)
			}
		case n.Agent != nil:
			// Whoever said so was wrong, or its agent is about to fall silent.
			p.block(step, v1alpha1.BlockedRemovedHostStillAnswers, []string{n.Name},
				"host %s %s, but the agent of node %s answers from there: waits until it no longer answers, or the host is registered again", host, why, n.Name)
		case p.leaves(n):
			p.write(plan.Write{Verb: plan.DeleteByForce, Object: named(n.Pod), UID: n.Pod.UID, Host: host, Why: fmt.Sprintf("host %s %s", host, why)})
		}
	}
	for _, host := range sortedKeys(silent) {
		p.sayWhatWouldProveIt(step, p.Hosts[host], silent[host])
	}
}

// leaves says that the pod of a node is to be deleted by force: its host is gone for certain, and its agent does not say otherwise.
func (p *pass) leaves(n *facts.Node) bool {
	return !n.Unplaced() && p.HostGone(n.Pod.Spec.NodeName) != "" && n.Agent == nil && !n.Asking
}

// sayWhatWouldProveIt tells people of a host that is not ready, and of the nodes whose pods are on it.
func (p *pass) sayWhatWouldProveIt(step string, host *corev1.Node, nodes []*facts.Node) {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	stay := ""
	if slices.ContainsFunc(nodes, func(n *facts.Node) bool { return n.Pod.DeletionTimestamp != nil }) {
		stay = ", told to stop or not"
	}
	p.block(step, v1alpha1.BlockedHostUnreachable, names, "host %s %s. Cassandra may still run there, so pod %s is kept%s. Waits until the host is ready, or known to be gone. %s",
		host.Name, notReady(host), list(names, 5), stay, proof(host.Name))
}

// notReady says since when a host is not ready, and why.
func notReady(host *corev1.Node) string {
	ready := facts.HostReady(host)
	since := ready.LastTransitionTime.UTC().Format(time.RFC3339)
	if ready.Status == corev1.ConditionUnknown {
		return "has not been heard of since about " + since
	}
	return strings.TrimSuffix(fmt.Sprintf("is not ready since %s: %s", since, orElse(ready.Message, ready.Reason)), ": ")
}

func proof(host string) string {
	return fmt.Sprintf("If the host is gone for good, say so: delete its Node object, or taint it, kubectl taint node %s %s=nodeshutdown:NoExecute", host, corev1.TaintNodeOutOfService)
}

// sayWhereDisksAre names the nodes whose volumes are on hosts that are gone, or silent, so that no pod of theirs can run.
func (p *pass) sayWhereDisksAre() {
	for _, n := range p.Records() {
		if !n.Unplaced() {
			continue
		}
		for _, volume := range sortedKeys(n.Claims) {
			if c := n.Claims[volume]; c.Volume != nil && c.Volume.Spec.NodeAffinity != nil {
				p.sayWhereDiskIs(n, c)
			}
		}
	}
}

func (p *pass) sayWhereDiskIs(n *facts.Node, c *facts.Claim) {
	var silent *corev1.Node
	for _, name := range sortedKeys(p.Hosts) {
		host := p.Hosts[name]
		if !facts.Reaches(c.Volume, host) || facts.OutOfService(host) {
			continue
		}
		if ready := facts.HostReady(host); ready == nil || ready.Status == corev1.ConditionTrue {
			return // there is one where it can be used
		}
		silent = host
	}
	volume := fmt.Sprintf("volume %s of claim %s, which node %s has its data on, can be used on host %s alone", c.Volume.Name, c.Claim.Name, n.Name, list(facts.Places(c.Volume), 3))
	if silent != nil {
		p.notice(v1alpha1.NoticeVolumeHostUnavailable, []string{n.Name}, "%s, which %s; the node waits until that host is ready", volume, notReady(silent))
		return
	}
	p.notice(v1alpha1.NoticeVolumeHostUnavailable, []string{n.Name},
		"%s, which is gone; the node waits until there is a host of that name with that disk. Replacing the node is not supported in this release", volume)
}
