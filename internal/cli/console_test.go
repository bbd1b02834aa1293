package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"helenus.io/helenus/internal/inspectapi"
)

// beyond answers for the operator, and keeps what it was asked with.
type beyond struct{ asked []*http.Request }

func (b *beyond) RoundTrip(q *http.Request) (*http.Response, error) {
	b.asked = append(b.asked, q)
	header := http.Header{}
	inspectapi.Secure(header)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("from the operator")),
		Header: header}, nil
}

func TestTheDoorOfTheConsole(t *testing.T) {
	const clusters = inspectapi.FleetPath
	bearer := func(with string) map[string]string { return map[string]string{"Authorization": with} }
	for name, c := range map[string]struct {
		method, path, body string
		header             map[string]string
		status             int
		passed             bool
	}{
		"the page needs no key":    {path: "/console/console.js", status: 200, passed: true},
		"a question does":          {path: clusters, status: 401},
		"another key":              {path: clusters, header: bearer("Bearer x"), status: 401},
		"the key of the address":   {path: clusters, header: bearer("Bearer ONCE"), status: 401},
		"the session":              {path: clusters, header: bearer("Bearer SESSION"), status: 200, passed: true},
		"a foreign page":           {path: clusters, header: map[string]string{"Authorization": "Bearer SESSION", "Origin": "http://evil.example"}, status: 403},
		"a name that was rebound":  {path: clusters, header: map[string]string{"Authorization": "Bearer SESSION", "Host": "evil.example:7"}, status: 403},
		"localhost is another":     {path: "/console/", header: map[string]string{"Host": "localhost:7"}, status: 403},
		"judging a spec":           {method: "POST", path: inspectapi.Path("shop", "orders"), header: bearer("Bearer SESSION"), status: 404},
		"another path":             {path: "/metrics", header: bearer("Bearer SESSION"), status: 404},
		"another path in disguise": {path: "/v1/../metrics", header: bearer("Bearer SESSION"), status: 404},
		"the key":                  {method: "POST", path: "/console/session", body: "ONCE", status: 200},
		"a wrong key":              {method: "POST", path: "/console/session", body: "TWICE", status: 401},
		"a foreign page's key":     {method: "POST", path: "/console/session", body: "ONCE", header: map[string]string{"Origin": "null"}, status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			to := &beyond{}
			d := newDoor("127.0.0.1:7", to)
			d.once, d.session = "ONCE", "SESSION"
			ask := func() *httptest.ResponseRecorder {
				q := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
				q.Host = "127.0.0.1:7"
				q.Header.Set("Cookie", "a=b")
				q.Header.Set("Impersonate-User", "anna")
				for name, value := range c.header {
					q.Header.Set(name, value)
				}
				if host := c.header["Host"]; host != "" {
					q.Host = host
				}
				w := httptest.NewRecorder()
				d.ServeHTTP(w, q)
				return w
			}
			w := ask()
			if w.Code != c.status || (len(to.asked) > 0) != c.passed ||
				strings.Join(w.Header().Values("X-Content-Type-Options"), " ") != "nosniff" {
				t.Fatalf("status %d (%s), passed on %v", w.Code, w.Body, to.asked)
			}
			for _, q := range to.asked {
				if len(q.Header) > 2 || q.Header.Get("Authorization")+q.Header.Get("Cookie") != "" || q.URL.Path != c.path {
					t.Errorf("passed on %s with %v", q.URL, q.Header)
				}
			}
			if strings.HasSuffix(c.path, "session") && w.Code == http.StatusOK {
				if again := ask(); w.Body.String() != "SESSION" || again.Code != http.StatusUnauthorized {
					t.Errorf("gave %s, and then %d", w.Body, again.Code)
				}
			}
		})
	}
}

// The tunnel is kept from one question to the next, and opened anew when it has failed.
func TestTheConsoleReachesTheLeader(t *testing.T) {
	to := newReplica(t, reply{status: 200})
	a := &apiServer{replicas: map[string]*replica{"helenus-b": to}, mayForward: true}
	r := &reach{settings: newDesk().settings, connection: through(t, a, nil)}
	ask := func() error {
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://operator"+inspectapi.FleetPath,
			http.NoBody)
		q.RequestURI = ""
		answer, err := r.RoundTrip(q)
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		return err
	}
	for range 2 {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.forwards) != 1 || strings.Join(to.tokens, " ") != "Bearer secret Bearer secret" {
		t.Errorf("forwards %v, tokens %v", a.forwards, to.tokens)
	}
	r.tunnel.close()
	r.tunnel.ended <- <-r.tunnel.ended // it has ended now
	r.client.CloseIdleConnections()
	if err := ask(); err == nil {
		t.Error("a tunnel that has ended answers")
	}
	if err := ask(); err != nil || len(a.forwards) != 2 {
		t.Errorf("after that: %v, forwards %v", err, a.forwards)
	}
}

func TestNoConsoleAsSomebodyElse(t *testing.T) {
	d, c := newDesk(), through(t, &apiServer{}, nil)
	c.config.Impersonate.UserName = "anna"
	if err := d.console(t.Context(), c, "", 0); err == nil || !strings.Contains(err.Error(), "without --as") {
		t.Errorf("got %v", err)
	}
}
