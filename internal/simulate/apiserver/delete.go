package apiserver

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delete removes an object, or marks it as deleted if something holds it: finalizers, or the time
// that it has to end by itself.
func (w *writing) delete(o *metav1.DeleteOptions) error {
	live := w.find(w.kind, w.key)
	if live == nil {
		return apierrors.NewNotFound(w.kind.resource, w.key.Name)
	}
	if errs := validation.ValidateDeleteOptions(o); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	if err := w.preconditions(live, o.Preconditions); err != nil {
		return err
	}
	if w.kind.Kind == namespaceKind {
		return w.terminate(live, o)
	}
	object := shallow(live.object)
	graceful, pending := w.grace(object, o)
	if pending {
		return nil
	}
	if w.kind.rules.uncollected {
		o = &metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: o.Preconditions}
	}
	object.SetFinalizers(collectorFinalizers(object.GetFinalizers(), o))
	held := len(object.GetFinalizers()) > 0
	if !graceful && held {
		w.markDeleted(object)
	}
	if w.dryRun {
		return nil
	}
	if !graceful && !held && len(live.typed.GetFinalizers()) > 0 && o.Preconditions != nil &&
		o.Preconditions.ResourceVersion != nil {
		// The real server compares with the version of a write that it did not make.
		return w.unmet("Precondition failed: ResourceVersion in precondition: , ResourceVersion in object meta: " +
			live.typed.GetResourceVersion())
	}
	last := live
	if graceful || held {
		// What ends by itself is marked even if it has no time left for that: those who watch see
		// both.
		var err error
		if last, err = w.commit(w.request, w.kind, w.key, live, object, live.owned); err != nil {
			return err
		}
	}
	if !held && (!graceful || *object.GetDeletionGracePeriodSeconds() == 0) {
		w.remove(w.request, last)
	}
	return nil
}

func (w *writing) preconditions(live *version, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	resource := schema.GroupResource{Group: w.kind.Group, Resource: w.kind.Kind}
	if p.UID != nil && *p.UID != live.uid() {
		return apierrors.NewConflict(resource, w.key.Name, fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been "+
				"deleted and then recreated", *p.UID, live.uid()))
	}
	if now := live.typed.GetResourceVersion(); p.ResourceVersion != nil && *p.ResourceVersion != now {
		return apierrors.NewConflict(resource, w.key.Name, fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The "+
				"object might have been modified", *p.ResourceVersion, now))
	}
	return nil
}

// grace gives an object the time to end by itself. Pending says that it has that already and that
// nothing is to be done.
func (w *writing) grace(object client.Object, o *metav1.DeleteOptions) (graceful, pending bool) {
	asked := o.GracePeriodSeconds
	if asked != nil && *asked < 0 {
		one := int64(1)
		asked = &one
	}
	if w.kind.rules.grace == nil {
		return false, false
	}
	now := w.now()
	if at := object.GetDeletionTimestamp(); at != nil {
		has := object.GetDeletionGracePeriodSeconds()
		switch {
		case has == nil || *has == 0:
			return false, false
		case asked == nil || *asked >= *has:
			return false, true
		}
		period := *asked
		end := metav1.NewTime(at.Add(-time.Duration(*has) * time.Second).Add(time.Duration(period) * time.Second))
		if end.Before(&now) {
			end = now
			if period != 0 {
				period = 1
			}
		}
		object.SetDeletionTimestamp(&end)
		object.SetDeletionGracePeriodSeconds(&period)
		return true, false
	}
	period := w.kind.rules.grace(object, asked)
	end := metav1.NewTime(now.Add(time.Duration(period) * time.Second))
	object.SetDeletionTimestamp(&end)
	object.SetDeletionGracePeriodSeconds(&period)
	if object.GetGeneration() > 0 {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	return true, false
}

var background = metav1.DeletePropagationBackground

// markDeleted is for what is held by finalizers alone.
func (w *writing) markDeleted(object client.Object) {
	now := w.now()
	at := object.GetDeletionTimestamp()
	if at == nil && object.GetGeneration() > 0 {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	if at == nil || at.After(now.Time) {
		object.SetDeletionTimestamp(&now)
	}
	zero := int64(0)
	object.SetDeletionGracePeriodSeconds(&zero)
}

// collectorFinalizers are the finalizers of an object that is deleted with a propagation policy:
// the garbage collector's own two follow the policy.
func collectorFinalizers(has []string, o *metav1.DeleteOptions) []string {
	orphan, foreground := slices.Contains(has, metav1.FinalizerOrphanDependents), false
	if !orphan {
		foreground = slices.Contains(has, metav1.FinalizerDeleteDependents)
	}
	switch {
	case o.OrphanDependents != nil: //nolint:staticcheck // old clients still send it
		orphan, foreground = *o.OrphanDependents, false //nolint:staticcheck // the same
	case o.PropagationPolicy != nil:
		orphan = *o.PropagationPolicy == metav1.DeletePropagationOrphan
		foreground = *o.PropagationPolicy == metav1.DeletePropagationForeground
	}
	if orphan == slices.Contains(has, metav1.FinalizerOrphanDependents) &&
		foreground == slices.Contains(has, metav1.FinalizerDeleteDependents) {
		return has
	}
	out := make([]string, 0, len(has)+1)
	for _, f := range has {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			out = append(out, f)
		}
	}
	if orphan {
		out = append(out, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		out = append(out, metav1.FinalizerDeleteDependents)
	}
	return out
}
