package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
)

// KeyspacesOf are the keyspaces that a Cleanup, Rebuild or Repair works on, sorted: those that it names, or all that are replicated and have something to do
// with it. Those that are local to a node are never among them. An error names what does not fit the ring in the node's view.
func KeyspacesOf(o *v1alpha1.OperationIntent, view *facts.Ring) ([]string, error) {
	arguments := v1alpha1.OperationArguments{}
	if o.Arguments != nil {
		arguments = *o.Arguments
	}
	self, _ := view.ByHostID(view.HostID)
	datacenters := datacentersOf(view)
	for _, name := range arguments.Datacenters {
		if !slices.Contains(datacenters, name) {
			return nil, fmt.Errorf("datacenter %q has no member: those of the ring are %s", name, strings.Join(datacenters, ", "))
		}
	}
	if len(arguments.Datacenters) > 0 && !slices.Contains(arguments.Datacenters, self.Datacenter) {
		return nil, fmt.Errorf("the datacenters %s do not include that of this node, %s, whose ranges are repaired", strings.Join(arguments.Datacenters, ", "), self.Datacenter)
	}
	source := arguments.SourceDatacenter
	if source != "" && !slices.Contains(datacenters, source) {
		return nil, fmt.Errorf("source datacenter %q has no member: those of the ring are %s", source, strings.Join(datacenters, ", "))
	}
	names := slices.Sorted(slices.Values(arguments.Keyspaces))
	named := len(names) > 0
	if !named {
		names = slices.Sorted(maps.Keys(view.Keyspaces))
	}
	var out []string
	for _, name := range names {
		text, found := view.Keyspaces[name]
		if !found {
			return nil, fmt.Errorf("keyspace %q is not there, or is local to each node: the ring replicates %s", name, strings.Join(slices.Sorted(maps.Keys(view.Keyspaces)), ", "))
		}
		why, err := unfit(o.Type, text, source, self.Datacenter)
		switch {
		case err != nil:
			return nil, fmt.Errorf("keyspace %s: %w", name, err)
		case why == "":
			out = append(out, name)
		case named:
			return nil, fmt.Errorf("keyspace %s (%s) %s", name, text, why)
		}
	}
	return out, nil
}

// replicationUnknown says which replicas that a keyspace is to have at least are not in the view of the node, whose schema may be older than the ring's; empty if all are.
func replicationUnknown(arguments *v1alpha1.OperationArguments, view *facts.Ring) string {
	if arguments == nil {
		return ""
	}
	for _, least := range arguments.KeyspaceReplication {
		text, found := view.Keyspaces[least.Keyspace]
		if !found {
			return fmt.Sprintf("keyspace %s is not there, as far as this node knows", least.Keyspace)
		}
		replication, err := ring.ParseReplication(text)
		if err != nil {
			return fmt.Sprintf("keyspace %s: %s", least.Keyspace, err)
		}
		for _, datacenter := range slices.Sorted(maps.Keys(least.Replication)) {
			if wanted := least.Replication[datacenter]; replication.Factor(datacenter) < int(wanted) {
				return fmt.Sprintf("keyspace %s is to have %d replicas in datacenter %s and has, as far as this node knows, %s", least.Keyspace, wanted, datacenter, text)
			}
		}
	}
	return ""
}

// unfit says why an operation has nothing to do with a keyspace of a replication; empty if it has.
func unfit(t v1alpha1.OperationType, text, source, own string) (string, error) {
	replication, err := ring.ParseReplication(text)
	if err != nil {
		return "", err
	}
	perDatacenter := replication.Strategy() == ring.NetworkTopologyStrategy
	switch {
	case t == v1alpha1.OperationRepair && replication.TotalFactor() < 2:
		return "has one replica, which cannot be compared", nil
	case t == v1alpha1.OperationRebuild && perDatacenter && replication.Factor(source) == 0:
		return "has no replica in the datacenter " + source, nil
	case t == v1alpha1.OperationRebuild && perDatacenter && replication.Factor(own) == 0:
		return "has no replica in the datacenter of this node, " + own, nil
	default:
		return "", nil
	}
}

// datacentersOf are those that have members in a view, sorted.
func datacentersOf(view *facts.Ring) []string {
	var out []string
	for _, e := range view.Endpoints {
		if e.Member() && e.Datacenter != "" {
			out = append(out, e.Datacenter)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
