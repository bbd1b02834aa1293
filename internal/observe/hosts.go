package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/core/facts"
)

// hosts finds the hosts that pods are on, and those where the volumes of nodes without a place can
// be used.
func (r *Reader) hosts(ctx context.Context, s *facts.Snapshot) error {
	s.Hosts = map[string]*corev1.Node{}
	var volumes []*corev1.PersistentVolume
	for _, n := range s.Nodes {
		if n.Unplaced() {
			for _, c := range n.Claims {
				if c.Volume != nil && c.Volume.Spec.NodeAffinity != nil {
					volumes = append(volumes, c.Volume)
				}
			}
			continue
		}
		name := n.Pod.Spec.NodeName
		if _, known := s.Hosts[name]; known {
			continue
		}
		host := &corev1.Node{}
		err := r.Cache.Get(ctx, client.ObjectKey{Name: name}, host)
		switch {
		case err == nil:
			s.Hosts[name] = host
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("get host %s: %w", name, err)
		}
	}
	if len(volumes) == 0 {
		return nil // so that nobody goes through all hosts for a cluster whose pods are all placed
	}
	var all corev1.NodeList
	if err := r.Cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list hosts: %w", err)
	}
	for i := range all.Items {
		for _, volume := range volumes {
			if facts.Reaches(volume, &all.Items[i]) {
				s.Hosts[all.Items[i].Name] = &all.Items[i]
			}
		}
	}
	return nil
}
