// Package ring knows what Cassandra's ring looks like and what follows from it: who owns and who
// replicates which range, how much of the data a node holds or would hold, which nodes may be down
// together, which nodes are seeds, and whether several views of the ring agree. Choosing tokens is
// the business of the package tokens below it.
//
// The package is pure: it imports only the standard library's pure parts, reads
// no clock and no randomness, and every result is determined by its arguments.
// Values are immutable once made and may be shared between goroutines.
//
// Sources are cited as Class#method of Apache Cassandra 5.0; 4.0 and 4.1 behave
// the same in everything that is cited here. The golden files in testdata are
// what those classes answered (testdata/RealCassandra.java).
package ring
