// Package cluster brings clusters up and down, and kills, starts, partitions and
// heals their nodes. It is what the command localkube runs, and what tests in Go
// import to have an API server of their own. It imports the packages for the
// parts of a cluster; nothing but the commands imports it in this module.
package cluster
