package disk

import (
	"fmt"
	"io/fs"
	"regexp"
)

// hintFile is how Cassandra names a file of hints: by the host id that they are for, the time and
// the version of the format (HintsDescriptor#pattern, 4.1 and 5.0).
var hintFile = regexp.MustCompile(`^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-\d+-\d+\.hints$`)

// Hints counts the files of hints by the host id that they are for. Cassandra's own figure, the
// attribute PendingHints of HintsService, leaves out the file that is being written and the one
// that is being sent (HintsStore#getPendingHintsInfo, DispatchHintsTask#dispatch, 4.1 and 5.0): it
// is 0 when a node has just come back, and while the last file is sent. A file is removed when all
// of it was sent. What is not seen here are hints of the last hints_flush_period (10 s), which are
// in memory.
func Hints(volume fs.FS) (map[string]int, error) {
	entries, err := readDir(volume, "hints")
	if err != nil {
		return nil, fmt.Errorf("list hints: %w", err)
	}
	out := map[string]int{}
	for _, e := range entries {
		if m := hintFile.FindStringSubmatch(e.Name()); m != nil {
			out[m[1]]++
		}
	}
	return out, nil
}
