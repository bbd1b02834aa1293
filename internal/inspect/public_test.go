package inspect

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"helenus.io/helenus/internal/inspectapi"
)

const consoleHost = "console.example:8443"

// public serves the console of a world as a Service reaches it; leads says whether this replica
// leads.
func public(t *testing.T, w *world, leads bool, change func(*Public)) string {
	t.Helper()
	leading := make(chan struct{})
	if leads {
		close(leading)
	}
	p := &Public{Server: w.server(t), Hosts: []string{"other.example", "console.example"}, Leads: leading,
		Leader: func(context.Context) (Leader, error) { return Leader{}, errors.New("the Lease has no holder") }}
	var err error
	if p.Certificate, err = NewCertificate(time.Now()); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(p)
	}
	server := httptest.NewUnstartedServer(p.Handler())
	server.TLS = p.tlsConfig()
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func withBob() *world {
	w := newWorld()
	w.tokens = map[string]authenticationv1.UserInfo{"bob-token": {Username: "bob"}}
	w.rights = []string{"bob shop/orders"}
	return w
}

// logIn pastes a token, and gives the cookie.
func logIn(t *testing.T, address, token string) (answer, string) {
	t.Helper()
	got := ask(t, address, request{method: http.MethodPost, path: "/console/session", body: token,
		header: map[string]string{"Host": consoleHost, "Origin": "https://" + consoleHost}})
	cookie, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
	return got, cookie
}

func TestAPastedToken(t *testing.T) {
	w := withBob()
	var later atomic.Int64
	address := public(t, w, true, func(p *Public) {
		p.Now = func() time.Time { return now.Add(time.Duration(later.Load())) }
	})
	if got, cookie := logIn(t, address, "made-up"); got.status != http.StatusUnauthorized || cookie != "" ||
		!strings.Contains(got.refusal.Error, "does not know the bearer token") {
		t.Errorf("a token of nobody: %d %s %q", got.status, got.body, cookie)
	}
	if got, cookie := logIn(t, address, " \n"); got.status != http.StatusBadRequest || cookie != "" {
		t.Errorf("no token: %d %q", got.status, cookie)
	}
	got, cookie := logIn(t, address, "bob-token\n")
	name, key, _ := strings.Cut(cookie, "=")
	if got.status != http.StatusNoContent || name != "__Host-helenus" || len(key) < 26 ||
		got.header.Get("Set-Cookie") != cookie+"; Path=/; Max-Age=3600; HttpOnly; Secure; SameSite=Strict" {
		t.Fatalf("status %d, cookie %s", got.status, got.header.Get("Set-Cookie"))
	}
	see := func(path, cookie string) int {
		t.Helper()
		return ask(t, address, request{path: path, header: map[string]string{"Host": consoleHost, "Cookie": cookie}}).status
	}
	for name, c := range map[string]struct {
		path, cookie string
		status       int
	}{
		"the cluster":             {"", cookie, 200},
		"another cluster":         {inspectapi.Path("shop", "carts"), cookie, 403},
		"another namespace":       {inspectapi.Path("bank", "orders"), cookie, 403},
		"without the cookie":      {"", "", 401},
		"another cookie":          {"", cookie + "x", 401},
		"the token as the cookie": {"", "__Host-helenus=bob-token", 401},
	} {
		if status := see(c.path, c.cookie); status != c.status {
			t.Errorf("%s: status %d, want %d", name, status, c.status)
		}
	}
	later.Store(int64(time.Hour - time.Second))
	if status := see("", cookie); status != http.StatusOK {
		t.Errorf("before the hour is over: %d", status)
	}
	w.mutex.Lock()
	w.tokens = nil // it has expired
	w.mutex.Unlock()
	if status := see("", cookie); status != http.StatusUnauthorized {
		t.Errorf("with an expired token: %d", status)
	}
	w.mutex.Lock()
	w.tokens = withBob().tokens
	w.mutex.Unlock()
	later.Store(int64(time.Hour))
	if status := see("", cookie); status != http.StatusUnauthorized {
		t.Errorf("after an hour: %d", status)
	}
}

func TestFewSessions(t *testing.T) {
	after := time.Duration(0) // so that the limit of requests is not met
	leads := make(chan struct{})
	close(leads)
	p := &Public{Server: withBob().server(t), Hosts: []string{"console.example"}, Leads: leads}
	p.Now = func() time.Time { return now.Add(after) }
	handler := p.Handler()
	paste := func() int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/session",
			strings.NewReader("bob-token"))
		r.Host = consoleHost
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for range mostSessions {
		after += time.Second
		if status := paste(); status != http.StatusNoContent {
			t.Fatalf("status %d after %s", status, after)
		}
	}
	if status := paste(); status != http.StatusTooManyRequests {
		t.Errorf("one too many: %d", status)
	}
	after = sessionAge + time.Second // the first is over
	if status := paste(); status != http.StatusNoContent {
		t.Errorf("status %d, and one has ended", status)
	}
}

func TestWhatABrowserMayAsk(t *testing.T) {
	const bob = "Bearer bob-token"
	for name, c := range map[string]struct {
		request
		status int
	}{
		"by a proxy's token": {request{header: map[string]string{"Authorization": bob}}, 200},
		"under the other name, another port": {request{header: map[string]string{"Authorization": bob,
			"Host": "OTHER.example"}}, 200},
		"the page":                 {request{path: "/console/"}, 200},
		"the page, from the root":  {request{path: "/"}, 200},
		"a name that was rebound":  {request{path: "/console/", header: map[string]string{"Host": "evil.example"}}, 403},
		"the loopback address":     {request{path: "/console/", header: map[string]string{"Host": "127.0.0.1:8082"}}, 403},
		"a name within a name":     {request{path: "/console/", header: map[string]string{"Host": "console.example.evil"}}, 403},
		"a foreign page":           {request{header: map[string]string{"Authorization": bob, "Origin": "https://evil.example"}}, 403},
		"a page of another port":   {request{header: map[string]string{"Authorization": bob, "Origin": "https://console.example"}}, 403},
		"a page without TLS":       {request{header: map[string]string{"Authorization": bob, "Origin": "http://" + consoleHost}}, 403},
		"a foreign page's token":   {request{method: http.MethodPost, path: "/console/session", body: "bob-token", header: map[string]string{"Origin": "https://evil.example"}}, 403},
		"judging a spec":           {request{method: http.MethodPost, body: "{}", header: map[string]string{"Authorization": bob}}, 405},
		"a proxy's headers":        {request{header: map[string]string{"X-Remote-User": "bob"}}, 401},
		"impersonation":            {request{header: map[string]string{"Authorization": bob, "Impersonate-User": "anna"}}, 400},
		"nothing":                  {request{}, 401},
		"what is marked as passed": {request{header: map[string]string{"Authorization": bob, forwardedHeader: "1"}}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			q := c.request
			header := map[string]string{"Host": consoleHost}
			for name, value := range q.header {
				header[name] = value
			}
			q.header = header
			got := ask(t, public(t, withBob(), true, nil), q)
			if got.status != c.status || !strings.HasPrefix(got.header.Get("Content-Security-Policy"), "default-src 'none'; ") {
				t.Errorf("status %d (%s), want %d", got.status, got.body, c.status)
			}
			if asks := got.header.Get("WWW-Authenticate") != ""; asks != (c.status == http.StatusUnauthorized) {
				t.Errorf("asks for a token: %t", asks)
			}
		})
	}
}

// A replica that does not lead passes on to the one that does, to nobody else, and not twice.
func TestPassingOn(t *testing.T) {
	w := withBob()
	var fingerprint string
	leader := public(t, w, true, func(p *Public) { fingerprint = inspectapi.Fingerprint(p.Certificate.Certificate[0]) })
	of := func(fingerprint, address string) func(*Public) {
		return func(p *Public) {
			p.Leader = func(context.Context) (Leader, error) {
				return Leader{strings.TrimPrefix(address, "https://"), fingerprint}, nil
			}
		}
	}
	second := public(t, w, false, of(fingerprint, leader))
	if got := ask(t, second, request{header: map[string]string{"Host": consoleHost, "Authorization": "Bearer bob-token"}}); got.status !=
		http.StatusOK || len(got.header.Values("Content-Security-Policy")) != 1 {
		t.Errorf("status %d (%s), %v", got.status, got.body, got.header)
	}
	if got, cookie := logIn(t, second, "bob-token"); got.status != http.StatusNoContent || cookie == "" {
		t.Errorf("a token: %d %s", got.status, got.body)
	}
	if got := ask(t, second, request{path: "/console/", header: map[string]string{"Host": "evil.example"}}); got.status != http.StatusForbidden {
		t.Errorf("a name that was rebound: %d", got.status)
	}
	seen := len(w.inspected)
	for name, c := range map[string]struct {
		change func(*Public)
		status int
	}{
		"an impostor":              {of("another", leader), http.StatusBadGateway},
		"one that does not lead":   {of(fingerprint, public(t, w, false, func(p *Public) { fingerprint = inspectapi.Fingerprint(p.Certificate.Certificate[0]) })), http.StatusMisdirectedRequest},
		"nobody leads":             {nil, http.StatusMisdirectedRequest},
		"one that does not listen": {of(fingerprint, "127.0.0.1:1"), http.StatusBadGateway},
	} {
		got := ask(t, public(t, w, false, c.change), request{header: map[string]string{"Host": consoleHost,
			"Authorization": "Bearer bob-token"}})
		if got.status != c.status || len(w.inspected) != seen {
			t.Errorf("%s: status %d (%s), want %d", name, got.status, got.body, c.status)
		}
	}
}

// A stream goes through a replica that does not lead, as it comes, and ends with the session.
func TestStreamsOfBrowsers(t *testing.T) {
	w := withBob()
	var leads Leader
	var later atomic.Int64
	leader := public(t, w, true, func(p *Public) {
		leads.Fingerprint = inspectapi.Fingerprint(p.Certificate.Certificate[0])
		p.Now = func() time.Time { return now.Add(time.Duration(later.Load())) }
	})
	leads.Address = strings.TrimPrefix(leader, "https://")
	second := public(t, w, false, func(p *Public) {
		p.Leader = func(context.Context) (Leader, error) { return leads, nil }
	})
	_, cookie := logIn(t, second, "bob-token")
	later.Store(int64(time.Hour - 500*time.Millisecond))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, second+watchOrders, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = consoleHost
	r.Header.Set("Cookie", cookie)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	want(t, eventsOf(response.Body), `view {"cluster":"orders"}`, "beat 2026-03-01T12:00:00Z", "")
}
