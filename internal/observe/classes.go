package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// classes finds the storage classes of claims for which the spec asks for more than they do. All
// others count for nothing.
func (r *Reader) classes(ctx context.Context, s *facts.Snapshot) error {
	s.Expandable = map[string]bool{}
	largest := largestVolumes(&s.Cluster.Spec)
	for _, n := range s.Nodes {
		for volume, c := range n.Claims {
			wants, has := largest[volume], c.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
			if c.Claim.Spec.StorageClassName == nil || wants.Cmp(has) <= 0 {
				continue
			}
			name := *c.Claim.Spec.StorageClassName
			if _, known := s.Expandable[name]; known {
				continue
			}
			class := &storagev1.StorageClass{}
			switch err := r.Live.Get(ctx, client.ObjectKey{Name: name}, class); {
			case err == nil:
				s.Expandable[name] = class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion
			case apierrors.IsNotFound(err):
				s.Expandable[name] = false
			default:
				return fmt.Errorf("get storage class %s: %w", name, err)
			}
		}
	}
	return nil
}

// largestVolumes are the largest sizes that a spec gives to the volumes of any node, by volume.
func largestVolumes(spec *v1alpha1.CassandraClusterSpec) map[string]resource.Quantity {
	out := map[string]resource.Quantity{}
	add := func(s *v1alpha1.Storage) {
		if s == nil {
			return
		}
		for _, v := range render.Volumes(v1alpha1.PodSettings{Storage: *s}) {
			if has := out[v.Name]; v.Claim.Size != nil && v.Claim.Size.Cmp(has) > 0 {
				out[v.Name] = *v.Claim.Size
			}
		}
	}
	if spec.Node != nil {
		add(spec.Node.Storage)
	}
	for i := range spec.Datacenters {
		dc := &spec.Datacenters[i]
		if dc.Node != nil {
			add(dc.Node.Storage)
		}
		for j := range dc.Racks {
			if dc.Racks[j].Node != nil {
				add(dc.Racks[j].Node.Storage)
			}
		}
	}
	return out
}
