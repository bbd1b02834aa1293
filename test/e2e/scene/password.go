package scene

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/dev/demo/follow"
)

// Rotate gives the superuser another password, by its Secret, and returns the version of that.
func (r *Ring) Rotate(ctx context.Context, password string) (version string, err error) {
	c, _ := r.Now(ctx).Cluster(r.Name)
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: r.Namespace, Name: c.Status.Security.Authentication.Superuser.SecretName}
	if err := r.Kubernetes.Client.Get(ctx, name, secret); err != nil {
		return "", fmt.Errorf("read the superuser's Secret: %w", err)
	}
	secret.Data[corev1.BasicAuthPasswordKey] = []byte(password)
	if err := r.Kubernetes.Client.Update(ctx, secret); err != nil {
		return "", fmt.Errorf("change the superuser's Secret: %w", err)
	}
	return secret.ResourceVersion, nil
}

// Rotated waits until each node accepts the password in a version of the superuser's Secret.
func (r *Ring) Rotated(ctx context.Context, version string, bound time.Duration) error {
	return r.Until(ctx, bound, "the new password is accepted", func(now follow.Sight) error {
		c, _ := now.Cluster(r.Name)
		if is := c.Status.Security.Authentication.Superuser.SecretVersion; is != version {
			return fmt.Errorf("version %q of the Secret does, not %s", is, version)
		}
		return nil
	})
}
