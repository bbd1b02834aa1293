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

// formsWithPasswords forms a ring as it is made if nobody says otherwise.
func formsWithPasswords() *Scenario {
	return scenario("form-password", "three racks form a ring that asks for passwords from its first moment",
		threeRacks.with(func(c *v1alpha1.CassandraCluster) { c.Spec.Security = nil }),
		Act{Name: "log in", Do: func(*world.World) error { return nil }, Until: asked, Within: 5 * time.Minute})
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
			product.Login{User: product.RoleDefault, Password: product.RoleDefault})
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
