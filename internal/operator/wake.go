package operator

import (
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

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
