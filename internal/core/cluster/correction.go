package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// A spec under which nodes cannot start must be correctable, or they would wait for ever. So the record of a node that is not in the ring, by any word,
// follows the spec in all but what its ticket and its disk rest on. The ticket stays the same. Once a node has joined only those follow that do not come: a
// ring is not to have two kinds of nodes because somebody edits its spec. A member that does not come follows only if it never was NORMAL with what its
// record says: what has worked is not what keeps it from starting. A node without a ticket follows in everything, and of its claims those that have no volume.

// correction is a node that is to be what the spec describes now.
type correction struct {
	node   *facts.Node
	wanted render.Wanted
}

// correct writes the corrections that were found when the spec was checked.
func (p *pass) correct() {
	for i, c := range p.corrections {
		record := render.ForApply(p.owner(), c.node.Record)
		record.Spec.Configuration, record.Spec.Pod = c.wanted.Configuration, c.wanted.Pod
		p.write(plan.Write{
			Verb: plan.Apply, Object: record, UID: c.node.Record.UID, ResourceVersion: c.node.Record.ResourceVersion,
			Live: i == 0,
			Why:  "the spec has changed, and the node is not up: " + list(render.Differences(c.node.Record, c.wanted), 3),
		})
	}
}

// correctable says that a node may take over what the spec says now.
func (p *pass) correctable(n *facts.Node, w render.Wanted) bool {
	if alreadyIs(n, w) {
		return true
	}
	have, want := n.Record.Spec.Configuration, w.Configuration
	if !p.started(n) && !p.joined(n) {
		return (have.Version == want.Version || p.allUntouched()) && p.boundClaim(n, w) == ""
	}
	if p.joined(n) && (!fails(n) || proven(n.Record)) {
		return false
	}
	if have.ClusterName != want.ClusterName || have.DatacenterName != want.DatacenterName || have.RackName != want.RackName || have.NumTokens != want.NumTokens {
		return false // what the ticket and the disks of others rest on
	}
	if !equality.Semantic.DeepEqual(n.Record.Spec.Pod.Storage, w.Pod.Storage) {
		return false // the volumes are there, and the journal is on one of them
	}
	if p.Ledger.Step != nil && p.anyJoined() && !doesNotCome(n) {
		return false
	}
	return have.Version == want.Version || p.allUntouched()
}

// boundClaim is a claim of a node that the spec does not describe as it is, and that is bound to a volume; empty if there is none. Others are made anew.
func (p *pass) boundClaim(n *facts.Node, w render.Wanted) string {
	described := map[string]bool{}
	for _, v := range render.Volumes(w.Pod) {
		described[v.Name] = true
		if c := n.Claims[v.Name]; c.Bound() && !sameVolume(c.Claim, render.Claim(p.owner(), n.Record, v)) {
			return c.Claim.Name
		}
	}
	for _, volume := range sortedKeys(n.Claims) {
		if c := n.Claims[volume]; !described[volume] && c.Bound() {
			return c.Claim.Name
		}
	}
	return ""
}

// alreadyIs says that a node runs as the spec describes it although its record says otherwise: it was on its way when a correction was written, which was taken
// back when it had joined.
func alreadyIs(n *facts.Node, w render.Wanted) bool {
	if n.Pod == nil || n.Pod.Annotations[v1alpha1.AnnotationTemplateHash] != render.PodHash(w.Pod) {
		return false
	}
	running := n.Record.Status.Configuration
	hash, err := config.Hash(&w.Configuration)
	return err == nil && n.StatusIsCurrent() && running != nil && running.Hash == hash
}

func (p *pass) anyJoined() bool { return slices.ContainsFunc(p.Records(), p.joined) }

// doesNotCome says that a node will not join as things are: its JVM has ended and none runs, its agent starts none, or its pod has trouble.
func doesNotCome(n *facts.Node) bool {
	agent := n.CurrentAgent()
	switch {
	case n.Pod == nil:
		return true
	case agent == nil:
		return !anythingRuns(n.Pod) && guard.Trouble(n) != ""
	case agent.Process == facts.ProcessRunning:
		return false
	}
	restarts := n.Record.Status.Restarts
	return agent.Phase == v1alpha1.PhaseFailed || n.StatusIsCurrent() && restarts != nil && restarts.Count > 0 || guard.Trouble(n) != ""
}

// fails says that a node does not come, and that no JVM of it runs.
func fails(n *facts.Node) bool { return doesNotCome(n) && !jvmMayRun(n) }

// jvmMayRun says that nobody knows that no JVM of a node runs: its agent does not say so, and its pod has, or may have, a container for one.
func jvmMayRun(n *facts.Node) bool {
	agent := n.CurrentAgent()
	switch {
	case n.Pod == nil, agent != nil && agent.Process == facts.ProcessAbsent:
		return false
	case agent != nil && agent.Process == facts.ProcessRunning:
		return true
	case agent == nil:
		return anythingRuns(n.Pod)
	}
	// An agent that was reached without an answer of init: the container is not there, or init hangs.
	return slices.ContainsFunc(n.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == layout.CassandraContainer && s.State.Waiting == nil
	})
}

// proven says that a node was NORMAL with what its record says.
func proven(record *v1alpha1.CassandraNode) bool {
	was := record.Status.Proven
	if was == nil || was.PodTemplate != render.PodHash(record.Spec.Pod) {
		return false
	}
	hash, err := config.Hash(&record.Spec.Configuration)
	return err == nil && was.Configuration == hash
}

// allUntouched says that Cassandra has written on no disk of the cluster: then even its release is still open.
func (p *pass) allUntouched() bool {
	for _, n := range p.Records() {
		disk := n.Record.Status.Disk
		if agent := n.CurrentAgent(); agent != nil {
			disk = agent.Disk
		}
		if p.joined(n) || disk != v1alpha1.DiskEmpty {
			return false
		}
	}
	return true
}

// joined says that a node is in the ring, or was, by the word of anybody: its record, the ledger, its agent, its disk, the view of any node.
func (p *pass) joined(n *facts.Node) bool {
	if _, member := p.Ledger.Members[n.Name]; member || n.Record.Spec.Member != nil {
		return true
	}
	status := n.Record.Status
	if finished(status.Join) || memberOrLeft(status.Disk) {
		return true
	}
	hostIDs, addresses := []string{status.HostID}, []string{status.Address}
	if agent := n.Agent; agent != nil {
		if finished(agent.Join) || memberOrLeft(agent.Disk) || agent.TrafficOpened || agent.Ring != nil && agent.Ring.Mode == facts.ModeNormal {
			return true
		}
		hostIDs, addresses = append(hostIDs, agent.HostID), append(addresses, agent.Address)
	}
	seen := p.seenMembers()
	return slices.ContainsFunc(hostIDs, func(id string) bool { return id != "" && seen.hostIDs[id] }) ||
		slices.ContainsFunc(addresses, func(a string) bool { return seen.addresses[a] })
}

// seenMembers are the host ids and addresses of whoever is a member in the view of any node.
type seenMembers struct{ hostIDs, addresses map[string]bool }

func (p *pass) seenMembers() *seenMembers {
	if p.seen != nil {
		return p.seen
	}
	p.seen = &seenMembers{map[string]bool{}, map[string]bool{}}
	var rings []*facts.Ring
	for _, n := range p.Records() {
		if agent := n.CurrentAgent(); agent != nil && agent.Ring != nil {
			rings = append(rings, agent.Ring)
		}
	}
	for i, first := range facts.SameViews(rings) {
		if first != i {
			continue
		}
		for _, e := range rings[i].Endpoints {
			if e.Member() {
				p.seen.hostIDs[e.HostID], p.seen.addresses[e.Address] = true, true
			}
		}
	}
	return p.seen
}

func finished(s *v1alpha1.IntentStatus) bool { return s != nil && s.FinishedAt != nil }

func memberOrLeft(d v1alpha1.DiskState) bool {
	return d == v1alpha1.DiskMember || d == v1alpha1.DiskLeft
}

// podMayGo says that the pod of a node with a ticket, or of a member, can be made anew: its agent says that the node is not up, or nothing runs in it that
// could say so.
func (p *pass) podMayGo(n *facts.Node) bool {
	if p.joined(n) {
		return fails(n)
	}
	return n.CurrentAgent() != nil || !anythingRuns(n.Pod)
}

func anythingRuns(pod *corev1.Pod) bool {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for _, s := range statuses {
			if s.State.Running != nil {
				return true
			}
		}
	}
	return pod.Status.Phase == corev1.PodRunning
}
