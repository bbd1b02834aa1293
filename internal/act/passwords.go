package act

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
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

// copyPassword copies the superuser's login from its Secret. The password before stays beside it:
// nobody else has it any more.
func (p *pass) copyPassword(ctx context.Context, w plan.Write) error {
	from := &corev1.Secret{}
	if err := p.Live.Get(ctx, client.ObjectKey{Namespace: w.Object.GetNamespace(), Name: p.snapshot.SuperuserSecret()},
		from); err != nil {
		return fmt.Errorf("get Secret of the superuser: %w", err)
	}
	if problem := render.SuperuserProblem(from); problem != "" {
		return fmt.Errorf("copy password: Secret %s %s", from.Name, problem)
	}
	applied := w.Object.DeepCopyObject().(*corev1.Secret)
	if w.UID != "" {
		if err := p.applied(ctx, w, applied); err != nil {
			return err
		}
	}
	before, had := applied.Data[corev1.BasicAuthPasswordKey]
	user := from.Data[corev1.BasicAuthUsernameKey]
	if had && !bytes.Equal(applied.Data[corev1.BasicAuthUsernameKey], user) {
		return fmt.Errorf("copy password: Secret %s has another %s meanwhile", from.Name, corev1.BasicAuthUsernameKey)
	}
	if _, kept := applied.Data[v1alpha1.KeyOldPassword]; kept {
		before = applied.Data[v1alpha1.KeyOldPassword]
	}
	applied.Data = map[string][]byte{corev1.BasicAuthUsernameKey: user,
		corev1.BasicAuthPasswordKey: from.Data[corev1.BasicAuthPasswordKey]}
	if had {
		applied.Data[v1alpha1.KeyOldPassword] = before
	}
	applied.Annotations = map[string]string{v1alpha1.AnnotationSecretVersion: from.ResourceVersion}
	if w.UID == "" {
		return p.create(ctx, applied)
	}
	return p.update(ctx, applied)
}

// dropOldPassword forgets the password before.
func (p *pass) dropOldPassword(ctx context.Context, w plan.Write) error {
	applied := &corev1.Secret{}
	if err := p.applied(ctx, w, applied); err != nil {
		return err
	}
	if applied.ResourceVersion != w.ResourceVersion {
		return errors.New("drop the old password: its Secret was changed meanwhile")
	}
	delete(applied.Data, v1alpha1.KeyOldPassword)
	if applied.Annotations == nil {
		applied.Annotations = map[string]string{}
	}
	maps.Copy(applied.Annotations, w.Object.GetAnnotations())
	return p.update(ctx, applied)
}

// applied reads the Secret of the applied superuser, as it is now.
func (p *pass) applied(ctx context.Context, w plan.Write, into *corev1.Secret) error {
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(w.Object), into); err != nil {
		return fmt.Errorf("get Secret of the applied superuser: %w", err)
	}
	if into.UID != w.UID {
		return fmt.Errorf("%s: Secret %s is another one than was seen", w.Verb, into.Name)
	}
	return nil
}

// update has no effect on an object of another version.
func (p *pass) update(ctx context.Context, secret *corev1.Secret) error {
	if err := p.Client.Update(ctx, secret, client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return err
	}
	return p.wrote(secret)
}
