package ring

import "slices"

// Shortage is a range of which a lost node has a replica, and of which so few others are up that
// they may lack a write: one that was acknowledged by a quorum in which none of them was.
type Shortage struct {
	// Keyspaces to which this applies, sorted.
	Keyspaces []string
	// Up and Down are the ids of the other replicas, sorted, and Needed is how many must be up.
	Up, Down []string
	Needed   int
}

// Shortages are the ranges that would lack writes once a lost node is replaced while others are
// down: the worst of each set of keyspaces that are replicated alike. Any so many replicas that
// they have one in common with every quorum have every write.
func (p *Protection) Shortages(lost string, down []string) ([]Shortage, error) {
	nodes, err := p.ring.find([]string{lost})
	if err != nil {
		return nil, err
	}
	o := p.outage(append([]string{lost}, down...))
	var out []Shortage
	for i := range p.demands {
		d := &p.demands[i]
		needed, worst := d.width-d.required+1, int32(-1)
		for _, at := range d.nodes.of(nodes[0]) {
			if d.width-int(o.lost[i][at]) < needed && (worst < 0 || o.lost[i][at] > o.lost[i][worst]) {
				worst = at
			}
		}
		if worst < 0 {
			continue
		}
		s := Shortage{Keyspaces: d.keyspaces, Needed: needed}
		for _, node := range d.row(int(worst)) {
			switch {
			case node == nodes[0]:
			case o.down[node]:
				s.Down = append(s.Down, p.ring.nodes[node].ID)
			default:
				s.Up = append(s.Up, p.ring.nodes[node].ID)
			}
		}
		slices.Sort(s.Up)
		slices.Sort(s.Down)
		out = append(out, s)
	}
	return out, nil
}

// Holders are few nodes that together have replicas of every range of which a node has one, as far
// as others of those that may be chosen have any.
func (p *Protection) Holders(of string, among []string) ([]string, error) {
	nodes, err := p.ring.find([]string{of})
	if err != nil {
		return nil, err
	}
	candidates, err := p.ring.find(among)
	if err != nil {
		return nil, err
	}
	type place struct {
		demand int
		at     int32
	}
	missing := map[place]bool{}
	for i := range p.demands {
		for _, at := range p.demands[i].nodes.of(nodes[0]) {
			missing[place{i, at}] = true
		}
	}
	covers := func(node int32) (out []place) {
		for i := range p.demands {
			for _, at := range p.demands[i].nodes.of(node) {
				if missing[place{i, at}] {
					out = append(out, place{i, at})
				}
			}
		}
		return out
	}
	var chosen []string
	for len(missing) > 0 {
		var best []place
		var who int32
		for _, node := range candidates {
			if c := covers(node); node != nodes[0] && len(c) > len(best) {
				best, who = c, node
			}
		}
		if len(best) == 0 {
			break // nobody else has the rest
		}
		for _, at := range best {
			delete(missing, at)
		}
		chosen = append(chosen, p.ring.nodes[who].ID)
	}
	return chosen, nil
}
