package superuser

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math/bits"
	"slices"
)

// Types of the column replication, and of its key, as the header of an SSTable names them.
const (
	types     = "org.apache.cassandra.db.marshal."
	utf8Type  = types + "UTF8Type"
	frozenMap = types + "FrozenType(" + types + "MapType(" + utf8Type + "," + utf8Type + "))"
)

// Flags of a row and of a cell that have the time of the row alone, and of the end of a partition
// (UnfilteredSerializer, Cell.Serializer).
const (
	rowOfTime, cellOfTime, endOfRows = 0x24, 0x08, 0x01
)

// Replication are the files of an SSTable of system_schema.keyspaces by component: with the column
// replication of one keyspace, as it is written at a time, in microseconds. What Cassandra does not
// need, and builds by the others, is left out.
func Replication(keyspace string, options map[string]string, at int64) (map[string][]byte, error) {
	value := binary.BigEndian.AppendUint32(nil, uint32(len(options))) //nolint:gosec // a few datacenters
	for _, name := range slices.Sorted(maps.Keys(options)) {
		for _, text := range []string{name, options[name]} {
			value = binary.BigEndian.AppendUint32(value, uint32(len(text))) //nolint:gosec // names
			value = append(value, text...)
		}
	}
	key := keyOf(keyspace)
	before := len(key) + len(notDeleted)
	row := append(vint(before), inRow(at)...)
	row = append(append(append(row, cellOfTime), vint(len(value))...), value...)
	row = append(append([]byte{rowOfTime}, vint(len(row))...), row...)
	const name = "replication"
	columns := slices.Concat([]byte{1}, vint(len(name)), []byte(name), vint(len(frozenMap)), []byte(frozenMap))
	return partition(key, notDeleted, row, columns, at, never)
}

// Deletion are the files of an SSTable of a table of system_schema by component, as Replication has
// them: it deletes all that the table has of a keyspace at a time, in microseconds.
func Deletion(keyspace string, at int64) (map[string][]byte, error) {
	seconds := uint32(at / 1e6) //nolint:gosec // before 2038, or Cassandra of this format could not delete
	deletion := binary.BigEndian.AppendUint32(nil, seconds)
	deletion = binary.BigEndian.AppendUint64(deletion, uint64(at)) //nolint:gosec // after 1970
	return partition(keyOf(keyspace), deletion, nil, []byte{0}, at, seconds)
}

// notDeleted is the deletion of a partition that has none (DeletionTime.LIVE).
var notDeleted = []byte{0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}

// keyOf a partition of system_schema.
func keyOf(keyspace string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(keyspace))), keyspace...) //nolint:gosec // a name
}

// partition are the files of an SSTable with one partition, its rows, and its columns as the header
// names them.
func partition(key, deletion, rows, columns []byte, at int64, deleted uint32) (map[string][]byte, error) {
	files, err := templates()
	if err != nil {
		return nil, err
	}
	files["Index.db"] = slices.Concat(key, []byte{0, 0}) // it is at 0, and has no index of rows
	files["Statistics.db"] = withHeader(withTime(files["Statistics.db"], at, deleted), columns)
	putData(files, slices.Concat(key, deletion, rows, []byte{endOfRows}))
	files["TOC.txt"] = []byte("Data.db\nIndex.db\nStatistics.db\nDigest.crc32\nCRC.db\nTOC.txt\n")
	delete(files, "Filter.db")
	delete(files, "Summary.db")
	return files, nil
}

// withHeader has the statistics name key and columns (SerializationHeader.Component, the last
// component): three times as the template has them, the type of the key, no clustering, no static
// column, and the number of the others, with name and type of each. Cassandra takes clusterings by
// the table, and the header's for rows alone.
func withHeader(statistics, columns []byte) []byte {
	from := binary.BigEndian.Uint32(statistics[8+8*3+4:])
	header := slices.Concat([]byte{0, 0, 0}, vint(len(utf8Type)), []byte(utf8Type), []byte{0, 0}, columns)
	out := append(slices.Clone(statistics[:from]), header...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(header))
}

// vint is a number as Cassandra writes it (VIntCoding#writeUnsignedVInt): the first byte begins
// with a one for each that follows.
func vint(n int) []byte {
	more := max(0, bits.Len(uint(n))-1) / 7 //nolint:gosec // a length
	out := binary.BigEndian.AppendUint64(nil, uint64(n))[8-1-more:]
	out[0] |= ^byte(0) << (8 - more)
	return out
}
