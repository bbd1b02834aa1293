package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	random "math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"helenus.io/helenus/api/v1alpha1"
)

// longestAnswer is more than a page of a list has.
const longestAnswer = 16 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encoded is a CRC-32C as Google writes it.
func encoded(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// gcsClient sends requests of the JSON API of Google Cloud Storage. Google's own client has gRPC
// and OpenTelemetry with it, which would make half of the agent.
type gcsClient struct {
	http   *http.Client
	base   *url.URL
	tokens oauth2.TokenSource
}

func newGCSClient(base *url.URL, transport *http.Transport, tokens oauth2.TokenSource) *gcsClient {
	return &gcsClient{base: base, tokens: tokens, http: &http.Client{Transport: sender{transport},
		// 308 asks for more of an upload, and nobody has this host read elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// gcsRequest is one by a path of the endpoint. Its content may be in several pieces.
type gcsRequest struct {
	method, path string
	header       http.Header
	content      [][]byte
	// anonymous requests have no token.
	anonymous bool
}

// related has the request write an object, with what is said of it before its content.
func (q *gcsRequest) related(of map[string]string, content []byte) {
	said, _ := json.Marshal(of) // it is of strings alone
	boundary := rand.Text()
	q.header.Set("Content-Type", "multipart/related; boundary="+boundary)
	q.content = [][]byte{
		fmt.Appendf(nil, "--%[1]s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%[2]s\r\n--%[1]s\r\n"+
			"Content-Type: application/octet-stream\r\n\r\n", boundary, said),
		content, fmt.Appendf(nil, "\r\n--%s--\r\n", boundary)}
}

// gcsRefusal is an answer that is no success. Reason and message are empty if it is not in the
// service's own form: what else it says is nobody's business, since the user has chosen the
// endpoint, and the request was made from here.
type gcsRefusal struct {
	status          int
	reason, message string
	header          http.Header
}

func (r *gcsRefusal) Error() string {
	text := fmt.Sprintf("the service answers %d %s", r.status, http.StatusText(r.status))
	if r.message != "" {
		text += ": " + r.message
	}
	return text
}

// refusal is that of an error; of another error it has no status.
func refusal(err error) gcsRefusal {
	var is *gcsRefusal
	if errors.As(err, &is) {
		return *is
	}
	return gcsRefusal{}
}

func refused(answer *http.Response) *gcsRefusal {
	out := &gcsRefusal{status: answer.StatusCode, header: answer.Header}
	var said struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	content, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // the status says enough without it
	if json.Unmarshal(content, &said) == nil && said.Error.Code == out.status {
		out.message = said.Error.Message
		for _, e := range said.Error.Errors {
			out.reason = e.Reason
		}
	}
	return out
}

// send sends a request once. The error of an answer that is no success is a *gcsRefusal.
func (c *gcsClient) send(ctx context.Context, q gcsRequest) (*http.Response, error) {
	var size int64
	pieces := make([]io.Reader, len(q.content))
	for i, piece := range q.content {
		pieces[i], size = bytes.NewReader(piece), size+int64(len(piece))
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.base.Scheme+"://"+c.base.Host+q.path, http.NoBody)
	if err != nil {
		return nil, err //nolint:wrapcheck // failed says what it was about
	}
	if q.header != nil {
		r.Header = q.header.Clone()
	}
	if size > 0 {
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(pieces...)), size
	}
	if !q.anonymous {
		token, err := c.tokens.Token()
		if err != nil {
			return nil, err //nolint:wrapcheck // it is a Problem
		}
		token.SetAuthHeader(r)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if at := new(url.Error); errors.As(err, &at) {
			err = at.Err // without the path, which may let its reader write
		}
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		defer func() { _ = answer.Body.Close() }()
		return nil, refused(answer)
	}
	return answer, nil
}

// again says that a request may have success when it is sent once more.
func again(err error) bool {
	var unknown *Problem
	if errors.As(err, &unknown) { // who asks
		return unknown.Reason == v1alpha1.ReasonStoreUnreachable
	}
	switch status := refusal(err).status; status {
	case 0, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return err != nil
	default:
		return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
	}
}

// pause is that after a failed attempt, of which it returns the error once there is no time left.
// Many clients are not to come back at once.
func pause(ctx context.Context, attempt int, err error) error {
	select {
	case <-ctx.Done():
		if errors.Is(err, ctx.Err()) {
			return err
		}
		return fmt.Errorf("%w: %w", err, ctx.Err())
	case <-time.After(random.N(mostPause >> max(0, attempts-1-attempt))):
		return nil
	}
}

// repeat attempts something until it has success, or cannot have it.
func repeat(ctx context.Context, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if attempt == attempts || !again(err) {
			return err
		}
		if err := pause(ctx, attempt, err); err != nil {
			return err
		}
	}
}

// once sends a request once, and reads the answer into something in JSON, if that is not nil.
func (c *gcsClient) once(ctx context.Context, q gcsRequest, into any) error {
	answer, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer.Body, longestAnswer))
	if err == nil && into != nil && json.Unmarshal(content, into) != nil {
		err = errors.New("the endpoint answers otherwise than Google Cloud Storage")
	}
	return err
}

// ask is once with all attempts.
func (c *gcsClient) ask(ctx context.Context, q gcsRequest, into any) error {
	size := 0
	for _, piece := range q.content {
		size += len(piece)
	}
	ctx, cancel := limited(ctx, size)
	defer cancel()
	return repeat(ctx, func() error { return c.once(ctx, q, into) })
}

// read returns the content of an answer, and how many bytes it has.
func (c *gcsClient) read(ctx context.Context, q gcsRequest) (content io.ReadCloser, size int64, err error) {
	err = repeat(ctx, func() error {
		answer, err := c.send(ctx, q) //nolint:bodyclose // who reads it closes it
		if err == nil {
			content, size = answer.Body, answer.ContentLength
		}
		return err
	})
	return content, size, err
}

// begin starts a resumable upload, and returns the path to which its parts are sent. The path is a
// secret: it needs no token.
func (c *gcsClient) begin(ctx context.Context, q gcsRequest, size int64) (path string, err error) {
	ctx, cancel := limited(ctx, 0)
	defer cancel()
	q.header.Set("X-Upload-Content-Type", "application/octet-stream")
	q.header.Set("X-Upload-Content-Length", fmt.Sprint(size))
	err = repeat(ctx, func() error {
		answer, err := c.send(ctx, q)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, longestAnswer)) // it says nothing that is needed
		where, err := answer.Location()
		if err != nil {
			return fmt.Errorf("the service does not say where to upload to: %w", err)
		}
		path = where.RequestURI() // of the endpoint, wherever the service has itself
		return nil
	})
	return path, err
}

// has is how many bytes of an upload the service has: all, if it is complete.
func (c *gcsClient) has(ctx context.Context, path string, size int64) (int64, error) {
	err := c.ask(ctx, lookAt(path, size), nil)
	switch {
	case err == nil:
		return size, nil
	case refusal(err).status == http.StatusPermanentRedirect:
		return min(size, received(refusal(err).header)), nil
	}
	return 0, err
}

// lookAt asks how many bytes of an upload the service has.
func lookAt(path string, size int64) gcsRequest {
	return gcsRequest{method: http.MethodPut, path: path,
		header: http.Header{"Content-Range": {fmt.Sprintf("bytes */%d", size)}}}
}

// putPart sends a part that begins at a byte of an object, from a byte of it on, with the CRC-32C
// of all until its end, and returns the object after the last part. What breaks off is resumed at
// the byte that the service asks for. Of a part whose bytes it all has, it is asked alone.
func (c *gcsClient) putPart(ctx context.Context, path string, part []byte, at, from, size int64, sum string) (
	gcsObject, error) {
	ctx, cancel := limited(ctx, len(part))
	defer cancel()
	var written gcsObject
	end := at + int64(len(part))
	for attempt, look := 1, from == end; ; {
		q := lookAt(path, size)
		if !look {
			q.content = [][]byte{part[from-at:]}
			q.header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, end-1, size))
			if end == size {
				q.header.Set("X-Goog-Hash", "crc32c="+sum)
			}
		}
		err := c.once(ctx, q, &written)
		switch {
		case err == nil && end < size:
			return written, errors.New("the service has completed it before its end")
		case err == nil:
			return written, nil
		case refusal(err).status == http.StatusPermanentRedirect:
			has := received(refusal(err).header)
			if has < from || has > end {
				return written, fmt.Errorf("the service has %d bytes of it, after it has had %d of %d", has, from, end)
			}
			if has == end && end < size {
				return written, nil
			}
			if has > from {
				from, attempt, look = has, 1, has == size
				continue
			}
			if look && has < size {
				look = false
				continue
			}
		case again(err):
			look = true
		default:
			return written, err
		}
		if attempt == attempts {
			return written, err
		}
		if err := pause(ctx, attempt, err); err != nil {
			return written, err
		}
		attempt++
	}
}

// received is how many bytes of an upload the service says that it has.
func received(header http.Header) int64 {
	var last int64
	if _, err := fmt.Sscanf(header.Get("Range"), "bytes=0-%d", &last); err != nil {
		return 0
	}
	return last + 1
}
