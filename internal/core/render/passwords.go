package render

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// RolesSecret is the Secret of the roles that are ours, without its content. Like the claims it has
// no owner: a disk is of no use without the passwords of its roles.
func RolesSecret(owner Owner) *corev1.Secret {
	return passwords(owner, v1alpha1.RolesName(owner.Name), corev1.SecretTypeOpaque)
}

// SuperuserSecret is the Secret of the superuser that we make, without its content.
func SuperuserSecret(owner Owner) *corev1.Secret {
	return passwords(owner, v1alpha1.SuperuserName(owner.Name), corev1.SecretTypeBasicAuth)
}

// AppliedSuperuser is the Secret of the superuser as it is applied, without its content.
func AppliedSuperuser(owner Owner) *corev1.Secret {
	return passwords(owner, v1alpha1.AppliedSuperuserName(owner.Name), corev1.SecretTypeBasicAuth)
}

func passwords(owner Owner, name string, of corev1.SecretType) *corev1.Secret {
	meta := owner.meta(name, v1alpha1.ComponentCassandra)
	meta.OwnerReferences = nil
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Type: of}
}

// MadeFor says that Helenus made a Secret for a cluster of this name: for this one, or for an
// earlier one whose disks may be there yet.
func MadeFor(owner Owner, secret *corev1.Secret) bool {
	return secret.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy &&
		secret.Labels[v1alpha1.LabelCluster] == owner.Name
}

// ourRoles are the names that the superuser of the user cannot have.
var ourRoles = []string{v1alpha1.RoleDefault, v1alpha1.RoleRoot, v1alpha1.RoleOperator}

// SuperuserProblem is what is wrong with the user name or the password in a Secret; empty if
// nothing is. It says nothing of the password.
func SuperuserProblem(secret *corev1.Secret) string {
	switch name := string(secret.Data[corev1.BasicAuthUsernameKey]); {
	case name == "":
		return "has no " + corev1.BasicAuthUsernameKey + ": it must have one of 1 to 128 bytes"
	case len(name) > longestRole || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\'' }):
		return fmt.Sprintf("has the %s %q: it must have 1 to %d bytes, and neither quotes nor control characters",
			corev1.BasicAuthUsernameKey, name, longestRole)
	case slices.Contains(ourRoles, name):
		return fmt.Sprintf("has the %s %s: it must be another than %s", corev1.BasicAuthUsernameKey, name,
			strings.Join(ourRoles, ", "))
	}
	return PasswordProblem(secret)
}

// PasswordProblem is what is wrong with the password in a Secret; empty if nothing is.
func PasswordProblem(secret *corev1.Secret) string {
	switch password := secret.Data[corev1.BasicAuthPasswordKey]; {
	case len(password) == 0:
		return fmt.Sprintf("has no %s: it must have one of 1 to %d bytes", corev1.BasicAuthPasswordKey,
			v1alpha1.MaxPasswordBytes)
	case len(password) > v1alpha1.MaxPasswordBytes:
		return fmt.Sprintf("has a %s of %d bytes: it must have 1 to %d, since bcrypt cuts off what is beyond",
			corev1.BasicAuthPasswordKey, len(password), v1alpha1.MaxPasswordBytes)
	case slices.Contains(password, 0):
		return fmt.Sprintf("has a NUL in its %s, which ends a password on its way: it must have none",
			corev1.BasicAuthPasswordKey)
	}
	return ""
}

const longestRole = 128
