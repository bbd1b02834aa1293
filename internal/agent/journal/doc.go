// Package journal makes the agent's memory durable on the data volume, and marks volumes with their
// owner. What the memory holds is a type of core/node; that it outlives agent, pod and host is the
// business of this package.
//
// A Put is durable before it returns and atomic: a reader finds the version before or after it,
// never a mixture, and says so if it finds neither. What must take effect at most once is therefore
// put as begun first, then done, then put as finished. The file system is behind a small interface;
// memdisk implements it with every way in which a crash can leave a disk.
//
// Imports: standard library only.
package journal
