package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Timing of watches.
const (
	// watchSeconds is how long the server lets one watch run. It ends it by itself then, which is
	// no error.
	watchSeconds = 300
	// silence is how long a watch may say nothing before it counts as dead: the server sends a
	// bookmark about once a minute.
	silence = 150 * time.Second
	// The back-off between two attempts that failed.
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
)

// Watcher follows one object by its name: list, then watch from there, and again after whatever
// happens. The object may not exist (yet).
type Watcher struct {
	api *API
	// path of the collection, such as /api/v1/namespaces/x/configmaps.
	path, name string
	// seen is told the JSON of the object, nil for one that does not exist; once after each list,
	// and after each change.
	seen func(raw []byte)
	// heard is told whenever the server has answered anything.
	heard func()
	// failed is told what goes wrong.
	failed func(error)
	// random is between 0 and 1, for the jitter.
	random func() float64
}

// Run follows the object until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		err := w.follow(ctx, func() { failures = 0 })
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue
		}
		w.failed(err)
		pause := min(firstPause<<min(failures, 10), longestPause)
		failures++
		// Full jitter: hundreds of agents lose the same API server at the same moment.
		timer := time.NewTimer(pause/2 + time.Duration(w.random()*float64(pause)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// follow lists the object and watches it from there on. It returns nil when another list is due,
// which is not a failure.
func (w *Watcher) follow(ctx context.Context, worked func()) error {
	selector := url.Values{"fieldSelector": {"metadata.name=" + w.name}}
	var list struct {
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := w.api.get(ctx, w.path, selector, &list); err != nil {
		return fmt.Errorf("list %s: %w", w.name, err)
	}
	w.heard()
	switch len(list.Items) {
	case 0:
		w.seen(nil)
	case 1:
		w.seen(list.Items[0])
	default:
		return fmt.Errorf("list %s: %d objects of one name", w.name, len(list.Items))
	}
	version := list.ResourceVersion
	for ctx.Err() == nil {
		next, err := w.watch(ctx, selector, version, worked)
		switch {
		case err == nil:
			version = next
		case Refused(err, http.StatusGone):
			return nil // the server no longer has that version: list again
		default:
			return fmt.Errorf("watch %s: %w", w.name, err)
		}
	}
	return nil
}

// watch is one connection. It returns the version from which the next one continues.
func (w *Watcher) watch(ctx context.Context, selector url.Values, version string, worked func()) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dead := time.AfterFunc(silence, func() {
		cancel(errors.New("the server has said nothing for " + silence.String()))
	})
	defer dead.Stop()

	query := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version},
		"timeoutSeconds": {strconv.Itoa(watchSeconds)}, "fieldSelector": selector["fieldSelector"],
	}
	response, err := w.api.do(ctx, http.MethodGet, w.path, query, "", nil)
	if err != nil {
		return version, err
	}
	defer response.Body.Close() //nolint:errcheck // the end of a stream
	worked()
	w.heard()
	stream := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := stream.Decode(&event); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return version, cause
			}
			if errors.Is(err, io.EOF) {
				return version, nil
			}
			return version, fmt.Errorf("read event: %w", err)
		}
		dead.Reset(silence)
		w.heard()
		if event.Type == "ERROR" {
			return version, refusalOf(event.Object)
		}
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(event.Object, &o); err != nil {
			return version, fmt.Errorf("read event: %w", err)
		}
		version = o.ResourceVersion
		switch event.Type {
		case "ADDED", "MODIFIED":
			w.seen(event.Object)
		case "DELETED":
			w.seen(nil)
		}
	}
}

// refusalOf reads the status in an ERROR event.
func refusalOf(raw []byte) error {
	var status metav1.Status
	if err := json.Unmarshal(raw, &status); err != nil {
		return fmt.Errorf("read error event: %w", err)
	}
	return &StatusError{Code: int(status.Code), Reason: status.Reason, Message: status.Message}
}
