package world

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/simulate/apiserver"
)

// witness notes the uids of everything that an operator reads and creates, so that a write to what
// it has never seen is noticed.
type witness struct {
	client.Client
	seen map[types.UID]bool
}

// witnessReader is a witness of what reads the view of an operator.
type witnessReader struct {
	*apiserver.Cache
	seen map[types.UID]bool
	// reads is told what is read, and may ask whether it is not how it is by now.
	reads func(object runtime.Object, stale func() bool)
}

func note(seen map[types.UID]bool, object metav1.Object, err error) error {
	if err == nil && object.GetUID() != "" {
		seen[object.GetUID()] = true
	}
	return err
}

func noteList(seen map[types.UID]bool, list client.ObjectList, err error) error {
	if err != nil {
		return err
	}
	return meta.EachListItem(list, func(o runtime.Object) error {
		if object, ok := o.(metav1.Object); ok {
			seen[object.GetUID()] = true
		}
		return nil
	})
}

func (w witness) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	return note(w.seen, object, w.Client.Get(ctx, key, object, options...))
}

func (w witness) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return noteList(w.seen, list, w.Client.List(ctx, list, options...))
}

func (w witness) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return note(w.seen, object, w.Client.Create(ctx, object, options...))
}

func (r witnessReader) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	r.reads(object, func() bool { return r.StaleFor(key, object) })
	return note(r.seen, object, r.Cache.Get(ctx, key, object, options...))
}

func (r witnessReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	r.reads(list, func() bool { return r.StaleForList(list, options...) })
	return noteList(r.seen, list, r.Cache.List(ctx, list, options...))
}
