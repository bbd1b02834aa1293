package assess

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
)

// Node is what one node is.
type Node struct {
	Membership Membership
	Process    Process
	Contact    Contact
	Record     Record
	// Wanted says that the spec describes it.
	Wanted bool
	// NotStarting says that it does not come up as things are: its JVM has ended and none runs, its
	// agent starts none, or its pod has trouble.
	NotStarting bool
}

// Membership is what part a node has in the ring.
type Membership string

// The memberships.
const (
	// None: it has no part in the ring.
	None Membership = "None"
	// DiskUnknown: the ledger is lost, and the disk of the node may be a member's.
	DiskUnknown Membership = "DiskUnknown"
	// Ticketed: it has a ticket, by its record or by the open step, and has not joined.
	Ticketed Membership = "Ticketed"
	// Withdrawn: its ticket is being withdrawn, or was, and it has not joined.
	Withdrawn Membership = "Withdrawn"
	// Seen: no record and no ledger calls it a member, but its agent, its disk or another node
	// does.
	Seen Membership = "Seen"
	// Joined: it has a ticket, and its agent, its disk or another node says that it has joined.
	Joined Membership = "Joined"
	// Member: its record or the ledger says so.
	Member Membership = "Member"
)

// Process is whether a JVM of the node may run.
type Process string

// The states of a node's JVM.
const (
	// Absent: it is certain that none runs.
	Absent Process = "Absent"
	// Running: its agent says so.
	Running Process = "Running"
	// Possible: nobody knows.
	Possible Process = "Possible"
)

// Contact is whether the agent of the present pod answers.
type Contact string

// The contacts.
const (
	Answering   Contact = "Answering"
	Unreachable Contact = "Unreachable"
	// FirstContact: it was asked for the first time just now, so that no answer means nothing.
	FirstContact Contact = "FirstContact"
)

// Record is what there is of the node's CassandraNode.
type Record string

// The states of a record.
const (
	Missing  Record = "Missing"
	Live     Record = "Live"
	Deleting Record = "Deleting"
)

// Joined says that a node is in the ring, or was, by the word of anybody.
func (n Node) Joined() bool {
	return n.Membership == Seen || n.Membership == Joined || n.Membership == Member
}

// Started says that a node has, or had, a part in the ring: a ticket or more. Until then it can be
// recreated in every way.
func (n Node) Started() bool { return n.Membership != None && n.Membership != Seen }

// Failing says that a node does not come up, and that no JVM of it runs.
func (n Node) Failing() bool { return n.NotStarting && n.Process == Absent }

// Of is what a node is now. Name may be that of a node of which nothing exists.
func (v *View) Of(name string) Node {
	if out, known := v.assessed[name]; known {
		return out
	}
	out := v.assess(name)
	v.assessed[name] = out
	return out
}

func (v *View) assess(name string) Node {
	n := v.Nodes[name]
	out := Node{Membership: v.membership(name, n), Record: recordOf(n), Wanted: v.Describes(name) != nil,
		Contact: Unreachable, Process: Absent}
	switch {
	case n.CurrentAgent() != nil:
		out.Contact = Answering
	case n != nil && n.Asking:
		out.Contact = FirstContact
	}
	if n != nil && n.Pod != nil {
		out.Process = processOf(n)
	}
	out.NotStarting = n != nil && notStarting(n)
	return out
}

func recordOf(n *facts.Node) Record {
	switch {
	case n == nil || n.Record == nil:
		return Missing
	case n.Record.DeletionTimestamp != nil:
		return Deleting
	}
	return Live
}

func (v *View) membership(name string, n *facts.Node) Membership {
	_, member := v.Ledger.HostID(name)
	ticket := v.Ledger != nil && v.Ledger.Step.Has(name)
	if n == nil || n.Record == nil {
		switch {
		case member:
			return Member
		case ticket:
			return Ticketed
		}
		return None
	}
	join := v.Ticket(n)
	ticket = ticket || join != nil
	if !member && n.Record.Spec.State == v1alpha1.StateDecommissioned {
		return None // it was a member, and has left
	}
	diskUnknown := v.LedgerLost && (len(n.Record.Spec.Claims) > 0 && !NeverHadDisk(n) || isEphemeral(n))
	switch {
	case member || n.Record.Spec.Member != nil:
		return Member
	case v.hasJoined(n) && (ticket || diskUnknown):
		return Joined
	case v.hasJoined(n) && !hasDiskOfLeft(n):
		return Seen
	case join != nil && (join.Withdraw != nil || HasWithdrawn(n)):
		return Withdrawn
	case ticket:
		return Ticketed
	case diskUnknown:
		return DiskUnknown
	}
	return None
}

// hasJoined says that agent, disk or the view of any node say that a node is in the ring, or was.
func (v *View) hasJoined(n *facts.Node) bool {
	status := n.Record.Status
	if finished(status.Join) || memberOrLeft(status.Disk) {
		return true
	}
	hostIDs, addresses := []string{status.HostID}, []string{status.Address}
	if agent := n.Agent; agent != nil {
		inRing := agent.Ring != nil && agent.Ring.Mode == facts.ModeNormal
		if finished(agent.Join) || memberOrLeft(agent.Disk) || agent.TrafficOpened || inRing {
			return true
		}
		hostIDs, addresses = append(hostIDs, agent.HostID), append(addresses, agent.Address)
	}
	seen := v.membersInViews()
	return slices.ContainsFunc(hostIDs, func(id string) bool { return id != "" && seen.hostIDs[id] }) ||
		slices.ContainsFunc(addresses, func(a string) bool { return seen.addresses[a] })
}

func memberOrLeft(d v1alpha1.DiskState) bool {
	return d == v1alpha1.DiskMember || d == v1alpha1.DiskLeft
}

// hasDiskOfLeft says that a node which is to join has found the disk of one that has left.
func hasDiskOfLeft(n *facts.Node) bool {
	if agent := n.CurrentAgent(); agent != nil {
		return agent.Disk == v1alpha1.DiskLeft && agent.Ring == nil
	}
	return n.Record.Status.Disk == v1alpha1.DiskLeft
}

func finished(s *v1alpha1.IntentStatus) bool { return s != nil && s.FinishedAt != nil }

// Ticket in the record of a node. One of an earlier step that was withdrawn does not count once the
// open step has the node: the step issues another.
func (v *View) Ticket(n *facts.Node) *v1alpha1.JoinTicket {
	join := n.Record.Spec.Join
	if join == nil || v.Ledger == nil || !v.Ledger.Step.Has(n.Name) || ledger.OfIntent(join.ID) == v.Ledger.Step.ID {
		return join
	}
	if join.Withdraw != nil || HasWithdrawn(n) {
		return nil
	}
	return join
}

// HasWithdrawn says that the agent of a node has acknowledged that the ticket in the record is
// withdrawn. The node has a record.
func HasWithdrawn(n *facts.Node) bool {
	ticket, status := n.Record.Spec.Join, n.Record.Status.Join
	return ticket != nil && status != nil && status.ID == ticket.ID && status.WithdrawnAt != nil
}

// NeverHadDisk says that no JVM of a node can ever have run: the claims that its record pins are
// there and never had a volume. The node has a record.
func NeverHadDisk(n *facts.Node) bool {
	if n.Record.Spec.Join != nil || n.Record.Status.HostID != "" || len(n.Record.Spec.Claims) == 0 {
		return false
	}
	for _, pin := range n.Record.Spec.Claims {
		if c := n.Claims[pin.Volume]; !c.Unbound() || c.Claim.UID != pin.UID {
			return false
		}
	}
	return true
}

// processOf a node that has a pod.
func processOf(n *facts.Node) Process {
	agent := n.CurrentAgent()
	possible := false
	switch {
	case agent == nil:
		possible = AnythingRuns(n.Pod)
	case agent.Process == facts.ProcessAbsent:
	case agent.Process == facts.ProcessRunning:
		return Running
	default:
		// An agent that was reached without an answer of init: the container is not there, or init
		// hangs.
		possible = slices.ContainsFunc(n.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == layout.CassandraContainer && s.State.Waiting == nil
		})
	}
	if possible {
		return Possible
	}
	return Absent
}

func notStarting(n *facts.Node) bool {
	agent := n.CurrentAgent()
	switch {
	case n.Pod == nil:
		return true
	case agent == nil:
		return !AnythingRuns(n.Pod) && Trouble(n) != ""
	case agent.Process == facts.ProcessRunning:
		return false
	}
	if agent.Phase == v1alpha1.PhaseFailed || Trouble(n) != "" {
		return true
	}
	return n.StatusIsCurrent() && n.Record.Status.Restarts != nil && n.Record.Status.Restarts.Count > 0
}

// AnythingRuns says that a container of a pod runs, or that the pod says so.
func AnythingRuns(pod *corev1.Pod) bool {
	s := pod.Status
	for _, statuses := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses,
		s.EphemeralContainerStatuses} {
		if slices.ContainsFunc(statuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil }) {
			return true
		}
	}
	return s.Phase == corev1.PodRunning
}
