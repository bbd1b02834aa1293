package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

// reader reads one object of a bucket. What breaks off before its length is resumed, unless that
// does not bring a single byte for as often as a request is attempted.
type reader struct {
	ctx    context.Context
	store  *S3
	key    string
	body   io.ReadCloser
	cancel context.CancelFunc
	stall  *time.Timer
	// size of the object, -1 before that is known; at is how much of it was read.
	size, at int64
	futile   int
}

// open asks for the rest of the object.
func (r *reader) open() error {
	ctx, cancel := context.WithCancel(r.ctx)
	var options minio.GetObjectOptions
	if r.at > 0 {
		options.Set("Range", fmt.Sprintf("bytes=%d-", r.at))
	}
	stall := time.AfterFunc(requestLimit, cancel)
	body, info, _, err := r.store.core.GetObject(ctx, r.store.bucket, r.store.prefix+r.key, options)
	stall.Stop()
	if err != nil {
		cancel()
		return r.store.failed("read", r.key, err)
	}
	r.body, r.cancel, r.stall = body, cancel, stall
	switch {
	case info.Size < 0:
		err = errors.New("the service does not tell its length")
	case r.size < 0:
		r.size = info.Size
	case info.Size != r.size-r.at:
		err = fmt.Errorf("it has other bytes than before: %d after the first %d, not %d", info.Size, r.at, r.size-r.at)
	}
	if err != nil {
		return errors.Join(r.store.failed("read", r.key, err), r.Close())
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
			return 0, r.store.failed("read", r.key, fmt.Errorf("it has more than its %d bytes", r.size))
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
			return 0, r.store.failed("read", r.key, err)
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
