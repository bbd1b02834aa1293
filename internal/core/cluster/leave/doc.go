// Package leave has nodes that the spec does not describe any more leave the ring, one at a time.
// It imports no other procedure.
package leave
