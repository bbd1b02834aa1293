package render

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
)

// Volume is one persistent volume of a node.
type Volume struct {
	// Name is data, commitlog, or that of an additional volume.
	Name      string
	MountPath string
	Claim     v1alpha1.VolumeClaim
}

// Volumes are the persistent volumes that a node's pod has, data first.
func Volumes(settings v1alpha1.PodSettings) []Volume {
	s := settings.Storage.Claims
	if s == nil {
		return nil
	}
	var out []Volume
	if s.Data != nil {
		out = append(out, Volume{Name: v1alpha1.VolumeData, MountPath: layout.DataDir, Claim: *s.Data})
	}
	if s.Commitlog != nil {
		out = append(out, Volume{Name: v1alpha1.VolumeCommitlog, MountPath: layout.CommitlogDir, Claim: *s.Commitlog})
	}
	for _, a := range s.Additional {
		out = append(out, Volume{Name: a.Name, MountPath: a.MountPath, Claim: a.VolumeClaim})
	}
	return out
}

// mounted are the volumes that a node's pod has its data on: those of its claims, or the one that
// goes with the pod.
func mounted(settings v1alpha1.PodSettings) []Volume {
	if settings.Storage.Ephemeral != nil {
		return []Volume{{Name: v1alpha1.VolumeData, MountPath: layout.DataDir}}
	}
	return Volumes(settings)
}

// WithoutSizes is the storage of a node but for how large its volumes are: they grow while a pod
// uses them.
func WithoutSizes(s v1alpha1.Storage) v1alpha1.Storage {
	out := *s.DeepCopy()
	if out.Claims == nil {
		return out
	}
	for _, claim := range []*v1alpha1.VolumeClaim{out.Claims.Data, out.Claims.Commitlog} {
		if claim != nil {
			claim.Size = nil
		}
	}
	for i := range out.Claims.Additional {
		out.Claims.Additional[i].Size = nil
	}
	return out
}

// dataSource as Kubernetes has it: the group of its own kinds is none.
func dataSource(from *v1alpha1.DataSource) *corev1.TypedLocalObjectReference {
	if from == nil {
		return nil
	}
	out := &corev1.TypedLocalObjectReference{Kind: from.Kind, Name: from.Name}
	if from.APIGroup != "" {
		out.APIGroup = &from.APIGroup
	}
	return out
}

// Claim is the claim of a node for a volume. It has no owner: no deletion of a record, of the
// cluster or of its kinds ever collects a disk.
func Claim(owner Owner, record *v1alpha1.CassandraNode, v Volume) *corev1.PersistentVolumeClaim {
	labels := nodeLabels(owner, record.Spec.Datacenter, record.Spec.Rack, record.Name)
	maps.Copy(labels, map[string]string{v1alpha1.LabelVolume: v.Name})
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      ClaimName(record, v.Name),
			Namespace: owner.Namespace,
			Labels:    labels,
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: v.Claim.StorageClassName,
			Selector:         v.Claim.Selector,
			DataSource:       dataSource(v.Claim.DataSource),
		},
	}
	for _, mode := range v.Claim.AccessModes {
		claim.Spec.AccessModes = append(claim.Spec.AccessModes, corev1.PersistentVolumeAccessMode(mode))
	}
	if len(claim.Spec.AccessModes) == 0 {
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	if class := v.Claim.StorageClassName; class != nil {
		claim.Annotations = map[string]string{v1alpha1.AnnotationStorageClass: *class}
	}
	if v.Claim.Size != nil {
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *v.Claim.Size}
	}
	return claim
}

// ClaimName is the name of a new claim of a node. Where the node has replaced a member whose claims
// are out of reach these keep their names, and others are named after that member.
func ClaimName(record *v1alpha1.CassandraNode, volume string) string {
	name := v1alpha1.ClaimName(volume, record.Name)
	for _, r := range record.Spec.Replaced {
		if r.ClaimUID != "" {
			name = v1alpha1.ClaimName(volume, record.Name) + "-" + r.HostID[:8]
		}
	}
	return name
}

// Former says that a claim is that of a member which the node of a record has replaced.
func Former(record *v1alpha1.CassandraNode, volume string, claim *corev1.PersistentVolumeClaim) bool {
	if claim == nil || slices.ContainsFunc(record.Spec.Claims,
		func(c v1alpha1.ClaimReference) bool { return c.UID == claim.UID }) {
		return false
	}
	return slices.ContainsFunc(record.Spec.Replaced,
		func(r v1alpha1.ReplacedMember) bool { return r.ClaimUID != "" }) && claim.Name != ClaimName(record, volume)
}

// Reference pins a claim in a record.
func Reference(volume string, claim *corev1.PersistentVolumeClaim) v1alpha1.ClaimReference {
	return v1alpha1.ClaimReference{Volume: volume, Name: claim.Name, UID: claim.UID}
}
