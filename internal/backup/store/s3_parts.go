package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Journal keeps lines about each upload in parts that has not ended, by names of these. They
// outlive the process, as a rule: if they do not, the upload begins again.
type Journal interface {
	Names() []string
	Lines(name string) []string
	Add(name, line string)
	Clear(name string)
}

// resuming is a store that resumes uploads by a journal, whose first line about each has its id and
// the key. An Azure needs none for that.
type resuming interface {
	write(ctx context.Context, j Journal, key string, content io.Reader, size int64) error
	// journaled is the name of the upload of an object.
	journaled(key string) string
	// abort has the service remove the parts, if it can.
	abort(ctx context.Context, id, key string)
}

// Resume writes an object as Put does. If a call before was interrupted, parts that the service has
// are not sent again. No other call with the journal may write the object meanwhile. What is
// encrypted has other bytes each time.
func Resume(ctx context.Context, s Store, j Journal, key string, content io.Reader, size int64) error {
	if s, is := s.(resuming); is {
		return s.write(ctx, j, key, content, size)
	}
	return s.Put(ctx, key, content, size) //nolint:wrapcheck // it is ours
}

// Abandon has a store remove the parts of all uploads that its journal has.
func Abandon(ctx context.Context, s Store, j Journal) {
	of, is := s.(resuming)
	if !is {
		return
	}
	for _, name := range j.Names() {
		lines := j.Lines(name)
		if len(lines) == 0 {
			continue
		}
		if id, key, _ := strings.Cut(lines[0], " "); of.journaled(key) == name { // and of no other store
			of.abort(ctx, id, key)
			j.Clear(name)
		}
	}
}

// journaled is the name of the upload of an object in a journal.
func journaled(endpoint *url.URL, bucket, key string) string {
	of := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", endpoint, bucket, key))
	return hex.EncodeToString(of[:])
}

// upload is one in parts.
type upload struct {
	*S3

	key, id string
	// journal may be nil. It has a line with the id and the key, and one for each part that was
	// sent: its number, SHA-256 and ETag.
	journal Journal
	name    string
	// has are the parts that the service has already, by their numbers.
	has map[int]sentPart
}

type sentPart struct {
	sum, etag string
	size      int64
}

func (s *S3) journaled(key string) string {
	return journaled(s.core.EndpointURL(), s.bucket, s.prefix+key)
}

// putParts writes an object in parts. What is left of one that nobody completes costs space until a
// rule of the bucket removes it, if it cannot be removed here.
func (s *S3) putParts(ctx context.Context, j Journal, key string, content io.Reader, size int64,
	buffer []byte) (err error) {
	u := &upload{S3: s, key: key, journal: j, name: s.journaled(key)}
	if err := u.begin(ctx); err != nil {
		return err
	}
	defer func() {
		if err == nil && j != nil {
			j.Clear(u.name)
		}
		if err != nil && (j == nil || !interrupted(ctx, err)) {
			u.forget(ctx)
		}
	}()
	var parts []minio.CompletePart
	for left := size; left > 0; left -= int64(len(buffer)) {
		buffer = buffer[:min(left, int64(len(buffer)))]
		if err := fill(content, buffer, left == int64(len(buffer))); err != nil {
			return fmt.Errorf("write object %s: %w", key, err)
		}
		part, err := u.put(ctx, len(parts)+1, buffer)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	return u.complete(ctx, parts, size)
}

// interrupted says that an upload may be resumed: it was ended here, or the service did not answer,
// or could not do what it was asked for.
func interrupted(ctx context.Context, err error) bool {
	var problem *Problem
	var answer minio.ErrorResponse
	if !errors.As(err, &problem) {
		return ctx.Err() != nil
	}
	return !errors.As(err, &answer) || answer.StatusCode >= http.StatusInternalServerError ||
		answer.StatusCode == http.StatusTooManyRequests
}

// begin an upload, or resume the one that the journal has.
func (u *upload) begin(ctx context.Context) error {
	if u.journal != nil {
		if lines := u.journal.Lines(u.name); len(lines) > 0 {
			u.id, _, _ = strings.Cut(lines[0], " ")
			err := u.look(ctx, lines[1:])
			if err == nil || interrupted(ctx, err) {
				return err
			}
			u.forget(ctx) // it was removed, or its parts must not be listed
		}
	}
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	var err error
	u.id, err = u.core.NewMultipartUpload(ctx, u.bucket, u.prefix+u.key,
		u.retaining(u.key, minio.PutObjectOptions{}))
	if err == nil && u.journal != nil {
		u.journal.Add(u.name, u.id+" "+u.key)
	}
	return u.failed("begin to write", u.key, err)
}

// look which parts of those in the journal the service has. An ETag says that a part is the one
// that was sent, and the journal of what content that was: it need not be an MD5.
func (u *upload) look(ctx context.Context, lines []string) error {
	there := map[sentPart]bool{}
	name := func(number int, etag string) string { return fmt.Sprintf("%d %s", number, strings.Trim(etag, `"`)) }
	for more, after := true, 0; more; {
		asking, cancel := limited(ctx, 0)
		page, err := u.core.ListObjectParts(asking, u.bucket, u.prefix+u.key, u.id, after, 0)
		cancel()
		if err != nil {
			return u.failed("list the parts of", u.key, err)
		}
		for _, p := range page.ObjectParts {
			there[sentPart{etag: name(p.PartNumber, p.ETag), size: p.Size}] = true
		}
		more, after = page.IsTruncated && page.NextPartNumberMarker > after, page.NextPartNumberMarker
	}
	u.has = map[int]sentPart{}
	for _, line := range lines {
		var number int
		var p sentPart
		if _, err := fmt.Sscan(line, &number, &p.size, &p.sum, &p.etag); err != nil {
			continue // the process ended while it was written
		}
		delete(u.has, number)
		if there[sentPart{etag: name(number, p.etag), size: p.size}] {
			u.has[number] = p
		}
	}
	return nil
}

// put a part, unless the service has it.
func (u *upload) put(ctx context.Context, number int, content []byte) (minio.CompletePart, error) {
	ctx, cancel := limited(ctx, len(content))
	defer cancel()
	sum, size := digest(content), int64(len(content))
	if p := u.has[number]; p.sum == sum && p.size == size {
		return minio.CompletePart{PartNumber: number, ETag: p.etag}, nil
	}
	part, err := u.core.PutObjectPart(ctx, u.bucket, u.prefix+u.key, u.id, number, bytes.NewReader(content), size,
		minio.PutObjectPartOptions{Sha256Hex: sum, DisableContentSha256: true})
	if err != nil {
		return minio.CompletePart{}, u.failed(fmt.Sprintf("write part %d of", number), u.key, err)
	}
	if u.journal != nil {
		u.journal.Add(u.name, fmt.Sprintf("%d %d %s %s", number, size, sum, part.ETag))
	}
	return minio.CompletePart{PartNumber: number, ETag: part.ETag}, nil
}

// complete makes the object of its parts.
func (u *upload) complete(ctx context.Context, parts []minio.CompletePart, size int64) error {
	asking, cancel := limited(ctx, 0)
	defer cancel()
	// The condition counts here. The library's own way of many parts would leave it out.
	_, err := u.core.CompleteMultipartUpload(asking, u.bucket, u.prefix+u.key, u.id, parts, unlessThere())
	if minio.ToErrorResponse(err).Code == minio.NoSuchUpload { // completed, but the answer was lost
		if there, _ := u.Size(ctx, u.key); there == size {
			return ErrExists
		}
	}
	if err == nil && u.has != nil { // its lock is as old as its beginning
		_, err = u.renew(ctx, u.key)
		return err
	}
	return u.failed("complete", u.key, err)
}

// forget the upload, for good.
func (u *upload) forget(ctx context.Context) {
	u.abort(ctx, u.id, u.key)
	if u.journal != nil {
		u.journal.Clear(u.name)
	}
}

func (s *S3) abort(ctx context.Context, id, key string) {
	ctx, cancel := limited(context.WithoutCancel(ctx), 0)
	defer cancel()
	_ = s.core.AbortMultipartUpload(ctx, s.bucket, s.prefix+key, id)
}
