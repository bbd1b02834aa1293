package apiserver

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ClaimProtection is the finalizer that keeps a claim while pods use it.
	ClaimProtection = "kubernetes.io/pvc-protection"
	// VolumeProtection keeps a volume while it is bound.
	VolumeProtection = "kubernetes.io/pv-protection"
	// StorageClass is the default class of every world. Its volumes cannot grow.
	StorageClass = "standard"
	// GrowingStorageClass is the class whose volumes can grow.
	GrowingStorageClass = "growing"
)

var (
	accessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce,
		corev1.ReadWriteOncePod}
	volumeModes = []corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}
)

func claimRules() rules {
	r := specAndStatus()
	r.defaults = func(object client.Object) {
		claim := object.(*corev1.PersistentVolumeClaim)
		if claim.Status.Phase == "" {
			claim.Status.Phase = corev1.ClaimPending
		}
		if claim.Spec.VolumeMode == nil {
			mode := corev1.PersistentVolumeFilesystem
			claim.Spec.VolumeMode = &mode
		}
	}
	r.admit = func(_ *Server, object client.Object) error {
		claim := object.(*corev1.PersistentVolumeClaim)
		if !slices.Contains(claim.Finalizers, ClaimProtection) {
			claim.Finalizers = append(claim.Finalizers, ClaimProtection)
		}
		if claim.Spec.StorageClassName == nil {
			class := StorageClass
			claim.Spec.StorageClassName = &class
		}
		return nil
	}
	r.prepareCreate = func(object client.Object) {
		claim := object.(*corev1.PersistentVolumeClaim)
		claim.Status = corev1.PersistentVolumeClaimStatus{}
		normalizeDataSources(&claim.Spec)
	}
	prepare := r.prepareUpdate
	r.prepareUpdate = func(object, old client.Object) {
		prepare(object, old)
		normalizeDataSources(&object.(*corev1.PersistentVolumeClaim).Spec)
	}
	r.validate = func(object client.Object) field.ErrorList {
		return validClaim(&object.(*corev1.PersistentVolumeClaim).Spec, field.NewPath("spec"))
	}
	r.validateUpdate = func(object, old client.Object) field.ErrorList {
		return validClaimUpdate(object.(*corev1.PersistentVolumeClaim), old.(*corev1.PersistentVolumeClaim))
	}
	r.validateStatus = func(object, _ client.Object) (errs field.ErrorList) {
		for name, size := range object.(*corev1.PersistentVolumeClaim).Status.Capacity {
			errs = append(errs, nonnegative(size, field.NewPath("status", "capacity").Key(string(name)))...)
		}
		return errs
	}
	r.allowUpdate = func(object, old client.Object) error {
		claim, before := object.(*corev1.PersistentVolumeClaim), old.(*corev1.PersistentVolumeClaim)
		if size := claim.Spec.Resources.Requests[corev1.ResourceStorage]; size.Cmp(
			before.Spec.Resources.Requests[corev1.ResourceStorage],
		) > 0 && (claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != GrowingStorageClass) {
			return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), claim.Name,
				errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the "+
					"pvc must support resize"))
		}
		return nil
	}
	return r
}

// normalizeDataSources has the two fields for the source of a volume say the same
// (pkg/registry/core/persistentvolumeclaim, NormalizeDataSources).
func normalizeDataSources(spec *corev1.PersistentVolumeClaimSpec) {
	from, ref := spec.DataSource, spec.DataSourceRef
	switch {
	case from != nil && ref == nil:
		spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: from.APIGroup, Kind: from.Kind, Name: from.Name}
	case from == nil && ref != nil && (ref.Namespace == nil || *ref.Namespace == ""):
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}
	}
}

func validClaim(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	errs := validAccessModes(spec.AccessModes, at.Child("accessModes"))
	if spec.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(spec.Selector,
			metavalidation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
	}
	storage := at.Child("resources").Key(string(corev1.ResourceStorage))
	if size, has := spec.Resources.Requests[corev1.ResourceStorage]; !has {
		errs = append(errs, field.Required(storage, ""))
	} else {
		errs = append(errs, positive(size, storage)...)
	}
	if name := spec.StorageClassName; name != nil && *name != "" {
		for _, why := range validation.NameIsDNSSubdomain(*name, false) {
			errs = append(errs, field.Invalid(at.Child("storageClassName"), *name, why))
		}
	}
	if mode := spec.VolumeMode; mode != nil && !slices.Contains(volumeModes, *mode) {
		errs = append(errs, field.NotSupported(at.Child("volumeMode"), *mode, volumeModes))
	}
	return errs
}

func validAccessModes(modes []corev1.PersistentVolumeAccessMode, at *field.Path) (errs field.ErrorList) {
	if len(modes) == 0 {
		errs = append(errs, field.Required(at, "at least 1 access mode is required"))
	}
	for _, mode := range modes {
		if !slices.Contains(accessModes, mode) {
			errs = append(errs, field.NotSupported(at, mode, accessModes))
		}
	}
	return errs
}

// validClaimUpdate lets a claim be bound once, and a bound one ask for more.
func validClaimUpdate(claim, before *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
	now, then := claim.Spec.DeepCopy(), before.Spec.DeepCopy()
	if then.VolumeName == "" {
		then.VolumeName = now.VolumeName
	}
	if claim.Status.Phase == corev1.ClaimBound {
		if now.Resources.Requests != nil {
			now.Resources.Requests[corev1.ResourceStorage] = then.Resources.Requests[corev1.ResourceStorage]
		}
		now.VolumeAttributesClassName = then.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(now, then) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"),
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "+
				"claims"))
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(before.Spec.Resources.Requests[corev1.ResourceStorage]) < 0 &&
		size.Cmp(before.Status.Capacity[corev1.ResourceStorage]) <= 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "resources", "requests", "storage"),
			"field can not be less than status.capacity"))
	}
	return append(errs, immutable(claim.Spec.VolumeMode, before.Spec.VolumeMode, field.NewPath("volumeMode"))...)
}

func positive(size resource.Quantity, at *field.Path) field.ErrorList {
	if size.Sign() <= 0 {
		return field.ErrorList{field.Invalid(at, size.String(), "must be greater than zero")}
	}
	return nil
}

func nonnegative(size resource.Quantity, at *field.Path) field.ErrorList {
	if size.Sign() < 0 {
		return field.ErrorList{field.Invalid(at, size.String(), "must be greater than or equal to 0")}
	}
	return nil
}
