// Package hotsettings knows what a running Cassandra changes without a restart, as its beans show
// and take it: each row was set and read back on real nodes. The simulated Cassandra is made of it,
// and so it is an answer to which the writes of core/config are held that does not come from them.
package hotsettings
