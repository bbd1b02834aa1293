package temporary

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// then is the time that is restored, and created when the restore was.
var then, created = time.Date(2026, 11, 25, 14, 3, 10, 0, time.UTC), time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

// world is a restore and what is made for it, as an API server has them.
type world struct {
	*testing.T
	facts  *facts.PointRestore
	now    time.Time
	events []string
	// made and deleted are the kinds of objects, in their order; uids how many were given.
	made, deleted []string
	uids          int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ptr := func(q string) *resource.Quantity { v := resource.MustParse(q); return &v }
	cluster := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "c-1"}}
	cluster.Spec = v1alpha1.CassandraClusterSpec{Version: "5.0.9", Image: "example.com/cassandra:5.0.9", Paused: true,
		ClusterName: "Orders", Exceptions: []v1alpha1.Exception{{Name: "mine"}},
		ServiceAccount: &v1alpha1.Metadata{Annotations: map[string]string{"a-cloud/role": "backups"}},
		Node: &v1alpha1.NodeTemplate{NodeSettings: v1alpha1.NodeSettings{
			Resources: &v1alpha1.Resources{Limits: corev1.ResourceList{"memory": *ptr("32Gi")}},
			JVM:       &v1alpha1.JVM{Heap: ptr("16Gi"), Options: []string{"-Xss512k"}},
			Metadata:  &v1alpha1.Metadata{Labels: map[string]string{"app": "orders"}},
			Storage: &v1alpha1.Storage{Claims: &v1alpha1.StorageClaims{
				Data: &v1alpha1.VolumeClaim{Size: ptr("200Gi"), DataSource: &v1alpha1.DataSource{Name: "before"}},
				Additional: []v1alpha1.AdditionalVolume{{Name: "jars",
					VolumeClaim: v1alpha1.VolumeClaim{Selector: &metav1.LabelSelector{}}}},
			}}}},
		Datacenters: []v1alpha1.Datacenter{
			{Name: "amsterdam", NodesPerRack: 3, NumTokens: 16, Racks: []v1alpha1.Rack{
				{Name: "a", Node: &v1alpha1.NodeSettings{Placement: &v1alpha1.Placement{Zone: "z1",
					HostAntiAffinity: v1alpha1.HostAntiAffinityRequired}}},
				{Name: "b", RackName: "B"}}},
			{Name: "paris", DatacenterName: "Paris", NodesPerRack: 1, Stopped: true, RestartedAt: &metav1.Time{Time: then},
				Extend: &v1alpha1.Extend{From: "amsterdam"}, Withdraw: &v1alpha1.Withdraw{All: true},
				Node:  &v1alpha1.NodeTemplate{NodeSettings: v1alpha1.NodeSettings{JVM: &v1alpha1.JVM{Heap: ptr("8Gi")}}},
				Racks: []v1alpha1.Rack{{Name: "a", RestartedAt: &metav1.Time{Time: then}}}}},
	}
	restore := &v1alpha1.CassandraRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-of-noon",
		UID: "r-1", ResourceVersion: "1", Generation: 1, CreationTimestamp: metav1.NewTime(created)},
		Spec: v1alpha1.CassandraRestoreSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"},
			Store: v1alpha1.BackupStoreReference{Name: "main"}, PointInTime: &metav1.Time{Time: then},
			Tables: []v1alpha1.RestoredTable{{From: "shop.orders", To: "old.orders"}, {From: "people.carts"},
				{From: "shop.items"}},
			Mode: v1alpha1.RestoreMerge, Deadline: &metav1.Duration{Duration: 2 * time.Hour}}}
	return &world{T: t, now: created,
		facts: &facts.PointRestore{Object: restore, Store: true, Cluster: cluster}}
}

// pass makes one after a while, in which the API server takes every write; statusLost ends it
// before the status is written, as a crash does.
func (w *world) pass(statusLost ...bool) *v1alpha1.CassandraRestoreStatus {
	w.Helper()
	w.now = w.now.Add(time.Minute)
	for _, write := range Next(w.facts, w.now).Writes {
		switch write.Verb {
		case plan.Create:
			w.uids++
			write.Object.SetUID(types.UID(rune('a' + w.uids)))
			w.made = append(w.made, plan.KindOf(write.Object))
			switch o := write.Object.(type) {
			case *v1alpha1.CassandraCluster:
				if w.facts.Ring != nil || !write.Live {
					w.Errorf("made while %v is there, confirmed: %v", w.facts.Ring, write.Live)
				}
				w.facts.Ring = o
			case *v1alpha1.CassandraBackup:
				if w.facts.Backup != nil || !write.Live {
					w.Errorf("made while %v is there, confirmed: %v", w.facts.Backup, write.Live)
				}
				w.facts.Backup = o
			}
		case plan.ApplyStatus:
			if len(statusLost) > 0 {
				return &w.facts.Object.Status
			}
			if write.ResourceVersion != w.facts.Object.ResourceVersion {
				w.Errorf("%s of version %q", write, write.ResourceVersion)
			}
			w.facts.Object.Status = write.Object.(*v1alpha1.CassandraRestore).Status
		case plan.Delete:
			w.deleted = append(w.deleted, plan.KindOf(write.Object))
			if _, is := write.Object.(*v1alpha1.CassandraBackup); is {
				w.facts.Backup.DeletionTimestamp = &metav1.Time{Time: w.now} // its finalizer holds it
			} else {
				w.facts.Ring.DeletionTimestamp = &metav1.Time{Time: w.now}
			}
		case plan.Event:
			w.events = append(w.events, write.Reason)
		default:
			w.Errorf("unknown write %s", write)
		}
	}
	return &w.facts.Object.Status
}

// says has the ring say something of itself.
func (w *world) says(kind string, status metav1.ConditionStatus, message string) {
	w.facts.Ring.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Message: message,
		ObservedGeneration: w.facts.Ring.Generation}}
}

// backsUp has the ring serve, and its backup begin.
func (w *world) backsUp() {
	w.Helper()
	w.pass()
	w.says(v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	w.pass()
	if w.facts.Backup == nil {
		w.Fatalf("no backup is made: %+v", w.facts.Object.Status)
	}
	w.facts.Backup.Status = v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupUploading, Progress: "1/3",
		Message: "a node uploads", ClusterUID: w.facts.Ring.UID, ID: "20261126T091500Z-5e6f7a8b"}
}

func (w *world) want(what string, got, want []string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("%s: %q, want %q", what, got, want)
	}
}

// What is done for a restore that succeeds, from the first pass to the last. Each pass may lose the
// status that it has written: the next one comes to the same.
func TestRowsOfATime(t *testing.T) {
	for name, lost := range map[string][]bool{"": nil, "each status is lost once": {true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pass := func(phase v1alpha1.TaskPhase, progress, message string) *v1alpha1.CassandraRestoreStatus {
				t.Helper()
				if lost != nil {
					w.pass(lost...)
				}
				s := w.pass()
				if s.Phase != phase || s.Progress != progress || !strings.Contains(s.Message, message) ||
					s.ObservedGeneration != 1 || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReconciling) {
					t.Errorf("%q %q %q, want %q %q %q: %+v", s.Phase, s.Progress, s.Message, phase, progress, message,
						s.Conditions)
				}
				return s
			}
			pass(v1alpha1.TaskPending, w.counted(lost),
				"makes CassandraCluster orders-of-noon-then as it was at 2026-11-25T14:03:10Z")
			w.says(v1alpha1.ConditionReconciling, metav1.ConditionTrue, "FormRing: 2 of 3 have joined")
			w.facts.Ring.Status.Nodes, w.facts.Ring.Status.ReadyNodes = 3, 2
			pass(v1alpha1.TaskPending, "2/3", "at 2026-11-25T14:03:10Z: FormRing: 2 of 3 have joined")
			w.says(v1alpha1.ConditionReady, metav1.ConditionTrue, "")
			w.facts.Ring.Generation = 2 // it serves as it was before a change
			pass(v1alpha1.TaskPending, "2/3", "makes CassandraCluster")
			w.says(v1alpha1.ConditionReady, metav1.ConditionTrue, "")
			pass(v1alpha1.TaskPending, "", "backs up CassandraCluster orders-of-noon-then")
			b, yes := w.facts.Backup, true
			if !slices.Equal(b.Spec.Keyspaces, []string{"people", "shop"}) || b.Spec.DeletionPolicy != v1alpha1.BackupDelete ||
				!slices.Equal(b.Finalizers, []string{v1alpha1.FinalizerBackup}) || b.Spec.Store.Name != "main" ||
				b.Spec.Cluster.Name != w.facts.Ring.Name || b.Spec.Deadline.Duration != 2*time.Hour ||
				b.OwnerReferences[0] != (metav1.OwnerReference{APIVersion: "helenus.io/v1alpha1",
					Kind: "CassandraRestore", Name: "orders-of-noon", UID: "r-1", Controller: b.OwnerReferences[0].Controller}) ||
				*b.OwnerReferences[0].Controller != yes {
				t.Errorf("the backup is %+v", b)
			}
			b.Status = v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupUploading, Progress: "1/3",
				Message: "a node uploads", ClusterUID: w.facts.Ring.UID, ID: "20261126T091500Z-5e6f7a8b"}
			pass(v1alpha1.TaskPending, "1/3", "a node uploads")
			b.Status.Phase = v1alpha1.BackupComplete
			s := pass(v1alpha1.TaskPending, "", "waits for its turn")
			of, id := w.facts.Object.From("c-1")
			if s.Source == nil || of != w.facts.Ring.UID || id != b.Status.ID {
				t.Errorf("the source is %+v: %s, %s", s.Source, of, id)
			}
			w.want("deleted", w.deleted, nil)
			w.pass() // the ring is of no use any more
			w.want("deleted", w.deleted, []string{"CassandraCluster"})
			w.facts.Ring = nil
			s.Phase = v1alpha1.TaskRunning
			before := *s
			if after := w.pass(); after.Phase != before.Phase || after.Message != before.Message {
				t.Errorf("the status is the cluster's by now: %+v", after)
			}
			s.Phase = v1alpha1.TaskSucceeded
			w.pass()
			w.pass()
			w.want("deleted", w.deleted, []string{"CassandraCluster", "CassandraBackup"})
			w.want("made", w.made, []string{"CassandraCluster", "CassandraBackup"})
			if lost == nil { // an event that was lost with its status is not told later
				w.want("events", w.events, []string{v1alpha1.EventRestorePreparing, v1alpha1.EventRestorePrepared})
			}
		})
	}
}

// counted is the progress of a pass after one whose status was lost: it finds the ring.
func (*world) counted(lost []bool) string {
	if lost == nil {
		return ""
	}
	return "0/0"
}

// The ring has the shape of the cluster, by short names; no client finds it; and it has as little
// as the restore says.
func TestTheRingOfATime(t *testing.T) {
	w := newWorld(t)
	w.facts.Object.Spec.Source = &v1alpha1.RestoreSource{UID: "elsewhere"}
	w.facts.Object.Spec.Temporary = &v1alpha1.TemporaryRing{Resources: &v1alpha1.Resources{
		Limits: corev1.ResourceList{"memory": resource.MustParse("2Gi")}}}
	before := w.facts.Cluster.DeepCopy()
	w.pass()
	spec := w.facts.Ring.Spec
	east, west, node := spec.Datacenters[0], spec.Datacenters[1], spec.Node
	claims, from := node.Storage.Claims, spec.Restore()
	for what, ok := range map[string]bool{
		"release": spec.Version == "5.0.9" && spec.Image == before.Spec.Image,
		"source": from.Source.UID == "elsewhere" && from.PointInTime.Time.Equal(then) && from.Backup == "" &&
			from.Store.Name == "main" && from.Roles == v1alpha1.RolesFresh && !from.SourceGone &&
			slices.Equal(from.Keyspaces, []string{"people", "shop"}),
		"names": w.facts.Ring.Name == "orders-of-noon-then" && spec.ClusterName == "" &&
			east.Name == "d1" && east.DatacenterName == "amsterdam" && west.Name == "d2" &&
			west.DatacenterName == "Paris" &&
			east.Racks[0].Name == "r1" && east.Racks[0].RackName == "a" && east.Racks[1].Name == "r2" &&
			east.Racks[1].RackName == "B" && west.Racks[0].Name == "r1" && west.Racks[0].RackName == "a",
		"shape": east.NodesPerRack == 3 && east.NumTokens == 16 && west.NodesPerRack == 1 && len(east.Racks) == 2,
		"no orders": !spec.Paused && !west.Stopped && west.Extend == nil && west.Withdraw == nil && west.RestartedAt == nil &&
			west.Racks[0].RestartedAt == nil && len(spec.Exceptions) == 0,
		"hosts": node.Placement.HostAntiAffinity == v1alpha1.HostAntiAffinityNone &&
			east.Racks[0].Node.Placement.HostAntiAffinity == "" && east.Racks[0].Node.Placement.Zone == "z1",
		"no clients": spec.Security.NetworkPolicy.Mode == v1alpha1.NetworkPolicyManaged &&
			spec.Security.NetworkPolicy.Clients != nil && len(spec.Security.NetworkPolicy.Clients) == 0 &&
			len(node.Metadata.Labels) == 0,
		"temporary": spec.Repair.Mode == v1alpha1.RepairOff && spec.Volumes.OnClusterDeletion == v1alpha1.ClaimDelete,
		"volumes": claims.Data.Size.String() == "200Gi" && claims.Data.DataSource == nil &&
			claims.Additional[0].Selector == nil,
		"resources": node.Resources.Limits.Memory().String() == "2Gi" && node.JVM.Heap == nil &&
			west.Node.JVM.Heap == nil && node.JVM.Options[0] == "-Xss512k",
		"the account of stores without a key": spec.ServiceAccount.Annotations["a-cloud/role"] == "backups",
		"labels":                              w.facts.Ring.Labels[v1alpha1.LabelRestoreUID] == "r-1",
		"its owner":                           metav1.IsControlledBy(w.facts.Ring, w.facts.Object),
		"the cluster stays as it is": before.Spec.Datacenters[1].Stopped ==
			w.facts.Cluster.Spec.Datacenters[1].Stopped,
	} {
		if !ok {
			t.Errorf("%s: %+v", what, spec)
		}
	}
	w = newWorld(t)
	w.facts.Cluster.Spec.Node = nil
	w.pass()
	if w.facts.Ring.Spec.Node.Placement.HostAntiAffinity != v1alpha1.HostAntiAffinityNone {
		t.Errorf("without a template: %+v", w.facts.Ring.Spec.Node)
	}
}

// What cannot be prepared ends with a message, and what was made goes, but nothing of others.
func TestNoRowsOfATime(t *testing.T) {
	foreign := metav1.ObjectMeta{Namespace: "shop", Name: "orders-of-noon-then", UID: "theirs"}
	for name, c := range map[string]struct {
		do           func(*world)
		reason, says string
		deleted      []string
	}{
		"the time is not covered": {func(w *world) {
			w.pass()
			w.says(v1alpha1.ConditionStalled, metav1.ConditionTrue, "commit logs cover 12:00 to 13:00")
		}, v1alpha1.ReasonNotPrepared, "as it was at 2026-11-25T14:03:10Z: commit logs cover 12:00 to 13:00",
			[]string{"CassandraCluster"}},
		"the ring takes too long": {func(w *world) {
			w.pass()
			w.says(v1alpha1.ConditionReconciling, metav1.ConditionTrue, "no room")
			w.pass()
			w.now = created.Add(2 * time.Hour)
		}, v1alpha1.ReasonTaskDeadlineExceeded, "not prepared before the deadline: makes CassandraCluster " +
			"orders-of-noon-then as it was at 2026-11-25T14:03:10Z: no room", []string{"CassandraCluster"}},
		"the backup takes too long": {func(w *world) {
			w.backsUp()
			w.pass()
			w.now = created.Add(2 * time.Hour)
		}, v1alpha1.ReasonTaskDeadlineExceeded, "a node uploads", []string{"CassandraBackup", "CassandraCluster"}},
		"the backup fails": {func(w *world) {
			w.backsUp()
			w.facts.Backup.Status.Phase, w.facts.Backup.Status.Message = v1alpha1.BackupIncomplete, "a volume is full"
		}, v1alpha1.ReasonNotPrepared, "Incomplete: a volume is full", []string{"CassandraBackup", "CassandraCluster"}},
		"the backup is of another cluster of the name": {func(w *world) {
			w.backsUp()
			w.facts.Backup.Status.Phase, w.facts.Backup.Status.ClusterUID = v1alpha1.BackupComplete, "another"
		}, v1alpha1.ReasonNotPrepared, `of the cluster with uid "another" is Complete`,
			[]string{"CassandraBackup", "CassandraCluster"}},
		"a cluster has the name": {func(w *world) { w.facts.Ring = &v1alpha1.CassandraCluster{ObjectMeta: foreign} },
			v1alpha1.ReasonTaskInvalidTarget,
			"CassandraCluster orders-of-noon-then exists, and is not of this restore", nil},
		"a backup has the name": {func(w *world) { w.facts.Backup = &v1alpha1.CassandraBackup{ObjectMeta: foreign} },
			v1alpha1.ReasonTaskInvalidTarget, "CassandraBackup orders-of-noon-then exists", nil},
		"there is no store": {func(w *world) {
			w.facts.Store = false
			w.now = w.now.Add(time.Minute)
		}, v1alpha1.ReasonTaskInvalidTarget, "there is no CassandraBackupStore main", nil},
		"there is no cluster": {func(w *world) {
			w.facts.Cluster = nil
			w.pass()
			w.now = created.Add(2 * time.Hour)
		}, v1alpha1.ReasonTaskDeadlineExceeded, "there is no CassandraCluster orders", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.do(w)
			w.events = nil
			s := w.pass()
			failed := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionFailed)
			if s.Phase != v1alpha1.TaskFailed || s.FinishedAt == nil || failed == nil || failed.Reason != c.reason ||
				!strings.HasPrefix(s.Message, "no row has come back: ") || !strings.Contains(s.Message, c.says) ||
				len(s.Conditions) != 2 || s.Source != nil {
				t.Errorf("status %+v", s)
			}
			w.want("events", w.events, []string{"RestoreFailed"})
			w.pass()
			w.pass()
			w.want("deleted", w.deleted, c.deleted)
		})
	}
}

// What a user deletes is recreated, with a backup of its own; what goes is waited for, and so is a
// store that is applied with the restore.
func TestWhatIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		do      func(*world)
		says    string
		then    func(*world)
		made    []string
		deleted []string
	}{
		"the ring is deleted": {func(w *world) {
			w.pass()
			w.facts.Ring.DeletionTimestamp = &metav1.Time{Time: w.now}
		}, "waits until CassandraCluster orders-of-noon-then is deleted", func(w *world) { w.facts.Ring = nil },
			[]string{"CassandraCluster", "CassandraCluster"}, nil},
		"the ring is gone while it is backed up": {func(w *world) {
			w.backsUp()
			w.facts.Ring = nil
		}, "was deleted, and is recreated", func(w *world) { w.facts.Backup = nil },
			[]string{"CassandraCluster", "CassandraBackup", "CassandraCluster"}, []string{"CassandraBackup"}},
		"another ring is there than is backed up": {func(w *world) {
			w.backsUp()
			w.facts.Ring.UID = "again"
			w.facts.Ring.Status.Conditions = nil
		}, "was deleted, and is recreated", func(w *world) { w.facts.Backup = nil },
			[]string{"CassandraCluster", "CassandraBackup"}, []string{"CassandraBackup"}},
		"the backup is deleted": {func(w *world) {
			w.backsUp()
			w.facts.Backup.DeletionTimestamp = &metav1.Time{Time: w.now}
			w.facts.Backup.Status.Phase = v1alpha1.BackupComplete
		}, "waits until CassandraBackup orders-of-noon-then is deleted", func(w *world) { w.facts.Backup = nil },
			[]string{"CassandraCluster", "CassandraBackup", "CassandraBackup"}, nil},
		"the ring of an earlier restore of the name": {func(w *world) {
			w.facts.Ring = &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Name: "orders-of-noon-then",
				Labels: map[string]string{v1alpha1.LabelRestoreUID: "r-0"}}}
		}, "waits until CassandraCluster orders-of-noon-then is deleted", func(w *world) { w.facts.Ring = nil },
			[]string{"CassandraCluster"}, nil},
		"a store that is still to be made": {func(w *world) {
			w.facts.Store = false
			w.now = w.now.Add(-time.Minute)
		}, "there is no CassandraBackupStore main", func(w *world) { w.facts.Store = true },
			[]string{"CassandraCluster"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.do(w)
			if s := w.pass(); s.Phase != v1alpha1.TaskPending || !strings.Contains(s.Message, c.says) {
				t.Errorf("status %+v", s)
			}
			c.then(w)
			w.pass()
			w.want("made", w.made, c.made)
			w.want("deleted", w.deleted, c.deleted)
		})
	}
}

// A backup that is complete is enough: the ring may be gone by then.
func TestTheRingIsGoneAfterItsBackup(t *testing.T) {
	w := newWorld(t)
	w.backsUp()
	w.facts.Ring, w.facts.Backup.Status.Phase = nil, v1alpha1.BackupComplete
	w.now = created.Add(3 * time.Hour)
	if s := w.pass(); s.Source == nil || s.Phase != v1alpha1.TaskPending {
		t.Errorf("status %+v", s)
	}
}

// A restore from a backup, and one that is deleted, have nothing made or deleted for them.
func TestNothingIsDone(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.CassandraRestore){
		"from a backup": func(r *v1alpha1.CassandraRestore) { r.Spec.PointInTime, r.Spec.Backup = nil, "b-1" },
		"deleted":       func(r *v1alpha1.CassandraRestore) { r.DeletionTimestamp = &metav1.Time{Time: created} },
	} {
		w := newWorld(t)
		change(w.facts.Object)
		if p := Next(w.facts, w.now); len(p.Writes) > 0 || p.Wake != 0 {
			t.Errorf("%s: %s", name, p)
		}
	}
}
