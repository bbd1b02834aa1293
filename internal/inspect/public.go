package inspect

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"helenus.io/helenus/internal/inspectapi"
)

const (
	// sessionCookie is bound to its host by the browser, which takes the name with Secure alone.
	sessionCookie = "__Host-helenus"
	sessionAge    = time.Hour
	// mostSessions and mostForwarded bound what a replica holds for browsers.
	mostSessions, mostForwarded = 256, 128
	maxTokenBytes               = 64 << 10
	// forwardedHeader marks what one replica passes on to another, which does not pass it on again.
	forwardedHeader = "Helenus-Forwarded"
	// internalName is the server name for which a replica shows the certificate of its Lease.
	internalName = "inspect.helenus.internal"
	leaderAge    = 2 * time.Second
)

// Leader is where the replica that leads serves the console, and by what it is known.
type Leader struct{ Address, Fingerprint string }

// Public serves the console to browsers that come through a Service. Who asks is known by a token:
// in the header Authorization, as a proxy of the user's sends it, or pasted into the page, for an
// hour. Every replica listens, and those that do not lead pass on to the one that does.
type Public struct {
	*Server
	// Address to listen on, in the network of pods.
	Address string
	// Hosts are the names under which browsers come.
	Hosts []string
	// CertificateDir has tls.crt and tls.key, which are read for each connection; if it is empty
	// the certificate is that of the Server, which a proxy cannot verify.
	CertificateDir string
	// Leads is closed when this replica leads.
	Leads <-chan struct{}
	// Leader finds the one that does.
	Leader func(context.Context) (Leader, error)

	mutex    sync.Mutex
	sessions map[[sha256.Size]byte]session
	leader   Leader
	asked    time.Time
}

// session has a token that was pasted. It is in memory alone, and ends with the leadership.
type session struct {
	token string
	until time.Time
}

// NeedLeaderElection has the manager start it on every replica.
func (*Public) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (p *Public) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.Address)
	if err != nil {
		return fmt.Errorf("listen for browsers: %w", err)
	}
	return p.serve(ctx, tls.NewListener(listener, p.tlsConfig()), p.Handler())
}

// tlsConfig asks for no client certificate, since browsers would ask their users for one.
func (p *Public) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if p.CertificateDir == "" || hello.ServerName == internalName {
				return &p.Certificate, nil
			}
			pair, err := tls.LoadX509KeyPair(filepath.Join(p.CertificateDir, "tls.crt"),
				filepath.Join(p.CertificateDir, "tls.key"))
			if err != nil {
				return nil, fmt.Errorf("read the certificate of the console: %w", err)
			}
			return &pair, nil
		}}
}

// Handler answers browsers; Start serves it.
func (p *Public) Handler() http.Handler {
	places := make(chan struct{}, mostForwarded)
	shown, gate := p.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inspectapi.Secure(w.Header())
		if err := inspectapi.CheckOrigin(r, "https", p.serves); err != nil {
			refuse(w, http.StatusForbidden, err.Error())
			return
		}
		select {
		case <-p.Leads:
			p.answerBrowser(w, r, shown, gate)
			return
		default:
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			p.forward(w, r)
		default:
			busy(w)
		}
	})
}

func (p *Public) serves(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.ContainsFunc(p.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// answerBrowser shows what the Server shows, and takes tokens. Nothing else is taken.
func (p *Public) answerBrowser(w http.ResponseWriter, r *http.Request, shown http.Handler, gate gate) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == inspectapi.ConsolePath+"session":
		gate(w, r, p.logIn)
		return
	case r.Method == http.MethodGet && r.URL.Path == "/":
		http.Redirect(w, r, inspectapi.ConsolePath, http.StatusFound)
		return
	case r.Method != http.MethodGet:
		refuse(w, http.StatusMethodNotAllowed, "the console changes nothing")
		return
	}
	given, until := p.session(r)
	if _, sent := bearer(r); given != "" && !sent {
		ctx, cancel := context.WithDeadline(r.Context(), time.Now().Add(until.Sub(p.Now()))) // of streams, too
		defer cancel()
		r = r.Clone(ctx)
		r.Header.Set("Authorization", "Bearer "+given)
	}
	r.Header.Del("Cookie")
	shown.ServeHTTP(w, r)
}

// session is the token that was pasted for a cookie, and how long it is kept; empty after that.
func (p *Public) session(r *http.Request) (token string, until time.Time) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return "", until
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	s, known := p.sessions[sha256.Sum256([]byte(cookie.Value))]
	if !known || !p.Now().Before(s.until) {
		return "", until
	}
	return s.token, s.until
}

// logIn exchanges a token that Kubernetes knows for a cookie.
func (p *Public) logIn(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	given, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTokenBytes))
	token := strings.TrimSpace(string(given))
	if err != nil || token == "" {
		refuse(w, http.StatusBadRequest, "no token was sent, or one that is too long")
		return
	}
	if _, err := p.byToken(ctx, token); err != nil {
		p.refuseUser(w, err)
		return
	}
	now, key := p.Now(), rand.Text()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for of, s := range p.sessions {
		if !now.Before(s.until) {
			delete(p.sessions, of)
		}
	}
	if len(p.sessions) >= mostSessions {
		busy(w)
		return
	}
	if p.sessions == nil {
		p.sessions = map[[sha256.Size]byte]session{}
	}
	p.sessions[sha256.Sum256([]byte(key))] = session{token, now.Add(sessionAge)}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: key, Path: "/", MaxAge: int(sessionAge.Seconds()),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// forward passes a request on to the replica that leads, once.
func (p *Public) forward(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(forwardedHeader) != "" {
		refuse(w, http.StatusMisdirectedRequest, "this replica of the operator does not lead")
		return
	}
	to, err := p.whoLeads(r.Context())
	if err != nil {
		p.Log.V(1).Info("cannot find the leader", "error", err.Error())
		refuse(w, http.StatusMisdirectedRequest, "no replica of the operator leads: try again in a moment")
		return
	}
	out := patient{w, http.NewResponseController(w)}
	if r.Method == http.MethodGet {
		r.Body, r.ContentLength = http.NoBody, 0
		if out.control.SetReadDeadline(time.Time{}) != nil { // that of the server is for short requests
			return
		}
	}
	transport := &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: 2 * patience,
		DialContext: (&net.Dialer{Timeout: goodbye}).DialContext, TLSHandshakeTimeout: goodbye,
		TLSClientConfig: knownBy(to.Fingerprint)}
	(&httputil.ReverseProxy{Transport: transport, FlushInterval: -1,
		Rewrite: func(q *httputil.ProxyRequest) {
			q.Out.URL.Scheme, q.Out.URL.Host, q.Out.Host = "https", to.Address, q.In.Host
			q.Out.Header.Set(forwardedHeader, "1")
		},
		ModifyResponse: func(answer *http.Response) error {
			for name := range w.Header() {
				answer.Header.Del(name) // they are set here, and some mean nothing if they are there twice
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			p.Log.V(1).Info("cannot reach the leader", "error", err.Error())
			refuse(w, http.StatusBadGateway, "the replica of the operator that leads does not answer: try again")
		}}).ServeHTTP(out, r)
}

// patient gives each write the time of a short request, since a stream has no end.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.control.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return 0, fmt.Errorf("limit a write: %w", err)
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap is for the controllers of what is written to.
func (p patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// knownBy verifies the other side by its fingerprint, before anything is sent to it.
func knownBy(fingerprint string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: internalName,
		InsecureSkipVerify: true, // instead of an authority and a name, VerifyConnection
		VerifyConnection: func(state tls.ConnectionState) error {
			if shown := inspectapi.Fingerprint(state.PeerCertificates[0].Raw); shown != fingerprint {
				return fmt.Errorf("its certificate is %s, not %s as its Lease says", shown, fingerprint)
			}
			return nil
		}}
}

// whoLeads finds the leader, and keeps the answer for leaderAge for all requests.
func (p *Public) whoLeads(ctx context.Context) (Leader, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if now := p.Now(); now.Sub(p.asked) >= leaderAge || p.asked.IsZero() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		leader, err := p.Leader(ctx)
		p.leader, p.asked = leader, now
		if err != nil {
			p.leader = Leader{}
			return p.leader, err
		}
	}
	if p.leader.Address == "" {
		return p.leader, errors.New("no replica is known to lead")
	}
	return p.leader, nil
}
