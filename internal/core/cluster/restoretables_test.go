package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// bringBack has a user create a restore of a table, and nodes run its operations, all but those
// that fail.
func (w *world) bringBack(fails func(node string, o v1alpha1.OperationType) v1alpha1.OperationPhase) *[]string {
	begun := w.backUp("unused", fails)
	w.snapshot.Backups = nil
	w.snapshot.Restores = append(w.snapshot.Restores, &v1alpha1.CassandraRestore{ObjectMeta: metav1.ObjectMeta{
		Name: "orders-of-monday", Namespace: "shop", UID: w.uid("restore-of-orders"), ResourceVersion: w.version(),
		Generation: 1, CreationTimestamp: metav1.NewTime(w.now)},
		Spec: v1alpha1.CassandraRestoreSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"},
			Store: v1alpha1.BackupStoreReference{Name: "main"}, Backup: "20260301T030000Z-1",
			Tables:   []v1alpha1.RestoredTable{{From: "shop.orders"}},
			Deadline: &metav1.Duration{Duration: time.Hour}}})
	return begun
}

func (w *world) wantRestore(want string) {
	w.t.Helper()
	r := w.snapshot.Restores[0]
	got := fmt.Sprintf("%s %s %s", r.Status.Phase, r.Status.Progress, r.Status.Message)
	if !strings.HasPrefix(got, want) {
		w.t.Errorf("the restore is %q, not %q", got, want)
	}
	for _, name := range three {
		if left := w.snapshot.Nodes[name].Record.Spec.Operations; r.Status.Finished() && len(left) > 0 {
			w.t.Errorf("node %s keeps %+v", name, left)
		}
	}
	if l := w.snapshot.Ledger; r.Status.Finished() && len(l.Maintenance) > 0 {
		w.t.Errorf("open: %s", ledgerInWords(l))
	}
}

// Nobody loads before every member has downloaded, and in the end nothing of that is left.
func TestTablesAreRestored(t *testing.T) {
	w := formed(t)
	slow := true
	begun := w.bringBack(func(node string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		if o == v1alpha1.OperationStageTables && node == three[1] && slow {
			return ""
		}
		return v1alpha1.OperationSucceeded
	})
	operate := w.operate
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		all := operate(n, o)
		for i := range all {
			if all[i].ID == o.ID && o.Type == v1alpha1.OperationLoadTables {
				all[i].Message = "streamed to all that own it; without what n-a had of shop.orders"
			}
		}
		return all
	}
	w.pass()
	if role := w.snapshot.Shared.Roles["orders-helenus-agent"]; role == nil ||
		!strings.Contains(fmt.Sprint(role.Rules), "keys") {
		t.Errorf("agents may %+v", w.snapshot.Shared.Roles)
	}
	for range 10 {
		w.pass()
	}
	if got := stages(*begun); got != "StageTables" || len(*begun) != 2 {
		t.Errorf("begun while one downloads: %q", *begun)
	}
	w.wantRestore("Running 0/3 ")
	slow = false
	w.pass()
	w.settle()
	w.wantRestore("Succeeded 3/3 done on 3 nodes; without what n-a had of shop.orders")
	if got := stages(*begun); got != "StageTables LoadTables ClearSnapshot" || len(*begun) != 9 {
		t.Errorf("begun %q", *begun)
	}
	if !slices.Contains(w.events, "RestoreStarted") || !slices.Contains(w.events, "RestoreSucceeded") {
		t.Errorf("events %q", w.events)
	}
	if role := w.snapshot.Shared.Roles["orders-helenus-agent"]; strings.Contains(fmt.Sprint(role.Rules), "keys") {
		t.Errorf("agents may still %+v", role.Rules)
	}
}

// If one node cannot download its part no row comes back. A node that does not load its part is
// named.
func TestARestoreThatFails(t *testing.T) {
	for o, want := range map[v1alpha1.OperationType]string{
		v1alpha1.OperationStageTables: "Failed 1/3 no row has come back: failed on " + three[1] + ": it is Failed",
		v1alpha1.OperationLoadTables:  "Failed 3/3 failed on " + three[1] + ": it is Failed",
	} {
		w := formed(t)
		begun := w.bringBack(func(node string, is v1alpha1.OperationType) v1alpha1.OperationPhase {
			if node == three[1] && is == o {
				return v1alpha1.OperationFailed
			}
			return v1alpha1.OperationSucceeded
		})
		for range 90 {
			w.now = w.now.Add(30 * time.Second)
			w.pass()
		}
		w.wantRestore(want)
		if got := stages(*begun); strings.Contains(got, "LoadTables") != (o == v1alpha1.OperationLoadTables) ||
			!strings.HasSuffix(got, "ClearSnapshot") {
			t.Errorf("%s: begun %q", o, *begun)
		}
	}
}

// Rows go to all their owners: while a member is down no attempt is made in vain, for however long.
func TestRowsWaitForTheirOwners(t *testing.T) {
	w := formed(t)
	begun := w.bringBack(func(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		switch {
		case o != v1alpha1.OperationLoadTables:
			return v1alpha1.OperationSucceeded
		case w.absent[three[1]]:
			return v1alpha1.OperationFailed
		}
		return v1alpha1.OperationRunning
	})
	for range 20 {
		w.pass()
	}
	if got := stages(*begun); got != "StageTables LoadTables" {
		t.Fatalf("begun %q", *begun)
	}
	w.absent[three[1]] = true
	w.agents()
	operations := w.snapshot.Nodes[three[0]].Record.Status.Operations
	at := metav1.NewTime(w.now)
	last := &operations[len(operations)-1]
	last.Phase, last.FinishedAt = v1alpha1.OperationFailed, &at
	for range 60 {
		w.now = w.now.Add(30 * time.Second)
		w.pass()
	}
	w.wantRestore("Running")
	delete(w.absent, three[1])
	w.agents()
	for range 2 { // the attempts that ran, and the one after that which failed
		w.succeed()
		w.settle()
	}
	w.wantRestore("Succeeded 3/3")
}

// A restore that is deleted while nodes download clears what they have.
func TestARestoreIsDeleted(t *testing.T) {
	w := formed(t)
	begun := w.bringBack(func(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		if o == v1alpha1.OperationStageTables {
			return v1alpha1.OperationRunning
		}
		return v1alpha1.OperationSucceeded
	})
	for range 5 {
		w.pass()
	}
	w.snapshot.Restores = nil
	w.settle()
	if got := stages(*begun); got != "StageTables ClearSnapshot" || len(w.snapshot.Ledger.Maintenance) > 0 {
		t.Errorf("begun %q, open %s", *begun, ledgerInWords(w.snapshot.Ledger))
	}
}

// It does not begin before its store is there, nor while a member is down.
func TestARestoreWaits(t *testing.T) {
	w := formed(t)
	begun := w.bringBack(succeeds)
	w.snapshot.Stores = nil
	w.pass()
	w.wantRestore("Pending  there is no CassandraBackupStore main")
	w.now = w.now.Add(2 * time.Minute)
	w.pass()
	w.wantRestore("Failed  there is no CassandraBackupStore main")
	if len(*begun) > 0 {
		t.Errorf("begun %q", *begun)
	}
	w = formed(t)
	w.absent[three[0]] = true
	w.agents()
	begun = w.bringBack(succeeds)
	w.settle()
	w.wantRestore("Pending 0/3 node orders-dc1-r1-0 is not up")
	if len(*begun) > 0 {
		t.Errorf("begun %q while a member is down", *begun)
	}
}

// replaces has a user ask for a restore that replaces rows.
func (w *world) replaces(confirm bool,
	fails func(node string, o v1alpha1.OperationType) v1alpha1.OperationPhase) (*[]string, *v1alpha1.CassandraRestore) {
	begun := w.bringBack(fails)
	r := w.snapshot.Restores[0]
	r.Spec.Mode, r.Spec.Confirm = v1alpha1.RestoreReplace, confirm
	return begun, r
}

// succeed has what runs on the nodes succeed.
func (w *world) succeed() {
	at := metav1.NewTime(w.now)
	for _, name := range three {
		operations := w.snapshot.Nodes[name].Record.Status.Operations
		for i := range operations {
			if o := &operations[i]; !o.Phase.Final() {
				o.Phase, o.FinishedAt = v1alpha1.OperationSucceeded, &at
			}
		}
	}
}

const keptRows = "snapshot replaced-orders-of-monday-restore- keeps what shop.orders had, until kubectl helenus -n shop " +
	"task orders clearsnapshot --tag replaced-orders-of-monday-restore- removes it"

// Nothing is touched before the user has confirmed it. Then all look once more, each keeps what it
// has, one truncates, and all load.
func TestRowsAreReplaced(t *testing.T) {
	w := formed(t)
	begun, _ := w.replaces(false, succeeds)
	w.settle()
	w.wantRestore("Running 0/3 every node has what it loads, and nothing is touched; waits for spec.confirm: true: " +
		"then every node keeps a snapshot of shop.orders, all rows are removed, and those of the backup come: " +
		`kubectl -n shop patch cassandrarestore orders-of-monday --type merge -p '{"spec":{"confirm":true}}'`)
	if got := stages(*begun); got != "StageTables" || len(*begun) != 3 {
		t.Errorf("begun before it is confirmed: %q", *begun)
	}
	w.now = w.now.Add(50 * time.Minute)
	w.snapshot.Restores[0].Spec.Confirm = true
	for w.snapshot.Restores[0].Status.Replaced == nil {
		w.pass()
	}
	w.now = w.now.Add(50 * time.Minute) // the deadline is that of what was confirmed
	w.settle()
	w.wantRestore("Succeeded 3/3 done on 3 nodes; " + keptRows)
	if got := stages(*begun); got != "StageTables Snapshot Truncate LoadTables ClearSnapshot" || len(*begun) != 16 {
		t.Errorf("begun %q", *begun)
	}
	if k := w.snapshot.Restores[0].Status.Replaced; k.Snapshot != "replaced-orders-of-monday-restore-" ||
		k.TruncatedAt == nil {
		t.Errorf("replaced %+v", k)
	}
}

// Wherever the ledger, and what the nodes have said, is lost: rows are removed when all have staged
// and kept them, never after one has come back, and what is kept stays as it is from then on.
func TestRowsAreRemovedOnce(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		for at := 0; ; at++ {
			w := formed(t)
			begun, _ := w.replaces(true, succeeds)
			for range at {
				w.pass()
			}
			if w.snapshot.Restores[0].Status.Finished() {
				break
			}
			w.snapshot.Ledger = nil
			for _, name := range three {
				if n := w.snapshot.Nodes[name]; forgotten {
					n.Record.Spec.Operations, n.Record.Status.Operations = nil, nil
				}
			}
			w.settle()
			w.wantRestore("Succeeded 3/3 done on 3 nodes; " + keptRows)
			seen := map[string]int{}
			for _, b := range *begun {
				kind, _, _ := strings.Cut(b, " ")
				seen[kind]++
				if kind == "Truncate" && (seen["StageTables"] < 3 || seen["Snapshot"] < 3 || seen["LoadTables"] > 0) ||
					kind == "Snapshot" && seen["Truncate"] > 0 {
					t.Fatalf("lost after %d passes, forgotten: %v: %q", at, forgotten, *begun)
				}
			}
			if seen["Truncate"] == 0 || seen["LoadTables"] < 3 {
				t.Fatalf("lost after %d passes: %q", at, *begun)
			}
		}
	}
}

// What delays the removal of rows is named, and what ends it names where they are.
func TestRowsThatAreNotRemoved(t *testing.T) {
	ends := func(of v1alpha1.OperationType, as v1alpha1.OperationPhase) func(string,
		v1alpha1.OperationType) v1alpha1.OperationPhase {
		return func(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
			if o == of {
				return as
			}
			return v1alpha1.OperationSucceeded
		}
	}
	w := formed(t)
	begun, _ := w.replaces(false, succeeds)
	w.settle()
	w.now = w.now.Add(61 * time.Minute)
	w.settle()
	w.wantRestore("Failed 3/3 not confirmed before the deadline: nothing is touched")
	if got := stages(*begun); got != "StageTables ClearSnapshot" {
		t.Errorf("begun %q", *begun)
	}
	for of, want := range map[v1alpha1.OperationType]string{
		v1alpha1.OperationSnapshot: "Failed 3/3 no row has come back: failed on " + three[0],
		v1alpha1.OperationTruncate: "Failed 1/3 no row has come back: failed on " + three[0],
	} {
		w := formed(t)
		begun, _ := w.replaces(true, ends(of, v1alpha1.OperationFailed))
		for range 90 {
			w.now = w.now.Add(30 * time.Second)
			w.pass()
		}
		w.wantRestore(want)
		if r := w.snapshot.Restores[0]; !strings.HasSuffix(r.Status.Message, keptRows) ||
			strings.Contains(stages(*begun), "LoadTables") {
			t.Errorf("%q, begun %q", r.Status.Message, *begun)
		}
	}
	for name, c := range map[string]struct {
		hold, free func(w *world)
		want       string
	}{
		"a member is down": {func(w *world) { w.absent[three[1]] = true; w.agents() },
			func(w *world) { delete(w.absent, three[1]); w.agents() },
			"Running 0/3 TRUNCATE needs all members, and waits until these are up: " + three[1]},
		"a repair runs": {func(w *world) {
			w.snapshot.Ledger.Maintenance = append(w.snapshot.Ledger.Maintenance, &ledger.Step{ID: "repair-1",
				Kind: ledger.Repair, Class: ledger.Maintenance, Stage: ledger.StageOperations, Nodes: three[:1]})
		}, func(*world) {}, "Running 0/3 TRUNCATE waits until Repair is over"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			held := true
			begun, r := w.replaces(true, func(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
				if o == v1alpha1.OperationRepair && held {
					return v1alpha1.OperationRunning
				}
				return v1alpha1.OperationSucceeded
			})
			for r.Status.Replaced == nil {
				w.pass()
				r = w.snapshot.Restores[0]
			}
			c.hold(w)
			for range 5 {
				w.pass()
			}
			w.wantRestore(c.want)
			if strings.Contains(stages(*begun), "Truncate") {
				t.Errorf("begun %q", *begun)
			}
			held = false
			c.free(w)
			w.succeed()
			w.settle()
			w.wantRestore("Succeeded 3/3")
		})
	}
}

// A request that was cut off may be delivered for a minute: no row comes back before.
func TestRowsComeBackWhenNoRequestIsUnderWay(t *testing.T) {
	w := formed(t)
	asked := 0
	begun, _ := w.replaces(true, func(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		if o == v1alpha1.OperationTruncate {
			if asked++; asked == 1 {
				return v1alpha1.OperationInterrupted
			}
		}
		return v1alpha1.OperationSucceeded
	})
	for range 30 {
		w.now = w.now.Add(time.Second)
		w.pass()
	}
	if asked != 2 || strings.Contains(stages(*begun), "LoadTables") {
		t.Errorf("begun %q", *begun)
	}
	w.now = w.now.Add(time.Minute)
	w.settle()
	w.wantRestore("Succeeded 3/3")
}

// A restore that waits to be confirmed delays no backup.
func TestABackupBesideARestoreThatWaits(t *testing.T) {
	w := formed(t)
	w.replaces(false, succeeds)
	w.settle()
	w.backUp("nightly", succeeds)
	w.settle()
	w.wantBackup("Complete 3/3")
	w.wantRestore("Running 0/3 every node has what it loads")
}

// Nothing else begins while rows are removed: what a repair streams then would stay.
func TestNothingBeginsWhileRowsAreRemoved(t *testing.T) {
	w := formed(t)
	begun, _ := w.replaces(true, func(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
		if o == v1alpha1.OperationTruncate {
			return v1alpha1.OperationRunning
		}
		return v1alpha1.OperationSucceeded
	})
	for !strings.HasSuffix(stages(*begun), "Truncate") {
		w.pass()
	}
	w.snapshot.Ledger.Cleanup = slices.Clone(three)
	for range 5 {
		w.pass()
	}
	if got := stages(*begun); !strings.HasSuffix(got, "Truncate") {
		t.Errorf("begun %q", got)
	}
	w.succeed()
	w.settle()
	w.wantRestore("Succeeded 3/3")
	if got := stages(*begun); !strings.Contains(got, "Cleanup") {
		t.Errorf("begun %q", got)
	}
}

// A restore to a point in time is no task before its backup is there, and delays none. Its turn
// comes after that of one that has begun, although it was created before that.
func TestARestoreIsPrepared(t *testing.T) {
	w := formed(t)
	begun := w.bringBack(succeeds)
	restores := func() (*v1alpha1.CassandraRestore, *v1alpha1.CassandraRestore) {
		return w.snapshot.Restores[0], w.snapshot.Restores[1]
	}
	r := w.snapshot.Restores[0]
	r.Spec.Backup, r.Spec.PointInTime = "", &metav1.Time{Time: w.now.Add(-time.Hour)}
	r.Status.Phase, r.Status.Message = v1alpha1.TaskPending, "makes CassandraCluster orders-of-monday-then"
	prepared := r.ResourceVersion
	other := r.DeepCopy()
	other.Name, other.UID, other.ResourceVersion = "later", w.uid("later"), w.version()
	other.Spec.Backup, other.Spec.PointInTime, other.Spec.Mode = "20260301T030000Z-1", nil, v1alpha1.RestoreReplace
	other.CreationTimestamp = metav1.NewTime(w.now.Add(time.Minute))
	w.snapshot.Restores = append(w.snapshot.Restores, other)
	w.settle()
	w.wantRestore("Pending  makes CassandraCluster orders-of-monday-then")
	r, other = restores()
	if r.ResourceVersion != prepared || r.Status.StartedAt != nil {
		t.Errorf("its status is written: %+v", r.Status)
	}
	if other.Status.Phase != v1alpha1.TaskRunning {
		t.Fatalf("the other one is %+v", other.Status)
	}
	r.Status.Source = &v1alpha1.RestoredFrom{UID: "then", Backup: "20261126T091500Z-5e6f7a8b"}
	w.settle()
	w.wantRestore("Pending  waits until task later has finished")
	r, other = restores()
	if r.Status.StartedAt != nil {
		t.Errorf("its deadline counts from %s", r.Status.StartedAt)
	}
	other.Spec.Confirm = true
	var asked []v1alpha1.RestoreArguments
	operate := w.operate
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		if a := o.Arguments; a != nil && a.Restore != nil && a.Restore.Backup != other.Spec.Backup {
			asked = append(asked, *a.Restore)
		}
		return operate(n, o)
	}
	w.settle()
	w.wantRestore("Succeeded 3/3 done on 3 nodes")
	r, _ = restores()
	if len(asked) == 0 || r.Status.Source == nil || !strings.HasSuffix(stages(*begun), "LoadTables ClearSnapshot") {
		t.Errorf("%d asked, source %+v, begun %q", len(asked), r.Status.Source, *begun)
	}
	for _, a := range asked {
		if a.Cluster != "then" || a.Backup != r.Status.Source.Backup {
			t.Errorf("asked for backup %s of %s", a.Backup, a.Cluster)
		}
	}
}
