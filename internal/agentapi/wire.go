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
	// maxHeadBytes is how large the head of an answer may be: agents say no more in it than its length and type.
	maxHeadBytes = 16 << 10
	// bufferBytes are for what is read and written at once. Most of the time there is neither.
	bufferBytes = 512
)

// wire is an http.RoundTripper for one address, on the goroutine that asks. That of net/http has two more for each connection: an operator, which waits for an answer of
// every node all the time, had three stacks and as much again on the heap for each of them, and that was a fifth of its memory. How a request and an answer are written is
// left to net/http.
//
// It keeps one connection that nobody uses, as http.Transport does: one whose answer was a good one and was read to its end. Any other is closed, so that an answer can
// never be taken for that of another question.
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
}

// RoundTrip asks, by the connection that is kept if there is one. The other side may have closed that in the meantime, so where it brings no answer, a new one is
// asked. It is for questions that may be asked twice and have no body.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if kept := w.take(); kept != nil {
		response, err := w.ask(kept, request)
		if err == nil || request.Context().Err() != nil {
			return response, err
		}
	}
	conn, err := w.dial(request.Context())
	if err != nil {
		return nil, err
	}
	bounded := &io.LimitedReader{R: conn}
	return w.ask(&connection{Conn: conn, bounded: bounded, reader: bufio.NewReaderSize(bounded, bufferBytes), writer: bufio.NewWriterSize(conn, bufferBytes)}, request)
}

// CloseIdleConnections closes the connection that is kept.
func (w *wire) CloseIdleConnections() {
	if kept := w.take(); kept != nil {
		_ = kept.Close() // nobody waits for anything of it
	}
}

func (w *wire) take() *connection {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.idle
	w.idle = nil
	return kept
}

// keep has the connection for the next question, or closes it where another is kept already.
func (w *wire) keep(c *connection) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle != nil {
		return c.Close()
	}
	w.idle = c
	return nil
}

// ask writes a question and reads the head of its answer. From then on the connection is the answer's. When the context of the request ends, whoever reads or writes is
// told by an error.
func (w *wire) ask(c *connection, request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	release := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(0, 1)) })
	response, err := c.ask(request)
	if err != nil {
		release()
		_ = c.Close() // what happened before is what counts
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	response.Body = &answer{
		body: response.Body, wire: w, connection: c, ctx: ctx, release: release,
		reusable: response.StatusCode == http.StatusOK && !response.Close,
	}
	return response, nil
}

func (c *connection) ask(request *http.Request) (*http.Response, error) {
	c.bounded.N = maxHeadBytes + maxAnswerBytes + 1
	if err := request.Write(c.writer); err != nil {
		return nil, fmt.Errorf("write question: %w", err)
	}
	if err := c.writer.Flush(); err != nil {
		return nil, fmt.Errorf("write question: %w", err)
	}
	// What waits long is to wait with little on its stack.
	if _, err := c.reader.Peek(1); err != nil {
		return nil, fmt.Errorf("wait for answer: %w", err)
	}
	response, err := http.ReadResponse(c.reader, request)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return response, nil
}

// answer is the body of one, which has the connection until it is closed.
type answer struct {
	body       io.Reader
	wire       *wire
	connection *connection
	ctx        context.Context // of the request
	release    func() bool     // from that context
	// reusable says that the connection may carry another question when this answer was read to its end.
	reusable, read bool
}

func (a *answer) Read(into []byte) (int, error) {
	n, err := a.body.Read(into)
	switch {
	case errors.Is(err, io.EOF):
		a.read = true
	case err != nil && a.ctx.Err() != nil:
		err = context.Cause(a.ctx)
	}
	return n, err
}

// Close gives the connection back, or closes it: what was not read of the answer must not be read as the next one's, and one whose context has ended is of no use.
func (a *answer) Close() error {
	if a.release() && a.read && a.reusable && a.connection.reader.Buffered() == 0 {
		return a.wire.keep(a.connection)
	}
	return a.connection.Close()
}
