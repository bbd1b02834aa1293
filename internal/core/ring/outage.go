package ring

import "slices"

// outage is which nodes are down, kept so that taking one more down costs only
// as much as that node has ranges.
type outage struct {
	*Protection
	down []bool
	// taken marks those of the nodes that are down which were taken down, as
	// opposed to being down before.
	taken []bool
	count int // of taken
	// lost counts, for each demand and range, the replicas that are down.
	lost [][]uint16
}

// outage starts with nodes that are down before. Ids that are not in the ring
// are ignored: a node that has left still shows as unreachable for days.
func (p *Protection) outage(down []string) *outage {
	o := &outage{
		Protection: p,
		down:       make([]bool, p.ring.Len()),
		taken:      make([]bool, p.ring.Len()),
		lost:       make([][]uint16, len(p.demands)),
	}
	for i := range p.demands {
		o.lost[i] = make([]uint16, p.demands[i].ranges())
	}
	for _, id := range down {
		if node, ok := p.ring.index[id]; ok && !o.down[node] {
			o.change(node, 1)
		}
	}
	return o
}

// change counts a node's replicas as lost (by 1) or back (by -1).
func (o *outage) change(node int32, by int) {
	o.down[node] = by > 0
	for i := range o.demands {
		lost := o.lost[i]
		for _, at := range o.demands[i].nodes.of(node) {
			lost[at] += uint16(by)
		}
	}
}

// take takes a node down. One that is down already stays as it is.
func (o *outage) take(node int32) {
	if !o.down[node] {
		o.taken[node] = true
		o.count++
		o.change(node, 1)
	}
}

// giveBack undoes take of a node that was not down before it.
func (o *outage) giveBack(node int32) {
	o.taken[node] = false
	o.count--
	o.change(node, -1)
}

// breaks says whether a taken node holds a replica of a range that could be
// protected and is below the level. Taking nodes one after the other, it is
// enough to ask this of the last: the ranges of the others were in order.
func (o *outage) breaks(node int32) bool {
	for i := range o.demands {
		if d := &o.demands[i]; d.spare() >= 1 && o.mostLost(i, node) > d.spare() {
			return true
		}
	}
	return false
}

// exposes is the largest number of replicas that are down of any range which no schedule protects
// and of which the node holds a replica; 0 if there are none, or if all are up.
func (o *outage) exposes(node int32) int {
	most := 0
	for i := range o.demands {
		if o.demands[i].spare() < 1 {
			most = max(most, o.mostLost(i, node))
		}
	}
	return most
}

func (o *outage) mostLost(demand int, node int32) int {
	most := uint16(0)
	for _, at := range o.demands[demand].nodes.of(node) {
		most = max(most, o.lost[demand][at])
	}
	return int(most)
}

// verdict judges the ranges of which a taken node is a replica; nothing was done to the others.
func (o *outage) verdict() Verdict {
	v := Verdict{taken: o.count}
	for node, taken := range o.taken {
		if taken {
			o.judge(&v, int32(node))
		}
	}
	v.Safe = v.Broken.Ranges == 0
	return v
}

// judge adds what a taken node does to the verdict.
func (o *outage) judge(v *Verdict, node int32) {
	for i := range o.demands {
		d := &o.demands[i]
		finding := &v.Broken
		if d.spare() < 1 {
			finding = &v.Unprotected
		}
		for _, at := range d.nodes.of(node) {
			if lost := int(o.lost[i][at]); lost > d.spare() && o.firstTaken(d, int(at)) == node {
				o.note(finding, d, int(at), lost)
			}
		}
	}
}

// firstTaken is the first taken replica of a range, so that a range with several
// of them is counted once.
func (o *outage) firstTaken(d *demand, at int) int32 {
	first := int32(len(o.taken))
	for _, node := range d.row(at) {
		if o.taken[node] && node < first {
			first = node
		}
	}
	return first
}

// note counts a range that fails, and keeps it if it is the worst so far: the
// one with the most replicas missing for the level, the earlier one if equal.
func (o *outage) note(f *Finding, d *demand, at, lost int) {
	f.Ranges++
	f.Down = max(f.Down, lost)
	if missing := lost - d.spare(); f.Worst == nil || missing > f.Worst.missing() {
		f.Worst = o.risk(d, at)
	}
}

// risk describes a range as it would then be.
func (o *outage) risk(d *demand, at int) *Risk {
	risk := &Risk{
		Keyspaces:   slices.Clone(d.keyspaces),
		Datacenter:  d.datacenter,
		Consistency: o.consistency,
		Range:       d.circle.rangeAt(at),
		Required:    d.required,
	}
	for _, node := range slices.Sorted(slices.Values(d.row(at))) {
		id := o.ring.nodes[node].ID
		risk.Replicas = append(risk.Replicas, id)
		switch {
		case o.taken[node]:
			risk.Taken = append(risk.Taken, id)
		case o.down[node]:
			risk.Down = append(risk.Down, id)
		}
	}
	return risk
}
