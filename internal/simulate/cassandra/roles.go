package cassandra

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/cassandra/cql"
	"helenus.io/helenus/internal/core/ring"
)

// role is a row of system_auth.roles.
type role struct {
	hash string
	cql.Role
	at int64 // in microseconds
	// permissions are those of system_auth.role_permissions, in order; it is never changed.
	permissions []string
}

// AsksPassword says that whoever connects is asked for a password.
func (p *Process) AsksPassword() bool {
	return strings.HasSuffix(p.settings.text("authenticator", ""), "PasswordAuthenticator")
}

// replicasOfRoles are its own disk and those of the nodes that it sees: every node holds all roles
// here.
func (p *Process) replicasOfRoles() []*Disk {
	out := []*Disk{p.disk}
	for _, e := range p.gossip.entries {
		if other := p.liveProcess(e.address); other != nil && other != p {
			out = append(out, other.disk)
		}
	}
	return out
}

// role of a name as a read finds it: the newest row.
func (p *Process) role(name string) (found role, exists bool) {
	for _, d := range p.replicasOfRoles() {
		if r, has := d.roles[name]; has && (!exists || r.at > found.at) {
			found, exists = r, true
		}
	}
	return found, exists
}

func (p *Process) putRole(name string, r role) {
	for _, d := range p.replicasOfRoles() {
		d.putRole(name, r)
	}
}

func (d *Disk) putRole(name string, r role) {
	if have, exists := d.roles[name]; exists && have.at > r.at {
		return
	}
	if d.roles == nil {
		d.roles = map[string]role{}
	}
	d.roles[name] = r
}

// setDefaultRole is CassandraRoleManager#setupDefaultRole, which runs a while after every start: it
// makes a superuser with a password that everybody knows, unless it finds any role.
func (p *Process) setDefaultRole() {
	p.sleep(p.settings.milliseconds("cassandra.superuser_setup_delay_ms", 10*time.Second))
	for _, d := range p.replicasOfRoles() {
		if len(d.roles) > 0 {
			return
		}
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(v1alpha1.RoleDefault), bcrypt.MinCost)
	if err != nil {
		return
	}
	p.putRole(v1alpha1.RoleDefault, role{hash: string(hash), Role: cql.Role{Superuser: true, Login: true}})
	if p.net.defaulted != nil {
		p.net.defaulted(p)
	}
}

// WatchDefaulted tells of each node that makes Cassandra's default superuser although it asks for
// passwords.
func (n *Network) WatchDefaulted(tell func(*Process)) { n.defaulted = tell }

// Locked says that nobody is let in any more by the role that a ring begins with, and somebody by
// others: what SetRoles has done.
func (p *Process) Locked() bool {
	root, made := p.role(v1alpha1.RoleRoot)
	operator, _ := p.role(v1alpha1.RoleOperator)
	return made && !root.Login && operator.Login
}

// Imported says that somebody can be let in, if only by the role that a ring begins with.
func (p *Process) Imported() bool {
	_, imported := p.role(v1alpha1.RoleRoot)
	return imported
}

// LogIn opens a session, as cql.Connect does.
func (p *Process) LogIn(ctx context.Context, login cassandra.Login) (*Session, error) {
	s := &Session{p, login.User}
	if err := s.round(ctx); err != nil {
		return nil, fmt.Errorf("connect to CQL at %s: %w", p.address, err)
	}
	if !p.AsksPassword() {
		return s, nil
	}
	if err := p.readsRole(login.User); err != nil {
		return nil, fmt.Errorf("connect to CQL at %s: Unable to perform authentication: %w", p.address, err)
	}
	if r, exists := p.role(login.User); !exists || !r.Login || !p.net.fits(r.hash, login.Password) {
		return nil, fmt.Errorf("connect to CQL at %s: %w", p.address, cql.ErrRefused)
	}
	return s, nil
}

// readsRole is nil if enough replicas of a role are up for a read at auth_read_consistency_level.
func (p *Process) readsRole(name string) error {
	replication, counted, live := p.schema["system_auth"].replication, p.counted(ring.LocalQuorum), 0
	for _, a := range p.natural(replication, roleToken(name)) {
		if counted(a) && p.isAlive(a) {
			live++
		}
	}
	if live < p.blockFor(replication, ring.LocalQuorum) {
		return fmt.Errorf("%w LOCAL_QUORUM", ErrUnavailable)
	}
	return nil
}

// Fits says that a login is that of a role, whoever may be asked.
func (p *Process) Fits(login cassandra.Login) bool {
	r, exists := p.role(login.User)
	return exists && r.Login && p.net.fits(r.hash, login.Password)
}

// fits says that a hash is of a password. That takes long, and is the same each time.
func (n *Network) fits(hash, password string) bool {
	key := [2]string{hash, password}
	fits, known := n.hashes[key]
	if !known {
		fits = bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
		n.hashes[key] = fits
	}
	return fits
}

// Asked is cql.RoleSession.Asked.
func (s *Session) Asked() bool { return s.p.AsksPassword() }

// Close ends nothing that would be kept.
func (s *Session) Close() {}

// Role is cql.RoleSession.Role.
func (s *Session) Role(ctx context.Context, name string) (cql.Role, bool, error) {
	if err := s.round(ctx); err != nil {
		return cql.Role{}, false, fmt.Errorf("read role %s: %w", name, err)
	}
	r, exists := s.p.role(name)
	return r.Role, exists, nil
}

var (
	roleStatement = regexp.MustCompile(`^(CREATE|ALTER) ROLE (IF NOT EXISTS )?"(.+)" WITH HASHED PASSWORD = '([^']+)' ` +
		`AND LOGIN = (true|false) AND SUPERUSER = (true|false)$`)
	ownPassword    = regexp.MustCompile(`^ALTER ROLE "(.+)" WITH HASHED PASSWORD = '([^']+)'$`)
	grantStatement = regexp.MustCompile(`^(GRANT|REVOKE) (.+) (?:TO|FROM) "(.+)"$`)
)

// Change is cql.RoleSession.Change.
func (s *Session) Change(ctx context.Context, statement string) error {
	if err := s.round(ctx); err != nil {
		return err
	}
	if !s.p.AsksPassword() {
		return errors.New("you have to be logged in and not anonymous to perform this request")
	}
	if own, _ := s.p.role(s.user); !own.Superuser {
		//nolint:staticcheck // Cassandra's words
		return fmt.Errorf("User %s does not have sufficient privileges", s.user)
	}
	if grant := grantStatement.FindStringSubmatch(statement); grant != nil {
		return s.grant(grant[1] == "GRANT", grant[2], grant[3])
	}
	if own := ownPassword.FindStringSubmatch(statement); own != nil {
		have, exists := s.p.role(own[1])
		if !exists {
			return fmt.Errorf("%s doesn't exist", own[1])
		}
		have.hash, have.at = own[2], s.p.line.Now().UnixMicro()
		s.p.putRole(own[1], have)
		return nil
	}
	m := roleStatement.FindStringSubmatch(statement)
	if m == nil {
		return errors.New("line 1: no viable alternative")
	}
	have, exists := s.p.role(m[3])
	to := role{hash: m[4], Role: cql.Role{Login: m[5] == "true", Superuser: m[6] == "true"},
		at: s.p.line.Now().UnixMicro(), permissions: have.permissions}
	switch {
	case exists && m[2] != "":
		return nil
	case exists && m[1] == "CREATE":
		return fmt.Errorf("%s already exists", m[3])
	case !exists && m[1] == "ALTER":
		return fmt.Errorf("%s doesn't exist", m[3])
	case m[3] == s.user && to.Superuser != have.Superuser:
		return errors.New("You aren't allowed to alter your own superuser status") //nolint:staticcheck // as above
	}
	s.p.putRole(m[3], to)
	return nil
}

// grant gives a role a permission, or takes it away.
func (s *Session) grant(gives bool, permission, name string) error {
	r, exists := s.p.role(name)
	if !exists {
		return fmt.Errorf("%s doesn't exist", name)
	}
	if _, keyspace, one := strings.Cut(permission, ` ON KEYSPACE "`); one {
		if _, exists := s.p.schema[strings.TrimSuffix(keyspace, `"`)]; !exists {
			return fmt.Errorf("Resource <keyspace %s doesn't exist", keyspace) //nolint:staticcheck // as above
		}
	}
	r.permissions = slices.DeleteFunc(slices.Clone(r.permissions), func(p string) bool { return p == permission })
	if gives {
		r.permissions = append(r.permissions, permission)
		slices.Sort(r.permissions)
	}
	r.at = s.p.line.Now().UnixMicro()
	s.p.putRole(name, r)
	return nil
}

// Permissions of a role.
func (p *Process) Permissions(name string) []string {
	r, _ := p.role(name)
	return r.permissions
}

// PutRole is cql.RoleSession.PutRole.
func (s *Session) PutRole(ctx context.Context, name, hash string, to cql.Role) error {
	if err := s.round(ctx); err != nil {
		return err
	}
	if own, _ := s.p.role(s.user); s.p.AsksPassword() && !own.Superuser {
		//nolint:staticcheck // Cassandra's words
		return fmt.Errorf("User %s does not have sufficient privileges", s.user)
	}
	s.p.putRole(name, role{hash: hash, Role: to, at: s.p.line.Now().UnixMicro()})
	return nil
}

// letIn is whether one who administers the ring, or a client of it, is let in by the roles that
// SetRoles makes.
func (p *Process) letIn() error {
	if operator, _ := p.role(v1alpha1.RoleOperator); p.AsksPassword() && !operator.Login {
		return cql.ErrRefused
	}
	return nil
}

var hashInData = regexp.MustCompile(`\$2a\$\d\d\$[./A-Za-z0-9]{53}`)

// Place puts the Data.db of an SSTable with the role helenus_root where the JVM can be asked to
// load it.
func (d *Disk) Place(data []byte) { d.placed = data }

// writtenAt is when the row in a Data.db of the template of package superuser was written, in
// microseconds: what the vint after the 29 bytes of its key and its flags adds to TIMESTAMP_EPOCH.
func writtenAt(data []byte) int64 {
	return 1442880000000000 + int64(binary.BigEndian.Uint64(data[30:])) //nolint:gosec // two's complement
}

// loadNewSSTables has the table take in what was placed: a row that loses against any other that
// was written later.
func (p *Process) loadNewSSTables(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	if _, _, failed := p.keyspaceOf(arguments, 0); failed != nil {
		return nil, failed
	}
	if table, failed := argument[string](arguments, 1); failed != nil {
		return nil, failed
	} else if table != "roles" { // no other is asked for here
		return nil, exception(illegalArgument, "Unknown keyspace/cf pair (system_auth.%s)", table)
	}
	p.sleep(p.net.within(20*time.Millisecond, 100*time.Millisecond))
	if hash := hashInData.Find(p.disk.placed); hash != nil {
		p.disk.putRole(v1alpha1.RoleRoot,
			role{hash: string(hash), Role: cql.Role{Superuser: true, Login: true}, at: writtenAt(p.disk.placed)})
		p.disk.loaded++
	}
	p.disk.placed = nil
	return jsonNull, nil
}

// sstablesForKey names one SSTable of system_auth.roles for each role that is on the disk.
func (p *Process) sstablesForKey(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	name, failed := argument[string](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	if _, has := p.disk.roles[name]; !has {
		return json.RawMessage("[]"), nil
	}
	return json.RawMessage(fmt.Sprintf(`["nb-%d-big-Data.db"]`, 1+p.disk.loaded)), nil
}
