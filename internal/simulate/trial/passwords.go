package trial

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	product "helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/cassandra/cql"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/world"
)

// formsWithPasswords forms a ring as it is made if nobody says otherwise. The one replica that the
// first superuser has at first is in the second datacenter.
func formsWithPasswords() *Scenario {
	return inBoth(scenario("form-password", "two datacenters form a ring that asks for passwords from its first moment",
		twoCenters.with(func(c *v1alpha1.CassandraCluster) {
			c.Spec.Security = nil
			slices.Reverse(c.Spec.Datacenters)
		}),
		Act{Name: "log in", Do: func(*world.World) error { return nil }, Until: asked, Within: 5 * time.Minute}))
}

// rotatesPassword has a person change the password of the superuser in its Secret: once, and twice
// within three seconds.
func rotatesPassword() *Scenario {
	return scenario("rotate-password", "the password in the superuser's Secret changes, and again while it is applied",
		threeRacks.with(func(c *v1alpha1.CassandraCluster) { c.Spec.Security = nil }),
		Act{Name: "change it", Do: editPassword("one"), Until: rotated, Within: 10 * time.Minute},
		Act{Name: "change it twice", Do: func(w *world.World) error {
			err := editPassword("two")(w)
			w.Line.RunFor(3 * time.Second)
			return errors.Join(err, editPassword("three")(w))
		}, Until: rotated, Within: 10 * time.Minute})
}

// keepsRoles has a person ask for the role of an application, change its password and what it may,
// and take it out.
func keepsRoles() *Scenario {
	return scenario("keep-roles", "a role of an application is made, changed, and left to a person",
		threeRacks.with(func(c *v1alpha1.CassandraCluster) { c.Spec.Security = nil }),
		Act{Name: "without its Secret", Do: respec(withRole("SELECT", "MODIFY")),
			Until: blockedBy(v1alpha1.BlockedRoleInvalid), Within: 5 * time.Minute},
		Act{Name: "give it one", Do: roleSecret("one"), Until: roleMay("one", "MODIFY", "SELECT"),
			Within: 10 * time.Minute},
		Act{Name: "change both", Do: func(w *world.World) error {
			return errors.Join(roleSecret("two")(w), respec(withRole("SELECT"))(w))
		}, Until: roleMay("two", "SELECT"), Within: 10 * time.Minute},
		Act{Name: "take it out", Do: respec(func(s *v1alpha1.CassandraClusterSpec) { s.Security = nil }),
			Until: all(recommends("DropRole"), grown), Within: 10 * time.Minute})
}

const application = "app"

// withRole has the spec ask for the role of an application.
func withRole(permissions ...v1alpha1.Permission) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		if s.Security == nil || s.Security.Authentication == nil {
			s.Security = &v1alpha1.Security{Authentication: &v1alpha1.Authentication{}}
		}
		s.Security.Authentication.Roles = []v1alpha1.ApplicationRole{{Name: application, SecretName: application,
			Grants: []v1alpha1.RoleGrant{{Keyspace: v1alpha1.AllKeyspaces, Permissions: permissions}}}}
	}
}

// roleSecret gives the application a password.
func roleSecret(password string) func(*world.World) error {
	return func(w *world.World) error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: application},
			Type: corev1.SecretTypeBasicAuth, Data: map[string][]byte{corev1.BasicAuthPasswordKey: []byte(password)}}
		if have, exists := w.Server.Object("Secret", keyOf(application)).(*corev1.Secret); exists {
			secret = have.DeepCopy()
			secret.Data[corev1.BasicAuthPasswordKey] = []byte(password)
			return w.User().Update(context.Background(), secret)
		}
		return w.User().Create(context.Background(), secret)
	}
}

// roleMay says that the application logs in at every node by a password, and may this alone.
func roleMay(password string, permissions ...string) func(*world.World) bool {
	for i, p := range permissions {
		permissions[i] = p + " ON ALL KEYSPACES"
	}
	login := product.Login{User: application, Password: password}
	return func(w *world.World) bool {
		return grown(w) && len(get(w).Status.OpenSteps) == 0 &&
			!slices.ContainsFunc(jvms(w), func(p *cassandra.Process) bool {
				return !p.Fits(login) || !slices.Equal(p.Permissions(application), permissions)
			})
	}
}

// resetsSuperuser has a person change the superuser's password by CQL and forget it, and then have
// it reset; and another one in the Secret meanwhile.
func resetsSuperuser() *Scenario {
	return scenario("reset-superuser", "nobody knows the superuser's password, and a task resets it",
		threeRacks.with(func(c *v1alpha1.CassandraCluster) { c.Spec.Security = nil }),
		Act{Name: "forget it", Do: forgetPassword, Until: func(w *world.World) bool { return !asked(w) },
			Within: time.Minute},
		Act{Name: "change it in vain", Do: editPassword("one"),
			Until: blockedBy(v1alpha1.BlockedSuperuserPasswordUnknown), Within: 10 * time.Minute},
		Act{Name: "reset it", Do: func(w *world.World) error { return give(w, v1alpha1.TaskResetSuperuser, 1) },
			Until: all(taskIs(v1alpha1.TaskSucceeded), rotated, rootLocked), Within: 30 * time.Minute})
}

// asksLiving has a person turn passwords on in a ring that serves: they take it back while the
// first node waits for roles, and turn it on again.
func asksLiving() *Scenario {
	return scenario("passwords-living-ring",
		"a ring that serves without passwords is to ask for them, and does not, and does",
		threeRacks,
		Act{Name: "ask", Do: authenticate(v1alpha1.AuthenticationPassword),
			Until: blockedBy(v1alpha1.BlockedRolesNotReady), Within: 20 * time.Minute},
		Act{Name: "take it back", Do: authenticate(v1alpha1.AuthenticationNone), Until: all(grown, asksNobody),
			Within: 20 * time.Minute},
		Act{Name: "ask again, with a role", Do: func(w *world.World) error {
			return errors.Join(roleSecret("one")(w), respec(func(s *v1alpha1.CassandraClusterSpec) {
				s.Security.Authentication.Mode = v1alpha1.AuthenticationPassword
				withRole("SELECT")(s)
			})(w))
		}, Until: all(blockedBy(v1alpha1.BlockedRolesNotReady), func(w *world.World) bool {
			return jvms(w)[0].Fits(product.Login{User: application, Password: "one"})
		}), Within: 20 * time.Minute},
		Act{Name: "say that roles are ready", Do: sayRolesReady, Until: all(rotated, rootLocked,
			roleMay("one", "SELECT"), hasMode(v1alpha1.AuthenticationPassword)), Within: 30 * time.Minute})
}

// turnsPasswordsOff has a person turn passwords off in a ring that was made with them.
func turnsPasswordsOff() *Scenario {
	return scenario("passwords-off", "a ring that asks for passwords is to ask no longer, by the word of a person",
		threeRacks.with(func(c *v1alpha1.CassandraCluster) { c.Spec.Security = nil }),
		Act{Name: "turn them off", Do: func(w *world.World) error {
			return respec(func(s *v1alpha1.CassandraClusterSpec) {
				none := v1alpha1.Authentication{Mode: v1alpha1.AuthenticationNone}
				s.Security = &v1alpha1.Security{Authentication: &none}
				s.Exceptions = append(s.Exceptions, exceptionOf(w, v1alpha1.ExceptionTurnOffPassword, ""))
			})(w)
		}, Until: all(grown, asksNobody, hasMode(v1alpha1.AuthenticationNone)), Within: 30 * time.Minute})
}

func authenticate(mode v1alpha1.AuthenticationMode) func(*world.World) error {
	return respec(func(s *v1alpha1.CassandraClusterSpec) { s.Security.Authentication.Mode = mode })
}

func exceptionOf(w *world.World, kind v1alpha1.ExceptionType, node string) v1alpha1.Exception {
	return v1alpha1.Exception{Name: strings.ToLower(string(kind)), Type: kind, Node: node, Reason: "it was agreed",
		Until: metav1.NewTime(w.Line.Now().Add(24 * time.Hour).Truncate(time.Second))}
}

// sayRolesReady of the node that the operator names.
func sayRolesReady(w *world.World) error {
	for _, b := range get(w).Status.Blocked {
		if b.Reason == v1alpha1.BlockedRolesNotReady {
			e := exceptionOf(w, v1alpha1.ExceptionRolesReady, b.Nodes[0])
			return respec(func(s *v1alpha1.CassandraClusterSpec) { s.Exceptions = append(s.Exceptions, e) })(w)
		}
	}
	return errors.New("no node waits for roles")
}

// asksNobody says that no node asks for a password.
func asksNobody(w *world.World) bool {
	return !slices.ContainsFunc(jvms(w), (*cassandra.Process).AsksPassword)
}

// hasMode says that by the status every node has the mode.
func hasMode(mode v1alpha1.AuthenticationMode) func(*world.World) bool {
	return func(w *world.World) bool {
		a := get(w).Status.Security.Authentication
		return a.Mode == mode && a.Next == ""
	}
}

// lost is the password that a person has given the superuser by CQL and forgotten.
const (
	lost       = "forgotten"
	hashOfLost = "$2a$04$OVmvwJqJekKlMJ1NobwrmeJcmkZauDJN4JgiDLPAZZyuKx9niPXvm"
)

// forgetPassword changes the superuser's password by CQL, to one that is kept nowhere.
func forgetPassword(w *world.World) error {
	secret := w.Server.Object("Secret", keyOf(v1alpha1.SuperuserName(clusterName))).(*corev1.Secret)
	login := product.Login{User: string(secret.Data[corev1.BasicAuthUsernameKey]),
		Password: string(secret.Data[corev1.BasicAuthPasswordKey])}
	s, err := jvms(w)[0].LogIn(context.Background(), login)
	if err != nil {
		return err
	}
	return s.Change(context.Background(), `ALTER ROLE "`+login.User+
		`" WITH HASHED PASSWORD = '`+hashOfLost+`'`)
}

// blockedBy says that the operator waits for a reason, and says so.
func blockedBy(reason v1alpha1.Reason) func(*world.World) bool {
	return func(w *world.World) bool {
		return slices.ContainsFunc(get(w).Status.Blocked, func(b v1alpha1.BlockedStep) bool {
			return b.Reason == reason
		})
	}
}

// rootLocked says that nobody is let in by the role that resets others.
func rootLocked(w *world.World) bool {
	return !slices.ContainsFunc(jvms(w), func(p *cassandra.Process) bool { return !p.Locked() })
}

func editPassword(to string) func(*world.World) error {
	return func(w *world.World) error {
		s := w.Server.Object("Secret", keyOf(v1alpha1.SuperuserName(clusterName))).(*corev1.Secret).DeepCopy()
		s.Data[corev1.BasicAuthPasswordKey] = []byte(to)
		return w.User().Update(context.Background(), s)
	}
}

// rotated says that every node lets in by the password of the Secret, and that no other is kept.
func rotated(w *world.World) bool {
	applied, _ := w.Server.Object("Secret", keyOf(v1alpha1.AppliedSuperuserName(clusterName))).(*corev1.Secret)
	c := get(w)
	return applied != nil && applied.Annotations[v1alpha1.AnnotationAppliedAt] != "" &&
		applied.Data[v1alpha1.KeyOldPassword] == nil && grown(w) && len(c.Status.OpenSteps) == 0 && asked(w)
}

// asked says that every node lets in the superuser of the Secret, and nobody by the password that
// everybody knows.
func asked(w *world.World) bool {
	secret, _ := w.Server.Object("Secret", keyOf(v1alpha1.SuperuserName(clusterName))).(*corev1.Secret)
	nodes := jvms(w)
	if secret == nil || len(nodes) == 0 {
		return false
	}
	login := product.Login{User: string(secret.Data[corev1.BasicAuthUsernameKey]),
		Password: string(secret.Data[corev1.BasicAuthPasswordKey])}
	return !slices.ContainsFunc(nodes, func(p *cassandra.Process) bool {
		_, err := p.LogIn(context.Background(), login)
		_, known := p.LogIn(context.Background(),
			product.Login{User: v1alpha1.RoleDefault, Password: v1alpha1.RoleDefault})
		return err != nil || !errors.Is(known, cql.ErrRefused)
	})
}

func jvms(w *world.World) []*cassandra.Process {
	var out []*cassandra.Process
	for _, s := range w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil {
			out = append(out, j)
		}
	}
	return out
}

// defaulted: there is no moment in which somebody is let in by a password that everybody knows.
func (o *checker) defaulted(p *cassandra.Process) {
	o.violated("passwords: node %s makes the superuser cassandra, whose password everybody knows", p.HostID())
}

// administered: no node opens CQL before there is a role to log in as.
func (o *checker) administered(p *cassandra.Process) {
	if p.AsksPassword() && !p.Imported() {
		o.violated("passwords: a node opens CQL before the superuser is imported")
	}
}

// asksClients: clients are let in when the roles are set, and not before.
func (o *checker) asksClients(e apiserver.Event, n *v1alpha1.CassandraNode) {
	old, modified := e.Old.(*v1alpha1.CassandraNode)
	if n.Spec.Configuration.Authentication != v1alpha1.AuthenticationPassword ||
		n.Spec.ClientTraffic != v1alpha1.TrafficOpen || modified && old.Spec.ClientTraffic == v1alpha1.TrafficOpen {
		return
	}
	nodes := jvms(o.w)
	if len(nodes) > 0 && !slices.ContainsFunc(nodes, (*cassandra.Process).Locked) {
		o.violated("passwords: node %s is opened to clients before the roles are set", n.Name)
	}
}

// asksInTurn: a ring that serves has its roles before the first node asks for them, and more nodes
// ask when a person has said that the applications have theirs.
func (o *checker) asksInTurn(e apiserver.Event, n *v1alpha1.CassandraNode) {
	old, modified := e.Old.(*v1alpha1.CassandraNode)
	asks := func(n *v1alpha1.CassandraNode) bool {
		return n.Spec.Configuration.Authentication == v1alpha1.AuthenticationPassword
	}
	if !modified || !asks(n) || asks(old) || old.Spec.Member == nil {
		return
	}
	if !slices.ContainsFunc(jvms(o.w), (*cassandra.Process).Locked) {
		o.violated("passwords: node %s is to ask for passwords before the roles are made", n.Name)
	}
	said := slices.ContainsFunc(get(o.w).Spec.Exceptions, func(e v1alpha1.Exception) bool {
		return e.Type == v1alpha1.ExceptionRolesReady
	})
	if (n.Spec.ClientTraffic == v1alpha1.TrafficOpen || slices.ContainsFunc(o.w.Server.Objects("CassandraNode"),
		func(other client.Object) bool {
			return other.GetName() != n.Name && asks(other.(*v1alpha1.CassandraNode))
		})) && !said {
		o.violated("passwords: node %s is to ask for passwords before its clients have roles", n.Name)
	}
}

// passwords: I7. They are made once, and never changed.
func (o *checker) passwords(e apiserver.Event, s *corev1.Secret, user string) {
	if user == world.UserPerson || s.Name != v1alpha1.RolesName(clusterName) &&
		s.Name != v1alpha1.SuperuserName(clusterName) {
		return
	}
	switch e.Type {
	case apiserver.Modified:
		o.violated("I7: Secret %s with passwords is overwritten", s.Name)
	case apiserver.Added:
		if slices.ContainsFunc(jvms(o.w), (*cassandra.Process).Imported) {
			o.violated("I7: Secret %s is made again, and other passwords are on the disks", s.Name)
		}
	case apiserver.Deleted:
	}
}

// restoresRoles says that the nodes still have the passwords of the ring that was backed up.
func (o *checker) restoresRoles() bool {
	c, l := get(o.w), o.lastLedger
	return c != nil && c.Spec.Restore() != nil && c.Spec.Restore().Roles == v1alpha1.RolesRestore && l != nil &&
		l.Step != nil && l.Step.Kind == ledger.FormRing
}

// applied: whatever the ring has, a password that lets its superuser in is kept, unless a person
// has given him another one.
func (o *checker) applied(e apiserver.Event, s *corev1.Secret, user string) {
	if s.Name != v1alpha1.AppliedSuperuserName(clusterName) || e.Type == apiserver.Deleted || user == world.UserPerson {
		return
	}
	nodes := jvms(o.w)
	if !slices.ContainsFunc(nodes, (*cassandra.Process).Locked) || o.restoresRoles() {
		return
	}
	name := string(s.Data[corev1.BasicAuthUsernameKey])
	if !slices.ContainsFunc(nodes, func(p *cassandra.Process) bool {
		return p.Fits(product.Login{User: name, Password: string(s.Data[corev1.BasicAuthPasswordKey])}) ||
			p.Fits(product.Login{User: name, Password: string(s.Data[v1alpha1.KeyOldPassword])}) ||
			p.Fits(product.Login{User: name, Password: lost})
	}) {
		o.violated("passwords: no password that is kept lets the superuser in")
	}
}
