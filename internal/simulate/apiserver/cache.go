package apiserver

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cache is the view of a client that watches: it shows what it was told of, and is told when the
// world says so. Changes of one kind come in their order.
type Cache struct {
	server  *Server
	holds   func(client.Object) bool
	outline func(client.Object) client.Object
	tables  map[*kind]*table
	// pending are changes that it was not told of yet, by kind.
	pending map[string][]Event
	closed  bool
}

var _ client.Reader = (*Cache)(nil)

// NewCache begins with what is there now. It holds only objects for which holds is true, and of
// each what the outline leaves of it.
func NewCache(s *Server, holds func(client.Object) bool, outline func(client.Object) client.Object) *Cache {
	c := &Cache{server: s, holds: holds, outline: outline, tables: map[*kind]*table{}, pending: map[string][]Event{}}
	for k, t := range s.tables {
		for _, key := range t.keys {
			if v := t.objects[key]; holds(v.typed) {
				c.table(k).put(key, c.outlined(v))
			}
		}
	}
	s.Watch(func(e Event) {
		if !c.closed {
			c.pending[e.Kind] = append(c.pending[e.Kind], e)
		}
	})
	return c
}

// Close ends the watch.
func (c *Cache) Close() { c.closed, c.pending = true, map[string][]Event{} }

func (c *Cache) table(k *kind) *table {
	t := c.tables[k]
	if t == nil {
		t = &table{objects: map[Key]*version{}}
		c.tables[k] = t
	}
	return t
}

// Pending counts the changes of a kind that the cache was not told of.
func (c *Cache) Pending(kind string) int { return len(c.pending[kind]) }

// Behind are the kinds of which the cache was not told everything, sorted.
func (c *Cache) Behind() []string {
	return slices.Sorted(maps.Keys(c.pending))
}

// Deliver tells the cache of the next n changes of a kind, and returns those that are of objects
// which it held or holds. What comes to be held is added for it, and what is held no more is
// deleted, whatever it is for others.
func (c *Cache) Deliver(kind string, n int) []Event {
	var out []Event
	for range min(max(n, 0), len(c.pending[kind])) {
		e := c.pending[kind][0]
		c.pending[kind] = c.pending[kind][1:]
		t := c.table(c.server.kinds.named[kind])
		before := t.objects[e.Key]
		holds := e.Type != Deleted && c.holds(e.New)
		switch {
		case holds:
			e.Type, e.Old, e.version = Added, nil, c.outlined(e.version)
			if before != nil {
				e.Type, e.Old = Modified, before.typed
			}
			e.New = e.version.typed
			t.put(e.Key, e.version)
		case before != nil:
			e.Type, e.Old = Deleted, before.typed
			t.drop(e.Key)
		default:
			continue
		}
		out = append(out, e)
	}
	return out
}

// outlined is what the cache keeps of a version.
func (c *Cache) outlined(v *version) *version {
	out := *v
	out.typed = c.outline(v.typed)
	return &out
}

func (t *table) put(key Key, v *version) {
	if _, there := t.objects[key]; !there {
		at, _ := slices.BinarySearchFunc(t.keys, key, compareKeys)
		t.keys = slices.Insert(t.keys, at, key)
	}
	t.objects[key] = v
}

func (t *table) drop(key Key) {
	if at, there := slices.BinarySearchFunc(t.keys, key, compareKeys); there {
		t.keys = slices.Delete(t.keys, at, at+1)
	}
	delete(t.objects, key)
}

// Get implements client.Reader.
func (c *Cache) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return err
	}
	v := c.table(k).objects[key]
	if v == nil {
		return apierrors.NewNotFound(k.resource, key.Name)
	}
	return v.fill(object, true, nil)
}

// List implements client.Reader.
func (c *Cache) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	k, err := c.server.kinds.of(list)
	if err != nil {
		return err
	}
	found, err := c.table(k).selected(k, (&client.ListOptions{}).ApplyOptions(options))
	if err != nil {
		return err
	}
	return fillList(k, list, found, true, func(*version) []metav1.ManagedFieldsEntry { return nil })
}

// StaleFor says that Get would answer otherwise if the cache had been told of everything.
func (c *Cache) StaleFor(key client.ObjectKey, object client.Object) bool {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return false
	}
	return c.differs(c.table(k).objects[key], c.server.tables[k].objects[key])
}

// StaleForList says that List would answer otherwise if the cache had been told of everything.
func (c *Cache) StaleForList(list client.ObjectList, options ...client.ListOption) bool {
	k, err := c.server.kinds.of(list)
	if err != nil {
		return false
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	shown, err := c.table(k).selected(k, o)
	if err != nil {
		return false
	}
	there, err := c.server.tables[k].selected(k, o)
	if err != nil {
		return false
	}
	there = slices.DeleteFunc(slices.Clone(there), func(v *version) bool { return !c.holds(v.typed) })
	return !slices.EqualFunc(shown, there, func(a, b *version) bool { return !c.differs(a, b) })
}

// differs says that what is shown of an object is not how it is; nil is none.
func (c *Cache) differs(shown, is *version) bool {
	if is != nil && !c.holds(is.typed) {
		is = nil
	}
	if shown == nil || is == nil {
		return shown != is
	}
	return shown.typed.GetUID() != is.typed.GetUID() ||
		shown.typed.GetResourceVersion() != is.typed.GetResourceVersion()
}
