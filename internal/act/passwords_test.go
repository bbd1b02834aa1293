package act

import (
	"slices"
	"testing"

	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// Passwords are random, fit what Cassandra takes, have no owner with whom they would go, and are
// never replaced.
func TestPasswordsAreMadeOnce(t *testing.T) {
	w := writer(t, interceptor.Funcs{})
	owner := render.OwnerOf(snapshot().Cluster)
	for _, secret := range []*corev1.Secret{render.RolesSecret(owner), render.SuperuserSecret(owner)} {
		do := func() error {
			return w.Do(t.Context(), snapshot(), plan.Plan{Writes: []plan.Write{{Verb: plan.MakePasswords,
				Object: secret}}}, confirmed, &consistency.Store{}).Err
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
		made, again := &corev1.Secret{}, &corev1.Secret{}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), made); err != nil {
			t.Fatal(err)
		}
		if err := do(); !apierrors.IsAlreadyExists(err) {
			t.Errorf("made again: %v", err)
		}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), again); err != nil {
			t.Fatal(err)
		}
		if len(made.OwnerReferences) > 0 || !render.MadeFor(owner, made) || made.Type != secret.Type {
			t.Errorf("made %+v", made.ObjectMeta)
		}
		var passwords []string
		for key, value := range made.Data {
			if string(value) != string(again.Data[key]) {
				t.Errorf("%s is another than it was", key)
			}
			if key != v1alpha1.KeyRootHash && key != corev1.BasicAuthUsernameKey {
				passwords = append(passwords, string(value))
			}
		}
		if slices.ContainsFunc(passwords, func(p string) bool {
			return len(p) < 26 || len(p) > v1alpha1.MaxPasswordBytes
		}) || len(slices.Compact(slices.Sorted(slices.Values(passwords)))) != len(passwords) {
			t.Errorf("Secret %s has passwords that are short, long or alike", made.Name)
		}
		switch hash, roles := made.Data[v1alpha1.KeyRootHash]; {
		case roles:
			if err := bcrypt.CompareHashAndPassword(hash, made.Data[v1alpha1.RoleRoot]); err != nil ||
				string(hash[:7]) != "$2a$04$" {
				t.Errorf("the hash %.7s… is not of the password: %v", hash, err)
			}
		case render.SuperuserProblem(made) != "":
			t.Errorf("the superuser %s", render.SuperuserProblem(made))
		}
	}
}
