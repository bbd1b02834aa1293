package act

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// The password before that is kept is the one that was proven last, however often another one is
// copied, and nothing is written to a Secret that is another one than was seen.
func TestThePasswordBeforeIsKept(t *testing.T) {
	s := snapshot()
	given := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-superuser"},
		Data: map[string][]byte{"username": []byte("ada"), "password": []byte("one")}}
	w := writer(t, interceptor.Funcs{}, given)
	read := func() *corev1.Secret {
		t.Helper()
		out := &corev1.Secret{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "orders-superuser-applied"},
			out); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return out
	}
	do := func(s *facts.Snapshot, write plan.Write) error {
		return w.Do(t.Context(), s, plan.Plan{Writes: []plan.Write{write}}, confirmed, &consistency.Store{}).Err
	}
	copied := func() error {
		return do(s, plan.Write{Verb: plan.CopyPassword, Object: render.AppliedSuperuser(render.OwnerOf(s.Cluster)),
			UID: read().UID})
	}
	edit := func(key, to string) {
		t.Helper()
		given.Data[key] = []byte(to)
		if err := w.Client.Update(t.Context(), given); err != nil {
			t.Fatal(err)
		}
	}
	want := func(password, old string) {
		t.Helper()
		have := read()
		if string(have.Data["username"]) != "ada" || string(have.Data["password"]) != password ||
			string(have.Data[v1alpha1.KeyOldPassword]) != old ||
			have.Annotations[v1alpha1.AnnotationSecretVersion] != given.ResourceVersion {
			t.Errorf("applied %s %v, want %s and %q before", have.Data, have.Annotations, password, old)
		}
	}
	if err := copied(); err != nil {
		t.Fatal(err)
	}
	want("one", "")
	applied := read()
	applied.UID = "applied" // the fake gives none
	if err := w.Client.Update(t.Context(), applied); err != nil {
		t.Fatal(err)
	}
	for _, password := range []string{"two", "three"} {
		edit("password", password)
		if err := copied(); err != nil {
			t.Fatal(err)
		}
		want(password, "one")
	}
	drop := plan.Write{Verb: plan.DropOldPassword, UID: "applied", Object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "orders-superuser-applied",
		Annotations: map[string]string{v1alpha1.AnnotationAppliedAt: "2026-11-25T12:00:00Z"}}}}
	for wrong, version := range map[string]string{"applied": "1", "another": read().ResourceVersion} {
		late := drop
		late.UID, late.ResourceVersion = applied.UID, version
		if wrong == "another" {
			late.UID = "another"
		}
		if err := do(s, late); err == nil {
			t.Errorf("%s of version %s is forgotten", late.UID, version)
		}
		want("three", "one")
	}
	drop.ResourceVersion = read().ResourceVersion
	if err := do(s, drop); err != nil {
		t.Fatal(err)
	}
	want("three", "")
	if read().Annotations[v1alpha1.AnnotationAppliedAt] == "" {
		t.Error("it does not say when")
	}
	for change, says := range map[[2]string]string{{"password", ""}: "has no password", {"username", "eve"}: "another username"} {
		before := string(given.Data[change[0]])
		edit(change[0], change[1])
		if err := copied(); err == nil || !strings.Contains(err.Error(), says) ||
			string(read().Data["password"]) != "three" {
			t.Errorf("%s: error %v, applied %s", change, err, read().Data)
		}
		edit(change[0], before)
	}
}
