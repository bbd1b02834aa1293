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

// streams are the watches of the real server, one for each kind, from the beginning to the end of all sequences.
type streams struct {
	mu   sync.Mutex
	more *sync.Cond
	of   map[string][]happening
	err  error
}

func watchAll(t *testing.T, c client.WithWatch) *streams {
	t.Helper()
	s := &streams{of: map[string][]happening{}}
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
			s.of[kind] = append(s.of[kind], happening{string(e.Type), u.GetNamespace(), u.GetName(), u.GetResourceVersion(), string(u.GetUID())})
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
	for {
		all := s.of[kind]
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].Name != sentinel {
				continue
			}
			var out []happening
			for _, h := range all[:i] {
				if strings.HasPrefix(h.Namespace+"/"+h.Name, p.prefix) || h.Namespace == "" && strings.HasPrefix(h.Name, p.prefix) {
					out = append(out, h)
				}
			}
			s.of[kind] = all[i+1:]
			return out, nil
		}
		if s.err != nil {
			return nil, s.err
		}
		s.more.Wait()
	}
}
