package consistency

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Key names an object.
type Key struct {
	Kind      string
	Namespace string
	Name      string
}

func (k Key) String() string { return fmt.Sprintf("%s %s/%s", k.Kind, k.Namespace, k.Name) }

// Seen is an object as a view shows it.
type Seen struct {
	UID             types.UID
	ResourceVersion string
	Deleting        bool
}

// Store holds the writes of one cluster that were not seen yet. The zero value is empty. It is not
// safe for concurrent use: a cluster has one pass at a time.
type Store struct {
	pending map[Key]write
}

type write struct {
	uid             types.UID
	resourceVersion string
	deleted         bool
}

// Wrote remembers that an object was written and has this version now.
func (s *Store) Wrote(key Key, uid types.UID, resourceVersion string) {
	s.put(key, write{uid: uid, resourceVersion: resourceVersion})
}

// Deleted remembers that the deletion of an object was accepted.
func (s *Store) Deleted(key Key, uid types.UID) { s.put(key, write{uid: uid, deleted: true}) }

// Gone forgets a write of an object that no longer exists at the API server: no view will ever show
// it.
func (s *Store) Gone(key Key) { delete(s.pending, key) }

// Pending says whether a write of an object was not seen yet.
func (s *Store) Pending(key Key) bool {
	_, pending := s.pending[key]
	return pending
}

// Is says that an object has what was written here last: nobody has changed it since.
func (s *Store) Is(key Key, uid types.UID, resourceVersion string) bool {
	w, pending := s.pending[key]
	return pending && !w.deleted && w.uid == uid && w.resourceVersion == resourceVersion
}

func (s *Store) put(key Key, w write) {
	if s.pending == nil {
		s.pending = map[Key]write{}
	}
	s.pending[key] = w
}

// Unseen are the writes that a view does not show yet, sorted; those that it shows are forgotten.
// Look says what the view has for an object, and whether it has one at all.
func (s *Store) Unseen(look func(Key) (Seen, bool)) []Key {
	var out []Key
	for key, w := range s.pending {
		seen, there := look(key)
		if w.shown(seen, there) {
			delete(s.pending, key)
			continue
		}
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b Key) int {
		return slices.Compare([]string{a.Kind, a.Namespace, a.Name}, []string{b.Kind, b.Namespace, b.Name})
	})
	return out
}

// shown says that a view is at least as new as the write.
func (w write) shown(seen Seen, there bool) bool {
	switch {
	case w.deleted:
		return !there || seen.UID != w.uid || seen.Deleting
	case !there:
		return false
	default:
		// Under the name may be another object than ours, if ours is gone again: versions have one
		// order over all of them.
		return !older(seen.ResourceVersion, w.resourceVersion)
	}
}

// older compares versions as Kubernetes defines it since 1.35 (and has kept before): decimal
// numbers of one order. Versions that are no such numbers are equal or unknown, and unknown counts
// as older.
func older(a, b string) bool {
	if a == b {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order < 0
}
