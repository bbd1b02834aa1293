package apiserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func nodeRules() rules {
	r := specAndStatus()
	r.fields = func(object client.Object) map[string]string {
		return map[string]string{"spec.unschedulable": fmt.Sprint(object.(*corev1.Node).Spec.Unschedulable)}
	}
	r.defaults = func(object client.Object) {
		n := object.(*corev1.Node)
		if n.Status.Allocatable == nil && n.Status.Capacity != nil {
			n.Status.Allocatable = n.Status.Capacity.DeepCopy()
		}
		if n.Spec.PodCIDR != "" && (len(n.Spec.PodCIDRs) == 0 || n.Spec.PodCIDRs[0] != n.Spec.PodCIDR) {
			n.Spec.PodCIDRs = []string{n.Spec.PodCIDR}
		}
		if len(n.Spec.PodCIDRs) > 0 {
			n.Spec.PodCIDR = n.Spec.PodCIDRs[0]
		}
	}
	// A new host takes no pods until somebody sees that it is ready.
	r.admit = func(_ *Server, object client.Object) error {
		n := object.(*corev1.Node)
		taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
		if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			n.Spec.Taints = append(n.Spec.Taints, taint)
		}
		return nil
	}
	r.prepareCreate = func(client.Object) {}
	r.validate = func(object client.Object) field.ErrorList {
		return validTaints(object.(*corev1.Node).Spec.Taints, field.NewPath("metadata", "taints"))
	}
	r.validateUpdate = func(object, old client.Object) (errs field.ErrorList) {
		now, before := &object.(*corev1.Node).Spec, &old.(*corev1.Node).Spec
		if len(before.PodCIDRs) > 0 && !slices.Equal(now.PodCIDRs, before.PodCIDRs) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "podCIDRs"),
				"node updates may not change podCIDR except from \"\" to valid"))
		}
		if before.ProviderID != "" && now.ProviderID != before.ProviderID {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "providerID"),
				"node updates may not change providerID except from \"\" to valid"))
		}
		return errs
	}
	return r
}

func validTaints(taints []corev1.Taint, at *field.Path) (errs field.ErrorList) {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute}
	for i, t := range taints {
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, at.Index(i).Child("key"))...)
		switch {
		case t.Effect == "":
			errs = append(errs, field.Required(at.Index(i).Child("effect"), ""))
		case !slices.Contains(effects, t.Effect):
			errs = append(errs, field.NotSupported(at.Index(i).Child("effect"), t.Effect, effects))
		}
	}
	return errs
}

func volumeRules() rules {
	r := specAndStatus()
	r.fields = func(object client.Object) map[string]string { return map[string]string{"name": object.GetName()} }
	r.defaults = func(object client.Object) {
		v := object.(*corev1.PersistentVolume)
		if v.Status.Phase == "" {
			v.Status.Phase = corev1.VolumePending
		}
		if v.Spec.PersistentVolumeReclaimPolicy == "" {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}
		if v.Spec.VolumeMode == nil {
			mode := corev1.PersistentVolumeFilesystem
			v.Spec.VolumeMode = &mode
		}
	}
	r.admit = func(_ *Server, object client.Object) error {
		if finalizers := object.GetFinalizers(); !slices.Contains(finalizers, VolumeProtection) {
			object.SetFinalizers(append(finalizers, VolumeProtection))
		}
		return nil
	}
	r.prepareCreate = func(object client.Object) {
		v := object.(*corev1.PersistentVolume)
		now := v.CreationTimestamp
		v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending, LastPhaseTransitionTime: &now}
	}
	prepare := r.prepareStatus
	r.prepareStatus = func(object, old client.Object, now metav1.Time) {
		prepare(object, old, now)
		s, before := &object.(*corev1.PersistentVolume).Status, &old.(*corev1.PersistentVolume).Status
		switch at := s.LastPhaseTransitionTime; {
		case s.Phase == before.Phase && at == nil:
			s.LastPhaseTransitionTime = before.LastPhaseTransitionTime
		case s.Phase != before.Phase && (at == nil || at.Equal(before.LastPhaseTransitionTime)):
			s.LastPhaseTransitionTime = &now
		}
	}
	r.validate = func(object client.Object) field.ErrorList {
		return validVolume(&object.(*corev1.PersistentVolume).Spec, field.NewPath("spec"))
	}
	r.validateUpdate = func(object, old client.Object) (errs field.ErrorList) {
		now, before := &object.(*corev1.PersistentVolume).Spec, &old.(*corev1.PersistentVolume).Spec
		if !equality.Semantic.DeepEqual(now.PersistentVolumeSource, before.PersistentVolumeSource) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "persistentvolumesource"),
				"spec.persistentvolumesource is immutable after creation"))
		}
		errs = append(errs, immutable(now.VolumeMode, before.VolumeMode, field.NewPath("volumeMode"))...)
		if before.NodeAffinity != nil {
			errs = append(errs, immutable(now.NodeAffinity, before.NodeAffinity, field.NewPath("nodeAffinity"))...)
		}
		return errs
	}
	return r
}

// validVolume is a volume on the disk of a host: others are not made here.
func validVolume(spec *corev1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	errs := validAccessModes(spec.AccessModes, at.Child("accessModes"))
	if len(spec.Capacity) == 0 {
		errs = append(errs, field.Required(at.Child("capacity"), ""))
	}
	if _, has := spec.Capacity[corev1.ResourceStorage]; !has || len(spec.Capacity) > 1 {
		errs = append(errs, field.NotSupported(at.Child("capacity"), spec.Capacity,
			[]corev1.ResourceName{corev1.ResourceStorage}))
	}
	for name, size := range spec.Capacity {
		errs = append(errs, positive(size, at.Child("capacity").Key(string(name)))...)
	}
	policies := []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete,
		corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain}
	if !slices.Contains(policies, spec.PersistentVolumeReclaimPolicy) {
		errs = append(errs, field.NotSupported(at.Child("persistentVolumeReclaimPolicy"),
			spec.PersistentVolumeReclaimPolicy, policies))
	}
	switch {
	case spec.Local == nil:
		errs = append(errs, field.Required(at, "must specify a volume type"))
	case spec.Local.Path == "":
		errs = append(errs, field.Required(at.Child("local", "path"), ""))
	}
	if spec.Local != nil && (spec.NodeAffinity == nil || spec.NodeAffinity.Required == nil) {
		errs = append(errs, field.Required(at.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	if spec.StorageClassName != "" {
		for _, why := range validation.NameIsDNSSubdomain(spec.StorageClassName, false) {
			errs = append(errs, field.Invalid(at.Child("storageClassName"), spec.StorageClassName, why))
		}
	}
	return errs
}
