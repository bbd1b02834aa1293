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
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// backUp has a user create a backup, and nodes run its operations, all but those that fail. It
// keeps which were begun.
func (w *world) backUp(name string, fails func(node string, o v1alpha1.OperationType) v1alpha1.OperationPhase) *[]string {
	begun := &[]string{}
	w.snapshot.Stores = map[string]*v1alpha1.BackupStoreSpec{"main": {S3: &v1alpha1.S3Store{Bucket: "backups",
		SecretName: "keys"}}}
	w.snapshot.Backups = append(w.snapshot.Backups, &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "shop", UID: w.uid("backup-of-orders"), ResourceVersion: w.version(), Generation: 1,
		CreationTimestamp: metav1.NewTime(w.now)},
		Spec: v1alpha1.CassandraBackupSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"},
			Store: v1alpha1.BackupStoreReference{Name: "main"}, BackupTemplate: v1alpha1.BackupTemplate{
				Keyspaces: []string{"shop"}, Deadline: &metav1.Duration{Duration: time.Hour}}}})
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		all, at := slices.Clone(n.Record.Status.Operations), metav1.NewTime(w.now)
		if i := slices.IndexFunc(all, func(s v1alpha1.OperationStatus) bool { return s.ID == o.ID }); i >= 0 {
			if o.Withdraw != nil && o.Withdraw.Cancel && !all[i].Phase.Final() {
				all[i].Phase, all[i].FinishedAt = v1alpha1.OperationCancelled, &at
			}
			return all
		}
		if o.Withdraw != nil {
			return append(all, v1alpha1.OperationStatus{ID: o.ID, Phase: v1alpha1.OperationWithdrawn, FinishedAt: &at})
		}
		phase := fails(n.Name, o.Type)
		if phase == "" {
			return all
		}
		*begun = append(*begun, string(o.Type)+" "+strings.TrimPrefix(n.Name, "orders-dc1-"))
		s := v1alpha1.OperationStatus{ID: o.ID, Phase: phase, StartedAt: &at, Message: "it is " + string(phase)}
		if phase.Final() {
			s.FinishedAt = &at
		}
		if o.Type == v1alpha1.OperationUpload && phase == v1alpha1.OperationSucceeded {
			taken := metav1.NewMicroTime(w.now)
			s.Uploaded = &v1alpha1.Uploaded{Member: hostID(n.Name), TakenAt: &taken, Files: 2, Bytes: 10, NewBytes: 1}
		}
		if o.Type == v1alpha1.OperationCompleteBackup && len(o.Arguments.Backup.Members) != 3 {
			w.t.Errorf("described by %+v", o.Arguments.Backup)
		}
		return append(all, s)
	}
	return begun
}

func succeeds(string, v1alpha1.OperationType) v1alpha1.OperationPhase {
	return v1alpha1.OperationSucceeded
}

// wantBackupSoFar is wantBackup while what nodes were asked for may not be over.
func (w *world) wantBackupSoFar(want string) *v1alpha1.CassandraBackup {
	w.t.Helper()
	b := w.snapshot.Backups[0]
	if got := fmt.Sprintf("%s %s %s", b.Status.Phase, b.Status.Progress, b.Status.Message); !strings.HasPrefix(got, want) {
		w.t.Errorf("the backup is %q, not %q", got, want)
	}
	return b
}

func (w *world) wantBackup(want string) *v1alpha1.CassandraBackup {
	w.t.Helper()
	b := w.wantBackupSoFar(want)
	for _, name := range three {
		if left := w.snapshot.Nodes[name].Record.Spec.Operations; b.Status.Phase.Final() && len(left) > 0 {
			w.t.Errorf("node %s keeps %+v", name, left)
		}
	}
	return b
}

// stages are the types of operations that were begun, each once for so many in a row.
func stages(begun []string) string {
	var out []string
	for _, b := range begun {
		kind, _, _ := strings.Cut(b, " ")
		if n := len(out); n == 0 || out[n-1] != kind {
			out = append(out, kind)
		}
	}
	return strings.Join(out, " ")
}

// A store that is reached by the service account of the agents has no Secret that they may read.
func TestABackupByServiceAccount(t *testing.T) {
	w := formed(t)
	begun := w.backUp("nightly", succeeds)
	w.snapshot.Stores["main"].S3 = &v1alpha1.S3Store{Bucket: "backups", ServiceAccount: true}
	w.pass()
	if role := w.snapshot.Shared.Roles["orders-helenus-agent"]; strings.Contains(fmt.Sprint(role.Rules), "secrets") {
		t.Errorf("agents may %+v", role.Rules)
	}
	w.settle()
	w.wantBackup("Complete 3/3 kept on 3 nodes")
	if len(*begun) != 10 {
		t.Errorf("begun %q", *begun)
	}
}

// Every member takes a snapshot and uploads it; the description comes after all of that, and the
// snapshots are cleared. The Secret of the store is the agents' for that time.
func TestABackup(t *testing.T) {
	w := formed(t)
	begun := w.backUp("nightly", succeeds)
	w.pass()
	if role := w.snapshot.Shared.Roles["orders-helenus-agent"]; role == nil ||
		!strings.Contains(fmt.Sprint(role.Rules), "keys") {
		t.Errorf("agents may %+v", w.snapshot.Shared.Roles)
	}
	w.settle()
	b := w.wantBackup("Complete 3/3 kept on 3 nodes")
	if got := stages(*begun); got != "Snapshot Upload CompleteBackup ClearSnapshot" || len(*begun) != 10 {
		t.Errorf("begun %q", *begun)
	}
	if s := b.Status; s.Bytes != 30 || s.NewBytes != 3 || s.Skew == nil || s.ID != b.BackupID() || len(s.Nodes) != 3 ||
		s.Nodes[0].Files != 2 || !slices.Contains(w.events, "BackupStarted") ||
		!slices.Contains(w.events, "BackupSucceeded") {
		t.Errorf("status %+v, events %q", s, w.events)
	}
	if role := w.snapshot.Shared.Roles["orders-helenus-agent"]; strings.Contains(fmt.Sprint(role.Rules), "keys") {
		t.Errorf("agents may still %+v", role.Rules)
	}
	if l := w.snapshot.Ledger; len(l.Maintenance) > 0 {
		t.Errorf("open: %s", ledgerInWords(l))
	}
	b = w.snapshot.Backups[0]
	b.Status.Verified = &v1alpha1.BackupVerified{DamagedFiles: 7}
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionVerified})
	w.pass()
	if s := w.snapshot.Backups[0].Status; s.Verified == nil || s.Verified.DamagedFiles != 7 || len(s.Conditions) != 2 {
		t.Errorf("what was verified is lost: %+v", s)
	}
}

// All members take their snapshots at once, and no more of them upload at once than may.
func TestABackupOfSomeNodesAtOnce(t *testing.T) {
	for most, want := range map[string]int{"1": 1, "50%": 2, "100%": 3, "1%": 1, "9": 3} {
		w, at := formed(t), map[v1alpha1.OperationType]int{}
		w.backUp("nightly", succeeds)
		parsed := intstr.Parse(most)
		w.snapshot.Backups[0].Spec.Limits = &v1alpha1.BackupLimits{NodesAtOnce: &parsed}
		operate := w.operate
		w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
			running := 0
			for _, other := range w.snapshot.Nodes {
				for _, asked := range other.Record.Spec.Operations {
					if s := other.Record.Status.Operation(asked.ID); asked.Type == o.Type && (s == nil || !s.Phase.Final()) {
						running++
					}
				}
			}
			at[o.Type] = max(at[o.Type], running)
			return operate(n, o)
		}
		w.settle()
		w.wantBackup("Complete 3/3 kept on 3 nodes")
		if got := at[v1alpha1.OperationUpload]; got != want || at[v1alpha1.OperationSnapshot] != 3 {
			t.Errorf("%s: %v at once, not %d", most, at, want)
		}
	}
}

// An operator that has just started has heard of no node, and waits for them to clear their
// snapshots.
func TestSnapshotsAreClearedByTheNextOperator(t *testing.T) {
	w := formed(t)
	begun := w.backUp("nightly", succeeds)
	for w.snapshot.Backups[0].Status.Phase != v1alpha1.BackupComplete {
		w.pass()
	}
	for range 3 {
		for _, name := range three {
			w.snapshot.Nodes[name].Agent = nil
		}
		w.pass()
	}
	w.settle()
	if got := stages(*begun); !strings.HasSuffix(got, "ClearSnapshot") || len(*begun) != 10 {
		t.Errorf("begun %q", *begun)
	}
	w.wantBackup("Complete 3/3")
}

// Without the upload of one node there is no description.
func TestABackupWithoutOneNode(t *testing.T) {
	w := formed(t)
	begun := w.backUp("nightly", func(node string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		if node == three[1] && o == v1alpha1.OperationUpload {
			return v1alpha1.OperationFailed
		}
		return v1alpha1.OperationSucceeded
	})
	for range 120 {
		w.now = w.now.Add(30 * time.Second)
		w.pass()
	}
	w.wantBackup("Incomplete 3/3 failed on orders-dc1-r2-0: it ")
	if got := stages(*begun); strings.Contains(got, "CompleteBackup") || !strings.HasSuffix(got, "ClearSnapshot") {
		t.Errorf("begun %q", got)
	}
}

// Snapshots that were taken while the schema changed are taken again.
func TestABackupOfOneSchema(t *testing.T) {
	w, changed := formed(t), false
	begun := w.backUp("nightly", func(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		if o == v1alpha1.OperationSnapshot && !changed {
			changed = true
			for _, a := range w.running {
				a.Ring.SchemaVersion = "altered"
			}
		}
		return v1alpha1.OperationSucceeded
	})
	w.settle()
	w.wantBackup("Complete 3/3")
	if len(*begun) != 13 || stages(*begun) != "Snapshot Upload CompleteBackup ClearSnapshot" {
		t.Errorf("begun %q", *begun)
	}
}

// A schema that was seen before a snapshot was taken, even in the same second, says nothing of it.
func TestASchemaIsSeenAfterTheSnapshot(t *testing.T) {
	w := formed(t)
	w.sees = func(n *facts.Node) bool { return n.Name != three[1] }
	begun := w.backUp("nightly", succeeds)
	w.settle()
	w.wantBackup("Snapshotting")
	w.sees = nil
	w.agents()
	w.settle()
	w.wantBackup("Complete 3/3")
	if len(*begun) != 10 {
		t.Errorf("begun %q", *begun)
	}
}

// A member that is down holds it back until its deadline, and other tasks go on meanwhile.
func TestABackupWaitsForEveryMember(t *testing.T) {
	w := formed(t)
	w.absent[three[0]] = true
	w.agents()
	begun := w.backUp("nightly", succeeds)
	flush := w.give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush, Nodes: []string{three[1]}})
	w.settle()
	w.wantBackup("Pending 0/3 node orders-dc1-r1-0 is not up")
	w.wantTask(flush, "Succeeded 1/1")
	w.now = w.now.Add(time.Hour)
	w.settle()
	w.wantBackup("Failed 3/3 failed on orders-dc1-r1-0: it has not ended before the deadline: it is down")
	if len(*begun) != 1 {
		t.Errorf("begun %q", *begun)
	}
}

// A member that is down for long is left out, if the others have a quorum of each range of what is
// backed up; else the backup waits, and says why.
func TestABackupLeavesOutAMember(t *testing.T) {
	const rf3, rf2, rf1 = "NetworkTopologyStrategy {dc1=3}", "NetworkTopologyStrategy {dc1=2}",
		"SimpleStrategy {replication_factor=1}"
	for name, c := range map[string]struct {
		keyspaces map[string]string
		down      []string
		minutes   int
		repair    v1alpha1.RepairReason // that is due for another node
		want      string
	}{
		"one of three replicas": {map[string]string{"shop": rf3, "other": rf1}, three[:1], 10, "",
			"Complete 2/3 kept on 2 nodes; without orders-dc1-r1-0: others have a quorum of each range"},
		"it is down for a while": {map[string]string{"shop": rf3}, three[:1], 9, "",
			"Pending 0/3 node orders-dc1-r1-0 is not up: its pod is starting; a backup, and a restore, is of all " +
				"members; it is left out once it is down for 10m0s, if others have a quorum of each range"},
		"one of two": {map[string]string{"shop": rf3, "system_auth": rf2}, three[:1], 10, "",
			"Pending 0/3 node orders-dc1-r1-0 is not up: its pod is starting; a backup, and a restore, is of all " +
				"members; it is not left out: range "},
		"the only one": {map[string]string{"shop": rf1}, three[:1], 10, "",
			"Pending 0/3 node orders-dc1-r1-0 is not up"},
		"two of three": {map[string]string{"shop": rf3}, three[:2], 10, "",
			"Pending 0/3 node orders-dc1-r1-0 is not up"},
		"another one has lost writes": {map[string]string{"shop": rf3}, three[:1], 10, v1alpha1.RepairReplaced,
			"Pending 0/3 node orders-dc1-r1-0 is not up"},
		"another one has missed writes": {map[string]string{"shop": rf3}, three[:1], 10,
			v1alpha1.RepairAwayLongerThanHintWindow, "Complete 2/3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(c.keyspaces)
			for _, name := range c.down {
				w.downSince(name, w.now.Add(-time.Duration(c.minutes)*time.Minute))
			}
			if c.repair != "" {
				w.snapshot.Ledger.RepairDue = []ledger.RepairDue{{Node: three[2], Since: w.now, Reason: c.repair}}
			}
			begun := w.backUp("nightly", succeeds)
			w.settle()
			if c.minutes == 10 {
				w.now = w.now.Add(time.Minute) // those that are down are waited for to clear snapshots
				w.settle()
			}
			b := w.wantBackup(c.want)
			if b.Status.Phase != v1alpha1.BackupComplete {
				most := "1 may be left out (RF - quorum)"
				if c.keyspaces["shop"] == rf1 || c.keyspaces["system_auth"] == rf2 {
					most = "0 may be left out (RF - quorum)"
				}
				if len(*begun) > 0 || c.minutes == 10 && !strings.Contains(b.Status.Message, most) {
					t.Errorf("begun %q: %s", *begun, b.Status.Message)
				}
				return
			}
			n := b.Status.Nodes[0]
			if got := stages(*begun); got != "Snapshot Upload CompleteBackup ClearSnapshot" || len(*begun) != 7 ||
				n.Phase != v1alpha1.TaskLeftOut || !strings.HasPrefix(n.Message, "it is down") ||
				*b.Status.Restorable != (v1alpha1.Restorable{Ranges: "100%"}) {
				t.Errorf("begun %q, node %+v, %+v", *begun, n, b.Status.Restorable)
			}
			if l := w.snapshot.Ledger; len(l.Maintenance) > 0 {
				t.Errorf("open: %s", ledgerInWords(l))
			}
		})
	}
}

// A member that is back while the others take their snapshots is part of the backup.
func TestALeftOutMemberComesBack(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.downSince(three[0], w.now.Add(-time.Hour))
	w.sees = func(n *facts.Node) bool { return n.Name != three[1] }
	w.backUp("nightly", succeeds)
	w.settle()
	if b := w.wantBackup("Snapshotting"); b.Status.Nodes[0].Phase != v1alpha1.TaskLeftOut {
		t.Errorf("%+v", b.Status.Nodes)
	}
	delete(w.absent, three[0])
	delete(w.dead, three[0])
	w.sees = nil
	w.agents()
	w.settle()
	if b := w.wantBackup("Complete 3/3"); !b.Status.Restorable.SameShape {
		t.Errorf("%+v", b.Status.Restorable)
	}
}

// A member that is lost while it uploads is left out once all others are done, and keeps no step
// open. One that the others cannot do without is waited for.
func TestABackupLeavesOutAMemberThatIsLostMeanwhile(t *testing.T) {
	w, begun := uploads(t, nil)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.downSince(three[1], w.now)
	w.now = w.now.Add(20 * time.Minute)
	w.settle()
	w.wantBackup("Uploading 0/3")
	w.uploaded(three[0], three[2])
	operate := w.operate
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		if a := o.Arguments.Backup; o.Type == v1alpha1.OperationCompleteBackup && (len(a.Members) != 3 ||
			!reflect.DeepEqual(a.LeftOut, []v1alpha1.LeftOutNode{{Node: three[1], HostID: hostID(three[1])}})) {
			t.Errorf("described by %+v", a)
		}
		return operate(n, o)
	}
	w.settle()
	w.now = w.now.Add(10 * time.Minute)
	w.settle()
	b := w.snapshot.Backups[0]
	if n := b.Status.Nodes[1]; b.Status.Phase != v1alpha1.BackupComplete || n.Phase != v1alpha1.TaskLeftOut ||
		b.Status.Restorable.SameShape || len(w.snapshot.Ledger.Maintenance) > 0 {
		t.Errorf("%+v beside %s, begun %q", b.Status, ledgerInWords(w.snapshot.Ledger), *begun)
	}
	w, _ = uploads(t, map[string]bool{three[0]: true, three[2]: true})
	w.replicated(map[string]string{"shop": "SimpleStrategy {replication_factor=2}"})
	w.downSince(three[1], w.now.Add(-time.Hour))
	w.settle()
	w.wantBackup("Uploading 2/3 orders-dc1-r2-0: it is Running")
}

// One that is deleted is cancelled, and leaves no snapshot.
func TestABackupIsDeleted(t *testing.T) {
	w := formed(t)
	begun := w.backUp("nightly", func(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		if o == v1alpha1.OperationUpload {
			return v1alpha1.OperationRunning
		}
		return v1alpha1.OperationSucceeded
	})
	w.settle()
	w.wantBackup("Uploading 0/3")
	w.snapshot.Backups = nil
	w.settle()
	if got := stages(*begun); got != "Snapshot Upload ClearSnapshot" || len(w.snapshot.Ledger.Maintenance) > 0 {
		t.Errorf("begun %q of %s", got, ledgerInWords(w.snapshot.Ledger))
	}
}

func TestABackupWithoutStore(t *testing.T) {
	w := formed(t)
	w.backUp("nightly", succeeds)
	w.snapshot.Backups[0].CreationTimestamp = metav1.NewTime(w.now.Add(-time.Hour)) // by a clock that is behind
	main := w.snapshot.Stores
	w.snapshot.Stores = nil
	w.settle()
	w.wantBackup("Pending  there is no CassandraBackupStore main")
	w.snapshot.Stores = main
	w.settle()
	w.wantBackup("Complete")
	w.backUp("again", succeeds)
	w.snapshot.Backups, w.snapshot.Stores = w.snapshot.Backups[1:], nil
	w.settle()
	w.wantBackup("Pending  there is no CassandraBackupStore main")
	w.now = w.now.Add(time.Minute)
	w.settle()
	w.wantBackup("Failed  there is no CassandraBackupStore main")
}

// filled has the data volume of a node become so many hundredths full.
func (w *world) filled(name string, percent int64) {
	for _, a := range w.running {
		if a.Node == name {
			a.Space = &facts.Space{Capacity: 100 << 30, Free: (100 - percent) << 30}
		}
	}
	w.agents()
}

// No snapshot is taken while the volume of a member is more than 90 % full, or unknown.
func TestNoSnapshotIsTakenOnAFullVolume(t *testing.T) {
	w := formed(t)
	w.filled(three[1], 91)
	begun := w.backUp("nightly", succeeds)
	made := w.settle()
	w.wantBackup("Pending 0/3 node orders-dc1-r2-0 takes no snapshot: its data volume is 91.0 % full, 9.0Gi of " +
		"100.0Gi are free")
	if len(made.Blocked) != 1 || made.Blocked[0].Reason != v1alpha1.BlockedDataVolumeFull || len(*begun) > 0 {
		t.Errorf("blocked %+v, begun %q", made.Blocked, *begun)
	}
	for _, a := range w.running {
		if a.Node == three[1] {
			a.Space = nil
		}
	}
	w.agents()
	w.settle()
	w.wantBackup("Pending 0/3 node orders-dc1-r2-0 takes no snapshot: it does not say how full its data volume is")
	w.filled(three[1], 90)
	w.settle()
	w.wantBackup("Complete 3/3")
}

// uploads is a backup of which the nodes have begun to upload.
func uploads(t *testing.T, ended map[string]bool) (*world, *[]string) {
	t.Helper()
	w := formed(t)
	begun := w.backUp("nightly", func(node string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		if o == v1alpha1.OperationUpload && !ended[node] {
			return v1alpha1.OperationRunning
		}
		return v1alpha1.OperationSucceeded
	})
	w.settle()
	w.wantBackup("Uploading")
	return w, begun
}

// uploaded has what the nodes upload end well.
func (w *world) uploaded(names ...string) {
	at := metav1.NewTime(w.now)
	for _, name := range names {
		all := w.snapshot.Nodes[name].Record.Status.Operations
		for i := range all {
			if all[i].Phase == v1alpha1.OperationRunning {
				all[i].Phase, all[i].FinishedAt = v1alpha1.OperationSucceeded, &at
				all[i].Uploaded = &v1alpha1.Uploaded{Member: hostID(name)}
			}
		}
	}
}

// A node whose volume becomes full drops its snapshot, once, and is not attempted again, also when
// there is room afterwards. The others go on.
func TestASnapshotIsDroppedWhenTheVolumeIsFull(t *testing.T) {
	w, begun := uploads(t, nil)
	w.filled(three[1], 93)
	w.settle()
	w.wantBackup("Uploading 1/3")
	dropped := []string{"ClearSnapshot r2-0"}
	if got := (*begun)[6:]; !slices.Equal(got, dropped) {
		t.Errorf("begun %q", got)
	}
	w.filled(three[1], 50)
	w.settle()
	w.filled(three[1], 95)
	w.settle()
	if got := (*begun)[6:]; !slices.Equal(got, dropped) {
		t.Errorf("begun %q", got)
	}
	w.uploaded(three[0], three[2])
	w.settle()
	b := w.wantBackup("Incomplete 3/3 failed on orders-dc1-r2-0: its data volume is 93.0 % full, 7.0Gi of 100.0Gi")
	if n := b.Status.Nodes[1]; n.Phase != v1alpha1.TaskFailed || n.Attempts > 1 {
		t.Errorf("%+v", n)
	}
	if got := stages(*begun); got != "Snapshot Upload ClearSnapshot" {
		t.Errorf("begun %q", *begun)
	}
}

// A node that is done drops its snapshot when its volume becomes full while others upload, and the
// backup is complete all the same.
func TestASnapshotOfANodeThatIsDoneIsDropped(t *testing.T) {
	w, begun := uploads(t, map[string]bool{three[1]: true})
	w.filled(three[1], 93)
	w.settle()
	if got := (*begun)[6:]; !slices.Equal(got, []string{"ClearSnapshot r2-0"}) {
		t.Errorf("begun %q", got)
	}
	w.uploaded(three[0], three[2])
	w.settle()
	w.wantBackup("Complete 3/3")
	if got := stages(*begun); got != "Snapshot Upload ClearSnapshot CompleteBackup ClearSnapshot" || len(*begun) != 11 {
		t.Errorf("begun %q", *begun)
	}
}

// It is dropped only when it is written that the node has failed: an upload that reads a part of a
// snapshot must not count.
func TestASnapshotIsDroppedAfterItsNodeHasFailed(t *testing.T) {
	w, _ := uploads(t, nil)
	w.filled(three[1], 93)
	operate := w.operate
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		failed := w.snapshot.Backups[0].Status.Nodes[1].Phase == v1alpha1.TaskFailed
		if (o.Withdraw != nil || o.Type == v1alpha1.OperationClearSnapshot) && !failed {
			t.Errorf("%+v is asked for before", o)
		}
		return operate(n, o)
	}
	plan := Next(w.snapshot, w.now)
	for _, write := range plan.Writes {
		if record, is := write.Object.(*v1alpha1.CassandraNode); is {
			t.Errorf("with the status that says so %+v is written", record.Spec.Operations)
		}
	}
	w.settle()
}

// Also while a step of a higher class is open, for as long as that takes.
func TestASnapshotIsDroppedWhileTheBackupIsSuspended(t *testing.T) {
	w, begun := uploads(t, map[string]bool{three[0]: true, three[2]: true})
	w.change(setting("concurrent_reads", "16"))
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RollOut })
	w.filled(three[1], 93)
	for range 5 {
		w.pass()
	}
	l := w.snapshot.Ledger
	if l.Step == nil || len(l.Suspended) != 1 ||
		w.snapshot.Backups[0].Status.Phase != v1alpha1.BackupIncomplete || !slices.Contains(*begun, "ClearSnapshot r2-0") {
		t.Errorf("begun %q beside %s", *begun, ledgerInWords(l))
	}
	w.filled(three[1], 10)
	for range 20 {
		w.now = w.now.Add(time.Minute)
		w.settle()
	}
	if l := w.snapshot.Ledger; l.Step != nil || len(l.Suspended)+len(l.Maintenance) > 0 {
		t.Errorf("open: %s", ledgerInWords(l))
	}
	w.wantBackup("Incomplete 3/3 failed on orders-dc1-r2-0: its data volume is 93.0 % full")
}

// Also while what others run is waited for, until the backup can be suspended.
func TestASnapshotIsDroppedBeforeTheBackupIsSuspended(t *testing.T) {
	w := formed(t)
	begun := w.backUp("nightly", func(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		if o == v1alpha1.OperationUpload || o == v1alpha1.OperationFlush {
			return v1alpha1.OperationRunning
		}
		return v1alpha1.OperationSucceeded
	})
	w.give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush, Nodes: []string{three[0]}})
	w.settle()
	w.change(setting("concurrent_reads", "16"))
	w.settle()
	w.filled(three[0], 93)
	w.settle()
	l := w.snapshot.Ledger
	if l.Step != nil || len(l.Maintenance) != 2 || !slices.Contains(*begun, "ClearSnapshot r1-0") {
		t.Errorf("begun %q beside %s", *begun, ledgerInWords(l))
	}
	w.wantBackup("Uploading 1/3")
}

// Before anything is uploaded the backup ends, and no snapshot stays.
func TestABackupEndsWhenAVolumeIsFullBeforeTheUploads(t *testing.T) {
	w := formed(t)
	w.sees = func(n *facts.Node) bool { return n.Name != three[2] }
	begun := w.backUp("nightly", succeeds)
	w.settle()
	w.wantBackup("Snapshotting")
	w.filled(three[1], 93)
	w.settle()
	w.wantBackup("Failed 1/3 failed on orders-dc1-r2-0: its data volume is 93.0 % full")
	if got := stages(*begun); got != "Snapshot ClearSnapshot" || len(*begun) != 6 {
		t.Errorf("begun %q", *begun)
	}
}
