package observe

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// Which Secrets of passwords are read, and what is made of them.
func TestPasswords(t *testing.T) {
	made := func(secret *corev1.Secret, data map[string][]byte) *corev1.Secret {
		secret.Data = data
		return secret
	}
	good := map[string][]byte{"username": []byte("admin"), "password": []byte("secret")}
	earlier := render.Owner{Namespace: "shop", Name: "orders", UID: "earlier"}
	given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mine"},
		Data: map[string][]byte{"username": []byte("cassandra"), "password": []byte("secret")}}
	formed := func(mode v1alpha1.AuthenticationMode) *ledger.Ledger {
		return &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1"}, MadeWith: &ledger.MadeWith{Authentication: mode}}}
	}
	older := formed(v1alpha1.AuthenticationPassword)
	older.MadeWith = nil
	for name, c := range map[string]struct {
		ledger           *ledger.Ledger
		mode             v1alpha1.AuthenticationMode
		named            string
		there            []client.Object
		roles, superuser bool
		problem          string
		foreign          int
		asked            int
	}{
		"none is there": {asked: 3},
		"those of an earlier cluster are there": {there: []client.Object{made(render.RolesSecret(earlier), nil),
			made(render.SuperuserSecret(earlier), good)}, roles: true, superuser: true, asked: 3},
		"one of somebody else has the name": {there: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "orders-superuser"}, Data: good}}, foreign: 1, asked: 3},
		"the spec names one": {named: "mine", there: []client.Object{given}, superuser: true,
			problem: "has the username cassandra: it must be another than cassandra, helenus_root, helenus_operator",
			asked:   3},
		"the spec names one, and the ring is formed": {ledger: formed(v1alpha1.AuthenticationPassword), named: "mine",
			there: []client.Object{given, made(render.RolesSecret(earlier), nil)}, roles: true, superuser: true,
			problem: "has the username cassandra: it must be another than cassandra, helenus_root, helenus_operator",
			asked:   3},
		"somebody took labels away from that of a ring": {ledger: formed(v1alpha1.AuthenticationPassword),
			there: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
				Name: "orders-roles"}}}, roles: true, asked: 3},
		"the ring is made without":       {ledger: formed(v1alpha1.AuthenticationNone)},
		"an earlier release has made it": {ledger: older},
		"it is to be made without":       {mode: v1alpha1.AuthenticationNone},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			asked := 0
			live := counting{fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.there...).Build(), &asked}
			cluster := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders",
				UID: types.UID("now")}}
			cluster.Spec.Security = &v1alpha1.Security{Authentication: &v1alpha1.Authentication{Mode: c.mode,
				Superuser: &v1alpha1.Superuser{SecretName: c.named}}}
			s := &facts.Snapshot{Cluster: cluster, Ledger: c.ledger}
			o := &objects{seen: map[consistency.Key]consistency.Seen{}}
			var kept secrets
			if err := kept.readPasswords(t.Context(), live, time.Now(), s, o, &consistency.Store{}); err != nil {
				t.Fatal(err)
			}
			p := s.Passwords
			if (p.Roles != nil) != c.roles || (p.Superuser != nil) != c.superuser || p.Problem != c.problem ||
				len(s.Foreign) != c.foreign || asked != c.asked {
				t.Errorf("passwords %+v, foreign %v, asked %d times; want %+v", p, s.Foreign, asked, c)
			}
			for _, secret := range []*corev1.Secret{p.Roles, p.Superuser, p.Applied} {
				if secret != nil && secret.Data != nil {
					t.Errorf("the content of Secret %s is kept", secret.Name)
				}
			}
		})
	}
}

// What a person writes into the Secret of the superuser is seen after a minute, and what of it
// differs from what is applied.
func TestAChangedPasswordIsNoticed(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	owner := render.Owner{Namespace: "shop", Name: "orders", UID: "now"}
	superuser, applied := render.SuperuserSecret(owner), render.AppliedSuperuser(owner)
	superuser.Data = map[string][]byte{"username": []byte("ada"), "password": []byte("one")}
	applied.Data = map[string][]byte{"username": []byte("ada"), "password": []byte("one")}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(superuser, applied).Build()
	s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: "orders", UID: "now"}}, Ledger: &ledger.Ledger{Ring: ledger.Ring{MadeWith: &ledger.MadeWith{
		Authentication: v1alpha1.AuthenticationPassword}}}}
	var kept secrets
	now := time.Now()
	look := func(after time.Duration) facts.Passwords {
		t.Helper()
		now, s.Passwords = now.Add(after), facts.Passwords{}
		o := &objects{seen: map[consistency.Key]consistency.Seen{}}
		if err := kept.readPasswords(t.Context(), c, now, s, o, &consistency.Store{}); err != nil {
			t.Fatal(err)
		}
		return s.Passwords
	}
	if p := look(0); p.Changed || p.Old || p.Renamed != "" || p.Applied == nil {
		t.Errorf("nothing is changed: %+v", p)
	}
	write := func(secret *corev1.Secret, key, to string) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
		secret.Data[key] = []byte(to)
		if err := c.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	write(superuser, "password", "two")
	if p := look(superuserFor - time.Second); p.Changed {
		t.Errorf("it was read a moment ago: %+v", p)
	}
	if p := look(2 * time.Second); !p.Changed || p.Renamed != "" {
		t.Errorf("the password is another: %+v", p)
	}
	write(superuser, "username", "eve")
	write(applied, v1alpha1.KeyOldPassword, "zero")
	s.Ledger.Maintenance = []*ledger.Step{{Kind: ledger.Rotate}}
	if p := look(applyingFor); !p.Changed || p.Renamed != "ada" || !p.Old {
		t.Errorf("the name is another: %+v", p)
	}
}

// What the Secrets of applications say is known, and what is wrong with them.
func TestSecretsOfApplications(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secret := func(name string, data map[string][]byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "7"}, Data: data}
	}
	password := []byte("secret")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		secret("good", map[string][]byte{"password": password}),
		secret("of-app", map[string][]byte{"username": []byte("app"), "password": password}),
		secret("empty", nil)).Build()
	s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: "orders"}}}
	role := func(name, secret string) v1alpha1.ApplicationRole {
		return v1alpha1.ApplicationRole{Name: name, SecretName: secret}
	}
	roles := []v1alpha1.ApplicationRole{role("a", "good"), role("b", "good"), role("app", "of-app"),
		role("c", "of-app"), role("d", "empty"), role("e", "none")}
	s.Cluster.Spec.Security = &v1alpha1.Security{Authentication: &v1alpha1.Authentication{Roles: roles}}
	var kept secrets
	for range 2 { // from the API server, and from memory
		if err := kept.readApplications(t.Context(), c, time.Now(), s); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]facts.ApplicationSecret{
			"a": {Version: "7"}, "b": {Version: "7"}, "app": {Version: "7"},
			"c": {Problem: `has the username "app": it must have that of the role, or none`},
			"d": {Problem: "has no password: it must have one of 1 to 72 bytes"},
			"e": {Problem: "does not exist: create it, of type kubernetes.io/basic-auth, with a password"},
		} {
			if got := s.Passwords.Applications[name]; got != want {
				t.Errorf("role %s: %+v, want %+v", name, got, want)
			}
		}
	}
}

// counting counts what is read.
type counting struct {
	client.Reader
	asked *int
}

func (c counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
	*c.asked++
	return c.Reader.Get(ctx, key, o, how...)
}
