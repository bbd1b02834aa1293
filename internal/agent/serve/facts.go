package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/pki"
)

// Source is the agent that is asked.
type Source interface {
	// Fresh looks at the ring before it answers.
	Fresh(ctx context.Context) (*facts.Agent, string)
	// Wait answers when the digest is another one, or when ctx ends.
	Wait(ctx context.Context, digest string) (*facts.Agent, string)
	Identity(address, hostID string) facts.Peer
}

// Limits of the servers. An operator and a few dozen peers talk to an agent, beside kubelet and
// Prometheus.
const (
	maxPerSource, maxConnections   = 32, 256
	shakingPerSource, shakingInAll = 16, 128
	handshakeTimeout               = 5 * time.Second
	headerTimeout                  = 5 * time.Second
	idleTimeout                    = 2 * agentapi.MaxWait
	maxHeaderBytes                 = 8 << 10
)

// Facts serves facts on a listener until ctx ends. Only the operator and the nodes of the own
// cluster are let in.
func Facts(ctx context.Context, listener net.Listener, source Source, certificates pki.Source,
	now func() time.Time) error {
	return run(ctx, handshaken(listener, pki.ServerConfig(certificates, now)), FactsHandler(source), true)
}

// run serves until ctx ends. Answers under way are cut off then: nothing is lost by it.
func run(ctx context.Context, listener net.Listener, handler http.Handler, keepAlive bool) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    quiet(), // strangers must not be able to fill the log
	}
	server.SetKeepAlivesEnabled(keepAlive)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}

// FactsHandler answers the questions of agentapi. Who asks was checked by the handshake.
func FactsHandler(source Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+agentapi.PathFacts,
		func(w http.ResponseWriter, r *http.Request) { answerFacts(w, r, source) })
	mux.HandleFunc("GET "+agentapi.PathIdentity,
		func(w http.ResponseWriter, r *http.Request) { answerIdentity(w, r, source) })
	return mux
}

func answerFacts(w http.ResponseWriter, r *http.Request, source Source) {
	asked := time.Now() // the host's clock, which may be set meanwhile
	query := r.URL.Query()
	var answer *facts.Agent
	var digest string
	if query.Has("wait") || query.Has("digest") {
		wait, err := time.ParseDuration(query.Get("wait"))
		if err != nil || wait < 0 {
			http.Error(w, fmt.Sprintf("wait=%q: want a duration such as 30s, at most %s", query.Get("wait"),
				agentapi.MaxWait), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), min(wait, agentapi.MaxWait))
		defer cancel()
		answer, digest = source.Wait(ctx, query.Get("digest"))
	} else {
		answer, digest = source.Fresh(r.Context())
	}
	if answer == nil {
		http.Error(w, "the agent has only just started", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("ETag", `"`+digest+`"`)
	writeJSON(w, agentapi.Timed(answer, asked, time.Now()))
}

func answerIdentity(w http.ResponseWriter, r *http.Request, source Source) {
	query := r.URL.Query()
	address := query.Get("address")
	if address != "" {
		parsed, err := netip.ParseAddr(address)
		if err != nil {
			http.Error(w, fmt.Sprintf("address=%q is not an IP address", address), http.StatusBadRequest)
			return
		}
		address = parsed.Unmap().String()
	}
	writeJSON(w, source.Identity(address, query.Get("hostID")))
}

func writeJSON(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a client that is gone is nobody's error
}
