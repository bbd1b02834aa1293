package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
)

// selected are the members that a task is about, sorted, or what is wrong with how it selects them.
func selected(v *assess.View, spec *v1alpha1.CassandraTaskSpec) (names []string, wrong string) {
	if spec.Type == v1alpha1.TaskResetSuperuser && !v.AsksForPassword() {
		return nil, "the ring asks nobody for a password: it has no superuser to reset"
	}
	datacenters, racks := map[string]bool{}, map[string]bool{}
	for _, n := range v.Records() {
		if v.Ledger.Members[n.Name] == "" {
			continue
		}
		in := len(spec.Datacenters) == 0 || slices.Contains(spec.Datacenters, n.Record.Spec.Datacenter)
		datacenters[n.Record.Spec.Datacenter] = true
		if in {
			racks[n.Record.Spec.Rack] = true
		}
		if in && (len(spec.Racks) == 0 || slices.Contains(spec.Racks, n.Record.Spec.Rack)) &&
			(len(spec.Nodes) == 0 || slices.Contains(spec.Nodes, n.Name)) {
			names = append(names, n.Name)
		}
	}
	members := map[string]bool{}
	for name := range v.Ledger.Members {
		members[name] = true
	}
	for _, named := range []struct {
		what  string
		names []string
		there map[string]bool
	}{
		{"datacenter", spec.Datacenters, datacenters},
		{"rack", spec.Racks, racks},
		{"node", spec.Nodes, members},
	} {
		for _, name := range named.names {
			if !named.there[name] {
				return nil, fmt.Sprintf("no member of the ring is in spec.%ss %q: there are %s", named.what, name,
					strings.Join(slices.Sorted(maps.Keys(named.there)), ", "))
			}
		}
	}
	if len(names) > v1alpha1.MaxTaskNodes {
		return nil, fmt.Sprintf("%d nodes are selected, and a task can have %d: select some by spec.datacenters or "+
			"spec.racks", len(names), v1alpha1.MaxTaskNodes)
	}
	return names, ""
}
