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

// leaveMachines deletes by force the pods of machines that are gone for certain, and says of machines that are merely silent what would make it so. A pod that
// is told to stop on a machine that no longer is stays for ever otherwise, and its node with it.
func (p *pass) leaveMachines(step string) {
	silent := map[string][]*facts.Node{}
	for _, name := range p.Names() {
		n := p.Nodes[name]
		if n.Unplaced() {
			continue
		}
		machine := n.Pod.Spec.NodeName
		why := p.MachineGone(machine)
		switch {
		case why == "":
			if ready := facts.MachineReady(p.Machines[machine]); ready != nil && ready.Status != corev1.ConditionTrue {
				silent[machine] = append(silent[machine], n)
			}
		case n.Agent != nil:
			// Whoever said so was wrong, or its agent is about to fall silent.
			p.block(step, v1alpha1.BlockedRemovedHostStillAnswers, []string{n.Name},
				"machine %s %s, but the agent of node %s answers from there: waits until it no longer answers, or the machine is registered again", machine, why, n.Name)
		case p.leaves(n):
			p.write(plan.Write{Verb: plan.DeleteByForce, Object: named(n.Pod), UID: n.Pod.UID, Machine: machine, Why: fmt.Sprintf("machine %s %s", machine, why)})
		}
	}
	for _, machine := range sortedKeys(silent) {
		p.sayWhatWouldProveIt(step, p.Machines[machine], silent[machine])
	}
}

// leaves says that the pod of a node is to be deleted by force: its machine is gone for certain, and its agent does not say otherwise.
func (p *pass) leaves(n *facts.Node) bool {
	return !n.Unplaced() && p.MachineGone(n.Pod.Spec.NodeName) != "" && n.Agent == nil && !n.Asking
}

// sayWhatWouldProveIt tells people of a machine that is not ready, and of the nodes whose pods are on it.
func (p *pass) sayWhatWouldProveIt(step string, machine *corev1.Node, nodes []*facts.Node) {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	stay := ""
	if slices.ContainsFunc(nodes, func(n *facts.Node) bool { return n.Pod.DeletionTimestamp != nil }) {
		stay = ", told to stop or not"
	}
	p.block(step, v1alpha1.BlockedHostUnreachable, names, "machine %s %s. Cassandra may still run there, so pod %s is kept%s. Waits until the machine is ready, or known to be gone. %s",
		machine.Name, notReady(machine), list(names, 5), stay, proof(machine.Name))
}

// notReady says since when a machine is not ready, and why.
func notReady(machine *corev1.Node) string {
	ready := facts.MachineReady(machine)
	since := ready.LastTransitionTime.UTC().Format(time.RFC3339)
	if ready.Status == corev1.ConditionUnknown {
		return "has not been heard of since about " + since
	}
	return strings.TrimSuffix(fmt.Sprintf("is not ready since %s: %s", since, orElse(ready.Message, ready.Reason)), ": ")
}

func proof(machine string) string {
	return fmt.Sprintf("If the machine is gone for good, say so: delete its Node object, or taint it, kubectl taint node %s %s=nodeshutdown:NoExecute", machine, corev1.TaintNodeOutOfService)
}

// sayWhereDisksAre names the nodes whose volumes are on machines that are gone, or silent, so that no pod of theirs can run.
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
	for _, name := range sortedKeys(p.Machines) {
		machine := p.Machines[name]
		if !facts.Reaches(c.Volume, machine) || facts.OutOfService(machine) {
			continue
		}
		if ready := facts.MachineReady(machine); ready == nil || ready.Status == corev1.ConditionTrue {
			return // there is one where it can be used
		}
		silent = machine
	}
	volume := fmt.Sprintf("volume %s of claim %s, which node %s has its data on, can be used on machine %s alone", c.Volume.Name, c.Claim.Name, n.Name, list(facts.Places(c.Volume), 3))
	if silent != nil {
		p.notice(v1alpha1.NoticeVolumeHostUnavailable, []string{n.Name}, "%s, which %s; the node waits until that machine is ready", volume, notReady(silent))
		return
	}
	p.notice(v1alpha1.NoticeVolumeHostUnavailable, []string{n.Name},
		"%s, which is gone; the node waits until there is a machine of that name with that disk. Replacing the node is not supported in this release", volume)
}
