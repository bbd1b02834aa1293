package act

import (
	"context"
	"crypto/rand"
	"fmt"

	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
)

// makePasswords makes a Secret with new passwords. It is only ever created: a password that exists
// is on the disks, too, and is never replaced.
func (p *pass) makePasswords(ctx context.Context, w plan.Write) error {
	secret := w.Object.DeepCopyObject().(*corev1.Secret)
	switch secret.Name {
	case v1alpha1.RolesName(p.owner.Name):
		root := []byte(rand.Text())
		// The cost keeps weak passwords from being found out. This one is random, and soon
		// nobody's.
		hash, err := bcrypt.GenerateFromPassword(root, bcrypt.MinCost)
		if err != nil {
			return fmt.Errorf("hash password of %s: %w", v1alpha1.RoleRoot, err)
		}
		secret.Data = map[string][]byte{v1alpha1.RoleRoot: root, v1alpha1.KeyRootHash: hash,
			v1alpha1.RoleOperator: []byte(rand.Text())}
	case v1alpha1.SuperuserName(p.owner.Name):
		secret.Data = map[string][]byte{corev1.BasicAuthUsernameKey: []byte(v1alpha1.RoleSuperuser),
			corev1.BasicAuthPasswordKey: []byte(rand.Text())}
	default:
		return fmt.Errorf("make passwords: Secret %s is not one of ours", secret.Name)
	}
	return p.create(ctx, secret)
}
