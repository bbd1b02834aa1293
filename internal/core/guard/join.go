package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
)

// Newcomer are the guards that a node must pass before it is its turn to join a ring that serves clients.
var Newcomer = []Guard{
	{"the_joining_node_answers_from_its_present_pod", everyNodeAnswers},
	{"the_joining_disk_is_empty", joiningDiskIsEmpty},
	{"no_jvm_runs_before_the_ticket", noJVMRuns},
}

// Join are the guards on the ring that a node is to join: the given nodes are its members.
var Join = []Guard{
	{"every_member_is_up", everyMemberIsUp},
	{"no_other_topology_change", noTopologyChange},
	{"every_view_is_the_same", everyViewIsTheSame},
	{"every_host_id_of_the_ring_is_known", everyHostIDIsKnown},
	{"one_schema_version", oneSchema},
	{"one_release", oneRelease},
}

// Cleanup are the guards on the ring before members drop what they no longer own: while a range is on its way to another node, the old owner is its source.
var Cleanup = []Guard{
	{"no_other_topology_change", noTopologyChange},
	{"every_view_is_the_same", everyViewIsTheSame},
}

// joiningDiskIsEmpty: what is on a disk is somebody's. A join that was broken off leaves one that is neither empty nor a member's.
func joiningDiskIsEmpty(s *facts.Snapshot, nodes []string) []Finding {
	var out []Finding
	for _, name := range nodes {
		agent := s.Nodes[name].CurrentAgent()
		if agent == nil || agent.Disk == v1alpha1.DiskEmpty && !agent.TrafficOpened {
			continue
		}
		advice := "delete its claim and its pod so that both are made anew"
		if agent.Disk == v1alpha1.DiskMember || agent.TrafficOpened {
			advice = "it may hold writes that no other disk has: save them before you delete its claim and its pod"
		}
		out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("the disk of node %s is not empty but %s: it is neither used nor wiped; %s", name, diskInWords(agent), advice)})
	}
	return out
}

func noJVMRuns(s *facts.Snapshot, nodes []string) []Finding {
	var out []Finding
	for _, name := range nodes {
		if agent := s.Nodes[name].CurrentAgent(); agent != nil && agent.Process != facts.ProcessAbsent {
			out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("node %s is not ready to join: its pod is starting, its JVM is %s", name, agent.Process)})
		}
	}
	return out
}

// everyMemberIsUp: a node that joins streams each of its ranges from the replica that gives it up, and Cassandra refuses if that one is down
// (cassandra.consistent.rangemovement). One that is down would also not learn of the newcomer.
func everyMemberIsUp(s *facts.Snapshot, members []string) []Finding {
	if len(members) == 0 {
		return []Finding{{Message: "the ledger knows of no member of the ring that nodes are to join"}}
	}
	var out []Finding
	for _, name := range members {
		agent := s.Nodes[name].CurrentAgent()
		var why string
		switch {
		case agent == nil:
			why = WhyNoAnswer(s.Nodes[name])
		case agent.Ring == nil:
			why = "its JVM does not answer"
		case agent.Ring.Mode != facts.ModeNormal:
			why = "it is " + string(agent.Ring.Mode)
		default:
			continue
		}
		out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("node %s is not up: %s; a node that joins streams from every member", name, why)})
	}
	return out
}

// views are the rings that the members see, with the names of those that see them, in the order of the names.
func views(s *facts.Snapshot, members []string) (names []string, rings []*facts.Ring) {
	names, rings = make([]string, 0, len(members)), make([]*facts.Ring, 0, len(members))
	for _, name := range inOrder(members) {
		if agent := s.Nodes[name].CurrentAgent(); agent != nil && agent.Ring != nil && agent.Ring.Mode == facts.ModeNormal {
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

// noTopologyChange: Cassandra's own guard against two changes at a time is a race, so that we wait until every member has seen the end of the last one.
func noTopologyChange(s *facts.Snapshot, members []string) []Finding {
	names, rings := views(s, members)
	first := facts.SameViews(rings)
	inFlight := make([][]facts.Endpoint, len(rings)) // of the first that sees it so
	var out []Finding
	for i, r := range rings {
		if first[i] == i {
			inFlight[i] = endpointsThat(r, facts.Endpoint.InFlight)
		}
		for _, e := range inFlight[first[i]] {
			out = append(out, Finding{Nodes: []string{names[i]}, Message: fmt.Sprintf("node %s sees %s as %s", names[i], e.Address, e.Status)})
		}
		if r.Pending > 0 {
			out = append(out, Finding{Nodes: []string{names[i]}, Message: fmt.Sprintf("node %s sees %d ranges on their way to new owners", names[i], r.Pending)})
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

func everyViewIsTheSame(s *facts.Snapshot, members []string) []Finding {
	names, rings := views(s, members)
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

func membersOf(r *facts.Ring) []ring.Member {
	var out []ring.Member
	for _, e := range r.Endpoints {
		if !e.Member() {
			continue
		}
		status := string(e.Status)
		if !e.Live {
			status += " and down"
		}
		out = append(out, ring.Member{HostID: e.HostID, Status: status, Tokens: e.RingTokens()})
	}
	return out
}

// everyHostIDIsKnown: a member that no record is of has a disk that nobody has seen. A newcomer must not take its place.
func everyHostIDIsKnown(s *facts.Snapshot, members []string) []Finding {
	known := map[string]bool{}
	for _, id := range s.Ledger.Members {
		known[id] = true
	}
	_, rings := views(s, members)
	var out []Finding
	said := map[string]bool{}
	for i, first := range facts.SameViews(rings) {
		if first != i {
			continue // it sees nothing that was not said
		}
		for _, e := range rings[i].Endpoints {
			if e.Member() && !known[e.HostID] && !said[e.HostID] {
				said[e.HostID] = true
				out = append(out, Finding{Message: fmt.Sprintf("the ring has a member with host id %s at %s that no CassandraNode is of: find its disk, or remove it with nodetool removenode", e.HostID, e.Address)})
			}
		}
	}
	return out
}

func oneSchema(s *facts.Snapshot, members []string) []Finding {
	return differ(s, members, "schema versions", func(r *facts.Ring) string { return r.SchemaVersion })
}

// oneRelease: nodes of different major or minor releases do not stream to each other.
func oneRelease(s *facts.Snapshot, members []string) []Finding {
	return differ(s, members, "releases of Cassandra", func(r *facts.Ring) string {
		parts := strings.SplitN(r.ReleaseVersion, ".", 3)
		return strings.Join(parts[:min(len(parts), 2)], ".")
	})
}

// differ finds that members do not all have the same.
func differ(s *facts.Snapshot, members []string, what string, of func(*facts.Ring) string) []Finding {
	names, rings := views(s, members)
	first := map[string]string{}
	var words []string
	for i, r := range rings {
		if value := of(r); first[value] == "" {
			first[value] = names[i]
			words = append(words, fmt.Sprintf("%s (node %s)", value, names[i]))
		}
	}
	if len(first) < 2 {
		return nil
	}
	return []Finding{{Message: fmt.Sprintf("the members have different %s: %s", what, strings.Join(words, ", "))}}
}

// mostOfDisk is how much of its data volume a node may have to fill by joining: compaction needs the rest.
const mostOfDisk = 0.7

// JoiningNodeFits says whether what a node will hold fits on its data volume, as far as that follows from the loads that the members report and its part of
// the ring, as it is before. keyspaces are those that count.
func JoiningNodeFits(view *facts.Ring, before *ring.Ring, joiner ring.Node, keyspaces []ring.Keyspace, volume *resource.Quantity) []Finding {
	if volume == nil || volume.IsZero() {
		return nil
	}
	after, err := before.With(joiner)
	if err != nil {
		return []Finding{{Nodes: []string{joiner.ID}, Message: fmt.Sprintf("the ring with node %s cannot be judged: %s", joiner.ID, err)}}
	}
	stored := int64(0)
	for _, e := range view.Endpoints {
		if e.Member() && e.Datacenter == joiner.Datacenter {
			stored += e.Load
		}
	}
	share := after.Loads(keyspaces)[joiner.ID].Share
	expected, room := float64(stored)*share, mostOfDisk*float64(volume.Value())
	if expected <= room {
		return nil
	}
	return []Finding{{Nodes: []string{joiner.ID}, Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
		"node %s would hold about %s, which is more than %d %% of its data volume of %s: give it a larger volume, or add nodes to a rack that has some already",
		joiner.ID, bytes(expected), int(100*mostOfDisk), volume.String())}}
}

func bytes(n float64) string {
	const unit = 1 << 30
	if n < unit {
		return fmt.Sprintf("%.0fMi", n/(1<<20))
	}
	return fmt.Sprintf("%.1fGi", n/unit)
}

// mostRackLoad is how many times the average of its datacenter a node may hold: beyond that its rack is too small.
const mostRackLoad = 2.0

// RacksAreBalanced says whether a rack would have too few nodes once all that are wanted have joined. With no more racks than replicas every rack holds a
// replica of everything, so that the nodes of a small rack hold more.
func RacksAreBalanced(datacenter string, sizes map[string]int, replicationFactor int) []Finding {
	total, racks := 0, 0
	for _, n := range sizes {
		if n > 0 {
			total, racks = total+n, racks+1
		}
	}
	if racks < 2 || racks > replicationFactor {
		return nil
	}
	average := float64(total) / float64(racks)
	var out []Finding
	for _, rack := range slices.Sorted(maps.Keys(sizes)) {
		if n := sizes[rack]; n > 0 && average/float64(n) > mostRackLoad {
			out = append(out, Finding{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
				"rack %s of datacenter %s would have %d of %d nodes in %d racks: with %d replicas each rack holds everything once, so each of its nodes would hold %.1f times the average; give the racks about the same number of nodes",
				rack, datacenter, n, total, racks, replicationFactor, average/float64(n))})
		}
	}
	return out
}
