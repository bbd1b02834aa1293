package apiserver

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options of a server.
type Options struct {
	// Now is the time of the world.
	Now func() time.Time
	// NewUID gives a uid that no object had before.
	NewUID func() types.UID
	// ShowManagedFields has reads return who owns which field. Nothing of Helenus asks for it, and
	// without it most of it is never worked out; what an apply does is the same in both cases.
	ShowManagedFields bool
}

// Server is an API server. It is not safe for concurrent use. Objects that it gives to watchers,
// caches and the log are shared and must not be changed; those that clients read or write are the
// clients' own.
type Server struct {
	kinds   *Kinds
	options Options

	revision uint64
	requests uint64
	names    uint64
	// address is the next that a service gets.
	address netip.Addr
	tables  map[*kind]*table

	interceptor Interceptor
	watchers    []func(Event)
	log         []*Write
}

// version is one committed state of an object. Nothing of it is ever changed, apart from ownership
// that is worked out late.
type version struct {
	kind *kind
	key  Key
	// object is what the server keeps, without managed fields: the Go type of a built-in kind, the
	// content of a custom one.
	object client.Object
	// typed is what others see.
	typed    client.Object
	revision uint64
	owned    ownership
	// stored is a built-in object as it was written down, without its revision.
	stored []byte
}

func (v *version) uid() types.UID { return v.typed.GetUID() }

// table holds the objects of a kind.
type table struct {
	objects map[Key]*version
	// keys are sorted as the storage of the real server sorts them.
	keys []Key
}

// New makes an empty server.
func New(kinds *Kinds, o Options) *Server {
	return &Server{kinds: kinds, options: o, tables: make(map[*kind]*table, len(kinds.all))}
}

// Kinds that it serves.
func (s *Server) Kinds() *Kinds { return s.kinds }

// Revision is that of the last committed change: the resourceVersion that a list has.
func (s *Server) Revision() uint64 { return s.revision }

// Requests counts all requests that were made.
func (s *Server) Requests() uint64 { return s.requests }

// Watch has every committed change told, at once and in order. What is called must not make
// requests: it would see one change within another.
func (s *Server) Watch(see func(Event)) { s.watchers = append(s.watchers, see) }

// Intercept puts an interceptor before and after every request; nil takes it away.
func (s *Server) Intercept(i Interceptor) { s.interceptor = i }

// Object is the present state of an object without a request; nil if there is none. It is shared
// and must not be changed.
func (s *Server) Object(kind string, key Key) client.Object {
	k := s.kinds.named[kind]
	if k == nil {
		return nil
	}
	if v := s.table(k).objects[key]; v != nil {
		return v.typed
	}
	return nil
}

// Objects are the present objects of a kind without a request, by namespace and name. They are
// shared and must not be changed.
func (s *Server) Objects(kind string) []client.Object {
	k := s.kinds.named[kind]
	if k == nil {
		return nil
	}
	t := s.table(k)
	out := make([]client.Object, len(t.keys))
	for i, key := range t.keys {
		out[i] = t.objects[key].typed
	}
	return out
}

func (s *Server) table(k *kind) *table {
	t := s.tables[k]
	if t == nil {
		t = &table{objects: map[Key]*version{}}
		s.tables[k] = t
	}
	return t
}

func (s *Server) find(k *kind, key Key) *version { return s.table(k).objects[key] }

func compareKeys(a, b Key) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// now is the present time as objects carry it.
func (s *Server) now() metav1.Time { return metav1.NewTime(s.options.Now()).Rfc3339Copy() }

// commit makes an object the present state, and tells everybody. A change that changes nothing is
// none: the version that is there stays.
func (s *Server) commit(r *Request, k *kind, key Key, old *version, object client.Object, owned ownership) (*version,
	error) {
	v := &version{kind: k, key: key, object: object, owned: owned}
	if err := v.store(); err != nil {
		return nil, err
	}
	if old != nil && v.same(old) {
		return old, nil
	}
	v.revision = s.revision + 1
	v.object.SetResourceVersion(strconv.FormatUint(v.revision, 10))
	var err error
	if v.typed, err = k.typed(v.object); err != nil {
		return nil, err
	}
	s.revision++
	t := s.table(k)
	if old == nil {
		at, _ := slices.BinarySearchFunc(t.keys, key, compareKeys)
		t.keys = slices.Insert(t.keys, at, key)
	}
	t.objects[key] = v
	s.tell(r, old, v, false)
	return v, nil
}

// store gives the object of a built-in kind the form in which it comes back from where it is kept:
// without empty lists and maps, and with defaults.
func (v *version) store() error {
	object, isWire := v.object.(wire)
	if !isWire {
		return nil
	}
	revision := v.object.GetResourceVersion()
	v.object.SetResourceVersion("")
	stored, err := object.Marshal()
	if err != nil {
		return fmt.Errorf("encode %s: %w", v.kind.Kind, err)
	}
	v.stored, v.object = stored, v.kind.newObject()
	if err := v.object.(wire).Unmarshal(stored); err != nil {
		return fmt.Errorf("decode %s: %w", v.kind.Kind, err)
	}
	v.object.SetResourceVersion(revision)
	if v.kind.rules.defaults != nil {
		v.kind.rules.defaults(v.object)
	}
	return nil
}

// same says that a version is stored as another one is.
func (v *version) same(old *version) bool {
	if v.owned.pending == nil && !sameOwners(v.owned.entries, old.managedFields()) {
		return false
	}
	if u, ok := v.object.(*unstructured.Unstructured); ok {
		u.SetResourceVersion(old.typed.GetResourceVersion())
		if !sameValue(u.Object, old.object.(*unstructured.Unstructured).Object) {
			return false
		}
	} else if !bytes.Equal(v.stored, old.stored) {
		return false
	}
	// What was asked for in vain still changes who owns what.
	return v.owned.pending == nil || sameObject(v.owned.pending.requested, old.object) ||
		sameOwners(v.managedFields(), old.managedFields())
}

// sameObject compares two objects of a kind apart from their revisions.
func sameObject(a, b client.Object) bool {
	a, b = shallow(a), shallow(b)
	a.SetResourceVersion("")
	b.SetResourceVersion("")
	u, ok := a.(*unstructured.Unstructured)
	if ok {
		return sameValue(u.Object, b.(*unstructured.Unstructured).Object)
	}
	x, err := a.(wire).Marshal()
	if err != nil {
		return false
	}
	y, err := b.(wire).Marshal()
	return err == nil && bytes.Equal(x, y)
}

// remove takes an object away. The last state that is told has the revision of the removal.
func (s *Server) remove(r *Request, old *version) {
	s.revision++
	t := s.table(old.kind)
	if at, found := slices.BinarySearchFunc(t.keys, old.key, compareKeys); found {
		t.keys = slices.Delete(t.keys, at, at+1)
	}
	delete(t.objects, old.key)
	last := &version{kind: old.kind, key: old.key, object: shallow(old.object), typed: shallow(old.typed),
		revision: s.revision, owned: old.owned}
	number := strconv.FormatUint(s.revision, 10)
	last.object.SetResourceVersion(number)
	last.typed.SetResourceVersion(number)
	s.tell(r, old, last, true)
}

func (s *Server) tell(r *Request, old, now *version, gone bool) {
	e := Event{Type: Modified, Kind: now.kind.Kind, Key: now.key, New: now.typed, Revision: now.revision, version: now}
	if old != nil {
		e.Old = old.typed
	}
	switch {
	case gone:
		e.Type = Deleted
	case old == nil:
		e.Type = Added
	}
	s.log = append(s.log, &Write{Request: *r, Event: e, At: s.options.Now()})
	for _, see := range s.watchers {
		see(e)
	}
}
