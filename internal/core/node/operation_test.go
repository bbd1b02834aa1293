package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node/operation"
)

func TestWhenAnOperationIsNotBegun(t *testing.T) {
	of := func(o v1alpha1.OperationType, change func(*Facts)) Facts {
		f := serving()
		wantsOperation(&f)
		f.Record.Spec.Operations[0].Type = o
		return with1(f, change)
	}
	status := func(s facts.GossipStatus) func(*Facts) { return func(f *Facts) { f.JVM.Ring.Endpoints[1].Status = s } }
	least := func(text string) func(*Facts) {
		return func(f *Facts) {
			f.JVM.Ring.Keyspaces = map[string]string{"users": "SimpleStrategy {replication_factor=3}", "shop": text}
			f.Record.Spec.Operations[0].Arguments = &v1alpha1.OperationArguments{KeyspaceReplication: []v1alpha1.KeyspaceReplication{
				{Keyspace: "shop", Replication: map[string]int32{"dc1": 1, "dc2": 2}},
			}}
		}
	}
	removal := func(down ...int) func(*Facts) {
		return func(f *Facts) {
			for _, i := range down {
				f.JVM.Ring.Endpoints[i].Live = false
			}
			f.Record.Spec.Operations[0].Arguments = &v1alpha1.OperationArguments{HostID: f.JVM.Ring.Endpoints[1].HostID}
		}
	}
	closed := func(f *Facts) { f.JVM.Ring.NativeRunning, f.Record.Spec.ClientTraffic = false, v1alpha1.TrafficClosed }
	for name, c := range map[string]struct {
		facts Facts
		guard v1alpha1.Reason
		words string
	}{
		"a cleanup": {of(v1alpha1.OperationCleanup, nil), "", ""},
		"a cleanup with ranges on their way": {of(v1alpha1.OperationCleanup,
			func(f *Facts) { f.JVM.Ring.Pending = 3 }), "PendingRanges", "3 ranges"},
		"a cleanup while one has not heard of the schema": {of(v1alpha1.OperationCleanup,
			func(f *Facts) { f.JVM.Ring.Endpoints[2].SchemaVersion = "older" }), "SchemaVersionsDiffer",
			`the schema of 10.0.0.3 is "older"`},
		"a cleanup while a node joins": {of(v1alpha1.OperationCleanup, status(facts.StatusBootstrap)),
			"PendingRanges", "10.0.0.2 is BOOT"},
		"a cleanup while a node leaves": {of(v1alpha1.OperationCleanup, status(facts.StatusLeaving)),
			"PendingRanges", "10.0.0.2 is LEAVING"},
		"a cleanup while a node is stopped": {of(v1alpha1.OperationCleanup, status(facts.StatusShutdown)), "", ""},
		"a cleanup without CQL":             {of(v1alpha1.OperationCleanup, closed), "", ""},
		"a rebuild without CQL":             {of(v1alpha1.OperationRebuild, closed), "", ""},
		"a repair without CQL":              {of(v1alpha1.OperationRepair, closed), "", ""},
		"an import":                         {of(v1alpha1.OperationImportSuperuser, closed), "", ""},
		"an import while CQL is open": {of(v1alpha1.OperationImportSuperuser, nil), "ClientTrafficOpen",
			"before CQL opens"},
		"an import in place of what is there": {of(v1alpha1.OperationImportSuperuser, func(f *Facts) {
			f.Record.Spec.Operations[0].Arguments = &v1alpha1.OperationArguments{WrittenAt: &metav1.Time{}}
		}), "", ""},
		"roles":             {of(v1alpha1.OperationSetRoles, nil), "", ""},
		"roles without CQL": {of(v1alpha1.OperationSetRoles, closed), "NativeTransportClosed", "CQL"},
		"roles while a node is stopped": {of(v1alpha1.OperationSetRoles, status(facts.StatusShutdown)),
			"MemberNotNormal", "10.0.0.2 is SHUTDOWN"},
		"a login":                {of(v1alpha1.OperationProveLogin, nil), "", ""},
		"a login without CQL":    {of(v1alpha1.OperationProveLogin, closed), "NativeTransportClosed", "it needs CQL"},
		"a password":             {of(v1alpha1.OperationSetPassword, nil), "", ""},
		"a password without CQL": {of(v1alpha1.OperationSetPassword, closed), "NativeTransportClosed", "needs CQL"},
		"keyspaces altered without CQL": {of(v1alpha1.OperationAlterKeyspaces, closed),
			"NativeTransportClosed", "CQL"},
		"keyspaces altered while a node joins": {of(v1alpha1.OperationAlterKeyspaces, status(facts.StatusBootstrap)),
			"MemberNotNormal", "10.0.0.2 is BOOT"},
		"system ones altered, a node is stopped": {of(v1alpha1.OperationAlterSystemKeyspaces,
			status(facts.StatusShutdown)), "MemberNotNormal", "10.0.0.2 is SHUTDOWN"},
		"keyspaces altered, a node has left": {of(v1alpha1.OperationAlterKeyspaces,
			func(f *Facts) { status(facts.StatusLeft)(f); f.Memory.Neighbours = []string{"10.0.0.3"} }), "", ""},
		"a decommission": {of(v1alpha1.OperationDecommission, nil), "", ""},
		"a decommission that has failed, 4.1": {of(v1alpha1.OperationDecommission,
			func(f *Facts) { f.JVM.Ring.Mode = facts.ModeLeaving }), "", ""},
		"a decommission that has failed, 5.0": {of(v1alpha1.OperationDecommission,
			func(f *Facts) { f.JVM.Ring.Mode = facts.ModeDecommissionFailed }), "", ""},
		"a decommission of a node that joins": {of(v1alpha1.OperationDecommission,
			func(f *Facts) { f.JVM.Ring.Mode = facts.ModeMoving }), "NodeNotNormal", "not NORMAL"},
		"a decommission while a node leaves": {of(v1alpha1.OperationDecommission, status(facts.StatusLeaving)),
			"MemberNotNormal", "10.0.0.2 is LEAVING"},
		"a decommission while a node is stopped": {of(v1alpha1.OperationDecommission, status(facts.StatusShutdown)),
			"MemberNotNormal", "10.0.0.2 is down"},
		"a decommission while a node is unreachable": {of(v1alpha1.OperationDecommission,
			func(f *Facts) { f.JVM.Ring.Endpoints[1].Live = false }), "MemberNotNormal", "10.0.0.2 is down"},
		"a removal of a node that is down": {of(v1alpha1.OperationRemoveNode, removal(1)), "", ""},
		"a removal of a node that is up": {of(v1alpha1.OperationRemoveNode, removal()), "MemberNotNormal",
			"is up at 10.0.0.2"},
		"a removal while another node is down": {of(v1alpha1.OperationRemoveNode, removal(1, 2)), "MemberNotNormal",
			"10.0.0.3 is down"},
		"a decommission after another": {of(v1alpha1.OperationDecommission, func(f *Facts) {
			f.JVM.Ring.Endpoints[1].Status, f.JVM.Ring.Endpoints[1].Tokens = facts.StatusLeft, nil
			f.JVM.Ring.Endpoints[1].Live, f.Memory.Neighbours = false, []string{"10.0.0.3"}
		}), "", ""},
		"a decommission with ranges on their way": {of(v1alpha1.OperationDecommission,
			func(f *Facts) { f.JVM.Ring.Pending = 3 }), "PendingRanges", "3 ranges"},
		"a decommission while one has not heard of the schema": {of(v1alpha1.OperationDecommission,
			func(f *Facts) { f.JVM.Ring.Endpoints[2].SchemaVersion = "older" }), "SchemaVersionsDiffer", "10.0.0.3"},
		"a rebuild while the node leaves": {of(v1alpha1.OperationRebuild,
			func(f *Facts) { f.JVM.Ring.Mode = facts.ModeLeaving }), "NodeNotNormal", "not NORMAL"},
		"a repair while the JVM is silent": {of(v1alpha1.OperationRepair,
			func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }), "NodeNotNormal",
			"not NORMAL"},
		"a rebuild of a keyspace not known yet": {of(v1alpha1.OperationRebuild,
			func(f *Facts) { least("")(f); delete(f.JVM.Ring.Keyspaces, "shop") }), "ReplicationUnknown",
			"keyspace shop"},
		"a rebuild by an older schema": {of(v1alpha1.OperationRebuild,
			least("NetworkTopologyStrategy {dc1=3}")), "ReplicationUnknown",
			"shop is to have 2 replicas in datacenter dc2 and has, as far as this node knows, " +
				"NetworkTopologyStrategy {dc1=3}"},
		"a repair by an older schema": {of(v1alpha1.OperationRepair,
			least("NetworkTopologyStrategy {dc1=3, dc2=1}")), "ReplicationUnknown", "2 replicas in datacenter dc2"},
		"a repair by one that cannot be read": {of(v1alpha1.OperationRepair, least("odd")), "ReplicationUnknown",
			"odd"},
		"a repair by a schema that is enough": {of(v1alpha1.OperationRepair,
			least("NetworkTopologyStrategy {dc1=3, dc2=2}")), "", ""},
		"a rebuild by a schema that is enough": {of(v1alpha1.OperationRebuild,
			least("NetworkTopologyStrategy {dc1=1, dc2=3}")), "", ""},
		"an alteration, whose purpose that is": {of(v1alpha1.OperationAlterKeyspaces,
			least("NetworkTopologyStrategy {dc1=3}")), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(c.facts, epoch)
			if c.guard == "" {
				if d.Action == nil || KindOf(d.Action) != "RunOperation" || d.Status.Blocked != nil {
					t.Errorf("action %v, blocked %+v", d.Action, d.Status.Blocked)
				}
				return
			}
			b := d.Status.Blocked
			if d.Action != nil || b == nil || b.Reason != c.guard || !strings.Contains(b.Message, c.words) ||
				!strings.Contains(b.Message, "op-1") || !d.Again.Equal(at(5*time.Second)) {
				t.Errorf("action %v, blocked %+v, again at %s", d.Action, b, d.Again)
			}
		})
	}
	// Data is removed on a look that is seconds old at most.
	if got := next(of(v1alpha1.OperationCleanup,
		func(f *Facts) {
			f.JVM.AskedAt, f.JVM.AnsweredAt = at(-3*time.Second), at(-3*time.Second)
		})); got != "RunOperation" {
		t.Errorf("action %q on a look that is new enough", got)
	}
	if got := next(of(v1alpha1.OperationCleanup,
		func(f *Facts) {
			f.JVM.AskedAt, f.JVM.AnsweredAt = at(-4*time.Second), at(-4*time.Second)
		})); got != "LookAtRing" {
		t.Errorf("action %q on an old look", got)
	}
}

func TestOperationsSideBySide(t *testing.T) {
	const (
		system, alter, cleanup, rebuild, repair, assassinate = v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationCleanup,
			v1alpha1.OperationRebuild, v1alpha1.OperationRepair, v1alpha1.OperationAssassinate
	)
	types := func(list ...v1alpha1.OperationType) []v1alpha1.OperationType { return list }
	for name, c := range map[string]struct {
		running []v1alpha1.OperationType // in the journal
		wanted  []v1alpha1.OperationType
		begins  int // which of the wanted ones; -1 for none
		waits   string
	}{
		"one after the other":          {types(), types(repair, cleanup), 0, ""},
		"repair and cleanup":           {types(repair), types(cleanup), -1, "run-0 (Repair) runs"},
		"rebuild and repair":           {types(rebuild), types(repair), -1, "run-0 (Rebuild) runs"},
		"cleanup and rebuild":          {types(cleanup), types(rebuild), -1, "run-0 (Cleanup) runs"},
		"two repairs":                  {types(repair), types(repair), -1, "run-0 (Repair) runs"},
		"repair and alteration":        {types(repair), types(alter), 0, ""},
		"alteration and repair":        {types(system), types(repair), 0, ""},
		"cleanup and alteration":       {types(cleanup), types(alter), -1, "run-0 (Cleanup) runs"},
		"system ones and cleanup":      {types(system), types(cleanup), -1, "run-0 (AlterSystemKeyspaces) runs"},
		"two alterations":              {types(system), types(alter), -1, "run-0 (AlterSystemKeyspaces) runs"},
		"alteration and assassinate":   {types(alter), types(assassinate), -1, "run-0 (AlterKeyspaces) runs"},
		"one waits, the next does not": {types(repair), types(cleanup, assassinate), 1, "run-0 (Repair) runs"},
		"two run, the third waits":     {types(repair, alter), types(cleanup), -1, "run-0 (Repair) runs"},
		"as many as a record can ask": {types(repair, alter, "Later1", "Later2"), types(repair), -1,
			"run-0 (Repair) runs"},
		"none of which conflicts": {types("Later1", "Later2", "Later3", "Later4"), types(repair), -1,
			"run-3 (Later4) runs"},
		"one less than that": {types("Later1", "Later2", "Later3"), types(repair), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := serving()
			for i, o := range c.running {
				id := fmt.Sprintf("run-%d", i)
				f.Memory.Operations = append(f.Memory.Operations,
					OperationMemory{ID: id, Type: o, Phase: v1alpha1.OperationRunning})
				f.Operations = append(f.Operations, Operation{ID: id})
			}
			for i, o := range c.wanted {
				f.Record.Spec.Operations = append(f.Record.Spec.Operations,
					v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: fmt.Sprintf("op-%d", i)}, Type: o})
			}
			d := Next(f, epoch)
			switch a := d.Action; {
			case c.begins < 0 && a != nil, c.begins >= 0 &&
				(KindOf(a) != "RunOperation" || as[RunOperation](a).Operation.ID != fmt.Sprintf("op-%d", c.begins)):
				t.Errorf("action %v", a)
			}
			switch b := d.Status.Blocked; {
			case (b != nil) != (c.waits != ""):
				t.Errorf("blocked %+v", b)
			case b != nil && (b.Reason != "ConflictingOperation" || !strings.Contains(b.Message, c.waits)):
				t.Errorf("blocked %+v, want %s", b, c.waits)
			}
		})
	}
}

func TestHowAnOperationEnds(t *testing.T) {
	percent := int32(40)
	lost := func(o *Operation) { o.Ended, o.CutOff, o.Failure = true, true, "cut off" }
	running := func(change func(*Operation)) Facts {
		f := serving()
		wantsOperation(&f)
		f.Memory.Operations = []OperationMemory{{ID: "op-1", Phase: v1alpha1.OperationRunning,
			Type: v1alpha1.OperationRepair, Incarnation: "i1", StartID: 3, BegunAt: ptr(-time.Minute),
			Arguments: &v1alpha1.OperationArguments{Full: true},
			Handle:    operation.Handle{Keyspace: "shop", Command: 7}}}
		f.Operations = []Operation{{ID: "op-1", Progress: &percent, Message: "keyspace shop, 2 of 5"}}
		if change != nil {
			change(&f.Operations[0])
		}
		return f
	}
	cancelled := func(f *Facts) {
		f.Record = f.Record.DeepCopy()
		f.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "op-1",
			Withdraw: &v1alpha1.Withdrawal{Reason: "the task is deleted", Cancel: true}}}}
	}
	for name, c := range map[string]struct {
		facts  Facts
		want   ActionKind
		failed bool
		why    string
	}{
		"it runs": {running(nil), "", false, ""},
		"it is done": {running(func(o *Operation) { o.Ended, o.Message = true, "cleaned up shop" }),
			"FinishOperation", false, "cleaned up shop"},
		"it failed": {running(func(o *Operation) { o.Ended, o.Failure = true, "no source" }),
			"FinishOperation", true, "no source"},
		"it is cancelled": {with1(running(nil), cancelled), "CancelOperation", false, "the task is deleted"},
		"it is withdrawn, and runs": {with1(with1(running(nil), cancelled), func(f *Facts) {
			f.Record.Spec.Operations[0].Withdraw.Cancel = false
		}), "", false, ""},
		"it is cancelled already": {with1(running(func(o *Operation) { o.Cancelled = true }), cancelled), "", false, ""},
		"it is cancelled, and init is away": {with1(with1(running(nil), cancelled), func(f *Facts) { f.Init = Init{} }), "",
			false, ""},
		"it was cancelled": {with1(running(func(o *Operation) {
			o.Ended, o.Cancelled, o.Failure = true, true, "cancelled: interrupted"
		}), cancelled), "FinishOperation", true, "cancelled: interrupted"},
		"it was done before it was cancelled": {with1(running(func(o *Operation) {
			o.Ended, o.Cancelled, o.Message = true, true, "compacted shop"
		}), cancelled), "FinishOperation", false, "compacted shop"},
		"it is cancelled, and another agent had it": {with1(running(func(o *Operation) { o.ID = "op-0" }), cancelled),
			"ResumeOperation", false, "continues in the JVM"},
		"it was lost sight of": {running(lost), "ResumeOperation", false, "continues in the JVM"},
		"it was lost sight of, and its JVM is silent": {with1(running(lost),
			func(f *Facts) { f.JVM.Problem = "refused" }), "", false, ""},
		"it was lost sight of, and its JVM is stopped": {with1(running(lost), func(f *Facts) {
			f.Memory.Stop = &StopMemory{Incarnation: "i1", StartID: 3, BegunAt: epoch, TermAt: ptr(0)}
		}), "", false, ""},
		"another agent had it": {running(func(o *Operation) { o.ID = "op-0" }), "ResumeOperation", false,
			"continues in the JVM"},
		"another agent had it, and init is away": {with1(running(func(o *Operation) { o.ID = "op-0" }),
			func(f *Facts) { f.Init = Init{} }), "", false, ""},
		"another agent had it, on another JVM": {with1(running(func(o *Operation) { o.ID = "op-0" }),
			func(f *Facts) { f.Memory.Operations[0].StartID = 2 }), "InterruptOperation", false, "JVM ended"},
		"it failed with its JVM": {with1(running(func(o *Operation) { o.Ended, o.Failure = true, "connection lost" }),
			func(f *Facts) { f.Memory.Operations[0].StartID = 2 }), "InterruptOperation", false, "JVM ended"},
		"it was done before": {with1(running(func(o *Operation) { o.Ended = true }),
			func(f *Facts) { f.Memory.Operations[0].StartID = 2 }), "FinishOperation", false, ""},
		"it failed, no JVM runs": {with1(running(func(o *Operation) { o.Ended, o.Failure = true, "lost" }),
			func(f *Facts) { f.Init.Process, f.Memory.Start.EndedAt = nil, ptr(0) }), "InterruptOperation", false,
			"JVM ended"},
		"the end was taken in": {with1(running(func(o *Operation) { o.Ended = true }),
			func(f *Facts) { f.Memory.Operations[0].Phase = v1alpha1.OperationSucceeded }), "", false, ""},
		"init is away for a moment": {with1(running(nil), func(f *Facts) { f.Init = Init{} }), "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(c.facts, epoch)
			if next(c.facts) != c.want {
				t.Fatalf("action %v, want %s", d.Action, c.want)
			}
			ends, interrupts := as[FinishOperation](d.Action), as[InterruptOperation](d.Action)
			id := ends.ID + interrupts.ID + as[CancelOperation](d.Action).ID
			if cancelled := strings.Contains(name, "was cancelled") && !strings.Contains(name, "done"); cancelled &&
				!ends.Cancelled {
				t.Errorf("action %+v", d.Action)
			}
			if a := as[ResumeOperation](d.Action); a.Operation != nil {
				if cancel := a.Operation.Withdraw != nil && a.Operation.Withdraw.Cancel; cancel !=
					strings.Contains(name, "cancelled") {
					t.Errorf("resumed to be cancelled: %v", cancel)
				}
				if id = a.Operation.ID; a.Handle.Command != 7 || !a.Operation.Arguments.Full ||
					a.Operation.Type != v1alpha1.OperationRepair {
					t.Errorf("action %+v", a)
				}
			}
			if a := d.Action; a != nil && (ends.Failed != c.failed || !strings.Contains(a.Because(), c.why) ||
				id != "op-1") {
				t.Errorf("action %+v", a)
			}
		})
	}
	f := running(nil)
	f.JVM.Transfer = facts.Transfer{Plans: 1, Received: 3 << 29, ToReceive: 2 << 30}
	if o := reported(f).Operations[0]; o.Progress == nil || *o.Progress != 40 ||
		o.Message != "keyspace shop, 2 of 5; streams: received 1.5 of 2.0 GiB" {
		t.Errorf("operation %+v", o)
	}
	f.JVM.StartID = 2
	if o := reported(f).Operations[0]; o.Message != "keyspace shop, 2 of 5" {
		t.Errorf("operation %+v by the streams of another JVM", o)
	}
	f = running(nil)
	if o := reported(f).Operations[0]; o.Message != "keyspace shop, 2 of 5" {
		t.Errorf("operation %+v without streams", o)
	}
	f.Operations[0].ID = "op-0"
	if o := reported(f).Operations[0]; o.Progress != nil || o.Message != "" {
		t.Errorf("operation %+v by the words of another", o)
	}
	// Nothing waits for it: another intent is taken up meanwhile.
	f = running(nil)
	restart(&f)
	if got := next(f); got != "BeginRestart" {
		t.Errorf("action %q, want the restart", got)
	}
}
