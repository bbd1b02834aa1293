package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
)

// pendingNode are the guards that a node must pass before it is its turn to join a ring that serves
// clients.
var pendingNode = []Guard[Nodes]{
	{v1alpha1.BlockedJoiningNodeNotReady, "the agent of the joining node answers from its present pod",
		everyNodeAnswers},
	{v1alpha1.BlockedJoiningDiskNotEmpty, "the disk of the joining node is empty", joiningDiskIsEmpty},
	{v1alpha1.BlockedJVMNotAbsent, "no JVM runs on a node without a ticket", noJVMRuns},
}

// beforeJoin are the guards on the ring that a node is to join: the given nodes are its members.
var beforeJoin = []Guard[Nodes]{
	{v1alpha1.BlockedMemberDown, "every member is up", everyMemberIsUp("a node that joins streams from every member")},
	{v1alpha1.BlockedTopologyChangeInProgress, "no other topology change is in progress", noTopologyChange},
	{v1alpha1.BlockedRingViewsDiffer, "all members see the same ring", everyViewIsTheSame},
	{v1alpha1.BlockedUnknownRingMember, "every member of the ring has a CassandraNode", everyHostIDIsKnown},
	{v1alpha1.BlockedSchemaVersionsDiffer, "all members have the same schema version", oneSchema},
	{v1alpha1.BlockedReplicationNotUnderstood, "the replication of every keyspace is understood",
		everyReplicationIsKnown},
	{v1alpha1.BlockedHostCordoned, "no member is on a cordoned host", noHostIsCordoned},
}

// noHostIsCordoned: who cordons a host is about to drain it, and while ranges move no pod is
// evicted. A queue of joins may take hours; between two of them the budgets open.
func noHostIsCordoned(of Nodes) []Finding {
	var out []Finding
	for _, name := range inOrder(of.Names) {
		n := of.Nodes[name]
		if n == nil || n.Pod == nil {
			continue
		}
		if host := of.Hosts[n.Pod.Spec.NodeName]; host != nil && host.Spec.Unschedulable {
			out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("host %s is cordoned, and node %s "+
				"is on it: its pod may be about to be evicted, which is refused while ranges move; drain the host, or "+
				"uncordon it", host.Name, name)})
		}
	}
	return out
}

// cleanup are the guards on the ring before members drop what they no longer own: while a range is
// on its way to another node, the old owner is its source.
var cleanup = []Guard[Nodes]{
	{v1alpha1.BlockedTopologyChangeInProgress, "no other topology change is in progress", noTopologyChange},
	{v1alpha1.BlockedRingViewsDiffer, "all members see the same ring", everyViewIsTheSame},
	{v1alpha1.BlockedSchemaVersionsDiffer, "all members have the same schema version in gossip", oneSchemaInGossip},
}

// repair are the guards on the ring before a node is repaired: Cassandra fails it as soon as one of
// the replicas that it compares is down (ActiveRepairService#prepareForRepair), also one that no
// record is of, and what members write by an older schema meanwhile goes to the replicas of that.
var repair = []Guard[Nodes]{
	{v1alpha1.BlockedMemberDown, "every member is up", everyMemberIsUp("a repair compares all replicas")},
	{v1alpha1.BlockedUnknownRingMember, "every member of the ring has a CassandraNode", everyHostIDIsKnown},
	{v1alpha1.BlockedSchemaVersionsDiffer, "all members have the same schema version", oneSchema},
}

// backup are the guards on the ring before its members take snapshots: what one that is down has
// would be missing, what moves from one to another might be in neither, and files of another schema
// cannot be read.
var backup = []Guard[Nodes]{
	{v1alpha1.BlockedMemberDown, "every member is up", everyMemberIsUp("a backup, and a restore, is of all members")},
	{v1alpha1.BlockedTopologyChangeInProgress, "no other topology change is in progress", noTopologyChange},
	{v1alpha1.BlockedRingViewsDiffer, "all members see the same ring", everyViewIsTheSame},
	{v1alpha1.BlockedUnknownRingMember, "every member of the ring has a CassandraNode", everyHostIDIsKnown},
	{v1alpha1.BlockedSchemaVersionsDiffer, "all members have the same schema version", oneSchema},
}

// Joining is a node that is to join next, with its tokens.
type Joining struct {
	Node ring.Node
	// Datacenter that it joins, by its name in the spec.
	Datacenter string
	// ReplicationFactor that keyspaces use in the datacenter, and how many nodes each of its racks
	// will have, by name.
	ReplicationFactor int
	Sizes             map[string]int
	// View is the ring as a member sees it, and Before the same with its ranges, without the node.
	View   *facts.Ring
	Before *ring.Ring
	// Keyspaces that count.
	Keyspaces []ring.Keyspace
	// Volume is the size of its data volume; nil if nobody knows it.
	Volume *resource.Quantity
}

// placement are the guards on what the ring will be with the node.
var placement = []Guard[Joining]{
	{v1alpha1.BlockedRacksUnbalanced, "the racks have about the same number of nodes", racksAreBalanced},
	{v1alpha1.BlockedDataVolumeTooSmall, "the data fits on the volume of the joining node", fits},
}

// joiningDiskIsEmpty: what is on a disk is somebody's. A join that was broken off leaves one that
// is neither empty nor a member's.
func joiningDiskIsEmpty(of Nodes) []Finding {
	var out []Finding
	for _, name := range of.Names {
		agent := of.Nodes[name].CurrentAgent()
		if agent == nil || agent.Disk == v1alpha1.DiskEmpty && !agent.TrafficOpened {
			continue
		}
		what, then := "its claim and its pod", "both are"
		if r := of.Nodes[name].Record; r != nil && r.Spec.Pod.Storage.Ephemeral != nil {
			what, then = "its pod", "it is"
		}
		advice := "delete " + what + " so that " + then + " recreated"
		if agent.Disk != v1alpha1.DiskLeft && (agent.Disk == v1alpha1.DiskMember || agent.TrafficOpened) {
			advice = "it may hold writes that no other disk has: save them before you delete " + what
		}
		out = append(out, Finding{Nodes: []string{name},
			Message: fmt.Sprintf("the disk of node %s is not empty but %s: it is neither used nor wiped; %s", name,
				diskInWords(agent), advice)})
	}
	return out
}

func noJVMRuns(of Nodes) []Finding {
	var out []Finding
	for _, name := range of.Names {
		if agent := of.Nodes[name].CurrentAgent(); agent != nil && agent.Process != facts.ProcessAbsent {
			out = append(out, Finding{Nodes: []string{name},
				Message: fmt.Sprintf("node %s is not ready to join: its pod is starting, its JVM is %s", name,
					agent.Process)})
		}
	}
	return out
}

// everyMemberIsUp: a node that joins streams each of its ranges from the replica that gives it up,
// and Cassandra refuses if that one is down (cassandra.consistent.rangemovement). One that is down
// would also not learn of the newcomer. The reason is said with each member that is not up.
func everyMemberIsUp(reason string) func(Nodes) []Finding {
	return func(of Nodes) []Finding {
		if len(of.Names) == 0 {
			return []Finding{{Message: "the ledger knows of no member of the ring; " + reason}}
		}
		out, names := of.stopped(reason)
		for _, name := range names {
			agent := of.Nodes[name].CurrentAgent()
			var why string
			switch {
			case agent == nil || agent.Ring == nil && assess.NeedsUser(agent.Phase):
				why = assess.WhyDown(of.Nodes[name])
			case agent.Ring == nil:
				why = "its JVM does not answer"
			case agent.Ring.Mode != facts.ModeNormal:
				why = "it is " + string(agent.Ring.Mode)
			default:
				continue
			}
			out = append(out, Finding{Nodes: []string{name},
				Message: fmt.Sprintf("node %s is not up: %s; %s", name, why, reason)})
		}
		return out
	}
}

// views are the rings that these members see, with the names of those that see them, in the order
// of the names.
func (of Nodes) views() (names []string, rings []*facts.Ring) {
	names, rings = make([]string, 0, len(of.Names)), make([]*facts.Ring, 0, len(of.Names))
	for _, name := range inOrder(of.Names) {
		if agent := of.Nodes[name].CurrentAgent(); agent != nil && agent.Ring != nil &&
			agent.Ring.Mode == facts.ModeNormal {
			names, rings = append(names, name), append(rings, agent.Ring)
		}
	}
	return names, rings
}

func inOrder(names []string) []string {
	if slices.IsSorted(names) {
		return names
	}
	return slices.Sorted(slices.Values(names))
}

// noTopologyChange: Cassandra's own guard against two changes at a time is a race, so that we wait
// until every member has seen the end of the last one.
func noTopologyChange(of Nodes) []Finding {
	names, rings := of.views()
	first := facts.SameViews(rings)
	inFlight := make([][]facts.Endpoint, len(rings)) // of the first that sees it so
	var out []Finding
	for i, r := range rings {
		if first[i] == i {
			inFlight[i] = endpointsThat(r, facts.Endpoint.InFlight)
		}
		for _, e := range inFlight[first[i]] {
			out = append(out, Finding{Nodes: []string{names[i]},
				Message: fmt.Sprintf("node %s sees %s as %s", names[i], e.Address, e.Status)})
		}
		if r.Pending > 0 {
			out = append(out, Finding{Nodes: []string{names[i]},
				Message: fmt.Sprintf("node %s sees %d ranges on their way to new owners", names[i], r.Pending)})
		}
	}
	return out
}

func endpointsThat(r *facts.Ring, are func(facts.Endpoint) bool) []facts.Endpoint {
	var out []facts.Endpoint
	for _, e := range r.Endpoints {
		if are(e) {
			out = append(out, e)
		}
	}
	return out
}

func everyViewIsTheSame(of Nodes) []Finding {
	names, rings := of.views()
	same := facts.SameViews(rings)
	if !slices.ContainsFunc(same, func(first int) bool { return first > 0 }) {
		return nil
	}
	var all []ring.View
	at := map[int]int{} // in all, by the first ring that sees it so
	for i, first := range same {
		if first == i {
			at[i] = len(all)
			all = append(all, ring.View{Members: membersOf(rings[i])})
		}
		all[at[first]].Observers = append(all[at[first]].Observers, names[i])
	}
	var out []Finding
	for _, d := range ring.Disagreements(all) {
		out = append(out, Finding{Nodes: []string{d.Observer}, Message: d.String()})
	}
	return out
}

// membersOf a ring. A member that was stopped is a NORMAL one that is down: members that do not get
// the message of its shutdown may never see it as SHUTDOWN. Up to 4.1, and in 5.0 by default, a
// receiver gives the status a version from its own counter (Gossiper#markAsShutdown), and members
// that have a higher version do not request it.
func membersOf(r *facts.Ring) []ring.Member {
	var out []ring.Member
	for _, e := range r.Endpoints {
		if !e.Member() {
			continue
		}
		status := e.Status
		if !e.Live {
			if status == facts.StatusShutdown {
				status = facts.StatusNormal
			}
			status += " and down"
		}
		out = append(out, ring.Member{HostID: e.HostID, Status: string(status), Tokens: e.RingTokens()})
	}
	return out
}

// everyHostIDIsKnown: a member that no record is of has a disk that nobody has seen. A newcomer
// must not take its place.
func everyHostIDIsKnown(of Nodes) []Finding {
	known := map[string]bool{}
	for _, id := range of.Ledger.Members {
		known[id] = true
	}
	_, rings := of.views()
	var out []Finding
	said := map[string]bool{}
	for i, first := range facts.SameViews(rings) {
		if first != i {
			continue // it sees nothing that was not said
		}
		for _, e := range rings[i].Endpoints {
			if e.Member() && !known[e.HostID] && !said[e.HostID] {
				said[e.HostID] = true
				out = append(out, Finding{Message: fmt.Sprintf("the ring has a member with host id %s at %s that no "+
					"CassandraNode is of: find its disk, or remove it with nodetool removenode", e.HostID, e.Address)})
			}
		}
	}
	return out
}

// oneSchema of each line of releases: nodes of different lines do not exchange their schemas.
func oneSchema(of Nodes) []Finding {
	line := func(r *facts.Ring) string { return settings.LineOf(r.ReleaseVersion) }
	return of.differ("schema versions", line, func(r *facts.Ring) string { return r.SchemaVersion })
}

// oneSchemaInGossip counts members that are down, too: who has not heard of a change of replicas
// judges by the old ones what is not its own.
func oneSchemaInGossip(of Nodes) []Finding {
	names, rings := of.views()
	var out []Finding
	for i, r := range rings {
		if other := r.OtherSchema(); other != "" {
			out = append(out, Finding{Nodes: []string{names[i]}, Message: fmt.Sprintf("node %s: %s", names[i], other)})
		}
	}
	return out
}

// everyReplicationIsKnown: of a keyspace with transient replicas, or with a strategy of somebody's
// own, nobody can say what a node is to hold once the ring is another one.
func everyReplicationIsKnown(of Nodes) []Finding {
	_, rings := of.views()
	said := map[string]bool{}
	var out []Finding
	var known map[string]string // most members see the same
	for _, r := range rings {
		if maps.Equal(r.Keyspaces, known) {
			continue
		}
		_, err := r.Replicated()
		if err == nil {
			known = r.Keyspaces
			continue
		}
		for problem := range strings.SplitSeq(err.Error(), "\n") {
			if !said[problem] {
				said[problem] = true
				out = append(out, Finding{Stalled: v1alpha1.ReasonUnsupportedChange,
					Message: problem + ": what each node is to hold of it cannot be worked out. Alter it to " +
						"NetworkTopologyStrategy with whole numbers of replicas, or drop it"})
			}
		}
	}
	return out
}

// differ finds that members, of which all of one kind should have the same, do not.
func (of Nodes) differ(what string, kind, value func(*facts.Ring) string) []Finding {
	names, rings := of.views()
	first := map[[2]string]bool{}
	words := map[string][]string{}
	for i, r := range rings {
		if k, v := kind(r), value(r); !first[[2]string{k, v}] {
			first[[2]string{k, v}] = true
			words[k] = append(words[k], fmt.Sprintf("%s (node %s)", v, names[i]))
		}
	}
	var out []Finding
	for _, k := range slices.Sorted(maps.Keys(words)) {
		if len(words[k]) > 1 {
			out = append(out, Finding{Message: fmt.Sprintf("the members have different %s: %s", what,
				strings.Join(words[k], ", "))})
		}
	}
	return out
}

// mostOfDisk is how much of its data volume a node may have to fill by joining: compaction needs
// the rest.
const mostOfDisk = 0.7

// fits says whether what a node will hold fits on its data volume, as far as that follows from the
// loads that the members report and its part of the ring.
func fits(of Joining) []Finding {
	if of.Volume == nil || of.Volume.IsZero() {
		return nil
	}
	after, err := of.Before.With(of.Node)
	if err != nil {
		return []Finding{{Nodes: []string{of.Node.ID},
			Message: fmt.Sprintf("the ring with node %s cannot be judged: %s", of.Node.ID, err)}}
	}
	stored := int64(0)
	for _, e := range of.View.Endpoints {
		if e.Member() && e.Datacenter == of.Node.Datacenter {
			stored += e.Load
		}
	}
	share := after.Loads(of.Keyspaces)[of.Node.ID].Share
	expected, room := float64(stored)*share, mostOfDisk*float64(of.Volume.Value())
	if expected <= room {
		return nil
	}
	return []Finding{{Nodes: []string{of.Node.ID}, Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
		"node %s would hold about %s, which is more than %d %% of its data volume of %s: give it a larger volume, or "+
			"add nodes to a rack that has some already",
		of.Node.ID, bytes(expected), int(100*mostOfDisk), of.Volume.String())}}
}

func bytes(n float64) string {
	const unit = 1 << 30
	if n < unit {
		return fmt.Sprintf("%.0fMi", n/(1<<20))
	}
	return fmt.Sprintf("%.1fGi", n/unit)
}

// mostRackLoad is how many times the average of its datacenter a node may hold: beyond that its
// rack is too small.
const mostRackLoad = 2.0

// racksAreBalanced says whether a rack would have too few nodes once all that are wanted have
// joined. With no more racks than replicas every rack holds a replica of everything, so that the
// nodes of a small rack hold more.
func racksAreBalanced(of Joining) []Finding {
	total, racks := 0, 0
	for _, n := range of.Sizes {
		if n > 0 {
			total, racks = total+n, racks+1
		}
	}
	if racks < 2 || racks > of.ReplicationFactor {
		return nil
	}
	average := float64(total) / float64(racks)
	var out []Finding
	for _, rack := range slices.Sorted(maps.Keys(of.Sizes)) {
		if n := of.Sizes[rack]; n > 0 && average/float64(n) > mostRackLoad {
			out = append(out, Finding{Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
				"rack %s of datacenter %s would have %d of %d nodes in %d racks: with %d replicas each rack holds "+
					"everything once, so each of its nodes would hold %.1f times the average; give the racks about "+
					"the same number of nodes",
				rack, of.Datacenter, n, total, racks, of.ReplicationFactor, average/float64(n))})
		}
	}
	return out
}
