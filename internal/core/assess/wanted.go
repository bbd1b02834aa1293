package assess

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// Wanted are the nodes that the spec describes. It says how many a rack has. Which these are its
// members say, so that nothing else has to remember that one of them has left before its turn: all
// of them, if there are no more. Otherwise those do not stay that a person wants to leave first,
// and then those with the highest ordinals. New nodes get the lowest ordinals that no member has:
// these are fewer than a hundred, as names of pods have room for, and what a node that has left
// kept on a claim of that name is refused by its disk.
func Wanted(s *facts.Snapshot, now time.Time) []render.Wanted {
	out := render.WantedNodes(s.Cluster, s.Install)
	members := map[[2]string][]int32{}
	for _, name := range memberNames(s) {
		if datacenter, rack, ordinal, ok := placeOf(s, name); ok {
			members[[2]string{datacenter, rack}] = append(members[[2]string{datacenter, rack}], ordinal)
		}
	}
	for first := 0; first < len(out); {
		w, end := out[first], first+1
		for end < len(out) && out[end].Datacenter == w.Datacenter && out[end].Rack == w.Rack {
			end++
		}
		have := members[[2]string{w.Datacenter, w.Rack}]
		if len(have) > end-first { // it matters who stays
			slices.SortFunc(have, func(a, b int32) int {
				return cmp.Or(leavesFirst(s, now, nameOf(s, w, a))-leavesFirst(s, now, nameOf(s, w, b)), int(a-b))
			})
		}
		stay := have[:min(len(have), end-first):min(len(have), end-first)]
		for ordinal := int32(0); len(stay) < end-first; ordinal++ {
			if !slices.Contains(have, ordinal) {
				stay = append(stay, ordinal)
			}
		}
		slices.Sort(stay)
		for i, ordinal := range stay {
			if n := &out[first+i]; n.Ordinal != ordinal {
				n.Name, n.Ordinal = nameOf(s, w, ordinal), ordinal
			}
		}
		first = end
	}
	return out
}

// memberNames are the members by the ledger, and by records that it does not know of, but for
// those that have left, in any order.
func memberNames(s *facts.Snapshot) []string {
	var out []string
	if s.Ledger != nil {
		out = slices.AppendSeq(make([]string, 0, len(s.Ledger.Members)), maps.Keys(s.Ledger.Members))
	}
	for _, n := range s.Nodes {
		if _, known := s.Ledger.HostID(n.Name); !known && n.Record != nil && n.Record.Spec.Member != nil {
			out = append(out, n.Name)
		}
	}
	return slices.DeleteFunc(out, func(name string) bool {
		n := s.Nodes[name]
		return n != nil && n.Record != nil && n.Record.Spec.State == v1alpha1.StateDecommissioned
	})
}

// placeOf a node by its name, in which only that of the cluster has hyphens.
func placeOf(s *facts.Snapshot, name string) (datacenter, rack string, ordinal int32, ok bool) {
	datacenter, rest, _ := strings.Cut(strings.TrimPrefix(name, s.Cluster.Name+"-"), "-")
	rack, last, _ := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(last, 10, 31)
	return datacenter, rack, int32(n), err == nil
}

func nameOf(s *facts.Snapshot, w render.Wanted, ordinal int32) string {
	return v1alpha1.NodeName(s.Cluster.Name, w.Datacenter, w.Rack, ordinal)
}

// leavesFirst is 1 for a node that a person wants to leave before others of its rack, and 0 for
// others.
func leavesFirst(s *facts.Snapshot, now time.Time, node string) int {
	return min(1, len(exceptions(s, now, v1alpha1.ExceptionRemoveFirst, node)))
}
