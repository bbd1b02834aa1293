package store_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"helenus.io/helenus/internal/backup/store"
)

// lines are a journal of uploads.
type lines map[string][]string

func (l lines) Names() []string            { return slices.Collect(maps.Keys(l)) }
func (l lines) Lines(name string) []string { return l[name] }
func (l lines) Add(name, line string)      { l[name] = append(l[name], line) }
func (l lines) Clear(name string)          { delete(l, name) }

// unfinished are the ids of uploads that the service has.
func (s *service) unfinished(t *testing.T) []string {
	t.Helper()
	_, address, _ := strings.Cut(s.URL, "://")
	core, err := minio.NewCore(address, &minio.Options{Creds: credentials.NewStaticV4("someone", "secret", ""),
		Region: "eu-1"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := core.ListMultipartUploads(t.Context(), bucket, "", "", "", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, u := range all.Uploads {
		out = append(out, u.UploadID)
	}
	return out
}

// parts are the numbers of those that were sent since so many requests.
func (s *service) parts(since int) string {
	var out []string
	for _, r := range s.requests()[since:] {
		_, number, is := strings.Cut(r, "partNumber=")
		if is && strings.HasPrefix(r, "PUT ") {
			number, _, _ = strings.Cut(number, "&")
			out = append(out, number)
		}
	}
	return strings.Join(out, " ")
}

func withPart(number string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == number }
}

// interrupt an upload of some content while its fourth part is sent. When it returns, the service
// has three.
func interrupt(t *testing.T, service *service, s store.Store, j store.Journal, key string, content []byte) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	service.inject(1, withPart("4"), func(http.ResponseWriter, *http.Request) (http.ResponseWriter, bool) {
		cancel()
		panic(http.ErrAbortHandler)
	})
	err := store.Resume(ctx, s, j, key, bytes.NewReader(content), int64(len(content)))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("it was not interrupted: %v", err)
	}
}

// An upload that was interrupted does not send again what the service has of it. The object is the
// right one, whatever that was.
func TestResume(t *testing.T) {
	want, other := content(33<<20), content(33<<20)
	other[9<<20]++
	for name, c := range map[string]struct {
		first  []byte // what was uploaded before
		before func(t *testing.T, service *service, s store.Store, j lines)
		sent   string
	}{
		"nothing was sent": {nil, nil, "1 2 3 4 5"},
		"killed":           {want, nil, "4 5"},
		"the store does not answer": {nil, func(t *testing.T, service *service, s store.Store, j lines) {
			service.inject(100, withPart("3"), unavailable)
			if err := store.Resume(t.Context(), s, j, "key", bytes.NewReader(want), int64(len(want))); err == nil {
				t.Fatal("it was not interrupted")
			}
			service.inject(100, anything, unavailable)
			if err := store.Resume(t.Context(), s, j, "key", bytes.NewReader(want), int64(len(want))); err == nil {
				t.Fatal("it was resumed")
			}
		}, "3 4 5"},
		"another content": {other, nil, "2 4 5"},
		"twice, with another content": {other, func(t *testing.T, service *service, s store.Store, j lines) {
			interrupt(t, service, s, j, "key", want)
		}, "4 5"},
		"the end of a line is lost": {want, func(_ *testing.T, _ *service, _ store.Store, j lines) {
			for name, all := range j {
				last := &j[name][len(all)-1]
				*last = (*last)[:30]
			}
		}, "3 4 5"},
		"another part than was sent": {want, func(_ *testing.T, _ *service, _ store.Store, j lines) {
			for name, all := range j {
				last := &j[name][len(all)-1]
				*last = (*last)[:len(*last)-1] + "x"
			}
		}, "3 4 5"},
		"the store has removed the parts": {want, func(t *testing.T, service *service, s store.Store, j lines) {
			store.Abandon(t.Context(), s, maps.Clone(j))
			if left := service.unfinished(t); len(left) > 0 {
				t.Fatalf("there is %v", left)
			}
		}, "1 2 3 4 5"},
		"parts must not be listed": {want, func(_ *testing.T, service *service, _ store.Store, _ lines) {
			listed := func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Query().Has("uploadId") }
			service.inject(100, listed, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
				answer(w, http.StatusForbidden, "AccessDenied")
				return w, true
			})
		}, "1 2 3 4 5"},
	} {
		t.Run(name, func(t *testing.T) {
			service, j := serve(t, false), lines{}
			s := service.open(t)
			if c.first != nil {
				interrupt(t, service, s, j, "key", c.first)
			}
			if c.before != nil {
				c.before(t, service, s, j)
			}
			if !strings.Contains(name, "listed") {
				service.inject(0, anything, unavailable)
			}
			before := len(service.requests())
			if err := store.Resume(t.Context(), s, j, "key", bytes.NewReader(want), int64(len(want))); err != nil {
				t.Fatal(err)
			}
			if got := service.parts(before); got != c.sent {
				t.Errorf("sent the parts %s, want %s", got, c.sent)
			}
			if got := get(t, s, "key"); !bytes.Equal(got, want) {
				t.Error("it has other bytes")
			}
			if left := service.unfinished(t); len(left) > 0 || len(j) > 0 {
				t.Errorf("left %v, and in the journal %v", left, j)
			}
		})
	}
}

// An object that is there meanwhile is not written over by one that is resumed.
func TestResumeOfWhatIsThere(t *testing.T) {
	service, j := serve(t, false), lines{}
	s, want := service.open(t), content(33<<20)
	interrupt(t, service, s, j, "key", want)
	if err := put(s, "key", content(3)); err != nil {
		t.Fatal(err)
	}
	err := store.Resume(t.Context(), s, j, "key", bytes.NewReader(want), int64(len(want)))
	if !errors.Is(err, store.ErrExists) || len(get(t, s, "key")) != 3 {
		t.Errorf("%v", err)
	}
	if left := service.unfinished(t); len(left) > 0 || len(j) > 0 {
		t.Errorf("left %v, and in the journal %v", left, j)
	}
}

// What cannot be resumed leaves no parts: of content with other bytes each time, or which does not
// come to its end, and what a store refuses.
func TestNotResumed(t *testing.T) {
	whole := content(33 << 20)
	for name, try := range map[string]func(t *testing.T, service *service, j lines){
		"encrypted": func(t *testing.T, service *service, j lines) {
			interrupt(t, service, encrypt(t, service.open(t), identity(t)), j, "key", whole)
		},
		"content": func(t *testing.T, service *service, j lines) {
			if err := store.Resume(t.Context(), service.open(t), j, "key", bytes.NewReader(whole[1:]),
				int64(len(whole))); err == nil {
				t.Error("it is there")
			}
		},
		"refused": func(t *testing.T, service *service, j lines) {
			complete := func(r *http.Request) bool {
				return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
			}
			service.inject(100, complete, func(w http.ResponseWriter, _ *http.Request) (http.ResponseWriter, bool) {
				answer(w, http.StatusBadRequest, "InvalidPart")
				return w, true
			})
			if err := store.Resume(t.Context(), service.open(t), j, "key", bytes.NewReader(whole),
				int64(len(whole))); err == nil {
				t.Error("it is there")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			service, j := serve(t, false), lines{}
			try(t, service, j)
			if left := service.unfinished(t); len(left) > 0 || len(j) > 0 {
				t.Errorf("left %v, and in the journal %v", left, j)
			}
		})
	}
}

// What nobody resumes is removed, and nothing of another store.
func TestAbandon(t *testing.T) {
	one, other, j := serve(t, false), serve(t, false), lines{}
	interrupt(t, one, one.open(t), j, "key", content(33<<20))
	interrupt(t, other, other.open(t), j, "key", content(33<<20))
	store.Abandon(t.Context(), one.open(t), j)
	if left := one.unfinished(t); len(left) > 0 || len(other.unfinished(t)) != 1 || len(j) != 1 {
		t.Errorf("left %v, of the other %v, and in the journal %v", left, other.unfinished(t), j)
	}
}
