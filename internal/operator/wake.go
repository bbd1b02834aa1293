package operator

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"helenus.io/helenus/api/v1alpha1"
)

// Wakes says which clusters have to be looked at after a change: of an object from old to now, where old is nil for a new one and now for one that is gone.
func Wakes(old, now client.Object) []types.NamespacedName {
	object := now
	if object == nil {
		object = old
	}
	if _, cluster := object.(*v1alpha1.CassandraCluster); cluster {
		if old != nil && now != nil && !meaningful().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now}) {
			return nil
		}
		return []types.NamespacedName{client.ObjectKeyFromObject(object)}
	}
	var keys []types.NamespacedName
	for _, request := range ofCluster(context.Background(), object) {
		keys = append(keys, request.NamespacedName)
	}
	return keys
}

// meaningful lets through the events of a cluster that can change what is decided. Our own writes of its status cannot.
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
