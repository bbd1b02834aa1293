package tokens

import "helenus.io/helenus/internal/core/ring"

// spread chooses count tokens for a new owner in a ring where each range is replicated
// (ReplicationAwareTokenAllocator#addUnit): of the middles of all ranges it takes those which bring
// what owners and tokens replicate closest to even. groupOf gives the group of an owner; a range
// has replicas on as many different groups.
//
// In a ring with fewer owners or groups than replicas, or fewer tokens than
// count, the largest ranges are split.
func spread(c circle, owner, count, replicas int, groupOf func(owner int) string, start ring.Token) []ring.Token {
	if count > len(c) || c.owners() < replicas {
		return splitLargest(c, owner, count, start)
	}
	e := newEvaluation(c, replicas, groupOf)
	if len(e.groups) < replicas {
		return splitLargest(c, owner, count, start)
	}
	e.addNewcomer(owner, count, groupOf)
	first := e.candidates()

	var improvements queue[*candidate]
	for at := first; ; {
		improvements.push(e.improvement(at, 1/float64(count)), at)
		if at = at.next; at == first {
			break
		}
	}
	chosen := make([]ring.Token, 0, count)
	best := improvements.pop().value
	for {
		best.remove()
		e.confirm(best)
		chosen = append(chosen, best.token)
		if len(chosen) == count {
			return chosen
		}
		best = e.nextBest(&improvements, float64(len(chosen)+1)/float64(count))
	}
}

// nextBest takes the best candidate from the queue. Its improvement may have changed since it was
// put there: it is good enough if it still is at least what the next was worth when put there,
// which is not the best choice but nearly, at far less cost.
func (e *evaluation) nextBest(improvements *queue[*candidate], newcomerWeight float64) *candidate {
	for {
		best := improvements.pop().value
		improvement := e.improvement(best, newcomerWeight)
		if improvements.empty() || improvement >= improvements.peek().weight {
			return best
		}
		improvements.push(improvement, best)
	}
}
