// Package memdisk is a volume in memory for tests and the simulator. It knows what is durable and
// what is not, stops or fails at any step, and hands out every state in which a crash at that
// moment can leave the disk.
//
// The model is stricter than real file systems: nothing but Sync makes content durable, nothing but
// SyncDir makes names durable, and of what is not durable any part may survive a loss of power, in
// any combination.
//
// Imports: standard library and the journal's interface.
package memdisk
