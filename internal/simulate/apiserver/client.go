package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caller is a user's client.
type caller struct {
	server *Server
	user   string
}

var _ client.Client = (*caller)(nil)

// As is a client of a user. It reads what is there now and writes at once. What the user may do is
// not asked: roles and policies are no part of this server; an Interceptor can refuse.
func (s *Server) As(user string) client.Client { return &caller{server: s, user: user} }

func (c *caller) begin(k *kind, verb Verb, subresource string, key Key) *Request {
	return &Request{User: c.user, Verb: verb, Kind: k.Kind, Subresource: subresource, Namespace: key.Namespace,
		Name: key.Name, resource: k.resource}
}

func (c *caller) writing(ctx context.Context, k *kind, r *Request, key Key, manager string, dryRun []string) *writing {
	if manager == "" && r.Verb != Apply {
		manager = c.user
	}
	return &writing{Server: c.server, ctx: ctx, request: r, kind: k, key: key, manager: manager,
		dryRun: len(dryRun) > 0}
}

// keyFor is the name of an object as a request carries it.
func keyFor(k *kind, object client.Object) (Key, error) {
	key := Key{Name: object.GetName()}
	if k.namespaced {
		if key.Namespace = object.GetNamespace(); key.Namespace == "" {
			return key, apierrors.NewBadRequest("a namespace is required to write a " + k.Kind)
		}
	}
	if key.Name == "" {
		return key, errors.New("resource name may not be empty")
	}
	return key, nil
}

// shown are the managed fields that a reader gets.
func (s *Server) shown(v *version) []metav1.ManagedFieldsEntry {
	if !s.options.ShowManagedFields {
		return nil
	}
	entries := v.managedFields()
	out := make([]metav1.ManagedFieldsEntry, len(entries))
	for i := range entries {
		entries[i].DeepCopyInto(&out[i])
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (s *Server) answer(v *version, out runtime.Object) func() error {
	return func() error {
		if u, ok := out.(*unstructured.Unstructured); ok {
			return v.fill(u, true, s.shown(v))
		}
		return v.fill(out, false, s.shown(v))
	}
}

// Get implements client.Reader.
func (c *caller) Get(ctx context.Context, key Key, out client.Object, _ ...client.GetOption) error {
	k, err := c.server.kinds.of(out)
	if err != nil {
		return err
	}
	if key.Name == "" {
		return errors.New("resource name may not be empty")
	}
	if !k.namespaced {
		key.Namespace = ""
	}
	return c.server.request(ctx, c.begin(k, Get, "", key), func() (func() error, error) {
		v := c.server.find(k, key)
		if v == nil {
			return nil, apierrors.NewNotFound(k.resource, key.Name)
		}
		return c.server.answer(v, out), nil
	})
}

// List implements client.Reader. It answers with everything that is asked for at once, whatever
// limit is asked for.
func (c *caller) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	k, err := c.server.kinds.of(out)
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	return c.server.request(ctx, c.begin(k, List, "", Key{Namespace: o.Namespace}), func() (func() error, error) {
		found, err := c.server.table(k).selected(k, o)
		if err != nil {
			return nil, err
		}
		revision := c.server.revision
		return func() error {
			if err := fillList(k, out, found, false, c.server.shown); err != nil {
				return err
			}
			out.SetResourceVersion(strconv.FormatUint(revision, 10))
			return nil
		}, nil
	})
}

// selected are the objects that a list asks for.
func (t *table) selected(k *kind, o *client.ListOptions) ([]*version, error) {
	if o.FieldSelector != nil {
		if err := k.selectable(o.FieldSelector); err != nil {
			return nil, err
		}
	}
	var out []*version
	for _, key := range t.keys {
		if o.Namespace != "" && key.Namespace != o.Namespace {
			continue
		}
		v := t.objects[key]
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(v.typed.GetLabels())) {
			continue
		}
		if o.FieldSelector != nil && !o.FieldSelector.Matches(v.fields()) {
			continue
		}
		out = append(out, v)
	}
	return out, nil
}

// fields are what field selectors can ask for.
func (v *version) fields() fields.Set {
	set := fields.Set{"metadata.name": v.key.Name}
	if v.kind.namespaced {
		set["metadata.namespace"] = v.key.Namespace
	}
	if v.kind.rules.fields != nil {
		for name, value := range v.kind.rules.fields(v.typed) {
			set[name] = value
		}
	}
	return set
}

// selectable refuses a selector of fields that the kind does not offer.
func (k *kind) selectable(selector fields.Selector) error {
	offered := (&version{kind: k, typed: k.newObject()}).fields()
	for _, r := range selector.Requirements() {
		if !offered.Has(r.Field) {
			return apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	return nil
}

// Create implements client.Writer.
func (c *caller) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return err
	}
	o := (&client.CreateOptions{}).ApplyOptions(opts)
	key := Key{Name: object.GetName()}
	if k.namespaced {
		if key.Namespace = object.GetNamespace(); key.Namespace == "" {
			return apierrors.NewBadRequest("a namespace is required to create a " + k.Kind)
		}
	}
	r := c.begin(k, Create, "", key)
	return c.server.request(ctx, r, func() (func() error, error) {
		v, err := c.writing(ctx, k, r, key, o.FieldManager, o.DryRun).create(object)
		if err != nil {
			return nil, err
		}
		return c.server.answer(v, object), nil
	})
}

// Update implements client.Writer.
func (c *caller) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	o := (&client.UpdateOptions{}).ApplyOptions(opts)
	return c.update(ctx, object, "", o)
}

func (c *caller) update(ctx context.Context, object client.Object, subresource string, o *client.UpdateOptions) error {
	k, key, err := c.subject(object, subresource)
	if err != nil {
		return err
	}
	if object == c.server.Object(k.Kind, key) {
		return fmt.Errorf("update %s %s: every reader shares this object: change a copy", k.Kind, key)
	}
	r := c.begin(k, Update, subresource, key)
	r.UID, r.Version = object.GetUID(), object.GetResourceVersion()
	return c.server.request(ctx, r, func() (func() error, error) {
		v, err := c.writing(ctx, k, r, key, o.FieldManager, o.DryRun).update(object)
		if err != nil {
			return nil, err
		}
		return c.server.answer(v, object), nil
	})
}

// subject is what a write is about.
func (c *caller) subject(object client.Object, subresource string) (*kind, Key, error) {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return nil, Key{}, err
	}
	key, err := keyFor(k, object)
	if err != nil {
		return nil, Key{}, err
	}
	return k, key, k.serves(subresource)
}

func (k *kind) serves(subresource string) error {
	if subresource == "" || subresource == subresourceStatus && k.hasStatus() ||
		subresource == subresourceResize && k.Kind == podKind {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
	}}
}

// Patch implements client.Writer.
func (c *caller) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.PatchOption) error {
	return c.patch(ctx, object, object, patch, "", (&client.PatchOptions{}).ApplyOptions(opts))
}

// patch patches an object by what body makes of the patch.
func (c *caller) patch(ctx context.Context, object, body client.Object, patch client.Patch, subresource string,
	o *client.PatchOptions) error {
	k, key, err := c.subject(object, subresource)
	if err != nil {
		return err
	}
	if patch.Type() == types.ApplyYAMLPatchType && body.GetObjectKind().GroupVersionKind().Empty() {
		body = body.DeepCopyObject().(client.Object)
		body.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	}
	data, err := patch.Data(body)
	if err != nil {
		return err
	}
	verb := Patch
	if patch.Type() == types.ApplyYAMLPatchType {
		verb = Apply
	}
	r := c.begin(k, verb, subresource, key)
	var named metav1.PartialObjectMetadata
	_ = json.Unmarshal(data, &named) // a patch that is none names nothing
	r.UID, r.Version = named.UID, named.ResourceVersion
	return c.server.request(ctx, r, func() (func() error, error) {
		v, err := c.writing(ctx, k, r, key, o.FieldManager, o.DryRun).patch(patch.Type(), data, o.Force)
		if err != nil {
			return nil, err
		}
		return c.server.answer(v, object), nil
	})
}

// Apply implements client.Writer.
func (c *caller) Apply(ctx context.Context, configuration runtime.ApplyConfiguration,
	opts ...client.ApplyOption) error {
	return c.apply(ctx, configuration, "", (&client.ApplyOptions{}).ApplyOptions(opts))
}

func (c *caller) apply(ctx context.Context, configuration runtime.ApplyConfiguration, subresource string,
	o *client.ApplyOptions) error {
	applied, answer, err := applyConfiguration(configuration)
	if err != nil {
		return err
	}
	k, err := c.server.kinds.exact(applied.GroupVersionKind())
	if err != nil {
		return err
	}
	key, err := keyFor(k, applied)
	if err != nil {
		return err
	}
	if err := k.serves(subresource); err != nil {
		return err
	}
	r := c.begin(k, Apply, subresource, key)
	return c.server.request(ctx, r, func() (func() error, error) {
		v, err := c.writing(ctx, k, r, key, o.FieldManager, o.DryRun).apply(applied, o.Force)
		if err != nil {
			return nil, err
		}
		return func() error {
			out := &unstructured.Unstructured{}
			if err := v.fill(out, true, c.server.shown(v)); err != nil {
				return err
			}
			return answer(out)
		}, nil
	})
}

// applyConfiguration is what a client applies, and what gives the result back to it.
func applyConfiguration(in runtime.ApplyConfiguration) (*unstructured.Unstructured,
	func(*unstructured.Unstructured) error, error) {
	if u, ok := in.(interface {
		UnstructuredContent() map[string]any
		SetUnstructuredContent(content map[string]any)
	}); ok {
		applied := &unstructured.Unstructured{Object: u.UnstructuredContent()}
		return applied, func(out *unstructured.Unstructured) error {
			u.SetUnstructuredContent(out.Object)
			return nil
		}, nil
	}
	text, err := json.Marshal(in)
	if err != nil {
		return nil, nil, fmt.Errorf("encode apply configuration: %w", err)
	}
	applied := &unstructured.Unstructured{}
	if err := applied.UnmarshalJSON(text); err != nil {
		return nil, nil, fmt.Errorf("decode apply configuration: %w", err)
	}
	return applied, func(out *unstructured.Unstructured) error {
		text, err := out.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		return json.Unmarshal(text, in)
	}, nil
}

// Delete implements client.Writer.
func (c *caller) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	k, key, err := c.subject(object, "")
	if err != nil {
		return err
	}
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	r := c.begin(k, Delete, "", key)
	if p := o.Preconditions; p != nil && p.UID != nil {
		r.UID = *p.UID
	}
	return c.server.request(ctx, r, func() (func() error, error) {
		err := c.writing(ctx, k, r, key, "", o.DryRun).delete(o.AsDeleteOptions())
		return func() error { return nil }, err
	})
}

// DeleteAllOf implements client.Writer: one request, which deletes one object after the other.
func (c *caller) DeleteAllOf(ctx context.Context, object client.Object, opts ...client.DeleteAllOfOption) error {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return err
	}
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	r := c.begin(k, DeleteCollection, "", Key{Namespace: o.Namespace})
	return c.server.request(ctx, r, func() (func() error, error) {
		found, err := c.server.table(k).selected(k, &o.ListOptions)
		if err != nil {
			return nil, err
		}
		for _, v := range found {
			w := c.writing(ctx, k, r, v.key, "", o.DryRun)
			if err := w.delete(o.AsDeleteOptions()); err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
		return func() error { return nil }, nil
	})
}

// Scheme implements client.Client.
func (c *caller) Scheme() *runtime.Scheme { return c.server.kinds.scheme }

// RESTMapper implements client.Client.
func (c *caller) RESTMapper() meta.RESTMapper { return c.server.kinds.mapper }

// GroupVersionKindFor implements client.Client.
func (c *caller) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return k.GroupVersionKind, nil
}

// IsObjectNamespaced implements client.Client.
func (c *caller) IsObjectNamespaced(object runtime.Object) (bool, error) {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return false, err
	}
	return k.namespaced, nil
}
