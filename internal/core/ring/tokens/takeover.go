package tokens

import "helenus.io/helenus/internal/core/ring"

// The part of a range that a new token takes from it.
const (
	mostTakenOver  = 0.90
	leastTakenOver = 1 - mostTakenOver
)

// holder is an owner and its ranges.
type holder struct {
	ownership float64 // the sum of the sizes of its ranges
	ranges    queue[int]
}

// takeOver chooses count tokens for a new owner in a ring where only primary ranges matter
// (NoReplicationTokenAllocator#addUnit): it finds the owners that have more than they would have
// after sharing with the new one, and takes from the largest ranges of each as much as that owner
// has too much, rather than halves. Targets differ a little from owner to owner, so that the next
// owner finds larger ones again.
//
// In a ring with fewer tokens than count the largest ranges are split.
func takeOver(c circle, owner, count int, start ring.Token) []ring.Token {
	if count > len(c) {
		return splitLargest(c, owner, count, start)
	}
	givers, target, owners := chooseGivers(c, count)

	// Targets are spread over at most 2/(2·count+1) of the target, less in a
	// large ring, which takes longer to come back to the ranges split now. The
	// lowest target is left for the new owner.
	spread := target * min(1, (float64(count)+1)/(float64(owners)+1)) * 2 / float64(2*count+1)
	target += spread / 2
	chosen := make([]ring.Token, 0, count)
	for i, giver := range givers {
		share := count / len(givers)
		if i < count%len(givers) {
			share++
		}
		chosen = append(chosen, takeFrom(c, giver, share, giver.ownership-target)...)
		target -= spread / float64(len(givers))
	}
	if missing := count - len(chosen); missing > 0 {
		// An owner with fewer tokens than it was to split; Cassandra fails here.
		for _, token := range chosen {
			c = c.insert(place{token, owner})
		}
		chosen = append(chosen, splitLargest(c, owner, missing, start)...)
	}
	return chosen
}

// chooseGivers finds the owners of which each has more than the average of them and the new one, at
// most count, the largest first. It also returns that average and the number of all owners.
func chooseGivers(c circle, count int) (givers []*holder, average float64, owners int) {
	holders := map[int]*holder{}
	var order []*holder
	for i, p := range c {
		h := holders[p.owner]
		if h == nil {
			h = &holder{}
			holders[p.owner] = h
			order = append(order, h)
		}
		size := c.before(i).SizeTo(p.token)
		h.ownership += size
		h.ranges.push(size, i)
	}
	var largest queue[*holder]
	for _, h := range order {
		largest.push(h.ownership, h)
	}
	sum := 0.0
	for len(givers) < count && !largest.empty() {
		next := largest.pop()
		sum += next.weight
		shared := sum / float64(len(givers)+2)
		if next.weight <= shared {
			break
		}
		givers = append(givers, next.value)
		average = shared
	}
	return givers, average, len(holders)
}

// takeFrom splits up to count of the largest ranges of an owner so that it loses
// amount, evenly from each.
func takeFrom(c circle, giver *holder, count int, amount float64) []ring.Token {
	var ranges []int
	size := 0.0
	for len(ranges) < count && !giver.ranges.empty() {
		next := giver.ranges.pop()
		ranges = append(ranges, next.value)
		size += next.weight
	}
	fraction := mostTakenOver
	if amount < size {
		fraction = min(max(amount/size, leastTakenOver), mostTakenOver)
	}
	tokens := make([]ring.Token, len(ranges))
	for i, at := range ranges {
		tokens[i] = split(c.before(at), c[at].token, fraction)
	}
	return tokens
}
