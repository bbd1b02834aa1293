package superuser

import (
	"bytes"
	"embed"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
)

// Where the SSTable belongs. The number is one that Cassandra, which counts up from 1, does not
// reach by itself, so that nothing else has the name.
const (
	Keyspace = "system_auth"
	Table    = "roles"
	TableID  = "5bc52802de2535edaeab188eecebb090"
	Name     = "nb-1000000000-big"
)

//go:embed template
var template embed.FS

var (
	placeholder = []byte("$2a$04$xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
	// hashes are those that Cassandra takes: its jBCrypt knows $2a$ alone.
	hashes = regexp.MustCompile(`^\$2a\$\d\d\$[./A-Za-z0-9]{53}$`)
)

// Oldest is when the row was written that any other wins over, in microseconds, as the template
// has it.
const Oldest = 1

// SSTable are the files of the SSTable by component, with the hash of helenus_root's password, as
// it is written at a time, in microseconds: it wins over all rows of that name before.
func SSTable(hash string, at int64) (map[string][]byte, error) {
	if !hashes.MatchString(hash) {
		return nil, fmt.Errorf("make SSTable of the superuser: the hash of the password is none of bcrypt, $2a$")
	}
	files, err := templates()
	if err != nil {
		return nil, err
	}
	data := bytes.Replace(files["Data.db"], placeholder, []byte(hash), 1)
	data = bytes.Replace(data, inRow(Oldest), inRow(at), 1)
	files["Statistics.db"] = withTime(files["Statistics.db"], at, never)
	putData(files, data)
	return files, nil
}

// templates are the files as Cassandra wrote them.
func templates() (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(template, "template", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[entry.Name()], err = template.ReadFile(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read template of an SSTable: %w", err)
	}
	return files, nil
}

// putData has the files be of other data, in one chunk.
func putData(files map[string][]byte, data []byte) {
	sum := crc32.ChecksumIEEE(data)
	files["Data.db"], files["Digest.crc32"] = data, strconv.AppendUint(nil, uint64(sum), 10)
	chunks := files["CRC.db"] // the size of a chunk, then the checksum of each: there is one
	binary.BigEndian.PutUint32(chunks[len(chunks)-4:], sum)
}

// inRow is a time as Data.db has it: the distance from the least time that Statistics.db names,
// which is TIMESTAMP_EPOCH of EncodingStats, as a vint of its greatest length.
func inRow(at int64) []byte {
	const epoch = 1442880000000000
	return binary.BigEndian.AppendUint64([]byte{0xff}, uint64(at-epoch)) //nolint:gosec // two's complement
}

// never is the time of deletion, in seconds, of what is not deleted.
const never = 0x7fffffff

// withTime has the statistics say when the oldest and the newest cell were written, and deleted. By
// these Cassandra leaves out SSTables that a read does not need, or that only have deletions which
// it may forget. The checksum of each of the components follows it (MetadataSerializer#serialize).
func withTime(statistics []byte, at int64, deleted uint32) []byte {
	const stats, header = 2, 3 // of four components; 8 bytes of count and checksum, then type and place of each
	place := func(i int) uint32 { return binary.BigEndian.Uint32(statistics[8+8*i+4:]) }
	from, to := place(stats), place(header)-4
	times := func(at int64, deleted uint32) []byte {
		one := binary.BigEndian.AppendUint64(nil, uint64(at)) //nolint:gosec // after 1970
		two := binary.BigEndian.AppendUint32(nil, deleted)
		return slices.Concat(one, one, two, two)
	}
	body := bytes.Replace(statistics[from:to], times(Oldest, never), times(at, deleted), 1)
	out := append(bytes.Clone(statistics[:from]), body...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	return append(out, statistics[to+4:]...)
}
