package observe

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/repair"
)

// repairs keeps what was read of the histories of repairs from pass to pass: they change seldom.
type repairs struct {
	mutex sync.Mutex
	known map[types.NamespacedName]history
}

type history struct {
	uid     types.UID
	version string
	*repair.History
}

// fill reads the history of a cluster into a snapshot. One that cannot be read counts for nothing:
// what it has is repaired again.
func (r *repairs) fill(cluster types.NamespacedName, s *facts.Snapshot) {
	if w := s.Cluster.Spec.Repair.Window; w != nil {
		zone, err := time.LoadLocation(w.TimeZone)
		s.RepairZone, s.NoRepairZone = zone, err != nil
	}
	m := s.Shared.ConfigMaps[v1alpha1.RepairsName(s.Cluster.Name)]
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if m == nil {
		delete(r.known, cluster)
		return
	}
	kept := r.known[cluster]
	if kept.uid != m.UID || kept.version != m.ResourceVersion {
		kept = history{uid: m.UID, version: m.ResourceVersion}
		if decoded, err := repair.Decode(m.Data[render.RepairsKey]); err == nil {
			kept.History = decoded
		}
		if r.known == nil {
			r.known = map[types.NamespacedName]history{}
		}
		r.known[cluster] = kept
	}
	s.Repairs = kept.History
}

func (r *repairs) forget(cluster types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.known, cluster)
}
