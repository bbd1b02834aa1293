//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// taskSpec is what a type needs besides its name. The index is rebuilt of a table that clients use.
func taskSpec(kind v1alpha1.TaskType, node string) v1alpha1.TaskTemplate {
	spec := v1alpha1.TaskTemplate{Type: kind}
	switch kind { //nolint:exhaustive // the others need nothing
	case v1alpha1.TaskSnapshot:
		spec.SnapshotTTL = &metav1.Duration{Duration: time.Hour}
	case v1alpha1.TaskClearSnapshot:
		spec.Tag = "nobody-has-this"
	case v1alpha1.TaskRebuild:
		spec.SourceDatacenter = "dc1"
	case v1alpha1.TaskRestart:
		spec.Racks = []string{"r1"}
	case v1alpha1.TaskReplace:
		spec.Nodes = []string{node}
	case v1alpha1.TaskRebuildIndex:
		spec.Keyspaces, spec.Tables, spec.Indexes = []string{scene.Keyspace}, []string{scene.Indexed}, []string{scene.Index}
	}
	return spec
}

// operating are the types that nodes which are up take part in.
func operating() []v1alpha1.TaskType {
	return slices.DeleteFunc(v1alpha1.TaskTypes(),
		func(t v1alpha1.TaskType) bool { return t == v1alpha1.TaskRemove })
}

// TestTasks: every type of task succeeds on every node while a client writes, twice in a row. One
// that is deleted while it runs leaves nothing to be done, and one whose time is over goes by
// itself.
func TestTasks(t *testing.T) {
	ring := threeRacks(t)
	nodes := ring.NodeNames(t.Context())
	ring.Invariants.ExpectOtherPods(nodes[0]) // it is replaced
	if err := ring.MakeIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	give := func(name string, spec v1alpha1.TaskTemplate) (*v1alpha1.CassandraTask, error) {
		task, err := ring.Give(t.Context(), strings.ToLower(name), spec)
		if err != nil {
			return nil, err
		}
		return task, ring.Finished(t.Context(), task)
	}
	while(t, ring, servedThroughout, "tasks of every type have run", func() error {
		for _, kind := range operating() {
			for _, round := range []string{"first", "again"} {
				task, err := give(string(kind)+"-"+round, taskSpec(kind, nodes[0]))
				if err != nil {
					return err
				}
				want := len(nodes)
				if len(task.Spec.Racks)+len(task.Spec.Nodes) > 0 {
					want = 1
				}
				if len(task.Status.Nodes) != want {
					return fmt.Errorf("task %s has results of %d nodes, not of %d", task.Name, len(task.Status.Nodes), want)
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
		task, err := ring.Give(t.Context(), "flush-two-at-once", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush,
			Concurrency: 2, TTLAfterFinished: &metav1.Duration{}})
		if err != nil {
			return err
		}
		return ring.Gone(t.Context(), task)
	})
	took(t, "the one after a task of any type that was deleted is done", func() error {
		for _, kind := range operating() {
			task, err := ring.Give(t.Context(), strings.ToLower(string(kind))+"-deleted", taskSpec(kind, nodes[0]))
			if err != nil {
				return err
			}
			if err := ring.TaskRuns(t.Context(), task); err != nil {
				return err
			}
			if err := ring.Kubernetes.Client.Delete(t.Context(), task); err != nil {
				return err
			}
			if _, err = give(string(kind)+"-flush-after", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush}); err != nil {
				return err
			}
		}
		return nil
	})
	// The results are written first: the step that takes the operations from the records is open
	// until then.
	if err := ring.Until(t.Context(), time.Minute, "no node is asked for an operation", func(now follow.Sight) error {
		for _, n := range now.Nodes(ring.Name) {
			if left := n.Spec.Operations; len(left) > 0 {
				return fmt.Errorf("node %s is still asked for %+v", n.Name, left)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestRollOutSuspendsTasks: a repair, and then a cleanup, is at work when all JVMs are to restart.
// What runs on a node ends; the nodes that are left wait until the roll-out is over, and are done
// then.
func TestRollOutSuspendsTasks(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	before, names := identities(t, ring), ring.NodeNames(t.Context())
	for _, kind := range []v1alpha1.TaskType{v1alpha1.TaskRepair, v1alpha1.TaskCleanup} {
		began := time.Now()
		while(t, ring, servedThroughout, "all JVMs are restarted while a task runs: "+string(kind), func() error {
			task, err := ring.Give(t.Context(), strings.ToLower(string(kind))+"-suspended", taskSpec(kind, names[0]))
			if err == nil {
				err = ring.TaskRuns(t.Context(), task)
			}
			if err == nil {
				err = untilSoak(t, ring, names[0], restartNow)
			}
			if err == nil {
				err = kubernetes.Client.Get(t.Context(), client.ObjectKeyFromObject(task), task)
			}
			if err != nil {
				return err
			}
			if task.Status.Finished() || !strings.Contains(task.Status.Message, "suspended") {
				return fmt.Errorf("task %s is %s %s in the midst of a roll-out: %s", task.Name, task.Status.Phase,
					task.Status.Progress, task.Status.Message)
			}
			if err := ring.Finished(t.Context(), task); err != nil {
				return err
			}
			return ring.RolledOut(t.Context(), rollingOut)
		})
		wantStarts(t, ring, began, map[string]int{names[0]: 1, names[1]: 1, names[2]: 1})
	}
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// lasting are the types that read or stream all rows as slowly as Cassandra is told to.
var lasting = []v1alpha1.TaskType{v1alpha1.TaskCompact, v1alpha1.TaskScrub, v1alpha1.TaskGarbageCollect,
	v1alpha1.TaskRebuild}

// TestTasksAndDeaths: while a task of each type that lasts runs on a node, the agent of that node
// is killed, and in another one its JVM. What runs in a JVM that lives is not begun again, and what
// has ended with its JVM is.
func TestTasksAndDeaths(t *testing.T) {
	onlyInFull(t)
	withoutSharedRing(t)
	ring := forGrowth(t, "e2e-tasks-deaths")
	onlyHere(t, ring.Scene)
	names, before := ring.NodeNames(t.Context()), identities(t, ring)
	took(t, "so much is written that tasks take a while",
		func() error { return ring.FillMuch(t.Context(), scene.Much) })
	while(t, ring, gapsAreShort, "agents and JVMs are killed while tasks run", func() error {
		for i, kind := range lasting {
			node := names[i%len(names)] // the kubelet lets an agent that ends often wait for long
			for _, of := range []string{"agent", "JVM"} {
				began := time.Now()
				if err := killedInTask(t, ring, kind, node, of == "JVM"); err != nil {
					return fmt.Errorf("%s on node %s, whose %s is killed: %w", kind, node, of, err)
				}
				t.Logf("%6.1fs  %s on node %s, whose %s is killed", time.Since(began).Seconds(), kind, node, of)
			}
		}
		return nil
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// killedInTask gives a task for a node, and kills its agent or its JVM while it does it. It fails
// unless the task succeeds, and was begun once more only if the JVM has ended.
func killedInTask(t *testing.T, ring *scene.Ring, kind v1alpha1.TaskType, node string, jvm bool) error {
	t.Helper()
	names, spec, attempts := ring.NodeNames(t.Context()), taskSpec(kind, node), int32(1)
	spec.Nodes = []string{node}
	if err := ring.Slow(t.Context(), names, true); err != nil {
		return err
	}
	task, err := ring.Give(t.Context(), strings.ToLower(fmt.Sprintf("%s-%t", kind, jvm)), spec)
	if err == nil {
		err = untilNode(t, ring, node, "it is at work: "+string(kind),
			func(n *v1alpha1.CassandraNode) bool { return atWork(n, v1alpha1.OperationType(kind)) })
	}
	switch {
	case err != nil:
	case jvm:
		ring.Invariants.ExpectRestart(node)
		attempts = 2
		names = slices.DeleteFunc(names, func(name string) bool { return name == node }) // its next JVM is quick
		err = ring.KillJVM(t.Context(), node)
	default:
		err = ring.SignalAgent(podOf(t, ring, node).UID, syscall.SIGKILL)
	}
	if err == nil {
		err = ring.Slow(t.Context(), names, false)
	}
	if err == nil {
		err = ring.Finished(t.Context(), task)
	}
	if err == nil && task.Status.Nodes[0].Attempts != attempts {
		err = fmt.Errorf("task %s was begun %d times, and was to be %d times", task.Name, task.Status.Nodes[0].Attempts,
			attempts)
	}
	return err
}
