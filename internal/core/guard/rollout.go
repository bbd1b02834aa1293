package guard

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// rollOut are the guards on the members before one of them is taken down.
var rollOut = []Guard[Nodes]{
	{v1alpha1.BlockedMemberDown, "every member is up", everyMemberIsUp("nodes are taken down one wave at a time")},
	{v1alpha1.BlockedTopologyChangeInProgress, "no topology change is in progress", noTopologyChange},
	{v1alpha1.BlockedMemberSeenDown, "every member sees every other as up", everyMemberSeesEveryOther},
	{v1alpha1.BlockedSchemaVersionsDiffer, "all members of a release have the same schema version", oneSchema},
	{v1alpha1.BlockedStreamInProgress, "no member streams", noStream},
}

// newRelease is the guard on the members before the first of them gets another release.
var newRelease = []Guard[Nodes]{
	{v1alpha1.BlockedMemberDown, "every member is up", everyMemberIsUp("a release comes to all members")},
	{v1alpha1.BlockedIncrementalRepairRunning, "no incremental repair runs", noIncrementalRepair},
}

// Recreated are nodes that are to get new pods.
type Recreated struct {
	Nodes
	// Pods as the spec describes them, by the node's name.
	Pods map[string]*corev1.Pod
}

// room is the guard on the nodes that are to get new pods, before any of them is taken down.
var room = []Guard[Recreated]{
	{v1alpha1.BlockedNoHostHasRoom, "node.resources asks for less, or the hosts are larger", hostHasRoom},
}

// seen is the guard before a node counts as back.
var seen = []Guard[Nodes]{
	{v1alpha1.BlockedMemberSeenDown, "every member sees every other as up", everyMemberSeesEveryOther},
}

// releases is the guard before any step but a roll-out.
var releases = []Guard[Nodes]{
	{v1alpha1.BlockedReleasesDiffer, "all members have the release that the spec describes", oneRelease},
}

// oneRelease: while two are in the ring nothing streams and nothing is altered. Those of two lines
// neither stream to each other nor share a schema, and what is streamed may have to be taken back.
// Where the image of a user holds another release than version says, no roll-out ends what differs.
func oneRelease(of Nodes) []Finding {
	wanted := of.Cluster.Spec.Version
	var others []string
	for _, name := range of.Names {
		if n := of.Nodes[name]; n != nil && n.Record != nil && n.Record.Spec.Configuration.Version != wanted {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return of.differ("releases of Cassandra", func(*facts.Ring) string { return "" },
			func(r *facts.Ring) string { return settings.LineOf(r.ReleaseVersion) })
	}
	return []Finding{{Nodes: others, Message: fmt.Sprintf("Cassandra %s has not reached %s yet", wanted,
		words.List(others, 3))}}
}

// everyMemberSeesEveryOther: a coordinator that sees a replica down does not ask it, whatever the
// replica says of itself.
func everyMemberSeesEveryOther(of Nodes) []Finding {
	names, rings := of.views()
	var out []Finding
	for i, first := range facts.SameViews(rings) {
		if first != i {
			continue // it sees nothing that was not said
		}
		sees := rings[i].ByHostIDs()
		for _, name := range of.Names {
			hostID, member := of.Ledger.HostID(name)
			if e := sees[hostID]; member && (e == nil || !e.Live || e.Status != facts.StatusNormal) {
				out = append(out, Finding{Nodes: []string{names[i], name},
					Message: fmt.Sprintf("node %s does not see node %s as NORMAL and up", names[i], name)})
			}
		}
	}
	return out
}

// noIncrementalRepair: the SSTables that it has set aside belong to it until it ends, and the
// releases may not agree on how it does. Where a node does not say, nothingKept waits.
func noIncrementalRepair(of Nodes) []Finding {
	names, rings := of.views()
	var out []Finding
	for i, r := range rings {
		if r.Repairs() {
			out = append(out, Finding{Nodes: []string{names[i]}, Message: fmt.Sprintf("node %s takes part in %s. "+
				"nodetool repair_admin list shows them, and cancel ends those that nobody is to wait for", names[i],
				words.Plural(r.Unfinished.IncrementalRepairs, "incremental repair"))})
		}
	}
	return out
}

// hostHasRoom: a pod for which its host is too small never starts. What a host has for pods is
// compared, not what others leave of it, which is not known here; and only where the volumes can be
// used on that host alone: elsewhere there may be room on others, or they can be added.
func hostHasRoom(of Recreated) []Finding {
	var out []Finding
	for _, name := range of.Names {
		n := of.Nodes.Nodes[name]
		if n == nil || n.Unplaced() || of.Pods[name] == nil {
			continue
		}
		host := of.Hosts[n.Pod.Spec.NodeName]
		if host == nil || !slices.ContainsFunc(slices.Collect(maps.Values(n.Claims)), func(c *facts.Claim) bool {
			return c.Volume != nil && facts.OnlyOn(c.Volume, host)
		}) {
			continue
		}
		for _, resource := range Lacking(of.Pods[name], host) {
			asks, has := render.Requests(of.Pods[name], resource), host.Status.Allocatable[resource]
			out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("the new pod of node %s would "+
				"ask for %s of %s, and host %s, where its volumes are, has %s for all pods", name,
				asks.String(), resource, host.Name, has.String())})
		}
	}
	return out
}

// Lacking are the resources of which a pod asks for more than a host has for all pods.
func Lacking(pod *corev1.Pod, host *corev1.Node) (out []corev1.ResourceName) {
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		asks := render.Requests(pod, resource)
		if has, known := host.Status.Allocatable[resource]; known && asks.Cmp(has) > 0 {
			out = append(out, resource)
		}
	}
	return out
}

// noStream: a stream ends with either of its nodes, and has to begin again.
func noStream(of Nodes) []Finding {
	names, rings := of.views()
	var out []Finding
	for i, r := range rings {
		if r.Streaming {
			out = append(out, Finding{Nodes: []string{names[i]}, Message: fmt.Sprintf("node %s streams", names[i])})
		}
	}
	return out
}
