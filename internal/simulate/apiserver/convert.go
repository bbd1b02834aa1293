package apiserver

import (
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A built-in kind is kept as its Go type, a custom one as the content that the API server itself
// keeps, and as its Go type for those who read it.

// wire is what built-in types have: the encoding that real clients send them in.
type wire interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// decode makes an object that belongs to the server of one that belongs to a client, as if it had
// come over the wire, with defaults.
func (k *kind) decode(in client.Object) (client.Object, error) {
	if k.custom != nil {
		return k.decodeCustom(in)
	}
	out := k.newObject()
	switch in := in.(type) {
	case *unstructured.Unstructured:
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in.Object, out); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", k.Kind,
				k.Version, k.Kind, err))
		}
		// Values of the content may be shared with the result.
		out = out.DeepCopyObject().(client.Object)
	case wire:
		// An encoded object has no empty lists, and no fractions of seconds.
		data, err := in.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", k.Kind, err)
		}
		if err := out.(wire).Unmarshal(data); err != nil {
			return nil, fmt.Errorf("decode %s: %w", k.Kind, err)
		}
	default:
		return nil, fmt.Errorf("a %T is no %s that can be written", in, k.Kind)
	}
	out.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	if k.rules.defaults != nil {
		k.rules.defaults(out)
	}
	return out, nil
}

func (k *kind) decodeCustom(in client.Object) (client.Object, error) {
	var u *unstructured.Unstructured
	switch in := in.(type) {
	case *unstructured.Unstructured:
		u = in.DeepCopy()
	default:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", k.Kind, err)
		}
		u = &unstructured.Unstructured{Object: content}
	}
	u.SetGroupVersionKind(k.GroupVersionKind)
	if err := k.custom.coerce(u); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	k.custom.defaults(u)
	return u, nil
}

// typed is an object of the server in its Go type.
func (k *kind) typed(object client.Object) (client.Object, error) {
	if k.custom == nil || k.goType == nil {
		return object, nil
	}
	out := k.newObject()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.(*unstructured.Unstructured).Object,
		out); err != nil {
		return nil, fmt.Errorf("decode %s: %w", k.Kind, err)
	}
	return out, nil
}

// content is an object of the server as a client sees it that knows no types; the result belongs to
// the caller.
func (k *kind) content(object client.Object) (map[string]any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return runtime.DeepCopyJSON(u.Object), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.Kind, err)
	}
	return content, nil
}

// fill gives a version to a client. Typed objects that are read from a server do not say of which
// kind they are; those of a cache do.
func (v *version) fill(out runtime.Object, withKind bool, fields []metav1.ManagedFieldsEntry) error {
	switch out := out.(type) {
	case *unstructured.Unstructured:
		content, err := v.kind.content(v.object)
		if err != nil {
			return err
		}
		out.Object = content
		out.SetGroupVersionKind(v.kind.GroupVersionKind)
		if fields != nil {
			out.SetManagedFields(fields)
		}
		return nil
	case *metav1.PartialObjectMetadata:
		metaOf(v.typed).DeepCopyInto(&out.ObjectMeta)
		out.ManagedFields = fields
		out.SetGroupVersionKind(v.kind.GroupVersionKind)
		return nil
	}
	to, from := reflect.ValueOf(out), reflect.ValueOf(v.typed.DeepCopyObject())
	if to.Type() != from.Type() {
		return fmt.Errorf("read a %s into a %T", v.kind.Kind, out)
	}
	to.Elem().Set(from.Elem())
	if fields != nil {
		out.(client.Object).SetManagedFields(fields)
	}
	if !withKind {
		out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return nil
}

// fillList gives versions to a client.
func fillList(k *kind, out client.ObjectList, versions []*version, withKind bool,
	fields func(*version) []metav1.ManagedFieldsEntry) error {
	switch out := out.(type) {
	case *unstructured.UnstructuredList:
		out.Items = make([]unstructured.Unstructured, len(versions))
		out.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		for i, v := range versions {
			if err := v.fill(&out.Items[i], withKind, fields(v)); err != nil {
				return err
			}
		}
		return nil
	case *metav1.PartialObjectMetadataList:
		out.Items = make([]metav1.PartialObjectMetadata, len(versions))
		for i, v := range versions {
			if err := v.fill(&out.Items[i], withKind, fields(v)); err != nil {
				return err
			}
		}
		return nil
	}
	items := reflect.ValueOf(out).Elem().FieldByName("Items")
	if !items.IsValid() || items.Kind() != reflect.Slice {
		return fmt.Errorf("a %T is no list", out)
	}
	all := reflect.MakeSlice(items.Type(), len(versions), len(versions))
	for i, v := range versions {
		if err := v.fill(all.Index(i).Addr().Interface().(runtime.Object), withKind, fields(v)); err != nil {
			return err
		}
	}
	items.Set(all)
	return nil
}

// metaOf is the metadata of an object: the one that is in it for Go types, a copy otherwise.
func metaOf(object client.Object) *metav1.ObjectMeta {
	if typed, ok := object.(metav1.ObjectMetaAccessor); ok {
		if m, ok := typed.GetObjectMeta().(*metav1.ObjectMeta); ok {
			return m
		}
	}
	u := object.(*unstructured.Unstructured)
	m := &metav1.ObjectMeta{}
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		// The metadata of objects of the server was brought into its form before.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, m); err != nil {
			panic(fmt.Sprintf("metadata of %s %s: %v", u.GetKind(), u.GetName(), err))
		}
	}
	return m
}

// shallow is an object whose own fields, and those of its metadata, can be set without changing the
// one that it was made of.
func shallow(object client.Object) client.Object {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		copied := reflect.New(reflect.TypeOf(object).Elem())
		copied.Elem().Set(reflect.ValueOf(object).Elem())
		return copied.Interface().(client.Object)
	}
	content := make(map[string]any, len(u.Object)+1)
	for key, value := range u.Object {
		content[key] = value
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		copied := make(map[string]any, len(metadata)+1)
		for key, value := range metadata {
			copied[key] = value
		}
		content["metadata"] = copied
	}
	return &unstructured.Unstructured{Object: content}
}

// copyOf is an object whose own fields, and those of its metadata, can be set, and of a built-in
// kind everything.
func (k *kind) copyOf(object client.Object) client.Object {
	if k.custom != nil {
		return shallow(object)
	}
	return object.DeepCopyObject().(client.Object)
}

// comparable is a version in a form that has a fingerprint.
func (v *version) comparable() any {
	if u, custom := v.object.(*unstructured.Unstructured); custom {
		return u
	}
	return []any{v.stored, v.object.GetResourceVersion()}
}

// sameContent compares everything but metadata.
func sameContent(a, b map[string]any) bool {
	count := 0
	for key, value := range a {
		if key == "metadata" {
			continue
		}
		count++
		other, has := b[key]
		if !has || !sameValue(value, other) {
			return false
		}
	}
	for key := range b {
		if key != "metadata" {
			count--
		}
	}
	return count == 0
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			other, has := b[key]
			if !has || !sameValue(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}
