package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
)

// refusing answers so.
func refusing(status int, reason, message string) func(http.ResponseWriter, *http.Request) (http.ResponseWriter, bool) {
	return func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		refuseGoogle(w, status, reason, message)
		return w, true
	}
}

// A bucket of Google is checked as one of S3 is; one that everybody can read is refused.
func TestCheckOfGCS(t *testing.T) {
	o, g := serveObjects(t)
	s := g.open(t)
	if err := store.Check(t.Context(), s, "me", time.Now()); err != nil {
		t.Error(err)
	}
	if left := slices.Collect(maps.Keys(o.is)); !slices.Equal(left, []string{"some/prefix/encryption/None"}) {
		t.Errorf("the check left %v", left)
	}
	if want := "backups@shop.iam.gserviceaccount.com https://www.googleapis.com/auth/devstorage.read_write /token"; !slices.
		Equal(g.all(), []string{want}) {
		t.Errorf("asked for tokens %q", g.all())
	}
	g.public = true
	if err := store.Check(t.Context(), s, "me", time.Now()); reason(err) != v1alpha1.ReasonBucketPublic {
		t.Errorf("public: %v", err)
	}
	o.fault = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		if r.Header.Get("Authorization") != "" {
			return w, false
		}
		w.WriteHeader(http.StatusInternalServerError)
		return w, true
	}
	if err := store.Check(t.Context(), s, "me", time.Now()); reason(err) != v1alpha1.ReasonStoreUnreachable {
		t.Errorf("whether it is public cannot be told: %v", err)
	}
	o.fault = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		query := r.URL.Query()
		query.Del("ifGenerationMatch")
		r.URL.RawQuery = query.Encode()
		return w, false
	}
	if err := store.Check(t.Context(), s, "me", time.Now()); reason(err) != v1alpha1.ReasonUnsupportedService {
		t.Errorf("no condition: %v", err)
	}
	if *emulator != "" {
		if err := store.Check(t.Context(), ofEmulator(t), "me", time.Now()); err != nil {
			t.Error(err)
		}
	}
}

// Of two that write the same at once, in parts or not, the second is told that the object exists.
func TestTwoAtOnceInGCS(t *testing.T) {
	_, g := serveObjects(t)
	all := []*store.GCS{g.open(t)}
	if *emulator != "" {
		all = append(all, ofEmulator(t))
	}
	for _, s := range all {
		for _, size := range []int{100, 20 << 20} {
			key, want := fmt.Sprint(size), content(size)
			first := reads(func() error { return put(s, key, want) })
			r := io.MultiReader(bytes.NewReader(want[:size*9/10]), first, bytes.NewReader(want[size*9/10:]))
			if err := s.Put(t.Context(), key, r, int64(size)); !errors.Is(err, store.ErrExists) {
				t.Errorf("the second: %v", err)
			}
			if got := get(t, s, key); !bytes.Equal(got, want) {
				t.Error("other bytes came back")
			}
		}
	}
}

func TestRequestsToGCSAreAttemptedAgain(t *testing.T) {
	t.Parallel()
	o, g := serveObjects(t)
	s := g.open(t)
	for _, status := range []int{http.StatusTooManyRequests, http.StatusBadGateway} {
		for _, size := range []int{10, 20 << 20} {
			key := fmt.Sprint(status, size)
			o.inject(4, "", "", refusing(status, "rateLimitExceeded", "Slow down."))
			if err := put(s, key, content(size)); err != nil {
				t.Fatal(err)
			}
			o.inject(4, "", "", refusing(status, "rateLimitExceeded", "Slow down."))
			if got := get(t, s, key); !bytes.Equal(got, content(size)) {
				t.Error("other bytes came back")
			}
		}
	}
	if got := list(t, s, ""); len(got) != 4 {
		t.Errorf("there is %v", got)
	}
	for _, size := range []int{10, 20 << 20} {
		o.inject(100, "", "", refusing(http.StatusServiceUnavailable, "backendError", "Backend Error"))
		before := len(o.requests())
		err := put(s, "never", content(size))
		if got := len(o.requests()) - before; got != 5 || reason(err) != v1alpha1.ReasonStoreUnreachable ||
			!strings.Contains(err.Error(), "503 Service Unavailable: Backend Error") {
			t.Errorf("%d requests, %v", got, err)
		}
	}
	o.inject(1, "", "", func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		w.Header().Set("Location", g.URL+"/elsewhere")
		w.WriteHeader(http.StatusFound)
		return w, true
	})
	before := len(o.requests())
	if err := put(s, "never", nil); reason(err) != v1alpha1.ReasonStoreUnreachable || len(o.requests())-before != 1 {
		t.Errorf("was sent elsewhere: %v", err)
	}
}

// mute sends no answer.
type mute struct{ http.ResponseWriter }

func (mute) WriteHeader(int) { panic(http.ErrAbortHandler) }

// What breaks off is sent again from the byte on that the service asks for.
func TestUploadToGCSIsResumed(t *testing.T) {
	t.Parallel()
	const second = "8388608-16777215"
	for name, c := range map[string]struct {
		of   func(*objects)
		want []string
	}{
		"nothing breaks": {func(*objects) {}, []string{"0-8388607", second, "16777216-20971519"}},
		"refused": {func(o *objects) {
			o.inject(1, "PUT", "bytes "+second, refusing(http.StatusServiceUnavailable, "backendError", ""))
		}, []string{"0-8388607", second, "*", second, "16777216-20971519"}},
		"broken within a part": {func(o *objects) {
			o.inject(1, "PUT", "bytes "+second, func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
				r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, 1<<20+5), reads(func() error { return io.ErrUnexpectedEOF })))
				return mute{w}, false
			})
		}, []string{"0-8388607", second, "*", "9437184-16777215", "16777216-20971519"}},
		"nothing of the first": {func(o *objects) {
			o.inject(1, "PUT", "", func(http.ResponseWriter, *http.Request) (http.ResponseWriter, bool) {
				panic(http.ErrAbortHandler)
			})
		}, []string{"0-8388607", "*", "0-8388607", second, "16777216-20971519"}},
		"half of each": {func(o *objects) { o.keeps = 5 << 20 }, []string{"0-8388607", "5242880-8388607", second,
			"13631488-16777215", "16777216-20971519"}},
		"the last answer is lost": {func(o *objects) {
			o.inject(1, "PUT", "bytes 16777216-", func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
				return &half{ResponseWriter: w, left: 1}, false
			})
		}, []string{"0-8388607", second, "16777216-20971519", "*"}},
	} {
		t.Run(name, func(t *testing.T) {
			o, g := serveObjects(t)
			c.of(o)
			s := g.open(t)
			if err := put(s, "key", content(20<<20)); err != nil {
				t.Fatal(err)
			}
			if sent := o.sent(0); !slices.Equal(sent, c.want) {
				t.Errorf("sent %q", sent)
			}
			if got := get(t, s, "key"); !bytes.Equal(got, content(20<<20)) {
				t.Error("other bytes came back")
			}
		})
	}
}

// sent are the Content-Ranges of the requests since so many.
func (o *objects) sent(since int) (out []string) {
	for _, request := range o.requests()[since:] {
		if _, of, is := strings.Cut(request, " bytes "); is {
			of, _, _ = strings.Cut(of, "/")
			out = append(out, of)
		}
	}
	return out
}

// An upload that was interrupted in its third part does not send again what Google has of it.
func TestResumeInGCS(t *testing.T) {
	t.Parallel()
	want, other := content(20<<20), content(20<<20)
	other[3]++
	const first, second, last = "0-8388607", "8388608-16777215", "16777216-20971519"
	all := []string{first, second, last}
	for name, c := range map[string]struct {
		before []byte
		// breaks is what becomes of the last part.
		breaks func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool)
		then   func(t *testing.T, o *objects, s *store.GCS, j lines)
		sent   []string
	}{
		"nothing of it": {want, nil, nil, []string{"*", last}},
		"some of it": {want, func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, 1<<20+5), reads(func() error {
				return io.ErrUnexpectedEOF
			})))
			return mute{w}, false
		}, nil, []string{"*", "17825792-20971519"}},
		"all of it": {want, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
			return &half{ResponseWriter: w, left: 1}, false
		}, nil, []string{"*", "*"}},
		"forgotten": {want, nil, func(_ *testing.T, o *objects, _ *store.GCS, _ lines) { clear(o.uploads) },
			append([]string{"*"}, all...)},
		"abandoned": {want, nil, func(t *testing.T, o *objects, s *store.GCS, j lines) {
			j.Add("another", "/upload?upload_id=1 another")
			store.Abandon(t.Context(), s, j)
			if len(o.uploads) > 0 || len(j) != 1 {
				t.Errorf("left %v, and in the journal %v", o.uploads, j)
			}
			j.Clear("another")
		}, all},
		"another content": {other, nil, func(t *testing.T, o *objects, s *store.GCS, j lines) {
			err := store.Resume(t.Context(), s, j, "key", bytes.NewReader(want), int64(len(want)))
			if err == nil || len(o.is) > 0 || len(j) > 0 {
				t.Errorf("%v, and in the journal %v", err, j)
			}
		}, all},
		"the service is not available": {want, nil, func(t *testing.T, o *objects, s *store.GCS, j lines) {
			o.inject(100, "PUT", "", refusing(http.StatusServiceUnavailable, "backendError", ""))
			err := store.Resume(t.Context(), s, j, "key", bytes.NewReader(want), int64(len(want)))
			if err == nil || len(j) != 1 {
				t.Errorf("%v, and in the journal %v", err, j)
			}
		}, []string{"*", last}},
	} {
		t.Run(name, func(t *testing.T) {
			o, g := serveObjects(t)
			s, j := g.open(t), lines{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			broken := false
			o.inject(100, "PUT", "", func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
				switch isLast := strings.HasPrefix(r.Header.Get("Content-Range"), "bytes "+last); {
				case isLast && c.breaks == nil:
					cancel()
				case isLast && !broken:
					broken = true
					return c.breaks(w, r)
				case !broken:
					return w, false
				}
				panic(http.ErrAbortHandler)
			})
			if err := store.Resume(ctx, s, j, "key", bytes.NewReader(c.before), int64(len(want))); err == nil ||
				len(j) != 1 {
				t.Fatalf("%v, and in the journal %v", err, j)
			}
			o.inject(0, "", "", nil)
			if c.then != nil {
				c.then(t, o, s, j)
			}
			o.inject(0, "", "", nil)
			before := len(o.requests())
			if err := store.Resume(t.Context(), s, j, "key", bytes.NewReader(want), int64(len(want))); err != nil {
				t.Fatal(err)
			}
			if sent := o.sent(before); !slices.Equal(sent, c.sent) {
				t.Errorf("sent %q", sent)
			}
			if got := get(t, s, "key"); !bytes.Equal(got, want) || len(j) > 0 {
				t.Errorf("other bytes came back, or the journal has %v", j)
			}
		})
	}
}

// Where an upload ends otherwise there is no object of it, or the one that there is to be.
func TestUploadToGCSThatCannotBeResumed(t *testing.T) {
	o, g := serveObjects(t)
	s := g.open(t)
	o.inject(1, "PUT", "bytes 8388608-", func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		clear(o.uploads)
		return w, false
	})
	err := put(s, "gone", content(20<<20))
	if reason(err) != v1alpha1.ReasonStoreUnreachable || !strings.Contains(err.Error(), "404 Not Found") ||
		strings.Contains(err.Error(), "upload_id") {
		t.Errorf("gone: %v", err)
	}
	o.inject(1, "PUT", "bytes 8388608-", func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		w.Header().Set("Range", "bytes=0-100")
		w.WriteHeader(http.StatusPermanentRedirect)
		return w, true
	})
	if err := put(s, "lost", content(20<<20)); reason(err) != v1alpha1.ReasonStoreUnreachable {
		t.Errorf("lost what it had: %v", err)
	}
	o.inject(100, "PUT", "bytes 8388608-", func(http.ResponseWriter, *http.Request) (http.ResponseWriter, bool) {
		panic(http.ErrAbortHandler)
	})
	err = put(s, "broken", content(20<<20))
	if reason(err) != v1alpha1.ReasonStoreUnreachable || strings.Contains(err.Error(), "upload_id") {
		t.Errorf("broken: %v", err)
	}
	o.mutex.Lock()
	o.fault, o.careless = nil, true
	o.mutex.Unlock()
	if err := put(s, "damaged", content(20<<20)); err == nil || !strings.Contains(err.Error(), "other content") {
		t.Errorf("damaged: %v", err)
	}
	if got := list(t, s, ""); len(got) != 0 {
		t.Errorf("there is %v", got)
	}
	o.mutex.Lock()
	o.careless, o.forgets = false, true
	o.mutex.Unlock()
	o.inject(1, "PUT", "bytes 16777216-", func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		return &half{ResponseWriter: w, left: 1}, false
	})
	if err := put(s, "key", content(20<<20)); !errors.Is(err, store.ErrExists) {
		t.Errorf("complete and forgotten: %v", err)
	}
	if got := get(t, s, "key"); !bytes.Equal(got, content(20<<20)) {
		t.Error("other bytes came back")
	}
}

func TestReadOfGCSIsResumed(t *testing.T) {
	o, g := serveObjects(t)
	s, want := g.open(t), content(3<<20)
	if err := put(s, "key", want); err != nil {
		t.Fatal(err)
	}
	o.inject(6, "GET", "", func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		return &half{ResponseWriter: w, left: 300_000}, false
	})
	if got := get(t, s, "key"); !bytes.Equal(got, want) {
		t.Error("other bytes came back")
	}
	o.inject(1, "GET", "", func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		fmt.Fprint(w, `{"items":[{"name":"some/prefix/b","size":"1"},{"name":"some/prefix/a","size":"1"}]}`)
		return w, true
	})
	if err := s.List(t.Context(), "", func(store.Object) error { return nil }); err == nil {
		t.Error("a list out of order was believed")
	}
}

// Each error names the bucket and the key, and says what would help.
func TestProblemsOfGCS(t *testing.T) {
	for name, c := range map[string]struct {
		status                int
		reason, message       string
		want, help, otherwise string
	}{
		"no bucket": {404, "notFound", "The specified bucket does not exist.", v1alpha1.ReasonBucketMissing, "create the bucket",
			v1alpha1.ReasonBucketMissing},
		"denied": {403, "forbidden", "backups@shop does not have storage.objects.create access.", v1alpha1.ReasonAccessDenied,
			"storage.objects.create access.: give the service account that the key in the Secret is of", v1alpha1.ReasonAccessDenied},
		"no token": {401, "authError", "Invalid Credentials", v1alpha1.ReasonAccessDenied, "Storage Object User",
			v1alpha1.ReasonAccessDenied},
		"retained": {403, "retentionPolicyNotMet", "", v1alpha1.ReasonLockUnsupported, "retention policy",
			v1alpha1.ReasonLockUnsupported},
		"unknown": {501, "notImplemented", "", v1alpha1.ReasonUnsupportedService, "does not know",
			v1alpha1.ReasonUnsupportedService},
		"broken": {400, "invalid", "Invalid argument.", v1alpha1.ReasonStoreUnreachable, "400 Bad Request: Invalid argument.",
			v1alpha1.ReasonStoreUnreachable},
	} {
		o, g := serveObjects(t)
		o.inject(100, "", "", refusing(c.status, c.reason, c.message))
		s := g.open(t)
		err := put(s, "key", content(10))
		if reason(err) != c.want || !strings.Contains(err.Error(), c.help) ||
			!strings.Contains(err.Error(), "some/prefix/key of bucket backups") {
			t.Errorf("%s: %s: %v", name, reason(err), err)
		}
		if _, err := s.Size(t.Context(), "key"); reason(err) != c.otherwise {
			t.Errorf("%s: size: %v", name, err)
		}
		if err := s.Delete(t.Context(), "key"); reason(err) != c.otherwise {
			t.Errorf("%s: delete: %v", name, err)
		}
	}
	o, g := serveObjects(t)
	o.inject(100, "", "", func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "something internal")
		return w, true
	})
	if err := put(g.open(t), "key", nil); reason(err) != v1alpha1.ReasonStoreUnreachable ||
		strings.Contains(err.Error(), "internal") {
		t.Errorf("another service: %v", err)
	}
}

func TestOpenOfGCSRefuses(t *testing.T) {
	_, g := serveObjects(t)
	for name, c := range map[string]struct {
		secret map[string][]byte
		says   string
	}{
		"no key":          {nil, "no JSON"},
		"another type":    {gcsSecret("type", "external_account"), "its type must be service_account"},
		"nobody's":        {gcsSecret("client_email", ""), "its type must be service_account"},
		"no PEM":          {gcsSecret("private_key", "secret"), "not in PEM"},
		"no private key":  {gcsSecret("private_key", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"), "RSA"},
		"no certificates": {map[string][]byte{v1alpha1.KeyStoreAuthority: []byte("x")}, "no certificate in PEM"},
	} {
		_, err := store.OpenGCS(g.spec(), c.secret)
		if reason(err) != v1alpha1.ReasonSecretInvalid || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "secret\"") {
			t.Errorf("%s: %v", name, err)
		}
	}
	spec := g.spec()
	spec.Endpoint = "ftp://x"
	if _, err := store.OpenGCS(spec, gcsSecret()); reason(err) != v1alpha1.ReasonEndpointInvalid {
		t.Errorf("endpoint: %v", err)
	}
}

// What keeps a key, or the identity of the pod, from getting a token is said.
func TestNoTokenOfGoogle(t *testing.T) {
	says := func(status int, text string) func(*google) {
		return func(g *google) {
			g.refuse = func(w http.ResponseWriter) {
				w.WriteHeader(status)
				fmt.Fprint(w, text)
			}
		}
	}
	for name, c := range map[string]struct {
		pod          bool
		of           func(*google)
		reason, says string
	}{
		"another key": {false, says(400, `{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`),
			v1alpha1.ReasonAccessDenied, "400 Bad Request: invalid_grant: Invalid JWT Signature.: put a key"},
		"clock": {false, says(400, `{"error":"invalid_grant","error_description":"Invalid JWT: Token must be a short-lived token `+
			`(60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim."}`),
			v1alpha1.ReasonClockSkewed, "the clock of the host is wrong"},
		"no time":      {false, says(503, "something internal"), v1alpha1.ReasonStoreUnreachable, "answers 503 Service Unavailable"},
		"nobody there": {false, func(g *google) { g.Close() }, v1alpha1.ReasonStoreUnreachable, "connection refused"},
		"no identity":  {true, says(404, "Not Found"), v1alpha1.ReasonIdentityMissing, "404 Not Found: enable Workload Identity"},
		"may not be it": {true, says(403, "Unable to generate access token\n"), v1alpha1.ReasonAccessDenied,
			"403 Forbidden: Unable to generate access token: let the service account"},
		"not yet":            {true, says(500, ""), v1alpha1.ReasonStoreUnreachable, "the metadata server answers 500"},
		"no token in it":     {true, says(200, "{}"), v1alpha1.ReasonStoreUnreachable, "the metadata server answers 200"},
		"no metadata server": {true, func(g *google) { g.Close() }, v1alpha1.ReasonIdentityMissing, "since no metadata server"},
	} {
		t.Run(name, func(t *testing.T) {
			_, g := serveObjects(t)
			open := g.open
			if c.pod {
				open = g.asPod
			}
			s := open(t)
			c.of(g)
			err := put(s, "key", nil)
			if reason(err) != c.reason || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "internal") {
				t.Errorf("%s: %v", reason(err), err)
			}
		})
	}
}

// Tokens of the pod's identity are asked for as Google wants it, and its rights are what is
// missing.
func TestIdentityOfGoogle(t *testing.T) {
	o, g := serveObjects(t)
	s := g.asPod(t)
	if err := store.Check(t.Context(), s, "me", noon); err != nil {
		t.Error(err)
	}
	if got := g.all(); got[0] != "Google https://www.googleapis.com/auth/devstorage.read_write" {
		t.Errorf("asked %q", got)
	}
	o.inject(100, "", "", refusing(http.StatusForbidden, "forbidden", "Denied."))
	if err := put(s, "key", nil); reason(err) != v1alpha1.ReasonAccessDenied || strings.Contains(err.Error(), "Secret") {
		t.Errorf("denied: %v", err)
	}
}
