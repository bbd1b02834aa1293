package trial

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	product "helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/cassandra/cql"
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
func (o *checker) asksClients(n *v1alpha1.CassandraNode) {
	if n.Spec.Configuration.Authentication != v1alpha1.AuthenticationPassword ||
		n.Spec.ClientTraffic != v1alpha1.TrafficOpen {
		return
	}
	nodes := jvms(o.w)
	if len(nodes) > 0 && !slices.ContainsFunc(nodes, (*cassandra.Process).Locked) {
		o.violated("passwords: node %s is opened to clients before the roles are set", n.Name)
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

// applied: whatever the ring has, a password that lets its superuser in is kept.
func (o *checker) applied(e apiserver.Event, s *corev1.Secret, user string) {
	if s.Name != v1alpha1.AppliedSuperuserName(clusterName) || e.Type == apiserver.Deleted || user == world.UserPerson {
		return
	}
	nodes := jvms(o.w)
	if !slices.ContainsFunc(nodes, (*cassandra.Process).Locked) {
		return
	}
	name := string(s.Data[corev1.BasicAuthUsernameKey])
	if !slices.ContainsFunc(nodes, func(p *cassandra.Process) bool {
		return p.Fits(product.Login{User: name, Password: string(s.Data[corev1.BasicAuthPasswordKey])}) ||
			p.Fits(product.Login{User: name, Password: string(s.Data[v1alpha1.KeyOldPassword])})
	}) {
		o.violated("passwords: no password that is kept lets the superuser in")
	}
}
