package cluster

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

// losesDisk has the agent of a node find an empty disk.
func (w *world) losesDisk(name string) {
	n := w.snapshot.Nodes[name]
	seen := w.endpoints()[slices.Index(three, name)]
	seen.Live = false
	w.strangers = append(w.strangers, seen) // the others still know it
	lost := w.running[n.Pod.UID]
	lost.Ring, lost.Process, lost.Phase = nil, facts.ProcessAbsent, v1alpha1.PhaseDataLost
	lost.Disk, n.Record.Status.Disk = v1alpha1.DiskEmpty, v1alpha1.DiskEmpty
	w.agents()
}

// replaced has another member have the name of a node, or none, and the ring not know the former.
func (w *world) replaced(name, by string) {
	id, l := hostID(name), w.snapshot.Ledger.Copy()
	if l.Members[name] = by; by == "" {
		delete(l.Members, name)
	}
	l.Replaced = append(l.Replaced, id)
	l.RepairDue = append(l.RepairDue, ledger.RepairDue{Node: name, Since: w.now, Reason: v1alpha1.RepairReplaced})
	w.snapshot.Ledger = l
	w.strangers = slices.DeleteFunc(w.strangers, func(e facts.Endpoint) bool { return e.HostID == id })
	was := w.running[w.snapshot.Nodes[name].Pod.UID]
	was.Ring, was.Disk = nil, v1alpha1.DiskEmpty
	w.agents()
}

// described has the nodes with which a backup is described be kept.
func (w *world) described() *v1alpha1.BackupArguments {
	out, operate := &v1alpha1.BackupArguments{}, w.operate
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		if o.Type == v1alpha1.OperationCompleteBackup {
			*out = *o.Arguments.Backup
		}
		return operate(n, o)
	}
	return out
}

// A node whose disk is lost while others upload is left out at once, if they suffice; else the
// backup has failed at once, and says why.
func TestABackupLeavesOutALostDiskAtOnce(t *testing.T) {
	const rf3, rf2 = "NetworkTopologyStrategy {dc1=3}", "NetworkTopologyStrategy {dc1=2}"
	for name, c := range map[string]struct {
		replication string
		lose        func(*world)
		want        string
		message     string // of the node
	}{
		"its disk is empty": {rf3, func(w *world) { w.losesDisk(three[1]) }, "Uploading 0/3",
			"its snapshot is lost, and others have a quorum of each of its ranges: it has lost its disk: the data " +
				"volume is empty"},
		"it gives its disk up": {rf3, func(w *world) {
			w.snapshot.Ledger.Replaced = []string{hostID(three[1])}
		}, "Uploading 0/3", "its snapshot is lost, and others have a quorum of each of its ranges: it is being " +
			"replaced, and its disk is no longer used"},
		"nobody else has its rows": {rf2, func(w *world) { w.losesDisk(three[1]) },
			"Failed 1/3 failed on orders-dc1-r2-0: its snapshot is lost: it has lost its disk: the data volume is empty; " +
				"range ", "its snapshot is lost: it has lost its disk"},
		"another one had lost writes before its snapshot": {rf3, func(w *world) {
			l := w.snapshot.Ledger.Copy()
			l.RepairDue, w.snapshot.Ledger = nil, l // since then it was repaired
			w.losesDisk(three[1])
		}, "Failed 1/3 failed on orders-dc1-r2-0: its snapshot is lost", "its snapshot is lost: it has lost its disk"},
		"another one has lost writes after its snapshot": {rf3, func(w *world) {
			l := w.snapshot.Ledger.Copy()
			l.RepairDue = []ledger.RepairDue{{Node: three[2], Since: w.now, Reason: v1alpha1.RepairCommitLogLost}}
			w.snapshot.Ledger = l
			w.losesDisk(three[1])
		}, "Uploading 0/3", "its snapshot is lost, and others have a quorum"},
		"its disk fails, and may be there yet": {rf2, func(w *world) {
			w.losesDisk(three[1])
			lost := w.running[w.snapshot.Nodes[three[1]].Pod.UID]
			lost.Phase, lost.Disk, lost.DiskFailing = v1alpha1.PhaseFailed, v1alpha1.DiskMember, "read-only"
			w.agents()
		}, "Uploading 0/3", "it is Running"},
		"it is replaced, and where it was is not known": {rf3, func(w *world) { w.replaced(three[1], "another") },
			"Failed 1/3 failed on orders-dc1-r2-0: its snapshot is lost: it was replaced: it had the host id " +
				hostID(three[1]) + ", and has another; the ring does not say which ranges", "its snapshot is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(map[string]string{"shop": c.replication})
			if strings.Contains(name, "before its snapshot") {
				w.snapshot.Ledger.RepairDue = []ledger.RepairDue{{Node: three[2], Since: w.now,
					Reason: v1alpha1.RepairReplaced}}
			}
			w.backUp("nightly", uploading)
			for w.snapshot.Backups[0].Status.Phase != v1alpha1.BackupUploading {
				w.pass()
			}
			w.pass()
			w.pass()
			c.lose(w)
			w.pass()
			w.pass()
			b := w.wantBackupSoFar(c.want)
			if n := b.Status.Nodes[1]; !strings.HasPrefix(n.Message, c.message) {
				t.Errorf("node %+v", n)
			}
		})
	}
}

func uploading(_ string, o v1alpha1.OperationType) v1alpha1.OperationPhase {
	if o == v1alpha1.OperationUpload {
		return v1alpha1.OperationRunning
	}
	return v1alpha1.OperationSucceeded
}

// An operator that has just started decides nothing before a member has told who else has the rows.
func TestALostDiskIsJudgedByTheRing(t *testing.T) {
	w, _ := uploads(t, nil)
	w.snapshot.Ledger.Replaced = []string{hostID(three[1])}
	for _, name := range three {
		w.snapshot.Nodes[name].Agent = nil
	}
	made := Next(w.snapshot, w.now)
	for _, write := range made.Writes {
		if b, is := write.Object.(*v1alpha1.CassandraBackup); is && b.Status.Nodes[1].Phase.Final() {
			t.Errorf("it is %+v", b.Status.Nodes[1])
		}
	}
}

// A member that is left out may leave the ring before the backup is described: that is of the ring
// in which the snapshots were taken.
func TestALeftOutMemberLeavesTheRing(t *testing.T) {
	for name, c := range map[string]struct {
		// before says that the snapshots are taken without it.
		before bool
		by     string
	}{
		"it was down before the snapshots, and is replaced": {true, "another"},
		"it was down before the snapshots, and is removed":  {true, ""},
		"its disk is lost, and it is replaced":              {false, "another"},
		"its disk is lost, and it is removed":               {false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
			was := w.endpoints()[1]
			if c.before {
				w.downSince(three[1], w.now.Add(-time.Hour))
			}
			w.backUp("nightly", uploading)
			described := w.described()
			w.settle()
			w.wantBackup("Uploading 0/3")
			if c.before {
				w.snapshot.Ledger.Replaced = []string{hostID(three[1])}
			} else {
				w.losesDisk(three[1])
			}
			w.settle()
			w.replaced(three[1], c.by)
			w.settle()
			w.uploaded(three[0], three[2])
			for range 12 {
				w.now = w.now.Add(time.Minute)
				w.settle()
			}
			b := w.snapshot.Backups[0]
			if b.Status.Phase != v1alpha1.BackupComplete || b.Status.Nodes[1].Phase != v1alpha1.TaskLeftOut {
				t.Fatalf("%+v", b.Status)
			}
			want := []v1alpha1.LeftOutNode{{Node: three[1], HostID: was.HostID, Datacenter: was.Datacenter,
				Rack: was.Rack, Tokens: w.tokens[three[1]]}}
			got := described.LeftOut
			if len(got) == 1 {
				slices.Sort(got[0].Tokens)
				slices.Sort(want[0].Tokens)
			}
			if !reflect.DeepEqual(got, want) || !slices.Contains(described.Members, was.HostID) {
				t.Errorf("described by %+v, not %+v", described, want)
			}
		})
	}
}

// Who takes the place of a member while snapshots are taken takes one, too.
func TestASnapshotIsOfTheMembersOfItsTime(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.sees = func(n *facts.Node) bool { return n.Name != three[0] }
	begun := w.backUp("nightly", succeeds)
	w.settle()
	w.wantBackup("Snapshotting")
	l := w.snapshot.Ledger.Copy()
	l.Members = maps.Clone(l.Members)
	l.Members[three[1]], w.snapshot.Ledger, w.sees = "another", l, nil
	w.agents()
	w.settle()
	if got := (*begun)[:6]; stages(got) != "Snapshot" {
		t.Errorf("begun %q", *begun)
	}
}
