package apiserver

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Worlds of one seed make the same requests until something goes wrong in them. What a patch comes
// to, and whether an object is valid, depends on the request and on the object before it alone, and
// is most of the work of a server: it is done once for all worlds of the same kinds.

// memo remembers by fingerprint. It forgets what was not asked for again while as much was added as
// it holds. It is safe for concurrent use.
type memo[V any] struct {
	mu            sync.Mutex
	young, former map[fingerprint]V
}

// memoSize is how much is remembered at least; it is more than the longest scenario writes.
const memoSize = 4096

func (m *memo[V]) get(f fingerprint) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, known := m.young[f]
	if !known {
		if v, known = m.former[f]; known {
			m.keep(f, v)
		}
	}
	return v, known
}

func (m *memo[V]) put(f fingerprint, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(f, v)
}

func (m *memo[V]) keep(f fingerprint, v V) {
	if m.young == nil || len(m.young) >= memoSize {
		m.former, m.young = m.young, make(map[fingerprint]V, memoSize)
	}
	m.young[f] = v
}

// fingerprint tells values apart: that one of a hundred million questions meets another's has a
// chance of less than one in ten million.
type fingerprint uint64

var seed = maphash.MakeSeed()

// printOf is the fingerprint of values in their order: contents of objects, managed fields,
// strings, encodings, booleans and numbers.
func printOf(values ...any) fingerprint { return fingerprint(hashOf(values)) }

func hashOf(value any) uint64 {
	var kind byte
	var number uint64
	switch v := value.(type) {
	case nil:
	case string:
		return maphash.String(seed, v)
	case []byte:
		return maphash.Bytes(seed, v)
	case bool:
		kind = 1
		if v {
			number = 1
		}
	case int64:
		kind, number = 2, uint64(v) //nolint:gosec // its bits are what counts
	case float64:
		kind, number = 3, math.Float64bits(v)
	case map[string]any:
		kind = 4
		for key, inner := range v { // a sum, since a map has no order
			number += pair(5, maphash.String(seed, key), hashOf(inner))
		}
	case []any:
		kind = 6
		for _, inner := range v {
			number = pair(7, number, hashOf(inner))
		}
	case *unstructured.Unstructured:
		return hashOf(v.Object)
	case []metav1.ManagedFieldsEntry:
		kind = 8
		for i := range v {
			number = pair(9, number, hashOfEntry(&v[i]))
		}
	default:
		panic(fmt.Sprintf("a %T has no fingerprint", value)) // a defect of the caller
	}
	return pair(kind, number, 0)
}

func hashOfEntry(e *metav1.ManagedFieldsEntry) uint64 {
	at, raw := int64(0), ""
	if e.Time != nil {
		at = e.Time.Unix()
	}
	if e.FieldsV1 != nil {
		raw = e.FieldsV1.GetRawString()
	}
	return hashOf([]any{e.Manager, string(e.Operation), e.APIVersion, e.Subresource, at, raw})
}

func pair(kind byte, a, b uint64) uint64 {
	var text [17]byte
	text[0] = kind
	binary.LittleEndian.PutUint64(text[1:], a)
	binary.LittleEndian.PutUint64(text[9:], b)
	return maphash.Bytes(seed, text[:])
}
