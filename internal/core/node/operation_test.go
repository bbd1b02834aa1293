package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// two datacenters, of which this node is in the first.
func twoDatacenters() *facts.Ring {
	v := view()
	for i := range v.Endpoints[1:] {
		v.Endpoints[i+1].Datacenter = "dc2"
	}
	gone := endpoint("10.0.0.9", "", "r1", false)
	gone.Datacenter, gone.Status = "dc9", facts.StatusLeft
	v.Endpoints = append(v.Endpoints, gone)
	v.Keyspaces = map[string]string{
		"both": "NetworkTopologyStrategy {dc1=1, dc2=2}", "here": "NetworkTopologyStrategy {dc1=1}", "there": "NetworkTopologyStrategy {dc2=2}",
		"simple": "SimpleStrategy {replication_factor=2}", "single": "SimpleStrategy {replication_factor=1}",
	}
	return v
}

func TestTheKeyspacesOfAnOperation(t *testing.T) {
	for name, c := range map[string]struct {
		operation v1alpha1.OperationType
		arguments *v1alpha1.OperationArguments
		want      string // or a part of the error
		fails     bool
	}{
		"a cleanup of all":             {v1alpha1.OperationCleanup, nil, "both here simple single there", false},
		"a cleanup of some":            {v1alpha1.OperationCleanup, &v1alpha1.OperationArguments{Keyspaces: []string{"simple", "both"}}, "both simple", false},
		"a cleanup of a local one":     {v1alpha1.OperationCleanup, &v1alpha1.OperationArguments{Keyspaces: []string{"both", "system"}}, `"system" is not there, or is local`, true},
		"a repair of all":              {v1alpha1.OperationRepair, nil, "both simple there", false},
		"a repair of one replica":      {v1alpha1.OperationRepair, &v1alpha1.OperationArguments{Keyspaces: []string{"here"}}, "has one replica", true},
		"a repair of both":             {v1alpha1.OperationRepair, &v1alpha1.OperationArguments{Datacenters: []string{"dc1", "dc2"}, Full: true, Keyspaces: []string{"both"}}, "both", false},
		"a repair of others":           {v1alpha1.OperationRepair, &v1alpha1.OperationArguments{Datacenters: []string{"dc2"}, Full: true}, "do not include that of this node, dc1", true},
		"a repair of nobody":           {v1alpha1.OperationRepair, &v1alpha1.OperationArguments{Datacenters: []string{"dc1", "dc3"}, Full: true}, `"dc3" has no member`, true},
		"a rebuild of all":             {v1alpha1.OperationRebuild, &v1alpha1.OperationArguments{SourceDatacenter: "dc2"}, "both simple single", false},
		"a rebuild from nowhere":       {v1alpha1.OperationRebuild, &v1alpha1.OperationArguments{SourceDatacenter: "dc3"}, `"dc3" has no member: those of the ring are dc1, dc2`, true},
		"a rebuild from one that left": {v1alpha1.OperationRebuild, &v1alpha1.OperationArguments{SourceDatacenter: "dc9"}, `"dc9" has no member`, true},
		"a rebuild of what is here":    {v1alpha1.OperationRebuild, &v1alpha1.OperationArguments{SourceDatacenter: "dc2", Keyspaces: []string{"here"}}, "no replica in the datacenter dc2", true},
		"a rebuild for nothing":        {v1alpha1.OperationRebuild, &v1alpha1.OperationArguments{SourceDatacenter: "dc2", Keyspaces: []string{"there"}}, "no replica in the datacenter of this node, dc1", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := KeyspacesOf(&v1alpha1.OperationIntent{Type: c.operation, Arguments: c.arguments}, twoDatacenters())
			switch {
			case (err != nil) != c.fails:
				t.Errorf("%v, error %v", got, err)
			case err != nil && !strings.Contains(err.Error(), c.want):
				t.Errorf("error %v, want %q", err, c.want)
			case err == nil && strings.Join(got, " ") != c.want:
				t.Errorf("%v, want %s", got, c.want)
			}
		})
	}
	strange := twoDatacenters()
	strange.Keyspaces["odd"] = "NetworkTopologyStrategy {dc1=3/1}"
	if _, err := KeyspacesOf(&v1alpha1.OperationIntent{Type: v1alpha1.OperationCleanup}, strange); err == nil || !strings.Contains(err.Error(), "keyspace odd") {
		t.Errorf("error %v", err)
	}
}

func TestWhenAnOperationIsNotBegun(t *testing.T) {
	of := func(o v1alpha1.OperationType, change func(*Facts)) Facts {
		f := serving()
		operation(&f)
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
	closed := func(f *Facts) { f.JVM.Ring.NativeRunning, f.Record.Spec.ClientTraffic = false, v1alpha1.TrafficClosed }
	for name, c := range map[string]struct {
		facts Facts
		guard v1alpha1.Reason
		words string
	}{
		"a cleanup":                              {of(v1alpha1.OperationCleanup, nil), "", ""},
		"a cleanup with ranges on their way":     {of(v1alpha1.OperationCleanup, func(f *Facts) { f.JVM.Ring.Pending = 3 }), "PendingRanges", "3 ranges"},
		"a cleanup while a node joins":           {of(v1alpha1.OperationCleanup, status(facts.StatusBootstrap)), "PendingRanges", "10.0.0.2 is BOOT"},
		"a cleanup while a node leaves":          {of(v1alpha1.OperationCleanup, status(facts.StatusLeaving)), "PendingRanges", "10.0.0.2 is LEAVING"},
		"a cleanup while a node is stopped":      {of(v1alpha1.OperationCleanup, status(facts.StatusShutdown)), "", ""},
		"a cleanup without CQL":                  {of(v1alpha1.OperationCleanup, closed), "", ""},
		"a rebuild without CQL":                  {of(v1alpha1.OperationRebuild, closed), "", ""},
		"a repair without CQL":                   {of(v1alpha1.OperationRepair, closed), "", ""},
		"keyspaces altered without CQL":          {of(v1alpha1.OperationAlterKeyspaces, closed), "NativeTransportClosed", "CQL"},
		"keyspaces altered while a node joins":   {of(v1alpha1.OperationAlterKeyspaces, status(facts.StatusBootstrap)), "MemberNotNormal", "10.0.0.2 is BOOT"},
		"system ones altered, a node is stopped": {of(v1alpha1.OperationAlterSystemKeyspaces, status(facts.StatusShutdown)), "MemberNotNormal", "10.0.0.2 is SHUTDOWN"},
		"keyspaces altered, a node has left":     {of(v1alpha1.OperationAlterKeyspaces, func(f *Facts) { status(facts.StatusLeft)(f); f.Memory.Neighbours = []string{"10.0.0.3"} }), "", ""},
		"a rebuild while the node leaves":        {of(v1alpha1.OperationRebuild, func(f *Facts) { f.JVM.Ring.Mode = facts.ModeLeaving }), "NodeNotNormal", "not NORMAL"},
		"a repair while the JVM is silent":       {of(v1alpha1.OperationRepair, func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }), "NodeNotNormal", "not NORMAL"},
		"a rebuild of a keyspace not known yet":  {of(v1alpha1.OperationRebuild, func(f *Facts) { least("")(f); delete(f.JVM.Ring.Keyspaces, "shop") }), "ReplicationUnknown", "keyspace shop"},
		"a rebuild by an older schema":           {of(v1alpha1.OperationRebuild, least("NetworkTopologyStrategy {dc1=3}")), "ReplicationUnknown", "shop is to have 2 replicas in datacenter dc2 and has, as far as this node knows, NetworkTopologyStrategy {dc1=3}"},
		"a repair by an older schema":            {of(v1alpha1.OperationRepair, least("NetworkTopologyStrategy {dc1=3, dc2=1}")), "ReplicationUnknown", "2 replicas in datacenter dc2"},
		"a repair by one that cannot be read":    {of(v1alpha1.OperationRepair, least("odd")), "ReplicationUnknown", "odd"},
		"a repair by a schema that is enough":    {of(v1alpha1.OperationRepair, least("NetworkTopologyStrategy {dc1=3, dc2=2}")), "", ""},
		"a rebuild by a schema that is enough":   {of(v1alpha1.OperationRebuild, least("NetworkTopologyStrategy {dc1=1, dc2=3}")), "", ""},
		"an alteration, whose purpose that is":   {of(v1alpha1.OperationAlterKeyspaces, least("NetworkTopologyStrategy {dc1=3}")), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(c.facts, epoch)
			if c.guard == "" {
				if d.Action == nil || d.Action.Kind != RunOperation || d.Status.Blocked != nil {
					t.Errorf("action %v, blocked %+v", d.Action, d.Status.Blocked)
				}
				return
			}
			b := d.Status.Blocked
			if d.Action != nil || b == nil || b.Reason != c.guard || !strings.Contains(b.Message, c.words) || !strings.Contains(b.Message, "op-1") || !d.Again.Equal(at(5*time.Second)) {
				t.Errorf("action %v, blocked %+v, again at %s", d.Action, b, d.Again)
			}
		})
	}
	// Data is removed on a look that is seconds old at most.
	if got := next(of(v1alpha1.OperationCleanup, func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(-3*time.Second), at(-3*time.Second) })); got != RunOperation {
		t.Errorf("action %q on a look that is new enough", got)
	}
	if got := next(of(v1alpha1.OperationCleanup, func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(-4*time.Second), at(-4*time.Second) })); got != LookAtRing {
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
		"as many as a record can ask":  {types(repair, alter, "Later1", "Later2"), types(repair), -1, "run-0 (Repair) runs"},
		"none of which conflicts":      {types("Later1", "Later2", "Later3", "Later4"), types(repair), -1, "run-3 (Later4) runs"},
		"one less than that":           {types("Later1", "Later2", "Later3"), types(repair), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := serving()
			for i, o := range c.running {
				id := fmt.Sprintf("run-%d", i)
				f.Memory.Operations = append(f.Memory.Operations, OperationMemory{ID: id, Type: o, Phase: v1alpha1.OperationRunning})
				f.Operations = append(f.Operations, Operation{ID: id, Incarnation: "i1", StartID: 3})
			}
			for i, o := range c.wanted {
				f.Record.Spec.Operations = append(f.Record.Spec.Operations, v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: fmt.Sprintf("op-%d", i)}, Type: o})
			}
			d := Next(f, epoch)
			switch a := d.Action; {
			case c.begins < 0 && a != nil, c.begins >= 0 && (a == nil || a.Kind != RunOperation || a.ID != fmt.Sprintf("op-%d", c.begins)):
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
	running := func(change func(*Operation)) Facts {
		f := serving()
		operation(&f)
		f.Memory.Operations = []OperationMemory{{ID: "op-1", Phase: v1alpha1.OperationRunning, BegunAt: ptr(-time.Minute)}}
		f.Operations = []Operation{{ID: "op-1", Incarnation: "i1", StartID: 3, Progress: &percent, Message: "keyspace shop, 2 of 5"}}
		if change != nil {
			change(&f.Operations[0])
		}
		return f
	}
	for name, c := range map[string]struct {
		facts  Facts
		want   ActionKind
		failed bool
		why    string
	}{
		"it runs":                   {running(nil), "", false, ""},
		"it is done":                {running(func(o *Operation) { o.Ended, o.Message = true, "cleaned up shop" }), FinishOperation, false, "cleaned up shop"},
		"it failed":                 {running(func(o *Operation) { o.Ended, o.Failure = true, "no source" }), FinishOperation, true, "no source"},
		"nobody knows":              {running(func(o *Operation) { o.Ended, o.CutOff, o.Failure = true, true, "cut off" }), InterruptOperation, false, "cut off"},
		"another agent had it":      {running(func(o *Operation) { o.ID = "op-0" }), InterruptOperation, false, "agent ended"},
		"it failed with its JVM":    {running(func(o *Operation) { o.Ended, o.Failure, o.StartID = true, "connection lost", 2 }), InterruptOperation, false, "JVM ended"},
		"it was done before":        {running(func(o *Operation) { o.Ended, o.StartID = true, 2 }), FinishOperation, false, ""},
		"it failed, no JVM runs":    {with1(running(func(o *Operation) { o.Ended, o.Failure = true, "lost" }), func(f *Facts) { f.Init.Process, f.Memory.Start.EndedAt = nil, ptr(0) }), InterruptOperation, false, "JVM ended"},
		"the end was taken in":      {with1(running(func(o *Operation) { o.Ended = true }), func(f *Facts) { f.Memory.Operations[0].Phase = v1alpha1.OperationSucceeded }), "", false, ""},
		"init is away for a moment": {with1(running(nil), func(f *Facts) { f.Init = Init{} }), "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(c.facts, epoch)
			if next(c.facts) != c.want {
				t.Fatalf("action %v, want %s", d.Action, c.want)
			}
			if a := d.Action; a != nil && (a.Failed != c.failed || !strings.Contains(a.Why, c.why) || a.ID != "op-1") {
				t.Errorf("action %+v", a)
			}
		})
	}
	f := running(nil)
	f.JVM.Transfer = facts.Transfer{Plans: 1, Received: 3 << 29, ToReceive: 2 << 30}
	if o := reported(f).Operations[0]; o.Progress == nil || *o.Progress != 40 || o.Message != "keyspace shop, 2 of 5; streams: received 1.5 of 2.0 GiB" {
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
	if got := next(f); got != BeginRestart {
		t.Errorf("action %q, want the restart", got)
	}
}

func TestHowAMemberSeesATryThatIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Endpoint)
		want   Try
	}{
		"on its way and down":  {func(*facts.Endpoint) {}, TryIsKnown},
		"elsewhere":            {func(e *facts.Endpoint) { e.Address = "10.0.0.78" }, TryIsForgotten},
		"left":                 {func(e *facts.Endpoint) { e.Status = facts.StatusLeft }, TryHasLeft},
		"removed":              {func(e *facts.Endpoint) { e.Status = facts.StatusRemoved }, TryHasLeft},
		"up":                   {func(e *facts.Endpoint) { e.Live = true }, TryIsNone},
		"a member":             {func(e *facts.Endpoint) { e.Status = facts.StatusNormal }, TryIsNone},
		"a member that leaves": {func(e *facts.Endpoint) { e.Status = facts.StatusLeaving }, TryIsNone},
		"of unknown state":     {func(e *facts.Endpoint) { e.Status = facts.StatusUnknown }, TryIsNone},
	} {
		ring := view()
		e := endpoint("10.0.0.77", "host-x", "r1", false, 7)
		e.Status = facts.StatusBootstrap
		c.change(&e)
		ring.Endpoints = append(ring.Endpoints, e)
		got, why := TryAt(ring, "10.0.0.77", nil)
		if got != c.want || (why != "") != (got == TryIsNone) {
			t.Errorf("%s: %s %q, want %s", name, got, why, c.want)
		}
		if got, why := TryAt(ring, "10.0.0.77", []Peer{peer("10.0.0.77", "c", hostC)}); got != TryIsNone || !strings.Contains(why, "node c") {
			t.Errorf("%s, and a node is there: %s %q", name, got, why)
		}
	}
}
