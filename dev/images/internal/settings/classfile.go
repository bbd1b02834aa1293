package settings

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// field is a field of a Java class with the annotations seen at run time.
type field struct {
	flags       uint16
	name        string
	descriptor  string
	annotations []annotation
}

const (
	flagPublic    = 0x0001
	flagStatic    = 0x0008
	flagTransient = 0x0080
)

// annotation is one annotation: its type as a descriptor, and its values:
// string, bool, enum constant as string, []any, or annotation.
type annotation struct {
	kind   string
	values map[string]any
}

// classReader reads the class file format (JVM specification, chapter 4). The
// first error sticks; reads after it give zeros.
type classReader struct {
	in  *bytes.Reader
	err error
	// strings and integers of the constant pool by index.
	strings  map[uint16]string
	integers map[uint16]int32
}

func (r *classReader) read(into any) {
	if r.err == nil {
		r.err = binary.Read(r.in, binary.BigEndian, into)
	}
}

func (r *classReader) u1() (v uint8)  { r.read(&v); return v }
func (r *classReader) u2() (v uint16) { r.read(&v); return v }
func (r *classReader) u4() (v uint32) { r.read(&v); return v }

func (r *classReader) skip(n int64) {
	if r.err != nil {
		return
	}
	if n > int64(r.in.Len()) {
		r.err = io.ErrUnexpectedEOF
		return
	}
	_, r.err = r.in.Seek(n, io.SeekCurrent)
}

// readFields reads the fields of the class in data.
func readFields(data []byte) ([]field, error) {
	r := &classReader{in: bytes.NewReader(data), strings: map[uint16]string{}, integers: map[uint16]int32{}}
	if magic := r.u4(); r.err == nil && magic != 0xCAFEBABE {
		return nil, errors.New("read class: not a class file")
	}
	r.skip(4) // version
	r.constants()
	r.skip(6) // access flags, this class, super class
	r.skip(2 * int64(r.u2()))
	var fields []field
	for range r.u2() {
		if r.err != nil {
			break
		}
		f := field{flags: r.u2(), name: r.strings[r.u2()], descriptor: r.strings[r.u2()]}
		for range r.u2() {
			name, size := r.strings[r.u2()], int64(r.u4())
			if name != "RuntimeVisibleAnnotations" {
				r.skip(size)
				continue
			}
			for range r.u2() {
				f.annotations = append(f.annotations, r.annotation(0))
			}
		}
		fields = append(fields, f)
	}
	if r.err != nil {
		return nil, fmt.Errorf("read class: %w", r.err)
	}
	return fields, nil
}

// constants reads the constant pool; an entry's kind decides its length.
func (r *classReader) constants() {
	count := r.u2()
	for i := uint16(1); i < count && r.err == nil; i++ {
		switch tag := r.u1(); tag {
		case 1: // text
			text := make([]byte, r.u2())
			r.read(text)
			r.strings[i] = string(text)
		case 3: // integer
			r.integers[i] = int32(r.u4())
		case 5, 6: // long, double: take two places
			r.skip(8)
			i++
		case 7, 8, 16, 19, 20: // class, string, method type, module, package
			r.skip(2)
		case 15: // method handle
			r.skip(3)
		case 4, 9, 10, 11, 12, 17, 18: // float, references, name and type, dynamic
			r.skip(4)
		default:
			if r.err == nil {
				r.err = fmt.Errorf("constant of unknown kind %d", tag)
			}
		}
	}
}

// maxDepth bounds nested annotations, so that a damaged file cannot recurse
// without end.
const maxDepth = 8

func (r *classReader) annotation(depth int) annotation {
	a := annotation{kind: r.strings[r.u2()], values: map[string]any{}}
	for range r.u2() {
		if r.err != nil {
			break
		}
		name := r.strings[r.u2()]
		a.values[name] = r.value(depth + 1)
	}
	return a
}

func (r *classReader) value(depth int) any {
	if depth > maxDepth {
		r.err = errors.New("annotations are nested too deeply")
	}
	tag := r.u1()
	if r.err != nil {
		return nil
	}
	switch tag {
	case 's', 'c':
		return r.strings[r.u2()]
	case 'Z':
		return r.integers[r.u2()] != 0
	case 'e':
		r.u2()
		return r.strings[r.u2()]
	case '@':
		return r.annotation(depth)
	case '[':
		var values []any
		for range r.u2() {
			if r.err != nil {
				break
			}
			values = append(values, r.value(depth+1))
		}
		return values
	default:
		return r.integers[r.u2()]
	}
}
