package observe

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// hashes keeps the hashes of records from pass to pass: they change seldom, and to hash a thousand
// of them takes longer than the pass.
type hashes struct {
	mutex sync.Mutex
	// known by cluster and name of the node.
	known map[types.NamespacedName]map[string]*facts.RecordHashes
}

// fill puts the hashes of all records into a snapshot, and forgets those of records that are gone.
func (h *hashes) fill(cluster types.NamespacedName, s *facts.Snapshot) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	before, now := h.known[cluster], make(map[string]*facts.RecordHashes, len(s.Nodes))
	for name, n := range s.Nodes {
		if n.Record == nil {
			continue
		}
		if n.Hashes = before[name]; n.KnownHashes() == nil {
			n.Hashes = render.HashesOf(n.Record)
		}
		now[name] = n.Hashes
	}
	if h.known == nil {
		h.known = map[types.NamespacedName]map[string]*facts.RecordHashes{}
	}
	h.known[cluster] = now
}

func (h *hashes) forget(cluster types.NamespacedName) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.known, cluster)
}
