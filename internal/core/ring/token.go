package ring

import (
	"math"
	"strconv"
)

// Token is a position on the ring of Cassandra's Murmur3Partitioner, the only
// partitioner that Helenus supports. Every int64 is a position.
type Token int64

const (
	// MinToken is the partitioner's minimum. No key hashes to it
	// (Murmur3Partitioner#normalize), and Cassandra reads it as "the end of the
	// ring" where it ends a range, so it is never chosen as a node's token.
	MinToken Token = math.MinInt64
	// MaxToken is the greatest token, both for keys and for nodes.
	MaxToken Token = math.MaxInt64
)

// FormatTokens writes tokens in the form of the setting initial_token, in the order given.
func FormatTokens(tokens []Token) string {
	var text []byte
	for i, token := range tokens {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(token), 10)
	}
	return string(text)
}

// String is the token as Cassandra prints it.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// SizeTo is the fraction of the ring, greater than 0 and at most 1, that lies in
// the range (t, end]. A token to itself is the full ring. The result equals
// Cassandra's own (LongToken#size) in every bit.
func (t Token) SizeTo(end Token) float64 {
	const whole = 1 << 64
	size := float64(int64(end)-int64(t)) / whole // overflow is wanted; a power of two divides without rounding
	if size > 0 {
		return size
	}
	return size + 1
}
