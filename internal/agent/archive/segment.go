package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"regexp"
	"strconv"
)

// segmentName is that of a file of the commit log, with the version of its format and its id.
var segmentName = regexp.MustCompile(`^CommitLog-[0-9]+-([0-9]+)\.log$`)

// segmentID is that in the name of a segment; 0 for other names. Within the life of a JVM each
// segment has the id after that of the one before; the first has one more than the time at which
// the JVM loaded its class, in milliseconds (CommitLogSegment, 4.1 and 5.0).
func segmentID(name string) int64 {
	parts := segmentName.FindStringSubmatch(name)
	if parts == nil {
		return 0
	}
	id, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// markerSize is that of a sync marker: where the next one is, and a CRC.
const markerSize = 8

// header reads how long that of a segment is: version, id, parameters with their length, CRC. It is
// 0 if it is not written yet.
func header(file io.ReaderAt) (int64, error) {
	var fixed [14]byte
	if _, err := file.ReadAt(fixed[:], 0); errors.Is(err, io.EOF) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	if binary.BigEndian.Uint32(fixed[:]) == 0 {
		return 0, nil
	}
	return int64(len(fixed)) + int64(binary.BigEndian.Uint16(fixed[12:])) + 4, nil
}

// Synced is the end of what Cassandra has marked as written in a segment, in bytes: what is before
// it never changes. From is an end that it had before, or 0. A segment without a mutation has
// none, and 0. Cassandra marks what is in its page cache ten times a second, or, where the log is
// compressed or written past that cache, at each sync.
func Synced(file io.ReaderAt, id, from int64) (int64, error) {
	at := from
	if at == 0 {
		var err error
		if at, err = header(file); err != nil || at == 0 {
			return 0, err
		}
	}
	for {
		var marker [markerSize]byte
		if _, err := file.ReadAt(marker[:], at); errors.Is(err, io.EOF) {
			return from, nil
		} else if err != nil {
			return from, fmt.Errorf("read segment %d: %w", id, err)
		}
		next := int64(binary.BigEndian.Uint32(marker[:]))
		if next <= at || binary.BigEndian.Uint32(marker[4:]) != markerSum(id, at) {
			return from, nil // nothing is marked after it yet
		}
		at, from = next, next
	}
}

// markerSum is the CRC of the sync marker at a position (CommitLogSegment#writeSyncMarker).
func markerSum(id, at int64) uint32 {
	var of [12]byte
	binary.BigEndian.PutUint32(of[0:], uint32(id))     //nolint:gosec // the lower half
	binary.BigEndian.PutUint32(of[4:], uint32(id>>32)) //nolint:gosec // the upper half
	binary.BigEndian.PutUint32(of[8:], uint32(at))     //nolint:gosec // a segment has less than 2 GiB
	return crc32.ChecksumIEEE(of[:])
}

// syncedIn is Synced of a file of a volume.
func syncedIn(volume *os.Root, name string, id, from int64) (end int64, err error) {
	file, err := volume.Open(name)
	if err != nil {
		return from, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return Synced(file, id, from)
}
