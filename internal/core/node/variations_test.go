package node

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// with1 is facts with one change.
func with1(f Facts, change func(*Facts)) Facts {
	if change != nil {
		change(&f)
	}
	return f
}

func mark(f *Facts, cluster types.UID, node string) {
	f.Disk.Volumes = []Volume{{Name: v1alpha1.VolumeData, Marker: &Marker{cluster, node, v1alpha1.VolumeData}}}
}

// adopting has a disk of the cluster whose disks are taken over.
func adopting(pinned bool) Facts {
	f := member()
	mark(&f, "earlier", self)
	f.Memory.ClusterUID = "earlier"
	f.Record.Spec.Cluster.AdoptedUID = "earlier"
	if !pinned {
		f.Record.Spec.Member = nil
	}
	return f
}

// ticketed is ready to start by its ticket, alone.
func ticketed() Facts {
	f := claimed()
	f.Record.Spec.Join = newTicket()
	keep(&f)
	return f
}

// joining was ended in the middle of its join.
func joining() Facts {
	f := ticketed()
	f.Disk.HasData = true
	f.Memory.Join = &JoinMemory{IntentMemory: IntentMemory{ID: "form/1", BegunAt: ptr(-time.Minute)},
		Mode: v1alpha1.JoinNew, Tokens: []string{"-5", "5"}}
	return f
}

// onItsWay has a JVM that is joining.
func onItsWay(mode facts.Mode) Facts {
	f := joined()
	f.Record.Spec.Member = nil
	f.Record.Spec.Join = newTicket()
	f.JVM.Ring.Mode = mode
	keep(&f)
	return f
}

// takenBack has its ticket taken back by the operator.
func takenBack(f Facts) Facts {
	f.Record.Spec.Member = nil
	f.Record.Spec.Join = newTicket()
	f.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "it did not join in time"}
	if f.Memory.Record != nil {
		keep(&f)
	}
	return f
}

// withdrawnJoin has acknowledged that.
func withdrawnJoin(f Facts) Facts {
	f = takenBack(f)
	f.Memory = Before(&f, WithdrawJoin{ID: "form/1", Why: "taken back"}, epoch)
	return f
}

// joined is NORMAL for the first time.
func joined() Facts {
	f := serving()
	f.Memory.Member = nil
	f.Memory.Join.FinishedAt = nil
	f.Memory.TrafficOpenedAt, f.Memory.NormalAt, f.Memory.Start.NormalAt = nil, nil, nil
	f.JVM.Ring.NativeRunning = false
	f.Record.Spec.ClientTraffic = v1alpha1.TrafficClosed
	return f
}

// seesAll has just heard from the agents of the two others that they see what it sees.
func seesAll(f *Facts) {
	all := []string{hostA, hostB, hostC}
	b, c := peer("10.0.0.2", "orders-dc1-r2-0", hostB), peer("10.0.0.3", "orders-dc1-r3-0", hostC)
	b.Up, c.Up = all, all
	answered(f, hostA, b, c)
}

// neighboured is a member that knows others.
func neighboured() Facts {
	f := member()
	f.Memory.Neighbours = []string{"10.0.0.2", "10.0.0.3"}
	return f
}

func died(f *Facts, until time.Time) {
	f.Memory.Start = &StartMemory{PodUID: "pod-1", Incarnation: "i1", StartID: 3, Hash: "hash-1",
		EndedAt: ptr(-time.Second)}
	f.Memory.Deaths = &Deaths{PodUID: "pod-1", Count: 4, Row: 4, LastAt: at(-time.Second),
		LastReason: v1alpha1.RestartExited, Message: "it died", BackOffUntil: until}
	f.Init.LastStartID = 3
}

func restart(f *Facts) {
	f.Record.Spec.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: "restart-1"}}
}

func wantsOperation(f *Facts) {
	f.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "op-1"},
		Type: v1alpha1.OperationAlterSystemKeyspaces}}
}

// stopping is on its way down.
func stopping(s StopMemory) Facts {
	f := serving()
	f.Record.Spec.State = v1alpha1.StateStopped
	s.Incarnation, s.StartID, s.Why = "i1", 3, "test"
	if s.BegunAt.IsZero() {
		s.BegunAt = epoch
	}
	f.Memory.Stop = &s
	return f
}

// frozen has a JVM that makes no progress.
func frozen() Facts {
	f := serving()
	f.JVM.AskedAt, f.JVM.AnsweredAt, f.JVM.ProgressAt = at(0), at(-4*time.Minute), at(-4*time.Minute)
	f.Init.Process.StartedAt, f.Peers = at(-time.Hour), Peers{}
	return f
}

// sees is a peer that sees this node up or down.
func sees(live bool) facts.Peer {
	p := peer("10.0.0.2", "b", hostB)
	e := endpoint(address, hostA, "r1", live, -5, 5)
	p.OfHostID = &e
	return p
}

func wantTicket(id string) func(*testing.T, Decision) {
	return func(t *testing.T, d Decision) {
		t.Helper()
		got := ""
		if ticket := as[StartJVM](d.Action).Start.Ticket; ticket != nil {
			got = ticket.ID
		}
		if got != id {
			t.Errorf("ticket %q, want %q", got, id)
		}
	}
}

func notReady(t *testing.T, d Decision) {
	t.Helper()
	if d.Ready {
		t.Error("ready on the way down")
	}
}
