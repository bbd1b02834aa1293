package disk

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const dataSuffix = "-Data.db"

// record is a line of a transaction log: a type, the path of an SSTable up to its component, a
// time, a count, a checksum.
var record = regexp.MustCompile(`^(ADD|REMOVE|COMMIT|ABORT):\[(.*),(-?[0-9]+),(-?[0-9]+)\]\[([0-9]+)\]$`)

// listSSTables names the SSTables of a table directory, "nb-8-big" or
// "oa-3h5o_1szd_1gq5c2s92gylm73a1v-big", without those that an unfinished transaction was writing
// or that a committed one had replaced, as Cassandra itself would see them after its next start.
func listSSTables(volume fs.FS, dir string) (tables, unfinished []string, err error) {
	entries, err := readDir(volume, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("list system.local: %w", err)
	}
	left := map[string]bool{}
	for _, entry := range entries {
		if name := entry.Name(); strings.Contains(name, "_txn_") && strings.HasSuffix(name, ".log") {
			content, err := readFile(volume, path.Join(dir, name))
			if err != nil {
				return nil, nil, fmt.Errorf("read transaction log: %w", err)
			}
			for _, table := range leftOut(string(content)) {
				left[table] = true
			}
		}
	}
	for _, entry := range entries {
		table, is := strings.CutSuffix(entry.Name(), dataSuffix)
		switch {
		case !is || entry.IsDir():
		case left[table]:
			unfinished = append(unfinished, table)
		default:
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables, unfinished, nil
}

// leftOut names the SSTables that do not count after a transaction with this log. A line that is
// cut off or damaged is taken as not written.
func leftOut(log string) []string {
	var added, removed []string
	committed := false
	for line := range strings.Lines(log) {
		m := record.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil || !checksumHolds(m[1], m[2], m[3], m[4], m[5]) {
			continue
		}
		table := strings.TrimSuffix(path.Base(m[2]), "-")
		switch m[1] {
		case "ADD":
			added = append(added, table)
		case "REMOVE":
			removed = append(removed, table)
		case "COMMIT":
			committed = true
		}
	}
	if committed {
		return removed
	}
	return added
}

// checksumHolds says whether a line is what Cassandra wrote.
func checksumHolds(kind, file, time, count, checksum string) bool {
	t, err := strconv.ParseInt(time, 10, 64)
	if err != nil {
		return false
	}
	n, err := strconv.ParseInt(count, 10, 32)
	return err == nil && logChecksum(kind, file, t, int32(n)) == checksum
}

// logChecksum is the CRC-32 of path, type, both halves of the time and the count
// (LogRecord.computeChecksum).
func logChecksum(kind, file string, time int64, count int32) string {
	sum := []byte(file + kind)
	for _, word := range []uint32{uint32(time), uint32(time >> 32), uint32(count)} {
		sum = binary.BigEndian.AppendUint32(sum, word)
	}
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(sum)), 10)
}
