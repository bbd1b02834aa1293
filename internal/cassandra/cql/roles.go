package cql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/crypto/bcrypt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
)

// RoleNode is a node at which roles are made: see Roles.
type RoleNode interface {
	// LogIn opens a session; the error is ErrRefused if the node does not let that login in.
	LogIn(ctx context.Context, login cassandra.Login) (RoleSession, error)
	// InvalidateAuthCaches has the node read passwords, roles and permissions anew.
	InvalidateAuthCaches(ctx context.Context) error
}

// RoleSession is what a session is for roles: a Session.
type RoleSession interface {
	Schema
	// Asked says whether the node has asked for a password.
	Asked() bool
	// Role reads what a role may, and false if there is none of the name.
	Role(ctx context.Context, name string) (Role, bool, error)
	// Change executes a statement about roles. PutRole writes one as a row, with the hash of its
	// password: a node that asks nobody refuses statements about passwords.
	Change(ctx context.Context, statement string) error
	PutRole(ctx context.Context, name, hash string, to Role) error
	Close()
}

// Role is what a role may.
type Role struct{ Superuser, Login bool }

// Role reads what a role may, from a quorum of the datacenter.
func (s *Session) Role(ctx context.Context, name string) (Role, bool, error) {
	var r Role
	err := s.driver.Query("SELECT is_superuser, can_login FROM system_auth.roles WHERE role = ?", name).
		Consistency(gocql.LocalQuorum).ScanContext(ctx, &r.Superuser, &r.Login)
	if errors.Is(err, gocql.ErrNotFound) {
		return Role{}, false, nil
	}
	if err != nil {
		return Role{}, false, fmt.Errorf("read role %s: %w", name, err)
	}
	return r, true, nil
}

// Change executes a statement about roles.
func (s *Session) Change(ctx context.Context, statement string) error {
	return s.driver.Query(statement).ExecContext(ctx)
}

// PutRole writes a role as a row, to a quorum of each datacenter: as CREATE ROLE does
// (auth_write_consistency_level). It is newer than what is there.
func (s *Session) PutRole(ctx context.Context, name, hash string, to Role) error {
	return s.driver.Query("INSERT INTO system_auth.roles (role, salted_hash, can_login, is_superuser) "+
		"VALUES (?, ?, ?, ?)", name, hash, to.Login, to.Superuser).Consistency(gocql.EachQuorum).ExecContext(ctx)
}

// Costs of hashes. Nobody guesses a random password of 128 bits, so that only a password that
// people choose needs the cost that makes each attempt slow; each login pays for it, too.
const costOfRandom = bcrypt.MinCost

var costOfUsers = bcrypt.DefaultCost

// operatorGrants are what the agent needs: to alter how keyspaces are replicated, and to see what
// ForgetStreamedRanges has to forget, which itself cannot be granted. What is granted
// on all keyspaces does not hold for those of Cassandra itself (ClientState#ensurePermission).
var operatorGrants = []string{
	"ALTER ON ALL KEYSPACES", "ALTER ON KEYSPACE system_auth", "ALTER ON KEYSPACE system_distributed",
	"ALTER ON KEYSPACE system_traces", "SELECT ON KEYSPACE system_auth", "SELECT ON KEYSPACE system_views",
	"SELECT ON TABLE system.available_ranges_v2",
}

// SetRoles makes the roles of a ring that helenus_root alone is in: the user's superuser, and
// helenus_operator; it locks the role cassandra, and at last helenus_root. Before, prepare
// replicates the keyspace of roles to where they are asked for; it says what it did. It asks
// before it changes anything, so that it is done again after any interruption. At a node that asks
// nobody for a password all are written as rows, whatever is there, and nothing is granted.
func SetRoles(ctx context.Context, n RoleNode, l cassandra.Logins,
	prepare func(context.Context, Schema) (string, error)) (string, error) {
	if err := errors.Join(l.Check(), n.InvalidateAuthCaches(ctx)); err != nil {
		return "", err
	}
	admin, complete, err := administrator(ctx, n, l)
	if err != nil {
		return "", err
	}
	defer admin.Close()
	done, err := prepare(ctx, admin)
	if err != nil {
		return "", err
	}
	if err := lock(ctx, admin, v1alpha1.RoleDefault); err != nil {
		return "", err
	}
	if !complete {
		if err := setRole(ctx, admin, l.Superuser, true, costOfUsers); err != nil {
			return "", err
		}
	}
	if err := setOperator(ctx, n, admin, l.Operator); err != nil {
		return "", err
	}
	if err := n.InvalidateAuthCaches(ctx); err != nil {
		return "", err
	}
	superuser, err := n.LogIn(ctx, l.Superuser) // helenus_root cannot lock itself
	if err != nil {
		return "", fmt.Errorf("log in as the superuser that was made: %w", err)
	}
	defer superuser.Close()
	if err := lock(ctx, superuser, v1alpha1.RoleRoot); err != nil {
		return "", err
	}
	if r, _, err := superuser.Role(ctx, v1alpha1.RoleRoot); err != nil || r.Login {
		return "", errors.Join(err, fmt.Errorf("lock role %s: it is not yet: was it imported by a host whose clock is "+
			"ahead?", v1alpha1.RoleRoot))
	}
	return fmt.Sprintf("%s; made superuser %s and role %s, locked %s and %s", done, l.Superuser.User,
		l.Operator.User, v1alpha1.RoleDefault, v1alpha1.RoleRoot), n.InvalidateAuthCaches(ctx)
}

// administrator is a session of the user's superuser if it is complete, and else of helenus_root.
// Until system_auth is replicated it may not be known in this datacenter whether there is the
// former; then the latter finds out.
func administrator(ctx context.Context, n RoleNode, l cassandra.Logins) (s RoleSession, complete bool, err error) {
	s, err = n.LogIn(ctx, l.Superuser)
	if err == nil && !s.Asked() {
		return s, false, nil
	}
	if err == nil {
		if complete, err = isSuperuser(ctx, s, l.Superuser); complete {
			return s, true, nil
		}
		s.Close()
		if err != nil {
			return nil, false, fmt.Errorf("see whether %s is a superuser: %w", l.Superuser.User, err)
		}
	}
	s, rootErr := n.LogIn(ctx, l.Root)
	switch {
	case rootErr == nil:
		return s, false, nil
	case err != nil && !errors.Is(err, ErrRefused):
		return nil, false, fmt.Errorf("log in as superuser %s: %w", l.Superuser.User, err)
	}
	return nil, false, fmt.Errorf("log in as %s, since there is no superuser %s with the password: %w",
		l.Root.User, l.Superuser.User, rootErr)
}

// isSuperuser says what the one is who has logged in.
func isSuperuser(ctx context.Context, s RoleSession, login cassandra.Login) (bool, error) {
	if !s.Asked() {
		return false, errNotAsked
	}
	r, _, err := s.Role(ctx, login.User)
	return r.Superuser, err
}

// errNotAsked means that the node runs without a password.
var errNotAsked = errors.New("the node asks nobody for a password")

// setOperator makes the operator's role, and gives it what it needs. A password that works stays.
func setOperator(ctx context.Context, n RoleNode, admin RoleSession, login cassandra.Login) error {
	works, err := letsIn(ctx, n, login)
	if err != nil {
		return err
	}
	if !works {
		if err := setRole(ctx, admin, login, false, costOfRandom); err != nil {
			return err
		}
	}
	if !admin.Asked() {
		return nil
	}
	for _, grant := range operatorGrants {
		if err := admin.Change(ctx, "GRANT "+grant+" TO "+quoteName(login.User)); err != nil {
			return fmt.Errorf("grant %s to %s: %w", grant, login.User, err)
		}
	}
	return nil
}

// letsIn says that a node which asks for passwords lets a login in.
func letsIn(ctx context.Context, n RoleNode, login cassandra.Login) (bool, error) {
	s, err := n.LogIn(ctx, login)
	switch {
	case err == nil:
		defer s.Close()
		return s.Asked(), nil
	case errors.Is(err, ErrRefused):
		return false, nil
	}
	return false, fmt.Errorf("log in as %s: %w", login.User, err)
}

// setRole makes a role that logs in with a password, or makes it so. The password does not leave
// the agent.
func setRole(ctx context.Context, admin RoleSession, login cassandra.Login, superuser bool, cost int) error {
	_, exists, err := admin.Role(ctx, login.User)
	if err != nil {
		return err
	}
	return makeRole(ctx, admin, exists, login, Role{Superuser: superuser, Login: true}, cost)
}

// lock has a role neither log in nor be a superuser. A password that somebody may know is replaced
// by one that nobody has.
func lock(ctx context.Context, admin RoleSession, name string) error {
	r, exists, err := admin.Role(ctx, name)
	if err != nil || exists && r == (Role{}) && admin.Asked() {
		return err
	}
	return makeRole(ctx, admin, exists, cassandra.Login{User: name, Password: rand.Text()}, Role{}, costOfRandom)
}

func makeRole(ctx context.Context, admin RoleSession, exists bool, login cassandra.Login, r Role, cost int) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(login.Password), cost)
	if err != nil {
		return fmt.Errorf("hash the password of role %s: %w", login.User, err)
	}
	if !admin.Asked() {
		if err := admin.PutRole(ctx, login.User, string(hash), r); err != nil {
			return fmt.Errorf("write role %s: %w", login.User, err)
		}
		return nil
	}
	verb := "CREATE ROLE IF NOT EXISTS" // an agent that was killed may have asked for it, too
	if exists {
		verb = "ALTER ROLE"
	}
	if err := admin.Change(ctx, fmt.Sprintf("%s %s WITH HASHED PASSWORD = %s AND LOGIN = %v AND SUPERUSER = %v", verb,
		quoteName(login.User), quoteText(string(hash)), r.Login, r.Superuser)); err != nil {
		return fmt.Errorf("make role %s: %w", login.User, err)
	}
	return nil
}

// KeepRoles makes roles of applications, or makes them so, as a superuser. A password that works
// stays; what was granted otherwise, too. It asks before it changes a password, so that it is done
// again after any interruption, and says whose it has changed.
func KeepRoles(ctx context.Context, n RoleNode, superuser cassandra.Login, roles []cassandra.KeptRole) (string, error) {
	if err := n.InvalidateAuthCaches(ctx); err != nil {
		return "", err
	}
	admin, err := n.LogIn(ctx, superuser)
	if err != nil {
		return "", fmt.Errorf("log in as superuser %s: %w", superuser.User, err)
	}
	defer admin.Close()
	if !admin.Asked() {
		return "", errNotAsked
	}
	var changed []string
	for _, r := range roles {
		have, exists, err := admin.Role(ctx, r.User)
		switch {
		case err != nil:
			return "", err
		case have.Superuser:
			return "", fmt.Errorf("role %s is a superuser, and those of applications are none: choose another name",
				r.User)
		}
		works, err := letsIn(ctx, n, r.Login)
		if err != nil {
			return "", err
		}
		if !works {
			if err := makeRole(ctx, admin, exists, r.Login, Role{Login: true}, costOfUsers); err != nil {
				return "", err
			}
			changed = append(changed, r.User)
		}
		for _, what := range permissions(r.Revokes) {
			if err := admin.Change(ctx, "REVOKE "+what+" FROM "+quoteName(r.User)); err != nil {
				return "", fmt.Errorf("revoke %s from %s: %w", what, r.User, err)
			}
		}
		for _, what := range permissions(r.Grants) {
			if err := admin.Change(ctx, "GRANT "+what+" TO "+quoteName(r.User)); err != nil {
				return "", fmt.Errorf("grant %s to %s: %w", what, r.User, err)
			}
		}
	}
	message := "every password was right"
	if len(changed) > 0 {
		message = "set the password of " + strings.Join(changed, ", ")
	}
	return message, n.InvalidateAuthCaches(ctx)
}

// permissions are as CQL has them.
func permissions(grants []v1alpha1.RoleGrant) (out []string) {
	for _, g := range grants {
		resource := "KEYSPACE " + quoteName(g.Keyspace)
		if g.Keyspace == v1alpha1.AllKeyspaces {
			resource = "ALL KEYSPACES"
		}
		for _, p := range g.Permissions {
			out = append(out, string(p)+" ON "+resource)
		}
	}
	return out
}

// ErrPasswordUnknown means that nobody can log in as the superuser by a password that is known.
var ErrPasswordUnknown = errors.New(v1alpha1.PasswordUnknown)

// SetPassword gives the superuser its password, by the one before: each node reads it as soon as
// its caches are emptied. It asks before it changes anything, so that it is done again after any
// interruption, and says what it did. Cassandra refuses a second change within 5 s
// (5.0.9, role_password_update_min_interval_in_ms).
func SetPassword(ctx context.Context, n RoleNode, l cassandra.Logins) (string, error) {
	if err := errors.Join(l.Check(), n.InvalidateAuthCaches(ctx)); err != nil {
		return "", err
	}
	err := proveLogin(ctx, n, l.Superuser, true)
	if err == nil {
		return fmt.Sprintf("superuser %s had the password already", l.Superuser.User), nil
	}
	if !errors.Is(err, ErrRefused) {
		return "", fmt.Errorf("log in as superuser %s: %w", l.Superuser.User, err)
	}
	if l.Old == "" {
		return "", fmt.Errorf("superuser %s: %w", l.Superuser.User, ErrPasswordUnknown)
	}
	s, err := n.LogIn(ctx, cassandra.Login{User: l.Superuser.User, Password: l.Old})
	switch {
	case errors.Is(err, ErrRefused):
		return "", fmt.Errorf("superuser %s: %w", l.Superuser.User, ErrPasswordUnknown)
	case err != nil:
		return "", fmt.Errorf("log in as superuser %s with the password before: %w", l.Superuser.User, err)
	}
	defer s.Close()
	hash, err := bcrypt.GenerateFromPassword([]byte(l.Superuser.Password), costOfUsers)
	if err != nil {
		return "", fmt.Errorf("hash the password of role %s: %w", l.Superuser.User, err)
	}
	// It says nothing of SUPERUSER, which nobody may alter of himself
	// (AlterRoleStatement#authorize).
	if err := s.Change(ctx, fmt.Sprintf("ALTER ROLE %s WITH HASHED PASSWORD = %s", quoteName(l.Superuser.User),
		quoteText(string(hash)))); err != nil {
		return "", fmt.Errorf("change the password of role %s: %w", l.Superuser.User, err)
	}
	return fmt.Sprintf("superuser %s has another password", l.Superuser.User), n.InvalidateAuthCaches(ctx)
}

// ProveLogin is nil if a node lets those in whom SetRoles has made, and refuses those whose
// password others know, and the password that the superuser had before.
func ProveLogin(ctx context.Context, n RoleNode, l cassandra.Logins) error {
	if err := l.Check(); err != nil {
		return err
	}
	if err := ProvePassword(ctx, n, l.Superuser, l.Old); err != nil {
		return err
	}
	if err := proveLogin(ctx, n, l.Operator, false); err != nil {
		return fmt.Errorf("log in as %s: %w", l.Operator.User, err)
	}
	for _, login := range []cassandra.Login{{User: v1alpha1.RoleDefault, Password: v1alpha1.RoleDefault}, l.Root} {
		if err := proveRefused(ctx, n, login); err != nil {
			return err
		}
	}
	return nil
}

// ProvePassword is nil if a node lets the superuser in, and refuses the password that he had
// before, if he had another one.
func ProvePassword(ctx context.Context, n RoleNode, superuser cassandra.Login, old string) error {
	if err := n.InvalidateAuthCaches(ctx); err != nil {
		return err
	}
	if err := proveLogin(ctx, n, superuser, true); err != nil {
		return fmt.Errorf("log in as %s: %w", superuser.User, err)
	}
	if old == "" || old == superuser.Password {
		return nil
	}
	return proveRefused(ctx, n, cassandra.Login{User: superuser.User, Password: old})
}

func proveRefused(ctx context.Context, n RoleNode, login cassandra.Login) error {
	s, err := n.LogIn(ctx, login)
	switch {
	case err == nil:
		s.Close()
		return fmt.Errorf("role %s logs in with a password that others know", login.User)
	case !errors.Is(err, ErrRefused):
		return fmt.Errorf("see that %s is refused: %w", login.User, err)
	}
	return nil
}

func proveLogin(ctx context.Context, n RoleNode, login cassandra.Login, superuser bool) error {
	s, err := n.LogIn(ctx, login)
	if err != nil {
		return err
	}
	defer s.Close()
	is, err := isSuperuser(ctx, s, login)
	if err == nil && is != superuser {
		err = fmt.Errorf("it is a superuser: %v, want %v", is, superuser)
	}
	return err
}
