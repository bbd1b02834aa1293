package guard

import (
	"fmt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
)

// drain is the guard on the nodes of a ring that is to stop, before they are drained.
var drain = []Guard[Nodes]{
	{v1alpha1.BlockedClientTrafficOpen, "it is closed on every node, or 10 minutes are over", trafficIsClosed},
}

// trafficIsClosed: each node has heard that it is to let no client in, and does not.
func trafficIsClosed(of Nodes) []Finding {
	var out []Finding
	for _, name := range inOrder(of.Names) {
		n := of.Nodes[name]
		switch agent := n.CurrentAgent(); {
		case agent == nil:
			out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("nobody knows whether node %s is "+
				"open to clients: %s", name, assess.WhyNoAnswer(n))})
		case n.Record == nil, agent.RecordGeneration != n.Record.Generation,
			agent.Traffic != "" && agent.Traffic != v1alpha1.TrafficClosed:
			out = append(out, Finding{Nodes: []string{name},
				Message: fmt.Sprintf("node %s is still open to clients", name)})
		}
	}
	return out
}
