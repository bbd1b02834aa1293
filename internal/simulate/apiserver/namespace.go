package apiserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const namespaceKind = "Namespace"

func namespaceRules() rules {
	r := specAndStatus()
	r.fields = func(object client.Object) map[string]string {
		n := object.(*corev1.Namespace)
		return map[string]string{"name": n.Name, "status.phase": string(n.Status.Phase)}
	}
	r.defaults = func(object client.Object) {
		n := object.(*corev1.Namespace)
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[corev1.LabelMetadataName] = n.Name
		if n.Status.Phase == "" {
			n.Status.Phase = corev1.NamespaceActive
		}
	}
	r.prepareCreate = func(object client.Object) {
		n := object.(*corev1.Namespace)
		n.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
		if !slices.Contains(n.Spec.Finalizers, corev1.FinalizerKubernetes) {
			n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
		}
	}
	prepare := r.prepareUpdate
	r.prepareUpdate = func(object, old client.Object) {
		prepare(object, old)
		n := object.(*corev1.Namespace)
		n.Spec.Finalizers = old.(*corev1.Namespace).Spec.Finalizers
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[corev1.LabelMetadataName] = n.Name
	}
	r.validateStatus = func(object, _ client.Object) field.ErrorList {
		n := object.(*corev1.Namespace)
		phase := corev1.NamespaceActive
		if n.DeletionTimestamp != nil {
			phase = corev1.NamespaceTerminating
		}
		if n.Status.Phase != phase {
			return field.ErrorList{field.Invalid(field.NewPath("status", "Phase"), n.Status.Phase,
				"may only be '"+string(phase)+"'")}
		}
		return nil
	}
	return r
}

// terminate is the deletion of a namespace: it is marked, and nothing new comes into it. It ends
// when a controller has emptied it, which there is none of.
func (w *writing) terminate(live *version, o *metav1.DeleteOptions) error {
	if live.typed.GetDeletionTimestamp() != nil || w.dryRun {
		return nil
	}
	n := live.object.DeepCopyObject().(*corev1.Namespace)
	now := w.now()
	n.DeletionTimestamp, n.Status.Phase = &now, corev1.NamespaceTerminating
	n.Finalizers = collectorFinalizers(n.Finalizers, o)
	_, err := w.commit(w.request, w.kind, w.key, live, n, live.owned)
	return err
}

// admitInto refuses what is to be made in a namespace that is not there, or that is being deleted.
func (w *writing) admitInto(namespace string) error {
	k := w.kinds.named[namespaceKind]
	there := w.find(k, Key{Name: namespace})
	if there == nil {
		return apierrors.NewNotFound(k.resource, namespace)
	}
	if there.object.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	err := apierrors.NewForbidden(w.kind.resource, w.key.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace),
		Field: "metadata.namespace",
	})
	return err
}
