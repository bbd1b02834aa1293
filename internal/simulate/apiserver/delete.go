package apiserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delete removes an object, or marks it as deleted while finalizers or its own grace period hold it.
func (w *writing) delete(o *client.DeleteOptions) error {
	live := w.find(w.kind, w.key)
	if live == nil {
		return apierrors.NewNotFound(w.kind.resource, w.key.Name)
	}
	if p := o.Preconditions; p != nil {
		if p.UID != nil && *p.UID != live.uid() {
			return w.unmet(fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, live.uid()))
		}
		if at := live.typed.GetResourceVersion(); p.ResourceVersion != nil && *p.ResourceVersion != at {
			return w.unmet(fmt.Sprintf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *p.ResourceVersion, at))
		}
	}
	grace := int64(0)
	if w.kind.rules.grace != nil {
		grace = w.kind.rules.grace(live.typed, o.GracePeriodSeconds)
	}
	marked := live.typed.GetDeletionTimestamp() != nil
	if g := live.typed.GetDeletionGracePeriodSeconds(); marked && g != nil {
		grace = min(grace, *g) // it can only be made shorter
	}
	if len(live.typed.GetFinalizers()) == 0 && grace == 0 {
		w.remove(w.request, live)
		return nil
	}
	if g := live.typed.GetDeletionGracePeriodSeconds(); marked && g != nil && *g == grace {
		return nil
	}
	object := live.object.DeepCopyObject().(client.Object)
	if at := w.now(); !marked {
		object.SetDeletionTimestamp(&at)
	}
	object.SetDeletionGracePeriodSeconds(&grace)
	object.SetGeneration(object.GetGeneration() + 1)
	_, err := w.commit(w.request, w.kind, w.key, live, object, live.owned)
	return err
}
