package apiserver

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func leaseRules() rules {
	r := dataOnly()
	r.unconditional, r.createOnUpdate, r.customFinalizers = false, true, true
	r.validate = func(object client.Object) (errs field.ErrorList) {
		spec, at := &object.(*coordinationv1.Lease).Spec, field.NewPath("spec")
		if s := spec.LeaseDurationSeconds; s != nil && *s <= 0 {
			errs = append(errs, field.Invalid(at.Child("leaseDurationSeconds"), *s, "must be greater than 0"))
		}
		if n := spec.LeaseTransitions; n != nil && *n < 0 {
			errs = append(errs, field.Invalid(at.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
		}
		return errs
	}
	return r
}
