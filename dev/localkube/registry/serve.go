package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"helenus.io/helenus/dev/localkube/state"
)

// ServeCommand is the hidden command of localkube that runs a registry.
const ServeCommand = "registry-serve"

// Serve serves the registry in dir until ctx is done.
func Serve(ctx context.Context, address, dir string) error {
	handler, err := newHandler(ctx, dir)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// manifest is a stored manifest: the library keeps blobs on disk but manifests
// in memory alone, so they are written beside and pushed to it again at start.
type manifest struct {
	Path        string `json:"path"`
	ContentType string `json:"contentType"`
	Content     []byte `json:"content"`
}

type handler struct {
	dir   string
	inner http.Handler
}

func newHandler(ctx context.Context, dir string) (http.Handler, error) {
	blobs := filepath.Join(dir, "blobs")
	for _, d := range []string{blobs, filepath.Join(dir, "manifests")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("make the registry's folder: %w", err)
		}
	}
	h := &handler{dir: dir, inner: registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)),
		registry.Logger(log.New(io.Discard, "", 0)),
	)}
	return h, h.restore(ctx)
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !admit(w, r) {
		return
	}
	r.URL.Path = rewrite(r.URL.Path, r.URL.Query().Get("ns"))
	if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
		h.inner.ServeHTTP(w, r)
		return
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m := manifest{Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"), Content: content}
	answer := h.put(r.Context(), m)
	if answer.Code < 300 {
		if err := h.save(m); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// put hands a manifest to the library.
func (h *handler) put(ctx context.Context, m manifest) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPut, m.Path, bytes.NewReader(m.Content))
	r.Header.Set("Content-Type", m.ContentType)
	answer := httptest.NewRecorder()
	h.inner.ServeHTTP(answer, r)
	return answer
}

func (h *handler) save(m manifest) error {
	content, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	return state.WriteFile(filepath.Join(h.dir, "manifests", url.PathEscape(m.Path)+".json"), content, 0o644)
}

// restore pushes the stored manifests again: those of images before those of
// indexes, which the library takes only when it knows their images.
func (h *handler) restore(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(h.dir, "manifests", "*.json"))
	if err != nil {
		return fmt.Errorf("list manifests: %w", err)
	}
	var all []manifest
	for _, file := range files {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		var m manifest
		if err := json.Unmarshal(content, &m); err != nil {
			return fmt.Errorf("read manifest %s: %w", file, err)
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b manifest) int { return rank(a) - rank(b) })
	for _, m := range all {
		if answer := h.put(ctx, m); answer.Code >= 300 {
			return fmt.Errorf("restore manifest %s: %s", m.Path, strings.TrimSpace(answer.Body.String()))
		}
	}
	return nil
}

func rank(m manifest) int {
	if types.MediaType(m.ContentType).IsIndex() {
		return 1
	}
	return 0
}
