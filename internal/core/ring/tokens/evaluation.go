package tokens

import (
	"slices"

	"helenus.io/helenus/internal/core/ring"
)

// group is a set of owners of which each range has one replica at most.
type group int

// unit is an owner.
type unit struct {
	group     group
	tokens    float64 // their number
	ownership float64 // what its tokens replicate
	// adjusted is the ownership with the candidate that is being evaluated.
	adjusted float64
}

// span is a token with what it replicates: the range from start to itself.
type span struct {
	token ring.Token
	unit  *unit
	start ring.Token
	// threshold is where a new token of the newcomer has to be, or nearer to this
	// token, to become the start.
	threshold ring.Token
	// owned is the size of the range, already counted in the unit's ownership.
	owned float64
}

// vnode is a token in the ring.
type vnode struct {
	span
	prev, next *vnode
}

// candidate is a token that the newcomer may choose, in the range that ends with split.
type candidate struct {
	span
	split      *vnode
	prev, next *candidate
}

// remove takes the candidate out of the list. It keeps its own pointers: confirm
// continues from them.
func (c *candidate) remove() {
	c.prev.next, c.next.prev = c.next, c.prev
}

// evaluation is the state of a ring while a newcomer's tokens are chosen.
type evaluation struct {
	replicas int
	groups   map[string]group
	units    map[int]*unit
	first    *vnode
	length   int
	newcomer *unit
	optimum  float64 // what each token should replicate

	// Reused from walk to walk: the groups met by extend and by the walks around
	// it, and the units that the evaluated candidate adjusts.
	near, far []group
	touched   []*unit
}

func newEvaluation(c circle, replicas int, groupOf func(int) string) *evaluation {
	e := &evaluation{replicas: replicas, groups: map[string]group{}, units: map[int]*unit{}, length: len(c)}
	var last *vnode
	for _, p := range c {
		u := e.units[p.owner]
		if u == nil {
			u = &unit{group: e.group(groupOf(p.owner))}
			e.units[p.owner] = u
		}
		u.tokens++
		v := &vnode{span: span{token: p.token, unit: u}}
		if last == nil {
			e.first = v
			v.prev, v.next = v, v
		} else {
			v.insertAfter(last)
		}
		last = v
	}
	return e
}

func (v *vnode) insertAfter(prev *vnode) {
	v.prev, v.next = prev, prev.next
	v.prev.next, v.next.prev = v, v
}

func (e *evaluation) group(name string) group {
	g, ok := e.groups[name]
	if !ok {
		g = group(len(e.groups))
		e.groups[name] = g
	}
	return g
}

// addNewcomer adds the new owner, with the ownership that it should get, and
// works out what each token replicates; that depends on the newcomer's group.
func (e *evaluation) addNewcomer(owner, count int, groupOf func(int) string) {
	e.optimum = float64(e.replicas) / float64(e.length+count)
	e.newcomer = &unit{group: e.group(groupOf(owner)), ownership: float64(count) * e.optimum}
	at := e.first
	for range e.length {
		e.settle(at)
		at = at.next
	}
	e.newcomer.tokens = float64(count)
}

// candidates are the middles of all ranges, in ring order.
func (e *evaluation) candidates() *candidate {
	var first, last *candidate
	at := e.first
	for range e.length {
		c := &candidate{
			span:  span{token: midpoint(at.prev.token, at.token), unit: e.newcomer, owned: e.optimum},
			split: at,
		}
		if first == nil {
			first = c
		} else {
			c.prev, last.next = last, c
		}
		e.extend(&c.span, at.prev)
		last = c
		at = at.next
	}
	first.prev, last.next = last, first
	return first
}

// extend works out where the range of a token starts and from where on a new token changes that;
// before is the token before it. Going back, the range ends at the first token of the last of as
// many groups as there are replicas, or where the token's own group comes again.
func (e *evaluation) extend(s *span, before *vnode) {
	seen := e.near[:0]
	s.threshold = s.token
	for at := before; ; at = at.prev {
		s.start = at.token
		if slices.Contains(seen, at.unit.group) {
			continue
		}
		seen = append(seen, at.unit.group)
		if len(seen) == e.replicas {
			break
		}
		s.threshold = s.start
		if at.unit.group == s.unit.group {
			break
		}
	}
	e.near = seen
	if e.newcomer.group == s.unit.group {
		// Any new token of this group ends the range, if it is nearer than start.
		s.threshold = s.token
	} else if slices.Contains(seen[:len(seen)-1], e.newcomer.group) {
		// The newcomer's group has its replica nearer by: nothing can change.
		s.threshold = s.start
	}
}

// settle works out what a token in the ring replicates and counts it.
func (e *evaluation) settle(v *vnode) {
	e.extend(&v.span, v.prev)
	owned := v.start.SizeTo(v.token)
	v.unit.ownership += owned - v.owned
	v.owned = owned
}

// confirm puts a candidate, already out of the list, into the ring.
func (e *evaluation) confirm(c *candidate) {
	added := &vnode{span: span{token: c.token, unit: e.newcomer, owned: c.owned}}
	added.insertAfter(c.split.prev)
	e.settle(added)
	seen := e.far[:0]
	for at := added.next; len(seen) < e.replicas; at = at.next {
		c = c.next
		e.extend(&c.span, c.split.prev)
		if !slices.Contains(seen, at.unit.group) {
			seen = append(seen, at.unit.group)
			e.settle(at)
		}
	}
	e.far = seen
}

// improvement is by how much the variance of what tokens and owners replicate would fall if the
// newcomer took the candidate. newcomerWeight, from 0 to 1, is how much the newcomer's own distance
// from the optimum counts: little at its first tokens, fully at the last.
func (e *evaluation) improvement(c *candidate, newcomerWeight float64) float64 {
	e.touched = e.touched[:0]
	change := e.adjust(&c.span, c.start)
	seen := e.far[:0]
	for at := c.split; len(seen) < e.replicas; at = at.next {
		if slices.Contains(seen, at.unit.group) {
			continue
		}
		seen = append(seen, at.unit.group)
		change += e.adjust(&at.span, further(at.threshold, c.token, at.token))
	}
	e.far = seen
	return -(change + e.unitChange(newcomerWeight))
}

// adjust makes a token's range start elsewhere, as long as a candidate is being
// evaluated, and returns by how much that changes the variance of tokens.
func (e *evaluation) adjust(s *span, start ring.Token) float64 {
	owned := start.SizeTo(s.token)
	u := s.unit
	if !slices.Contains(e.touched, u) {
		u.adjusted = u.ownership
		e.touched = append(e.touched, u)
	}
	u.adjusted += owned - s.owned
	return (square(owned-e.optimum) - square(s.owned-e.optimum)) / square(u.tokens)
}

// unitChange is by how much the adjustments change the variance of owners.
func (e *evaluation) unitChange(newcomerWeight float64) float64 {
	change := 0.0
	// The newcomer was touched first. Summed from the last, as Cassandra does.
	for i := len(e.touched) - 1; i >= 0; i-- {
		u := e.touched[i]
		diff := square(u.adjusted/u.tokens-e.optimum) - square(u.ownership/u.tokens-e.optimum)
		if i == 0 {
			diff = float64(diff * newcomerWeight)
		}
		change += diff
	}
	return change
}

// further is the one of two tokens that is further back from an end. A token
// equal to the end counts as no distance.
func further(a, b, end ring.Token) ring.Token {
	switch {
	case a == end:
		return b
	case b == end:
		return a
	case a.SizeTo(end) > b.SizeTo(end):
		return a
	}
	return b
}

// square converts so that the compiler may not fuse the product with a sum, which
// would give other tokens on other processors.
func square(x float64) float64 { return float64(x * x) }
