package config

import (
	"fmt"

	"helenus.io/helenus/api/v1alpha1"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30

	// heapCap keeps the default heap below 32 GiB, from where on the JVM can no longer compress
	// object pointers.
	heapCap = 31 * gibibyte
	// heapFloor is the least heap that is accepted: with less the JVM of Cassandra does not come
	// up.
	heapFloor = 128 * mebibyte
)

// Memory is how a node divides the memory of its container. What is left is for the JVM itself,
// off-heap structures and the page cache.
type Memory struct {
	// Heap in bytes, a whole number of MiB. Initial and largest size are the same.
	Heap int64
	// Direct is the largest size of direct buffers in bytes (MaxDirectMemorySize); 0 leaves the
	// JVM's default, which is the size of the heap.
	Direct int64
}

// MemoryOf divides the memory limit (bytes, 0 if there is none): heap as given, else half of the
// limit but at most 31 GiB; direct buffers a fifth of the limit.
func MemoryOf(jvm *v1alpha1.JVM, limit int64) (Memory, error) {
	var memory Memory
	switch {
	case jvm != nil && jvm.Heap != nil:
		memory.Heap = jvm.Heap.Value()
	case limit > 0:
		memory.Heap = min(limit/2, heapCap)
	default:
		return Memory{}, fmt.Errorf("the size of the heap is not known: set resources.limits.memory or jvm.heap")
	}
	memory.Heap -= memory.Heap % mebibyte
	if memory.Heap < heapFloor {
		return Memory{}, fmt.Errorf("a heap of %d MiB is too small: at least %d MiB (jvm.heap, default half of "+
			"resources.limits.memory)",
			memory.Heap/mebibyte, heapFloor/mebibyte)
	}
	memory.Direct = limit / 5
	memory.Direct -= memory.Direct % mebibyte
	return memory, nil
}
