package store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

type slowedKey struct{}

// Slowed is a context in which the content of requests is sent no faster than wait lets it. That is
// called before some bytes are sent, 64 KiB at most as a rule. A part that leaves at once would
// take the processors and the network for itself.
func Slowed(ctx context.Context, wait func(ctx context.Context, bytes int) error) context.Context {
	return context.WithValue(ctx, slowedKey{}, wait)
}

// sender reads the content of a request until its answer is closed, and no longer. An
// http.Transport may still read it then: a service that refuses a request need not have read it.
// What sends parts fills its buffer again by that time.
type sender struct{ *http.Transport }

func (s sender) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return s.Transport.RoundTrip(request) //nolint:wrapcheck // callers know that of http.Transport
	}
	of := &sending{wait: func(int) error { return nil }}
	if wait, slowed := request.Context().Value(slowedKey{}).(func(context.Context, int) error); slowed {
		of.wait = func(bytes int) error { return wait(request.Context(), bytes) }
	}
	request = request.WithContext(request.Context()) // a RoundTripper must not change what it is given
	request.Body = &sent{ReadCloser: request.Body, of: of}
	if original := request.GetBody; original != nil {
		request.GetBody = func() (io.ReadCloser, error) {
			again, err := original()
			return &sent{ReadCloser: again, of: of}, err
		}
	}
	answer, err := s.Transport.RoundTrip(request)
	if err != nil {
		of.end()
		return nil, err //nolint:wrapcheck // as above
	}
	answer.Body = &answered{ReadCloser: answer.Body, of: of}
	return answer, nil
}

// sending is that of one request, by all connections on which it is attempted.
type sending struct {
	wait  func(bytes int) error
	mutex sync.Mutex
	ended bool
}

func (s *sending) end() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.ended = true
}

// sent is the content of a request.
type sent struct {
	io.ReadCloser

	of *sending
}

func (s *sent) Read(p []byte) (int, error) {
	n, err := s.read(p)
	if waited := s.of.wait(n); waited != nil {
		return 0, waited
	}
	return n, err
}

func (s *sent) read(p []byte) (int, error) {
	s.of.mutex.Lock()
	defer s.of.mutex.Unlock()
	if s.of.ended {
		return 0, errors.New("the answer came before all was sent")
	}
	return s.ReadCloser.Read(p) //nolint:wrapcheck // it may be io.EOF
}

// answered is the content of an answer.
type answered struct {
	io.ReadCloser

	of *sending
}

func (a *answered) Close() error {
	defer a.of.end()
	return a.ReadCloser.Close() //nolint:wrapcheck // callers know that of an answer
}
