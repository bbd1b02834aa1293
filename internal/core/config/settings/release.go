package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LineOf a release: 5.0 of 5.0.9 and of 5.0-beta1; empty if it is none.
func LineOf(release string) string {
	major, rest, _ := strings.Cut(release, ".")
	minor := rest[:len(rest)-len(strings.TrimLeft(rest, digits))]
	if major == "" || strings.Trim(major, digits) != "" || minor == "" {
		return ""
	}
	return release[:len(major)+1+len(minor)]
}

const digits = "0123456789"

// Older says that a release is of an earlier line than another. Of what is no release it is false.
func Older(a, b string) bool {
	a, b = LineOf(a), LineOf(b)
	return a != "" && b != "" && slices.Compare(numbersOf(a), numbersOf(b)) < 0
}

func numbersOf(line string) []int {
	var out []int
	for part := range strings.SplitSeq(line, ".") {
		n, _ := strconv.Atoi(part)
		out = append(out, n)
	}
	return out
}

// CheckChange says why a disk on which a node was NORMAL with one release cannot be given to
// another; nil if it can. Releases of one line follow each other in both directions. A line follows
// the one before it: what it has written no earlier one reads.
func CheckChange(from, to string) error {
	have, want := LineOf(from), LineOf(to)
	switch at := slices.Index(Lines(), want); {
	case have == want:
		return nil
	case Older(to, from):
		return fmt.Errorf("%s → %s: Cassandra %s does not read a disk on which %s was NORMAL: only %s "+
			"and later can follow", from, to, want, have, have)
	case at < 1:
		return fmt.Errorf("%s → %s: Cassandra %s cannot follow %s", from, to, want, have)
	case Lines()[at-1] != have:
		return fmt.Errorf("%s → %s: Cassandra %s cannot follow %s: change to %s first", from, to, want, have,
			Lines()[at-1])
	}
	return nil
}
