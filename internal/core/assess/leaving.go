package assess

import (
	"cmp"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// addLeaving adds the members that the spec does not describe any more to Wanted, each behind the
// nodes of its rack. Where the spec has nothing of its rack, a node stays as its record has it, or
// as that of another one of its rack.
func (v *View) addLeaving() {
	var leaving, recorded []render.Wanted
	for _, n := range v.Records() {
		if !v.hasRack(n.Record.Spec.Datacenter, n.Record.Spec.Rack) {
			recorded = append(recorded, v.asRecorded(n))
		}
	}
	names := slices.DeleteFunc(memberNames(v.Snapshot), func(name string) bool { return v.Describes(name) != nil })
	slices.Sort(names)
	for _, name := range names {
		at := slices.IndexFunc(recorded, func(w render.Wanted) bool { return w.Name == name })
		switch w := v.ofItsRack(name, slices.Concat(v.Wanted, recorded)); {
		case at >= 0:
			recorded[at].Leaves = true
			leaving = append(leaving, recorded[at])
		case w != nil:
			leaving = append(leaving, *w)
		}
	}
	if len(leaving) == 0 {
		return
	}
	slices.SortFunc(leaving, func(a, b render.Wanted) int { // the last one leaves first
		return cmp.Or(leavesFirst(v.Snapshot, v.Now, a.Name)-leavesFirst(v.Snapshot, v.Now, b.Name),
			int(a.Ordinal-b.Ordinal))
	})
	for _, w := range leaving {
		at := len(v.Wanted)
		for i := range v.Wanted {
			if v.Wanted[i].Datacenter == w.Datacenter && v.Wanted[i].Rack == w.Rack {
				at = i + 1
			}
		}
		v.Wanted = slices.Insert(v.Wanted, at, w)
	}
	v.byName = nil
}

// hasRack says that the spec describes a rack.
func (v *View) hasRack(datacenter, rack string) bool {
	dc := v.Datacenter(datacenter)
	return dc != nil && slices.ContainsFunc(dc.Racks, func(r v1alpha1.Rack) bool { return r.Name == rack })
}

// asRecorded is a node as its record has it, with the release that the spec wants of all.
func (v *View) asRecorded(n *facts.Node) render.Wanted {
	spec := n.Record.Spec.DeepCopy()
	w := render.Wanted{Name: n.Name, Datacenter: spec.Datacenter, Rack: spec.Rack, Ordinal: spec.Ordinal,
		Disruption: render.DisruptionOf(v.Cluster), Metrics: render.MetricsOf(v.Cluster),
		Configuration: spec.Configuration, Pod: spec.Pod}
	w.Configuration.Version, w.Pod.Image = v.Cluster.Spec.Version, render.Image(v.Cluster, v.Install)
	w.Pod.ImageDefaulted, w.Pod.ImageDigest = v.Cluster.Spec.Image == "", v.TakenDigest(w.Pod.Image)
	return w
}

// ofItsRack is a node as others of its rack are described; nil if none is.
func (v *View) ofItsRack(name string, described []render.Wanted) *render.Wanted {
	datacenter, rack, ordinal, ok := placeOf(v.Snapshot, name)
	for _, w := range described {
		if ok && w.Datacenter == datacenter && w.Rack == rack {
			w.Name, w.Ordinal, w.Leaves = name, ordinal, true
			return &w
		}
	}
	return nil
}

// Leaving are the members that the spec does not describe any more, in the order in which they
// leave: each time the last one of the rack that has the most members, of racks that have some to
// leave, or one that a person wants to leave first.
func (v *View) Leaving() []render.Wanted {
	type rack = [2]string
	var racks []rack
	members, leaving := map[rack]int{}, map[rack][]render.Wanted{}
	for _, w := range v.Wanted {
		r := rack{w.Datacenter, w.Rack}
		if members[r] == 0 && len(leaving[r]) == 0 {
			racks = append(racks, r)
		}
		members[r]++
		if w.Leaves {
			leaving[r] = append(leaving[r], w)
		}
	}
	var out []render.Wanted
	for {
		var next *rack
		for i := range racks {
			if len(leaving[racks[i]]) > 0 && (next == nil || members[racks[i]] > members[*next]) {
				next = &racks[i]
			}
		}
		if next == nil {
			return out
		}
		last := len(leaving[*next]) - 1
		out = append(out, leaving[*next][last])
		leaving[*next] = leaving[*next][:last]
		members[*next]--
	}
}

// Leaves says that a node is a member that the spec does not describe any more.
func (v *View) Leaves(name string) bool {
	w := v.Describes(name)
	return w != nil && w.Leaves
}
