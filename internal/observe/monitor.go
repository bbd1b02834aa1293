package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/render"
)

// Monitor is a cluster, nil if there is none, and what is there under the name of its PodMonitor,
// nil for nothing, from the API server itself.
func (r *Reader) Monitor(ctx context.Context, key types.NamespacedName) (*v1alpha1.CassandraCluster,
	*unstructured.Unstructured, error) {
	cluster := &v1alpha1.CassandraCluster{}
	if err := r.Cache.Get(ctx, key, cluster); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	monitor := &unstructured.Unstructured{}
	monitor.SetGroupVersionKind(render.MonitorKind)
	name := types.NamespacedName{Namespace: key.Namespace, Name: v1alpha1.PodMonitorName(key.Name)}
	switch err := r.Live.Get(ctx, name, monitor); {
	case apierrors.IsNotFound(err):
		return cluster, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("get PodMonitor: %w", err)
	}
	return cluster, monitor, nil
}
