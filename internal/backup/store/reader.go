package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// reader reads one object of a service. What breaks off before its length is resumed, unless that
// does not bring a single byte for as often as a request is attempted.
type reader struct {
	ctx context.Context
	// from reads from a byte on, and says how many are left, or that this is not known: -1.
	from func(ctx context.Context, at int64) (body io.ReadCloser, left int64, err error)
	// failed is the error of a read.
	failed func(error) error
	body   io.ReadCloser
	cancel context.CancelFunc
	stall  *time.Timer
	// size of the object, -1 before that is known; at is how much of it was read.
	size, at int64
	futile   int
}

// read opens the reader, or fails.
func (r *reader) read() (io.ReadCloser, error) {
	r.size = -1
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// open asks for the rest of the object.
func (r *reader) open() error {
	ctx, cancel := context.WithCancel(r.ctx)
	stall := time.AfterFunc(requestLimit, cancel)
	body, left, err := r.from(ctx, r.at)
	stall.Stop()
	if err != nil {
		cancel()
		return r.failed(err)
	}
	r.body, r.cancel, r.stall = body, cancel, stall
	switch {
	case left < 0:
		err = errors.New("the service does not tell its length")
	case r.size < 0:
		r.size = left
	case left != r.size-r.at:
		err = fmt.Errorf("it has other bytes than before: %d after the first %d, not %d", left, r.at, r.size-r.at)
	}
	if err != nil {
		return errors.Join(r.failed(err), r.Close())
	}
	return nil
}

func (r *reader) Read(p []byte) (int, error) {
	for {
		r.stall.Reset(readLimit)
		n, err := r.body.Read(p)
		r.stall.Stop()
		r.at += int64(n)
		switch {
		case r.at > r.size:
			return 0, r.failed(fmt.Errorf("it has more than its %d bytes", r.size))
		case n > 0:
			r.futile = 0
			return n, nil
		case errors.Is(err, io.EOF) && r.at == r.size:
			return 0, io.EOF
		case err == nil:
			continue
		}
		switch {
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("it ended after %d of %d bytes", r.at, r.size)
		case errors.Is(err, context.Canceled) && r.ctx.Err() == nil:
			err = fmt.Errorf("no byte came for %s", readLimit)
		}
		r.futile++
		if r.futile >= attempts || r.ctx.Err() != nil {
			return 0, r.failed(err)
		}
		_ = r.Close()
		if err := r.open(); err != nil {
			return 0, err
		}
	}
}

// Close may be called twice: after a read that could not be resumed, too.
func (r *reader) Close() error {
	r.stall.Stop()
	r.cancel()
	return r.body.Close()
}
