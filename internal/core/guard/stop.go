package guard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/words"
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

// Stopping are members that are to be stopped while the others serve.
type Stopping struct {
	Nodes
	// Datacenter that they are of, by its name in the spec.
	Datacenter string
	// Accepted are the keyspaces of which a person accepts that they are unavailable.
	Accepted []string
}

// stopDatacenter is the guard on the members of a datacenter before they are stopped.
var stopDatacenter = []Guard[Stopping]{
	{v1alpha1.BlockedOnlyReplicas, "a member that stays up has a replica of every range", othersServe},
}

// othersServe: what has no replica but on these nodes could not be read anywhere for as long.
func othersServe(of Stopping) []Finding {
	var down []string
	others := of.Nodes
	others.Names = nil
	for name, hostID := range of.Ledger.Members {
		if slices.Contains(of.Names, name) {
			down = append(down, hostID)
		} else {
			others.Names = append(others.Names, name)
		}
	}
	names, rings := others.views()
	if len(rings) == 0 {
		return []Finding{{Message: "no member of another datacenter is up"}}
	}
	for _, name := range others.Names {
		if !slices.Contains(names, name) {
			down = append(down, of.Ledger.Members[name])
		}
	}
	view := *rings[0]
	view.Keyspaces = maps.Clone(view.Keyspaces)
	for _, name := range of.Accepted {
		delete(view.Keyspaces, name)
	}
	protection, err := view.Protection(v1alpha1.ConsistencyOne)
	if err != nil {
		return []Finding{{Message: err.Error()}}
	}
	unserved, _ := protection.Unserved(down, nil)
	if unserved.Ranges == 0 {
		return nil
	}
	return []Finding{{Message: of.Named(fmt.Sprintf("with datacenter %s stopped no node would serve %s: %s. Alter it "+
		"to have replicas in another datacenter, and rebuild those nodes; or stop the ring as a whole by "+
		"spec.stopped. To accept that it is unavailable meanwhile, add an exception of type AcceptUnavailable for "+
		"each keyspace to spec.exceptions", of.Datacenter, words.Plural(unserved.Ranges, "range"), unserved.Worst))}}
}

// stopped are the findings about datacenters that are stopped, one for each, and the names of the
// nodes that are of none.
func (of Nodes) stopped(reason string) (out []Finding, names []string) {
	nodes := map[string][]string{}
	for _, name := range of.Names {
		n := of.Nodes[name]
		if n == nil || n.Record == nil || of.Ledger.StoppedDatacenter(n.Record.Spec.Datacenter) == nil {
			names = append(names, name)
			continue
		}
		dc := n.Record.Spec.Datacenter
		nodes[dc] = append(nodes[dc], name)
	}
	for i := range of.Ledger.StoppedDatacenters {
		s := &of.Ledger.StoppedDatacenters[i]
		if len(nodes[s.Name]) > 0 {
			out = append(out, Finding{Nodes: nodes[s.Name], Message: fmt.Sprintf("datacenter %s is stopped since %s; "+
				"%s; %s", s.Name, s.Since.UTC().Format(time.RFC3339), reason,
				assess.Absence(of.Snapshot, s.Name, s.Since))})
		}
	}
	return out, names
}
