package guard

import (
	"fmt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// snapshots are the guards on the members before a backup has them take snapshots.
var snapshots = []Guard[Nodes]{
	{v1alpha1.BlockedDataVolumeFull, "the data volume of every member has room", volumesHaveRoom},
}

// volumesHaveRoom: a snapshot keeps the files that compactions replace, until they are uploaded.
// That a member does not answer is said by another guard.
func volumesHaveRoom(of Nodes) []Finding {
	var out []Finding
	for _, name := range of.Names {
		n := of.Nodes[name]
		why := VolumeFull(n)
		if agent := n.CurrentAgent(); agent != nil && agent.Space == nil {
			why = "it does not say how full its data volume is"
		}
		if why != "" {
			out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("node %s takes no snapshot: %s", name,
				why)})
		}
	}
	return out
}

// VolumeFull says of a node why it keeps no snapshot, and what would help; empty if it can, or if
// its agent has not reported the usage of its data volume.
func VolumeFull(n *facts.Node) string {
	agent := n.CurrentAgent()
	if agent == nil || !agent.Space.Full() {
		return ""
	}
	s := agent.Space
	return fmt.Sprintf("its data volume is %.1f %% full, %s of %s are free, and a snapshot keeps the files that "+
		"compactions replace: give it more room, back up when less is written, or raise limits of the backup, which "+
		"then takes less time", 100*float64(s.Capacity-s.Free)/float64(s.Capacity), bytes(float64(s.Free)),
		bytes(float64(s.Capacity)))
}
