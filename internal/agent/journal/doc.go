// Package journal is the agent's memory on the data volume: who this node is, which intents began and ended, and what its
// peers were last seen to be. It outlives agent, pod and machine, and a member restarts by it without the API server.
//
// Every change is durable before the call that makes it returns, and atomic: a reader finds the version before or after
// it, never a mixture, and says so if it finds neither. Marker files, one per volume, tell whose volume it is. The file
// system is behind a small interface, which memdisk implements with every way in which a crash can leave a disk.
//
// Imports: standard library only.
package journal
