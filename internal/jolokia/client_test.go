package jolokia

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestNewRefusesURLsThatLeaveTheHost(t *testing.T) {
	for _, url := range []string{
		"", "127.0.0.1:8778", "https://127.0.0.1:8778/jolokia", "http://10.0.0.1:8778/jolokia",
		"http://cassandra.example:8778/",
		"http://localhost:8778/", "http://user:secret@127.0.0.1:8778/", "http://127.0.0.1:8778/?x=y",
		"http://[fe80::1]:8778/", "http://%zz/",
	} {
		if _, err := New(Config{URL: url}); err == nil {
			t.Errorf("URL %q was accepted", url)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("error shows the password: %v", err)
		}
	}
	for _, url := range []string{"http://127.0.0.1:8778/jolokia", "http://127.9.8.7:1/", "http://[::1]:8778"} {
		if _, err := New(Config{URL: url}); err != nil {
			t.Errorf("URL %q: %v", url, err)
		}
	}
}

func TestUnusableRequestsAreNotSent(t *testing.T) {
	client := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	for _, request := range []Request{
		Read("", "X"), Read("a:b=c"), ReadPath("a:b=c", "X", ""), Write("a:b=c", "", 1),
		Write("a:b=c", "X", make(chan int)),
		Exec("a:b=c", "drain"), Exec("a:b=c", "()"), Exec("", "drain()"), Exec("a:b=c", "drain()", 1),
		Exec("a:b=c", "rebuild(java.lang.String)"),
	} {
		if _, err := client.Do(context.Background(), request); err == nil {
			t.Errorf("%s: no error", request)
		}
	}
	if answers, err := client.Do(context.Background()); err != nil || answers != nil {
		t.Errorf("no requests: %v, %v", answers, err)
	}
	if _, err := client.ExecBlocking(context.Background(), Read("a:b=c", "X")); err == nil {
		t.Error("ExecBlocking of a read: no error")
	}
}

func TestHTTPErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		want   error
	}{
		{http.StatusUnauthorized, ErrUnauthorized},
		{http.StatusForbidden, ErrProtocol},
		{http.StatusInternalServerError, ErrProtocol},
		{http.StatusFound, ErrProtocol},
	} {
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://198.51.100.1/")
			w.WriteHeader(c.status)
		})
		if _, err := client.Call(context.Background(), Read("a:b=c", "X")); !errors.Is(err, c.want) {
			t.Errorf("HTTP %d: %v, want %v", c.status, err, c.want)
		}
	}
}

func TestAnswerIsBounded(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		//nolint:errcheck // the client notices
		io.WriteString(w, `[{"status":200,"value":"`+strings.Repeat("x", 1000)+
			`"}]`)
	})
	client.maxBytes = 100
	if _, err := client.Call(context.Background(), Read("a:b=c", "X")); !errors.Is(err, ErrTooLarge) {
		t.Errorf("1000 bytes with a limit of 100: %v", err)
	}
	client.maxBytes = 2000
	if _, err := client.Call(context.Background(), Read("a:b=c", "X")); err != nil {
		t.Errorf("1000 bytes with a limit of 2000: %v", err)
	}
}

func TestNothingListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String() + "/"
	listener.Close() //nolint:errcheck // nothing was accepted
	client, err := New(Config{URL: url, Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(context.Background(), Read("a:b=c", "X")); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nothing listens: %v", err)
	}
}

// TestTimeouts shows that a frozen JVM costs a bounded time, and that a blocking operation is
// bounded only by its context.
func TestTimeouts(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // lets the server see the client leave
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	client.timeout = time.Millisecond
	_, err := client.Do(context.Background(), Read("a:b=c", "X"))
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("frozen JVM: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := client.ExecBlocking(ctx, Exec("a:b=c", "decommission(boolean)", false))
		result <- err
	}()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("blocking operation abandoned: %v", err)
	}
}

// TestOnlyRequestsThatChangeNothingAreRepeated cuts a kept connection at the moment of the second
// request: net/http repeats a read, and must not repeat a call.
func TestOnlyRequestsThatChangeNothingAreRepeated(t *testing.T) {
	for _, c := range []struct {
		name    string
		request Request
		arrived int32
	}{
		{"read", Read("a:b=c", "X"), 2},
		{"write", Write("a:b=c", "X", 1), 1},
		{"call", Exec("a:b=c", "drain()"), 1},
	} {
		var cut atomic.Bool
		var arrived atomic.Int32
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if cut.Load() && arrived.Add(1) == 1 {
				connection, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Errorf("hijack: %v", err)
					return
				}
				connection.Close() //nolint:errcheck // cut on purpose
				return
			}
			io.WriteString(w, `[{"status":200,"value":1}]`) //nolint:errcheck // the client notices
		})
		if _, err := client.Call(context.Background(), Read("a:b=c", "X")); err != nil {
			t.Fatal(err)
		}
		cut.Store(true)
		_, err := client.Call(context.Background(), c.request)
		if arrived.Load() != c.arrived {
			t.Errorf("%s arrived %d times, want %d", c.name, arrived.Load(), c.arrived)
		}
		if c.arrived == 1 && !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s over a cut connection: %v", c.name, err)
		}
	}
}
