package apiserver

import (
	"slices"
	"strconv"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func budgetRules() rules {
	r := counted(specAndStatus())
	r.unconditional, r.customFinalizers, r.metaLast = false, true, true
	r.prepareCreate = func(object client.Object) {
		object.SetGeneration(1)
		object.(*policyv1.PodDisruptionBudget).Status = policyv1.PodDisruptionBudgetStatus{}
	}
	r.validate = func(object client.Object) (errs field.ErrorList) {
		spec, at := &object.(*policyv1.PodDisruptionBudget).Spec, field.NewPath("spec")
		if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
			errs = append(errs, field.Invalid(at, "", "minAvailable and maxUnavailable cannot be both set"))
		}
		errs = append(errs, validCount(spec.MinAvailable, at.Child("minAvailable"))...)
		errs = append(errs, validCount(spec.MaxUnavailable, at.Child("maxUnavailable"))...)
		errs = append(errs, metavalidation.ValidateLabelSelector(spec.Selector,
			metavalidation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
		policies := []policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}
		if p := spec.UnhealthyPodEvictionPolicy; p != nil && !slices.Contains(policies, *p) {
			errs = append(errs, field.NotSupported(at.Child("unhealthyPodEvictionPolicy"), *p, policies))
		}
		return errs
	}
	r.validateStatus = func(object, _ client.Object) field.ErrorList {
		s, at := &object.(*policyv1.PodDisruptionBudget).Status, field.NewPath("status")
		errs := metavalidation.ValidateConditions(s.Conditions, at.Child("conditions"))
		for name, count := range map[string]int32{
			"disruptionsAllowed": s.DisruptionsAllowed, "currentHealthy": s.CurrentHealthy,
			"desiredHealthy": s.DesiredHealthy, "expectedPods": s.ExpectedPods,
		} {
			errs = append(errs, validation.ValidateNonnegativeField(int64(count), at.Child(name))...)
		}
		return errs
	}
	return r
}

// validCount is a number of pods or a share of them.
func validCount(count *intstr.IntOrString, at *field.Path) (errs field.ErrorList) {
	switch {
	case count == nil:
		return nil
	case count.Type == intstr.Int:
		return validation.ValidateNonnegativeField(int64(count.IntValue()), at)
	}
	for _, why := range utilvalidation.IsValidPercent(count.StrVal) {
		errs = append(errs, field.Invalid(at, count, why))
	}
	if share, err := strconv.Atoi(strings.TrimSuffix(count.StrVal, "%")); len(errs) == 0 && err == nil && share > 100 {
		errs = append(errs, field.Invalid(at, count, "must not be greater than 100%"))
	}
	return errs
}
