package ring

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxKeyBytes is what Cassandra takes at most for a partition key and for each column of one that
// has several.
const maxKeyBytes = math.MaxUint16

// keyTypes are the types of columns that a key is typed in, with what their values look like. Those
// of other types can be given as blob: CQL shows it by SELECT typeAsBlob(column).
var keyTypes = map[string]struct {
	want string
	read func(string) ([]byte, bool)
}{
	"text": {"valid UTF-8", func(text string) ([]byte, bool) { return []byte(text), utf8.ValidString(text) }},
	"int": {"a whole number from -2147483648 to 2147483647", func(text string) ([]byte, bool) {
		n, err := strconv.ParseInt(text, 10, 32)
		return binary.BigEndian.AppendUint32(nil, uint32(n)), err == nil
	}},
	"bigint": {"a whole number of 64 bits", func(text string) ([]byte, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		return binary.BigEndian.AppendUint64(nil, uint64(n)), err == nil
	}},
	"uuid": {"32 hexadecimal digits as 8-4-4-4-12", func(text string) ([]byte, bool) {
		groups := strings.Split(text, "-")
		for i, length := range []int{8, 4, 4, 4, 12} {
			if len(groups) != 5 || len(groups[i]) != length {
				return nil, false
			}
		}
		id, err := hex.DecodeString(strings.Join(groups, ""))
		return id, err == nil
	}},
	"blob": {"0x and pairs of hexadecimal digits", func(text string) ([]byte, bool) {
		digits, found := strings.CutPrefix(text, "0x")
		blob, err := hex.DecodeString(digits)
		return blob, found && err == nil
	}},
}

// ParseKey makes a partition key of the values of its columns in their order, each as TYPE:VALUE.
// The type timeuuid is written as uuid. One column is the key as it is, several are put together
// (CompositeType#build).
func ParseKey(columns []string) ([]byte, error) {
	var key []byte
	for i, column := range columns {
		name, text, _ := strings.Cut(column, ":")
		of, known := keyTypes[name]
		if !known {
			return nil, fmt.Errorf("read column %d of the key: %q: want TYPE:VALUE, with TYPE one of text, int, "+
				"bigint, uuid and blob", i+1, column)
		}
		value, ok := of.read(text)
		switch {
		case !ok:
			return nil, fmt.Errorf("read column %d of the key: %q is no %s: want %s", i+1, text, name, of.want)
		case len(value) > maxKeyBytes:
			return nil, fmt.Errorf("read column %d of the key: it has %d bytes, at most %d are allowed", i+1,
				len(value), maxKeyBytes)
		case len(columns) == 1:
			key = value
		default:
			key = binary.BigEndian.AppendUint16(key, uint16(len(value)))
			key = append(append(key, value...), 0)
		}
	}
	switch {
	case len(key) == 0:
		return nil, errors.New("read the key: it is empty, which no partition key may be")
	case len(key) > maxKeyBytes:
		return nil, fmt.Errorf("read the key: it has %d bytes, at most %d are allowed", len(key), maxKeyBytes)
	}
	return key, nil
}

// TokenOf is the token of a partition key that is not empty (Murmur3Partitioner#getToken): the
// first half of MurmurHash3 for x64 with 128 bits and seed 0, as Cassandra computes it. In what
// follows the last full block of 16 bytes it takes a byte from 0x80 on as a negative number
// (MurmurHash#hash3_x64_128), so that no other implementation gives the same.
func TokenOf(key []byte) Token {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	mix1 := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	mix2 := func(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }
	var h1, h2 uint64
	rest := key
	for ; len(rest) >= 16; rest = rest[16:] {
		h1 ^= mix1(binary.LittleEndian.Uint64(rest))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= mix2(binary.LittleEndian.Uint64(rest[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var k [2]uint64
	for i, b := range rest {
		k[i/8] ^= uint64(int8(b)) << (i % 8 * 8)
	}
	size := uint64(len(key))
	h1, h2 = h1^mix1(k[0])^size, h2^mix2(k[1])^size
	h1 += h2
	h2 += h1
	finish := func(h uint64) uint64 {
		h = (h ^ h>>33) * 0xff51afd7ed558ccd
		h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
		return h ^ h>>33
	}
	if token := Token(finish(h1) + finish(h2)); token != MinToken {
		return token
	}
	return MaxToken // Murmur3Partitioner#normalize
}
