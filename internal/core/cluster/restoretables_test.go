package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
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
	w.wantRestore("Succeeded 3/3 done on 3 nodes")
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
