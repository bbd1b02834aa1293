package operator

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// Wakes says which clusters have to be looked at after a change: of an object from old to now,
// where old is nil for a new one and now for one that is gone. View is what the operator sees.
func Wakes(view client.Reader, old, now client.Object) []types.NamespacedName {
	object := now
	if object == nil {
		object = old
	}
	if host, is := object.(*corev1.Node); is {
		if old != nil && now != nil && !telling().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now}) {
			return nil
		}
		return keys(ofHost(view)(context.Background(), host))
	}
	if _, cluster := object.(*v1alpha1.CassandraCluster); cluster {
		if old != nil && now != nil && !meaningful().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now}) {
			return nil
		}
		return []types.NamespacedName{client.ObjectKeyFromObject(object)}
	}
	return keys(ofCluster(context.Background(), object))
}

func keys(requests []reconcile.Request) []types.NamespacedName {
	var out []types.NamespacedName
	for _, request := range requests {
		out = append(out, request.NamespacedName)
	}
	return out
}

// ofHost are the clusters that have a pod on a host, or one that has no host yet: its disk may be
// there.
func ofHost(view client.Reader) handler.MapFunc {
	return func(ctx context.Context, host client.Object) []reconcile.Request {
		var pods corev1.PodList
		if err := view.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the pods of a host", "host", host.GetName())
			return nil
		}
		var out []reconcile.Request
		for i := range pods.Items {
			if on := pods.Items[i].Spec.NodeName; on != host.GetName() && on != "" {
				continue
			}
			for _, request := range ofCluster(ctx, &pods.Items[i]) {
				if !slices.Contains(out, request) {
					out = append(out, request)
				}
			}
		}
		return out
	}
}

// telling lets through the changes of a host that say whether it is gone, heard, or cordoned.
// Hosts report much else all the time.
func telling() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, now := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
			return old.UID != now.UID || facts.OutOfService(old) != facts.OutOfService(now) ||
				readiness(old) != readiness(now) ||
				old.Spec.Unschedulable != now.Spec.Unschedulable || !maps.Equal(old.Labels, now.Labels)
		},
	}
}

func readiness(host *corev1.Node) corev1.ConditionStatus {
	if c := facts.HostReady(host); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}

// meaningful lets through the events of a cluster that can change what is decided. Our own writes
// of its status cannot.
func meaningful() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, now := e.ObjectOld, e.ObjectNew
			return old.GetGeneration() != now.GetGeneration() ||
				(old.GetDeletionTimestamp() == nil) != (now.GetDeletionTimestamp() == nil) ||
				!slices.Equal(old.GetFinalizers(), now.GetFinalizers()) ||
				!maps.Equal(old.GetAnnotations(), now.GetAnnotations())
		},
	}
}
