package tokens

import (
	"math/big"
	"strconv"

	"helenus.io/helenus/internal/core/ring"
)

// midpoint is the token half way from left to right, going up and, if right is
// not greater, around the ring's end (Murmur3Partitioner#midpoint; it takes the
// ring to have 2^64-1 positions, and so does this).
func midpoint(left, right ring.Token) ring.Token {
	// Differences of tokens may exceed an int64; as unsigned numbers they do not.
	if left < right {
		return left + ring.Token(uint64(right-left)/2)
	}
	middle := left + ring.Token((uint64(right-left)-1)/2)
	if middle < left {
		middle++ // around the end, where a position is missing
	}
	return middle
}

// split is the token after the given fraction, from 0 to 1, of the way from left
// to right (Murmur3Partitioner#split). The fraction is taken as the decimal
// number that it prints as, and the result is rounded towards zero, as there.
func split(left, right ring.Token, fraction float64) ring.Token {
	distance := new(big.Int).Sub(big.NewInt(int64(right)), big.NewInt(int64(left)))
	if left >= right {
		distance.Add(distance, circumference)
	}
	ratio, _ := new(big.Rat).SetString(strconv.FormatFloat(fraction, 'g', -1, 64))
	at := new(big.Rat).Mul(new(big.Rat).SetInt(distance), ratio)
	at.Add(at, new(big.Rat).SetInt64(int64(left)))
	return wrap(new(big.Int).Quo(at.Num(), at.Denom()))
}

// circumference is from the least to the greatest token.
var circumference = new(big.Int).Sub(big.NewInt(int64(ring.MaxToken)), big.NewInt(int64(ring.MinToken)))

// wrap brings a number above the greatest token back to the ring's start.
func wrap(number *big.Int) ring.Token {
	if number.Cmp(big.NewInt(int64(ring.MaxToken))) > 0 {
		number.Sub(number, circumference)
	}
	return ring.Token(number.Int64())
}

// javaRandom is the generator that the documentation of java.util.Random
// prescribes, from which Cassandra draws when it splits ranges.
type javaRandom struct{ state uint64 }

const (
	javaMultiplier = 0x5DEECE66D
	javaMask       = 1<<48 - 1
)

func newJavaRandom(seed int) *javaRandom {
	return &javaRandom{state: (uint64(seed) ^ javaMultiplier) & javaMask}
}

func (r *javaRandom) next(bits uint) uint64 {
	r.state = (r.state*javaMultiplier + 0xB) & javaMask
	return r.state >> (48 - bits)
}

// float64 is nextDouble: at least 0 and less than 1.
func (r *javaRandom) float64() float64 {
	high := r.next(26)
	return float64(high<<27+r.next(27)) / (1 << 53)
}
