package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/metrics"
	"helenus.io/helenus/internal/pki"
)

const (
	uid  = types.UID("5f7e0d1c-0000-4000-8000-000000000001")
	node = "orders-dc1-r1-0"
)

// source is an agent that answers what it is told to.
type source struct {
	mu      sync.Mutex
	answer  *facts.Agent
	fresh   int
	changed chan struct{}
	asked   []string
}

func newSource() *source {
	return &source{answer: &facts.Agent{ClusterUID: uid, Node: node, Phase: "Waiting"}, changed: make(chan struct{})}
}

func (s *source) Fresh(context.Context) (*facts.Agent, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh++
	return s.answer, agentapi.Digest(s.answer)
}

func (s *source) Wait(ctx context.Context, digest string) (*facts.Agent, string) {
	for {
		s.mu.Lock()
		answer, changed := s.answer, s.changed
		s.mu.Unlock()
		if now := agentapi.Digest(answer); now != digest {
			return answer, now
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return answer, digest
		}
	}
}

func (s *source) Identity(address, hostID string) facts.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, address+" "+hostID)
	return facts.Peer{ClusterUID: uid, Node: node}
}

func (s *source) set(answer facts.Agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = &answer
	close(s.changed)
	s.changed = make(chan struct{})
}

// rig is a served agent and authorities.
type rig struct {
	source     *source
	address    string
	own, other *pki.Authority
	bundles    []byte // both
	ownBundle  []byte
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{source: newSource()}
	authority := func() (*pki.Authority, []byte) {
		pair, err := pki.NewAuthority("orders", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		a, err := pki.ParseAuthority(pair)
		if err != nil {
			t.Fatal(err)
		}
		return a, pair.Certificate
	}
	var otherBundle []byte
	r.own, r.ownBundle = authority()
	r.other, otherBundle = authority()
	r.bundles = append(append([]byte{}, r.ownBundle...), otherBundle...)
	server := r.material(t, r.own, pki.NodeOf(uid, node), time.Now(), r.ownBundle)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Facts(ctx, listener, r.source, func() (*pki.Material, error) { return server, nil }, time.Now)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("server ended with %v", err)
		}
	})
	return r
}

func (r *rig) material(t *testing.T, a *pki.Authority, id pki.Identity, at time.Time, bundle []byte) *pki.Material {
	t.Helper()
	leaf, err := a.Issue(id, at)
	if err != nil {
		t.Fatal(err)
	}
	m, err := pki.NewMaterial(leaf, bundle)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (r *rig) client(m *pki.Material, want pki.Identity) *agentapi.Client {
	return agentapi.NewClient(func() (*pki.Material, error) { return m, nil }, want, r.address, time.Now)
}

func TestWhoGetsFacts(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	for name, c := range map[string]struct {
		material *pki.Material
		want     pki.Identity
		ok       bool
	}{
		"operator": {r.material(t, r.own, pki.OperatorOf(uid), now, r.bundles), pki.NodeOf(uid, node),
			true},
		"peer": {r.material(t, r.own, pki.NodeOf(uid, "orders-dc1-r2-0"), now, r.bundles),
			pki.NodeOf(uid, node), true},
		"stranger": {r.material(t, r.other, pki.OperatorOf(uid), now, r.bundles), pki.NodeOf(uid, node),
			false},
		"other cluster": {r.material(t, r.own, pki.OperatorOf("other"), now, r.bundles), pki.NodeOf(uid, node),
			false},
		"expired": {r.material(t, r.own, pki.OperatorOf(uid), now.Add(-2*pki.LeafLifetime), r.bundles),
			pki.NodeOf(uid, node), false},
		"asks for another node": {r.material(t, r.own, pki.OperatorOf(uid), now, r.bundles),
			pki.NodeOf(uid, "orders-dc1-r2-0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			client := r.client(c.material, c.want)
			defer client.Close()
			answer, err := client.Facts(t.Context())
			if (err == nil) != c.ok {
				t.Errorf("facts: %v, want ok=%v", err, c.ok)
			}
			if err == nil && answer.Node != node {
				t.Errorf("answer of %s", answer.Node)
			}
			if err != nil && !errors.Is(err, agentapi.ErrUnreachable) {
				t.Errorf("error %v, want %v", err, agentapi.ErrUnreachable)
			}
		})
	}
	t.Run("no certificate", func(t *testing.T) {
		plain := &http.Client{
			Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		} //nolint:gosec // the server is what is tested
		response, err := plain.Get("https://" + r.address + agentapi.PathFacts)
		if err == nil {
			_ = response.Body.Close()
			t.Error("got an answer")
		}
	})
	t.Run("no TLS", func(t *testing.T) {
		response, err := http.Get("http://" + r.address + agentapi.PathFacts)
		if err == nil {
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode == http.StatusOK {
				t.Error("got an answer")
			}
		}
	})
}

func TestFactsByDigest(t *testing.T) {
	r := newRig(t)
	client := r.client(r.material(t, r.own, pki.OperatorOf(uid), time.Now(), r.ownBundle), pki.NodeOf(uid, node))
	defer client.Close()
	sent := time.Now()
	first, err := client.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c := first.Clock; c == nil || c.Asked.Before(sent) || c.Answered.Before(c.Asked) || time.Now().Before(c.Answered) {
		t.Errorf("sent at %s, and the clock shows %+v", sent, c)
	}
	if r.source.fresh != 1 {
		t.Errorf("looked %d times, want once", r.source.fresh)
	}
	again, err := client.WaitFacts(t.Context(), agentapi.Digest(first), 10*time.Millisecond)
	if err != nil || again.Phase != first.Phase {
		t.Errorf("unchanged: %v, %v", again, err)
	}
	type reply struct {
		answer *facts.Agent
		err    error
	}
	waiting := make(chan reply, 1)
	go func() {
		answer, err := client.WaitFacts(context.Background(), agentapi.Digest(first), time.Minute)
		waiting <- reply{answer, err}
	}()
	r.source.set(facts.Agent{ClusterUID: uid, Node: node, Phase: "Normal"})
	if got := <-waiting; got.err != nil || got.answer.Phase != "Normal" {
		t.Errorf("after a change: %+v, %v", got.answer, got.err)
	}
	if r.source.fresh != 1 {
		t.Error("a question by digest must not look at the ring")
	}
}

func TestDigestIgnoresTimeAndLoad(t *testing.T) {
	answer := &facts.Agent{Node: node, Ring: &facts.Ring{Endpoints: []facts.Endpoint{{Address: "10.0.0.1", Load: 1}}}}
	digest := agentapi.Digest(answer)
	later := *answer
	later.ObservedAt, later.Clock = time.Now(), &facts.Clock{Asked: time.Now()}
	later.Ring = &facts.Ring{Endpoints: []facts.Endpoint{{Address: "10.0.0.1", Load: 2}}}
	if agentapi.Digest(&later) != digest {
		t.Error("time or load changed the digest")
	}
	if answer.Ring.Endpoints[0].Load != 1 {
		t.Error("the digest changed the answer")
	}
	later.Ring = &facts.Ring{Endpoints: []facts.Endpoint{{Address: "10.0.0.1", Live: true}}}
	if agentapi.Digest(&later) == digest {
		t.Error("another ring has the same digest")
	}
}

func TestFactsHandler(t *testing.T) {
	s := newSource()
	handler := FactsHandler(s)
	ask := func(method, target string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, target, nil))
		return w
	}
	for target, want := range map[string]int{
		agentapi.PathFacts:                                   http.StatusOK,
		agentapi.PathFacts + "?digest=x&wait=1s":             http.StatusOK,
		agentapi.PathFacts + "?digest=x&wait=soon":           http.StatusBadRequest,
		agentapi.PathFacts + "?digest=x&wait=-1s":            http.StatusBadRequest,
		agentapi.PathIdentity + "?address=10.0.0.1&hostID=h": http.StatusOK,
		agentapi.PathIdentity + "?address=" + "nowhere":      http.StatusBadRequest,
		"/v1/other": http.StatusNotFound,
	} {
		if w := ask(http.MethodGet, target); w.Code != want {
			t.Errorf("%s: %d %s, want %d", target, w.Code, w.Body, want)
		}
	}
	if w := ask(http.MethodPost, agentapi.PathFacts); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	if w := ask(http.MethodGet, agentapi.PathFacts); w.Header().Get("ETag") != `"`+agentapi.Digest(s.answer)+`"` {
		t.Errorf("ETag %s", w.Header().Get("ETag"))
	}
	if len(s.asked) != 1 || s.asked[0] != "10.0.0.1 h" {
		t.Errorf("asked about %v", s.asked)
	}
	s.answer = nil
	w := httptest.NewRecorder()
	FactsHandler(empty{s}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, agentapi.PathFacts, nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("without an answer yet: %d", w.Code)
	}
}

// empty has decided nothing yet.
type empty struct{ *source }

func (empty) Fresh(context.Context) (*facts.Agent, string) { return nil, "" }

// idle opens connections that say nothing.
func idle(t *testing.T, address string, n int) []net.Conn {
	t.Helper()
	var out []net.Conn
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		out = append(out, c)
	}
	return out
}

// serving has a server listen until the test is over.
func serving(t *testing.T, serve func(context.Context, net.Listener) error) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("server ended with %v", err)
		}
	})
	return listener.Addr().String()
}

// Whoever holds connections and says nothing keeps nobody from an answer.
func TestIdleConnectionsHoldNobodyUp(t *testing.T) {
	jvm := pageOf(t, "cassandra_x 1\n")
	get := func(t *testing.T, url string) (code int, closed bool, text string) {
		t.Helper()
		response, err := (&http.Client{Timeout: time.Minute}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.Close, string(body)
	}
	t.Run("probes", func(t *testing.T) {
		address := serving(t, func(ctx context.Context, l net.Listener) error { return Probes(ctx, l, probes{true}) })
		idle(t, address, 300)
		if code, closed, _ := get(t, "http://"+address+"/ready"); code != http.StatusOK || !closed {
			t.Errorf("status %d, closed %v", code, closed)
		}
		if code, _, _ := get(t, "http://"+address+"/metrics"); code != http.StatusNotFound {
			t.Errorf("metrics: %d", code)
		}
	})
	t.Run("metrics", func(t *testing.T) {
		address := serving(t, func(ctx context.Context, l net.Listener) error {
			return Metrics(ctx, l, probes{true}, jvm)
		})
		idle(t, address, 300)
		_, _, text := get(t, "http://"+address+"/metrics")
		if !strings.HasSuffix(text, "helenus_agent_jvm_restarts_total 1\ncassandra_x 1\n") {
			t.Errorf("%q", text)
		}
		if code, _, _ := get(t, "http://"+address+"/ready"); code != http.StatusNotFound {
			t.Errorf("probes: %d", code)
		}
	})
	t.Run("facts", func(t *testing.T) {
		r := newRig(t)
		client := r.client(r.material(t, r.own, pki.OperatorOf(uid), time.Now(), r.bundles), pki.NodeOf(uid, node))
		defer client.Close()
		idle(t, r.address, 300)
		if _, err := client.Facts(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAConnectionMoreTakesThePlaceOfTheOldestOfWhoeverHasMost(t *testing.T) {
	p := newPool(2, 3)
	enter := func(source string) *pooled {
		one, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		c := &pooled{Conn: one, source: source}
		c.enter(p)
		return c
	}
	a1, a2, b1 := enter("a"), enter("a"), enter("b")
	a3 := enter("a") // a has two
	c1 := enter("c") // there are three
	for name, c := range map[string]struct {
		conn   *pooled
		closed bool
	}{"a1": {a1, true}, "a2": {a2, true}, "a3": {a3, false}, "b1": {b1, false}, "c1": {c1, false}} {
		if c.conn.closed != c.closed {
			t.Errorf("%s is closed: %v", name, c.conn.closed)
		}
	}
	for _, c := range []*pooled{a1, a3, b1, b1, c1} {
		_ = c.Close() // twice is once
	}
	if p.count != 0 || len(p.open) != 0 {
		t.Errorf("%d are left, %v", p.count, p.open)
	}
}

func TestMetricsText(t *testing.T) {
	var out strings.Builder
	writeMetrics(&out, append(PhaseMetrics("Normal", []v1alpha1.NodePhase{"Normal", "Failed"}),
		metrics.Sample{
			Family: &metrics.Family{Name: "a_total", Help: "First by name.", Type: "counter", Labels: []string{"x"}},
			Value:  3, Values: []string{"a\"b\n\\"}}), false)
	want := `# HELP a_total First by name.
# TYPE a_total counter
a_total{x="a\"b\n\\"} 3
# HELP helenus_agent_phase Phase of the node: 1 for the present one.
# TYPE helenus_agent_phase gauge
helenus_agent_phase{phase="Normal"} 1
helenus_agent_phase{phase="Failed"} 0
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if Age(metrics.AgentJVMSilence, time.Time{}, time.Now()) != nil {
		t.Error("a thing that never was has an age")
	}
}

type probes struct{ ok bool }

func (p probes) Started() bool         { return p.ok }
func (p probes) Live() (bool, string)  { return p.ok, "live" }
func (p probes) Ready() (bool, string) { return p.ok, "ready" }
func (p probes) Metrics() []metrics.Sample {
	return []metrics.Sample{{Family: metrics.AgentRestarts, Value: 1}}
}
func (p probes) Choice() v1alpha1.Metrics {
	return v1alpha1.Metrics{Tables: &v1alpha1.TableMetrics{Limit: 7, Include: []v1alpha1.TablePattern{"shop.*", "a.b"}},
		Extra: []v1alpha1.MetricPattern{"org.apache.cassandra.metrics.Index.*"}}
}

func TestProbes(t *testing.T) {
	for _, ok := range []bool{true, false} {
		for _, path := range []string{"/startup", "/live", "/ready"} {
			w := httptest.NewRecorder()
			ProbesHandler(probes{ok}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			text, _ := io.ReadAll(w.Body)
			if (w.Code == http.StatusOK) != ok || len(text) < 2 {
				t.Errorf("%s with ok=%v: %d %q", path, ok, w.Code, text)
			}
		}
	}
}
