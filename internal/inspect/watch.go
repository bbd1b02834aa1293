package inspect

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// streamsAtOnce bounds those who watch.
	streamsAtOnce = 64
	// maxViewBytes bounds a view; that of a thousand nodes has a tenth of it.
	maxViewBytes = 16 << 20
)

// pace of a stream: the least time between two views, the longest time without a word, and when the
// right is asked for again. With the patience for the answer a stream ends within a minute of it.
type pace struct{ least, beat, again time.Duration }

var normalPace = pace{least: time.Second, beat: 15 * time.Second, again: 45 * time.Second}

// view answers with the present view of a cluster.
func (s *Server) view(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	key, ok := s.permitted(ctx, w, r, "get")
	if !ok {
		return
	}
	defer s.Board.Watch(key)()
	if text := s.first(ctx, w, key); text != nil {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(text) // one who went away does not want it
	}
}

// first is a view of a cluster that is watched: what others are shown, else one that is made now;
// nil if that was refused.
func (s *Server) first(ctx context.Context, w http.ResponseWriter, key types.NamespacedName) []byte {
	text, _, _ := s.Board.Read(key)
	if text == nil {
		if err := s.Look(ctx, key); err != nil {
			s.refuseCluster(w, key, err)
			return nil
		}
		text, _, _ = s.Board.Read(key)
	}
	if text == nil || len(text) > maxViewBytes {
		s.refuseCluster(w, key, fmt.Errorf("a view of %d bytes cannot be shown", len(text)))
		return nil
	}
	return text
}

// watch sends one view after the other. Only its beginning is limited as other requests are.
func (s *Server) watch(gate gate) http.HandlerFunc {
	places := make(chan struct{}, streamsAtOnce)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			busy(w)
			return
		}
		var key types.NamespacedName
		begun := false
		gate(w, r, func(ctx context.Context, w http.ResponseWriter, r *http.Request) {
			var ok bool
			if key, ok = s.permitted(ctx, w, r, "get"); ok {
				context.AfterFunc(r.Context(), s.Board.Watch(key)) // net/http ends it after this handler
				begun = s.first(ctx, w, key) != nil
			}
		})
		if begun {
			s.stream(w, r, key)
		}
	}
}

// stream sends views until the one who asked goes away, or may not see the cluster any more.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, key types.NamespacedName) {
	// The limits of the server are those of short requests.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		s.fail(w, "stream", err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	pace := cmp.Or(s.pace, normalPace)
	beat, again := time.NewTicker(pace.beat), time.NewTicker(pace.again)
	defer beat.Stop()
	defer again.Stop()
	sendBeat := func() bool {
		_, at, _ := s.Board.Read(key)
		return send(w, "beat", []byte(at.UTC().Format(time.RFC3339)))
	}
	var shown []byte
	var free <-chan time.Time // when another view may be sent; nil if it may be now
	for {
		text, _, changed := s.Board.Read(key)
		switch {
		case text == nil:
			send(w, "end", []byte("the cluster is gone"))
			return
		case free != nil:
			changed = nil
		case !bytes.Equal(text, shown):
			if !send(w, "view", text) || !sendBeat() {
				return
			}
			shown, free, changed = text, time.After(pace.least), nil
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-free:
			free = nil
		case <-beat.C:
			if !sendBeat() {
				return
			}
		case <-again.C:
			ctx, cancel := context.WithTimeout(r.Context(), patience)
			_, ok := s.permitted(ctx, nowhere{}, r, "get")
			if cancel(); !ok {
				send(w, "end", []byte("you may not see this cluster any more, or that could not be asked"))
				return
			}
		}
	}
}

// nowhere takes a refusal that comes when an answer has begun.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}

// send writes one event, whose data has no line end in it: a sentence, or JSON. It says whether the
// other side takes it in time.
func send(w http.ResponseWriter, event string, data []byte) bool {
	control := http.NewResponseController(w)
	if len(data) > maxViewBytes || control.SetWriteDeadline(time.Now().Add(patience)) != nil {
		return false
	}
	_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
	return err == nil && control.Flush() == nil
}
