package agentapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// maxHeadBytes is how large the head of an answer may be: agents say no more in it than its
	// length and type.
	maxHeadBytes = 16 << 10
	// bufferBytes are for what is read and written at once. Most of the time there is neither.
	bufferBytes = 512
	// keptFor is how long a connection is kept that nobody uses: as long as the other side keeps
	// it.
	keptFor = 2 * MaxWait
)

// wire carries questions to one address and their answers back, on the goroutine that asks. The
// transport of net/http has two more for each connection: an operator, which waits for an answer of
// every node all the time, had three stacks and as much again on the heap for each of them, and
// that was a fifth of its memory. How a request and an answer are written is left to net/http.
//
// It keeps one connection that nobody uses, as http.Transport does: one whose answer was a good one
// and was read to its end. Any other is closed, so that an answer can never be taken for that of
// another question.
type wire struct {
	dial func(context.Context) (net.Conn, error)

	mu   sync.Mutex
	idle *connection // nil for none
}

// connection carries one question and its answer at a time.
type connection struct {
	net.Conn
	bounded *io.LimitedReader // what may still be read for this answer
	reader  *bufio.Reader
	writer  *bufio.Writer
	// expiry closes it when it was kept for too long; nil before it was kept.
	expiry *time.Timer
}

func newConnection(conn net.Conn) *connection {
	bounded := &io.LimitedReader{R: conn}
	return &connection{Conn: conn, bounded: bounded, reader: bufio.NewReaderSize(bounded, bufferBytes),
		writer: bufio.NewWriterSize(conn, bufferBytes)}
}

// errTooLarge says that an answer came which is not one of an agent.
var errTooLarge = fmt.Errorf("answer has more than %d bytes", maxAnswerBytes)

// reply is an answer that was read to its end.
type reply struct {
	// code and status of HTTP, such as 200 and "200 OK".
	code   int
	status string
	body   []byte
}

// ask brings the answer to a question, by the connection that is kept if there is one. The other
// side may have closed that in the meantime, so where it brings no answer, a new one is asked: a
// question may be asked twice, and has no body.
func (w *wire) ask(request *http.Request) (reply, error) {
	if kept := w.take(nil); kept != nil {
		answer, err := w.askBy(kept, request)
		if err == nil || errors.Is(err, errTooLarge) || request.Context().Err() != nil {
			return answer, err
		}
	}
	conn, err := w.dial(request.Context())
	if err != nil {
		return reply{}, err
	}
	return w.askBy(newConnection(conn), request)
}

// close closes the connection that is kept.
func (w *wire) close() {
	if kept := w.take(nil); kept != nil {
		_ = kept.Close() // nobody waits for anything of it
	}
}

// take is the connection that is kept, which it no longer is: if it is the one given, or any for
// nil.
func (w *wire) take(only *connection) *connection {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.idle
	if kept == nil || only != nil && only != kept {
		return nil
	}
	w.idle = nil
	kept.expiry.Stop()
	return kept
}

// keep has the connection for the next question, and closes it where another is kept already, or
// when none came for too long.
func (w *wire) keep(c *connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle != nil {
		_ = c.Close() // its answer was read
		return
	}
	w.idle = c
	c.expiry = time.AfterFunc(keptFor, func() {
		if w.take(c) != nil {
			_ = c.Close() // nobody waits for anything of it
		}
	})
}

// askBy asks by a connection, and keeps or closes it. When the context of the request ends, whoever
// reads or writes is told by an error.
func (w *wire) askBy(c *connection, request *http.Request) (reply, error) {
	ctx := request.Context()
	release := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(0, 1)) })
	answer, reusable, err := c.exchange(request)
	if release() && reusable {
		w.keep(c)
		return answer, nil
	}
	_ = c.Close() // what happened before is what counts
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return answer, err
}

// exchange writes a question and reads its answer. It says whether the connection may carry another
// question: nothing of this answer can be left on it.
func (c *connection) exchange(request *http.Request) (answer reply, reusable bool, err error) {
	c.bounded.N = maxHeadBytes + maxAnswerBytes + 1
	if err := request.Write(c.writer); err != nil {
		return reply{}, false, fmt.Errorf("write question: %w", err)
	}
	if err := c.writer.Flush(); err != nil {
		return reply{}, false, fmt.Errorf("write question: %w", err)
	}
	// What waits long is to wait with little on its stack.
	if _, err := c.reader.Peek(1); err != nil {
		return reply{}, false, fmt.Errorf("wait for answer: %w", err)
	}
	return c.read(request)
}

func (c *connection) read(request *http.Request) (answer reply, reusable bool, err error) {
	response, err := http.ReadResponse(c.reader, request)
	if err != nil {
		return reply{}, false, fmt.Errorf("read answer: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // a body that was read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return reply{}, false, fmt.Errorf("read answer: %w", err)
	case len(body) > maxAnswerBytes:
		return reply{}, false, errTooLarge
	}
	reusable = response.StatusCode == http.StatusOK && !response.Close && c.reader.Buffered() == 0
	return reply{response.StatusCode, response.Status, body}, reusable, nil
}
