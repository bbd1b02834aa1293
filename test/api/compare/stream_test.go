package compare

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// happening is one event of a watch.
type happening struct {
	Type, Namespace, Name, Version, UID string
}

// streams are the watches of the real server, one for each kind, from the beginning to the end of
// all sequences.
type streams struct {
	mu   sync.Mutex
	more *sync.Cond
	// of are the events of a kind in a place; seen are the sentinels of a kind.
	of   map[string][]happening
	seen map[string]bool
	err  error
}

func watchAll(t *testing.T, c client.WithWatch) *streams {
	t.Helper()
	s := &streams{of: map[string][]happening{}, seen: map[string]bool{}}
	s.more = sync.NewCond(&s.mu)
	for _, k := range subjects {
		list := &unstructured.UnstructuredList{}
		gvk := k.gvk
		gvk.Kind += "List"
		list.SetGroupVersionKind(gvk)
		must(t, c.List(t.Context(), list))
		w, err := c.Watch(t.Context(), list, &client.ListOptions{Raw: listFrom(list.GetResourceVersion())})
		must(t, err)
		go s.read(t.Context(), k.gvk.Kind, w)
	}
	return s
}

func (s *streams) read(ctx context.Context, kind string, w watch.Interface) {
	defer w.Stop()
	for e := range w.ResultChan() {
		u, ok := e.Object.(*unstructured.Unstructured)
		s.mu.Lock()
		if ok && e.Type != watch.Error {
			h := happening{string(e.Type), u.GetNamespace(), u.GetName(), u.GetResourceVersion(), string(u.GetUID())}
			key := kind + " " + placeOf(h)
			s.of[key] = append(s.of[key], h)
			s.seen[kind+" "+h.Name] = true
		} else if ctx.Err() == nil {
			s.err = fmt.Errorf("watch of %s: %s %v", kind, e.Type, e.Object)
		}
		s.mu.Unlock()
		s.more.Broadcast()
	}
	s.mu.Lock()
	if ctx.Err() == nil && s.err == nil {
		s.err = fmt.Errorf("watch of %s ended", kind)
	}
	s.mu.Unlock()
	s.more.Broadcast()
}

// until waits until the watch of a kind has shown an object, and returns the events of a place.
func (s *streams) until(kind, sentinel string, p place) ([]happening, error) {
	late := time.AfterFunc(30*time.Second, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = fmt.Errorf("watch of %s did not show %s", kind, sentinel)
		}
		s.more.Broadcast()
	})
	defer late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.seen[kind+" "+sentinel] && s.err == nil {
		s.more.Wait()
	}
	return s.of[kind+" "+p.prefix], s.err
}

// placeOf is the prefix of the place that something happened in.
func placeOf(h happening) string {
	name := h.Namespace
	if name == "" {
		name = h.Name
	}
	prefix, _, _ := strings.Cut(name, "-")
	return prefix + "-"
}
