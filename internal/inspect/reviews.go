package inspect

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// Where the API server publishes how its clients are known. Every component that serves requests of
// its own reads it there.
const (
	authenticationNamespace = "kube-system"
	authenticationConfig    = "extension-apiserver-authentication"
	clientAuthoritiesKey    = "client-ca-file"
)

// Reviews asks the API server who somebody is and what they may do. Every question is asked again:
// a right that was taken away is gone at once.
type Reviews struct {
	// Live reads from the API server itself.
	Live client.Reader
	// Client creates the reviews.
	Client client.Client
}

// ClientAuthorities is the bundle of the authorities whose client certificates the API server
// accepts, in PEM. Empty if it accepts none.
func (r Reviews) ClientAuthorities(ctx context.Context) ([]byte, error) {
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: authenticationNamespace, Name: authenticationConfig}
	if err := r.Live.Get(ctx, key, config); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	return []byte(config.Data[clientAuthoritiesKey]), nil
}

// Token asks whose token it is. Without an audience it must be one for the API server.
func (r Reviews) Token(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := r.Client.Create(ctx, review); err != nil {
		return authenticationv1.TokenReviewStatus{}, fmt.Errorf("create TokenReview: %w", err)
	}
	return review.Status, nil
}

// May asks whether somebody may do something with a CassandraCluster. The text is the API server's
// reason, often empty.
func (r Reviews) May(ctx context.Context, verb string, user authenticationv1.UserInfo,
	key types.NamespacedName) (bool, string, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extraOf(user.Extra),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Resource: "cassandraclusters",
			Namespace: key.Namespace, Name: key.Name,
		},
	}}
	if err := r.Client.Create(ctx, review); err != nil {
		return false, "", fmt.Errorf("create SubjectAccessReview: %w", err)
	}
	return review.Status.Allowed && !review.Status.Denied, review.Status.Reason, nil
}

func extraOf(in map[string]authenticationv1.ExtraValue) map[string]authorizationv1.ExtraValue {
	if in == nil {
		return nil
	}
	out := make(map[string]authorizationv1.ExtraValue, len(in))
	for key, values := range in {
		out[key] = authorizationv1.ExtraValue(values)
	}
	return out
}
