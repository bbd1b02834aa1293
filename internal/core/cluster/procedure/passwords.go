package procedure

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// CopyPassword has the Secret of the applied superuser, which may not be there, become what that of
// the superuser is.
func CopyPassword(v *assess.View, live bool, why string) plan.Write {
	w := plan.Write{Verb: plan.CopyPassword, Object: render.AppliedSuperuser(v.Owner()), Live: live, Why: why}
	if have := v.Passwords.Applied; have != nil {
		w.UID = have.UID
	}
	return w
}

// SuperuserProblem is why what is in the Secret is not applied; empty if it can be.
func SuperuserProblem(v *assess.View) string {
	p, secret := v.Passwords, "spec.security.authentication.superuser.secretName: Secret "+v.SuperuserSecret()
	switch {
	case p.Problem != "":
		return secret + " " + p.Problem + "; the password before stays"
	case p.Renamed != "":
		return fmt.Sprintf("%s has another %s than the superuser of this ring, %s, which does not change: put it "+
			"back; other superusers are made by CQL", secret, corev1.BasicAuthUsernameKey, p.Renamed)
	}
	return ""
}

// DropOldPassword has the Secret of the applied superuser forget the password before: the one that
// it has is proven now.
func DropOldPassword(v *assess.View, why string) plan.Write {
	have, secret := v.Passwords.Applied, render.AppliedSuperuser(v.Owner())
	secret.Annotations = map[string]string{v1alpha1.AnnotationAppliedAt: v.Now.UTC().Format(time.RFC3339)}
	return plan.Write{Verb: plan.DropOldPassword, Object: secret, UID: have.UID, ResourceVersion: have.ResourceVersion,
		Why: why}
}
