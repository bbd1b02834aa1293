package ring

import "slices"

// table lists the replicas of every range of a circle. Each range has the same
// number of them, because both strategies place min(factor, nodes) replicas.
type table struct {
	circle *circle
	width  int
	// replicas holds width nodes for each range, in no particular order; range i
	// is the one that ends with the circle's i-th token.
	replicas []int32
}

func (t *table) ranges() int { return len(t.circle.tokens) }

func (t *table) row(i int) []int32 { return t.replicas[i*t.width : (i+1)*t.width] }

// datacenterTable places factor replicas in one datacenter as NetworkTopologyStrategy does. What it
// places in one datacenter depends on that datacenter's tokens alone, so the ranges are those
// between its own tokens, and keyspaces with the same factor there share the table whatever they
// have elsewhere.
//
// The ranges are done from the last to the first while the racks are kept in the order in which a
// walk from the present range meets them. So the cost does not depend on how far such a walk is: a
// rack with one node in a thousand is met seldom.
func (r *Ring) datacenterTable(dc *datacenter, factor int) *table {
	count := len(dc.tokens)
	t := &table{circle: &dc.circle, width: min(factor, len(dc.nodes))}
	if t.width == len(dc.nodes) {
		t.replicas = make([]int32, 0, count*t.width)
		for range count {
			t.replicas = append(t.replicas, dc.nodes...)
		}
		return t
	}
	t.replicas = make([]int32, count*t.width)
	walk := rackWalk{ring: r, dc: dc, next: make([]int, len(dc.racks)), taken: make([]int, len(dc.racks))}
	// Twice around: the first time only to learn where each rack comes next.
	for position := 2*count - 1; position >= 0; position-- {
		walk.moveTo(position)
		if position < count {
			walk.take(position, factor-len(dc.racks), t.row(position))
		}
	}
	return t
}

// rackWalk knows, at a position of a datacenter's circle, which token of each rack comes next.
type rackWalk struct {
	ring  *Ring
	dc    *datacenter
	order []int32 // racks, the next one first
	next  []int   // position of each rack's next token
	taken []int   // position+1 for which the rack was taken last
}

// moveTo goes one position back.
func (w *rackWalk) moveTo(position int) {
	rack := w.ring.rack[w.owner(position)]
	w.next[rack] = position
	for i, other := range w.order {
		if other == rack {
			copy(w.order[1:i+1], w.order[:i])
			w.order[0] = rack
			return
		}
	}
	w.order = append(w.order, 0)
	copy(w.order[1:], w.order)
	w.order[0] = rack
}

// take fills a row, which is shorter than the number of nodes, with the replicas
// of the range at a position: nodes in token order while replicas may share a
// rack, then the next node of each rack that has none yet.
func (w *rackWalk) take(position, repeats int, row []int32) {
	filled := 0
	for at := position; repeats > 0; at++ {
		node := w.owner(at)
		if slices.Contains(row[:filled], node) {
			continue
		}
		if rack := w.ring.rack[node]; w.taken[rack] != position+1 {
			w.taken[rack] = position + 1
		} else {
			repeats--
		}
		row[filled] = node
		filled++
	}
	for i := 0; filled < len(row); i++ {
		if rack := w.order[i]; w.taken[rack] != position+1 {
			row[filled] = w.owner(w.next[rack])
			filled++
		}
	}
}

func (w *rackWalk) owner(position int) int32 {
	return w.dc.owners[position%len(w.dc.owners)]
}

// topologyTable places replicas in all datacenters as NetworkTopologyStrategy
// does; parts are the tables of the datacenters that get any.
func (r *Ring) topologyTable(parts []*table) *table {
	t := &table{circle: &r.circle}
	for _, part := range parts {
		t.width += part.width
	}
	t.replicas = make([]int32, 0, len(r.tokens)*t.width)
	at := make([]int, len(parts))
	for _, token := range r.tokens {
		for i, part := range parts {
			// A range of the whole ring lies in that range of the datacenter which
			// ends with the datacenter's next token.
			for at[i] < part.ranges() && part.circle.tokens[at[i]] < token {
				at[i]++
			}
			t.replicas = append(t.replicas, part.row(at[i]%part.ranges())...)
		}
	}
	return t
}

// simpleTable places replicas as SimpleStrategy does.
func (r *Ring) simpleTable(factor int) *table {
	t := &table{circle: &r.circle, width: min(factor, len(r.nodes))}
	t.replicas = make([]int32, len(r.tokens)*t.width)
	for i := range r.tokens {
		row, filled := t.row(i), 0
		for at := i; filled < len(row); at++ {
			if node := r.owners[at%len(r.owners)]; !slices.Contains(row[:filled], node) {
				row[filled] = node
				filled++
			}
		}
	}
	return t
}

// everywhereTable has one range, the full ring, and every node in it.
func (r *Ring) everywhereTable() *table {
	whole := newCircle(1)
	if len(r.nodes) > 0 {
		whole.add(MinToken, 0)
	}
	return &table{circle: &whole, width: len(r.nodes), replicas: r.everyone()}
}

// everyone is every node.
func (r *Ring) everyone() []int32 {
	all := make([]int32, len(r.nodes))
	for i := range all {
		all[i] = int32(i)
	}
	return all
}
