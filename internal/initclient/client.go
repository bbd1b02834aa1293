package initclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"helenus.io/helenus/internal/initapi"
)

// maxReplyBytes bounds a reply: the state with sixteen exits is a few KB, an image's environment a
// few more.
const maxReplyBytes = 1 << 20

// ErrUnreachable says that no init answered on the socket: the Cassandra container is not there
// yet, or its PID 1, and with it every process of that container, has ended. Every error of the
// transport wraps it; a refusal is an *Error.
var ErrUnreachable = errors.New("helenus-init does not answer")

// Client speaks to the init behind one socket. It holds no connection and no state: every call
// stands alone, and a call that failed with ErrUnreachable may or may not have taken effect, which
// the next State tells.
type Client struct{ socket string }

// NewClient returns a client for the socket in the shared volume.
func NewClient(socket string) *Client { return &Client{socket: socket} }

// State asks how things are now.
func (c *Client) State(ctx context.Context) (initapi.State, error) {
	return c.call(ctx, initapi.Request{Op: initapi.OpState})
}

// WaitChange returns as soon as the state is another than seen, at the latest after limit (at most
// MaxWait), and then with the state unchanged.
func (c *Client) WaitChange(ctx context.Context, seen initapi.State, limit time.Duration) (initapi.State, error) {
	limit = min(max(limit, time.Millisecond), initapi.MaxWait)
	ctx, cancel := context.WithTimeout(ctx, limit+2*initapi.IOTimeout)
	defer cancel()
	return c.call(ctx, initapi.Request{Op: initapi.OpWait, Incarnation: seen.Incarnation, After: seen.Seq,
		TimeoutMillis: limit.Milliseconds()})
}

// Command is what to start as the JVM.
type Command struct {
	Argv []string // Argv[0] is an absolute path inside the Cassandra container
	Env  []string // NAME=value, over the environment of that container
	Dir  string   // absolute; "" is /
}

// Start runs a command as start id, which must be above seen.LastStartID to have an effect:
// starting the last id again changes nothing and is no error. A program that cannot be run is no
// error either, but an Exit with its Error set.
func (c *Client) Start(ctx context.Context, seen initapi.State, id uint64, command Command) (initapi.State, error) {
	return c.call(ctx, initapi.Request{Op: initapi.OpStart, Incarnation: seen.Incarnation, StartID: id,
		Argv: command.Argv, Env: command.Env, Dir: command.Dir})
}

// Signal names a signal that init can send to the JVM.
type Signal string

// The signals that init sends.
const (
	SignalTerminate  Signal = "TERM" // Cassandra's shutdown hook drains and ends
	SignalThreadDump Signal = "QUIT" // the JVM prints its threads on the container's output
	SignalKill       Signal = "KILL" // the JVM and what it started
)

// Signal sends a signal to a process that an earlier state of this incarnation named.
func (c *Client) Signal(ctx context.Context, seen initapi.State, p initapi.Process, signal Signal) (initapi.State,
	error) {
	return c.call(ctx, initapi.Request{Op: initapi.OpSignal, Incarnation: seen.Incarnation, StartID: p.StartID,
		PID: p.PID, Signal: string(signal)})
}

// TakeStop takes over, or renews, the stop that SIGTERM asked for: for lease (at most MaxStopLease)
// from now init leaves Cassandra to this agent. If the agent dies, init continues by itself when
// the lease ends.
func (c *Client) TakeStop(ctx context.Context, seen initapi.State, lease time.Duration) (initapi.State, error) {
	return c.call(ctx, initapi.Request{Op: initapi.OpTakeStop, Incarnation: seen.Incarnation,
		LeaseMillis: lease.Milliseconds()})
}

// call is one connection: hello, request, reply. Without a deadline in ctx it is bounded by twice
// the server's timeout.
func (c *Client) call(ctx context.Context, r initapi.Request) (initapi.State, error) {
	if _, bounded := ctx.Deadline(); !bounded || r.Op != initapi.OpWait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*initapi.IOTimeout)
		defer cancel()
	}
	line, err := json.Marshal(r)
	if err != nil {
		return initapi.State{}, fmt.Errorf("encode %s request: %w", r.Op, err)
	}
	if len(line) >= initapi.MaxRequestBytes {
		return initapi.State{}, &initapi.Error{Code: initapi.CodeInvalid,
			Message: fmt.Sprintf("a request has at most %d bytes, this %s %d", initapi.MaxRequestBytes, r.Op,
				len(line))}
	}
	unreachable := func(err error) error {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s: %w: %w", r.Op, ErrUnreachable, err)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return initapi.State{}, unreachable(err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()

	in := bufio.NewReader(io.LimitReader(conn, maxReplyBytes))
	var hello initapi.Hello
	if err := readLine(in, &hello); err != nil {
		return initapi.State{}, unreachable(fmt.Errorf("read hello: %w", err))
	}
	if hello.Protocol < initapi.OldestVersion || hello.Protocol > initapi.ProtocolVersion {
		return initapi.State{}, fmt.Errorf("helenus-init %s speaks protocol %d, this agent %d to %d: delete the pod, "+
			"and both are of one release", hello.Version, hello.Protocol, initapi.OldestVersion,
			initapi.ProtocolVersion)
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return initapi.State{}, unreachable(fmt.Errorf("send request: %w", err))
	}
	var reply initapi.Reply
	if err := readLine(in, &reply); err != nil {
		return initapi.State{}, unreachable(fmt.Errorf("read reply: %w", err))
	}
	var state initapi.State
	if reply.State != nil {
		state = *reply.State
	}
	if hello.Protocol == initapi.OldestVersion {
		state.Unlocked = fmt.Sprintf("helenus-init %s knows no lock of the data volume: delete the pod, and the next "+
			"has one that does", hello.Version)
	}
	if reply.Error != nil {
		return state, reply.Error
	}
	if reply.State == nil {
		return initapi.State{}, fmt.Errorf("%s: reply without a state", r.Op)
	}
	return state, nil
}

func readLine(in *bufio.Reader, into any) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// Refused says whether err is a refusal of init with that code.
func Refused(err error, code initapi.Code) bool {
	var e *initapi.Error
	return errors.As(err, &e) && e.Code == code
}
