package inspect

import (
	"bytes"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Board has what those who watch clusters are shown: a text for each cluster that is watched, and
// nothing of the others. A nil Board is watched by nobody.
type Board struct {
	mutex  sync.Mutex
	sheets map[types.NamespacedName]*sheet
}

type sheet struct {
	watchers int
	text     []byte
	at       time.Time
	changed  chan struct{}
}

// Watched says that somebody watches a cluster.
func (b *Board) Watched(cluster types.NamespacedName) bool {
	if b == nil {
		return false
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.sheets[cluster] != nil
}

// Put shows a text to those who watch a cluster; nil says that the cluster is gone.
func (b *Board) Put(cluster types.NamespacedName, text []byte, at time.Time) {
	if !b.Watched(cluster) {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if s := b.sheets[cluster]; s != nil {
		s.at = at
		if text == nil || !bytes.Equal(s.text, text) {
			close(s.changed)
			s.text, s.changed = text, make(chan struct{})
		}
	}
}

// Watch has texts of a cluster kept until done is called.
func (b *Board) Watch(cluster types.NamespacedName) (done func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.sheets == nil {
		b.sheets = map[types.NamespacedName]*sheet{}
	}
	if b.sheets[cluster] == nil {
		b.sheets[cluster] = &sheet{changed: make(chan struct{})}
	}
	s := b.sheets[cluster]
	s.watchers++
	return func() {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		if s.watchers--; s.watchers == 0 {
			delete(b.sheets, cluster)
		}
	}
}

// Read gives the text of a cluster that is watched, and when that was last found to be so; changed
// is closed when it is another one. The text is nil before the first, and when the cluster is gone.
func (b *Board) Read(cluster types.NamespacedName) (text []byte, at time.Time, changed <-chan struct{}) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	s := b.sheets[cluster]
	return s.text, s.at, s.changed
}
