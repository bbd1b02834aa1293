package execute

import (
	"slices"
	"sync"

	"helenus.io/helenus/internal/threads"
)

// broadcast tells all that wait.
type broadcast struct {
	mu      sync.Mutex
	waiting []*threads.Signal
}

// join makes a signal that is set at every call of all until leave.
func (b *broadcast) join() *threads.Signal {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := threads.NewSignal()
	b.waiting = append(b.waiting, s)
	return s
}

func (b *broadcast) leave(s *threads.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(o *threads.Signal) bool { return o == s })
}

func (b *broadcast) all() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.waiting {
		s.Set()
	}
}
