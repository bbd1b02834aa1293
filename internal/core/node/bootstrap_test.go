package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// newcomer is ready to bootstrap into a ring of which two seeds answer.
func newcomer() Facts {
	f := ticketed()
	f.Record.Spec.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "grow/1"}, Mode: v1alpha1.JoinBootstrap,
		Tokens: []string{"-7", "7"}}
	f.Seeds = []string{"10.0.0.2", "10.0.0.3"}
	keep(&f)
	answered(&f, "", peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
	return f
}

// cutOff was killed in the middle of its bootstrap, in this pod, at a time.
func cutOff(ended time.Duration) Facts {
	f := newcomer()
	f.Disk.HasData, f.Disk.Bootstrapped, f.Disk.HostID, f.Disk.Generation = true, WordInProgress, hostA, 9
	f.Memory.Join = &JoinMemory{IntentMemory: IntentMemory{ID: "grow/1", BegunAt: ptr(-time.Hour)},
		Mode: v1alpha1.JoinBootstrap, Tokens: []string{"-7", "7"}}
	f.Memory.Start = &StartMemory{PodUID: "pod-1", Incarnation: "i1", StartID: 3, Hash: "hash-1",
		At: at(ended - time.Minute), EndedAt: ptr(ended), Generation: 8}
	f.Memory.Deaths = &Deaths{PodUID: "pod-1", Count: 1, Row: 1, LastAt: at(ended), LastReason: v1alpha1.RestartKilled,
		Message: "it was killed", BackOffUntil: at(ended + 2*time.Second)}
	f.Memory.Addresses = []facts.AddressUse{{Address: address, LastUsed: at(ended)}}
	f.Init.LastStartID = 3
	answered(&f, hostA, peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
	return f
}

// Rows that a join streamed at first may have been deleted since. Streaming again does not take
// them away once nobody remembers the deletions.
func TestAJoinThatGoesOnAfterDeletionsAreForgottenIsRefused(t *testing.T) {
	const days = 24 * time.Hour
	hour := new(time.Hour)
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"ten days": {func(f *Facts) { f.Memory.Join.BegunAt = ptr(-10 * days) }, ""},
		"longer":   {func(f *Facts) { f.Memory.Join.BegunAt = ptr(-10*days - 1) }, "JoinLongerThanGCGrace"},
		"longer, and nothing is there": {func(f *Facts) {
			f.Memory.Join.BegunAt = ptr(-11 * days)
			f.Disk.HasData, f.Disk.Bootstrapped, f.Disk.HostID, f.Disk.Generation = false, WordNone, "", 0
			answered(f, "", peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
		}, ""},
		"when it began is not known": {func(f *Facts) { f.Memory.Join.BegunAt = nil }, ""},
		"a peer keeps deletions for an hour": {func(f *Facts) {
			f.Memory.Join.BegunAt, f.Peers.Answers[1].GCGrace = ptr(-time.Hour-1), hour
		}, "JoinLongerThanGCGrace"},
		"no table needs it": {func(f *Facts) {
			f.Memory.Join.BegunAt = ptr(-11 * days)
			f.Peers.Answers[0].GCGrace, f.Peers.Answers[1].GCGrace = new(time.Duration), new(time.Duration)
		}, ""},
		"nobody knows": {func(f *Facts) { f.Peers.Answers[0].GCGrace, f.Peers.Answers[1].GCGrace = nil, nil },
			"for how long the tables keep deletions"},
		"longer, and wiped since": {func(f *Facts) {
			f.Memory.Join.BegunAt, f.Memory.Start.At = ptr(-11*days), at(-2*time.Hour)
			f.Memory.Join.Wipe = &WipeMemory{ID: "w", BegunAt: at(-time.Hour), Done: true}
			f.Peers.Answers[1].GCGrace = hour
		}, ""},
		"longer, and wiped before the last attempt": {func(f *Facts) {
			f.Memory.Join.BegunAt, f.Memory.Start.At = ptr(-11*days), at(-2*time.Hour)
			f.Memory.Join.Wipe = &WipeMemory{ID: "w", BegunAt: at(-3 * time.Hour), Done: true}
			f.Peers.Answers[1].GCGrace = hour
		}, "JoinLongerThanGCGrace"},
	} {
		t.Run(name, func(t *testing.T) {
			f := cutOff(-time.Hour)
			c.change(&f)
			wantHeld(t, f, c.want)
		})
	}
}

// A join takes each range from the replica that gives it up: without that Cassandra ends.
func TestAJoinWaitsForAMemberThatIsDown(t *testing.T) {
	first := func() Facts {
		f := newcomer()
		answered(&f, "", peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
		return f
	}
	for name, c := range map[string]struct {
		of     Facts
		change func(*Facts)
		want   string
	}{
		"none is, before the first attempt": {first(), func(*Facts) {}, ""},
		"none is, before another":           {cutOff(-time.Hour), func(*Facts) {}, ""},
		"before the first attempt": {first(), func(f *Facts) { f.Peers.Answers[0].Down = []string{hostC} },
			"node b sees node c down"},
		"before another": {cutOff(-time.Hour), func(f *Facts) { f.Peers.Answers[1].Down = []string{"other"} },
			"node c sees the member with host id other down"},
	} {
		t.Run(name, func(t *testing.T) {
			c.change(&c.of)
			wantHeld(t, c.of, c.want)
			if d := Next(c.of, epoch); c.want != "" && (d.Status.Blocked == nil ||
				d.Status.Blocked.Reason != v1alpha1.BlockedMemberDown) {
				t.Errorf("blocked by %+v", d.Status.Blocked)
			}
		})
	}
}

// What an attempt has streamed is removed by each id of the ticket once, and from a disk alone that
// is surely no member's.
func TestARetryOfAJoinBeginsOnAWipedDisk(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		wipes  bool
	}{
		"allowed":            {nil, true},
		"not allowed":        {func(f *Facts) { f.Record.Spec.Join.Wipe = ""; keep(f) }, false},
		"done by that id":    {func(f *Facts) { f.Memory.Join.Wipe = &WipeMemory{ID: "w", Done: true} }, false},
		"done by another id": {func(f *Facts) { f.Memory.Join.Wipe = &WipeMemory{ID: "v", Done: true} }, true},
		"begun by that id":   {func(f *Facts) { f.Memory.Join.Wipe = &WipeMemory{ID: "w"} }, true},
		"no word of a join":  {func(f *Facts) { f.Disk.Bootstrapped = WordNone }, false},
		"a member's":         {func(f *Facts) { f.Disk.Bootstrapped = WordCompleted }, false},
		"seen as joining": {func(f *Facts) {
			f.Peers.Answers[0].OfHostID = &facts.Endpoint{Address: address, HostID: hostA,
				Status: facts.StatusBootstrap}
		}, true},
		"seen NORMAL": {func(f *Facts) {
			f.Peers.Answers[1].OfHostID = &facts.Endpoint{Address: address, HostID: hostA,
				Status: facts.StatusNormal}
		}, false},
		"no peer answers": {func(f *Facts) { answered(f, hostA) }, false},
		"another ticket":  {func(f *Facts) { f.Memory.Join.ID = "grow/0" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := cutOff(-time.Hour)
			f.Record.Spec.Join.Wipe = "w"
			keep(&f)
			if c.change != nil {
				c.change(&f)
			}
			d := Next(f, at(0))
			wipe, wipes := d.Action.(WipeJoin)
			if wipes != c.wipes || wipes && wipe.ID != "w" {
				t.Fatalf("%s: %+v", KindOf(d.Action), d.Status)
			}
			if !wipes {
				return
			}
			f.Memory = Before(&f, d.Action, at(0))
			if w := f.Memory.Join.Wipe; w == nil || w.ID != "w" || w.Done {
				t.Errorf("before it the journal has %+v", w)
			}
			if f.Memory = After(&f, d.Action); !f.Memory.Join.Wipe.Done {
				t.Errorf("after it the journal has %+v", f.Memory.Join.Wipe)
			}
			start, starts := Next(f, at(0)).Action.(StartJVM)
			if !starts {
				t.Fatalf("then %+v", Next(f, at(0)))
			}
			if f.Memory = Before(&f, start, at(0)); f.Memory.Join.Attempts != 1 {
				t.Errorf("%d attempts", f.Memory.Join.Attempts)
			}
		})
	}
}

func TestANewcomerStreamsFromTheRingThatIsThere(t *testing.T) {
	alone := "NoSeedAnswers"
	seeds := func(peers ...facts.Peer) func(*Facts) {
		return func(f *Facts) { answered(f, "", peers...) }
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		seeds  string // of the start
		held   string
	}{
		"all seeds answer": {nil, "10.0.0.2,10.0.0.3", ""},
		"one is silent":    {seeds(peer("10.0.0.3", "c", hostC)), "10.0.0.3", ""},
		"all are silent":   {seeds(), "", alone},
		"one is no member": {seeds(peer("10.0.0.2", "b", ""), peer("10.0.0.3", "c", hostC)), "10.0.0.3",
			""},
		"none is a member":                {seeds(peer("10.0.0.2", "b", ""), peer("10.0.0.3", "c", "")), "", alone},
		"the JVM of the only one is down": {seeds(facts.Peer{Asked: "10.0.0.2", Node: "b", HostID: hostB}), "", alone},
		"there is no seed yet":            {func(f *Facts) { f.Seeds = nil; keep(f) }, "", "addresses of the seeds"},
		"it is the only seed itself":      {func(f *Facts) { f.Seeds = []string{address}; keep(f) }, "", alone},
		"it is a seed itself": {func(f *Facts) {
			f.Seeds = []string{address, "10.0.0.2"}
			keep(f)
			seeds(peer("10.0.0.2", "b", hostB))(f)
		}, "10.0.0.2", ""},
		"it answers itself": {func(f *Facts) {
			f.Seeds = []string{"10.0.0.2"}
			keep(f)
			itself := peer("10.0.0.2", self, hostB)
			itself.PodUID = "pod-1"
			seeds(itself)(f)
		}, "", alone},
		"a member that is no seed answers": {func(f *Facts) {
			f.Memory.Neighbours = []string{"10.0.0.9"}
			seeds(peer("10.0.0.9", "d", hostC))(f)
		}, "", alone},
		"the ring serves clients": {func(f *Facts) { f.Peers.Answers[0].TrafficOpened = true },
			"10.0.0.2,10.0.0.3", ""},
		"its address is another member's": {func(f *Facts) {
			e := endpoint(address, hostC, "r3", true, 1)
			f.Peers.Answers[0].AtAddress = &e
		}, "", "AddressTaken"},
		"the record has a member, disk empty": {func(f *Facts) {
			f.Record.Spec.Member = &v1alpha1.Member{HostID: hostA}
			keep(f)
		}, "", "DiskUnreadable"},
		"its disk is another's": {func(f *Facts) { mark(f, "other", self) }, "", "DiskOfOtherNode"},
		"it has served clients": {func(f *Facts) { f.Memory.TrafficOpenedAt = ptr(0) }, "",
			"ClientTrafficAlreadyOpened"},
		"the API server has not spoken yet": {func(f *Facts) { f.APISeenAt = time.Time{} }, "", "API server's word"},
		"the ticket is out of its own journal": {func(f *Facts) {
			f.Memory.Join = &JoinMemory{IntentMemory: IntentMemory{ID: "grow/1", WithdrawnAt: ptr(0)}}
		}, "", "given back"},
	} {
		t.Run(name, func(t *testing.T) {
			f := with1(newcomer(), c.change)
			wantHeld(t, f, c.held)
			if c.seeds == "" {
				return
			}
			s := as[StartJVM](Next(f, epoch).Action).Start
			if k := s.Ticket; strings.Join(s.Seeds, ",") != c.seeds || k == nil || k.Mode != v1alpha1.JoinBootstrap ||
				!slices.Equal(k.Tokens, []string{"-7", "7"}) {
				t.Errorf("seeds %v, ticket %+v", s.Seeds, k)
			}
		})
	}
}

func TestAJoinThatWasCutOffWaitsUntilItsPeersListenAgain(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		ended  time.Duration
		change func(*Facts)
		again  time.Duration // 0 if it starts
	}{
		"just now":                    {-10 * s, nil, 120 * s},
		"almost long enough ago":      {-130*s + 1, nil, 1},
		"long enough ago":             {-130 * s, nil, 0},
		"almost too long ago for 5.0": {-240*s + 1, nil, 0},
		"too long ago for 5.0":        {-240 * s, nil, 160 * s},
		"almost surely forgotten":     {-400*s + 1, nil, 1},
		"surely forgotten":            {-400 * s, nil, 0},
		"at another address":          {-10 * s, func(f *Facts) { f.Memory.Addresses[0].Address = "10.0.0.77" }, 0},
		"it never said a word":        {-10 * s, func(f *Facts) { f.Disk.Generation = 8 }, 0},
		"it never did, the try before did": {-10 * s, func(f *Facts) {
			f.Disk.Generation, f.Memory.Join.Heard = 8, &HeardMemory{address, at(-20 * s), at(-20 * s)}
		}, 110 * s},
		"nothing was ever written": {-10 * s,
			func(f *Facts) { f.Disk.HasData, f.Disk.Generation, f.Memory.Start.Generation = false, 0, 0 }, 0},
		"it had joined by its disk":       {-10 * s, func(f *Facts) { f.Disk.Bootstrapped = WordCompleted }, 0},
		"another configuration is wanted": {-10 * s, func(f *Facts) { f.Configuration.Hash = "hash-2" }, 120 * s},
		"nobody saw when, but lately":     {-10 * s, func(f *Facts) { f.Memory.Start.Lost = true }, 120 * s},
		"nobody saw when, it ran for long": {-10 * s,
			func(f *Facts) { f.Memory.Start.Lost, f.Memory.Start.At = true, at(-120*s) }, 390 * s},
		"nobody saw when, it closes soon": {-135 * s,
			func(f *Facts) { f.Memory.Start.Lost, f.Memory.Start.At = true, at(-239*s) }, 0},
		"nobody saw when, it has closed": {-135 * s,
			func(f *Facts) { f.Memory.Start.Lost, f.Memory.Start.At = true, at(-240*s) }, 265 * s},
		"nobody saw when, and it is over": {-400 * s,
			func(f *Facts) { f.Memory.Start.Lost, f.Memory.Start.At = true, at(-4000*s) }, 0},
		"it was to form a ring": {-10 * s, func(f *Facts) {
			f.Record.Spec.Join.Mode, f.Memory.Join.Mode = v1alpha1.JoinNew, v1alpha1.JoinNew
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(with1(cutOff(c.ended), c.change), epoch)
			switch {
			case c.again == 0 && (KindOf(d.Action) != "StartJVM" || as[StartJVM](d.Action).Start.Ticket.ID != "grow/1"):
				t.Errorf("action %v, %s", d.Action, d.Status.Message)
			case c.again != 0 && (d.Action != nil || !d.Again.Equal(at(c.again))):
				t.Errorf("action %v, again at %s: %s", d.Action, d.Again, d.Status.Message)
			case c.again != 0 && (!strings.Contains(d.Status.Message, "it was killed") ||
				d.Status.Phase != v1alpha1.PhaseWaiting):
				t.Errorf("phase %s: %s", d.Status.Phase, d.Status.Message)
			}
		})
	}
	for name, change := range map[string]func(*Facts){
		"the death of an earlier JVM": func(f *Facts) { f.Memory.Deaths.LastAt = at(-time.Hour) },
		"no death":                    func(f *Facts) { f.Memory.Deaths = nil },
	} {
		if d := Next(with1(cutOff(-10*s), change), epoch); !strings.HasPrefix(d.Status.Message,
			"the join was cut off;") {
			t.Errorf("says %q by %s", d.Status.Message, name)
		}
	}
	f := cutOff(-time.Hour)
	m := written(f, Next(f, epoch).Action)
	if h := m.Join.Heard; h == nil || *h != (HeardMemory{address, at(-time.Hour), at(-time.Hour)}) ||
		m.Start.Generation != 9 || f.Memory.Join.Heard != nil {
		t.Errorf("ticket %+v, start %+v", m.Join, m.Start)
	}
	// A member that comes back waits for nobody to forget it.
	if got := next(with1(member(), func(f *Facts) {
		died(f, at(-time.Second))
		f.Disk.Generation = 9
	})); got != "StartJVM" {
		t.Errorf("action %q of a member", got)
	}
}

func TestAJoinWaitsUntilAnEarlierTryElsewhereIsForgotten(t *testing.T) {
	sees := func(address string, status facts.GossipStatus) func(*Facts) {
		return func(f *Facts) {
			e := endpoint(address, hostA, "r1", false)
			e.Status = status
			f.Peers.Answers[1].OfHostID = &e
		}
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"nobody sees one":     {nil, ""},
		"one joins elsewhere": {sees("10.0.0.77", facts.StatusBootstrap), "StaleEndpointInGossip"},
		"one joined nothing":  {sees("10.0.0.77", facts.StatusUnknown), ""},
		"one joins here":      {sees(address, facts.StatusBootstrap), ""},
		"the disk says it is a member": {func(f *Facts) {
			sees("10.0.0.77", facts.StatusBootstrap)(f)
			f.Disk.Bootstrapped = WordCompleted
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := with1(cutOff(-time.Hour), c.change)
			wantHeld(t, f, c.want)
			if d := Next(f, epoch); c.want != "" && !d.Again.Equal(at(10*time.Second)) {
				t.Errorf("again at %s", d.Again)
			}
		})
	}
}

// Members that were started meanwhile keep the memory of an earlier try alive, for ever.
func TestAnEarlierTryThatIsNotForgotten(t *testing.T) {
	for ago, never := range map[time.Duration]bool{10*time.Minute - 1: false, 10 * time.Minute: true} {
		f := cutOff(-ago)
		e := endpoint("10.0.0.77", hostA, "r1", false)
		e.Status = facts.StatusBootstrap
		f.Memory.Addresses[0].Address = "10.0.0.77"
		f.Peers.Answers[1].OfHostID = &e
		if d := Next(f, epoch); strings.Contains(d.Status.Message, "again and again") != never {
			t.Errorf("%s after its end: %s", ago, d.Status.Message)
		}
	}
}

func TestAJoinThatCassandraHasGivenUpIsEndedAndTriedAgain(t *testing.T) {
	f := onItsWay(facts.ModeJoiningFailed)
	d := Next(f, epoch)
	if as[BeginStop](d.Action).Reason != v1alpha1.RestartStartFailed {
		t.Fatalf("action %v", d.Action)
	}
	f.Memory = written(f, d.Action)
	if got := next(f); got != "Terminate" {
		t.Errorf("action %q, want that it is ended", got)
	}
	f.Memory.Stop.TermAt = ptr(0)
	f.Init.Exits = []Exit{{Process: Process{StartID: 3}, EndedAt: epoch, Code: 143}}
	f.Init.Process = nil
	f.JVM.FatalLine = "Stream failed"
	d = Next(f, epoch)
	if death := as[NoteExit](d.Action).Death; death == nil || !strings.Contains(death.Message, "streaming failed") ||
		!strings.Contains(death.Message, "Stream failed") {
		t.Errorf("action %v", d.Action)
	}
	for reason, want := range map[v1alpha1.RestartReason]string{v1alpha1.RestartStartFailed: "given up",
		v1alpha1.RestartFrozen: "given up"} {
		quiet := f
		quiet.JVM.FatalLine = ""
		if reason == v1alpha1.RestartFrozen {
			quiet.JVM.FatalLine = "an old line"
		}
		stop := *f.Memory.Stop
		stop.Reason, stop.Why = reason, want
		quiet.Memory.Stop = &stop
		if d := Next(quiet, epoch); as[NoteExit](d.Action).Death == nil ||
			as[NoteExit](d.Action).Death.Message != want {
			t.Errorf("%s: action %+v", reason, d.Action)
		}
	}
	for name, change := range map[string]func(*Facts){
		"it joins":                    func(f *Facts) { f.JVM.Ring.Mode = facts.ModeJoining },
		"it was NORMAL":               func(f *Facts) { f.Memory.Start.NormalAt = ptr(0) },
		"it does not answer":          func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Hour) },
		"nothing could start instead": func(f *Facts) { f.Configuration.Problem = "no heap" },
	} {
		if got := next(with1(onItsWay(facts.ModeJoiningFailed),
			func(f *Facts) {
				f.JVM.Ring = view()
				f.JVM.Ring.Mode = facts.ModeJoiningFailed
				change(f)
			})); got == "BeginStop" {
			t.Errorf("%s: stopped", name)
		}
	}
}

func TestAMemberByItsRecordThatHasNotJoinedByItsDiskNeverJoins(t *testing.T) {
	for _, mode := range []v1alpha1.JoinMode{v1alpha1.JoinNew, v1alpha1.JoinBootstrap} {
		wantHeld(t, with1(cutOff(-time.Hour), func(f *Facts) {
			f.Record.Spec.Member = &v1alpha1.Member{HostID: hostA}
			f.Record.Spec.Join.Mode = mode
			keep(f)
		}), "TicketForMember")
	}
}

func TestAJoinThatStreamsNothing(t *testing.T) {
	stalled := func(change func(*Facts)) Facts {
		f := onItsWay(facts.ModeJoining)
		f.Init.Process.StartedAt, f.Self.StartedAt = at(-40*time.Minute), at(-35*time.Minute)
		return with1(f, change)
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		stops  bool
	}{
		"for long": {nil, true},
		"the JVM is young": {func(f *Facts) { f.Init.Process.StartedAt = at(1 - 30*time.Minute) },
			false},
		"the agent is young":               {func(f *Facts) { f.Self.StartedAt = at(1 - 30*time.Minute) }, false},
		"it streamed lately":               {func(f *Facts) { f.JVM.StreamedAt = at(1 - 30*time.Minute) }, false},
		"it streamed long ago":             {func(f *Facts) { f.JVM.StreamedAt = at(-30 * time.Minute) }, true},
		"it streams":                       {func(f *Facts) { f.JVM.Ring.Streaming = true }, false},
		"it starts":                        {func(f *Facts) { f.JVM.Ring.Mode = facts.ModeStarting }, false},
		"its configuration cannot be made": {func(f *Facts) { f.Configuration.Problem = "no heap" }, false},
	} {
		d := Next(stalled(c.change), epoch)
		if stops := as[BeginStop](d.Action).Reason == v1alpha1.RestartStartFailed; stops != c.stops {
			t.Errorf("%s: action %v", name, d.Action)
		}
	}
}

func TestAJoinThatStreamsIsNotEndedByACorrection(t *testing.T) {
	f := onItsWay(facts.ModeJoining)
	f.Configuration.RestartNeeded = true
	if got := next(f); got != "BeginStop" {
		t.Fatalf("action %q", got)
	}
	f.JVM.Ring.Streaming = true
	f.JVM.Transfer = facts.Transfer{Plans: 2, Received: 512, ToReceive: 1000}
	d := Next(f, epoch)
	if d.Action != nil || d.Status.Phase != v1alpha1.PhaseJoining ||
		d.Status.Message != "Cassandra is in the mode JOINING; streams: received 512 of 1000 B" {
		t.Errorf("action %v, phase %s: %s", d.Action, d.Status.Phase, d.Status.Message)
	}
}

// The proof that its pod was gone takes a ticket back without a word of the agent, whose journal
// still has it. What counts on an empty disk is the ticket of the record: by an earlier one of the
// mode New a node would come into a ring that serves without its data.
func TestAnotherTicketCountsOnAnEmptyDisk(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"an earlier one was never given back": {nil, "grow/1 Bootstrap"},
		"it is the same": {func(f *Facts) {
			f.Memory.Join.ID, f.Memory.Join.Mode = "grow/1", v1alpha1.JoinBootstrap
		}, "grow/1 Bootstrap"},
		"the disk has joined by the earlier one": {func(f *Facts) {
			f.Disk.HasData, f.Disk.Bootstrapped, f.Disk.HostID = true, WordCompleted, hostA
			answered(f, hostA, peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
		}, "form/1 New"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newcomer()
			f.Memory.Join = &JoinMemory{IntentMemory: IntentMemory{ID: "form/1", BegunAt: ptr(-time.Hour)},
				Mode: v1alpha1.JoinNew, Tokens: []string{"-7", "7"}}
			if c.change != nil {
				c.change(&f)
			}
			a := Next(f, epoch).Action
			s := as[StartJVM](a).Start
			if s == nil || s.Ticket == nil {
				t.Fatalf("action %+v, want a start by a ticket", a)
			}
			if got := s.Ticket.ID + " " + string(s.Ticket.Mode); got != c.want {
				t.Errorf("starts by %s, want %s", got, c.want)
			}
		})
	}
}
