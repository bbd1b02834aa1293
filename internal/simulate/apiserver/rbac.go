package apiserver

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func roleRules() rules {
	r := dataOnly()
	r.createOnUpdate = true
	r.validate = func(object client.Object) (errs field.ErrorList) {
		for i, rule := range object.(*rbacv1.Role).Rules {
			errs = append(errs, validPolicyRule(&rule, field.NewPath("rules").Index(i))...)
		}
		return errs
	}
	return r
}

func validPolicyRule(r *rbacv1.PolicyRule, at *field.Path) (errs field.ErrorList) {
	if len(r.Verbs) == 0 {
		errs = append(errs, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
	}
	if len(r.NonResourceURLs) > 0 {
		errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs,
			"namespaced rules cannot apply to non-resource URLs"))
		if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
			errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), r.NonResourceURLs,
				"rules cannot apply to both regular resources and non-resource URLs"))
		}
		return errs
	}
	if len(r.APIGroups) == 0 {
		errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	if len(r.Resources) == 0 {
		errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
	}
	return errs
}

func roleBindingRules() rules {
	r := dataOnly()
	r.createOnUpdate = true
	r.defaults = func(object client.Object) {
		b := object.(*rbacv1.RoleBinding)
		if b.RoleRef.APIGroup == "" {
			b.RoleRef.APIGroup = rbacv1.GroupName
		}
		for i := range b.Subjects {
			if s := &b.Subjects[i]; s.APIGroup == "" && (s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind) {
				s.APIGroup = rbacv1.GroupName
			}
		}
	}
	r.validate = func(object client.Object) (errs field.ErrorList) {
		b := object.(*rbacv1.RoleBinding)
		at := field.NewPath("roleRef")
		if b.RoleRef.APIGroup != rbacv1.GroupName {
			errs = append(errs, field.NotSupported(at.Child("apiGroup"), b.RoleRef.APIGroup,
				[]string{rbacv1.GroupName}))
		}
		if b.RoleRef.Kind != "Role" && b.RoleRef.Kind != "ClusterRole" {
			errs = append(errs, field.NotSupported(at.Child("kind"), b.RoleRef.Kind, []string{"Role", "ClusterRole"}))
		}
		if b.RoleRef.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		for i, s := range b.Subjects {
			errs = append(errs, validSubject(&s, field.NewPath("subjects").Index(i))...)
		}
		return errs
	}
	r.validateUpdate = func(object, old client.Object) field.ErrorList {
		b, before := object.(*rbacv1.RoleBinding), old.(*rbacv1.RoleBinding)
		if b.RoleRef != before.RoleRef {
			return field.ErrorList{field.Invalid(field.NewPath("roleRef"), b.RoleRef, "cannot change roleRef")}
		}
		return nil
	}
	return r
}

func validSubject(s *rbacv1.Subject, at *field.Path) (errs field.ErrorList) {
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		group = ""
		if s.Name != "" {
			for _, why := range validation.ValidateServiceAccountName(s.Name, false) {
				errs = append(errs, field.Invalid(at.Child("name"), s.Name, why))
			}
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		return append(errs, field.NotSupported(at.Child("kind"), s.Kind,
			[]string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	if s.APIGroup != group {
		errs = append(errs, field.NotSupported(at.Child("apiGroup"), s.APIGroup, []string{group}))
	}
	return errs
}
