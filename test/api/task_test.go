package api

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// TestStatusOfATask: the operator, with its own rights, writes the status of a task to the version
// that was seen, and notes it. To another version it writes nothing, and one that is gone needs
// none.
func TestStatusOfATask(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, v1alpha1.AddToScheme(scheme))
	operator := withToken(tokenOf(t, "helenus-system", "helenus", nil))
	c, err := ctrlclient.New(operator, ctrlclient.Options{Scheme: scheme})
	must(t, err)
	user, err := ctrlclient.New(server, ctrlclient.Options{Scheme: scheme})
	must(t, err)
	task := &v1alpha1.CassandraTask{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(t), Name: "flush"},
		Spec: v1alpha1.CassandraTaskSpec{Cluster: v1alpha1.TaskCluster{Name: "demo"},
			TaskTemplate: v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush}}}
	must(t, user.Create(t.Context(), task))
	w := act.Writer{Client: c, Live: c, Now: time.Now}
	s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}}
	write := func(version string, status v1alpha1.CassandraTaskStatus) (error, bool) {
		object, store := task.DeepCopy(), &consistency.Store{}
		object.Status = status
		done := w.Do(t.Context(), s, plan.Plan{Writes: []plan.Write{{Verb: plan.ApplyStatus, Object: object,
			UID: task.UID, ResourceVersion: version}}}, nil, store)
		return done.Err, store.Pending(consistency.Key{Kind: "CassandraTask", Namespace: task.Namespace,
			Name: task.Name})
	}
	seen := task.ResourceVersion
	running := v1alpha1.CassandraTaskStatus{Phase: v1alpha1.TaskRunning, Message: "nodes are asked",
		Nodes: []v1alpha1.TaskNode{{Node: "demo-dc1-r1-0", Phase: v1alpha1.TaskPending}}}
	if err, noted := write(seen, running); err != nil || !noted {
		t.Fatalf("the first status: %v, noted %v", err, noted)
	}
	if err, noted := write(seen, v1alpha1.CassandraTaskStatus{Phase: v1alpha1.TaskFailed}); err == nil || noted {
		t.Errorf("to a version that is another by now: %v, noted %v", err, noted)
	}
	if err, _ := write("", running); err == nil {
		t.Error("written to any version")
	}
	must(t, user.Get(t.Context(), ctrlclient.ObjectKeyFromObject(task), task))
	if got := task.Status; got.Phase != v1alpha1.TaskRunning || len(got.Nodes) != 1 {
		t.Errorf("status %+v", got)
	}
	done := v1alpha1.CassandraTaskStatus{Phase: v1alpha1.TaskSucceeded, Nodes: running.Nodes}
	if err, _ := write(task.ResourceVersion, done); err != nil {
		t.Error(err)
	}
	must(t, user.Get(t.Context(), ctrlclient.ObjectKeyFromObject(task), task))
	if got := task.Status; got.Phase != v1alpha1.TaskSucceeded || got.Message != "" {
		t.Errorf("what is left out stays: %+v", got)
	}
	must(t, user.Delete(t.Context(), task))
	if err, noted := write(task.ResourceVersion, done); err != nil || noted {
		t.Errorf("of one that is gone: %v, noted %v", err, noted)
	}
}
