package ring

// Range is the part of the ring after Start up to and including End, the form
// that Cassandra's Range has: (Start, End]. If Start is not less than End it
// wraps around the ring's end; if they are equal it is the full ring.
type Range struct {
	Start Token
	End   Token
}

// Contains says whether the range holds a token (Range#contains).
func (r Range) Contains(token Token) bool {
	if r.Start < r.End {
		return r.Start < token && token <= r.End
	}
	return r.Start < token || token <= r.End
}

// Full says whether the range is the whole ring.
func (r Range) Full() bool { return r.Start == r.End }

// Size is the fraction of the ring in the range, greater than 0 and at most 1.
func (r Range) Size() float64 { return r.Start.SizeTo(r.End) }

// String is the range as Cassandra prints it, "(start,end]".
func (r Range) String() string {
	return "(" + r.Start.String() + "," + r.End.String() + "]"
}
