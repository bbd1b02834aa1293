package cli

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

// A superuser is reset when that was confirmed twice, and only where there is one.
func TestResetSuperuser(t *testing.T) {
	for name, c := range map[string]struct {
		said    string
		yes, of bool
		want    string
	}{
		"confirmed":        {said: "yes\norders\n", of: true},
		"in a script":      {yes: true, of: true},
		"once":             {said: "yes\n", of: true, want: "not confirmed"},
		"another cluster":  {said: "yes\ncarts\n", of: true, want: "not confirmed"},
		"no":               {said: "no\norders\n", of: true, want: "not confirmed"},
		"without password": {yes: true, want: "nobody is asked for a password"},
	} {
		orders := cluster("shop", "orders")
		if c.of {
			orders.Status.Security = &v1alpha1.SecurityStatus{Authentication: &v1alpha1.AuthenticationStatus{
				Superuser: &v1alpha1.SuperuserStatus{SecretName: "mine"}}}
		}
		d, connected := newDesk(), to(t, interceptor.Funcs{}, orders)
		d.streams.In = strings.NewReader(c.said)
		err := d.resetSuperuser(t.Context(), connected, "orders", c.yes, false)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		all := &v1alpha1.CassandraTaskList{}
		if err := connected.client.List(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		if done := len(all.Items) == 1 && all.Items[0].Spec.Type == v1alpha1.TaskResetSuperuser; done != (c.want == "") {
			t.Errorf("%s: created %+v", name, all.Items)
		}
		if !c.yes && !strings.Contains(d.out.String(), "the password of Secret mine") {
			t.Errorf("%s: said %q", name, d.out.String())
		}
	}
	err := newDesk().giveTask(t.Context(), to(t, interceptor.Funcs{}, cluster("shop", "orders")), "resetSuperuser",
		"orders", tasking{})
	if err == nil || !strings.Contains(err.Error(), "kubectl helenus superuser reset") {
		t.Errorf("as a task: %v", err)
	}
}
