package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

// A task is created as its flags say, and waited for until it has finished: what it says on the way
// is said once.
func TestTask(t *testing.T) {
	for phase, wrong := range map[v1alpha1.TaskPhase]string{
		v1alpha1.TaskSucceeded: "", v1alpha1.TaskFailed: "has failed: on a node",
	} {
		asked := 0
		c := to(t, interceptor.Funcs{Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey,
			object client.Object, options ...client.GetOption) error {
			err := under.Get(ctx, key, object, options...)
			if task, is := object.(*v1alpha1.CassandraTask); is {
				asked++
				task.Status = v1alpha1.CassandraTaskStatus{Phase: v1alpha1.TaskRunning, Progress: "1/3"}
				if asked > 2 {
					task.Status = v1alpha1.CassandraTaskStatus{Phase: phase, Message: "on a node"}
				}
			}
			return err
		}}, cluster("shop", "orders"))
		d := newDesk()
		err := d.giveTask(t.Context(), c, "upgradeSStables", "orders", tasking{wait: true, ttl: time.Hour,
			spec: v1alpha1.TaskTemplate{Racks: []string{"r1"}, Concurrency: 2}})
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", phase, err)
		}
		all := &v1alpha1.CassandraTaskList{}
		if err := c.client.List(t.Context(), all); err != nil || len(all.Items) != 1 {
			t.Fatalf("%d tasks, %v", len(all.Items), err)
		}
		spec := all.Items[0].Spec
		if spec.Type != v1alpha1.TaskUpgradeSSTables || spec.Cluster.Name != "orders" || spec.Concurrency != 2 ||
			spec.TTLAfterFinished.Duration != time.Hour || spec.PrimaryRange != nil {
			t.Errorf("created %+v", spec)
		}
		if out := d.out.String(); strings.Count(out, "Running 1/3") != 1 || strings.Count(out, "\n") != 2 {
			t.Errorf("said %q", out)
		}
	}
	for kind, want := range map[string]string{"dance": "flush, cleanup, upgradesstables, repair",
		"drain": "use restart", "Move": "several tokens",
		"assassinate": "use remove"} {
		err := newDesk().giveTask(t.Context(), to(t, interceptor.Funcs{}, cluster("shop", "orders")), kind, "orders",
			tasking{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	c := to(t, interceptor.Funcs{}, cluster("shop", "orders"))
	if err := newDesk().giveTask(t.Context(), c, "compact", "orders", tasking{split: true}); err != nil {
		t.Fatal(err)
	}
	if err := newDesk().giveTask(t.Context(), c, "snapshot", "orders", tasking{snapshotTTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	all := &v1alpha1.CassandraTaskList{}
	if err := c.client.List(t.Context(), all); err != nil || len(all.Items) != 2 {
		t.Fatalf("%d tasks, %v", len(all.Items), err)
	}
	for i := range all.Items {
		spec := all.Items[i].Spec
		if compact := spec.Type == v1alpha1.TaskCompact; compact != (spec.Split != nil && *spec.Split) ||
			compact == (spec.SnapshotTTL != nil && spec.SnapshotTTL.Duration == time.Hour) {
			t.Errorf("created %+v", spec)
		}
	}
}
