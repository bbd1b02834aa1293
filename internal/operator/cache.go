package operator

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/render"
)

// byLabel says that of a kind only the objects with our label are watched: other people have
// objects of it too.
func byLabel(object client.Object) bool {
	switch object.(type) {
	case *v1alpha1.CassandraCluster, *v1alpha1.CassandraNode, *v1alpha1.CassandraTask, *v1alpha1.CassandraTaskSchedule,
		*v1alpha1.CassandraBackupStore, *v1alpha1.CassandraBackup, *v1alpha1.CassandraBackupSchedule,
		*v1alpha1.CassandraRestore,
		*corev1.PersistentVolume, *corev1.Node:
		return false
	default:
		return true
	}
}

// Cached says whether an operator has an object in its cache.
func Cached(object client.Object) bool {
	if _, secret := object.(*corev1.Secret); secret {
		return false
	}
	return !byLabel(object) || object.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
}

// Outline is what an operator's cache keeps of an object: what is decided on, and of what is large
// no more. Of a pod's spec only the host counts, and the images and resources of Cassandra and of
// the agent: what else is in it is compared by the hash in the annotations. Of a host it counts
// which one it is, what it is like, and whether it is there; the images that it has are many times
// as large. The object itself is not changed.
func Outline(object client.Object) client.Object {
	switch full := object.(type) {
	case *corev1.Pod:
		out := &corev1.Pod{TypeMeta: full.TypeMeta, ObjectMeta: full.ObjectMeta, Status: full.Status}
		out.Spec.NodeName = full.Spec.NodeName
		out.Spec.InitContainers = outlineOf(full.Spec.InitContainers, layout.AgentContainer)
		out.Spec.Containers = outlineOf(full.Spec.Containers, layout.CassandraContainer)
		return out
	case *corev1.Node:
		out := &corev1.Node{TypeMeta: full.TypeMeta, ObjectMeta: full.ObjectMeta}
		out.Annotations = nil
		out.Spec.Taints, out.Spec.Unschedulable = full.Spec.Taints, full.Spec.Unschedulable
		out.Status.Conditions, out.Status.Allocatable = full.Status.Conditions, full.Status.Allocatable
		out.Status.NodeInfo.KubeletVersion = full.Status.NodeInfo.KubeletVersion
		return out
	default:
		return object
	}
}

// outlineOf one of the containers of a pod.
func outlineOf(all []corev1.Container, name string) []corev1.Container {
	for _, c := range all {
		if c.Name == name && c.Image != "" {
			return []corev1.Container{{Name: name, Image: c.Image, Resources: c.Resources,
				ResizePolicy: c.ResizePolicy}}
		}
	}
	return nil
}

// cacheOptions keep only what is ours: objects of other people never come into memory. Secrets are
// not watched at all.
func cacheOptions(namespaces []string) cache.Options {
	mine := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})}
	o := cache.Options{
		ByObject: map[client.Object]cache.ByObject{},
		DefaultTransform: func(in any) (any, error) {
			object, ok := in.(client.Object)
			if !ok {
				return in, nil // that an object is gone, which was not seen to go
			}
			object.SetManagedFields(nil) // who owns which field matters to nobody here
			return Outline(object), nil
		},
	}
	for _, object := range watched() {
		if byLabel(object) {
			o.ByObject[object] = mine
		}
	}
	o.ByObject[definition()] = cache.ByObject{
		Field: fields.OneTermEqualSelector(metav1.ObjectNameField, render.MonitorDefinition),
	}
	for _, n := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[n] = cache.Config{}
	}
	return o
}
