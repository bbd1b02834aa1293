// Package simulate is a world in one process: the real operator and the real agents against an API
// server, hosts and a Cassandra ring in memory, in virtual time. It exists to be broken in every
// way that faults can break the real one.
//
// It is a module of its own and may import everything of the product; nothing of the product
// imports it.
package simulate
