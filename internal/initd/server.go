package initd

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"helenus.io/helenus/internal/initapi"
)

const (
	keptExits      = 16
	maxConnections = 32                     // further ones wait
	lockAgain      = 500 * time.Millisecond // its holder cannot tell us when it ends
)

// Config is what an Init is told at its start.
type Config struct {
	Dir     string        // shared volume: socket and copy of the configuration go here
	Version string        // shown in Hello
	Lock    string        // file on the data volume
	Window  time.Duration // how long after SIGTERM an agent may first take the stop
	Log     io.Writer     // one line per event, prefix "helenus-init: "
}

// Init supervises one JVM. What state points to is never changed: a shallow copy is a snapshot.
type Init struct {
	cfg     Config
	mu      sync.Mutex
	state   initapi.State
	changed chan struct{}    // closed and replaced at each change of state
	alone   *time.Timer      // fires when the stop is init's own
	lock    *os.File         // of the data volume, held for good; nil until then
	again   <-chan time.Time // when the lock is to be tried again
	words   *words           // of the JVM that was started last
	replies sync.RWMutex     // read-locked from a request's effect to its reply
}

// Run is PID 1. After SIGTERM or SIGINT and the end of Cassandra it returns the exit status.
func Run(cfg Config) (int, error) {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // not PID 1 where the pod shares its process namespace
	// Without a handler Go ends the process on these, and the database with it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM)
	term, child := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(child, syscall.SIGCHLD)

	i := &Init{cfg: cfg, changed: make(chan struct{}), alone: time.NewTimer(time.Hour)}
	i.alone.Stop()
	i.state = initapi.State{Incarnation: rand.Text(), Seq: 1, StartedAt: time.Now().UTC()}
	if err := i.readImage(); err != nil {
		return 1, err
	}
	i.lockVolume()
	listener, err := i.listen()
	if err != nil {
		return 1, fmt.Errorf("open the socket for the agent: %w", err)
	}
	go i.accept(listener)
	i.logf("ready: configuration of the image copied to %s", i.state.Image.Base)
	for {
		select {
		case <-child:
			i.locked(i.reap)
		case <-term:
			i.locked(i.stop)
		case <-i.alone.C:
			i.locked(i.stopAlone)
		case <-i.again:
			i.locked(i.lockVolume)
		}
		if status, over := i.over(); over {
			i.logf("exit with status %d", status)
			i.replies.Lock() // a request is answered before the container ends, within initapi.IOTimeout
			return status, nil
		}
	}
}

func (i *Init) locked(f func()) { i.mu.Lock(); defer i.mu.Unlock(); f() }

// over says whether the container is to end, and its status: that of the stopped JVM, or 143.
func (i *Init) over() (status int, over bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, exits := i.state.Stopping, i.state.Exits
	if s == nil || i.state.Process != nil {
		return 0, false
	}
	if n := len(exits); n > 0 && !exits[n-1].EndedAt.Before(s.Since) {
		return exits[n-1].Code, true
	}
	return 128 + int(syscall.SIGTERM), true
}

// stop tells the agents that the container is to end and gives them the window to take it.
func (i *Init) stop() {
	if i.state.Stopping == nil {
		i.logf("SIGTERM: stopping")
		i.stopping(initapi.Stopping{Since: time.Now().UTC()}, i.cfg.Window)
	}
}

// take gives the stop to an agent for the length of the lease.
func (i *Init) take(lease time.Duration) *initapi.Error {
	switch s := i.state.Stopping; {
	case s == nil:
		return initapi.Refuse(initapi.CodeNotStopping, "nothing to take: no SIGTERM came")
	case s.Alone:
		return initapi.Refuse(initapi.CodeTooLate, "SIGTERM was sent to Cassandra already")
	case lease <= 0 || lease > initapi.MaxStopLease:
		return initapi.Refuse(initapi.CodeInvalid, "the lease must be above 0 and at most %s", initapi.MaxStopLease)
	default:
		i.stopping(initapi.Stopping{Since: s.Since, Taken: true}, lease)
		return nil
	}
}

// stopping publishes how the stop stands and when init takes it over.
func (i *Init) stopping(s initapi.Stopping, left time.Duration) {
	s.Deadline = time.Now().UTC().Add(left)
	i.state.Stopping = &s
	i.alone.Reset(left)
	i.change()
}

// stopAlone ends the JVM without an agent: SIGTERM, on which Cassandra's shutdown hook drains. How
// long that may take is the pod's terminationGracePeriod, at whose end the kubelet kills.
func (i *Init) stopAlone() {
	if left := time.Until(i.state.Stopping.Deadline); left > 0 { // renewed while the timer fired
		i.alone.Reset(left)
		return
	}
	s := *i.state.Stopping
	s.Alone, i.state.Stopping = true, &s
	i.logf("no agent stops Cassandra: doing it")
	if p := i.state.Process; p != nil {
		_ = i.signal(p.StartID, p.PID, "TERM")
	}
	i.change()
}

func (i *Init) listen() (net.Listener, error) {
	path := filepath.Join(i.cfg.Dir, initapi.SocketName)
	_ = os.Remove(path)                       // of an earlier start
	defer syscall.Umask(syscall.Umask(0o117)) // 0660 from the first moment on: agent and init share a group
	return new(net.ListenConfig).Listen(context.Background(), "unix", path)
}

func (i *Init) accept(listener net.Listener) {
	slots := make(chan struct{}, maxConnections)
	for {
		slots <- struct{}{}
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors or memory: try again, do not spin
			<-time.After(100 * time.Millisecond)
			<-slots
		default:
			go func() { i.serve(conn); <-slots }()
		}
	}
}

// serve answers the one request of a connection, and drops clients that do not send or read in
// time.
func (i *Init) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(initapi.IOTimeout))
	out := json.NewEncoder(conn)
	if out.Encode(initapi.Hello{Protocol: initapi.ProtocolVersion, Version: i.cfg.Version}) != nil {
		return
	}
	in := bufio.NewScanner(conn)
	in.Buffer(nil, initapi.MaxRequestBytes)
	in.Scan()
	var r initapi.Request
	if err := cmp.Or(in.Err(), json.Unmarshal(in.Bytes(), &r)); err != nil {
		_ = out.Encode(initapi.Reply{Error: initapi.Refuse(initapi.CodeInvalid, "read request of at most %d bytes: %v",
			initapi.MaxRequestBytes, err)})
		return
	}
	if r.Op == initapi.OpWait {
		_ = conn.SetDeadline(time.Time{})
		i.wait(r, conn)
		_ = conn.SetDeadline(time.Now().Add(initapi.IOTimeout))
	}
	i.replies.RLock()
	defer i.replies.RUnlock()
	_ = out.Encode(i.answer(r))
}

// wait blocks as OpWait says, or until the client is gone.
func (i *Init) wait(r initapi.Request, conn net.Conn) {
	gone := make(chan struct{})
	go func() { _, _ = conn.Read(make([]byte, 1)); close(gone) }() // ends when serve closes the connection
	timeout := time.After(r.Timeout())
	for {
		i.mu.Lock()
		changed, news := i.changed, i.state.Seq > r.After || i.state.Incarnation != r.Incarnation
		i.mu.Unlock()
		if news {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			return
		case <-gone:
			return
		}
	}
}

// answer does what a request asks for.
func (i *Init) answer(r initapi.Request) initapi.Reply {
	i.mu.Lock()
	defer i.mu.Unlock()
	var e *initapi.Error
	switch {
	case r.Op == initapi.OpState || r.Op == initapi.OpWait:
	case r.Incarnation != i.state.Incarnation:
		e = initapi.Refuse(initapi.CodeIncarnation, "%s was meant for another start of this container", r.Op)
	case r.Op == initapi.OpStart:
		e = i.start(r)
	case r.Op == initapi.OpSignal:
		e = i.signal(r.StartID, r.PID, r.Signal)
	case r.Op == initapi.OpTakeStop:
		e = i.take(time.Duration(min(r.LeaseMillis, initapi.MaxStopLease.Milliseconds()+1)) * time.Millisecond)
	default:
		e = initapi.Refuse(initapi.CodeInvalid, "unknown op %q", r.Op)
	}
	state := i.state
	if state.Process != nil {
		used := cpuTime(state.Process.PID)
		state.CPUNanos = used.Nano()
	}
	return initapi.Reply{Error: e, State: &state}
}

// change wakes all that wait for one.
func (i *Init) change() {
	i.state.Seq++
	close(i.changed)
	i.changed = make(chan struct{})
}

func (i *Init) logf(f string, v ...any) { _, _ = fmt.Fprintf(i.cfg.Log, "helenus-init: "+f+"\n", v...) }
