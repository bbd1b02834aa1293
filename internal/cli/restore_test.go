package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

// A restore is created as its flags say, and waited for until it has finished.
func TestRestore(t *testing.T) {
	for phase, wrong := range map[v1alpha1.TaskPhase]string{
		v1alpha1.TaskSucceeded: "", v1alpha1.TaskFailed: "has failed: there is no table",
	} {
		asked := 0
		c := to(t, interceptor.Funcs{Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey,
			object client.Object, options ...client.GetOption) error {
			err := under.Get(ctx, key, object, options...)
			if r, is := object.(*v1alpha1.CassandraRestore); is {
				asked++
				r.Status.CassandraTaskStatus = v1alpha1.CassandraTaskStatus{Phase: v1alpha1.TaskRunning, Progress: "1/3"}
				if asked > 2 {
					r.Status.CassandraTaskStatus = v1alpha1.CassandraTaskStatus{Phase: phase, Message: "there is no table"}
				}
			}
			return err
		}}, cluster("shop", "orders"))
		d := newDesk()
		err := d.giveRestore(t.Context(), c, "orders", restoring{wait: true, replace: wrong == "",
			deadline: time.Hour, source: "other", tables: []string{"shop.carts", "shop.orders=shop.orders_old"},
			spec: v1alpha1.CassandraRestoreSpec{Backup: "b-1", Store: v1alpha1.BackupStoreReference{Name: "main"}}})
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", phase, err)
		}
		all := &v1alpha1.CassandraRestoreList{}
		if err := c.client.List(t.Context(), all); err != nil || len(all.Items) != 1 {
			t.Fatalf("%d restores, %v", len(all.Items), err)
		}
		spec := all.Items[0].Spec
		if spec.Cluster.Name != "orders" || spec.Store.Name != "main" || spec.Source.UID != "other" ||
			spec.Backup != "b-1" || spec.Deadline.Duration != time.Hour ||
			!slices.Equal(spec.Tables, []v1alpha1.RestoredTable{{From: "shop.carts"},
				{From: "shop.orders", To: "shop.orders_old"}}) {
			t.Errorf("created %+v", spec)
		}
		if (spec.Mode == v1alpha1.RestoreReplace) != (wrong == "") {
			t.Errorf("mode %q", spec.Mode)
		}
		if spec.PointInTime != nil {
			t.Errorf("at %s", spec.PointInTime)
		}
		if out := d.out.String(); strings.Count(out, "Running 1/3") != 1 {
			t.Errorf("said %q", out)
		}
	}
}

// A time takes the place of the backup, and is a time.
func TestRestoreAtATime(t *testing.T) {
	for at, wrong := range map[string]string{
		"2026-11-25T15:03:10+01:00": "", "yesterday": `--at "yesterday" must be a time such as`,
	} {
		c := to(t, interceptor.Funcs{}, cluster("shop", "orders"))
		err := newDesk().giveRestore(t.Context(), c, "orders", restoring{at: at, tables: []string{"shop.carts"}})
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", at, err)
		}
		all := &v1alpha1.CassandraRestoreList{}
		if err := c.client.List(t.Context(), all); err != nil || len(all.Items) != 0 != (wrong == "") {
			t.Fatalf("%s: %d restores, %v", at, len(all.Items), err)
		}
		for _, r := range all.Items {
			if r.Spec.Backup != "" || !r.Spec.PointInTime.Time.Equal(time.Date(2026, 11, 25, 14, 3, 10, 0, time.UTC)) {
				t.Errorf("created %+v", r.Spec)
			}
		}
	}
}
