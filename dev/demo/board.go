package main

import (
	"fmt"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
)

// board is what is shown while a ring forms: what the operator does, and a line for each node.
func board(s follow.Sight, name string) (note string, parts []string) {
	note = "the operator has not seen it yet"
	cluster, found := s.Cluster(name)
	if found && cluster.Status.ObservedGeneration > 0 {
		note = fmt.Sprintf("%d of %d serve", cluster.Status.ReadyNodes, nodesOf(cluster))
		if step := cluster.Status.Step; step != nil {
			note += ", " + step.Name
		}
	}
	for _, node := range s.Nodes(name) {
		parts = append(parts, fmt.Sprintf("%-16s %s", node.Name, doing(s, &node)))
	}
	return note, parts
}

// doing is what a node does. Before its agent speaks, Kubernetes says why.
func doing(s follow.Sight, node *v1alpha1.CassandraNode) string {
	pod, found := s.Pod(node.Name)
	switch {
	case !found:
		return "has no pod"
	case node.Status.PodUID == pod.UID && node.Status.Ready:
		return "serves clients"
	case node.Status.PodUID == pod.UID && node.Status.Phase != "":
		return oneLine(follow.Phase(node))
	}
	if trouble, _ := follow.PodTrouble(pod); trouble != "" {
		return oneLine(trouble)
	}
	if pod.Spec.NodeName == "" {
		return "waits for a machine"
	}
	return "the pod starts on " + pod.Spec.NodeName
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
