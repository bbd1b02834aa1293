// Package recordserver is an API server in memory, as far as an agent needs one: get, list and
// watch of one object by name, and the JSON patch that writes a status. Tests change objects, cut
// watches off and make requests fail. It imports the standard library and the API machinery's
// types.
package recordserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Server is an http.Handler.
type Server struct {
	// Token that requests must carry; empty for any.
	Token string

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // by path of the object
	// history of events by path of the collection; events below compacted are gone.
	history   []event
	compacted int
	changed   chan struct{}
	down      bool
	writes    int
	cut       chan struct{}
}

type event struct {
	version int
	kind    string
	path    string
	object  map[string]any
}

// New is a server without objects.
func New() *Server {
	return &Server{objects: map[string]map[string]any{}, changed: make(chan struct{}), cut: make(chan struct{}),
		version: 100}
}

// Put creates or replaces an object at its path, such as /api/v1/namespaces/x/configmaps/y. A
// changed spec raises the generation; the status stays if the new object has none.
func (s *Server) Put(at string, object any) {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var next map[string]any
	if err := json.Unmarshal(text, &next); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	metadata := metadataOf(next)
	metadata["name"] = path.Base(at)
	old := s.objects[at]
	generation := 1.0
	if old != nil {
		generation, _ = metadataOf(old)["generation"].(float64)
		if !same(old["spec"], next["spec"]) {
			generation++
		}
		if status, found := old["status"]; found {
			next["status"] = status
		}
	}
	metadata["generation"] = generation
	s.store("MODIFIED", at, next)
}

// Delete removes an object.
func (s *Server) Delete(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object := s.objects[at]; object != nil {
		s.store("DELETED", at, object)
		delete(s.objects, at)
	}
}

// Get decodes an object; it says false if there is none.
func (s *Server) Get(at string, into any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, found := s.objects[at]
	if !found {
		return false
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		panic(err)
	}
	return true
}

// Changed is closed at the next change of anything.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Writes is the number of writes that were accepted.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Compact forgets all events up to now: a watch from before must list again.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.compacted, s.history = s.version, nil
}

// CutWatches ends all watches that run.
func (s *Server) CutWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// SetToken asks for another token from now on.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Token = token
}

// SetDown makes every request fail with 503, or no more.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	if down {
		close(s.cut)
		s.cut = make(chan struct{})
	}
}

func (s *Server) store(kind, at string, object map[string]any) {
	s.version++
	metadataOf(object)["resourceVersion"] = strconv.Itoa(s.version)
	s.objects[at] = object
	text, _ := json.Marshal(object)
	var copied map[string]any
	_ = json.Unmarshal(text, &copied)
	s.history = append(s.history, event{s.version, kind, at, copied})
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down, token := s.down, s.Token
	s.mu.Unlock()
	switch {
	case down:
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "down")
	case token != "" && r.Header.Get("Authorization") != "Bearer "+token:
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
	case r.Method == http.MethodPatch:
		s.patch(w, r)
	case r.Method != http.MethodGet:
		refuse(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, r.Method)
	case r.URL.Query().Get("watch") == "true":
		s.watch(w, r)
	default:
		s.list(w, r)
	}
}

func nameOf(r *http.Request) string {
	return strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if nameOf(r) == "" {
		object, found := s.objects[r.URL.Path]
		if !found {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, r.URL.Path)
			return
		}
		_ = json.NewEncoder(w).Encode(object)
		return
	}
	items := []any{}
	if object, found := s.objects[r.URL.Path+"/"+nameOf(r)]; found {
		items = append(items, object)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)},
		"items": items})
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "resourceVersion")
		return
	}
	at := r.URL.Path + "/" + nameOf(r)
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	timeout := time.After(time.Duration(max(seconds, 1)) * time.Second)
	flusher, _ := w.(http.Flusher)
	w.WriteHeader(http.StatusOK)
	flusher.Flush()
	out := json.NewEncoder(w)
	for {
		s.mu.Lock()
		changed, cut, gone := s.changed, s.cut, from < s.compacted
		var news []event
		for _, e := range s.history {
			if e.version > from && e.path == at {
				news = append(news, e)
			}
		}
		s.mu.Unlock()
		if gone {
			_ = out.Encode(map[string]any{"type": "ERROR",
				"object": status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")})
			return
		}
		for _, e := range news {
			if out.Encode(map[string]any{"type": e.kind, "object": e.object}) != nil {
				return
			}
			from = e.version
		}
		flusher.Flush()
		select {
		case <-changed:
		case <-cut:
			return
		case <-timeout:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) patch(w http.ResponseWriter, r *http.Request) {
	at, isStatus := strings.CutSuffix(r.URL.Path, "/status")
	body, err := io.ReadAll(r.Body)
	var patch []struct {
		Op, Path string
		Value    any
	}
	if err == nil {
		err = json.Unmarshal(body, &patch)
	}
	if err != nil || !isStatus || r.Header.Get("Content-Type") != string(types.JSONPatchType) ||
		r.URL.Query().Get("fieldManager") == "" ||
		len(patch) != 2 || patch[0].Op != "test" || patch[0].Path != "/metadata/uid" || patch[1].Op != "add" ||
		patch[1].Path != "/status" {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest,
			fmt.Sprintf("want a JSON patch that tests the uid and adds the status: %v", err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	object, found := s.objects[at]
	if !found {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, at)
		return
	}
	if patch[0].Value != metadataOf(object)["uid"] {
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			"the server rejected our request due to an error in our request")
		return
	}
	s.writes++
	if !same(object["status"], patch[1].Value) {
		next := map[string]any{}
		for key, value := range object {
			next[key] = value
		}
		metadata := map[string]any{}
		for key, value := range metadataOf(object) {
			metadata[key] = value
		}
		next["metadata"], next["status"] = metadata, patch[1].Value
		s.store("MODIFIED", at, next)
		object = next
	}
	_ = json.NewEncoder(w).Encode(object)
}

func metadataOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	return metadata
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: message} //nolint:gosec // an HTTP status
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, reason, message))
}
