package inspect

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"helenus.io/helenus/internal/inspectapi"
)

const watchOrders = "/v1/namespaces/shop/clusters/orders/watch"

// watched is a world with bob, who may see orders, and a server for it whose clock goes a second
// with each look at it.
func watched(t *testing.T, pace pace) (*world, string) {
	t.Helper()
	w := newWorld()
	w.tokens = map[string]authenticationv1.UserInfo{"t": {Username: "bob"}}
	w.rights = []string{"bob shop/orders"}
	s := w.server(t)
	var seconds atomic.Int64
	s.pace, s.Now = pace, func() time.Time { return now.Add(time.Duration(seconds.Add(1)) * time.Second) }
	return w, serve(t, s)
}

// watch opens a stream, and gives its status and its events, as "name data".
func watch(t *testing.T, address string) (status int, next func() string, end context.CancelFunc) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+watchOrders, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer t")
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, eventsOf(response.Body), end
}

// eventsOf a stream, one after the other.
func eventsOf(stream io.Reader) func() string {
	lines := bufio.NewScanner(stream)
	return func() string {
		event := ""
		for lines.Scan() && lines.Text() != "" {
			_, value, _ := strings.Cut(lines.Text(), ": ")
			event = strings.TrimSpace(event + " " + value)
		}
		return event
	}
}

func want(t *testing.T, next func() string, events ...string) {
	t.Helper()
	for _, event := range events {
		if got := next(); got != event {
			t.Fatalf("event %q, want %q", got, event)
		}
	}
}

const slow = time.Hour

func TestWatch(t *testing.T) {
	w, address := watched(t, pace{time.Nanosecond, slow, slow})
	status, next, _ := watch(t, address)
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	want(t, next, `view {"cluster":"orders"}`, "beat 2026-03-01T12:00:00Z")
	w.board.Put(orders, []byte(`{"cluster":"orders"}`), now) // nothing new
	w.board.Put(orders, []byte(`{"b":2}`), now.Add(time.Minute))
	want(t, next, `view {"b":2}`, "beat 2026-03-01T12:01:00Z")
	if got := ask(t, address, request{path: strings.Replace(watchOrders, "watch", "view", 1), header: bearerOf("t")}); string(got.body) !=
		`{"b":2}` || len(w.inspected) != 1 {
		t.Errorf("a snapshot beside it: %s, after %d looks", got.body, len(w.inspected))
	}
	w.board.Put(orders, nil, now)
	want(t, next, "end the cluster is gone", "")
	for w.board.Watched(orders) { // until the stream has ended there, too
		<-time.After(time.Millisecond)
	}
}

func TestViewsAreSpacedAndSilenceIsNot(t *testing.T) {
	w, address := watched(t, pace{slow, time.Millisecond, slow})
	_, next, _ := watch(t, address)
	want(t, next, `view {"cluster":"orders"}`)
	w.board.Put(orders, []byte(`{"b":2}`), now)
	for range 3 {
		want(t, next, "beat 2026-03-01T12:00:00Z")
	}
}

func TestAWithdrawnRightEndsAStream(t *testing.T) {
	if normalPace.again+patience > time.Minute {
		t.Error("it takes longer than a minute")
	}
	w, address := watched(t, pace{slow, slow, time.Millisecond})
	_, next, _ := watch(t, address)
	want(t, next, `view {"cluster":"orders"}`, "beat 2026-03-01T12:00:00Z")
	w.mutex.Lock()
	w.rights = nil
	w.mutex.Unlock()
	want(t, next, "end you may not see this cluster any more, or that could not be asked", "")
}

func TestFewStreams(t *testing.T) {
	_, address := watched(t, pace{slow, slow, slow})
	var end context.CancelFunc
	for range streamsAtOnce {
		var status int
		if status, _, end = watch(t, address); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	if status, _, _ := watch(t, address); status != http.StatusTooManyRequests {
		t.Errorf("one too many got %d", status)
	}
	end()
	for { // until the operator has noticed
		if status, _, _ := watch(t, address); status == http.StatusOK {
			return
		}
		<-time.After(time.Millisecond)
	}
}

func TestStreamsEndWithTheServer(t *testing.T) {
	w := newWorld()
	w.tokens, w.rights = map[string]authenticationv1.UserInfo{"t": {Username: "bob"}}, []string{"bob shop/orders"}
	s := w.server(t)
	listener, address := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, listener, s.Handler()) }()
	_, next, _ := watch(t, address)
	want(t, next, `view {"cluster":"orders"}`, "beat 2026-03-01T12:00:00Z")
	cancel()
	if err := <-ended; err != nil || next() != "" {
		t.Errorf("ended with %v", err)
	}
}

// What no view is refused for the plan is not refused for the view.
func TestWhoMayWatch(t *testing.T) {
	for name, c := range map[string]struct {
		request
		status int
	}{
		"nobody":                   {request{path: watchOrders}, 401},
		"another cluster":          {request{path: "/v1/namespaces/shop/clusters/carts/watch", header: bearerOf("t")}, 403},
		"another cluster at once":  {request{path: "/v1/namespaces/shop/clusters/carts/view", header: bearerOf("t")}, 403},
		"one that is not there":    {request{path: "/v1/namespaces/bank/clusters/x/watch", header: bearerOf("t")}, 404},
		"a list of nobody":         {request{path: inspectapi.FleetPath}, 401},
		"changing":                 {request{path: watchOrders, method: http.MethodPost, header: bearerOf("t")}, 405},
		"a name that was rebound":  {request{path: watchOrders, header: map[string]string{"Authorization": "Bearer t", "Host": "evil.example:8082"}}, 403},
		"a page of another origin": {request{header: map[string]string{"Authorization": "Bearer t", "Origin": "http://127.0.0.1:99"}}, 403},
		"the page, rebound":        {request{path: "/console/", header: map[string]string{"Host": "evil.example"}}, 403},
		"the page":                 {request{path: "/console/"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			w, address := watched(t, normalPace)
			w.rights = append(w.rights, "bob bank/x")
			got := ask(t, address, c.request)
			if got.status != c.status || !strings.HasPrefix(got.header.Get("Content-Security-Policy"), "default-src 'none'; ") {
				t.Errorf("status %d (%s), want %d", got.status, got.body, c.status)
			}
			if seen := len(w.inspected) > 0; seen != (c.status == 404) || w.board.Watched(orders) {
				t.Errorf("looked %v", w.inspected)
			}
			if inline := regexp.MustCompile(`<script>|<style|style=| on\w+=|https?:`).Find(got.body); inline != nil && got.status == http.StatusOK {
				t.Errorf("the page has %s", inline)
			}
		})
	}
}

func TestTheListShowsWhatMayBeSeen(t *testing.T) {
	for name, c := range map[string]struct {
		rights          []string
		query           string
		shown, left, by int
	}{
		"all":            {[]string{"bob /"}, "", 30, 0, 1},
		"a namespace":    {[]string{"bob n1/"}, "?namespace=n1", 10, 0, 2},
		"one of it":      {[]string{"bob n1/c3"}, "?namespace=n1", 1, 0, 12},
		"none of many":   {nil, "", 0, 13, mostReviews},
		"one far behind": {[]string{"bob n2/c9"}, "", 0, 13, mostReviews},
	} {
		t.Run(name, func(t *testing.T) {
			w, address := watched(t, normalPace)
			w.rights = c.rights
			got := ask(t, address, request{path: inspectapi.FleetPath + c.query, header: bearerOf("t")})
			var f inspectapi.Fleet
			if err := json.Unmarshal(got.body, &f); err != nil || len(f.Clusters) != c.shown || f.Left != c.left ||
				len(w.asked) != c.by {
				t.Errorf("%s, by %d reviews (%v)", got.body, len(w.asked), err)
			}
		})
	}
}
