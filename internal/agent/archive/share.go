package archive

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Share is a part of the volume at a directory, in percent of its size.
func Share(directory string, percent int32) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(directory, &s); err != nil {
		return 0, fmt.Errorf("look at the space of the commit log: %w", err)
	}
	return int64(s.Blocks) / 100 * int64(percent) * s.Bsize, nil //nolint:gosec // no file system is that large
}
