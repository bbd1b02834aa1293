package apiserver

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subresource is a client of one subresource.
type subresource struct {
	*caller
	name string
}

var _ client.SubResourceClient = subresource{}

// Status implements client.Client.
func (c *caller) Status() client.SubResourceWriter { return subresource{c, subresourceStatus} }

// SubResource implements client.Client. There is the status of the kinds that have one, and the
// binding and the eviction of pods.
func (c *caller) SubResource(name string) client.SubResourceClient { return subresource{c, name} }

// Get implements client.SubResourceReader.
func (c subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return fmt.Errorf("reading the subresource %s is not supported", c.name)
}

// Create implements client.SubResourceWriter.
func (c subresource) Create(ctx context.Context, object, body client.Object,
	opts ...client.SubResourceCreateOption) error {
	k, err := c.server.kinds.of(object)
	if err != nil {
		return err
	}
	key, err := keyFor(k, object)
	if err != nil {
		return err
	}
	if k.Kind != podKind {
		return k.serves("there is none")
	}
	if body.GetName() == "" {
		body.SetName(key.Name) // as the client does
	}
	o := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
	r := c.begin(k, Create, c.name, key)
	return c.server.request(ctx, r, func() (func() error, error) {
		done := func() error { return nil }
		w := c.writing(ctx, k, r, key, o.FieldManager, o.DryRun)
		switch body := body.(type) {
		case *corev1.Binding:
			return done, w.bind(body)
		case *policyv1.Eviction:
			return done, w.evict(body)
		default:
			return nil, k.serves("there is none")
		}
	})
}

// Update implements client.SubResourceWriter.
func (c subresource) Update(ctx context.Context, object client.Object, opts ...client.SubResourceUpdateOption) error {
	o := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	if o.SubResourceBody != nil {
		return errors.New("an update of a subresource by another body is not supported")
	}
	return c.update(ctx, object, c.name, &o.UpdateOptions)
}

// Patch implements client.SubResourceWriter.
func (c subresource) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption) error {
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	body := object
	if o.SubResourceBody != nil {
		body = o.SubResourceBody
	}
	return c.patch(ctx, object, body, patch, c.name, &o.PatchOptions)
}

// Apply implements client.SubResourceWriter.
func (c subresource) Apply(ctx context.Context, configuration runtime.ApplyConfiguration,
	opts ...client.SubResourceApplyOption) error {
	o := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	if o.SubResourceBody != nil {
		return errors.New("an apply of a subresource by another body is not supported")
	}
	return c.apply(ctx, configuration, c.name, &o.ApplyOptions)
}
