package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"helenus.io/helenus/internal/inspectapi"
)

const consoleLong = `Shows clusters in your browser: what status and plan show, kept up to date, the ring by its
tokens, tasks, repairs and the configuration of nodes. The page changes nothing; what can be
done about something it gives as a command to copy.

The page and what it shows come from the operator that leads, by a port forwarded through
the API server, with the credentials of your kubeconfig, which the browser never sees. It
listens on 127.0.0.1 alone, until you press Ctrl-C. The address that is printed has a key
in it that one browser window can use once.

It takes two rights: to get CassandraClusters, of which those are shown that you may get,
and to forward a port to the operator's pods, which the role helenus-plan in its namespace
gives.`

const consoleExample = `  kubectl helenus console
  kubectl helenus console --namespace shop
  kubectl helenus console orders --namespace shop`

// idle is how long a connection of the browser is kept that asks nothing, and begin how long a
// request may take to arrive.
const idle, begin = time.Minute, 10 * time.Second

func newConsole(s *settings) *cobra.Command {
	var port uint16
	cmd := &cobra.Command{
		Use:     "console [CLUSTER]",
		Short:   "Show clusters in your browser",
		Long:    consoleLong,
		Example: consoleExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.console(ctx, c, strings.Join(args, ""), port)
		}),
	}
	cmd.Flags().Uint16Var(&port, "port", 0, "the `port` of 127.0.0.1 to listen on; a free one if 0")
	return cmd
}

func (s *settings) console(ctx context.Context, c *connection, cluster string, port uint16) error {
	if c.config.Impersonate.UserName != "" {
		return errors.New("the console comes from the operator, which knows no impersonation: ask without --as")
	}
	place := ""
	switch {
	case cluster != "":
		if _, err := c.cluster(ctx, cluster); err != nil {
			return err // a wrong name is reported by the API server, without the operator
		}
		place = c.namespace + "/" + cluster
	case s.overrides.Context.Namespace != "":
		place = c.namespace
	}
	if _, err := s.leader(ctx, c); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("listen for the browser: %w", err)
	}
	d := newDoor(listener.Addr().String(), &reach{settings: s, connection: c})
	fmt.Fprintf(s.streams.Out, "Open this in a browser on this machine; the address works once:\n\n"+
		"  http://%s%s#once=%s&at=%s\n\nCtrl-C ends it.\n", listener.Addr(), inspectapi.ConsolePath, d.once,
		url.QueryEscape(place))
	server := &http.Server{Handler: d, ReadHeaderTimeout: begin, IdleTimeout: idle,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // nobody waits for anything
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the browser: %w", err)
	}
	return nil
}

// door is what the browser speaks to. It lets the one in who has the key, and passes on questions,
// without anything of the browser's but the path.
type door struct {
	host   string
	beyond http.Handler

	mutex sync.Mutex
	// once is exchanged for session, which a window keeps; empty when that was done.
	once, session string
}

func newDoor(host string, to http.RoundTripper) *door {
	d := &door{host: host, once: rand.Text(), session: rand.Text()}
	d.beyond = &httputil.ReverseProxy{
		Transport: to, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			accept := r.In.Header.Get("Accept")
			r.Out.Header = http.Header{"Accept": {accept}}
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", "operator", ""
		},
		ModifyResponse: func(r *http.Response) error {
			secure := http.Header{}
			inspectapi.Secure(secure)
			for name := range secure {
				r.Header.Del(name) // the door sets it; some mean nothing if they are there twice
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuseBrowser(w, http.StatusBadGateway, err.Error())
		},
	}
	return d
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inspectapi.Secure(w.Header())
	if err := inspectapi.CheckOrigin(r, "http", func(host string) bool { return host == d.host }); err != nil {
		refuseBrowser(w, http.StatusForbidden, err.Error())
		return
	}
	page := strings.HasPrefix(r.URL.Path, inspectapi.ConsolePath)
	switch {
	case r.Method == http.MethodPost && r.URL.Path == inspectapi.ConsolePath+"session":
		d.exchange(w, r)
	case r.Method != http.MethodGet, strings.Contains(r.URL.Path, ".."),
		!page && !strings.HasPrefix(r.URL.Path, "/v1/"):
		refuseBrowser(w, http.StatusNotFound, "there is nothing here but the console")
	case !page && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+d.session)) != 1:
		refuseBrowser(w, http.StatusUnauthorized,
			"this window is not authenticated: run kubectl helenus console, and open the address that it prints")
	default:
		d.beyond.ServeHTTP(w, r)
	}
}

// exchange gives the session for the key, once.
func (d *door) exchange(w http.ResponseWriter, r *http.Request) {
	given, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(len(rand.Text()))))
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if err != nil || d.once == "" || subtle.ConstantTimeCompare(given, []byte(d.once)) != 1 {
		refuseBrowser(w, http.StatusUnauthorized, "this address was used before: run kubectl helenus console again")
		return
	}
	d.once = ""
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, d.session) // one who went away does not want it
}

func refuseBrowser(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(inspectapi.Refusal{Error: oneLine(why)})
}

// reach asks the operator that leads, by one tunnel, which is opened anew when it has failed.
type reach struct {
	settings   *settings
	connection *connection

	mutex  sync.Mutex
	tunnel *tunnel
	client *http.Client
}

// RoundTrip asks the leader. The caller tries again where that fails, by then perhaps with another
// leader.
func (r *reach) RoundTrip(q *http.Request) (*http.Response, error) {
	t, operator, err := r.open(q.Context())
	if err != nil {
		return nil, err
	}
	out := q.Clone(q.Context())
	out.URL.Host = t.address
	response, err := operator.Transport.RoundTrip(out)
	if err != nil {
		if q.Context().Err() == nil {
			r.drop(t)
			err = fmt.Errorf("ask the operator: %w%s", err, t.reason())
		}
		return nil, err
	}
	return response, nil
}

func (r *reach) open(ctx context.Context) (*tunnel, *http.Client, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.tunnel != nil {
		return r.tunnel, r.client, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	to, err := r.settings.leader(ctx, r.connection)
	if err != nil {
		return nil, nil, err
	}
	operator, err := operatorClient(r.connection.config, to.fingerprint)
	if err != nil {
		return nil, nil, err
	}
	// It outlives the request that needed it first, once it is open.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	opened := context.AfterFunc(ctx, end)
	t, err := r.connection.open(life, r.settings.operatorNamespace, to)
	opened()
	if err != nil {
		end()
		return nil, nil, err
	}
	r.tunnel, r.client = t, operator
	return t, operator, nil
}

// drop has the next request open another tunnel, if that was not done already.
func (r *reach) drop(t *tunnel) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.tunnel == t {
		r.client.CloseIdleConnections()
		r.tunnel, r.client = nil, nil
		t.close()
	}
}
