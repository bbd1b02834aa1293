package tokens

import (
	"cmp"
	"math"
	"slices"

	"helenus.io/helenus/internal/core/ring"
)

// place is a token that is taken in an allocation ring, and whose it is. Owners
// are numbers that the caller of an allocator chooses.
type place struct {
	token ring.Token
	owner int
}

// circle is the places of an allocation ring in ascending order of tokens.
type circle []place

// insert adds a place. A token that is there already changes its owner, as in
// the sorted map that Cassandra keeps here.
func (c circle) insert(p place) circle {
	at, found := slices.BinarySearchFunc(c, p, comparePlaces)
	if found {
		c[at] = p
		return c
	}
	return slices.Insert(c, at, p)
}

func comparePlaces(a, b place) int { return cmp.Compare(a.token, b.token) }

// before is the token before the i-th, around the ring's start if need be.
func (c circle) before(i int) ring.Token { return c[(i+len(c)-1)%len(c)].token }

// owners is the number of different owners.
func (c circle) owners() int {
	seen := map[int]bool{}
	for _, p := range c {
		seen[p.owner] = true
	}
	return len(seen)
}

// The part of the largest range at which it is split: a little random around a ratio that is far
// from every simple fraction, so that pieces stay of varied size (TokenAllocatorBase).
var (
	leastSplitRatio = 1 - 1/math.Sqrt(5)
	mostSplitRatio  = leastSplitRatio + 0.075
)

// splitLargest chooses count tokens by splitting the largest range again and again
// (TokenAllocatorBase#generateSplits); in an empty circle the first token is start. Cassandra takes
// this way for the first nodes of a ring: it leaves ranges of varied size, which later allocations
// need to keep the balance for any number of nodes.
func splitLargest(c circle, owner, count int, start ring.Token) []ring.Token {
	random := newJavaRandom(len(c))
	chosen := make([]ring.Token, 0, count)
	if len(c) == 0 {
		c = circle{{start, owner}}
		chosen = append(chosen, start)
	}
	for len(chosen) < count {
		largest, size := 0, 0.0
		for i := range c {
			if s := c.before(i).SizeTo(c[i].token); s > size {
				largest, size = i, s
			}
		}
		// Converted so that the compiler may not fuse the product with the sum, which
		// would give other tokens on other processors.
		ratio := leastSplitRatio + float64((mostSplitRatio-leastSplitRatio)*random.float64())
		token := split(c.before(largest), c[largest].token, ratio)
		chosen = append(chosen, token)
		c = c.insert(place{token, owner})
	}
	return chosen
}
