package disk

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Flags of a row and of a cell (UnfilteredSerializer, Cell.Serializer).
const (
	endOfPartition     = 0x01
	isMarker           = 0x02
	hasTimestamp       = 0x04
	hasTTL             = 0x08
	hasDeletion        = 0x10
	hasAllColumns      = 0x20
	hasComplexDeletion = 0x40
	hasExtension       = 0x80

	cellDeleted         = 0x01
	cellExpiring        = 0x02
	cellEmpty           = 0x04
	cellUseRowTimestamp = 0x08
	cellUseRowTTL       = 0x10
)

const never = math.MinInt64

// partition is the merged content of the one row of system.local: cells by column and, for
// collections, path.
type partition struct {
	cells   map[[2]string]cell
	deleted map[string]int64 // column, "" for the whole row, to the time up to which it is deleted
}

type cell struct {
	value     []byte
	timestamp int64
	tombstone bool
}

// read merges the partitions of one data file.
func (p *partition) read(data []byte, h *header, oldDeletions bool) error {
	in := &input{b: data}
	if len(data) == 0 {
		return errors.New("no partition")
	}
	for len(in.b) > 0 {
		key := string(in.take(uint64(in.uint16())))
		if in.err == nil && key != "local" {
			return fmt.Errorf("partition %q: this is not system.local", key)
		}
		p.delete("", deletionTime(in, oldDeletions))
		for {
			flags := in.byte()
			if in.err != nil {
				return in.err
			}
			if flags&endOfPartition != 0 {
				break
			}
			if flags&(isMarker|hasExtension) != 0 {
				return fmt.Errorf("row flags %#x: this is not system.local", flags)
			}
			size := in.vint()
			body := &input{b: in.take(size), err: in.err}
			if err := p.row(body, flags, h); err != nil {
				return err
			}
		}
	}
	return in.err
}

// deletionTime of a partition: before version oa always four and eight bytes, since then one byte
// if there is none.
func deletionTime(in *input, old bool) int64 {
	if old {
		in.uint32()
		return int64(in.uint64())
	}
	first := in.byte()
	if first&0x80 != 0 {
		return never
	}
	rest := in.take(7)
	in.uint32()
	at := int64(first)
	for _, b := range rest {
		at = at<<8 | int64(b)
	}
	return at
}

// row reads the body of a row, which must be used up exactly.
func (p *partition) row(in *input, flags byte, h *header) error {
	in.vint() // size of the row before
	timestamp := int64(never)
	if flags&hasTimestamp != 0 {
		timestamp = h.timestamp(in)
	}
	if flags&hasTTL != 0 {
		in.vint()
		in.vint()
	}
	if flags&hasDeletion != 0 {
		p.delete("", h.timestamp(in))
		in.vint()
	}
	var missing uint64
	if flags&hasAllColumns == 0 {
		missing = in.vint()
	}
	for i, c := range h.columns {
		if missing>>i&1 != 0 {
			continue
		}
		cells := uint64(1)
		if c.complex {
			if flags&hasComplexDeletion != 0 {
				p.delete(c.name, h.timestamp(in))
				in.vint()
			}
			cells = in.vint()
		}
		for range cells {
			if p.cell(in, c, timestamp, h); in.err != nil {
				return in.err
			}
		}
	}
	if in.err == nil && len(in.b) > 0 {
		return errors.New("a row is longer than its columns")
	}
	return in.err
}

func (p *partition) cell(in *input, c column, rowTimestamp int64, h *header) {
	flags := in.byte()
	n := cell{timestamp: rowTimestamp, tombstone: flags&cellDeleted != 0}
	if flags&cellUseRowTimestamp == 0 {
		n.timestamp = h.timestamp(in)
	}
	if flags&cellUseRowTTL == 0 {
		if flags&(cellDeleted|cellExpiring) != 0 {
			in.vint()
		}
		if flags&cellExpiring != 0 {
			in.vint()
		}
	}
	var path []byte
	if c.complex {
		path = in.text()
	}
	switch {
	case flags&cellEmpty != 0:
		n.value = []byte{}
	case c.fixed >= 0:
		n.value = in.take(uint64(c.fixed))
	default:
		n.value = in.text()
	}
	if in.err == nil {
		p.add([2]string{c.name, string(path)}, n)
	}
}

// timestamp reads one: microseconds, above the smallest of the SSTable.
func (h *header) timestamp(in *input) int64 { return h.minTimestamp + int64(in.vint()) }

// add keeps the newer cell; of two equally old ones, as Cassandra does, the tombstone, then the
// greater value.
func (p *partition) add(at [2]string, n cell) {
	if p.cells == nil {
		p.cells = map[[2]string]cell{}
	}
	o, present := p.cells[at]
	newer := !present || n.timestamp > o.timestamp
	if present && n.timestamp == o.timestamp {
		newer = n.tombstone && !o.tombstone || n.tombstone == o.tombstone && bytes.Compare(n.value, o.value) > 0
	}
	if newer {
		p.cells[at] = n
	}
}

func (p *partition) delete(column string, upTo int64) {
	if p.deleted == nil {
		p.deleted = map[string]int64{}
	}
	if old, present := p.deleted[column]; !present || upTo > old {
		p.deleted[column] = upTo
	}
}

// live returns the values that are not deleted, by column and path.
func (p *partition) live() map[string]map[string][]byte {
	values := map[string]map[string][]byte{}
	for at, c := range p.cells {
		deleted := int64(never)
		for _, column := range []string{"", at[0]} {
			if upTo, present := p.deleted[column]; present {
				deleted = max(deleted, upTo)
			}
		}
		if c.tombstone || c.timestamp <= deleted {
			continue
		}
		if values[at[0]] == nil {
			values[at[0]] = map[string][]byte{}
		}
		values[at[0]][at[1]] = c.value
	}
	return values
}
