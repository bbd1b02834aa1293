package ring

import (
	"fmt"
	"slices"
	"strings"
)

// Consistency is a consistency level at which clients are to be served while
// nodes are down. ANY is not among them: it asks for no replica.
type Consistency string

// The consistency levels, named as in the API.
const (
	One         Consistency = "One"
	LocalOne    Consistency = "LocalOne"
	Two         Consistency = "Two"
	Three       Consistency = "Three"
	Quorum      Consistency = "Quorum"
	LocalQuorum Consistency = "LocalQuorum"
	EachQuorum  Consistency = "EachQuorum"
	All         Consistency = "All"
)

var consistencies = []Consistency{One, LocalOne, Two, Three, Quorum, LocalQuorum, EachQuorum, All}

// ParseConsistency reads a consistency level as the API ("LocalQuorum") or CQL
// ("LOCAL_QUORUM", in any case) writes it.
func ParseConsistency(text string) (Consistency, error) {
	for _, c := range consistencies {
		if text == string(c) || strings.EqualFold(text, c.CQL()) {
			return c, nil
		}
	}
	return "", Consistency(text).check()
}

// CQL is the level as CQL and Cassandra's messages write it, LOCAL_QUORUM.
func (c Consistency) CQL() string {
	var text strings.Builder
	for i, letter := range string(c) {
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			text.WriteByte('_')
		}
		text.WriteRune(letter)
	}
	return strings.ToUpper(text.String())
}

// check refuses what is none of the constants.
func (c Consistency) check() error {
	if !slices.Contains(consistencies, c) {
		return fmt.Errorf("consistency level %q is not known: want one of %v", string(c), consistencies)
	}
	return nil
}

// byDatacenter says whether the level counts the replicas of each datacenter for themselves.
func (c Consistency) byDatacenter() bool {
	return c == LocalOne || c == LocalQuorum || c == EachQuorum
}

// required is how many of factor replicas must answer (ConsistencyLevel#blockFor). It follows from
// the configured factor, whether or not there are that many nodes.
func (c Consistency) required(factor int) int {
	switch c {
	case One, LocalOne:
		return 1
	case Two:
		return 2
	case Three:
		return 3
	case All:
		return factor
	case Quorum, LocalQuorum, EachQuorum:
	}
	return factor/2 + 1
}
