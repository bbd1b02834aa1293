package execute

import "sync"

// signal remembers that something happened, once, however often it was set.
type signal struct{ c chan struct{} }

func newSignal() *signal { return &signal{make(chan struct{}, 1)} }

func (s *signal) set() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// broadcast tells all that wait.
type broadcast struct {
	mu sync.Mutex
	c  chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{c: make(chan struct{})} }

// next is closed at the next call of all.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.c
}

func (b *broadcast) all() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.c)
	b.c = make(chan struct{})
}
