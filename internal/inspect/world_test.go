package inspect

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/status"
	"helenus.io/helenus/internal/inspectapi"
)

// world is an API server that knows some people and their rights, and an operator that knows some
// clusters.
type world struct {
	// authorities is what the API server publishes; nil if it publishes nothing.
	authorities []byte
	// tokens by their text.
	tokens map[string]authenticationv1.UserInfo
	// rights are "user namespace/name", or "group:name namespace/name".
	// Those to update end with " update".
	rights []string
	// judged is the spec that was asked about last.
	judged *v1alpha1.CassandraClusterSpec
	board  *Board
	// broken fails every review.
	broken bool
	// clusters and what the operator says of them; nil is an inspection.
	clusters map[types.NamespacedName]error

	mutex sync.Mutex
	// asked are the reviews of access.
	asked []authorizationv1.SubjectAccessReviewSpec
	// inspected are the clusters that were looked at.
	inspected []types.NamespacedName
	// hold keeps inspections from ending until it is closed, if it is not nil; entered gets one
	// value for each that began.
	hold    chan struct{}
	entered chan struct{}
}

var orders = types.NamespacedName{Namespace: "shop", Name: "orders"}

func newWorld() *world {
	return &world{clusters: map[types.NamespacedName]error{orders: nil}, board: &Board{}}
}

func (w *world) create(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.broken {
		return errors.New("the API server is down")
	}
	switch review := object.(type) {
	case *authenticationv1.TokenReview:
		user, known := w.tokens[review.Spec.Token]
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: known, User: user}
	case *authorizationv1.SubjectAccessReview:
		w.asked = append(w.asked, review.Spec)
		on := " " + review.Spec.ResourceAttributes.Namespace + "/" + review.Spec.ResourceAttributes.Name
		if verb := review.Spec.ResourceAttributes.Verb; verb != "get" {
			on += " " + verb
		}
		review.Status.Allowed = slices.Contains(w.rights, review.Spec.User+on) ||
			slices.ContainsFunc(review.Spec.Groups, func(g string) bool {
				return slices.Contains(w.rights, "group:"+g+on)
			})
	default:
		return errors.New("only reviews may be created")
	}
	return nil
}

func (w *world) inspect(_ context.Context, key types.NamespacedName,
	spec *v1alpha1.CassandraClusterSpec) (*inspectapi.Inspection, error) {
	w.mutex.Lock()
	w.judged = spec
	w.inspected = append(w.inspected, key)
	w.mutex.Unlock()
	if w.hold != nil {
		w.entered <- struct{}{}
		<-w.hold
	}
	err, known := w.clusters[key]
	switch {
	case !known:
		return nil, ErrNoCluster
	case err != nil:
		return nil, err
	}
	return &inspectapi.Inspection{Snapshot: inspectapi.Snapshot{Namespace: key.Namespace, Cluster: key.Name}}, nil
}

// fleet has three namespaces of ten clusters each.
func (w *world) fleet(_ context.Context, namespace string) ([]inspectapi.Brief, error) {
	var out []inspectapi.Brief
	for i := range 30 {
		if of := fmt.Sprintf("n%d", i/10); namespace == "" || namespace == of {
			out = append(out, inspectapi.Brief{Namespace: of, Cluster: fmt.Sprintf("c%d", i%10)})
		}
	}
	return out, nil
}

func refuseWrite(what string) error { return errors.New("the endpoint wrote: " + what) }

// server is the endpoint in this world.
func (w *world) server(t *testing.T) *Server {
	t.Helper()
	build := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	if w.authorities != nil {
		build = build.WithObjects(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
			Data:       map[string]string{"client-ca-file": string(w.authorities)},
		})
	}
	c := build.WithInterceptorFuncs(interceptor.Funcs{
		Create: w.create,
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return refuseWrite("update")
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refuseWrite("patch")
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return refuseWrite("delete")
		},
	}).Build()
	return &Server{
		Reviews: Reviews{Live: c, Client: c},
		Inspect: w.inspect,
		Board:   w.board,
		Replicas: func(_ context.Context, _ types.NamespacedName, keyspace string, token *ring.Token) (*status.Replicas, error) {
			switch {
			case keyspace != "shop":
				return nil, fmt.Errorf("%w: %q", status.ErrNoKeyspace, keyspace)
			case token == nil:
				return nil, fmt.Errorf("%w: no node can say", ErrNotNow)
			}
			return &status.Replicas{Keyspace: keyspace, Token: token.String()}, nil
		},
		Look: func(ctx context.Context, key types.NamespacedName) error {
			_, err := w.inspect(ctx, key, nil)
			w.board.Put(key, []byte(`{"cluster":"`+key.Name+`"}`), now)
			return err
		},
		Fleet: w.fleet,
		Now:   func() time.Time { return now },
		Log:   testr.New(t),
	}
}

// serve serves the endpoint over TLS as the operator does, and gives its address.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	certificate, err := NewCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s.Handler())
	server.TLS = serverConfig(certificate)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// request is one question.
type request struct {
	method      string // GET if empty
	path        string // that of orders if empty
	certificate *tls.Certificate
	header      map[string]string
	body        string
}

func bearerOf(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

// answer is what came back.
type answer struct {
	status  int
	header  http.Header
	refusal inspectapi.Refusal
	body    []byte
}

func ask(t *testing.T, address string, q request) answer {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // as the plugin does
	if q.certificate != nil {
		config.Certificates = []tls.Certificate{*q.certificate}
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	if q.method == "" {
		q.method = http.MethodGet
	}
	if q.path == "" {
		q.path = inspectapi.Path(orders.Namespace, orders.Name)
	}
	r, err := http.NewRequestWithContext(t.Context(), q.method, address+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	if host := q.header["Host"]; host != "" {
		r.Host = host
	}
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: response.StatusCode, header: response.Header, body: body}
	if a.status != http.StatusOK {
		_ = json.Unmarshal(body, &a.refusal) // net/http's own refusals are text
	}
	return a
}
