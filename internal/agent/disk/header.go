package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// header is the part of Statistics.db that says how rows are written.
type header struct {
	minTimestamp int64
	columns      []column
}

// column of the table, in the order of the rows.
type column struct {
	name    string
	fixed   int  // length of a cell's value in bytes, -1 if each value says its own
	complex bool // a collection with a cell per element
}

const (
	headerComponent = 3                // its number among the components of Statistics.db (MetadataType.HEADER)
	timestampEpoch  = 1442880000000000 // 2015-09-22, microseconds: timestamps are stored above it (EncodingStats)
)

// parseHeader finds and checks the serialization header in Statistics.db: a table of components
// with a checksum, then the components, each followed by its own.
func parseHeader(statistics []byte) (*header, error) {
	in := &input{b: statistics}
	count := in.uint32()
	if count > 16 {
		return nil, fmt.Errorf("%d components", count)
	}
	in.uint32() // checksum of the count, part of the table's
	start, end := uint64(0), uint64(len(statistics))
	for range count {
		kind, offset := in.uint32(), uint64(in.uint32())
		switch {
		case kind == headerComponent:
			start = offset
		case start != 0 && offset > start && offset < end:
			end = offset
		}
	}
	if in.err != nil {
		return nil, in.err
	}
	if start == 0 || start+4 > end || end > uint64(len(statistics)) {
		return nil, errors.New("no serialization header")
	}
	body, sum := statistics[start:end-4], binary.BigEndian.Uint32(statistics[end-4:end])
	if crc32.ChecksumIEEE(body) != sum {
		return nil, errors.New("checksum of the serialization header does not match")
	}
	return parseColumns(&input{b: body})
}

func parseColumns(in *input) (*header, error) {
	h := &header{minTimestamp: timestampEpoch + int64(in.vint())}
	in.vint() // smallest deletion time
	in.vint() // smallest TTL
	in.text() // type of the key
	if n := in.vint(); n != 0 {
		return nil, fmt.Errorf("%d clustering columns: this is not system.local", n)
	}
	if n := in.vint(); n != 0 {
		return nil, fmt.Errorf("%d static columns: this is not system.local", n)
	}
	count := in.vint()
	if count >= 64 { // from there on rows write their columns in another form
		return nil, fmt.Errorf("%d columns: this is not system.local", count)
	}
	for range count {
		c := column{name: string(in.text())}
		c.describe(string(in.text()))
		h.columns = append(h.columns, c)
	}
	if in.err == nil && len(in.b) > 0 {
		return nil, fmt.Errorf("%d bytes after the serialization header", len(in.b))
	}
	return h, in.err
}

// describe tells from the name of a type how its cells are written
// (AbstractType.valueLengthIfFixed).
func (c *column) describe(marshal string) {
	name, arguments, _ := strings.Cut(strings.ReplaceAll(marshal, "org.apache.cassandra.db.marshal.", ""), "(")
	element := strings.TrimSuffix(arguments, ")")
	switch name {
	case "SetType": // the element is the cell's path, and its value empty
		c.complex = true
	case "MapType":
		_, value, _ := strings.Cut(element, ",")
		c.complex, name = true, value
	case "ListType":
		c.complex, name = true, element
	}
	switch name {
	case "BooleanType":
		c.fixed = 1
	case "Int32Type", "FloatType":
		c.fixed = 4
	case "LongType", "DoubleType", "TimestampType":
		c.fixed = 8
	case "UUIDType", "TimeUUIDType", "LexicalUUIDType":
		c.fixed = 16
	default:
		c.fixed = -1
	}
}
