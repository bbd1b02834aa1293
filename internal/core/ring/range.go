package ring

// Range is the part of the ring after Start up to and including End, the form
// that Cassandra's Range has: (Start, End]. If Start is not less than End it
// wraps around the ring's end; if they are equal it is the full ring.
type Range struct {
	Start Token
	End   Token
}

// Size is the fraction of the ring in the range, greater than 0 and at most 1.
func (r Range) Size() float64 { return r.Start.SizeTo(r.End) }

// String is the range as Cassandra prints it, "(start,end]".
func (r Range) String() string {
	return "(" + r.Start.String() + "," + r.End.String() + "]"
}
