package apiserver

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Who owns which field is kept by Kubernetes' own field manager. It is asked only when somebody
// wants to know: an apply, or a read that shows it. Until then a version remembers the writes that
// it came about by. Most objects are never applied, so that most of that work is never done.

// ownership is who owns the fields of a version.
type ownership struct {
	entries []metav1.ManagedFieldsEntry
	// pending is the write that entries do not know of yet; nil if they are up to date.
	pending *pendingWrite
}

// pendingWrite is a write other than an apply.
type pendingWrite struct {
	// before is the version that it changed; nil for a creation.
	before *version
	// requested is the object as it was asked for.
	requested   client.Object
	manager     string
	subresource string
	at          metav1.Time
	// depth counts the pending writes before this one.
	depth int
}

// maxPending bounds the memory that old versions take.
const maxPending = 100

// wrote is the ownership after a write that is to be looked at later, if ever.
func wrote(before *version, requested client.Object, manager, subresource string, at time.Time) ownership {
	p := &pendingWrite{before: before, requested: requested, manager: manager, subresource: subresource,
		at: metav1.NewTime(at).Rfc3339Copy()}
	if before != nil && before.owned.pending != nil {
		p.depth = before.owned.pending.depth + 1
		if p.depth > maxPending {
			before.managedFields()
			p.depth = 0
		}
	}
	return ownership{pending: p}
}

// managedFields are who owns what of a version.
func (v *version) managedFields() []metav1.ManagedFieldsEntry {
	var late []*version
	for at := v; at != nil && at.owned.pending != nil; at = at.owned.pending.before {
		late = append(late, at)
	}
	for _, at := range slices.Backward(late) {
		p := at.owned.pending
		at.owned = ownership{entries: v.kind.update(p.before, p.requested, p.manager, p.subresource, p.at)}
	}
	return v.owned.entries
}

// update is who owns what after a write that is not an apply. The requested object is changed.
func (k *kind) update(before *version, requested client.Object, manager, subresource string,
	at metav1.Time) []metav1.ManagedFieldsEntry {
	live, old := k.live(before)
	after := k.managers[subresource].UpdateNoErrors(live, requested, manager)
	return timed(old, after.(client.Object).GetManagedFields(), at)
}

// live is a version with its managed fields, to be read only. Without one it is an empty object.
func (k *kind) live(v *version) (client.Object, []metav1.ManagedFieldsEntry) {
	if v == nil {
		if k.custom != nil {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(k.GroupVersionKind)
			return u, nil
		}
		return k.newObject(), nil
	}
	entries := v.managedFields()
	live := shallow(v.object)
	live.SetManagedFields(entries)
	return live, entries
}

// timed gives the entries that a write changed the time of the world, in the order that the server
// keeps them in.
func timed(before, after []metav1.ManagedFieldsEntry, at metav1.Time) []metav1.ManagedFieldsEntry {
	for i := range after {
		e := &after[i]
		j := slices.IndexFunc(before, func(b metav1.ManagedFieldsEntry) bool { return sameManager(&b, e) })
		if j >= 0 && before[j].Time.Equal(e.Time) {
			continue
		}
		e.Time = &at
	}
	slices.SortStableFunc(after, func(a, b metav1.ManagedFieldsEntry) int {
		switch {
		case a.Operation != b.Operation:
			return cmp.Compare(a.Operation, b.Operation)
		case !a.Time.Equal(b.Time):
			if a.Time == nil || b.Time != nil && a.Time.Before(b.Time) {
				return -1
			}
			return 1
		case a.Manager != b.Manager:
			return cmp.Compare(a.Manager, b.Manager)
		case a.APIVersion != b.APIVersion:
			return cmp.Compare(a.APIVersion, b.APIVersion)
		default:
			return cmp.Compare(a.Subresource, b.Subresource)
		}
	})
	return after
}

func sameManager(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion &&
		a.Subresource == b.Subresource
}

// sameOwners compares entries apart from their times.
func sameOwners(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.ManagedFieldsEntry) bool {
		return sameManager(&a, &b) && (a.FieldsV1 == nil) == (b.FieldsV1 == nil) &&
			(a.FieldsV1 == nil || a.FieldsV1.GetRawString() == b.FieldsV1.GetRawString())
	})
}

// managing is what the field manager needs to know of a kind. There is one version of each, so that
// converting is a matter of form.
type managing struct{ kind *kind }

// New implements runtime.ObjectCreater.
func (m managing) New(schema.GroupVersionKind) (runtime.Object, error) {
	live, _ := m.kind.live(nil)
	return live, nil
}

// Default implements runtime.ObjectDefaulter. Content of custom kinds may be shared with the stored
// object here, and gets its defaults later.
func (m managing) Default(in runtime.Object) {
	if m.kind.custom == nil && m.kind.rules.defaults != nil {
		m.kind.rules.defaults(in.(client.Object))
	}
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (m managing) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok || m.kind.custom != nil {
		return in, nil
	}
	out := m.kind.newObject()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("decode %s: %w", m.kind.Kind, err)
	}
	return out, nil
}

// Convert implements runtime.ObjectConvertor.
func (managing) Convert(any, any, any) error { return errors.New("not supported") }

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (managing) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

var (
	_ runtime.ObjectConvertor = managing{}
	_ runtime.ObjectDefaulter = managing{}
	_ runtime.ObjectCreater   = managing{}
)
