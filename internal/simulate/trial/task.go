package trial

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	coretask "helenus.io/helenus/internal/core/cluster/task"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/world"
)

// taskScenarios are those in which a user has nodes do something by a CassandraTask.
func taskScenarios() []*Scenario {
	given := func(t v1alpha1.TaskType, concurrency int32, until func(*world.World) bool) Act {
		return Act{Name: "create the task", Do: func(w *world.World) error { return give(w, t, concurrency) },
			Until: until, Within: 30 * time.Minute}
	}
	return []*Scenario{
		scenario("task-flush", "a task flushes every node, one after the other", threeRacks,
			given(v1alpha1.TaskFlush, 1, all(again, taskIs(v1alpha1.TaskSucceeded)))),
		scenario("task-cleanup", "a task cleans up every node, two at once", threeRacks,
			given(v1alpha1.TaskCleanup, 2, all(again, taskIs(v1alpha1.TaskSucceeded)))),
		scenario("task-deleted", "a task is deleted while it runs", threeRacks,
			Act{Name: "a cleanup takes its time", Do: func(w *world.World) error {
				w.Network.Prolong(time.Minute) // for each keyspace
				return nil
			}},
			given(v1alpha1.TaskCleanup, 1, taskIs(v1alpha1.TaskRunning)),
			deleted(30*time.Minute)),
		scenario("task-cancelled", "a compaction is ended by the deletion of its task", threeRacks,
			Act{Name: "a compaction would take half a day", Do: func(w *world.World) error {
				w.Network.Prolong(12 * time.Hour)
				return nil
			}},
			given(v1alpha1.TaskCompact, 3, all(taskIs(v1alpha1.TaskRunning), nodesRewrite(1))),
			deleted(30*time.Minute),
			Act{Name: "nothing is compacted any more", Do: func(w *world.World) error {
				w.Network.Prolong(0)
				return nil
			}, Until: all(again, nodesRewrite(0)), Within: time.Minute}),
		scenario("task-snapshot", "a task takes a snapshot on every node", threeRacks,
			given(v1alpha1.TaskSnapshot, 1, all(again, taskIs(v1alpha1.TaskSucceeded), everyNodeHasTheSnapshot))),
		scenario("task-restart", "a task restarts every node by a roll-out", threeRacks,
			given(v1alpha1.TaskRestart, 1, all(again, taskIs(v1alpha1.TaskSucceeded)))),
	}
}

// deleted deletes the task, after which nothing of it is asked for.
func deleted(within time.Duration) Act {
	return Act{Name: "delete the task", Do: func(w *world.World) error {
		return w.User().Delete(context.Background(), task("", 0))
	}, Until: all(again, nothingAsked), Within: within}
}

// nodesRewrite says that so many JVMs rewrite SSTables at least; 0: that none does.
func nodesRewrite(least int) func(*world.World) bool {
	return func(w *world.World) bool {
		at := 0
		for _, s := range w.Pods.Sandboxes() {
			if p := s.JVM(); p != nil && p.Rewrites() {
				at++
			}
		}
		return at >= least && (least > 0 || at == 0)
	}
}

// everyNodeHasTheSnapshot: of what is local to it, too.
func everyNodeHasTheSnapshot(w *world.World) bool {
	t, _ := w.Server.Object("CassandraTask", keyOf("task")).(*v1alpha1.CassandraTask)
	for _, s := range w.Pods.Sandboxes() {
		if s.JVM() == nil {
			continue
		}
		tags := s.Content(v1alpha1.VolumeData).Data.Snapshots()
		if !slices.Contains(tags[coretask.SnapshotTag(t)], "system_auth") {
			return false
		}
	}
	return true
}

func task(t v1alpha1.TaskType, concurrency int32) *v1alpha1.CassandraTask {
	return &v1alpha1.CassandraTask{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: "task"},
		Spec: v1alpha1.CassandraTaskSpec{Cluster: v1alpha1.TaskCluster{Name: clusterName},
			TaskTemplate: v1alpha1.TaskTemplate{Type: t, Concurrency: concurrency}}}
}

func give(w *world.World, t v1alpha1.TaskType, concurrency int32) error {
	return w.User().Create(context.Background(), task(t, concurrency))
}

func taskIs(phase v1alpha1.TaskPhase) func(*world.World) bool {
	return func(w *world.World) bool {
		t, _ := w.Server.Object("CassandraTask", keyOf("task")).(*v1alpha1.CassandraTask)
		return t != nil && t.Status.Phase == phase
	}
}

// nothingAsked says that no record asks for an operation.
func nothingAsked(w *world.World) bool {
	for _, o := range w.Server.Objects("CassandraNode") {
		if len(o.(*v1alpha1.CassandraNode).Spec.Operations) > 0 {
			return false
		}
	}
	return true
}

// task: what has finished stays so.
func (o *checker) task(e apiserver.Event, now *v1alpha1.CassandraTask) {
	old, modified := e.Old.(*v1alpha1.CassandraTask)
	if modified && e.Type == apiserver.Modified && old.Status.Finished() && old.Status.Phase != now.Status.Phase {
		o.violated("task: it was %s and is %q", old.Status.Phase, now.Status.Phase)
	}
}

// worksOn: no node is asked for a task that has finished, and no more nodes work on one than may.
func (o *checker) worksOn(e apiserver.Event, now *v1alpha1.CassandraNode, byOperator bool) {
	for _, object := range o.w.Server.Objects("CassandraTask") {
		t := object.(*v1alpha1.CassandraTask)
		old, _ := e.Old.(*v1alpha1.CassandraNode)
		asked := func(i v1alpha1.OperationIntent) bool {
			return ledger.OfIntent(i.ID) == string(t.UID) && (old == nil || old.Spec.Operation(i.ID) == nil)
		}
		if byOperator && t.Status.Finished() && slices.ContainsFunc(now.Spec.Operations, asked) {
			o.violated("task: node %s is asked again, and the task is %s", now.Name, t.Status.Phase)
		}
		running := int32(0)
		for _, record := range o.w.Server.Objects("CassandraNode") {
			n := record.(*v1alpha1.CassandraNode)
			for _, s := range n.Status.Operations {
				if ledger.OfIntent(s.ID) == string(t.UID) && !s.Phase.Final() && o.sandbox(n.Status.PodUID) != nil {
					running++
				}
			}
		}
		if running > t.Spec.Concurrency {
			o.violated("task: %d nodes work at once, and %d may", running, t.Spec.Concurrency)
		}
	}
}
