package inspect

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"helenus.io/helenus/internal/inspectapi"
)

func TestWhoMaySee(t *testing.T) {
	authority := newAuthority(t, "kubernetes", nil)
	between := newAuthority(t, "between", authority)
	second := newAuthority(t, "kubernetes-2", nil)
	// The stranger has an authority of his own that calls itself like the real one.
	stranger := newAuthority(t, "kubernetes", nil)
	tokens := map[string]authenticationv1.UserInfo{
		"bob-token":  {Username: "bob", Groups: []string{"system:authenticated"}},
		"eve-token":  {Username: "eve", Groups: []string{"system:authenticated"}},
		"void-token": {},
	}
	rights := []string{"anna shop/orders", "bob shop/orders", "group:dba shop/orders", "anna bank/orders",
		"anna shop/orders update"}
	anna := person{name: "anna"}

	for name, c := range map[string]struct {
		request
		status int
		// says must be in the refusal.
		says string
	}{
		"certificate":                        {request{certificate: authority.issue(t, anna)}, 200, ""},
		"certificate of the other authority": {request{certificate: second.issue(t, anna)}, 200, ""},
		"certificate by an intermediate":     {request{certificate: between.issue(t, anna, between)}, 200, ""},
		"certificate, right by group": {request{certificate: authority.issue(t,
			person{name: "carl", groups: []string{"dba"}})}, 200, ""},
		"token": {request{header: bearerOf("bob-token")}, 200, ""},
		"token, scheme in lower case": {request{header: map[string]string{"Authorization": "bearer bob-token"}}, 200,
			""},
		"token beside a stranger's certificate": {
			request{certificate: stranger.issue(t, anna), header: bearerOf("bob-token")}, 200, "",
		},
		"certificate counts before token": {
			request{certificate: authority.issue(t, person{name: "mallory"}), header: bearerOf("bob-token")}, 403,
			`"mallory"`,
		},

		"nothing": {request{}, 401, "no client certificate and no bearer token"},
		"stranger's certificate": {request{certificate: stranger.issue(t, anna)}, 401,
			"verify the client certificate"},
		"expired certificate": {request{certificate: authority.issue(t,
			person{name: "anna", until: -time.Second})}, 401, "expired"},
		"certificate of the future": {request{certificate: authority.issue(t,
			person{name: "anna", from: time.Second})}, 401, "not yet valid"},
		"certificate for servers": {request{certificate: authority.issue(t,
			person{name: "anna", usage: x509.ExtKeyUsageServerAuth})}, 401, "incompatible key usage"},
		"certificate without a name": {request{certificate: authority.issue(t,
			person{groups: []string{"dba"}})}, 401, "names no user"},
		"certificate without its intermediate": {request{certificate: between.issue(t, anna)}, 401,
			"unknown authority"},
		"certificate by one who is no authority": {request{certificate: leafSigned(t, authority, anna)}, 401,
			"verify the client certificate"},
		"unknown token":   {request{header: bearerOf("made-up")}, 401, "does not know the bearer token"},
		"token of nobody": {request{header: bearerOf("void-token")}, 401, "does not know the bearer token"},
		"empty token":     {request{header: bearerOf("")}, 401, "no bearer token"},
		"password": {request{header: map[string]string{"Authorization": "Basic Ym9iOmJvYg=="}}, 401,
			"no bearer token"},
		"unknown token and stranger's certificate": {request{certificate: stranger.issue(t, anna),
			header: bearerOf("made-up")}, 401, "bearer token"},

		"token of one without rights": {request{header: bearerOf("eve-token")}, 403,
			`user "eve" may not get cassandraclusters "orders" in namespace "shop"`},
		"certificate of one without rights": {request{certificate: authority.issue(t, person{name: "frank"})}, 403,
			`"frank"`},
		"right user, other namespace": {request{path: inspectapi.Path("bank", "orders"), header: bearerOf("bob-token")},
			403, `namespace "bank"`},
		"right user, other cluster": {request{path: inspectapi.Path("shop", "carts"), header: bearerOf("bob-token")},
			403, `"carts"`},
		"impersonation": {request{header: map[string]string{"Authorization": "Bearer bob-token",
			"Impersonate-User": "anna"}}, 400, "impersonation"},
		"front proxy's headers count for nothing": {
			request{header: map[string]string{"X-Remote-User": "anna", "X-Remote-Group": "dba"}}, 401,
			"no client certificate",
		},

		"no such cluster": {request{path: inspectapi.Path("bank", "orders"), certificate: authority.issue(t, anna)},
			404, `no CassandraCluster "orders" in namespace "bank"`},
		"impossible name": {request{path: "/v1/namespaces/shop/clusters/%2e%2e%2forders",
			header: bearerOf("bob-token")}, 400, "is no name of a cluster"},
		"impossible place": {request{path: "/v1/namespaces/a.b/clusters/orders", header: bearerOf("bob-token")}, 400,
			"is no name of a cluster"},
		"another path": {request{path: "/metrics", header: bearerOf("bob-token")}, 404, ""},
		"a spec":       {request{method: http.MethodPost, certificate: authority.issue(t, anna), body: `{"version":"5.0.6"}`}, 200, ""},
		"a spec of one who may only look": {request{method: http.MethodPost, header: bearerOf("bob-token"), body: `{}`}, 403,
			`user "bob" may not update cassandraclusters "orders"`},
		"no spec": {request{method: http.MethodPost, certificate: authority.issue(t, anna), body: `[]`}, 400,
			"read the spec"},
		"a spec larger than any object": {request{method: http.MethodPost, certificate: authority.issue(t, anna),
			body: `{"version":"` + strings.Repeat("5", maxSpecBytes) + `"}`}, 400, "too large"},
		"more nodes than a cluster may have": {request{method: http.MethodPost, certificate: authority.issue(t, anna),
			body: `{"datacenters":[{"nodesPerRack":2000000000,"racks":[{},{"nodes":-2000000000}]}]}`}, 400,
			"2000000000 nodes: a cluster may have at most 1000"},
		"another method":  {request{method: http.MethodPut, header: bearerOf("bob-token")}, 405, ""},
		"deleting a plan": {request{method: http.MethodDelete, header: bearerOf("bob-token")}, 405, ""},
		"below the cluster": {request{path: inspectapi.Path("shop", "orders") + "/secrets",
			header: bearerOf("bob-token")}, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.authorities = append(authority.pem(), second.pem()...)
			w.tokens, w.rights = tokens, rights
			got := ask(t, serve(t, w.server(t)), c.request)
			if got.status != c.status || !strings.Contains(got.refusal.Error, c.says) {
				t.Fatalf("status %d (%s), want %d and %q", got.status, got.body, c.status, c.says)
			}
			seen := slices.Contains(w.inspected, orders)
			if seen != (c.status == http.StatusOK) {
				t.Errorf("the cluster was looked at: %t", seen)
			}
			if c.status == http.StatusUnauthorized && len(w.asked) > 0 {
				t.Errorf("rights were asked for nobody: %+v", w.asked)
			}
			if posts := c.method == http.MethodPost; c.status == http.StatusOK &&
				(posts != (w.judged != nil) || posts && w.judged.Version != "5.0.6") {
				t.Errorf("judged %+v", w.judged)
			}
			if c.status == http.StatusOK {
				var i inspectapi.Inspection
				if err := json.Unmarshal(got.body, &i); err != nil || i.Snapshot.Cluster != orders.Name ||
					i.Snapshot.Namespace != orders.Namespace {
					t.Errorf("answer %s, %v", got.body, err)
				}
				if got.header.Get("Cache-Control") != "no-store" {
					t.Error("the answer may be kept by others")
				}
			}
		})
	}
}

// leafSigned is a certificate that a user signed with his own, for somebody else.
func leafSigned(t *testing.T, authority *signer, as person) *tls.Certificate {
	t.Helper()
	own := authority.issue(t, person{name: "mallory"})
	certificate, err := x509.ParseCertificate(own.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	mallory := &signer{certificate: certificate, key: own.PrivateKey.(*ecdsa.PrivateKey)}
	return mallory.issue(t, as, mallory)
}

func TestWhatIsAsked(t *testing.T) {
	w := newWorld()
	w.tokens = map[string]authenticationv1.UserInfo{"t": {
		Username: "system:serviceaccount:shop:robot", UID: "u-1",
		Groups: []string{"system:serviceaccounts", "system:authenticated"},
		Extra:  map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/pod-name": {"robot-1"}},
	}}
	authority := newAuthority(t, "kubernetes", nil)
	w.authorities = authority.pem()
	address := serve(t, w.server(t))
	ask(t, address, request{header: bearerOf("t")})
	ask(t, address, request{certificate: authority.issue(t, person{name: "anna", groups: []string{"dba", "dev"}})})
	on := &authorizationv1.ResourceAttributes{
		Verb: "get", Group: "helenus.io", Version: "v1alpha1", Resource: "cassandraclusters", Namespace: "shop",
		Name: "orders",
	}
	want := []authorizationv1.SubjectAccessReviewSpec{
		{
			User: "system:serviceaccount:shop:robot", UID: "u-1",
			Groups: []string{"system:serviceaccounts", "system:authenticated"},
			Extra: map[string]authorizationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {"robot-1"},
			},
			ResourceAttributes: on,
		},
		{User: "anna", Groups: []string{"dba", "dev", "system:authenticated"}, ResourceAttributes: on},
	}
	if !reflect.DeepEqual(w.asked, want) {
		t.Errorf("asked\n%+v\nwant\n%+v", w.asked, want)
	}
}

func TestWithoutAuthorities(t *testing.T) {
	anna := newAuthority(t, "kubernetes", nil).issue(t, person{name: "anna"})
	for name, c := range map[string]struct {
		published []byte
		status    int
	}{
		"nothing published": {nil, 401},
		"empty":             {[]byte{}, 401},
		"blank":             {[]byte(" \n"), 401},
		"no certificates":   {[]byte("hello"), 500},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.authorities, w.rights = c.published, []string{"anna shop/orders"}
			if got := ask(t, serve(t, w.server(t)), request{certificate: anna}); got.status != c.status {
				t.Errorf("status %d (%s), want %d", got.status, got.body, c.status)
			}
		})
	}
}

func TestWhatGoesWrong(t *testing.T) {
	behind := fmt.Errorf("%w: the cache is behind", ErrNotNow)
	for name, c := range map[string]struct {
		change func(*world)
		status int
		want   inspectapi.Refusal
		retry  string
	}{
		"behind": {func(w *world) { w.clusters[orders] = behind }, 503,
			inspectapi.Refusal{Error: "ask again in a moment: the cache is behind"}, "1"},
		"broken cluster": {func(w *world) { w.clusters[orders] = errors.New("list pods: no") }, 500,
			inspectapi.Refusal{Error: "inspect: list pods: no"}, ""},
		"reviews fail": {func(w *world) { w.broken = true }, 500,
			inspectapi.Refusal{Error: "authenticate: create TokenReview: the API server is down"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.tokens = map[string]authenticationv1.UserInfo{"t": {Username: "bob"}}
			w.rights = []string{"bob shop/orders"}
			c.change(w)
			got := ask(t, serve(t, w.server(t)), request{header: bearerOf("t")})
			if got.status != c.status || got.refusal != c.want || got.header.Get("Retry-After") != c.retry {
				t.Errorf("status %d, %+v, retry after %q, want %d, %+v, %q", got.status, got.refusal,
					got.header.Get("Retry-After"), c.status, c.want, c.retry)
			}
		})
	}
}

func TestFewAtOnce(t *testing.T) {
	w := newWorld()
	w.tokens = map[string]authenticationv1.UserInfo{"t": {Username: "bob"}}
	w.rights = []string{"bob shop/orders"}
	w.hold, w.entered = make(chan struct{}), make(chan struct{})
	address := serve(t, w.server(t))
	var waiting sync.WaitGroup
	statuses := make(chan int, atOnce)
	for range atOnce {
		waiting.Go(func() { statuses <- ask(t, address, request{header: bearerOf("t")}).status })
		<-w.entered
	}
	got := ask(t, address, request{header: bearerOf("t")})
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("one too many got %d (%s)", got.status, got.body)
	}
	close(w.hold)
	waiting.Wait()
	for range atOnce {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("one of the first got %d", status)
		}
	}
}

func TestFewPerSecond(t *testing.T) {
	w := newWorld()
	address := serve(t, w.server(t))
	for range burst {
		if got := ask(t, address, request{}); got.status != http.StatusUnauthorized {
			t.Fatalf("status %d", got.status)
		}
	}
	// The clock stands still.
	if got := ask(t, address, request{}); got.status != http.StatusTooManyRequests {
		t.Errorf("status %d after %d requests at one moment", got.status, burst)
	}
}

func TestWhoHoldsAKey(t *testing.T) {
	for name, c := range map[string]struct {
		cluster, keyspace string
		columns           []string
		status            int
		says              string
	}{
		"a key":             {"orders", "shop", []string{"text:bob"}, 200, `"token":"-5396685590450884643"`},
		"of two columns":    {"orders", "shop", []string{"int:1", "text:bob"}, 200, `"token":"1763441539845220658"`},
		"no number":         {"orders", "shop", []string{"int:one"}, 400, `\"one\" is no int: want a whole number`},
		"an empty key":      {"orders", "shop", []string{"text:"}, 400, "it is empty"},
		"no such keyspace":  {"orders", "<b>", []string{"text:bob"}, 400, "no such keyspace"},
		"nobody to ask":     {"orders", "shop", nil, 503, "no node can say"},
		"another's cluster": {"carts", "shop", []string{"int:one"}, 403, `may not get cassandraclusters`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.tokens, w.rights = map[string]authenticationv1.UserInfo{"t": {Username: "bob"}}, []string{"bob shop/orders"}
			got := ask(t, serve(t, w.server(t)), request{header: bearerOf("t"),
				path: inspectapi.ReplicasPath("shop", c.cluster, c.keyspace, c.columns)})
			if got.status != c.status || !strings.Contains(string(got.body), c.says) {
				t.Errorf("status %d (%s), want %d and %q", got.status, got.body, c.status, c.says)
			}
		})
	}
}

// listen listens as Start does, at an address that is free.
func listen(t *testing.T) (listener net.Listener, address string) {
	t.Helper()
	plain, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := NewCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return tls.NewListener(plain, serverConfig(certificate)), "https://" + plain.Addr().String()
}

func TestStartAndStop(t *testing.T) {
	s := newWorld().server(t)
	ctx, cancel := context.WithCancel(t.Context())
	listener, address := listen(t)
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, listener, s.Handler()) }()
	if got := ask(t, address, request{}); got.status != http.StatusUnauthorized {
		t.Errorf("status %d", got.status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	s.Address = "256.0.0.1:1"
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "listen for requests for plans") {
		t.Errorf("an address that does not exist: %v", err)
	}
}
