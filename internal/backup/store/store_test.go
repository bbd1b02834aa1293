package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
)

const bucket = "backups"

// service is one that speaks S3. It lacks two things of the true one, which are added here: the
// condition on the completion of parts, and that content is held to its SHA-256.
type service struct {
	*httptest.Server
	spec v1alpha1.S3Store

	mutex sync.Mutex
	// fault may answer a request itself, or break the answer.
	fault func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool)
	seen  []string
	// locked says until when objects are; nil if the bucket locks none. Standing is the rule by
	// which it locks all.
	locked   map[string]time.Time
	standing string
}

func serve(t *testing.T, tls bool) *service {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(backend).Server()
	s := &service{spec: v1alpha1.S3Store{Bucket: bucket, Prefix: "some/prefix", Region: "eu-1", SecretName: "key"}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		s.seen = append(s.seen, r.Method+" "+r.URL.RequestURI())
		fault := s.fault
		s.mutex.Unlock()
		if fault != nil {
			var answered bool
			if w, answered = fault(w, r); answered {
				return
			}
		}
		key := strings.TrimPrefix(r.URL.Path, "/"+bucket+"/")
		switch _, err := backend.HeadObject(bucket, key); {
		case r.Header.Get("Authorization") == "":
			answer(w, http.StatusForbidden, "AccessDenied")
			return
		case r.Method == http.MethodPost && r.URL.Query().Get("uploadId") != "" && err == nil &&
			r.Header.Get("If-None-Match") == "*":
			answer(w, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		if s.locks(w, r, key) {
			return
		}
		if r.Method == http.MethodPut {
			content, err := io.ReadAll(r.Body)
			sum := sha256.Sum256(content)
			if err != nil || hex.EncodeToString(sum[:]) != r.Header.Get("X-Amz-Content-Sha256") {
				answer(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch")
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(content))
		}
		fake.ServeHTTP(w, r)
	}))
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	s.spec.Endpoint = s.URL
	t.Cleanup(s.Close)
	return s
}

func answer(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s.</Message></Error>", code, code)
}

func secret() map[string][]byte {
	return map[string][]byte{v1alpha1.KeyAccessKeyID: []byte("someone\n"),
		v1alpha1.KeySecretAccessKey: []byte("secret")}
}

func (s *service) open(t *testing.T) *store.S3 {
	t.Helper()
	opened, err := store.OpenS3(s.spec, secret())
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// inject has a fault happen to so many requests that match.
func (s *service) inject(times int, match func(*http.Request) bool,
	do func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.fault = func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
		s.mutex.Lock()
		hit := times > 0 && match(r)
		if hit {
			times--
		}
		s.mutex.Unlock()
		if !hit {
			return w, false
		}
		return do(w, r)
	}
}

func (s *service) requests() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.seen)
}

func stores(t *testing.T) map[string]store.Store {
	all := map[string]store.Store{"bucket": serve(t, false).open(t), "directory": store.Directory(t.TempDir()),
		"container": serveBlobs(t).open(t), "encrypted": encrypt(t, serve(t, false).open(t), identity(t)),
		"role": asRole(t, newRole(t, 0)), "identity of Azure": newDirectory(t).open(t)}
	_, google := serveObjects(t)
	_, ofPods := serveObjects(t)
	all["bucket of Google"], all["identity of Google"] = google.open(t), ofPods.asPod(t)
	if *emulator != "" {
		all["emulator"] = ofEmulator(t)
	}
	if *azurite != "" {
		all["azurite"] = ofAzurite(t)
	}
	if *s3 != "" {
		all["service"], _ = ofService(t, false, nil)
	}
	return all
}

func content(size int) []byte {
	out := make([]byte, size)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(out)
	return out
}

func put(s store.Store, key string, content []byte) error {
	return s.Put(context.Background(), key, bytes.NewReader(content), int64(len(content)))
}

func get(t *testing.T, s store.Store, key string) []byte {
	t.Helper()
	r, err := s.Get(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func list(t *testing.T, s store.Store, prefix string) []store.Object {
	t.Helper()
	var out []store.Object
	if err := s.List(context.Background(), prefix, func(o store.Object) error {
		if age := time.Since(o.Written); age < -time.Minute || age > time.Hour {
			t.Errorf("%s was written %s ago", o.Key, age)
		}
		o.Written = time.Time{}
		out = append(out, o)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// What every store must do.
func TestStore(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			for size, key := range map[int]string{0: "empty", 1: "c/one", 100_000: "c/small", 8 << 20: "c/part",
				20<<20 + 1: "d/parts"} {
				if err := put(s, key, content(size)); err != nil {
					t.Fatal(err)
				}
				if got := get(t, s, key); !bytes.Equal(got, content(size)) {
					t.Errorf("%s has %d other bytes than the %d that were written", key, len(got), size)
				}
				if got, err := s.Size(t.Context(), key); err != nil || got != int64(size) {
					t.Errorf("size of %s is %d, %v", key, got, err)
				}
				if err := put(s, key, content(size+5)); !errors.Is(err, store.ErrExists) {
					t.Errorf("%s was written again: %v", key, err)
				}
				if got, err := s.Size(t.Context(), key); err != nil || got != int64(size) {
					t.Errorf("size of %s has become %d, %v", key, got, err)
				}
			}
			if got, want := list(t, s, "c/"), []store.Object{{Key: "c/one", Size: 1}, {Key: "c/part", Size: 8 << 20},
				{Key: "c/small", Size: 100_000}}; !slices.Equal(got, want) {
				t.Errorf("c/ has %v, not %v", got, want)
			}
			if got := list(t, s, ""); len(got) != 5 {
				t.Errorf("all are %v", got)
			}
			if got, err := s.Directories(t.Context()); err != nil || !slices.Equal(got, []string{"c", "d"}) {
				t.Errorf("the directories are %q, %v", got, err)
			}
			stop := errors.New("enough")
			if err := s.List(t.Context(), "", func(store.Object) error { return stop }); !errors.Is(err, stop) {
				t.Errorf("a list that is stopped returns %v", err)
			}
			for range 2 {
				if err := s.Delete(t.Context(), "c/one"); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Get(t.Context(), "c/one"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("one that was deleted: %v", err)
			}
			if _, err := s.Size(t.Context(), "c/one"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("one that was deleted: %v", err)
			}
		})
	}
}

// Content of another length than announced leaves no object.
func TestPutOfAnotherLength(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int64{10, 20 << 20} {
				for _, wrong := range []int{-1, 1} {
					r := bytes.NewReader(content(int(size) + wrong))
					if err := s.Put(t.Context(), "key", r, size); err == nil {
						t.Errorf("%d bytes were written as %d", int(size)+wrong, size)
					}
				}
			}
			if got := list(t, s, ""); len(got) != 0 {
				t.Errorf("there is %v", got)
			}
		})
	}
}

// What services are sent is asked for first, in small pieces, and an error of that ends it.
func TestContentIsSlowed(t *testing.T) {
	all := stores(t)
	for _, name := range []string{"bucket", "container", "bucket of Google"} {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 9 << 20
			var asked, most atomic.Int64
			refused := errors.New("no more")
			slowed := func(until int64) error {
				asked.Store(0)
				ctx := store.Slowed(t.Context(), func(_ context.Context, bytes int) error {
					most.Store(max(most.Load(), int64(bytes)))
					if asked.Add(int64(bytes)) > until {
						return refused
					}
					return nil
				})
				return s.Put(ctx, fmt.Sprint("key", until), bytes.NewReader(content(size)), size)
			}
			if err := slowed(2 * size); err != nil || asked.Load() < size || most.Load() > 64<<10 {
				t.Errorf("%d bytes were asked for, up to %d at once: %v", asked.Load(), most.Load(), err)
			}
			if err := slowed(size / 2); err == nil {
				t.Error("it is there, though it was refused")
			}
		})
	}
}

func unavailable(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
	answer(w, http.StatusServiceUnavailable, "SlowDown")
	return w, true
}

func anything(*http.Request) bool { return true }

func TestRequestsAreAttemptedAgain(t *testing.T) {
	service := serve(t, false)
	s := service.open(t)
	for _, size := range []int{10, 20 << 20} {
		key := fmt.Sprint(size)
		service.inject(3, anything, unavailable)
		if err := put(s, key, content(size)); err != nil {
			t.Fatal(err)
		}
		service.inject(3, anything, unavailable)
		if got := get(t, s, key); !bytes.Equal(got, content(size)) {
			t.Error("other bytes came back")
		}
	}
	service.inject(100, anything, unavailable)
	before := len(service.requests())
	err := put(s, "never", content(10))
	if got := len(service.requests()) - before; got != 5 || reason(err) != v1alpha1.ReasonStoreUnreachable {
		t.Errorf("%d requests, %v", got, err)
	}
}

// One of many that write the same at once may be turned away though there is none yet.
func TestConflict(t *testing.T) {
	service := serve(t, false)
	s := service.open(t)
	service.inject(1, anything, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		answer(w, http.StatusConflict, "ConditionalRequestConflict")
		return w, true
	})
	if err := put(s, "key", content(10)); err != nil {
		t.Fatal(err)
	}
}

// half sends half of the answer.
type half struct {
	http.ResponseWriter
	left int
}

func (h *half) Write(p []byte) (int, error) {
	n, err := h.ResponseWriter.Write(p[:min(len(p), h.left)])
	if h.left -= n; err == nil && h.left == 0 {
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func TestReadIsResumed(t *testing.T) {
	service := serve(t, false)
	s := service.open(t)
	want := content(3 << 20)
	if err := put(s, "key", want); err != nil {
		t.Fatal(err)
	}
	service.inject(6, anything, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		return &half{ResponseWriter: w, left: 300_000}, false
	})
	if got := get(t, s, "key"); !bytes.Equal(got, want) {
		t.Error("other bytes came back")
	}
	if got := len(service.requests()); got != 8 {
		t.Errorf("%d requests: %v", got, service.requests())
	}
}

// What has other bytes, or loses its end for good, is an error and not a shorter object.
func TestReadThatCannotBeResumed(t *testing.T) {
	for name, then := range map[string]func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool){
		"gone": func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
			answer(w, http.StatusNotFound, "NoSuchKey")
			return w, true
		},
		"shorter": func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
			_, _ = w.Write([]byte("x"))
			return w, true
		},
		"breaking": func(http.ResponseWriter, *http.Request) (http.ResponseWriter, bool) {
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := serve(t, false)
			s := service.open(t)
			if err := put(s, "key", content(1<<20)); err != nil {
				t.Fatal(err)
			}
			first := true
			service.inject(100, anything, func(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
				if first {
					first = false
					return &half{ResponseWriter: w, left: 300_000}, false
				}
				return then(w, r)
			})
			r, err := s.Get(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			if got, err := io.ReadAll(r); err == nil || len(got) != 300_000 {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// Parts of an object that was not completed are removed.
func TestPartsAreAbandoned(t *testing.T) {
	service := serve(t, false)
	s := service.open(t)
	second := func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "2" }
	service.inject(100, second, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		answer(w, http.StatusForbidden, "AccessDenied")
		return w, true
	})
	if err := put(s, "key", content(20<<20)); reason(err) != v1alpha1.ReasonAccessDenied {
		t.Errorf("%v", err)
	}
	seen := service.requests()
	if last := seen[len(seen)-1]; !strings.HasPrefix(last, "DELETE ") || !strings.Contains(last, "uploadId=") {
		t.Errorf("the last request was %s", last)
	}
	if got := list(t, s, ""); len(got) != 0 {
		t.Errorf("there is %v", got)
	}
}

// The answer to the completion of an object was lost.
func TestCompletedTwice(t *testing.T) {
	service := serve(t, false)
	s := service.open(t)
	complete := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") }
	service.inject(1, complete, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		return &half{ResponseWriter: w, left: 1}, false
	})
	if err := put(s, "key", content(20<<20)); !errors.Is(err, store.ErrExists) {
		t.Errorf("%v", err)
	}
	if got := get(t, s, "key"); !bytes.Equal(got, content(20<<20)) {
		t.Error("other bytes came back")
	}
}

// A list that is not in order would have garbage collected that is none.
func TestListOutOfOrder(t *testing.T) {
	service := serve(t, false)
	s := service.open(t)
	service.inject(1, anything, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
		fmt.Fprint(w, "<ListBucketResult><Name>backups</Name><KeyCount>2</KeyCount>"+
			"<Contents><Key>some/prefix/b</Key><Size>1</Size></Contents>"+
			"<Contents><Key>some/prefix/a</Key><Size>1</Size></Contents></ListBucketResult>")
		return w, true
	})
	if err := s.List(t.Context(), "", func(store.Object) error { return nil }); err == nil {
		t.Error("it was believed")
	}
}

func TestContextEnds(t *testing.T) {
	service := serve(t, false)
	s := service.open(t)
	service.inject(100, anything, unavailable)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Put(ctx, "key", strings.NewReader("x"), 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func reason(err error) string {
	var p *store.Problem
	if errors.As(err, &p) {
		return p.Reason
	}
	return ""
}

// Each error names the bucket and the key, and says what would help.
func TestProblems(t *testing.T) {
	refuse := func(status int, code string) func(*service) {
		return func(s *service) {
			s.inject(100, anything, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
				answer(w, status, code)
				return w, true
			})
		}
	}
	for name, c := range map[string]struct {
		tls    bool
		make   func(*service)
		reason string
		help   string
	}{
		"no bucket": {make: func(s *service) { s.spec.Bucket = "another" }, reason: v1alpha1.ReasonBucketMissing,
			help: "create the bucket"},
		"denied": {make: refuse(403, "AccessDenied"), reason: v1alpha1.ReasonAccessDenied, help: "ListBucket"},
		"wrong key": {make: refuse(403, "SignatureDoesNotMatch"), reason: v1alpha1.ReasonAccessDenied,
			help: "in the Secret"},
		"clock":  {make: refuse(403, "RequestTimeTooSkewed"), reason: v1alpha1.ReasonClockSkewed, help: "clock"},
		"region": {make: refuse(301, "PermanentRedirect"), reason: v1alpha1.ReasonBucketMissing, help: "region"},
		"unknown": {make: refuse(501, "NotImplemented"), reason: v1alpha1.ReasonUnsupportedService,
			help: "does not know"},
		"authority": {tls: true, make: func(*service) {}, reason: v1alpha1.ReasonStoreUnreachable, help: "ca.crt"},
		"no TLS": {make: func(s *service) { s.spec.Endpoint = "https" + strings.TrimPrefix(s.URL, "http") },
			reason: v1alpha1.ReasonStoreUnreachable, help: "http://"},
		"nobody there": {make: func(s *service) { s.Close() }, reason: v1alpha1.ReasonStoreUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := serve(t, c.tls)
			c.make(service)
			s := service.open(t)
			err := put(s, "key", content(10))
			if reason(err) != c.reason || !strings.Contains(err.Error(), c.help) {
				t.Errorf("%s: %v", reason(err), err)
			}
			if !strings.Contains(err.Error(), "some/prefix/key of bucket "+service.spec.Bucket) {
				t.Errorf("not named: %v", err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("tells the key: %v", err)
			}
		})
	}
}
