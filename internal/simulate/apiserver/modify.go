package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// staleMessage is what the server says when a write rests on an old version.
const staleMessage = "the object has been modified; please apply your changes to the latest version and try again"

// writing is one request that may change an object.
type writing struct {
	*Server
	ctx     context.Context
	request *Request
	kind    *kind
	key     Key
	manager string
	dryRun  bool
}

func (w *writing) subresource() string { return w.request.Subresource }

// create makes a new object.
func (w *writing) create(in client.Object) (*version, error) {
	object, err := w.kind.decode(in)
	if err != nil {
		return nil, err
	}
	wipe(object)
	unique(object) // before it is worked out who owns them; a patch has it the other way round
	return w.add(object, w.own(nil, object))
}

// wipe takes away what only the server sets.
func wipe(object client.Object) {
	object.SetCreationTimestamp(metav1.Time{})
	object.SetUID("")
	object.SetDeletionTimestamp(nil)
	object.SetDeletionGracePeriodSeconds(nil)
	object.SetSelfLink("")
}

// own works out who owns the fields of an object that a request other than an apply asks for, and
// takes that out of the object. It is put off, unless the request itself says who owns what.
func (w *writing) own(live *version, object client.Object) ownership {
	if w.kind.managers[w.subresource()] == nil {
		return ownership{}
	}
	asked := object.GetManagedFields()
	if asked == nil || w.subresource() != "" || live != nil && sameEntries(asked, live.owned) {
		object.SetManagedFields(nil)
		return wrote(live, shallow(object), w.manager, w.subresource(), w.options.Now())
	}
	entries := w.kind.update(live, shallow(object), w.manager, w.subresource(), w.now())
	object.SetManagedFields(nil)
	return ownership{entries: entries}
}

// sameEntries says that a request carries exactly what it read.
func sameEntries(asked []metav1.ManagedFieldsEntry, owned ownership) bool {
	return owned.pending == nil && len(asked) > 0 && sameOwners(asked, owned.entries) &&
		slices.EqualFunc(asked, owned.entries, func(a, b metav1.ManagedFieldsEntry) bool {
			return a.Time.Equal(b.Time)
		})
}

// add is the creation of an object by whatever request.
func (w *writing) add(object client.Object, owned ownership) (*version, error) {
	unique(object)
	if w.kind.namespaced {
		if err := w.admitInto(w.key.Namespace); err != nil {
			return nil, err
		}
	}
	if err := w.admit(object); err != nil {
		return nil, err
	}
	object.SetCreationTimestamp(w.now())
	object.SetUID(w.options.NewUID())
	if object.GetName() == "" && object.GetGenerateName() != "" {
		object.SetName(w.generate(object.GetGenerateName()))
	}
	if w.kind.rules.begin != nil {
		if err := w.kind.rules.begin(w, object, nil); err != nil {
			return nil, err
		}
	}
	if err := w.matchNamespace(object); err != nil {
		return nil, err
	}
	w.kind.prepareCreate(object)
	if errs := w.kind.validate(w.ctx, object); len(errs) > 0 {
		return nil, apierrors.NewInvalid(w.kind.GroupKind(), object.GetName(), errs)
	}
	if object.GetResourceVersion() != "" && w.request.Verb == Create && !w.dryRun {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	key := Key{Namespace: object.GetNamespace(), Name: object.GetName()}
	if there := w.find(w.kind, key); there != nil {
		err := apierrors.NewAlreadyExists(w.kind.resource, key.Name)
		if there.typed.GetDeletionTimestamp() != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	if w.dryRun {
		return w.imagine(key, object, owned)
	}
	return w.commit(w.request, w.kind, key, nil, object, owned)
}

// imagine is the version that a request would have made.
func (w *writing) imagine(key Key, object client.Object, owned ownership) (*version, error) {
	v := &version{kind: w.kind, key: key, object: object, revision: w.revision, owned: owned}
	err := v.store()
	if err == nil {
		v.typed, err = w.kind.typed(v.object)
	}
	return v, err
}

func (w *writing) admit(object client.Object) error {
	if w.kind.rules.admit != nil {
		return w.kind.rules.admit(w.Server, object)
	}
	return nil
}

func (w *writing) matchNamespace(object client.Object) error {
	switch namespace := object.GetNamespace(); {
	case !w.kind.namespaced:
		object.SetNamespace("")
	case namespace == "":
		object.SetNamespace(w.key.Namespace)
	case namespace != w.key.Namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on " +
			"the request")
	}
	return nil
}

// proposal is what a request wants of an object that is there, or, if live is nil, of one that is
// not.
type proposal func(live *version) (client.Object, ownership, error)

// change brings an object into the state that a request proposes. With createToo it is made if it
// is not there.
func (w *writing) change(propose proposal, uid *types.UID, createToo bool) (*version, error) {
	live := w.find(w.kind, w.key)
	if live == nil && !createToo {
		return nil, apierrors.NewNotFound(w.kind.resource, w.key.Name)
	}
	if uid != nil {
		var there types.UID
		if live != nil {
			there = live.uid()
		}
		if *uid != there {
			return nil, w.unmet(fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v",
				*uid, there))
		}
	}
	object, owned, err := propose(live)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return w.add(object, owned)
	}
	unique(object)
	if w.kind.rules.admitUpdate != nil && w.subresource() == "" {
		if err := w.kind.rules.admitUpdate(w.Server, object, live.object); err != nil {
			return nil, err
		}
	}
	if err := w.matchVersion(object, live); err != nil {
		return nil, err
	}
	if w.kind.rules.begin != nil && w.subresource() == "" {
		if err := w.kind.rules.begin(w, object, live.object); err != nil {
			return nil, err
		}
	}
	if err := w.prepare(object, live); err != nil {
		return nil, err
	}
	if done(object, live) {
		if w.dryRun {
			return w.imagine(w.key, object, owned)
		}
		w.remove(w.request, live)
		return w.imagine(w.key, object, owned)
	}
	if w.dryRun {
		return w.imagine(w.key, object, owned)
	}
	return w.commit(w.request, w.kind, w.key, live, object, owned)
}

// unmet is the answer to a precondition that does not hold.
func (w *writing) unmet(why string) error {
	key := "/" + w.kind.resource.Resource + "/"
	if w.kind.namespaced {
		key += w.key.Namespace + "/"
	}
	return apierrors.NewConflict(w.kind.resource, w.key.Name,
		fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s%s, ResourceVersion: 0, AdditionalErrorMsg: %s", key,
			w.key.Name, why))
}

// matchVersion refuses a request that rests on an old version. Some kinds may be overwritten
// without saying which version that is.
func (w *writing) matchVersion(object client.Object, live *version) error {
	switch asked := object.GetResourceVersion(); {
	case asked == "" || asked == "0":
		if !w.kind.rules.unconditional {
			return apierrors.NewInvalid(w.kind.GroupVersion().WithKind(w.kind.resource.Resource).GroupKind(),
				w.key.Name, field.ErrorList{
					field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
				})
		}
		object.SetResourceVersion(live.typed.GetResourceVersion())
	case asked != live.typed.GetResourceVersion():
		return apierrors.NewConflict(w.kind.resource, w.key.Name, errors.New(staleMessage))
	}
	return nil
}

// prepare sets what the request has no say in, and validates the rest.
func (w *writing) prepare(object client.Object, live *version) error {
	if err := w.matchNamespace(object); err != nil {
		return err
	}
	object.SetGeneration(live.typed.GetGeneration())
	switch w.subresource() {
	case subresourceStatus:
		w.kind.prepareStatus(object, live.object, w.now())
	case subresourceResize:
		prepareResize(object.(*corev1.Pod), live.object.(*corev1.Pod))
	default:
		w.kind.prepareUpdate(object, live.object)
	}
	if object.GetUID() == "" {
		object.SetUID(live.uid())
	}
	if created := live.typed.GetCreationTimestamp(); !created.IsZero() {
		object.SetCreationTimestamp(created)
	}
	if at := live.typed.GetDeletionTimestamp(); at != nil {
		object.SetDeletionTimestamp(at)
	}
	if grace := live.typed.GetDeletionGracePeriodSeconds(); grace != nil &&
		object.GetDeletionGracePeriodSeconds() == nil {
		object.SetDeletionGracePeriodSeconds(grace)
	}
	if errs := w.kind.validateUpdate(w.ctx, object, live.object, w.subresource()); len(errs) > 0 {
		return apierrors.NewInvalid(w.kind.GroupKind(), w.key.Name, errs)
	}
	if w.kind.rules.allowUpdate != nil && w.subresource() == "" {
		return w.kind.rules.allowUpdate(object, live.object)
	}
	return nil
}

// done says that nothing holds a deleted object any more.
func done(object client.Object, live *version) bool {
	if len(object.GetFinalizers()) > 0 || live.typed.GetDeletionTimestamp() == nil {
		return false
	}
	if n, is := object.(*corev1.Namespace); is && len(n.Spec.Finalizers) > 0 {
		return false
	}
	grace := live.typed.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// unique drops owners that are there twice.
func unique(object client.Object) {
	owners := object.GetOwnerReferences()
	if len(owners) < 2 {
		return
	}
	var out []metav1.OwnerReference
	for _, o := range owners {
		if !slices.ContainsFunc(out, func(known metav1.OwnerReference) bool { return sameOwner(&known, &o) }) {
			out = append(out, o)
		}
	}
	if len(out) != len(owners) {
		object.SetOwnerReferences(out)
	}
}

func sameOwner(a, b *metav1.OwnerReference) bool {
	same := func(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		same(a.Controller, b.Controller) && same(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

// update replaces an object.
func (w *writing) update(in client.Object) (*version, error) {
	object, err := w.kind.decode(in)
	if err != nil {
		return nil, err
	}
	var uid *types.UID
	if asked := object.GetUID(); asked != "" {
		uid = &asked
	}
	unique(object)
	return w.change(func(live *version) (client.Object, ownership, error) {
		return object, w.own(live, object), nil
	}, uid, w.kind.rules.createOnUpdate)
}

const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// generate makes a name that begins as wanted. The same server generates the same names.
func (s *Server) generate(base string) string {
	const most, random = 63, 5
	if len(base) > most-random {
		base = base[:most-random]
	}
	s.names++
	n := s.names * 0x9e3779b97f4a7c15
	end := make([]byte, random)
	for i := range end {
		end[i] = alphabet[n%uint64(len(alphabet))]
		n /= uint64(len(alphabet))
	}
	return base + string(end)
}
