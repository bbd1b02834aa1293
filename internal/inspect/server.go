package inspect

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/console"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/status"
	"helenus.io/helenus/internal/inspectapi"
)

const (
	// atOnce bounds the requests in work, and perSecond with burst those that are begun at all:
	// people ask, not programs. What is above is told to come again, so that nobody can make the
	// operator ask the API server, or look at clusters, instead of doing its work.
	atOnce    = 4
	perSecond = 5
	burst     = 20
	// patience bounds one request, the wait for a pass of the same cluster included.
	patience = 15 * time.Second
	// maxHeaderBytes holds the tokens of those who are in hundreds of groups.
	maxHeaderBytes = 128 << 10
	// maxSpecBytes is what the API server keeps at most of an object, and mostNodes what its rules
	// let a cluster have.
	maxSpecBytes = 3 << 19
	mostNodes    = 1000
	goodbye      = 5 * time.Second
)

// ErrNoCluster means that there is no such cluster, or none that this operator watches.
var ErrNoCluster = errors.New("no such CassandraCluster")

// ErrNotNow means that the same question has an answer in a moment. What it wraps says why.
var ErrNotNow = errors.New("ask again in a moment")

// Server answers who asks for the plan of a cluster.
type Server struct {
	// Address to listen on. It is meant to be a loopback address: those who may forward a port
	// reach it, and nobody else even sees it.
	Address string
	// Reviews says who somebody is and what they may do.
	Reviews Reviews
	// Certificate to serve with, whose fingerprint those who ask know.
	Certificate tls.Certificate
	// Inspect observes a cluster and decides, and writes nothing.
	// With a spec it decides as if the cluster had that.
	Inspect func(ctx context.Context, cluster types.NamespacedName,
		spec *v1alpha1.CassandraClusterSpec) (*inspectapi.Inspection, error)
	// Replicas says who holds a keyspace, or a key of it by its token, and writes nothing.
	Replicas func(ctx context.Context, cluster types.NamespacedName, keyspace string,
		token *ring.Token) (*status.Replicas, error)
	// Board has what those who watch clusters are shown. Look puts a view of a cluster that is
	// watched there, and writes nothing else.
	Board *Board
	Look  func(ctx context.Context, cluster types.NamespacedName) error
	// Fleet are the clusters of a namespace, or of all that are watched if it is empty.
	Fleet func(ctx context.Context, namespace string) ([]inspectapi.Brief, error)
	// Now is the clock.
	Now func() time.Time
	Log logr.Logger

	pace pace // of streams; the normal one if it is not set
}

// answerer answers a request that was let in.
type answerer func(context.Context, http.ResponseWriter, *http.Request)

// gate lets a request in if there are few.
type gate func(http.ResponseWriter, *http.Request, answerer)

// Start serves until the context ends. The manager calls it when this replica leads: nobody else
// can answer.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen for requests for plans: %w", err)
	}
	return s.serve(ctx, tls.NewListener(listener, serverConfig(s.Certificate)), s.Handler())
}

// serverConfig asks for a client certificate and takes any: it is verified when the request is
// there, so that one who is refused learns why.
func serverConfig(certificate tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{certificate},
		ClientAuth:             tls.RequestClientCert,
		SessionTicketsDisabled: true,
		NextProtos:             []string{"http/1.1"},
	}
}

func (s *Server) serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // which ends streams
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      2 * patience,
		IdleTimeout:       10 * time.Second,
		MaxHeaderBytes:    maxHeaderBytes,
		// Handshakes that fail are the business of those who fail at them.
		ErrorLog: stdlog.New(lines{s.Log.V(1)}, "", 0),
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			_ = server.Close() // whoever still waits is cut off
		}
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve requests for plans: %w", err)
	}
	<-stopped
	return nil
}

// lines makes a log of what net/http says.
type lines struct{ log logr.Logger }

func (l lines) Write(p []byte) (int, error) {
	l.log.Info(strings.TrimSpace(string(p)))
	return len(p), nil
}

// Handler answers requests; Start serves it. The files of the console are no secret, and anybody
// who reaches this gets them.
func (s *Server) Handler() http.Handler {
	mux, _ := s.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inspectapi.Secure(w.Header())
		if err := inspectapi.CheckOrigin(r, "https", inspectapi.Loopback); err != nil {
			refuse(w, http.StatusForbidden, err.Error())
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// routes are what is answered, and what limits it: each way to reach it has its own limits, so that
// none can be kept busy by those who come by another.
func (s *Server) routes() (http.Handler, gate) {
	slots := make(chan struct{}, atOnce)
	limit := rate.NewLimiter(perSecond, burst)
	gate := func(w http.ResponseWriter, r *http.Request, answer answerer) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			busy(w)
			return
		}
		if !limit.AllowN(s.Now(), 1) {
			busy(w)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		answer(ctx, w, r)
	}
	gated := func(answer answerer) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { gate(w, r, answer) }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+inspectapi.PathPattern, gated(s.answer))
	mux.HandleFunc("POST "+inspectapi.PathPattern, gated(s.answer))
	mux.HandleFunc("GET "+inspectapi.ViewPattern, gated(s.view))
	mux.HandleFunc("GET "+inspectapi.ReplicasPattern, gated(s.replicas))
	mux.HandleFunc("GET "+inspectapi.WatchPattern, s.watch(gate))
	mux.HandleFunc("GET "+inspectapi.FleetPath, gated(s.fleet))
	mux.Handle("GET "+inspectapi.ConsolePath, http.StripPrefix(inspectapi.ConsolePath, console.Handler()))
	return mux, gate
}

func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, "too many people ask for plans: ask again in a moment")
}

// known says who asks.
func (s *Server) known(ctx context.Context, w http.ResponseWriter, r *http.Request) (user authenticationv1.UserInfo,
	ok bool) {
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			// To answer for the one who really asks would show more, or less, than was meant.
			refuse(w, http.StatusBadRequest, "impersonation is not supported here: ask without --as, --as-group and "+
				"--as-uid")
			return user, false
		}
	}
	user, err := s.authenticate(ctx, r)
	if err != nil {
		s.refuseUser(w, err)
	}
	return user, err == nil
}

// refuseUser says why it is not known who asks.
func (s *Server) refuseUser(w http.ResponseWriter, err error) {
	if !errors.Is(err, errUnknown) {
		s.fail(w, "authenticate", err)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer") // by which the page knows that it may ask for a token
	refuse(w, http.StatusUnauthorized, err.Error())
}

// permitted goes through what must hold, in an order in which one who is not known learns nothing,
// and one who may not see a cluster not whether it exists.
func (s *Server) permitted(ctx context.Context, w http.ResponseWriter, r *http.Request,
	verb string) (key types.NamespacedName, ok bool) {
	user, ok := s.known(ctx, w, r)
	if !ok {
		return key, false
	}
	key = types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	if problems := append(validation.IsDNS1123Label(key.Namespace),
		validation.IsDNS1123Subdomain(key.Name)...); len(problems) > 0 {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("%q is no name of a cluster: %s", key, problems[0]))
		return key, false
	}
	allowed, reason, err := s.Reviews.May(ctx, verb, user, key)
	switch {
	case err != nil:
		s.fail(w, "authorise", err)
	case !allowed:
		refuse(w, http.StatusForbidden, forbidden(user.Username, verb, key, reason))
	}
	return key, allowed && err == nil
}

// answer says what the plan of a cluster is, or would be.
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	verb := "get"
	if r.Method == http.MethodPost {
		verb = "update" // one who may not apply a spec need not have it judged
	}
	key, ok := s.permitted(ctx, w, r, verb)
	if !ok {
		return
	}
	var spec *v1alpha1.CassandraClusterSpec
	if r.Method == http.MethodPost {
		var err error
		if spec, err = specIn(http.MaxBytesReader(w, r.Body, maxSpecBytes)); err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	inspection, err := s.Inspect(ctx, key, spec)
	if err != nil {
		s.refuseCluster(w, key, err)
		return
	}
	write(w, http.StatusOK, inspection)
}

// replicas answers who holds a keyspace, or a key of it.
func (s *Server) replicas(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	key, ok := s.permitted(ctx, w, r, "get")
	if !ok {
		return
	}
	query := r.URL.Query()
	var token *ring.Token
	if columns := query["column"]; len(columns) > 0 {
		partition, err := ring.ParseKey(columns)
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		at := ring.TokenOf(partition)
		token = &at
	}
	replicas, err := s.Replicas(ctx, key, query.Get("keyspace"), token)
	switch {
	case errors.Is(err, status.ErrNoKeyspace):
		refuse(w, http.StatusBadRequest, err.Error())
	case err != nil:
		s.refuseCluster(w, key, err)
	default:
		write(w, http.StatusOK, replicas)
	}
}

// refuseCluster says why there is no answer about a cluster.
func (s *Server) refuseCluster(w http.ResponseWriter, key types.NamespacedName, err error) {
	switch {
	case errors.Is(err, ErrNoCluster):
		refuse(w, http.StatusNotFound, fmt.Sprintf("this operator sees no CassandraCluster %q in namespace %q",
			key.Name, key.Namespace))
	case errors.Is(err, ErrNotNow):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, err.Error())
	default:
		s.fail(w, "inspect", err)
	}
}

// specIn reads a spec, which nobody has held to the schema: its size at least must be one that the
// API server would take.
func specIn(body io.Reader) (*v1alpha1.CassandraClusterSpec, error) {
	spec := &v1alpha1.CassandraClusterSpec{}
	if err := json.NewDecoder(body).Decode(spec); err != nil {
		return nil, fmt.Errorf("read the spec: %w", err)
	}
	nodes := int64(0)
	for i := range spec.Datacenters {
		for j := range spec.Datacenters[i].Racks {
			nodes += int64(max(0, render.RackSize(&spec.Datacenters[i], &spec.Datacenters[i].Racks[j])))
		}
	}
	if nodes > mostNodes {
		return nil, fmt.Errorf("the spec has %d nodes: a cluster may have at most %d", nodes, mostNodes)
	}
	return spec, nil
}

func forbidden(user, verb string, key types.NamespacedName, reason string) string {
	text := fmt.Sprintf("user %q may not %s cassandraclusters %q in namespace %q", user, verb, key.Name, key.Namespace)
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// fail is for what is not the fault of who asks. The text has no secrets in it, and tells an
// administrator what the operator lacks.
func (s *Server) fail(w http.ResponseWriter, doing string, err error) {
	s.Log.Error(err, "cannot answer a request for a plan", "doing", doing)
	refuse(w, http.StatusInternalServerError, fmt.Sprintf("%s: %v", doing, err))
}

func refuse(w http.ResponseWriter, code int, why string) {
	write(w, code, inspectapi.Refusal{Error: why})
}

func write(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // one who went away does not want it
}
