package node

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node/operation"
)

// written is what an action leaves in the journal before its effect.
func written(f Facts, a Action) Memory { return Before(&f, a, epoch) }

func wantTime(t *testing.T, what string, got, want *time.Time) {
	t.Helper()
	if (got == nil) != (want == nil) || got != nil && !got.Equal(*want) {
		t.Errorf("%s at %v, want %v", what, got, want)
	}
}

func TestAJournalBeginsOnANewDisk(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		begins bool
	}{
		"empty":                {nil, true},
		"not looked at":        {func(f *Facts) { f.Disk.Known = false }, false},
		"unreadable":           {func(f *Facts) { f.Disk.Problem = "I/O error" }, false},
		"with data":            {func(f *Facts) { f.Disk.HasData = true }, false},
		"marked as somebody's": {func(f *Facts) { mark(f, "other", self) }, false},
		"with additional ones": {func(f *Facts) {
			f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "scratch"})
		}, true},
		"without a data volume yet": {func(f *Facts) { f.Disk.Volumes = nil }, true},
	} {
		m := written(with1(fresh(), c.change), WithdrawJoin{ID: "form/1"})
		if begun := m.ClusterUID == uid && m.Node == self; begun != c.begins {
			t.Errorf("%s: journal of %q in %q, want one: %v", name, m.Node, m.ClusterUID, c.begins)
		}
	}
	f := with1(fresh(), func(f *Facts) { f.Memory = Memory{ClusterUID: "other", Node: "x"} })
	if m := written(f, WithdrawJoin{ID: "form/1"}); m.ClusterUID != "other" || m.Node != "x" {
		t.Errorf("the journal of %q in %q became this node's", m.Node, m.ClusterUID)
	}
}

func TestANodeGoesByNoOthersJournal(t *testing.T) {
	me := fresh().Self
	adopts := func(from string) *v1alpha1.CassandraNode {
		r := fresh().Record
		r.Spec.Cluster.AdoptedUID = "earlier"
		return with1(Facts{Record: r}, func(f *Facts) {
			if from == "" {
				f.Record.Spec.Cluster.AdoptedUID = ""
			}
		}).Record
	}
	for name, c := range map[string]struct {
		memory Memory
		record *v1alpha1.CassandraNode
		own    bool
	}{
		"a new one":                           {Memory{}, nil, true},
		"its own":                             {Memory{ClusterUID: uid, Node: self}, nil, true},
		"its own, while it adopts":            {Memory{ClusterUID: uid, Node: self}, adopts("earlier"), true},
		"another node's":                      {Memory{ClusterUID: uid, Node: "x"}, nil, false},
		"that of the node it adopts":          {Memory{ClusterUID: "earlier", Node: self}, adopts("earlier"), true},
		"that of another node it could adopt": {Memory{ClusterUID: "earlier", Node: "x"}, adopts("earlier"), false},
		"that of an earlier cluster":          {Memory{ClusterUID: "earlier", Node: self}, adopts(""), false},
		"that of a third cluster, it adopts":  {Memory{ClusterUID: "third", Node: self}, adopts("earlier"), false},
		"another's, before it knows a record": {Memory{ClusterUID: "earlier", Node: self}, nil, false},
	} {
		c.memory.Neighbours = []string{"10.0.0.2"}
		if got := Own(c.memory, me, c.record); (len(got.Neighbours) > 0) != c.own {
			t.Errorf("%s: %+v, want it taken: %v", name, got, c.own)
		}
	}
}

func TestTheRecordOfTheJournalIsTheOneThatWasSeen(t *testing.T) {
	f := with1(claimed(), func(f *Facts) {
		f.Record.Spec.Join = newTicket()
		f.Record.Generation = 4
		f.Seeds = []string{"10.0.0.9"}
	})
	m := written(f, KeepRecord{})
	got := m.Record.Object(self)
	if got.Name != self || got.UID != f.Record.UID || got.Generation != 4 ||
		!reflect.DeepEqual(got.Spec, f.Record.Spec) || m.Seeds[0] != "10.0.0.9" {
		t.Errorf("record %+v, seeds %v", got, m.Seeds)
	}
	if got := (Memory{}).Record.Object(self); got != nil {
		t.Errorf("record %+v of a journal that has none", got)
	}
}

func TestTheRecordIsKeptInTheNodesOwnJournalAlone(t *testing.T) {
	for name, c := range map[string]struct {
		memory Memory
		want   ActionKind
	}{
		"its own":                     {Memory{ClusterUID: uid, Node: self}, "KeepRecord"},
		"none yet":                    {Memory{}, ""},
		"of another node":             {Memory{ClusterUID: uid, Node: "x"}, ""},
		"of a cluster that it adopts": {Memory{ClusterUID: "earlier", Node: self}, ""},
	} {
		if got := next(with1(fresh(), func(f *Facts) { f.Memory = c.memory })); got != c.want {
			t.Errorf("%s: action %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatAStartLeavesInTheJournal(t *testing.T) {
	start := StartJVM{Start: &StartArguments{Incarnation: "i1", StartID: 4, Ticket: newTicket(), Hash: "hash-1",
		Seeds: []string{"10.0.0.2"}}}
	f := with1(ticketed(), func(f *Facts) {
		f.Memory.Stop = &StopMemory{}
		f.Record.Spec.Replaced = []v1alpha1.ReplacedMember{{HostID: hostC}, {HostID: hostB}, {HostID: hostC}}
	})
	m := written(f, start)
	if j := m.Join; j.ID != "form/1" || j.Mode != v1alpha1.JoinNew || !sameTokens(j.Tokens, []string{"5", "-5"}) ||
		j.SystemAuthReplicationFactor != 3 || j.over() {
		t.Errorf("ticket %+v", j)
	}
	wantTime(t, "ticket begun", m.Join.BegunAt, ptr(0))
	if s := m.Start; s.PodUID != "pod-1" || !s.Is("i1", 4) || s.Is("i1", 3) || s.Is("i0", 4) || s.Hash != "hash-1" ||
		s.Seeds[0] != "10.0.0.2" || s.Joined || s.NormalAt != nil || s.EndedAt != nil {
		t.Errorf("start %+v", s)
	}
	if m.Stop != nil || !reflect.DeepEqual(m.Replaced, []string{hostB, hostC}) ||
		m.Addresses[0] != (facts.AddressUse{Address: address, LastUsed: epoch}) {
		t.Errorf("stop %v, replaced %v, addresses %v", m.Stop, m.Replaced, m.Addresses)
	}
	// The ticket that was begun is not begun again; another one is.
	f.Memory.Join = &JoinMemory{IntentMemory: IntentMemory{ID: "form/1", BegunAt: ptr(-time.Hour)}}
	wantTime(t, "ticket begun", written(f, start).Join.BegunAt, ptr(-time.Hour))
	f.Memory.Join.ID = "form/0"
	wantTime(t, "ticket begun", written(f, start).Join.BegunAt, ptr(0))
	start.Start.Ticket = nil
	if j := written(f, start).Join; j.ID != "form/0" {
		t.Errorf("a start without a ticket began %+v", j)
	}
	f.Disk.Bootstrapped = WordCompleted
	if !written(f, start).Start.Joined {
		t.Error("the journal does not say that the disk had joined before the start")
	}
}

// A JVM that is stopped as soon as it is NORMAL has written on its disk all the same.
func TestAStopNotesTheReleaseThatIsNormal(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"it is NORMAL":         {func(*Facts) {}, "5.1.0"},
		"it starts":            {func(f *Facts) { f.JVM.Ring.Mode = facts.ModeStarting }, "5.0.6"},
		"nothing is known":     {func(f *Facts) { f.JVM.Ring = nil }, "5.0.6"},
		"another JVM said so":  {func(f *Facts) { f.JVM.StartID++ }, "5.0.6"},
		"its line is a former": {func(f *Facts) { f.JVM.Ring.ReleaseVersion = "4.1.10" }, "5.0.6"},
	} {
		f := with1(serving(), func(f *Facts) {
			f.Memory.Release, f.JVM.Ring.ReleaseVersion = "5.0.6", "5.1.0"
			c.change(f)
		})
		for _, a := range []Action{BeginStop{}, Drain{}} {
			if m := Before(&f, a, epoch); m.Release != c.want {
				t.Errorf("%s: %s notes release %s, want %s", name, KindOf(a), m.Release, c.want)
			}
		}
	}
}

func TestWhatNormalLeavesInTheJournal(t *testing.T) {
	hour := time.Hour
	f := with1(serving(), func(f *Facts) {
		f.JVM.GCGrace, f.Memory.Start.NormalAt = &hour, nil
		f.Memory.Addresses = []facts.AddressUse{{Address: "10.9.9.9", LastUsed: at(-time.Hour)},
			{Address: address, LastUsed: at(-time.Minute)}}
		f.Record.Spec.Replaced = []v1alpha1.ReplacedMember{{HostID: hostC}}
		f.Self.PodTemplate, f.Memory.Start.Hash = "template", "settings"
	})
	normal := NoteNormal{Neighbours: []string{"10.0.0.7"}}
	m := written(f, normal)
	wantTime(t, "NORMAL", m.NormalAt, ptr(0))
	wantTime(t, "the JVM was first NORMAL", m.Start.NormalAt, ptr(0))
	if f.Memory.Start.NormalAt != nil {
		t.Error("what was remembered before has changed")
	}
	want := []facts.AddressUse{{Address: address, LastUsed: epoch}, {Address: "10.9.9.9", LastUsed: at(-time.Hour)}}
	if m.GCGrace != hour || m.Neighbours[0] != "10.0.0.7" || !reflect.DeepEqual(m.Addresses, want) ||
		m.Replaced[0] != hostC {
		t.Errorf("gc_grace %s, neighbours %v, addresses %v, replaced %v", m.GCGrace, m.Neighbours, m.Addresses,
			m.Replaced)
	}
	if m.Proven == nil || *m.Proven != (ProvenMemory{PodTemplate: "template", Configuration: "settings"}) {
		t.Errorf("proven with %+v", m.Proven)
	}
	if m.Release != "5.0.6" {
		t.Errorf("the disk has release %q", m.Release)
	}
	f.Memory, f.JVM.GCGrace = m, nil
	f.JVM.Ring.ReleaseVersion = "4.1.10" // an image of another release than the record says
	again := Before(&f, normal, at(time.Hour))
	if again.Release != "5.0.6" {
		t.Errorf("the disk has release %q", again.Release)
	}
	wantTime(t, "the JVM was first NORMAL", again.Start.NormalAt, ptr(0))
	wantTime(t, "NORMAL", again.NormalAt, ptr(time.Hour))
	if again.GCGrace != hour {
		t.Errorf("gc_grace %s was forgotten", again.GCGrace)
	}
}

func TestWhatJoinsAndLeavesLeaveInTheJournal(t *testing.T) {
	m := written(joined(), FinishJoin{HostID: hostA, Tokens: []string{"1"}, Neighbours: []string{"10.0.0.7"}})
	if m.Member == nil || m.Member.HostID != hostA || m.Member.Tokens[0] != "1" || !m.Member.Since.Equal(epoch) ||
		m.Neighbours[0] != "10.0.0.7" || !m.Join.over() {
		t.Errorf("member %+v, neighbours %v, ticket %+v", m.Member, m.Neighbours, m.Join)
	}
	wantTime(t, "ticket finished", m.Join.FinishedAt, ptr(0))
	without := with1(joined(), func(f *Facts) { f.Memory.Join = nil })
	if m := written(without, FinishJoin{HostID: hostA}); m.Member == nil || m.Join != nil {
		t.Errorf("member %+v, ticket %+v", m.Member, m.Join)
	}
	wantTime(t, "left", written(serving(), NoteLeft{}).LeftAt, ptr(0))

	// A ticket that was begun stays the one that was begun.
	m = written(joining(), WithdrawJoin{ID: "form/1", Why: "too late"})
	if m.Join.Message != "too late" || m.Join.BegunAt == nil || m.Join.Mode != v1alpha1.JoinNew || !m.Join.over() {
		t.Errorf("ticket %+v", m.Join)
	}
	wantTime(t, "ticket withdrawn", m.Join.WithdrawnAt, ptr(0))
	m = written(joining(), WithdrawJoin{ID: "form/2", Why: "too late"})
	if m.Join.ID != "form/2" || m.Join.BegunAt != nil || m.Join.Mode != "" || !m.Join.over() {
		t.Errorf("ticket %+v", m.Join)
	}
}

func TestWhatTrafficLeavesInTheJournal(t *testing.T) {
	f := serving()
	f.Memory.TrafficOpenedAt = nil
	wantTime(t, "first opened", written(f, OpenTraffic{}).TrafficOpenedAt, ptr(0))
	wantTime(t, "first opened", written(serving(), OpenTraffic{}).TrafficOpenedAt, ptr(-time.Hour))
	// Traffic that is closed outside of a stop is no step of one.
	if m := written(serving(), CloseTraffic{}); m.Stop != nil {
		t.Errorf("stop %+v", m.Stop)
	}
}

func TestWhatAStopLeavesInTheJournal(t *testing.T) {
	s := written(serving(), BeginStop{Why: "restart r-1"}).Stop
	if !s.of("i1", 3) || s.Why != "restart r-1" || !s.BegunAt.Equal(epoch) || s.Reason != "" || s.ClosedAt != nil ||
		s.DrainAt != nil || s.TermAt != nil || s.KillAt != nil {
		t.Errorf("stop %+v", s)
	}
	for action, at := range map[Action]func(StopMemory) *time.Time{
		CloseTraffic{}: func(s StopMemory) *time.Time { return s.ClosedAt },
		Drain{}:        func(s StopMemory) *time.Time { return s.DrainAt },
		Terminate{}:    func(s StopMemory) *time.Time { return s.TermAt },
		Kill{}:         func(s StopMemory) *time.Time { return s.KillAt },
	} {
		kind := KindOf(action)
		f := stopping(StopMemory{})
		wantTime(t, string(kind), at(*written(f, action).Stop), ptr(0))
		wantTime(t, string(kind)+" in the memory before", at(*f.Memory.Stop), nil)
		// The stop of a JVM that is gone is not continued with the next one.
		for _, change := range []func(*Facts){
			func(f *Facts) { f.Memory.Stop.StartID = 2 }, func(f *Facts) { f.Memory.Stop.Incarnation = "i0" },
			func(f *Facts) { f.Init.Process = nil },
		} {
			other := *written(with1(stopping(StopMemory{}), change), action).Stop
			wantTime(t, string(kind)+" of another JVM", at(other), nil)
		}
	}
	// A frozen JVM is killed without an order before.
	s = written(serving(), Kill{Why: "frozen", Reason: v1alpha1.RestartFrozen}).Stop
	if !s.of("i1", 3) || s.Why != "frozen" || s.Reason != v1alpha1.RestartFrozen || !s.BegunAt.Equal(epoch) {
		t.Errorf("stop %+v", s)
	}
	wantTime(t, "TERM", s.TermAt, ptr(0))
	wantTime(t, "KILL", s.KillAt, ptr(0))
}

func TestWhatTheEndOfAJVMLeavesInTheJournal(t *testing.T) {
	f := ended(Exit{Code: 5})
	f.Memory.Deaths = &Deaths{Count: 7}
	f.Memory.Addresses = []facts.AddressUse{{Address: "10.0.0.8", LastUsed: at(-time.Minute)},
		{Address: "10.0.0.9", LastUsed: at(-time.Hour)}}
	m := written(f, NoteExit{EndedAt: at(-time.Second)})
	wantTime(t, "ended", m.Start.EndedAt, ptr(-time.Second))
	want := []facts.AddressUse{{Address: "10.0.0.8", LastUsed: at(-time.Second)},
		{Address: "10.0.0.9", LastUsed: at(-time.Hour)}}
	if m.Deaths.Count != 7 || !reflect.DeepEqual(m.Addresses, want) {
		t.Errorf("deaths %+v, addresses %v", m.Deaths, m.Addresses)
	}
	// An end before the last use of the address is no later use.
	if m := written(f, NoteExit{EndedAt: at(-time.Hour)}); !m.Addresses[0].LastUsed.Equal(at(-time.Minute)) {
		t.Errorf("addresses %v", m.Addresses)
	}
	f.Memory.Addresses = nil
	if m := written(f, NoteExit{EndedAt: epoch, Death: &Deaths{Count: 8}}); m.Deaths.Count != 8 ||
		len(m.Addresses) != 0 {
		t.Errorf("deaths %+v, addresses %v", m.Deaths, m.Addresses)
	}
}

func TestTheLastSixteenAddressesAreKept(t *testing.T) {
	var uses []facts.AddressUse
	for i := range 20 {
		uses = useAddress(uses, "10.0.0."+strconv.Itoa(i), at(time.Duration(i)))
	}
	if len(uses) != 16 || uses[0].Address != "10.0.0.19" || uses[15].Address != "10.0.0.4" {
		t.Errorf("addresses %v", uses)
	}
}

func TestWhatIntentsLeaveInTheJournal(t *testing.T) {
	r := written(serving(), BeginRestart{ID: "r-1"}).Restart
	if r.ID != "r-1" || r.Incarnation != "i1" || r.StartID != 3 || r.over() {
		t.Errorf("restart %+v", r)
	}
	wantTime(t, "restart begun", r.BegunAt, ptr(0))
	if r := written(member(), BeginRestart{ID: "r-1"}).Restart; r.Incarnation != "" || r.StartID != 0 {
		t.Errorf("restart %+v of no JVM", r)
	}
	f := with1(serving(), func(f *Facts) { f.Memory.Restart = r })
	if done := written(f, FinishRestart{ID: "r-1"}).Restart; !done.over() || done.WithdrawnAt != nil ||
		done.ID != "r-1" || r.FinishedAt != nil {
		t.Errorf("restart %+v, before %+v", done, r)
	}
	r = written(f, WithdrawRestart{ID: "r-2", Why: "too late"}).Restart
	if r.ID != "r-2" || r.Message != "too late" || !r.over() || r.FinishedAt != nil || r.BegunAt != nil {
		t.Errorf("restart %+v", r)
	}

	operations := func(f Facts, a Action) []OperationMemory { return written(f, a).Operations }
	o := &operations(serving(), RunOperation{Operation: &v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: "o-1"},
		Type: v1alpha1.OperationRepair, Arguments: &v1alpha1.OperationArguments{Full: true}}})[0]
	if o.ID != "o-1" || o.Phase != v1alpha1.OperationRunning || o.FinishedAt != nil ||
		o.Type != v1alpha1.OperationRepair || o.Incarnation != "i1" || o.StartID != 3 || !o.Arguments.Full {
		t.Errorf("operation %+v", o)
	}
	noted := Memory{Operations: []OperationMemory{*o}}.WithHandle("o-1", operation.Handle{Command: 7})
	if h := noted.Operation("o-1").Handle; h.Command != 7 || o.Handle.Command != 0 {
		t.Errorf("handle %+v, before %+v", h, o.Handle)
	}
	f.Memory.Operations = []OperationMemory{*o}
	cut := operations(f, InterruptOperation{ID: "o-1", Why: "the agent ended"})[0]
	if cut.Phase != v1alpha1.OperationInterrupted || cut.Message != "the agent ended" || cut.FinishedAt == nil ||
		o.FinishedAt != nil {
		t.Errorf("operation %+v, before %+v", cut, o)
	}
	o = &operations(f, WithdrawOperation{ID: "o-2", Why: "too late"})[1]
	if o.ID != "o-2" || o.Phase != v1alpha1.OperationWithdrawn || o.Message != "too late" || o.FinishedAt == nil ||
		o.BegunAt != nil {
		t.Errorf("operation %+v", o)
	}
}

func TestWhatIsRememberedOfOperations(t *testing.T) {
	f := serving()
	f.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "wanted"}}}
	for _, id := range []string{"oldest", "wanted", "running", "a", "b", "c", "d", "e"} {
		f.Memory.Operations = append(f.Memory.Operations, OperationMemory{ID: id, Phase: v1alpha1.OperationSucceeded})
	}
	f.Memory.Operation("running").Phase = v1alpha1.OperationRunning
	for i, want := range []string{"wanted running a b c d e 0", "wanted running b c d e 0 1",
		"wanted running c d e 0 1 2"} {
		f.Memory = written(
			f, RunOperation{Operation: &v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: strconv.Itoa(i)}}},
		)
		f.Memory = written(f, FinishOperation{ID: strconv.Itoa(i)})
		var ids []string
		for _, o := range f.Memory.Operations {
			ids = append(ids, o.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("remembered %s, want %s", got, want)
		}
	}
}

// However much Cassandra says, the journal has room for it.
func TestTheWordsOfAnOperationAreBounded(t *testing.T) {
	f := serving()
	f.Memory.Operations = []OperationMemory{{ID: "o-1", Phase: v1alpha1.OperationRunning}}
	m := written(f, FinishOperation{ID: "o-1", Failed: true, Why: Why(strings.Repeat("x", 1<<20))})
	if n := len(m.Operations[0].Message); n != keptMessage {
		t.Errorf("%d bytes are remembered", n)
	}
}

func TestTheResultOfAnOperation(t *testing.T) {
	f := serving()
	f.Memory.Operations = []OperationMemory{{ID: "o-1", Phase: v1alpha1.OperationRunning, BegunAt: ptr(-time.Minute)}}
	for failed, phase := range map[bool]v1alpha1.OperationPhase{false: v1alpha1.OperationSucceeded,
		true: v1alpha1.OperationFailed} {
		o := written(f, FinishOperation{ID: "o-1", Failed: failed, Why: "three keyspaces"}).Operations[0]
		if o.Phase != phase || o.Message != "three keyspaces" || o.BegunAt == nil ||
			f.Memory.Operations[0].Phase != v1alpha1.OperationRunning {
			t.Errorf("failed %v: %+v", failed, o)
		}
		wantTime(t, string(phase), o.FinishedAt, ptr(0))
	}
}

func TestWhatTheRunningJVMTookOverIsItsOwn(t *testing.T) {
	f := with1(serving(), func(f *Facts) { f.Configuration.Hash = "hash-2"; f.Record.Spec.Configuration.Revision = 9 })
	if s := After(&f, SetSeeds{Seeds: []string{"10.0.0.2"}}).Start; s.Seeds[0] != "10.0.0.2" || s.Hash != "hash-1" ||
		f.Memory.Start.Seeds[0] != address {
		t.Errorf("start %+v, before %+v", s, f.Memory.Start)
	}
	if s := After(&f, ApplySettings{}).Start; s.Hash != "hash-2" || s.Configuration.Revision != 9 ||
		s.Seeds[0] != address {
		t.Errorf("start %+v", s)
	}
	f.Memory.Start = nil
	if s := After(&f, SetSeeds{Seeds: []string{"10.0.0.2"}}).Start; s != nil {
		t.Errorf("start %+v of no JVM", s)
	}
}

// A member that nobody has spoken to for long does not start, so the last contact is taken from
// whatever shows one, and never from the future.
func TestTheLastContact(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   *time.Time
	}{
		"none yet":       {nil, nil},
		"the API server": {func(f *Facts) { f.APISeenAt = at(-time.Minute) }, ptr(-time.Minute)},
		"a peer after the API server": {func(f *Facts) {
			f.APISeenAt, f.Peers.HeardAt = at(-time.Minute), at(-time.Second)
		}, ptr(-time.Second)},
		"a peer before the API server": {func(f *Facts) {
			f.APISeenAt, f.Peers.HeardAt = at(-time.Second), at(-time.Minute)
		}, ptr(-time.Second)},
		"gossip with another member": {func(f *Facts) { f.JVM = serving().JVM }, ptr(-time.Second)},
		"gossip with nobody alive":   {func(f *Facts) { f.JVM = serving().JVM; down(f, 1, 2) }, nil},
		"gossip with itself alone": {func(f *Facts) {
			f.JVM = serving().JVM
			f.JVM.Ring.Endpoints = f.JVM.Ring.Endpoints[:1]
		}, nil},
		"gossip with itself alone, its host id not known yet": {func(f *Facts) {
			f.JVM = serving().JVM
			f.JVM.Ring.Endpoints = []facts.Endpoint{endpoint(address, "", "r1", true)}
		}, nil},
		"an earlier one stays": {func(f *Facts) {
			f.Memory.ContactAt, f.APISeenAt = ptr(-time.Second), at(-time.Minute)
		}, ptr(-time.Second)},
		"a later one counts": {func(f *Facts) {
			f.Memory.ContactAt, f.APISeenAt = ptr(-time.Hour), at(-time.Minute)
		}, ptr(-time.Minute)},
		"a clock that was set back":      {func(f *Facts) { f.APISeenAt = at(time.Hour) }, ptr(0)},
		"nothing new does not delete it": {func(f *Facts) { f.Memory.ContactAt = ptr(-time.Hour) }, ptr(-time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			f := member()
			f.Memory.ContactAt, f.APISeenAt = nil, time.Time{}
			wantTime(t, "contact", written(with1(f, c.change), NoteNormal{}).ContactAt, c.want)
		})
	}
}

// down marks members of the ring as not heard.
func down(f *Facts, members ...int) {
	for _, i := range members {
		f.JVM.Ring.Endpoints[i].Live = false
	}
}
