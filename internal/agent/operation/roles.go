package operation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
)

func setRoles(ctx context.Context, t *task) (string, error) {
	logins, err := t.logins(ctx)
	if err != nil {
		return "", err
	}
	return t.JVM.SetRoles(ctx, logins, t.arguments.Replication)
}

func setPassword(ctx context.Context, t *task) (string, error) {
	logins, err := t.logins(ctx)
	if err != nil {
		return "", err
	}
	return t.JVM.SetPassword(ctx, logins)
}

func proveLogin(ctx context.Context, t *task) (string, error) {
	logins, err := t.logins(ctx)
	if err != nil {
		return "", err
	}
	if t.arguments.SuperuserAlone {
		return logins.Superuser.User + " logs in", t.JVM.ProvePassword(ctx, logins.Superuser, logins.Old)
	}
	return fmt.Sprintf("%s and %s log in, %s and %s are refused", logins.Superuser.User, logins.Operator.User,
		v1alpha1.RoleDefault, logins.Root.User), t.JVM.ProveLogin(ctx, logins)
}

// keepRoles says nothing of what is right already.
func keepRoles(ctx context.Context, t *task) (string, error) {
	superuser, err := t.Secret(ctx, t.arguments.SuperuserSecret)
	if err != nil {
		return "", err
	}
	var roles []cassandra.KeptRole
	for _, r := range t.arguments.Roles {
		secret, err := t.Secret(ctx, r.SecretName)
		if err != nil {
			return "", err
		}
		password := string(secret[corev1.BasicAuthPasswordKey])
		if password == "" || len(password) > v1alpha1.MaxPasswordBytes {
			return "", fmt.Errorf("role %s: the password in Secret %s has %d bytes, and must have 1 to %d", r.Name,
				r.SecretName, len(password), v1alpha1.MaxPasswordBytes)
		}
		roles = append(roles, cassandra.KeptRole{Login: cassandra.Login{User: r.Name, Password: password},
			Grants: r.Grants, Revokes: r.Revokes})
	}
	return t.JVM.KeepRoles(ctx, loginIn(superuser), roles)
}

func checkRows(ctx context.Context, t *task) (string, error) {
	var superuser cassandra.Login
	if t.arguments.SuperuserSecret != "" {
		secret, err := t.Secret(ctx, t.arguments.SuperuserSecret)
		if err != nil {
			return "", err
		}
		superuser = loginIn(secret)
	}
	return t.JVM.CheckRows(ctx, superuser, t.arguments.Checks)
}

// loginIn is the login in a Secret of type kubernetes.io/basic-auth.
func loginIn(secret map[string][]byte) cassandra.Login {
	return cassandra.Login{User: string(secret[corev1.BasicAuthUsernameKey]),
		Password: string(secret[corev1.BasicAuthPasswordKey])}
}

// logins are those of the Secrets. They are kept for as long as the operation runs.
func (t *task) logins(ctx context.Context) (l cassandra.Logins, err error) {
	roles, err := t.Secret(ctx, v1alpha1.RolesName(t.Record.Spec.Cluster.Name))
	if err != nil {
		return l, err
	}
	superuser, err := t.Secret(ctx, t.arguments.SuperuserSecret)
	if err != nil {
		return l, err
	}
	return cassandra.Logins{
		Superuser: loginIn(superuser),
		Root:      loginOf(roles, v1alpha1.RoleRoot),
		Operator:  loginOf(roles, v1alpha1.RoleOperator),
		Old:       string(superuser[v1alpha1.KeyOldPassword]),
	}, nil
}

// OperatorLogin is whom the agents of a cluster log in as, from its Secret.
func OperatorLogin(ctx context.Context, secret func(context.Context, string) (map[string][]byte, error),
	cluster string) (cassandra.Login, error) {
	roles, err := secret(ctx, v1alpha1.RolesName(cluster))
	return loginOf(roles, v1alpha1.RoleOperator), err
}

func loginOf(roles map[string][]byte, name string) cassandra.Login {
	return cassandra.Login{User: name, Password: string(roles[name])}
}
