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
		"none is there": {asked: 2},
		"those of an earlier cluster are there": {there: []client.Object{made(render.RolesSecret(earlier), nil),
			made(render.SuperuserSecret(earlier), good)}, roles: true, superuser: true, asked: 2},
		"one of somebody else has the name": {there: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "orders-superuser"}, Data: good}}, foreign: 1, asked: 2},
		"the spec names one": {named: "mine", there: []client.Object{given}, superuser: true,
			problem: "has the username cassandra: it must be another than cassandra, helenus_root, helenus_operator",
			asked:   2},
		"the spec names one, and the ring is formed": {ledger: formed(v1alpha1.AuthenticationPassword), named: "mine",
			there: []client.Object{given, made(render.RolesSecret(earlier), nil)}, roles: true, asked: 1},
		"somebody took labels away from that of a ring": {ledger: formed(v1alpha1.AuthenticationPassword),
			there: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
				Name: "orders-roles"}}}, roles: true, asked: 2},
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
			for _, secret := range []*corev1.Secret{p.Roles, p.Superuser} {
				if secret != nil && secret.Data != nil {
					t.Errorf("the content of Secret %s is kept", secret.Name)
				}
			}
		})
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
