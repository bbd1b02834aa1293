package cql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
)

var logins = cassandra.Logins{
	Superuser: cassandra.Login{User: "Owner", Password: "that people choose"},
	Root:      cassandra.Login{User: v1alpha1.RoleRoot, Password: "known root"},
	Operator:  cassandra.Login{User: v1alpha1.RoleOperator, Password: "known operator"},
}

// fakeRing is what a node knows of roles.
type fakeRing struct {
	t       *testing.T
	open    bool // asks for no password
	roles   map[string]*held
	grants  []string
	changed []string // names of roles, in order
	ends    int      // calls before the agent is killed
	silent  []string // users for whom there is no quorum
	ahead   string   // a role that was written by a clock that is ahead
	// cache is what the node remembers of roles, by their names.
	cache map[string]*held
	// fits are passwords that were compared to hashes, which takes long.
	fits map[[2]string]bool
}

type held struct {
	Role

	hash string
}

func newRing(t *testing.T) *fakeRing {
	r := &fakeRing{t: t, roles: map[string]*held{}, cache: map[string]*held{}, ends: -1, fits: map[[2]string]bool{}}
	r.roles[v1alpha1.RoleRoot] = &held{Role{true, true}, r.hash(logins.Root.Password)}
	return r
}

func (r *fakeRing) hash(password string) string {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(hash)
}

var errKilled = errors.New("killed")

func (r *fakeRing) call() error {
	if r.ends == 0 {
		return errKilled
	}
	r.ends--
	return nil
}

func (r *fakeRing) InvalidateAuthCaches(context.Context) error {
	clear(r.cache)
	return r.call()
}

func (r *fakeRing) LogIn(_ context.Context, login cassandra.Login) (RoleSession, error) {
	if err := r.call(); err != nil {
		return nil, err
	}
	if slices.Contains(r.silent, login.User) {
		return nil, errors.New("Unable to perform authentication: Cannot achieve consistency level")
	}
	of := r.cache[login.User]
	if of == nil {
		of = r.roles[login.User]
	}
	if !r.open && (of == nil || !of.Login || !r.fit(of.hash, login.Password)) {
		return nil, ErrRefused
	}
	r.cache[login.User] = of
	return &fakeSession{r: r, user: login.User}, nil
}

func (r *fakeRing) fit(hash, password string) bool {
	key := [2]string{hash, password}
	if _, known := r.fits[key]; !known {
		r.fits[key] = bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
	}
	return r.fits[key]
}

type fakeSession struct {
	Schema

	r    *fakeRing
	user string
}

func (s *fakeSession) Asked() bool { return !s.r.open }
func (s *fakeSession) Close()      {}

func (s *fakeSession) Role(_ context.Context, name string) (Role, bool, error) {
	if err := s.r.call(); err != nil {
		return Role{}, false, err
	}
	if of := s.r.roles[name]; of != nil {
		return of.Role, true, nil
	}
	return Role{}, false, nil
}

// altered is a password that a superuser gives himself.
var altered = regexp.MustCompile(`^ALTER ROLE "(\w+)" WITH HASHED PASSWORD = '(\S{60})'$`)

var madeRole = regexp.MustCompile(`^(CREATE ROLE IF NOT EXISTS|ALTER ROLE) "(\w+)" WITH HASHED PASSWORD = '(\S{60})' ` +
	`AND LOGIN = (true|false) AND SUPERUSER = (true|false)$`)

// Change is a statement by a superuser, who cannot alter himself. The agent may be killed before
// it, or with its answer on the way.
func (s *fakeSession) Change(_ context.Context, statement string) error {
	if err := s.r.call(); err != nil {
		return err
	}
	if of := s.r.roles[s.user]; of == nil || !of.Superuser {
		return fmt.Errorf("%s is no superuser", s.user)
	}
	if grant, is := strings.CutPrefix(statement, "GRANT "); is {
		s.r.grants = append(s.r.grants, grant)
		return s.r.call()
	}
	if strings.HasPrefix(statement, "REVOKE ") {
		s.r.grants = append(s.r.grants, statement)
		return s.r.call()
	}
	if own := altered.FindStringSubmatch(statement); own != nil {
		of := s.r.roles[own[1]]
		s.r.roles[own[1]] = &held{of.Role, own[2]}
		s.r.changed = append(s.r.changed, own[1])
		return s.r.call()
	}
	m := madeRole.FindStringSubmatch(statement)
	if m == nil {
		return fmt.Errorf("statement %s", statement)
	}
	if (s.r.roles[m[2]] == nil) != strings.HasPrefix(m[1], "CREATE") || m[2] == s.user {
		return fmt.Errorf("%s of role %s by %s", m[1], m[2], s.user)
	}
	if m[2] == s.r.ahead {
		return s.r.call()
	}
	s.r.roles[m[2]] = &held{Role{Login: m[4] == "true", Superuser: m[5] == "true"}, m[3]}
	s.r.changed = append(s.r.changed, m[2])
	return s.r.call()
}

// PutRole is a row that anybody can write where nobody is asked.
func (s *fakeSession) PutRole(_ context.Context, name, hash string, to Role) error {
	if err := s.r.call(); err != nil {
		return err
	}
	if !s.r.open {
		return errors.New("rows are for where nobody is asked")
	}
	s.r.roles[name] = &held{to, hash}
	return s.r.call()
}

func (r *fakeRing) set(t *testing.T) (string, error) {
	return SetRoles(t.Context(), r, logins, func(context.Context, Schema) (string, error) { return "prepared", r.call() })
}

// cheaply has hashes cost little for a test.
func cheaply(t *testing.T) {
	before := costOfUsers
	t.Cleanup(func() { costOfUsers = before })
	costOfUsers = bcrypt.MinCost
}

// TestSetRolesAgainAfterAnyEnd has the agent killed at each call, and run again: no password is
// changed twice, and nobody is left out.
func TestSetRolesAgainAfterAnyEnd(t *testing.T) {
	cheaply(t)
	ended := 0
	for end := 0; ; end++ {
		r := newRing(t)
		r.ends = end
		_, err := r.set(t)
		if err == nil {
			break
		}
		if ended++; !errors.Is(err, errKilled) {
			t.Fatalf("killed at call %d: %v", end, err)
		}
		r.ends = -1
		said, err := r.set(t)
		if err != nil || !strings.HasPrefix(said, "prepared; made superuser Owner and role helenus_operator") {
			t.Fatalf("again after call %d: %q, error %v", end, said, err)
		}
		if err := ProveLogin(t.Context(), r, logins); err != nil {
			t.Errorf("again after call %d: %v", end, err)
		}
		slices.Sort(r.changed)
		if want := []string{"Owner", "cassandra", "helenus_operator", "helenus_root"}; !slices.Equal(r.changed, want) {
			t.Errorf("again after call %d: changed %v, want %v", end, r.changed, want)
		}
		for _, grant := range operatorGrants {
			if !slices.Contains(r.grants, grant+` TO "helenus_operator"`) {
				t.Errorf("again after call %d: %s is not granted", end, grant)
			}
		}
		if r.fit(r.roles[v1alpha1.RoleRoot].hash, logins.Root.Password) {
			t.Error("helenus_root has the password that is known")
		}
	}
	if ended < 20 {
		t.Errorf("it ended at %d calls", ended)
	}
}

func TestSetRolesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *fakeRing, l *cassandra.Logins)
		want   string // a part of the error; empty for none
	}{
		"default superuser": {func(r *fakeRing, _ *cassandra.Logins) {
			r.roles["cassandra"] = &held{Role{true, true}, r.hash("cassandra")}
		}, ""},
		"a superuser of another password": {func(r *fakeRing, _ *cassandra.Logins) {
			r.roles["Owner"] = &held{Role{true, true}, r.hash("other")}
		}, ""},
		"no superuser yet": {func(r *fakeRing, _ *cassandra.Logins) {
			r.roles["Owner"] = &held{Role{Login: true}, r.hash(logins.Superuser.Password)}
		}, ""},
		"another root":           {func(r *fakeRing, _ *cassandra.Logins) { r.roles["helenus_root"].hash = r.hash("x") }, "log in as helenus_root, since"},
		"no quorum":              {func(r *fakeRing, _ *cassandra.Logins) { r.silent = []string{"Owner", v1alpha1.RoleRoot} }, "log in as superuser Owner: Unable"},
		"one replica, elsewhere": {func(r *fakeRing, _ *cassandra.Logins) { r.silent = []string{"Owner"} }, ""},
		"the name of ours":       {func(_ *fakeRing, l *cassandra.Logins) { l.Superuser.User = "helenus_operator" }, "the name is taken"},
		"the name of all":        {func(_ *fakeRing, l *cassandra.Logins) { l.Superuser.User = "cassandra" }, "the name is taken"},
		"no name":                {func(_ *fakeRing, l *cassandra.Logins) { l.Superuser.User = "" }, "no name"},
		"a quote":                {func(_ *fakeRing, l *cassandra.Logins) { l.Superuser.User = "O'Neil" }, "quote"},
		"no password":            {func(_ *fakeRing, l *cassandra.Logins) { l.Operator.Password = "" }, "helenus_operator has no password"},
		"a password too long":    {func(_ *fakeRing, l *cassandra.Logins) { l.Superuser.Password = strings.Repeat("x", 73) }, "73 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := newRing(t), logins
			c.change(r, &l)
			_, err := SetRoles(t.Context(), r, l, func(context.Context, Schema) (string, error) {
				r.silent = nil // there are replicas in each datacenter
				return "", nil
			})
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || len(r.changed) > 0 {
					t.Errorf("changed %v, error %v, want %q", r.changed, err, c.want)
				}
				return
			}
			if err == nil {
				err = ProveLogin(t.Context(), r, l)
			}
			if cost, _ := bcrypt.Cost([]byte(r.roles["Owner"].hash)); err != nil || cost != 10 {
				t.Errorf("cost %d, error %v", cost, err)
			}
		})
	}
}

// TestSetRolesWithAClockThatIsAhead: what was imported wins until the clocks have passed it, and so
// long the roles are not set.
func TestSetRolesWithAClockThatIsAhead(t *testing.T) {
	cheaply(t)
	r := newRing(t)
	r.ahead = v1alpha1.RoleRoot
	if _, err := r.set(t); err == nil || !strings.Contains(err.Error(), "lock role helenus_root: it is not yet") {
		t.Errorf("error %v", err)
	}
	r.ahead = ""
	if _, err := r.set(t); err != nil || r.roles[v1alpha1.RoleRoot].Login {
		t.Errorf("error %v, root %+v", err, r.roles[v1alpha1.RoleRoot])
	}
}

// TestSetPasswordAgainAfterAnyEnd has the agent killed at each call, and run again: the password is
// changed once, and the one before is refused.
func TestSetPasswordAgainAfterAnyEnd(t *testing.T) {
	cheaply(t)
	next := logins
	next.Superuser.Password, next.Old = "another", logins.Superuser.Password
	ended := 0
	for end := 0; ; end++ {
		r := newRing(t)
		if _, err := r.set(t); err != nil {
			t.Fatal(err)
		}
		r.changed = nil
		if err := ProveLogin(t.Context(), r, next); !errors.Is(err, ErrRefused) {
			t.Fatalf("before it is changed: error %v", err)
		}
		r.ends = end
		_, err := SetPassword(t.Context(), r, next)
		r.ends = -1
		if err != nil {
			if ended++; !errors.Is(err, errKilled) {
				t.Fatalf("killed at call %d: %v", end, err)
			}
			if _, err := SetPassword(t.Context(), r, next); err != nil {
				t.Fatalf("again after call %d: %v", end, err)
			}
		}
		if err := ProveLogin(t.Context(), r, next); err != nil || !slices.Equal(r.changed, []string{"Owner"}) {
			t.Errorf("again after call %d: changed %v, error %v", end, r.changed, err)
		}
		if err == nil {
			break
		}
	}
	if ended < 6 {
		t.Errorf("it ended at %d calls", ended)
	}
}

func TestSetPasswordOfOthers(t *testing.T) {
	cheaply(t)
	for name, c := range map[string]struct {
		change func(r *fakeRing, l *cassandra.Logins)
		want   string
	}{
		"changed in CQL": {func(r *fakeRing, _ *cassandra.Logins) { r.roles["Owner"].hash = r.hash("x") }, "neither the password of"},
		"no old one":     {func(_ *fakeRing, l *cassandra.Logins) { l.Old = "" }, "neither the password of the Secret nor"},
		"no quorum":      {func(r *fakeRing, _ *cassandra.Logins) { r.silent = []string{"Owner"} }, "log in as superuser Owner: Unable"},
		"no superuser": {func(r *fakeRing, l *cassandra.Logins) {
			r.roles["Owner"] = &held{Role{Login: true}, r.hash(l.Superuser.Password)}
		}, "it is a superuser: false"},
		"no password": {func(_ *fakeRing, l *cassandra.Logins) { l.Superuser.Password = "" }, "role Owner has no password"},
	} {
		r, l := newRing(t), logins
		if _, err := r.set(t); err != nil {
			t.Fatal(err)
		}
		r.changed = nil
		l.Superuser.Password, l.Old = "another", logins.Superuser.Password
		c.change(r, &l)
		_, err := SetPassword(t.Context(), r, l)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(r.changed) > 0 {
			t.Errorf("%s: changed %v, error %v, want %q", name, r.changed, err, c.want)
		}
	}
}

func TestProveLogin(t *testing.T) {
	cheaply(t)
	for name, c := range map[string]struct {
		change func(r *fakeRing)
		want   string
	}{
		"no superuser":       {func(r *fakeRing) { r.roles["Owner"].Superuser = false }, "log in as Owner: it is a superuser: false"},
		"another password":   {func(r *fakeRing) { r.roles["Owner"].hash = r.hash("x") }, "log in as Owner: login refused"},
		"operator too large": {func(r *fakeRing) { r.roles["helenus_operator"].Superuser = true }, "log in as helenus_operator"},
		"no operator":        {func(r *fakeRing) { delete(r.roles, "helenus_operator") }, "log in as helenus_operator"},
		"root":               {func(r *fakeRing) { r.roles["helenus_root"] = newRing(r.t).roles["helenus_root"] }, "role helenus_root logs in"},
		"default":            {func(r *fakeRing) { r.roles["cassandra"] = &held{Role{Login: true}, r.hash("cassandra")} }, "role cassandra logs in"},
		"default unknown":    {func(r *fakeRing) { r.silent = []string{"cassandra"} }, "see that cassandra is refused: Unable"},
		"no password asked":  {func(r *fakeRing) { r.open = true }, "asks nobody"},
		"root in a cache":    {func(r *fakeRing) { r.cache["helenus_root"] = newRing(r.t).roles["helenus_root"] }, ""},
		"silent caches":      {func(r *fakeRing) { r.ends = 0 }, "killed"},
	} {
		r := newRing(t)
		if _, err := r.set(t); err != nil {
			t.Fatal(err)
		}
		c.change(r)
		err := ProveLogin(t.Context(), r, logins)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// Where nobody is asked for a password all roles are written as rows, over those that there are and
// however often the agent is killed; what is left to grant is granted when the node asks.
func TestSetRolesWhereNobodyIsAsked(t *testing.T) {
	cheaply(t)
	for ends := 0; ; ends++ {
		r := newRing(t)
		r.open, r.ends = true, ends
		r.roles[v1alpha1.RoleDefault] = &held{Role{true, true}, r.hash(v1alpha1.RoleDefault)}
		r.roles[logins.Superuser.User] = &held{Role{false, true}, r.hash("planted")}
		r.roles[logins.Operator.User] = &held{Role{true, true}, r.hash("planted")}
		_, err := r.set(t)
		r.ends = -1
		if _, again := r.set(t); again != nil {
			t.Fatalf("after %d calls: %v", ends, again)
		}
		for of, want := range map[cassandra.Login]Role{logins.Superuser: {true, true}, logins.Operator: {false, true}} {
			if got := r.roles[of.User]; got.Role != want || !r.fit(got.hash, of.Password) {
				t.Errorf("after %d calls role %s is %+v", ends, of.User, got.Role)
			}
		}
		for _, name := range []string{v1alpha1.RoleDefault, v1alpha1.RoleRoot} {
			if got := r.roles[name]; got.Role != (Role{}) || r.fit(got.hash, name) {
				t.Errorf("after %d calls role %s is %+v", ends, name, got.Role)
			}
		}
		if len(r.grants) > 0 || len(r.changed) > 0 {
			t.Errorf("statements about %v, grants %v", r.changed, r.grants)
		}
		r.open = false
		clear(r.cache)
		if _, err := r.set(t); err != nil || len(r.grants) != len(operatorGrants) || len(r.changed) > 0 {
			t.Errorf("where passwords are asked: error %v, grants %v, changed %v", err, r.grants, r.changed)
		}
		if err := ProveLogin(t.Context(), r, logins); err != nil {
			t.Error(err)
		}
		if err == nil {
			return
		}
	}
}

// TestKeepRolesAgainAfterAnyEnd has the agent killed at each call, and run again: each role has its
// password and its permissions, and none that was right is changed.
func TestKeepRolesAgainAfterAnyEnd(t *testing.T) {
	cheaply(t)
	grant := func(keyspace string, permissions ...v1alpha1.Permission) []v1alpha1.RoleGrant {
		return []v1alpha1.RoleGrant{{Keyspace: keyspace, Permissions: permissions}}
	}
	kept := []cassandra.KeptRole{
		{Login: cassandra.Login{User: "app", Password: "one"}, Grants: grant("shop", v1alpha1.PermissionSelect,
			v1alpha1.PermissionModify), Revokes: grant("old", v1alpha1.PermissionDrop)},
		{Login: cassandra.Login{User: "etl", Password: "two"}, Grants: grant("*", v1alpha1.PermissionCreate)},
	}
	ended := 0
	for end := 0; ; end++ {
		r := newRing(t)
		if _, err := r.set(t); err != nil {
			t.Fatal(err)
		}
		r.roles["etl"] = &held{Role{Login: true}, r.hash("two")}
		r.changed, r.grants, r.ends = nil, nil, end
		_, err := KeepRoles(t.Context(), r, logins.Superuser, kept)
		r.ends = -1
		if err != nil {
			if ended++; !errors.Is(err, errKilled) {
				t.Fatalf("killed at call %d: %v", end, err)
			}
			r.grants = nil
			if _, err := KeepRoles(t.Context(), r, logins.Superuser, kept); err != nil {
				t.Fatalf("again after call %d: %v", end, err)
			}
		}
		want := []string{`REVOKE DROP ON KEYSPACE "old" FROM "app"`, `SELECT ON KEYSPACE "shop" TO "app"`,
			`MODIFY ON KEYSPACE "shop" TO "app"`, `CREATE ON ALL KEYSPACES TO "etl"`}
		if !slices.Equal(r.changed, []string{"app"}) || !slices.Equal(r.grants, want) ||
			!r.fit(r.roles["app"].hash, "one") || r.roles["app"].Superuser {
			t.Errorf("again after call %d: changed %v, granted %q", end, r.changed, r.grants)
		}
		if err == nil {
			break
		}
	}
	if ended < 10 {
		t.Errorf("it ended at %d calls", ended)
	}
}

// TestKeepRolesRefuses what would have a superuser be one no longer, and a node that asks nobody.
func TestKeepRolesRefuses(t *testing.T) {
	cheaply(t)
	r := newRing(t)
	if _, err := r.set(t); err != nil {
		t.Fatal(err)
	}
	keep := func(name, want string) {
		t.Helper()
		r.changed = nil
		_, err := KeepRoles(t.Context(), r, logins.Superuser, []cassandra.KeptRole{{Login: cassandra.Login{User: name,
			Password: "one"}}})
		if err == nil || !strings.Contains(err.Error(), want) || len(r.changed) > 0 {
			t.Errorf("%s: error %v, want %q; changed %v", name, err, want, r.changed)
		}
	}
	keep(logins.Superuser.User, "is a superuser")
	r.open = true
	keep("app", "asks nobody")
}
