package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/replace"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// give has a user create a task, with the defaults of the schema.
func (w *world) give(name string, spec v1alpha1.TaskTemplate) types.UID {
	spec.Concurrency, spec.MaxAttempts = max(1, spec.Concurrency), max(3, spec.MaxAttempts)
	if spec.Deadline == nil {
		spec.Deadline = &metav1.Duration{Duration: 24 * time.Hour}
	}
	t := &v1alpha1.CassandraTask{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: w.uid("task"),
		ResourceVersion: w.version(), Generation: 1, CreationTimestamp: metav1.NewTime(w.now)},
		Spec: v1alpha1.CassandraTaskSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"}, TaskTemplate: spec}}
	w.snapshot.Tasks = append(w.snapshot.Tasks, t)
	return t.UID
}

// tell writes the status of a task.
func (w *world) tell(write plan.Write) {
	w.t.Helper()
	for i, b := range w.snapshot.Backups {
		if b.UID == write.UID {
			if b.ResourceVersion != write.ResourceVersion {
				w.t.Fatalf("%s: of version %s, it has %s", write, write.ResourceVersion, b.ResourceVersion)
			}
			changed := b.DeepCopy()
			changed.Status, changed.ResourceVersion = write.Object.(*v1alpha1.CassandraBackup).Status, w.version()
			w.snapshot.Backups = slices.Clone(w.snapshot.Backups)
			w.snapshot.Backups[i] = changed
			return
		}
	}
	for i, r := range w.snapshot.Restores {
		if r.UID == write.UID {
			changed := r.DeepCopy()
			changed.Status, changed.ResourceVersion = write.Object.(*v1alpha1.CassandraRestore).Status, w.version()
			w.snapshot.Restores = slices.Clone(w.snapshot.Restores)
			w.snapshot.Restores[i] = changed
			return
		}
	}
	for i, t := range w.snapshot.Tasks {
		if t.UID != write.UID {
			continue
		}
		if t.ResourceVersion != write.ResourceVersion {
			w.t.Fatalf("%s: of version %s, it has %s", write, write.ResourceVersion, t.ResourceVersion)
		}
		changed := t.DeepCopy()
		changed.Status, changed.ResourceVersion = write.Object.(*v1alpha1.CassandraTask).Status, w.version()
		w.snapshot.Tasks = slices.Clone(w.snapshot.Tasks)
		w.snapshot.Tasks[i] = changed
		return
	}
	w.t.Fatalf("%s: there is none", write)
}

// work has nodes run operations as phase says, and keeps which of them were begun.
func (w *world) work(phase func(node string) v1alpha1.OperationPhase) *[]string {
	begun := &[]string{}
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		all, at := slices.Clone(n.Record.Status.Operations), metav1.NewTime(w.now)
		i := slices.IndexFunc(all, func(s v1alpha1.OperationStatus) bool { return s.ID == o.ID })
		if i < 0 && (o.Withdraw != nil || o.NotAfter != nil && !w.now.Before(o.NotAfter.Time)) {
			return append(all, v1alpha1.OperationStatus{ID: o.ID, Phase: v1alpha1.OperationWithdrawn, FinishedAt: &at})
		}
		is := phase(n.Name)
		if i >= 0 && is == v1alpha1.OperationCancelled && (o.Withdraw == nil || !o.Withdraw.Cancel) {
			is = v1alpha1.OperationRunning
		}
		if is == "" || i >= 0 && all[i].Phase.Final() {
			return all
		}
		if i < 0 && is == v1alpha1.OperationCancelled {
			is = v1alpha1.OperationRunning
		}
		if i < 0 {
			*begun = append(*begun, o.ID)
			all, i = append(all, v1alpha1.OperationStatus{ID: o.ID, StartedAt: &at}), len(all)
		}
		all[i].Phase, all[i].Message = is, "it is "+string(is)
		if is.Final() {
			all[i].FinishedAt = &at
		}
		return all
	}
	return begun
}

func constantly(phase v1alpha1.OperationPhase) func(string) v1alpha1.OperationPhase {
	return func(string) v1alpha1.OperationPhase { return phase }
}

func inWords(t *v1alpha1.CassandraTask) string {
	var nodes []string
	for _, n := range t.Status.Nodes {
		nodes = append(nodes, fmt.Sprintf("%s=%s/%d", strings.TrimPrefix(n.Node, "orders-dc1-"), n.Phase, n.Attempts))
	}
	return fmt.Sprintf("%s %s [%s] %s", t.Status.Phase, t.Status.Progress, strings.Join(nodes, " "), t.Status.Message)
}

func (w *world) wantTask(uid types.UID, words ...string) {
	w.t.Helper()
	t := w.snapshot.Task(string(uid))
	if t == nil {
		w.t.Fatalf("task %s is gone", uid)
	}
	for _, word := range words {
		if !strings.Contains(inWords(t), word) {
			w.t.Errorf("task %s is %q, which does not say %q", t.Name, inWords(t), word)
		}
	}
	for _, c := range []struct {
		kind string
		is   bool
	}{
		{v1alpha1.ConditionReconciling, !t.Status.Finished()},
		{v1alpha1.ConditionComplete, t.Status.Phase == v1alpha1.TaskSucceeded},
		{v1alpha1.ConditionFailed, t.Status.Phase == v1alpha1.TaskFailed},
		{v1alpha1.ConditionStalled, t.Status.Phase == v1alpha1.TaskFailed},
	} {
		if meta.IsStatusConditionTrue(t.Status.Conditions, c.kind) != c.is {
			w.t.Errorf("task %s: conditions %+v, and %s is to be %v", t.Name, t.Status.Conditions, c.kind, c.is)
		}
	}
}

// Steps of maintenance whose operations do not conflict are open side by side, on one node.
func TestAFlushRunsBesideACleanup(t *testing.T) {
	phase := v1alpha1.OperationRunning
	w := cleaning(t, &phase)
	node := w.snapshot.Ledger.Maintenance[0].Nodes[0]
	flush := w.give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush, Nodes: []string{node}})
	another := w.give("cleanup", v1alpha1.TaskTemplate{Type: v1alpha1.TaskCleanup, Nodes: []string{node}})
	w.pass()
	if l, asked := w.snapshot.Ledger, w.snapshot.Nodes[node].Record.Spec.Operations; len(l.Maintenance) != 2 ||
		len(asked) != 2 {
		t.Fatalf("operations %+v of %s", asked, ledgerInWords(l))
	}
	w.pass()
	w.wantTask(another, "waits until task flush has finished")
	phase = v1alpha1.OperationSucceeded
	w.snapshot.Nodes[node].Record.Status.Operations = nil
	w.agents()
	w.settle()
	if l := w.snapshot.Ledger; len(l.Maintenance) != 0 || len(l.Cleanup) != 0 {
		t.Errorf("not over: %s", ledgerInWords(l))
	}
	w.wantTask(flush, "Succeeded 1/1")
	w.wantTask(another, "Succeeded 1/1")
}

func TestATaskFailsOnANodeAndGoesOnOnTheOthers(t *testing.T) {
	w := formed(t)
	begun := w.work(func(node string) v1alpha1.OperationPhase {
		if node == three[0] {
			return v1alpha1.OperationFailed
		}
		return v1alpha1.OperationSucceeded
	})
	flush := w.give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush})
	for range 60 {
		w.pass()
	}
	w.wantTask(flush, "Failed 3/3 [r1-0=Failed/3 r2-0=Succeeded/1 r3-0=Succeeded/1]",
		"failed on orders-dc1-r1-0: it is Failed")
	if len(*begun) != 5 || len(w.snapshot.Ledger.Maintenance) != 0 || !slices.Contains(w.events, "TaskFailed") {
		t.Errorf("begun %v, events %v, %s", *begun, w.events, ledgerInWords(w.snapshot.Ledger))
	}
	for _, name := range three {
		if left := w.snapshot.Nodes[name].Record.Spec.Operations; len(left) > 0 {
			t.Errorf("node %s keeps %+v", name, left)
		}
	}
}

// No more nodes work at once than may, and one that is down takes nobody's place: it is waited for
// by name, until the deadline.
func TestATaskWaitsForANodeThatIsDown(t *testing.T) {
	for name, back := range map[string]bool{"back": true, "down for good": false} {
		w := formed(t)
		begun := w.work(constantly(v1alpha1.OperationRunning))
		w.absent[three[0]] = true
		w.agents()
		flush := w.give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush,
			Deadline: &metav1.Duration{Duration: time.Hour}})
		w.settle()
		if len(*begun) != 1 {
			t.Errorf("%s: begun %v", name, *begun)
		}
		w.wantTask(flush, "[r1-0=Pending/0 r2-0=Running/1 r3-0=Pending/0]", "orders-dc1-r1-0: it is down: ")
		w.work(constantly(v1alpha1.OperationSucceeded))
		w.agents()
		if made := w.settle(); made.Wake > time.Hour || len(w.snapshot.Ledger.Maintenance) != 1 {
			t.Errorf("%s: wakes in %s of %s", name, made.Wake, ledgerInWords(w.snapshot.Ledger))
		}
		if back {
			delete(w.absent, three[0])
			w.agents()
			w.settle()
			w.wantTask(flush, "Succeeded 3/3")
			continue
		}
		w.now = w.now.Add(time.Hour)
		w.settle()
		w.wantTask(flush, "Failed 3/3 [r1-0=Failed/0 r2-0=Succeeded/1 r3-0=Succeeded/1]",
			"before the deadline: it is down: ")
		if l := w.snapshot.Ledger; len(l.Maintenance) != 0 {
			t.Errorf("%s: still open: %s", name, ledgerInWords(l))
		}
	}
}

// A task that is deleted ends with what runs; nothing begins for it any more, and the next one
// waits for that.
func TestATaskIsDeletedWhileItRuns(t *testing.T) {
	w := formed(t)
	begun := w.work(constantly(v1alpha1.OperationRunning))
	first := w.give("first", v1alpha1.TaskTemplate{Type: v1alpha1.TaskCleanup})
	next := w.give("next", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush, Racks: []string{"r2"}})
	w.settle()
	w.snapshot.Tasks = slices.DeleteFunc(slices.Clone(w.snapshot.Tasks),
		func(t *v1alpha1.CassandraTask) bool { return t.UID == first })
	w.settle()
	w.wantTask(next, "Pending", "a task that was deleted")
	if len(*begun) != 1 || len(w.snapshot.Ledger.Maintenance) != 1 {
		t.Fatalf("begun %v of %s", *begun, ledgerInWords(w.snapshot.Ledger))
	}
	begun = w.work(constantly(v1alpha1.OperationSucceeded))
	w.agents()
	w.settle()
	w.wantTask(next, "Succeeded 1/1 [r2-0=Succeeded/1]")
	if len(*begun) != 1 || len(w.snapshot.Ledger.Maintenance) != 0 {
		t.Errorf("begun %v of %s", *begun, ledgerInWords(w.snapshot.Ledger))
	}
}

// What runs of a task that is deleted, or whose deadline is over, is cancelled: then nothing is
// waited for that can be ended.
func TestWhatRunsOfATaskIsCancelled(t *testing.T) {
	for _, kind := range []v1alpha1.TaskType{v1alpha1.TaskCompact, v1alpha1.TaskRepair} {
		w := formed(t)
		w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
		w.work(constantly(v1alpha1.OperationCancelled))
		first := w.give("first", v1alpha1.TaskTemplate{Type: kind,
			Deadline: &metav1.Duration{Duration: time.Hour}})
		next := w.give("next", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush})
		w.settle()
		w.wantTask(first, "Running 0/3 [r1-0=Running/1 r2-0=Pending/0 r3-0=Pending/0]")
		w.now = w.now.Add(time.Hour)
		w.settle()
		w.wantTask(first, "Failed 3/3 [r1-0=Failed/1 r2-0=Failed/0 r3-0=Failed/0]", "it is Cancelled")
		w.work(constantly(v1alpha1.OperationSucceeded))
		w.agents()
		w.settle()
		w.wantTask(next, "Succeeded 3/3")
		begun := w.work(constantly(v1alpha1.OperationCancelled))
		first = w.give("again", v1alpha1.TaskTemplate{Type: kind})
		w.settle()
		w.snapshot.Tasks = slices.DeleteFunc(slices.Clone(w.snapshot.Tasks),
			func(t *v1alpha1.CassandraTask) bool { return t.UID == first })
		w.settle()
		if l := w.snapshot.Ledger; len(*begun) != 1 || len(l.Maintenance) != 0 {
			t.Errorf("%s: begun %v of %s", kind, *begun, ledgerInWords(l))
		}
	}
}

// Also while a roll-out waits for it: a compaction may take half a day.
func TestWhatRunsOfADeletedTaskIsCancelledBeforeARollOut(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.work(constantly(v1alpha1.OperationCancelled))
	w.give("compact", v1alpha1.TaskTemplate{Type: v1alpha1.TaskCompact})
	w.settle()
	w.change(setting("concurrent_reads", "16"))
	w.settle()
	if l := w.snapshot.Ledger; l.Step != nil || len(l.Maintenance) != 1 {
		t.Fatalf("the roll-out does not wait: %s", ledgerInWords(l))
	}
	w.snapshot.Tasks = nil
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RollOut })
}

// Cassandra ends all repairs of a node, or none.
func TestARepairIsNotCancelledBesideAnother(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.work(constantly(v1alpha1.OperationCancelled))
	repair := w.give("repair", v1alpha1.TaskTemplate{Type: v1alpha1.TaskRepair})
	w.settle()
	other := w.snapshot.Nodes[three[2]].Record
	other.Spec.Operations = append(other.Spec.Operations, v1alpha1.OperationIntent{
		Intent: v1alpha1.Intent{ID: "of-another/repair"}, Type: v1alpha1.OperationRepair})
	other.Status.Operations = append(other.Status.Operations, v1alpha1.OperationStatus{ID: "of-another/repair",
		Phase: v1alpha1.OperationRunning})
	w.snapshot.Tasks = nil
	w.settle()
	cancelled := func() bool {
		o := w.snapshot.Nodes[three[0]].Record.Spec.Operations
		return len(o) == 0 || o[0].Withdraw != nil && o[0].Withdraw.Cancel
	}
	if cancelled() || len(w.snapshot.Ledger.Maintenance) != 1 {
		t.Fatalf("task %s: %+v", repair, w.snapshot.Nodes[three[0]].Record.Spec.Operations)
	}
	other = w.snapshot.Nodes[three[2]].Record
	other.Status.Operations[0].Phase = v1alpha1.OperationSucceeded
	w.settle()
	if !cancelled() || len(w.snapshot.Ledger.Maintenance) != 0 {
		t.Errorf("task %s: %+v", repair, w.snapshot.Nodes[three[0]].Record.Spec.Operations)
	}
}

// Each type asks the nodes for the operation of its name.
func TestWhatEachTypeOfTaskAsksFor(t *testing.T) {
	yes, day := true, &metav1.Duration{Duration: 24 * time.Hour}
	shop, users := []string{"shop"}, []string{"users"}
	for _, c := range []struct {
		spec v1alpha1.TaskTemplate
		want v1alpha1.OperationArguments
	}{
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush, Keyspaces: shop, Tables: users},
			v1alpha1.OperationArguments{Keyspaces: shop, Tables: users}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskCleanup}, v1alpha1.OperationArguments{Jobs: 2}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskUpgradeSSTables}, v1alpha1.OperationArguments{Jobs: 2}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskRepair, PrimaryRange: &yes},
			v1alpha1.OperationArguments{Full: true, PrimaryRange: true}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskRepair, PrimaryRange: &yes, Incremental: &yes},
			v1alpha1.OperationArguments{PrimaryRange: true}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskSnapshot, SnapshotTTL: day},
			v1alpha1.OperationArguments{Tag: "task-helenus-backup-TAG", TTL: day}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskClearSnapshot, Tag: "x"}, v1alpha1.OperationArguments{Tag: "x"}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskCompact, Split: &yes}, v1alpha1.OperationArguments{Split: true}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskGarbageCollect}, v1alpha1.OperationArguments{Jobs: 2}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskScrub}, v1alpha1.OperationArguments{Jobs: 2}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskVerify}, v1alpha1.OperationArguments{}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskInvalidateCaches}, v1alpha1.OperationArguments{}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskRebuildIndex, Keyspaces: shop, Tables: users,
			Indexes: []string{"by_name"}},
			v1alpha1.OperationArguments{Keyspaces: shop, Tables: users, Indexes: []string{"by_name"}}},
		{v1alpha1.TaskTemplate{Type: v1alpha1.TaskRebuild, SourceDatacenter: "dc1"},
			v1alpha1.OperationArguments{SourceDatacenter: "first"}},
	} {
		w := newWorld(t, datacenter("dc1", 1, 1, 1))
		w.snapshot.Cluster.Spec.Datacenters[0].DatacenterName = "first"
		w.settle()
		w.work(constantly(v1alpha1.OperationRunning))
		uid := w.give("helenus-backup-", c.spec)
		w.settle()
		asked := w.snapshot.Nodes[three[0]].Record.Spec.Operations
		if c.want.Tag == "task-helenus-backup-TAG" {
			c.want.Tag = "task-helenus-backup--" + string(uid)[:min(len(uid), 8)]
		}
		if len(asked) != 1 || string(asked[0].Type) != string(c.spec.Type) ||
			!reflect.DeepEqual(asked[0].Arguments, &c.want) {
			t.Errorf("%s: asked for %+v, want %+v", c.spec.Type, asked, c.want)
		}
	}
}

// A task restarts the nodes that it selects, by the waves of a roll-out, and no others. What was
// restarted stays so, and one that is deleted restarts no more.
func TestATaskRestartsNodes(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	restarted := func() (out []string) {
		for _, name := range three {
			if at := w.snapshot.Nodes[name].Record.Spec.Configuration.RestartedAt; at != nil {
				out = append(out, name)
			}
		}
		return out
	}
	restart := w.give("restart", v1alpha1.TaskTemplate{Type: v1alpha1.TaskRestart, Racks: []string{"r1", "r3"}})
	next := w.give("next", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush})
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RollOut })
	w.wantTask(next, "waits until task restart has finished")
	for range 10 {
		w.now = w.now.Add(time.Minute)
		w.settle()
	}
	w.wantTask(restart, "Succeeded 2/2 [r1-0=Succeeded/1 r3-0=Succeeded/1]")
	w.wantTask(next, "Succeeded 3/3")
	if got := restarted(); !slices.Equal(got, []string{three[0], three[2]}) {
		t.Errorf("restarted %v", got)
	}
	w.snapshot.Cluster.Spec.Paused = true
	restart = w.give("again", v1alpha1.TaskTemplate{Type: v1alpha1.TaskRestart})
	w.settle()
	w.wantTask(restart, "Pending 0/3", "spec.paused is true")
	w.snapshot.Tasks = nil
	w.snapshot.Cluster.Spec.Paused = false
	w.settle()
	if got := restarted(); len(got) != 2 || w.snapshot.Ledger.Step != nil {
		t.Errorf("restarted %v, %s", got, ledgerInWords(w.snapshot.Ledger))
	}
}

// Whatever of the ledger is lost, nothing is run a second time.
func TestATaskSurvivesTheLossOfTheLedger(t *testing.T) {
	w := formed(t)
	begun := w.work(constantly(v1alpha1.OperationRunning))
	flush := w.give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush, Concurrency: 2})
	w.settle()
	lose := func() {
		w.snapshot.Ledger = nil
		delete(w.snapshot.Shared.ConfigMaps, v1alpha1.LedgerName("orders"))
	}
	lose()
	w.settle()
	w.wantTask(flush, "[r1-0=Running/1 r2-0=Running/1 r3-0=Pending/0]")
	all := slices.Clone(*begun)
	begun = w.work(constantly(v1alpha1.OperationSucceeded))
	w.agents()
	lose()
	w.settle()
	w.wantTask(flush, "Succeeded 3/3")
	lose()
	w.settle()
	all = append(all, *begun...)
	if flushes := slices.DeleteFunc(all, func(id string) bool { return ledger.OfIntent(id) != string(flush) }); len(
		flushes) != 3 {
		t.Errorf("begun %v", flushes)
	}
}

func TestATaskNamesWhatIsNotThere(t *testing.T) {
	for want, spec := range map[string]v1alpha1.TaskTemplate{
		`spec.datacenters "dc2": there are dc1`:                    {Datacenters: []string{"dc1", "dc2"}},
		`spec.racks "r4": there are r1, r2, r3`:                    {Racks: []string{"r4"}},
		`spec.nodes "orders-dc1-r1-1": there are orders-dc1-r1-0,`: {Nodes: []string{"orders-dc1-r1-1"}},
	} {
		w := formed(t)
		spec.Type = v1alpha1.TaskFlush
		flush := w.give("flush", spec)
		w.settle()
		w.wantTask(flush, "Failed", want)
		if w.snapshot.Ledger.Maintenance != nil {
			t.Errorf("%s: opened %s", want, ledgerInWords(w.snapshot.Ledger))
		}
	}
}

// A roll-out goes first. What runs is waited for, and the rest is done afterwards.
func TestATaskIsSuspendedByARollOut(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	begun := w.work(constantly(v1alpha1.OperationRunning))
	flush := w.give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush})
	w.settle()
	w.change(setting("concurrent_reads", "16"))
	w.settle()
	if w.snapshot.Ledger.Step != nil || len(*begun) != 1 {
		t.Fatalf("begun %v beside %s", *begun, ledgerInWords(w.snapshot.Ledger))
	}
	begun = w.work(constantly(v1alpha1.OperationSucceeded))
	w.agents()
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RollOut })
	w.pass()
	w.wantTask(flush, "Running 1/3", "suspended")
	if len(*begun) != 0 {
		t.Errorf("begun beside a roll-out: %v", *begun)
	}
	for range 10 {
		w.now = w.now.Add(time.Minute)
		w.settle()
	}
	w.wantTask(flush, "Succeeded 3/3")
	if len(*begun) != 2 {
		t.Errorf("begun %v", *begun)
	}
}

func TestATaskSaysWhatItWaitsFor(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	repair := w.give("repair", v1alpha1.TaskTemplate{Type: v1alpha1.TaskRepair})
	w.pass()
	w.wantTask(repair, "Pending", "until the ring is formed")
	w.settle()
	w.wantTask(repair, "Succeeded 3/3")
	w.snapshot.Cluster.Spec.Paused = true
	repair = w.give("again", v1alpha1.TaskTemplate{Type: v1alpha1.TaskRepair})
	w.settle()
	w.wantTask(repair, "Pending 0/3", "spec.paused is true")
	w.snapshot.Cluster.Spec.Paused = false
	w.absent[three[1]] = true
	w.agents()
	w.settle()
	w.wantTask(repair, "Pending 0/3", "orders-dc1-r2-0")
	delete(w.absent, three[1])
	w.agents()
	w.settle()
	w.wantTask(repair, "Succeeded 3/3")
}

func TestTasksGoWithTheirCluster(t *testing.T) {
	w := formed(t)
	w.give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush})
	w.deleteCluster()
	for range 30 {
		if w.pass(); len(w.snapshot.Tasks) == 0 {
			return
		}
	}
	t.Error("a task is left")
}

// givingUp is a ring of three in which the disk of the first node is given up: the others are
// repaired, and it is stopped.
func givingUp(t *testing.T, change ...func(*world)) (*world, types.UID) {
	t.Helper()
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.settle()
	w.work(constantly(v1alpha1.OperationCancelled)) // it runs until then
	for _, c := range change {
		c(w)
	}
	return w, w.give("replace", v1alpha1.TaskTemplate{Type: v1alpha1.TaskReplace, Nodes: []string{first}})
}

// goesDown has a member go down.
func goesDown(name string) func(*world) {
	return func(w *world) { w.absent[name], w.running[w.snapshot.Nodes[name].Pod.UID].Ring = true, nil }
}

// Until its ticket the disk of a node that is replaced by a task is as it was, and it starts again
// on that as soon as something speaks against it.
func TestAMemberKeepsItsDiskUntilItsTicket(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(w *world)
		want    string
	}{
		"the task is deleted":            {func(w *world) { w.snapshot.Tasks = nil }, ""},
		"its deadline is over":           {func(w *world) { w.now = w.now.Add(25 * time.Hour) }, "Failed 1/1"},
		"another member goes down":       {goesDown(three[2]), "Pending"},
		"one that is repaired goes down": {goesDown(second), "Running"},
		"the ledger is lost, and the task deleted": {func(w *world) {
			w.snapshot.Ledger = nil
			delete(w.snapshot.Shared.ConfigMaps, v1alpha1.LedgerName("orders"))
			w.settle()
			w.snapshot.Tasks = nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, task := givingUp(t)
			w.until(func(s *ledger.Step) bool {
				return s.Kind == ledger.ReplaceTask && s.Stage == ledger.StageOperations
			})
			n := w.snapshot.Nodes[first]
			if n.Pod != nil || n.Record.Spec.State != v1alpha1.StateStopped || len(n.Record.Spec.Claims) == 0 {
				t.Fatalf("it is to be %s, with claims %v, and its pod is %v", n.Record.Spec.State,
					n.Record.Spec.Claims, n.Pod)
			}
			claims := slices.Clone(n.Record.Spec.Claims)
			c.disturb(w)
			w.pass() // after which agents are looked at again
			w.settle()
			if c.want != "" {
				w.wantTask(task, c.want)
			}
			n = w.snapshot.Nodes[first]
			if n.Record.Spec.State != v1alpha1.StateRunning || !slices.Equal(n.Record.Spec.Claims, claims) ||
				n.Record.Spec.Join != nil || len(n.Record.Spec.Replaced) > 0 {
				t.Errorf("it is to be %s, with claims %v: %s", n.Record.Spec.State, n.Record.Spec.Claims,
					ledgerInWords(w.snapshot.Ledger))
			}
		})
	}
}

// What holds a replacement back whose member is up.
func TestWhatKeepsADiskFromBeingGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"another member is down": {goesDown(second), second},
		"a keyspace has one copy": {func(w *world) {
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=1}"})
		}, "AcceptLoss"},
		"it is paused": {func(w *world) { w.snapshot.Cluster.Spec.Paused = true }, "spec.paused is true"},
	} {
		w, task := givingUp(t, c.change)
		w.settle()
		w.wantTask(task, "Pending", c.want)
		if n := w.snapshot.Nodes[first]; n.Record.Spec.State != v1alpha1.StateRunning || w.snapshot.Ledger.Step != nil {
			t.Errorf("%s: it is to be %s: %s", name, n.Record.Spec.State, ledgerInWords(w.snapshot.Ledger))
		}
	}
}

// A member is removed only if it is down, and fewer nodes are enough for what they hold. One that
// the spec does not describe any more is gone then, and another joins as a new node.
func TestATaskRemovesAMember(t *testing.T) {
	for name, c := range map[string]struct {
		keyspace string
		up       bool
		shrink   bool
		want     string
	}{
		"it is up":                      {"NetworkTopologyStrategy {dc1=2}", true, false, "sees node orders-dc1-r3-1 up"},
		"there are too many replicas":   {"NetworkTopologyStrategy {dc1=4}", false, true, "4 replicas"},
		"the spec does not describe it": {"NetworkTopologyStrategy {dc1=3}", false, true, "Succeeded 1/1"},
		"the spec describes it":         {"NetworkTopologyStrategy {dc1=3}", false, false, "Succeeded 1/1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, datacenter("dc1", 1, 1, 2))
			w.settle()
			w.replicated(map[string]string{"shop": c.keyspace})
			const fourth = "orders-dc1-r3-1"
			n := w.snapshot.Nodes[fourth]
			was := w.endpoints()
			if !c.up {
				lost := w.running[n.Pod.UID]
				lost.Ring, lost.Disk, lost.Phase = nil, v1alpha1.DiskEmpty, v1alpha1.PhaseDataLost
				lost.Process, n.Record.Status.Disk = facts.ProcessAbsent, v1alpha1.DiskEmpty
				gone := was[slices.IndexFunc(was, func(e facts.Endpoint) bool { return e.HostID == hostID(fourth) })]
				gone.Live = false
				w.strangers = []facts.Endpoint{gone}
			}
			w.operate = func(at *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
				if o.Type == v1alpha1.OperationRemoveNode {
					w.strangers = nil
				}
				return []v1alpha1.OperationStatus{{ID: o.ID, Phase: v1alpha1.OperationSucceeded}}
			}
			if c.shrink {
				w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[2].Nodes = ptr(int32(1)) })
			}
			task := w.give("remove", v1alpha1.TaskTemplate{Type: v1alpha1.TaskRemove, Nodes: []string{fourth}})
			for range 5 {
				w.now = w.now.Add(time.Minute)
				w.settle()
			}
			w.wantTask(task, c.want)
			if got := slices.Contains(w.snapshot.Ledger.Replaced, hostID(fourth)); got != strings.HasPrefix(c.want, "Succ") {
				t.Errorf("it is removed: %v: %s", got, ledgerInWords(w.snapshot.Ledger))
			}
			if n := w.snapshot.Nodes[fourth]; c.shrink && got(n) != !strings.HasPrefix(c.want, "Succ") {
				t.Errorf("its record is there: %v", got(n))
			}
		})
	}
}

// got says that a node has a record.
func got(n *facts.Node) bool { return n != nil && n.Record != nil }

// Once nothing speaks against it a node gets its ticket and other claims, and never the old ones.
func TestATaskReplacesAMember(t *testing.T) {
	w, task := givingUp(t, func(w *world) { w.work(constantly(v1alpha1.OperationSucceeded)) })
	claims, was := w.snapshot.Nodes[first].Record.Spec.Claims, w.snapshot.Ledger.Members[first]
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.ReplaceTask && s.Stage == ledger.StageTickets })
	spec := w.snapshot.Nodes[first].Record.Spec
	if spec.Join == nil || spec.Join.Replace == nil || spec.Join.Replace.HostID != was ||
		ledger.OfIntent(spec.Join.ID) != string(task) || len(spec.Claims) > 0 || spec.State != v1alpha1.StateRunning ||
		len(spec.Replaced) != 1 || spec.Replaced[0].ClaimUID != claims[0].UID {
		t.Fatalf("its record is %+v", spec)
	}
	w.wantTask(task, "Running 0/1")
	w.snapshot.Tasks = nil // nothing takes it back
	w.pass()
	if s := w.snapshot.Ledger.Step; s == nil || s.Stage != ledger.StageTickets {
		t.Errorf("the task is deleted: %s", ledgerInWords(w.snapshot.Ledger))
	}
}

// An operator that has started has asked no agent yet, or some: that one does not answer it is no
// reason to take back what was begun.
func TestAnOperatorThatStartsTakesNothingBack(t *testing.T) {
	for unasked := range 1 << len(three) {
		for passes, over := 0, false; !over; passes++ {
			w, _ := givingUp(t, func(w *world) { w.work(constantly(v1alpha1.OperationSucceeded)) })
			w.atStage(ledger.ReplaceTask, ledger.StageOperations)
			for range passes {
				w.pass()
			}
			over = w.snapshot.Ledger.Step.Stage == ledger.StageTickets
			for i, name := range three {
				if n := w.snapshot.Nodes[name]; unasked&(1<<i) != 0 {
					n.Agent, n.Asking = nil, true
				}
			}
			w.pass()
			for _, n := range w.snapshot.Nodes {
				n.Asking = false
			}
			if n := w.snapshot.Nodes[first]; n.Record.Spec.State != v1alpha1.StateStopped && n.Record.Spec.Join == nil {
				t.Errorf("after %d passes, and %b unasked, node %s starts again: %s", passes, unasked, first,
					ledgerInWords(w.snapshot.Ledger))
			}
		}
	}
}

// Nor is it a reason to replace a lost member before the others are repaired.
func TestAnOperatorThatStartsHasTheOthersRepairedBefore(t *testing.T) {
	for passes, over := 0, false; !over; passes++ {
		w := formed(t)
		w.work(constantly(v1alpha1.OperationSucceeded))
		lost, seen := w.running[w.snapshot.Nodes[first].Pod.UID], w.endpoints()[0]
		seen.Live = false
		w.strangers = append(w.strangers, seen)
		lost.Ring, lost.Process, lost.Phase = nil, facts.ProcessAbsent, v1alpha1.PhaseDataLost
		lost.Disk, w.snapshot.Nodes[first].Record.Status.Disk = v1alpha1.DiskEmpty, v1alpha1.DiskEmpty
		w.agents()
		w.settle()
		w.now = w.now.Add(time.Hour)
		for range passes {
			w.pass()
		}
		s := w.snapshot.Ledger.Step
		over = s != nil && s.Stage == ledger.StageTickets
		n := w.snapshot.Nodes[second]
		n.Agent, n.Asking = nil, true
		w.pass()
		n.Asking = false
		w.atStage(ledger.ReplaceNode, ledger.StageTickets)
		state, err := ledger.StateOf[replace.State](w.snapshot.Ledger.Step)
		if err != nil || state.Repair != v1alpha1.ReplacementRepairBefore {
			t.Errorf("after %d passes: %+v, %v", passes, state, err)
		}
	}
}
