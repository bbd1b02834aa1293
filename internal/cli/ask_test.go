package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/inspectapi"
)

// replica is one operator: it answers over TLS, and remembers what it was asked.
type replica struct {
	server *httptest.Server
	// answers in order; the last one is given again.
	answers []reply

	mutex  sync.Mutex
	tokens []string
	people []string
	paths  []string
}

type reply struct {
	status  int
	refusal inspectapi.Refusal
	stalled *plan.Stall
	// body is given in place of an inspection, if there is one.
	body any
}

func newReplica(t *testing.T, answers ...reply) *replica {
	t.Helper()
	r := &replica{answers: answers}
	r.server = httptest.NewUnstartedServer(r)
	r.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that go away are what is tested
	r.server.StartTLS()
	t.Cleanup(r.server.Close)
	return r
}

func (r *replica) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.tokens = append(r.tokens, q.Header.Get("Authorization"))
	r.paths = append(r.paths, q.URL.RequestURI())
	if chain := q.TLS.PeerCertificates; len(chain) > 0 {
		r.people = append(r.people, chain[0].Subject.CommonName)
	}
	a := r.answers[0]
	if len(r.answers) > 1 {
		r.answers = r.answers[1:]
	}
	w.WriteHeader(a.status)
	if a.body != nil {
		_ = json.NewEncoder(w).Encode(a.body)
		return
	}
	if a.status == http.StatusOK {
		_ = json.NewEncoder(w).Encode(inspectapi.Inspection{Operator: inspectapi.Operator{Pod: "the one"},
			Plan: inspectapi.Plan{Stalled: a.stalled}})
		return
	}
	_ = json.NewEncoder(w).Encode(a.refusal)
}

// apiServer forwards ports to replicas by the name of their pod, as the API server and a kubelet
// do, over SPDY: WebSocket it does not know.
type apiServer struct {
	replicas map[string]*replica
	// mayForward is false for a user without the right.
	mayForward bool
	mutex      sync.Mutex
	forwards   []string
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if !strings.EqualFold(q.Header.Get("Upgrade"), spdy.HeaderSpdy31) {
		http.Error(w, "only SPDY here", http.StatusBadRequest)
		return
	}
	pod, found := strings.CutPrefix(strings.TrimSuffix(q.URL.Path, "/portforward"),
		"/api/v1/namespaces/helenus-system/pods/")
	if !found {
		http.NotFound(w, q)
		return
	}
	a.mutex.Lock()
	a.forwards = append(a.forwards, pod)
	a.mutex.Unlock()
	if !a.mayForward {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(apierrors.NewForbidden(corev1.Resource("pods"), pod, nil).Status())
		return
	}
	if _, err := httpstream.Handshake(q, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 2)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, q, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }()
	said, data := <-streams, <-streams
	if said.Headers().Get(corev1.StreamType) != corev1.StreamTypeError ||
		data.Headers().Get(corev1.PortHeader) != "8082" {
		_, _ = io.WriteString(said, "streams are not as they should be")
		return
	}
	a.carry(pod, said, data)
	<-connection.CloseChan() // as a kubelet, which leaves the end to the client
}

// carry carries the bytes between a stream and a replica.
func (a *apiServer) carry(pod string, said, data httpstream.Stream) {
	defer func() { _, _ = said.Close(), data.Close() }()
	to := a.replicas[pod]
	if to == nil {
		_, _ = io.WriteString(said, "failed to connect to localhost:8082 inside namespace: connection refused")
		return
	}
	conn, err := net.Dial("tcp", to.server.Listener.Addr().String())
	if err != nil {
		_, _ = io.WriteString(said, err.Error())
		return
	}
	go func() {
		_, _ = io.Copy(conn, data)
		_ = conn.Close()
	}()
	_, _ = io.Copy(data, conn)
}

// through is a connection to an API server with pods of the operator, each with its replica. The
// leader is helenus-b.
func through(t *testing.T, a *apiServer, change func(*rest.Config)) *connection {
	t.Helper()
	server := httptest.NewUnstartedServer(a)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	lease := objectsIn(t, "testdata/status/healthy.yaml")[8]
	objects := []client.Object{cluster("shop", "orders"), lease}
	for name, r := range a.replicas {
		objects = append(objects, operatorPod(name, nil))
		if r != nil && name == "helenus-b" {
			lease.SetLabels(map[string]string{inspectapi.FingerprintLabel: inspectapi.Fingerprint(
				r.server.Certificate().Raw)})
		}
	}
	c := to(t, interceptor.Funcs{}, objects...)
	c.config = &rest.Config{
		Host:        server.URL,
		BearerToken: "secret",
		TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: server.Certificate().Raw})},
	}
	if change != nil {
		change(c.config)
	}
	return c
}

func TestAskTheLeader(t *testing.T) {
	ok := reply{status: 200}
	for name, c := range map[string]struct {
		replicas map[string][]reply // nil: the pod does not listen
		forbid   bool
		// forwards are the pods to which a port was forwarded.
		forwards string
		err      string
	}{
		"the one of the lease": {replicas: map[string][]reply{"helenus-a": {ok}, "helenus-b": {ok}},
			forwards: "helenus-b"},
		"nobody listens": {replicas: map[string][]reply{"helenus-b": nil}, forwards: "helenus-b",
			err: "connection refused"},
		"in a moment": {replicas: map[string][]reply{"helenus-b": {{status: 503,
			refusal: inspectapi.Refusal{Error: "ask again in a moment"}}, ok}}, forwards: "helenus-b helenus-b"},
		"may not forward": {replicas: map[string][]reply{"helenus-a": {ok}, "helenus-b": {ok}},
			forbid: true, forwards: "helenus-b", err: "--role=helenus-plan"},
		"may not see": {replicas: map[string][]reply{"helenus-b": {{status: 403,
			refusal: inspectapi.Refusal{Error: "user x may not"}}}}, forwards: "helenus-b",
			err: `it takes the right to get cassandraclusters in namespace "shop"`},
		"is not known": {replicas: map[string][]reply{"helenus-b": {{status: 401,
			refusal: inspectapi.Refusal{Error: "not authenticated"}}}}, forwards: "helenus-b",
			err: "the operator does not accept how you log in"},
		"is not watched": {replicas: map[string][]reply{"helenus-b": {{status: 404,
			refusal: inspectapi.Refusal{Error: "no such"}}}}, forwards: "helenus-b", err: `does not watch namespace "shop"`},
		"an operator that is broken": {replicas: map[string][]reply{"helenus-b": {{status: 500,
			refusal: inspectapi.Refusal{Error: "inspect: list pods"}}}}, forwards: "helenus-b",
			err: "operator helenus-b refuses (500): inspect: list pods"},
		"one that says nothing in words": {replicas: map[string][]reply{"helenus-b": {{status: 500}}},
			forwards: "helenus-b", err: "(500): 500 Internal Server Error"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &apiServer{replicas: map[string]*replica{}, mayForward: !c.forbid}
			for pod, answers := range c.replicas {
				a.replicas[pod] = nil
				if answers != nil {
					a.replicas[pod] = newReplica(t, answers...)
				}
			}
			d := newDesk()
			got, err := d.ask(t.Context(), through(t, a, nil), "orders", nil)
			if c.err == "" && (err != nil || got.Operator.Pod != "the one") ||
				c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %+v, %v, want error %q", got, err, c.err)
			}
			if forwards := strings.Join(a.forwards, " "); forwards != c.forwards {
				t.Errorf("asked %s, want %s", forwards, c.forwards)
			}
			for pod, r := range a.replicas {
				if r == nil {
					continue
				}
				for i := range r.paths {
					if r.paths[i] != "/v1/namespaces/shop/clusters/orders" || r.tokens[i] != "Bearer secret" {
						t.Errorf("%s was asked %s with %q", pod, r.paths[i], r.tokens[i])
					}
				}
			}
		})
	}
}

// The exit code tells a user, before they apply a spec, that the operator would refuse it.
func TestAPlanOfASpecThatIsRefusedIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		stalled *plan.Stall
		from    string
		err     string
	}{
		"accepted": {nil, "-", ""},
		"refused": {&plan.Stall{Reason: "InvalidSpec", Message: "node.jvm: no"}, "-",
			"the operator would refuse the spec of -: InvalidSpec: node.jvm: no"},
		"what the cluster has is refused": {&plan.Stall{Reason: "InvalidSpec"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &apiServer{mayForward: true,
				replicas: map[string]*replica{"helenus-b": newReplica(t, reply{status: 200, stalled: c.stalled})}}
			d := newDesk()
			d.streams.In = strings.NewReader(ordersText)
			format, err := planPrinter(planOptions{from: c.from})
			if err != nil {
				t.Fatal(err)
			}
			err = d.plan(t.Context(), through(t, a, nil), "orders", c.from, format)
			if got := fmt.Sprint(err); c.err == "" && err != nil || c.err != "" && got != c.err {
				t.Errorf("got %v, want %q", err, c.err)
			}
			if !strings.Contains(d.out.String(), "the one") {
				t.Errorf("printed:\n%s", &d.out)
			}
		})
	}
}

func TestAskWithCertificate(t *testing.T) {
	r := newReplica(t, reply{status: 200})
	a := &apiServer{replicas: map[string]*replica{"helenus-b": r}, mayForward: true}
	c := through(t, a, func(config *rest.Config) {
		config.BearerToken = ""
		config.CertData, config.KeyData = clientCertificate(t, "anna")
	})
	if _, err := newDesk().ask(t.Context(), c, "orders", nil); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintf("%q %q", r.people, r.tokens) != `["anna"] [""]` {
		t.Errorf("the operator was shown %v and %v", r.people, r.tokens)
	}
}

func TestAskAsSomebodyElse(t *testing.T) {
	a := &apiServer{replicas: map[string]*replica{"helenus-b": newReplica(t, reply{status: 200})}, mayForward: true}
	c := through(t, a, func(config *rest.Config) { config.Impersonate.UserName = "anna" })
	if _, err := newDesk().ask(t.Context(), c, "orders", nil); err == nil || !strings.Contains(err.Error(), "without --as") {
		t.Errorf("got %v", err)
	}
	if len(a.forwards) > 0 {
		t.Error("a port was forwarded for nothing")
	}
}

// One who answers in the operator's place, with another certificate, learns neither token nor name.
func TestAskVerifiesTheOperator(t *testing.T) {
	r := newReplica(t, reply{status: 200})
	a := &apiServer{replicas: map[string]*replica{"helenus-b": r}, mayForward: true}
	c := through(t, a, func(config *rest.Config) { config.CertData, config.KeyData = clientCertificate(t, "anna") })
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: "helenus-system", Name: inspectapi.LeaseName}
	if err := c.client.Get(t.Context(), key, lease); err != nil {
		t.Fatal(err)
	}
	lease.Labels[inspectapi.FingerprintLabel] = inspectapi.Fingerprint([]byte("that of the operator"))
	if err := c.client.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if _, err := newDesk().ask(t.Context(), c, "orders", nil); err == nil ||
		!strings.Contains(err.Error(), "nothing was sent to it") {
		t.Errorf("got %v", err)
	}
	if len(a.forwards) != 1 || len(r.paths)+len(r.tokens)+len(r.people) > 0 {
		t.Errorf("an impostor was shown %q %q %q through %v", r.paths, r.tokens, r.people, a.forwards)
	}
}

// Nor does it go to an API server that cannot be verified.
func TestTunnelVerifiesTheServer(t *testing.T) {
	r := newReplica(t, reply{status: 200})
	a := &apiServer{replicas: map[string]*replica{"helenus-b": r}, mayForward: true}
	authority, _ := clientCertificate(t, "another authority")
	c := through(t, a, func(config *rest.Config) { config.CAData = authority })
	if _, err := newDesk().ask(t.Context(), c, "orders", nil); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
	if len(r.tokens) > 0 || len(a.forwards) > 0 {
		t.Error("something was sent to a server that is not known")
	}
}

func clientCertificate(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
