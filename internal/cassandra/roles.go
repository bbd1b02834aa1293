package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/jolokia"
)

// Login is who logs in by CQL.
type Login struct{ User, Password string }

// Logins are those of a ring that asks for a password: of the user's superuser, and of the two
// roles of ours. Old is the password that the superuser had before; empty if he had none.
type Logins struct {
	Superuser, Root, Operator Login
	Old                       string
}

// KeptRole is a role of an application: what it is granted, and what it may no longer.
type KeptRole struct {
	Login
	Grants, Revokes []v1alpha1.RoleGrant
}

// Check says what of the logins cannot be. Cassandra 5.0 makes a role with a quote in its name by
// half (CIDRPermissionsManager#setCidrGroupsForRole).
func (l Logins) Check() error {
	if ours := []string{v1alpha1.RoleRoot, v1alpha1.RoleOperator, v1alpha1.RoleDefault}; slices.Contains(ours, l.Superuser.User) {
		return fmt.Errorf("superuser %s: the name is taken, choose another one", l.Superuser.User)
	}
	if strings.Contains(l.Superuser.User, "'") {
		return fmt.Errorf("superuser %s: Cassandra 5.0 makes no role with a quote in its name", l.Superuser.User)
	}
	for _, of := range []Login{l.Superuser, l.Root, l.Operator} {
		switch {
		case of.User == "":
			return errors.New("the superuser has no name")
		case of.Password == "":
			return fmt.Errorf("role %s has no password", of.User)
		case len(of.Password) > v1alpha1.MaxPasswordBytes:
			return fmt.Errorf("role %s: the password has %d bytes, and bcrypt takes %d at most", of.User,
				len(of.Password), v1alpha1.MaxPasswordBytes)
		}
	}
	return nil
}

// InvalidateAuthCaches has the node read passwords, roles and permissions anew. A cache that it
// does not have is passed over.
func (n *Node) InvalidateAuthCaches(ctx context.Context) error {
	var requests []jolokia.Request
	for _, cache := range []string{"CredentialsCache", "RolesCache", "PermissionsCache"} {
		requests = append(requests, jolokia.Exec("org.apache.cassandra.auth:type="+cache, "invalidate()"))
	}
	answers, err := n.jmx.Do(ctx, requests...)
	for i := range answers {
		if !errors.Is(answers[i].Err, jolokia.ErrInstanceNotFound) {
			err = errors.Join(err, answers[i].Err)
		}
	}
	if err != nil {
		return fmt.Errorf("invalidate the caches of roles: %w", err)
	}
	return nil
}
