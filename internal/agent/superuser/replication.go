package superuser

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math/bits"
	"slices"
)

// Types of the one column of the SSTable, and of its key, as its header names them.
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
	files, err := templates()
	if err != nil {
		return nil, err
	}
	value := binary.BigEndian.AppendUint32(nil, uint32(len(options))) //nolint:gosec // a few datacenters
	for _, name := range slices.Sorted(maps.Keys(options)) {
		for _, text := range []string{name, options[name]} {
			value = binary.BigEndian.AppendUint32(value, uint32(len(text))) //nolint:gosec // names
			value = append(value, text...)
		}
	}
	data := append(binary.BigEndian.AppendUint16(nil, uint16(len(keyspace))), keyspace...) //nolint:gosec // a name
	// It is at 0, and has no index of rows.
	files["Index.db"] = append(slices.Clone(data), 0, 0)

	data = append(data, 0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0) // not deleted
	row := append(vint(len(data)), inRow(at)...)
	row = append(append(append(row, cellOfTime), vint(len(value))...), value...)
	data = append(append(append(data, rowOfTime), vint(len(row))...), row...)
	files["Statistics.db"] = withHeader(withTime(files["Statistics.db"], at))
	putData(files, append(data, endOfRows))
	files["TOC.txt"] = []byte("Data.db\nIndex.db\nStatistics.db\nDigest.crc32\nCRC.db\nTOC.txt\n")
	delete(files, "Filter.db")
	delete(files, "Summary.db")
	return files, nil
}

// withHeader has the statistics name key and column (SerializationHeader.Component, the last
// component): three times as the template has them, the type of the key, no clustering, no static
// column, and one more.
func withHeader(statistics []byte) []byte {
	from := binary.BigEndian.Uint32(statistics[8+8*3+4:])
	const name = "replication"
	header := append([]byte{0, 0, 0}, vint(len(utf8Type))...)
	header = append(append(header, utf8Type...), 0, 0, 1)
	header = append(append(header, vint(len(name))...), name...)
	header = append(append(header, vint(len(frozenMap))...), frozenMap...)
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
