package disk

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

var errShort = errors.New("ends in the middle of a value")

// input reads big-endian values from memory. After the first value that is not there err is set and
// all values are zero.
type input struct {
	b   []byte
	err error
}

// take returns the next n bytes.
func (in *input) take(n uint64) []byte {
	if in.err != nil || n > uint64(len(in.b)) {
		in.fail(errShort)
		return nil
	}
	taken := in.b[:n:n]
	in.b = in.b[n:]
	return taken
}

func (in *input) fail(err error) {
	if in.err == nil {
		in.err = err
	}
	in.b = nil
}

func (in *input) byte() byte {
	if b := in.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (in *input) uint16() uint16 {
	if b := in.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (in *input) uint32() uint32 {
	if b := in.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (in *input) uint64() uint64 {
	if b := in.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// vint reads Cassandra's unsigned variable-length integer: as many leading ones in the first byte
// as bytes follow.
func (in *input) vint() uint64 {
	first := in.byte()
	extra := bits.LeadingZeros8(^first)
	if extra == 8 {
		return in.uint64()
	}
	value := uint64(first) & (0xff >> extra)
	for _, b := range in.take(uint64(extra)) {
		value = value<<8 | uint64(b)
	}
	return value
}

// text reads a length as vint and that many bytes.
func (in *input) text() []byte { return in.take(in.vint()) }

// utf reads a string as Java's DataOutput.writeUTF wrote it.
func (in *input) utf() string { return string(in.take(uint64(in.uint16()))) }
