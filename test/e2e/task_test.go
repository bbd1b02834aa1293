//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// TestTasks: every type of task succeeds on every node while a client writes, twice in a row. One
// that is deleted leaves nothing to be done, and one whose time is over goes by itself.
func TestTasks(t *testing.T) {
	ring := threeRacks(t)
	nodes := ring.NodeNames(t.Context())
	give := func(name string, spec v1alpha1.CassandraTaskSpec) (*v1alpha1.CassandraTask, error) {
		task, err := ring.Give(t.Context(), strings.ToLower(name), spec)
		if err != nil {
			return nil, err
		}
		return task, ring.Finished(t.Context(), task)
	}
	while(t, ring, servedThroughout, "tasks of every type have run", func() error {
		for _, kind := range v1alpha1.TaskTypes() {
			for _, round := range []string{"first", "again"} {
				task, err := give(string(kind)+"-"+round, v1alpha1.CassandraTaskSpec{Type: kind})
				if err != nil {
					return err
				}
				if len(task.Status.Nodes) != len(nodes) {
					return fmt.Errorf("task %s has results of %d nodes, not of %d", task.Name, len(task.Status.Nodes),
						len(nodes))
				}
				for _, n := range task.Status.Nodes {
					if n.Attempts != 1 {
						return fmt.Errorf("task %s was begun %d times on node %s", task.Name, n.Attempts, n.Node)
					}
				}
			}
		}
		return nil
	})
	took(t, "a task whose time is over is gone", func() error {
		task, err := ring.Give(t.Context(), "flush-two-at-once", v1alpha1.CassandraTaskSpec{Type: v1alpha1.TaskFlush,
			Concurrency: 2, TTLAfterFinished: &metav1.Duration{}})
		if err != nil {
			return err
		}
		return ring.TaskGone(t.Context(), task)
	})
	took(t, "the one after a task that was deleted is done", func() error {
		task, err := ring.Give(t.Context(), "repair-deleted", v1alpha1.CassandraTaskSpec{Type: v1alpha1.TaskRepair})
		if err != nil {
			return err
		}
		if err := ring.Kubernetes.Client.Delete(t.Context(), task); err != nil {
			return err
		}
		_, err = give("flush-after", v1alpha1.CassandraTaskSpec{Type: v1alpha1.TaskFlush})
		return err
	})
	for _, n := range ring.Nodes(t.Context()) {
		if left := n.Spec.Operations; len(left) > 0 {
			t.Errorf("node %s is still asked for %+v", n.Name, left)
		}
	}
}
