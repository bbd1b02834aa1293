package operation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
)

// localKeyspaces are on every node, and its own (SchemaConstants#LOCAL_SYSTEM_KEYSPACE_NAMES, 4.1
// and 5.0).
//
//nolint:gochecknoglobals // a table
var localKeyspaces = []string{"system", "system_schema"}

// Keyspaces are those that an operation works on, sorted: the ones that it names, or all that have
// something to do with it. Those that are local to a node are among them if its kind says so.
// Skipped are the other ones whose replication is not understood, with the reason. An error names
// what does not fit the ring in the node's view.
func Keyspaces(o *v1alpha1.OperationIntent, view *facts.Ring) (out, skipped []string, err error) {
	kind, known := Of(o.Type)
	if !known {
		return nil, nil, fmt.Errorf("operation %s is not known", o.Type)
	}
	r := RequestOf(o, view)
	if err := r.checkDatacenters(); err != nil {
		return nil, nil, err
	}
	names := slices.Sorted(slices.Values(r.Arguments.Keyspaces))
	named := len(names) > 0
	if !named {
		names = slices.Collect(maps.Keys(view.Keyspaces))
		if kind.Local {
			names = append(names, localKeyspaces...)
		}
		slices.Sort(names)
	}
	for _, name := range names {
		if kind.Local && slices.Contains(localKeyspaces, name) {
			out = append(out, name)
			continue
		}
		text, found := view.Keyspaces[name]
		if !found {
			return nil, nil, fmt.Errorf("keyspace %q is not there, or is local to each node: the ring replicates %s",
				name, strings.Join(slices.Sorted(maps.Keys(view.Keyspaces)), ", "))
		}
		replication, err := ring.ParseReplication(text)
		why := ""
		if kind.Unfit != nil && err == nil {
			why = kind.Unfit(r, replication)
		}
		switch {
		case err != nil && !kind.AnyStrategy && named:
			return nil, nil, fmt.Errorf("keyspace %s: %w", name, err)
		case err != nil && !kind.AnyStrategy:
			skipped = append(skipped, fmt.Sprintf("keyspace %s: %s", name, err))
		case why == "":
			out = append(out, name)
		case named:
			return nil, nil, fmt.Errorf("keyspace %s (%s) %s", name, text, why)
		}
	}
	return out, skipped, nil
}

// checkDatacenters says which datacenter of the arguments does not fit the ring.
func (r Request) checkDatacenters() error {
	datacenters, own := datacentersOf(r.View), r.self().Datacenter
	for _, name := range r.Arguments.Datacenters {
		if !slices.Contains(datacenters, name) {
			return fmt.Errorf("datacenter %q has no member: those of the ring are %s", name,
				strings.Join(datacenters, ", "))
		}
	}
	if wanted := r.Arguments.Datacenters; len(wanted) > 0 && !slices.Contains(wanted, own) {
		return fmt.Errorf("the datacenters %s do not include that of this node, %s, whose ranges are repaired",
			strings.Join(wanted, ", "), own)
	}
	if source := r.Arguments.SourceDatacenter; source != "" && !slices.Contains(datacenters, source) {
		return fmt.Errorf("source datacenter %q has no member: those of the ring are %s", source,
			strings.Join(datacenters, ", "))
	}
	return nil
}

// replicationKnown refuses as long as replicas that a keyspace is to have at least are not in the
// view of the node, whose schema may be older than the ring's: it would find nothing to do.
func replicationKnown(r Request) *Refusal {
	for _, least := range r.Arguments.KeyspaceReplication {
		text, found := r.View.Keyspaces[least.Keyspace]
		if !found {
			return refuse(v1alpha1.BlockedReplicationUnknown, "keyspace %s is not there, as far as this node knows",
				least.Keyspace)
		}
		replication, err := ring.ParseReplication(text)
		if err != nil {
			return refuse(v1alpha1.BlockedReplicationUnknown, "keyspace %s: %s", least.Keyspace, err)
		}
		for _, datacenter := range slices.Sorted(maps.Keys(least.Replication)) {
			if wanted := least.Replication[datacenter]; replication.Factor(datacenter) < int(wanted) {
				return refuse(v1alpha1.BlockedReplicationUnknown,
					"keyspace %s is to have %d replicas in datacenter %s and has, as far as this node knows, %s",
					least.Keyspace, wanted, datacenter, text)
			}
		}
	}
	return nil
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
