package node

import (
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A table with a short gc_grace must not keep a node from a restart that takes seconds: NORMAL is
// written down only every few minutes.
func TestAShortGraceDoesNotBlockAQuickRestart(t *testing.T) {
	f := member()
	f.Memory.GCGrace, f.Memory.NormalAt = time.Minute, ptr(-normalEvery)
	if got := checkGCGrace(&pass{Facts: &f, now: at(0)}); got != done {
		t.Errorf("outcome %+v, want none", got)
	}
	f.Memory.NormalAt = ptr(-normalEvery - 2*time.Minute)
	if got := checkGCGrace(&pass{Facts: &f, now: at(0)}); got == done {
		t.Error("a node that was away for two minutes longer was let start")
	}
}

// Deletions are forgotten only by nodes that are up. Those of an adopted cluster were all down.
// What worked there says nothing of this cluster's spec.
func TestAnAdoptedDiskWasNotAway(t *testing.T) {
	f := member()
	f.Memory.ClusterUID, f.Memory.NormalAt = "earlier", ptr(-1000*time.Hour)
	f.Memory.Proven = &ProvenMemory{PodTemplate: "template"}
	m := After(&f, ClaimDisk{Cluster: f.Self.ClusterUID})
	if m.NormalAt != nil || m.Proven != nil || m.ClusterUID != f.Self.ClusterUID {
		t.Errorf("last NORMAL at %v of cluster %s, want nothing of this one", m.NormalAt, m.ClusterUID)
	}
	f.Memory.ClusterUID = f.Self.ClusterUID
	if m := After(&f, ClaimDisk{Cluster: f.Self.ClusterUID}); m.NormalAt == nil {
		t.Error("the node's own disk forgot when it was NORMAL")
	}
}

// tooLong is a member that was away for longer than deletions are kept.
func tooLong() Facts {
	f := member()
	f.Memory.GCGrace, f.Memory.NormalAt = time.Hour, ptr(-2*time.Hour)
	f.Record.Spec.StartAnyway = &v1alpha1.StartAnyway{HostID: hostA, Reason: "x", Until: *metaTime(time.Minute)}
	return f
}

func TestAWordLetsOneMemberStartForATime(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		starts bool
	}{
		"for it":       {func(*Facts) {}, true},
		"none":         {func(f *Facts) { f.Record.Spec.StartAnyway = nil }, false},
		"for another":  {func(f *Facts) { f.Record.Spec.StartAnyway.HostID = hostB }, false},
		"that is over": {func(f *Facts) { f.Record.Spec.StartAnyway.Until = *metaTime(0) }, false},
	} {
		f := tooLong()
		c.change(&f)
		if got := checkGCGrace(&pass{Facts: &f, now: at(0)}); (got == done) != c.starts {
			t.Errorf("with a word %s: %+v", name, got)
		}
	}
}

func reasons(m Memory) []v1alpha1.RepairReason {
	var out []v1alpha1.RepairReason
	for _, d := range m.RepairDue {
		out = append(out, d.Reason)
	}
	return out
}

func TestWhyARepairIsDue(t *testing.T) {
	start := StartJVM{Start: &StartArguments{Incarnation: "i1", StartID: 4}}
	normal := func(window, away time.Duration) Facts {
		f := serving()
		f.Memory.Start.NormalAt, f.Memory.NormalAt, f.Configuration.HintWindow = nil, ptr(-away), window
		return f
	}
	disk := func(change func(*Disk)) Facts {
		f := member()
		f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: v1alpha1.VolumeCommitlog})
		change(&f.Disk)
		return f
	}
	long := tooLong()
	for name, c := range map[string]struct {
		f      Facts
		action Action
		want   []v1alpha1.RepairReason
	}{
		"a start in time":        {member(), start, nil},
		"a start in spite":       {long, start, []v1alpha1.RepairReason{v1alpha1.RepairDownLongerThanGCGrace}},
		"away within the window": {normal(3*time.Hour, 2*time.Hour), NoteNormal{}, nil},
		"away for longer": {normal(3*time.Hour, 4*time.Hour), NoteNormal{},
			[]v1alpha1.RepairReason{v1alpha1.RepairAwayLongerThanHintWindow}},
		"away without hints": {normal(0, time.Minute), NoteNormal{},
			[]v1alpha1.RepairReason{v1alpha1.RepairAwayLongerThanHintWindow}},
		"NORMAL again and again": {serving(), NoteNormal{}, nil},
		"a scrub": {serving(), RunOperation{Operation: &v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: "o-1"},
			Type: v1alpha1.OperationScrub}}, []v1alpha1.RepairReason{v1alpha1.RepairScrubbed}},
		"a compaction": {serving(), RunOperation{Operation: &v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: "o-1"},
			Type: v1alpha1.OperationCompact}}, nil},
		"another commit log volume": {disk(func(*Disk) {}), ClaimDisk{Cluster: uid},
			[]v1alpha1.RepairReason{v1alpha1.RepairCommitLogLost}},
		"its own":           {disk(func(d *Disk) { d.Volumes[1].Marker = marker }), ClaimDisk{Cluster: uid}, nil},
		"the first start":   {disk(func(d *Disk) { d.HasData = false }), ClaimDisk{Cluster: uid}, nil},
		"a disk of unknown": {disk(func(d *Disk) { d.Volumes[0].Marker = nil }), ClaimDisk{Cluster: uid}, nil},
	} {
		if got := reasons(Before(&c.f, c.action, at(0))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Only a repair of all that the node holds counts, and for what was due when it began.
func TestARepairEndsWhatWasDueBefore(t *testing.T) {
	for name, c := range map[string]struct {
		arguments v1alpha1.OperationArguments
		failed    bool
		since     time.Duration
		ends      bool
	}{
		"full":        {v1alpha1.OperationArguments{Full: true}, false, -time.Hour, true},
		"incremental": {v1alpha1.OperationArguments{}, false, -time.Hour, false},
		"of a keyspace": {v1alpha1.OperationArguments{Full: true, Keyspaces: []string{"shop"}}, false, -time.Hour,
			false},
		"of a datacenter": {v1alpha1.OperationArguments{Full: true, Datacenters: []string{"dc1"}}, false, -time.Hour,
			false},
		"of primary ranges": {v1alpha1.OperationArguments{Full: true, PrimaryRange: true}, false, -time.Hour, false},
		"that failed":       {v1alpha1.OperationArguments{Full: true}, true, -time.Hour, false},
		"that began before": {v1alpha1.OperationArguments{Full: true}, false, -time.Second, false},
	} {
		f := serving()
		f.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "1/repair"},
			Type: v1alpha1.OperationRepair, Arguments: &c.arguments}}
		f.Memory.Operations = []OperationMemory{{ID: "1/repair", Type: v1alpha1.OperationRepair,
			Phase: v1alpha1.OperationRunning, BegunAt: ptr(-time.Minute)}}
		f.Memory.RepairDue = []v1alpha1.RepairDue{{Reason: v1alpha1.RepairCommitLogLost, Since: *metaTime(c.since)}}
		m := Before(&f, FinishOperation{ID: "1/repair", Failed: c.failed}, at(0))
		if got := len(m.RepairDue) == 0; got != c.ends {
			t.Errorf("a repair %s: due is %v", name, m.RepairDue)
		}
	}
}

// What the record names as repaired is over; what came up since is not.
func TestTheRecordEndsWhatIsRepaired(t *testing.T) {
	lost := func(since time.Duration) v1alpha1.RepairDue {
		return v1alpha1.RepairDue{Reason: v1alpha1.RepairCommitLogLost, Since: *metaTime(since)}
	}
	away := v1alpha1.RepairDue{Reason: v1alpha1.RepairAwayLongerThanHintWindow, Since: *metaTime(-time.Hour)}
	f := serving()
	f.Memory.RepairDue = []v1alpha1.RepairDue{lost(-time.Hour), away}
	f.Record.Spec.Repaired = []v1alpha1.RepairDue{lost(-time.Hour)}
	if m := Before(&f, KeepRecord{}, at(0)); !slices.Equal(m.RepairDue, []v1alpha1.RepairDue{away}) {
		t.Errorf("due is %v", m.RepairDue)
	}
	f.Record.Spec.Repaired = []v1alpha1.RepairDue{lost(-time.Minute)}
	if m := Before(&f, KeepRecord{}, at(0)); len(m.RepairDue) != 2 {
		t.Errorf("it was lost again, and due is %v", m.RepairDue)
	}
}

// The times in which a node was NORMAL are what others may go by: a JVM whose end nobody saw was
// NORMAL until shortly after that was last noted.
func TestTheTimesInWhichANodeWasNormal(t *testing.T) {
	f := serving()
	f.Memory.Start.NormalAt = nil
	f.Memory = Before(&f, NoteNormal{}, at(0))
	if want := []facts.Stretch{{From: at(0)}}; !slices.Equal(f.Memory.Normal, want) {
		t.Fatalf("NORMAL in %v, want %v", f.Memory.Normal, want)
	}
	for _, c := range []struct {
		exit  NoteExit
		until time.Duration
	}{
		{NoteExit{EndedAt: at(time.Hour)}, time.Hour},
		{NoteExit{EndedAt: at(time.Hour), Lost: true}, normalEvery},
		{NoteExit{EndedAt: at(time.Minute), Lost: true}, time.Minute},
	} {
		m := Before(&f, c.exit, at(2*time.Hour))
		if want := []facts.Stretch{{From: at(0), Until: at(c.until)}}; !slices.Equal(m.Normal, want) {
			t.Errorf("after %+v NORMAL in %v, want %v", c.exit, m.Normal, want)
		}
	}
}
