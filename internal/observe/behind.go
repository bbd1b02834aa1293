package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
)

// versions of the kinds that the operator writes.
var versions = map[string]schema.GroupVersion{
	"CassandraCluster": v1alpha1.GroupVersion, "CassandraNode": v1alpha1.GroupVersion,
	"CassandraTask": v1alpha1.GroupVersion, "CassandraTaskSchedule": v1alpha1.GroupVersion,
	"CassandraBackupStore": v1alpha1.GroupVersion, "CassandraBackup": v1alpha1.GroupVersion,
	"CassandraBackupSchedule": v1alpha1.GroupVersion,
	"CassandraRestore":        v1alpha1.GroupVersion,
	"Pod":                     corev1.SchemeGroupVersion, "PersistentVolumeClaim": corev1.SchemeGroupVersion,
	"Service":   corev1.SchemeGroupVersion,
	"ConfigMap": corev1.SchemeGroupVersion, "Secret": corev1.SchemeGroupVersion,
	"ServiceAccount": corev1.SchemeGroupVersion,
	"Role":           rbacv1.SchemeGroupVersion, "RoleBinding": rbacv1.SchemeGroupVersion,
	"PodDisruptionBudget": policyv1.SchemeGroupVersion, "NetworkPolicy": networkingv1.SchemeGroupVersion,
}

// caughtUp returns ErrBehind while the cache does not show our own last writes. An object that we
// wrote and that the cache does not have is either still to come or was deleted since by somebody
// else; the API server knows.
func (r *Reader) caughtUp(ctx context.Context, cluster string, o *objects, store *consistency.Store) error {
	for _, key := range store.Unseen(o.look) {
		if _, there := o.look(key); there {
			return fmt.Errorf("%w: %s", ErrBehind, key)
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(versions[key.Kind].WithKind(key.Kind))
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, object)
		switch {
		case apierrors.IsNotFound(err):
			store.Gone(key)
		case err != nil:
			return fmt.Errorf("get %s: %w", key, err)
		case key.Kind == "Secret":
			store.Gone(key) // never from a cache: nobody has asked for it, since its record is not in the view
		case !byUser(key.Kind) && !listed(key.Kind, object.Labels, cluster):
			store.Gone(key) // somebody has taken labels away, and the cache will never show it
		default:
			return fmt.Errorf("%w: %s", ErrBehind, key)
		}
	}
	return nil
}

// alone reads one object of which our own last writes are visible, and says whether it is there.
func (r *Reader) alone(ctx context.Context, kind string, key types.NamespacedName, into client.Object,
	seen *consistency.Store) (bool, error) {
	if err := r.Cache.Get(ctx, key, into); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	o := &objects{seen: map[consistency.Key]consistency.Seen{}}
	o.add(kind, into)
	err := r.caughtUp(ctx, "", o, seen)
	return err == nil, err
}

// byUser says that objects of a kind are users', and found without labels of ours.
func byUser(kind string) bool {
	return kind == "CassandraCluster" || kind == "CassandraTask" || kind == "CassandraTaskSchedule" ||
		kind == "CassandraBackupStore" || kind == "CassandraBackup" || kind == "CassandraBackupSchedule" ||
		kind == "CassandraRestore"
}
