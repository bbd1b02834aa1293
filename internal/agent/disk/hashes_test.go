package disk

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An agent that is killed loses the hashes of the last seconds, and no others; what is not used is
// dropped at the end.
func TestHashesAreSavedMeanwhile(t *testing.T) {
	volume, now := t.TempDir(), time.Date(2026, 3, 1, 4, 0, 0, 0, time.UTC)
	if err := os.Mkdir(filepath.Join(volume, ownDir), 0o750); err != nil {
		t.Fatal(err)
	}
	h := OpenHashes(volume, now)
	for i := range byte(4) {
		h.Keep(Identity{i}, sha256.Sum256([]byte{i}), now)
		now = now.Add(saveEvery / 2)
	}
	for range 2 {
		h = OpenHashes(volume, now)
		for i := range byte(4) {
			if sum, known := h.Of(Identity{i}, now); known != (i < 3) || known && sum != sha256.Sum256([]byte{i}) {
				t.Errorf("file %d: known %v, %x", i, known, sum)
			}
		}
		h.Save(true)
	}
	if _, known := h.Of(Identity{}, now.Add(-time.Hour)); known {
		t.Error("a hash of the future is used")
	}
	OpenHashes(volume, now).Save(true)
	if _, known := OpenHashes(volume, now).Of(Identity{}, now); known {
		t.Error("the hash of a file that is gone is kept")
	}
}
