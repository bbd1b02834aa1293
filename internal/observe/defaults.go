package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// defaults puts the defaults of the namespace under the spec of the user: those of the ConfigMap,
// which is nobody's but a person's and thus not watched, until the ring is made.
func (r *Reader) defaults(ctx context.Context, s *facts.Snapshot, user *v1alpha1.CassandraCluster) error {
	s.Cluster, s.Defaults = user, facts.Defaults{}
	if s.FollowsDefaults() {
		given := &corev1.ConfigMap{ObjectMeta: metaOf(s, v1alpha1.DefaultsName)}
		switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(given), given); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("get the defaults of the namespace: %w", err)
		}
		s.Defaults.Node, s.Defaults.Problem = defaultsOf(given)
		if s.Defaults.Problem != "" {
			return nil
		}
	} else if made := s.Ledger.MadeWith; made != nil {
		s.Defaults.Node = made.Defaults
	}
	if s.Defaults.Node != nil {
		s.Cluster = render.WithDefaults(user, s.Defaults.Node)
	}
	return nil
}

// defaultsOf are the defaults in a ConfigMap, or what is wrong with them.
func defaultsOf(given *corev1.ConfigMap) (node *v1alpha1.NodeSettings, problem string) {
	node, err := render.ParseDefaults(given.Data)
	if err != nil {
		return nil, err.Error()
	}
	return node, ""
}
