package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The steps that every request goes through, for both sorts of kinds.

func (k *kind) prepareCreate(object client.Object) {
	switch {
	case k.custom != nil:
		k.custom.prepareCreate(object.(*unstructured.Unstructured))
	case k.rules.prepareCreate != nil:
		k.rules.prepareCreate(object)
	}
}

func (k *kind) prepareUpdate(object, old client.Object) {
	switch {
	case k.custom != nil:
		k.custom.prepareUpdate(object.(*unstructured.Unstructured), old.(*unstructured.Unstructured))
	case k.rules.prepareUpdate != nil:
		k.rules.prepareUpdate(object, old)
	}
}

func (k *kind) prepareStatus(object, old client.Object, now metav1.Time) {
	switch {
	case k.custom != nil:
		k.custom.prepareStatus(object.(*unstructured.Unstructured), old.(*unstructured.Unstructured))
	case k.rules.prepareStatus != nil:
		k.rules.prepareStatus(object, old, now)
	}
}

func (k *kind) validate(ctx context.Context, object client.Object) field.ErrorList {
	objectMeta := metaOf(object)
	if k.custom != nil {
		return k.custom.validate(ctx, k, object.(*unstructured.Unstructured), objectMeta)
	}
	var errs field.ErrorList
	if k.rules.validate != nil {
		errs = k.rules.validate(object)
	}
	if k.rules.validateCreate != nil {
		errs = append(errs, k.rules.validateCreate(object)...)
	}
	if k.rules.metaLast && len(errs) > 0 {
		return errs
	}
	errs = append(errs, validateMeta(objectMeta, k.namespaced)...)
	if !k.rules.customFinalizers {
		errs = append(errs, validateFinalizers(objectMeta)...)
	}
	return errs
}

func (k *kind) validateUpdate(ctx context.Context, object, old client.Object, subresource string) field.ErrorList {
	objectMeta, oldMeta := metaOf(object), metaOf(old)
	if k.custom != nil {
		now, before := object.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
		check := k.custom.validateUpdate
		if subresource == subresourceStatus {
			check = k.custom.validateStatus
		}
		mark := printOf(k.Kind, subresource, now, before)
		if _, valid := k.custom.valid.get(mark); valid {
			return nil
		}
		errs := check(ctx, now, before, objectMeta, oldMeta)
		if len(errs) == 0 {
			k.custom.valid.put(mark, struct{}{})
		}
		return errs
	}
	errs := validateMetaUpdate(objectMeta, oldMeta)
	if !k.rules.customFinalizers {
		errs = append(errs, validateFinalizers(objectMeta)...)
	}
	check := k.rules.validateStatus
	if subresource == subresourceResize {
		return append(append(errs, k.rules.validate(object)...), validResize(object, old)...)
	}
	if subresource != subresourceStatus {
		if k.rules.validate != nil {
			errs = append(errs, k.rules.validate(object)...)
		}
		check = k.rules.validateUpdate
	}
	if check != nil {
		errs = append(errs, check(object, old)...)
	}
	return errs
}

var atMeta = field.NewPath("metadata")

// validName is what every name keeps to; most kinds ask for more.
func validName(name string, prefix bool) []string {
	if name == "." || name == ".." {
		return []string{fmt.Sprintf("may not be %q", name)}
	}
	if !prefix && name == "" || strings.ContainsAny(name, "/%") {
		return []string{"may not be empty or contain '/' or '%'"}
	}
	return nil
}

func validateMeta(m *metav1.ObjectMeta, namespaced bool) field.ErrorList {
	return validation.ValidateObjectMeta(m, namespaced, validName, atMeta)
}

// standardFinalizers are those that need no prefix.
var standardFinalizers = []string{string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents,
	metav1.FinalizerDeleteDependents}

// validateFinalizers is what Kubernetes' own kinds ask for beside.
func validateFinalizers(m *metav1.ObjectMeta) (errs field.ErrorList) {
	for i, name := range m.Finalizers {
		if !strings.Contains(name, "/") && !slices.Contains(standardFinalizers, name) {
			errs = append(errs, field.Invalid(atMeta.Child("finalizers").Index(i), name,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// immutable refuses a change of a field.
func immutable(now, before any, at *field.Path) field.ErrorList {
	return validation.ValidateImmutableField(now, before, at)
}

func validateMetaUpdate(m, old *metav1.ObjectMeta) field.ErrorList {
	return append(validateMeta(m, old.Namespace != ""), validation.ValidateObjectMetaUpdate(m, old, atMeta)...)
}
