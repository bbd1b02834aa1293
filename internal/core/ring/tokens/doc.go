// Package tokens chooses the tokens of nodes: evenly spaced ones for nodes that form a datacenter
// together, and, for nodes that join later, those that Cassandra's own token allocator would
// choose. Tokens given out are unique in the whole ring.
//
// Like the package ring, on which it builds, it is pure: the same arguments give the same tokens.
// testdata holds what Cassandra 5.0.6 chose (allocation.golden, through TokenAllocation) and what
// its offline tool generatetokens printed (generatetokens.golden); tests hold this package to both.
package tokens
