package serve

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"sync"
	"time"
)

// pool bounds the connections that are open at a time. One more takes the place of the oldest of
// its source, or of the source that has most: nobody waits for somebody who holds many and says
// nothing.
type pool struct {
	perSource, total int

	mu    sync.Mutex
	open  map[string][]*pooled // by source, the oldest first
	count int
}

func newPool(perSource, total int) *pool {
	return &pool{perSource: perSource, total: total, open: map[string][]*pooled{}}
}

// add takes a connection in, and returns the one that is to be closed for it.
func (p *pool) add(c *pooled) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	crowded := p.open[c.source]
	if len(crowded) < p.perSource {
		crowded = nil
		if p.count >= p.total {
			for _, of := range p.open {
				if len(of) > len(crowded) {
					crowded = of
				}
			}
		}
	}
	p.open[c.source] = append(p.open[c.source], c)
	p.count++
	if len(crowded) == 0 {
		return nil
	}
	return crowded[0]
}

func (p *pool) remove(c *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []*pooled
	for _, other := range p.open[c.source] {
		if other != c {
			left = append(left, other)
		}
	}
	p.count -= len(p.open[c.source]) - len(left)
	if p.open[c.source] = left; len(left) == 0 {
		delete(p.open, c.source)
	}
}

// pooled is a connection that counts in one pool until it is closed.
type pooled struct {
	net.Conn
	source string

	mu     sync.Mutex
	in     *pool
	closed bool
}

// enter has it count in another pool.
func (c *pooled) enter(p *pool) {
	var replaced *pooled
	c.mu.Lock()
	if c.in != nil {
		c.in.remove(c)
	}
	if c.in = p; !c.closed {
		replaced = p.add(c)
	}
	c.mu.Unlock()
	if replaced != nil {
		_ = replaced.Close() // whoever serves it notices
	}
}

// Close ends it.
func (c *pooled) Close() error {
	c.mu.Lock()
	if c.closed = true; c.in != nil {
		c.in.remove(c)
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// counting counts connections in a pool from the moment at which they are accepted.
type counting struct {
	net.Listener
	in *pool
}

func (l counting) Accept() (net.Conn, error) { return l.accept() }

func (l counting) accept() (*pooled, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &pooled{Conn: conn, source: conn.RemoteAddr().String()}
	if host, _, err := net.SplitHostPort(c.source); err == nil {
		c.source = host
	}
	c.enter(l.in)
	return c, nil
}

// shaking gives connections out whose handshake is done. Those that are not so far count for
// themselves, have a deadline, and hold nobody up.
type shaking struct {
	counting
	config *tls.Config
	ready  chan net.Conn
	failed chan error
	once   sync.Once
	closed chan struct{}
}

func handshaken(l net.Listener, config *tls.Config) net.Listener {
	s := &shaking{
		counting: counting{l, newPool(shakingPerSource, shakingInAll)}, config: config, ready: make(chan net.Conn),
		failed: make(chan error), closed: make(chan struct{}),
	}
	go s.run(newPool(maxPerSource, maxConnections))
	return s
}

func (s *shaking) run(established *pool) {
	for {
		conn, err := s.accept()
		if err == nil {
			go s.shake(conn, established)
			continue
		}
		select {
		case s.failed <- err:
		case <-s.closed:
			return
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

func (s *shaking) shake(conn *pooled, established *pool) {
	c := tls.Server(conn, s.config)
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout)) // a connection without deadlines fails by itself
	if err := c.Handshake(); err != nil {                  //nolint:noctx // bounded by the deadline
		_ = c.Close() // a stranger
		return
	}
	_ = conn.SetDeadline(time.Time{})
	conn.enter(established)
	select {
	case s.ready <- c:
	case <-s.closed:
		_ = c.Close()
	}
}

func (s *shaking) Accept() (net.Conn, error) {
	select {
	case c := <-s.ready:
		return c, nil
	case err := <-s.failed:
		return nil, err
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *shaking) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Listener.Close()
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
