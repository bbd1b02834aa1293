// Package garbage decides which blobs of a store no backup needs any more. It does no I/O, and
// imports the standard library alone.
//
// A node that finds a blob in the store does not upload it. Until its manifest is written, nothing
// in the store says that it relies on the blob. So a blob goes by two marks, and those who take
// backups keep to rules:
//
//   - What no manifest and no pin names is marked, and the marks are put into the store.
//   - A node reads the marks when it begins. A blob that is marked it first pins, by an object of its
//     own, and then waits for Settle before it looks for it or uploads it. Others it may rely on.
//   - Its manifest is written within Within of having read the marks, or never. Its pins go after.
//   - A blob is deleted when it has been marked for Apart, and when neither a pin nor a manifest
//     names it, which are read in this order, at most Batch before the deletion has ended.
//
// All manifests count, those of backups that are not complete, too: what has expired is removed
// before. Only one sweeps at a time. One that was replaced may delete by earlier marks for a while.
// So the marks name what was marked before, too: who relies on it, or puts it again, pins it first.
package garbage

import (
	"bytes"
	"crypto/sha256"
	"iter"
	"slices"
	"time"
)

// Sum is the hash that names a blob: the SHA-256 of its content, or a HMAC of that.
type Sum [sha256.Size]byte

// Blob is one that lies in the store, since a time by the clock of the store.
type Blob struct {
	Sum     Sum
	Written time.Time
}

// Rules are the times that all keep to.
type Rules struct {
	// Young blobs are not marked: of most that no manifest names yet, one still will.
	Young time.Duration
	// Apart is how long a blob has been marked at least when it is deleted.
	Apart time.Duration
	// Within is how long after it has read the marks a node may write its manifest. It is shorter
	// than Apart by the time that passes between the last look at a mark and its being readable.
	Within time.Duration
	// Settle is how long a pin has been there before its blob is looked for, and Batch how long the
	// pins that were read are relied on for deletions.
	Settle, Batch time.Duration
}

// Default are the rules of the product.
var Default = Rules{Young: 7 * 24 * time.Hour, Apart: 24 * time.Hour, Within: 20 * time.Hour,
	Settle: 10 * time.Minute, Batch: 5 * time.Minute}

// Marks are the blobs that nothing named, and since when.
type Marks map[Sum]time.Time

// Mark is what is marked after a look at all blobs that has ended now. Named says that a pin or a
// manifest names a blob; both were read before.
func (r Rules) Mark(before Marks, blobs iter.Seq[Blob], named func(Sum) bool, now time.Time) Marks {
	marks := Marks{}
	for blob := range blobs {
		if named(blob.Sum) || now.Sub(blob.Written) < r.Young {
			continue
		}
		since, marked := before[blob.Sum]
		if !marked || since.After(now) { // the clock was set back
			since = now
		}
		marks[blob.Sum] = since
	}
	return marks
}

// Due are the blobs to delete within Batch from now, in order. Named says that a pin or a manifest
// names a blob now.
func (r Rules) Due(marks Marks, named func(Sum) bool, now time.Time) []Sum {
	var due []Sum
	for sum, since := range marks {
		if now.Sub(since) >= r.Apart && !named(sum) {
			due = append(due, sum)
		}
	}
	slices.SortFunc(due, func(a, b Sum) int { return bytes.Compare(a[:], b[:]) })
	return due
}
