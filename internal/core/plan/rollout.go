package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// RollOut is what brings the members of a ring to what the spec describes.
type RollOut struct {
	// Changes of fields, by field.
	Changes []FieldChange `json:"changes,omitempty"`
	// NewNodes are those that the spec has and the ring does not.
	NewNodes []string `json:"newNodes,omitempty"`
	// Waves in which the nodes follow, as far as the ring as it is now tells.
	Waves [][]string `json:"waves,omitempty"`
	// Held is why Waves ends before all nodes are changed.
	Held string `json:"held,omitempty"`
	// Passes over all nodes that follow when every node has what these waves bring.
	Passes []string `json:"passes,omitempty"`
	// Estimate is how long Waves take if each takes as long as the last one that the ring has seen,
	// with the soak of the first node; 0 if it has seen none, or nothing is taken down.
	Estimate metav1.Duration `json:"estimate,omitzero"`
	// Racks has a node for each rack of which nodes change.
	Racks []RackChange `json:"racks,omitempty"`
}

// FieldChange is a field that some nodes have otherwise than the spec describes it.
type FieldChange struct {
	// Field as the user writes it: node.jvm.heap.
	Field string `json:"field"`
	// Have is the value that the nodes have, Want that of the spec, as JSON; "unset" for none.
	Have string `json:"have"`
	Want string `json:"want"`
	// Takes is what the change needs.
	Takes Takes `json:"takes"`
	// Nodes that have it otherwise.
	Nodes []string `json:"nodes"`
}

// Takes is what a change of a node needs. The set is closed.
type Takes string

// What changes need.
const (
	// Hot: Cassandra takes it over at run time.
	Hot Takes = "Hot"
	// Live: the record alone, or the pod that runs.
	Live Takes = "Live"
	// Restart of the JVM, in its pod.
	Restart Takes = "Restart"
	// Resize of the pod that runs, in place.
	Resize Takes = "Resize"
	// ResizeAndRestart: the JVM restarts in its pod after that, with another heap.
	ResizeAndRestart Takes = "ResizeAndRestart"
	// NewPod on the same volumes.
	NewPod Takes = "NewPod"
	// Replacement: a new pod, whose node streams all its data again.
	Replacement Takes = "Replacement"
	// Refused: nothing brings a node that exists to it.
	Refused Takes = "Refused"
)

// RackChange is what changes for the nodes of a rack, by the example of one.
type RackChange struct {
	Datacenter string `json:"datacenter"`
	Rack       string `json:"rack"`
	Node       string `json:"node"`
	// Have is what the node's record says, Want what the spec does.
	Have NodeInput `json:"have"`
	Want NodeInput `json:"want"`
}

// NodeInput is what a node's files and pod are made from.
type NodeInput struct {
	Configuration v1alpha1.NodeConfiguration `json:"configuration"`
	Pod           v1alpha1.PodSettings       `json:"pod"`
}
