package facts

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// What nodes see of each other is the one thing that grows with the square of a cluster. Nearly
// always all see the same, so that views are told apart by a digest, and whoever asks something of
// every view asks it once of those that are the same.

// digestBytes is how much of a SHA-256 is kept: two views that differ never get the same by chance.
const digestBytes = 16

// View tells views apart: two rings with the same one have the same endpoints, in all but their
// loads, which no two nodes learn of at the same time.
func (r *Ring) View() string {
	if r.view.isOf(r.Endpoints) {
		return r.view.digest
	}
	return digestOf(r.Endpoints)
}

// KeepView works out once what View answers. It is for whoever reads an answer: from then on no
// endpoint in the list may be changed.
func (r *Ring) KeepView() {
	if r != nil {
		r.view = keptView{digest: digestOf(r.Endpoints), of: r.Endpoints}
	}
}

// keptView is the digest of a list of endpoints. A ring that is copied and given another list does
// not keep it.
type keptView struct {
	digest string
	of     []Endpoint
}

func (v keptView) isOf(endpoints []Endpoint) bool {
	return v.digest != "" && len(v.of) == len(endpoints) && (len(endpoints) == 0 || &v.of[0] == &endpoints[0])
}

// SameViews has, for each of the rings, the index of the first one that sees the same. None of the
// rings is nil.
func SameViews(rings []*Ring) []int {
	first := make(map[string]int, 1)
	out := make([]int, len(rings))
	for i, r := range rings {
		view := r.View()
		at, known := first[view]
		if !known {
			at = i
			first[view] = i
		}
		out[i] = at
	}
	return out
}

// digestOf endpoints, in their order. Texts and lists begin with their lengths, so that nothing of
// one can be taken for a part of the next.
func digestOf(endpoints []Endpoint) string {
	d := digester{hash: sha256.New(), buffer: make([]byte, 0, 1<<10)}
	for i := range endpoints {
		d.endpoint(&endpoints[i])
		d.flush()
	}
	return string(d.hash.Sum(nil)[:digestBytes])
}

type digester struct {
	hash   hash.Hash
	buffer []byte
}

func (d *digester) flush() {
	_, _ = d.hash.Write(d.buffer) // a hash takes everything
	d.buffer = d.buffer[:0]
}

func (d *digester) endpoint(e *Endpoint) {
	for _, text := range [...]string{e.Address, e.HostID, e.Datacenter, e.Rack, string(e.Status), e.Release,
		e.SchemaVersion} {
		d.buffer = binary.AppendUvarint(d.buffer, uint64(len(text)))
		d.buffer = append(d.buffer, text...)
	}
	live := byte(0)
	if e.Live {
		live = 1
	}
	d.buffer = append(d.buffer, live)
	d.buffer = binary.AppendUvarint(d.buffer, uint64(len(e.Tokens)))
	for _, t := range e.Tokens {
		d.buffer = binary.LittleEndian.AppendUint64(d.buffer, uint64(t)) //nolint:gosec // any bits will do
	}
}

// ByHostIDs are the endpoints by host id, as ByHostID finds them: for whoever looks for many.
func (r *Ring) ByHostIDs() map[string]*Endpoint {
	out := make(map[string]*Endpoint, len(r.Endpoints))
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		if _, known := out[e.HostID]; e.HostID != "" && (!known || e.Live) {
			out[e.HostID] = e
		}
	}
	return out
}
