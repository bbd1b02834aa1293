package settings

import (
	"fmt"
	"slices"
)

// LineOf a release: 5.0 of 5.0.9 and of 5.0-beta1; empty if it is none.
func LineOf(release string) string {
	major, minor, known := numbersOf(release)
	if !known {
		return ""
	}
	return fmt.Sprintf("%d.%d", major, minor)
}

func numbersOf(release string) (major, minor int, known bool) {
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return major, minor, n == 2
}

// Older says that a release is of an earlier line than another. Of what is no release it is false.
func Older(a, b string) bool {
	major, minor, known := numbersOf(a)
	otherMajor, otherMinor, otherKnown := numbersOf(b)
	return known && otherKnown && (major < otherMajor || major == otherMajor && minor < otherMinor)
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
