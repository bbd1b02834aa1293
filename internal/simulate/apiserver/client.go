package apiserver

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noKind is what a decoded object says of itself.
var noKind schema.GroupVersionKind

// hideFields: nothing of Helenus reads managed fields.
func hideFields(*version) []metav1.ManagedFieldsEntry { return nil }

// As is the server as a user reaches it.
func (s *Server) As(user string) client.Client { return &as{s, user} }

type as struct {
	server *Server
	user   string
}

// unsupported is what the world has no use for.
func unsupported(what string) error { return fmt.Errorf("the simulated API server has no %s", what) }

// Scheme implements client.Client.
func (c *as) Scheme() *runtime.Scheme { return c.server.kinds.scheme }

// RESTMapper implements client.Client.
func (c *as) RESTMapper() meta.RESTMapper { return c.server.kinds.mapper }

// GroupVersionKindFor implements client.Client.
func (c *as) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return k.GroupVersionKind, nil
}

// IsObjectNamespaced implements client.Client.
func (c *as) IsObjectNamespaced(object runtime.Object) (bool, error) {
	k, err := c.server.kinds.of(object)
	return err == nil && k.namespaced, err
}

func (c *as) request(verb Verb, k *kind, key Key, subresource string) *Request {
	return &Request{User: c.user, Verb: verb, Kind: k.Kind, Subresource: subresource, Namespace: key.Namespace, Name: key.Name, resource: k.resource}
}

// Get implements client.Reader.
func (c *as) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return err
	}
	return c.server.request(ctx, c.request(Get, k, key, ""), func() (func() error, error) {
		v := c.server.find(k, key)
		if v == nil {
			return nil, apierrors.NewNotFound(k.resource, key.Name)
		}
		return func() error { return v.fill(object, false, nil) }, nil
	})
}

// List implements client.Reader. It selects by namespace and labels.
func (c *as) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	k, err := c.server.kinds.of(list)
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	return c.server.request(ctx, c.request(List, k, Key{Namespace: o.Namespace}, ""), func() (func() error, error) {
		return func() error { return fillList(k, list, c.server.table(k).selected(o), false, hideFields) }, nil
	})
}

// selected are the versions that a list asks for.
func (t *table) selected(o *client.ListOptions) []*version {
	var out []*version
	for _, key := range t.keys {
		v := t.objects[key]
		if o.Namespace != "" && key.Namespace != o.Namespace || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(v.typed.GetLabels())) {
			continue
		}
		out = append(out, v)
	}
	return out
}

// write makes a request that changes an object, and gives the caller what became of it.
func (c *as) write(ctx context.Context, verb Verb, object client.Object, subresource, manager string, do func(*writing) (*version, error)) error {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return err
	}
	if manager == "" {
		manager = c.user
	}
	key := client.ObjectKeyFromObject(object)
	r := c.request(verb, k, key, subresource)
	return c.server.request(ctx, r, func() (func() error, error) {
		v, err := do(&writing{Server: c.server, ctx: ctx, request: r, kind: k, key: key, manager: manager})
		if err != nil {
			return nil, err
		}
		return func() error { return v.fill(object, false, nil) }, nil
	})
}

// Create implements client.Writer.
func (c *as) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	o := (&client.CreateOptions{}).ApplyOptions(options)
	return c.write(ctx, Create, object, "", o.FieldManager, func(w *writing) (*version, error) { return w.create(object) })
}

// Update implements client.Writer.
func (c *as) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	o := (&client.UpdateOptions{}).ApplyOptions(options)
	return c.write(ctx, Update, object, "", o.FieldManager, func(w *writing) (*version, error) { return w.update(object) })
}

// Delete implements client.Writer.
func (c *as) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(options)
	k, err := c.server.kinds.of(object)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(object)
	r := c.request(Delete, k, key, "")
	return c.server.request(ctx, r, func() (func() error, error) {
		return func() error { return nil }, (&writing{Server: c.server, ctx: ctx, request: r, kind: k, key: key}).delete(o)
	})
}

// DeleteAllOf implements client.Writer.
func (c *as) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return unsupported("deletion of collections")
}

// Patch implements client.Writer.
func (c *as) Patch(ctx context.Context, object client.Object, p client.Patch, options ...client.PatchOption) error {
	o := (&client.PatchOptions{}).ApplyOptions(options)
	return c.patch(ctx, object, p, "", o.FieldManager, o.Force)
}

func (c *as) patch(ctx context.Context, object client.Object, p client.Patch, subresource, manager string, force *bool) error {
	data, err := p.Data(object)
	if err != nil {
		return err
	}
	verb := Patch
	if p.Type() == types.ApplyYAMLPatchType {
		verb = Apply
	}
	return c.write(ctx, verb, object, subresource, manager, func(w *writing) (*version, error) { return w.patch(p.Type(), data, force) })
}

// Apply implements client.Writer.
func (c *as) Apply(ctx context.Context, applied runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	o := (&client.ApplyOptions{}).ApplyOptions(options)
	data, err := json.Marshal(applied)
	if err != nil {
		return fmt.Errorf("encode what is applied: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return fmt.Errorf("decode what is applied: %w", err)
	}
	if err := c.write(ctx, Apply, u, "", o.FieldManager, func(w *writing) (*version, error) {
		return w.patch(types.ApplyYAMLPatchType, data, o.Force)
	}); err != nil {
		return err
	}
	if data, err = json.Marshal(u.Object); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return json.Unmarshal(data, applied)
}

// Status implements client.StatusClient.
func (c *as) Status() client.SubResourceWriter { return &subresource{c, subresourceStatus} }

// SubResource implements client.SubResourceClientConstructor: status, and the binding of pods.
func (c *as) SubResource(name string) client.SubResourceClient { return &subresource{c, name} }

type subresource struct {
	client *as
	name   string
}

// Get implements client.SubResourceReader.
func (s *subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return unsupported("reading of subresources")
}

// Create implements client.SubResourceWriter.
func (s *subresource) Create(ctx context.Context, object, body client.Object, _ ...client.SubResourceCreateOption) error {
	binding, ok := body.(*corev1.Binding)
	if s.name != subresourceBinding || !ok {
		return unsupported("creation of " + s.name)
	}
	return s.client.write(ctx, Create, object, s.name, "", func(w *writing) (*version, error) { return w.bind(binding.Target.Name) })
}

// bind gives a pod its machine.
func (w *writing) bind(machine string) (*version, error) {
	live := w.find(w.kind, w.key)
	if live == nil {
		return nil, apierrors.NewNotFound(w.kind.resource, w.key.Name)
	}
	p := live.object.DeepCopyObject().(*corev1.Pod)
	if p.Spec.NodeName != "" {
		return nil, apierrors.NewConflict(w.kind.resource, w.key.Name, fmt.Errorf("pod %s is already assigned to node %q", p.Name, p.Spec.NodeName))
	}
	p.Spec.NodeName = machine
	return w.commit(w.request, w.kind, w.key, live, p, live.owned)
}

// Update implements client.SubResourceWriter.
func (s *subresource) Update(ctx context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.client.write(ctx, Update, object, s.name, "", func(w *writing) (*version, error) { return w.update(object) })
}

// Patch implements client.SubResourceWriter.
func (s *subresource) Patch(ctx context.Context, object client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(options)
	return s.client.patch(ctx, object, p, s.name, o.FieldManager, o.Force)
}

// Apply implements client.SubResourceWriter.
func (s *subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return unsupported("apply of subresources but by Patch")
}
