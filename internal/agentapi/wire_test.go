package agentapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// far is the other side of a wire.
type far struct {
	*httptest.Server
	wire *wire
	// dialed counts the connections that were made.
	dialed atomic.Int32
}

func answering(t *testing.T, handler http.HandlerFunc) *far {
	t.Helper()
	f := &far{Server: httptest.NewServer(handler)}
	t.Cleanup(f.Close)
	f.wire = &wire{dial: func(ctx context.Context) (net.Conn, error) {
		f.dialed.Add(1)
		return (&net.Dialer{}).DialContext(ctx, "tcp", f.Listener.Addr().String())
	}}
	t.Cleanup(f.wire.close)
	return f
}

func (f *far) ask(ctx context.Context, path string) (reply, error) {
	return f.wire.ask(question(ctx, f.URL+path))
}

func question(ctx context.Context, url string) *http.Request {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		panic(err)
	}
	return request
}

// read asks, and wants an answer.
func (f *far) read(t *testing.T, path string) string {
	t.Helper()
	answer, err := f.ask(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer.body)
}

func (f *far) wantDialed(t *testing.T, want int32) {
	t.Helper()
	if got := f.dialed.Load(); got != want {
		t.Errorf("%d connections were made, want %d", got, want)
	}
}

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }

func TestOneConnectionCarriesOneQuestionAfterTheOther(t *testing.T) {
	f := answering(t, echo)
	for _, path := range []string{"/one", "/two", "/three"} {
		if got := f.read(t, path); got != path {
			t.Errorf("to %s it answers %s", path, got)
		}
	}
	f.wantDialed(t, 1)
}

func TestAConnectionThatTheOtherSideHasClosedIsMadeAnew(t *testing.T) {
	f := answering(t, echo)
	f.read(t, "/one")
	f.CloseClientConnections()
	if got := f.read(t, "/two"); got != "/two" {
		t.Errorf("it answers %s", got)
	}
	f.wantDialed(t, 2)
}

func TestAnAnswerIsNeverThatOfAnotherQuestion(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"that is too large": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, io.LimitReader(&endless{body: 'x'}, 2*maxAnswerBytes))
		},
		"that breaks off":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"that is an error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) },
		"after which it closes": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "x")
		},
		"with more than it announced": func(w http.ResponseWriter, _ *http.Request) {
			conn, out, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = out.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: " +
				"6\r\n\r\nforged")
			_ = out.Flush()
			_ = conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := answering(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/first" {
					handler(w, r)
					return
				}
				echo(w, r)
			})
			_, _ = f.ask(t.Context(), "/first")
			if got := f.read(t, "/second"); got != "/second" {
				t.Errorf("it answers %.20q", got)
			}
			f.wantDialed(t, 2)
		})
	}
}

func TestTwoQuestionsAtOnceHaveAConnectionEachOfWhichOneIsKept(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	f := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(asked)
			<-answer
		}
		echo(w, r)
	})
	slow := make(chan string)
	go func() { slow <- f.read(t, "/slow") }()
	<-asked
	if got := f.read(t, "/quick"); got != "/quick" {
		t.Errorf("it answers %s", got)
	}
	close(answer)
	if got := <-slow; got != "/slow" {
		t.Errorf("it answers %s", got)
	}
	f.read(t, "/next")
	f.wantDialed(t, 2)
}

func TestAQuestionEndsWithItsContext(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"before the head": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"in the body": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{}, 1)
			f := answering(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/again" {
					echo(w, r)
					return
				}
				asked <- struct{}{}
				handler(w, r)
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			go func() {
				<-asked
				cancel(enough)
			}()
			_, err := f.ask(ctx, "/")
			if !errors.Is(err, enough) {
				t.Errorf("it ends with: %v", err)
			}
			f.read(t, "/again")
			f.wantDialed(t, 2)
		})
	}
}

// endless says the same for ever.
type endless struct {
	head string
	body byte
}

func (e *endless) Read(into []byte) (int, error) {
	n := copy(into, e.head)
	e.head = e.head[n:]
	for i := n; i < len(into); i++ {
		into[i] = e.body
	}
	return len(into), nil
}

func TestNobodyIsReadForEver(t *testing.T) {
	for name, c := range map[string]struct {
		says *endless
		want error
	}{
		"in a head": {&endless{"HTTP/1.1 200 OK\r\nX: ", 'x'}, io.ErrUnexpectedEOF},
		"in a body": {&endless{"HTTP/1.1 200 OK\r\n\r\n", 'x'}, errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			near, other := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, other) }()
			go func() { _, _ = io.Copy(other, c.says) }()
			dialed := 0
			w := &wire{dial: func(context.Context) (net.Conn, error) { dialed++; return near, nil }}
			if _, err := w.ask(question(t.Context(), "http://agent/")); !errors.Is(err, c.want) || dialed != 1 {
				t.Errorf("it ends with: %v, after %d connections; want: %v", err, dialed, c.want)
			}
		})
	}
}

// What nobody uses is closed, even if nobody closes the client.
func TestAConnectionIsNotKeptForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, other := net.Pipe()
		w := &wire{dial: func(context.Context) (net.Conn, error) { return near, nil }}
		closed := make(chan time.Time, 1)
		go func() {
			in := bufio.NewReader(other)
			for {
				if _, err := http.ReadRequest(in); err != nil {
					closed <- time.Now()
					return
				}
				_, _ = io.WriteString(other, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}()
		var last time.Time
		for range 2 {
			if _, err := w.ask(question(t.Context(), "http://agent/")); err != nil {
				t.Fatal(err)
			}
			last = time.Now()
			<-time.After(keptFor - time.Second)
		}
		if kept := (<-closed).Sub(last); kept != keptFor {
			t.Errorf("it is closed %s after its last answer, want %s", kept, keptFor)
		}
	})
}

// What waits for an answer costs no goroutine but the one that asks: an operator waits for one of
// every node.
func TestWhoWaitsIsOneGoroutine(t *testing.T) {
	const questions = 20
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := goroutinesOfTest()
		for range questions {
			near, other := net.Pipe()
			w := &wire{dial: func(context.Context) (net.Conn, error) { return near, nil }}
			go func() { _, _ = w.ask(question(ctx, "http://agent/")) }()
			if _, err := http.ReadRequest(bufio.NewReader(other)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := goroutinesOfTest() - before; got != questions {
			t.Errorf("%d questions have %d goroutines", questions, got)
		}
	})
}

// goroutinesOfTest counts those in the bubble of a test. Those of others, and the ones that are
// just ending, are none of them.
func goroutinesOfTest() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(", synctest bubble "))
}
