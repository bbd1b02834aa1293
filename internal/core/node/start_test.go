package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// wantHeld says what a start is held back by: a guard, or the words of a wait.
func wantHeld(t *testing.T, f Facts, want string) {
	t.Helper()
	d := Next(f, epoch)
	if want == "" {
		if d.Action == nil || KindOf(d.Action) != "StartJVM" {
			t.Errorf("action %v, %v; want a start", d.Action, d.Steps[len(d.Steps)-1])
		}
		return
	}
	said := d.Status.Message
	if b := d.Status.Blocked; b != nil {
		said += " " + string(b.Reason)
	}
	if d.Action != nil || !strings.Contains(said, want) {
		t.Errorf("action %v, says %q; want %q", d.Action, said, want)
	}
}

func TestAnAddressIsTakenOnlyIfItIsFree(t *testing.T) {
	const taken = "AddressTaken"
	at3 := func(change func(*facts.Endpoint)) func(*facts.Peer) {
		return func(p *facts.Peer) {
			e := endpoint(address, hostC, "r3", true, 25)
			change(&e)
			p.AtAddress = &e
		}
	}
	used := func(ago time.Duration, by string) func(*facts.Peer) {
		return func(p *facts.Peer) {
			p.Node, p.PodUID = by, "pod-1"
			p.Addresses = []facts.AddressUse{{Address: "10.0.0.2", LastUsed: epoch},
				{Address: address, LastUsed: at(-ago)}}
		}
	}
	for name, c := range map[string]struct {
		peer func(*facts.Peer)
		want string
	}{
		"nobody has it":                          {func(*facts.Peer) {}, ""},
		"another member has it":                  {at3(func(*facts.Endpoint) {}), taken},
		"another member has it, host id unknown": {at3(func(e *facts.Endpoint) { e.HostID = "" }), taken},
		"another one has it and no tokens yet":   {at3(func(e *facts.Endpoint) { e.Tokens = nil }), taken},
		"it was only heard of": {at3(func(e *facts.Endpoint) {
			e.HostID, e.Tokens = "", nil
		}), ""},
		"another member had it and left": {at3(func(e *facts.Endpoint) {
			e.Status = facts.StatusLeft
		}), ""},
		"another member had it and was removed": {at3(func(e *facts.Endpoint) {
			e.Status = facts.StatusRemoved
		}), ""},
		"this member has it": {at3(func(e *facts.Endpoint) { e.HostID = hostA }), ""},
		"a peer has it":      {used(0, "b"), "or had it just now"},
		"a peer had it a little less than ten seconds ago": {used(10*time.Second-1, "b"), "or had it just now"},
		"a peer had it ten seconds ago":                    {used(10*time.Second, "b"), "until 2026-03-01T11:59:50Z"},
		"a peer had it a little less than 130 seconds ago": {used(130*time.Second-1, "b"), taken},
		"a peer had it 130 seconds ago":                    {used(130*time.Second, "b"), ""},
		"this pod itself has it":                           {used(0, self), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := peer("10.0.0.2", "b", hostB)
			c.peer(&p)
			f := neighboured()
			answered(&f, hostA, peer("10.0.0.3", "c", hostC), p)
			wantHeld(t, f, c.want)
			if d := Next(f, epoch); c.want != "" && (d.Status.Phase != v1alpha1.PhaseAddressTaken ||
				!d.Again.Equal(at(10*time.Second))) {
				t.Errorf("phase %s, again at %s", d.Status.Phase, d.Again)
			}
		})
	}
}

func TestANodeStartsOnlyWhereItRunsNowhereElse(t *testing.T) {
	alive := func(change func(*facts.Endpoint)) func(*Facts) {
		return func(f *Facts) {
			e := endpoint("10.0.0.9", hostA, "r1", true, -5, 5)
			change(&e)
			p := peer("10.0.0.2", "b", hostB)
			p.OfHostID = &e
			answered(f, hostA, p)
		}
	}
	former := func(change func(*facts.Peer)) func(*Facts) {
		return func(f *Facts) {
			p := peer("10.0.0.9", self, hostA)
			p.PodUID = "pod-0"
			change(&p)
			answered(f, hostA, p)
		}
	}
	moved := func(f *Facts) {
		f.Memory.Addresses = []facts.AddressUse{{Address: address}, {Address: "10.0.0.9"}, {Address: "10.0.0.8"}}
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"its former pod is silent":             {func(f *Facts) { answered(f, hostA) }, ""},
		"its former pod answers":               {former(func(*facts.Peer) {}), "FormerPodAnswers"},
		"its former pod answers without a JVM": {former(func(p *facts.Peer) { p.Ring = false }), "FormerPodAnswers"},
		"this pod answers itself":              {former(func(p *facts.Peer) { p.PodUID = "pod-1" }), ""},
		"another node has that address now":    {former(func(p *facts.Peer) { p.Node = "c" }), ""},
		"a peer sees it alive elsewhere":       {alive(func(*facts.Endpoint) {}), "HostIDAlive"},
		"a peer sees it dead elsewhere":        {alive(func(e *facts.Endpoint) { e.Live = false }), ""},
		"a peer sees it alive here":            {alive(func(e *facts.Endpoint) { e.Address = address }), ""},
		"another process has its volume": {func(f *Facts) {
			f.Init.Unlocked = "another process"
		}, "DataVolumeInUse"},
		"another process has its volume, and the disk was not looked at": {func(f *Facts) {
			f.Init.Unlocked, f.Disk = "another process", Disk{}
		}, "DataVolumeInUse"},
		"another process has its volume, and that may be the JVM of the journal": {func(f *Facts) {
			f.Init.Unlocked = "another process"
			f.Memory.Start = &StartMemory{PodUID: "pod-0", Incarnation: "i0", StartID: 1}
		}, "DataVolumeInUse"},
		"its init is of another release": {func(f *Facts) {
			f.Init = Init{Problem: "helenus-init 9 speaks protocol 9"}
		}, "speaks protocol 9"},
	} {
		t.Run(name, func(t *testing.T) {
			f := member()
			moved(&f)
			keep(&f)
			answered(&f, hostA)
			c.change(&f)
			wantHeld(t, f, c.want)
		})
	}
	f := member()
	moved(&f)
	keep(&f)
	if a := as[AskPeers](Next(f, epoch).Action); !slices.Equal(a.Ask, []string{"10.0.0.9"}) {
		t.Errorf("a node without peers asks %v before its start, want its last address", a.Ask)
	}
}

func TestPeersAreAskedBeforeAStartAndTheirAnswersAgeFast(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   ActionKind
	}{
		"fresh":                 {nil, "StartJVM"},
		"almost old":            {func(f *Facts) { f.Peers.AskedAt = at(1 - 5*time.Second) }, "StartJVM"},
		"five seconds old":      {func(f *Facts) { f.Peers.AskedAt = at(-5 * time.Second) }, "AskPeers"},
		"of the future":         {func(f *Facts) { f.Peers.AskedAt = at(1) }, "AskPeers"},
		"never":                 {func(f *Facts) { f.Peers.AskedAt = time.Time{} }, "AskPeers"},
		"about another address": {func(f *Facts) { f.Peers.Address = "10.0.0.9" }, "AskPeers"},
		"about another host id": {func(f *Facts) { f.Peers.HostID = hostB }, "AskPeers"},
		"by a word of the disk": {func(f *Facts) { f.Memory.Member, f.Memory.Join = nil, nil }, "StartJVM"},
	} {
		t.Run(name, func(t *testing.T) {
			f := neighboured()
			answered(&f, hostA, peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
			f = with1(f, c.change)
			d := Next(f, epoch)
			if d.Action == nil || KindOf(d.Action) != c.want {
				t.Fatalf("action %v, want %s", d.Action, c.want)
			}
			if a, asks := d.Action.(AskPeers); asks &&
				(a.Address != address || a.HostID != hostA || !slices.Equal(a.Ask, []string{"10.0.0.2", "10.0.0.3"})) {
				t.Errorf("asks %v about %s and %s", a.Ask, a.Address, a.HostID)
			}
		})
	}
}

func TestWhatPeersSaidHoldsWhileTheyAreAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		holds  bool
	}{
		"five seconds old":      {func(*Facts) {}, true},
		"about another address": {func(f *Facts) { f.Peers.Address = "10.0.0.9" }, false},
		"about another host id": {func(f *Facts) { f.Peers.HostID = hostB }, false},
		"about another address and host id": {func(f *Facts) { f.Peers.Address, f.Peers.HostID = "10.0.0.9", hostB },
			false},
		"never asked": {func(f *Facts) { f.Peers.AskedAt = time.Time{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			says := peer("10.0.0.2", "b", hostB)
			says.Replaced = []string{hostA}
			f := neighboured()
			answered(&f, hostA, says, peer("10.0.0.3", "c", hostC))
			f.Peers.AskedAt = at(-5 * time.Second)
			c.change(&f)
			d := Next(f, epoch)
			if d.Action == nil || KindOf(d.Action) != "AskPeers" {
				t.Fatalf("action %v, want %s", d.Action, "AskPeers")
			}
			if held := d.Status.Blocked != nil && d.Status.Blocked.Reason == "HostIDReplaced"; held != c.holds {
				t.Errorf("held %v (%s), want %v", held, d.Status.Message, c.holds)
			}
		})
	}
}

func TestAMemberThatNobodyHasSpokenToForLongDoesNotStart(t *testing.T) {
	const cutOff = "NoContactWithCluster"
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"ten minutes": {func(f *Facts) { f.Memory.ContactAt = ptr(-10 * time.Minute) }, ""},
		"longer": {func(f *Facts) { f.Memory.ContactAt = ptr(-10*time.Minute - 1) },
			cutOff},
		"longer, but the API server answers": {func(f *Facts) {
			f.Memory.ContactAt, f.APISeenAt = ptr(-time.Hour), at(-time.Minute)
		}, ""},
		"longer, but a peer has answered": {func(f *Facts) {
			f.Memory.ContactAt, f.Peers.HeardAt = ptr(-time.Hour), at(-time.Minute)
		}, ""},
		"never":                  {func(f *Facts) { f.Memory.ContactAt = nil }, cutOff},
		"never, but it is alone": {func(f *Facts) { f.Memory.ContactAt, f.Memory.Neighbours = nil, nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := neighboured()
			f.APISeenAt = time.Time{}
			answered(&f, hostA)
			f = with1(f, c.change)
			wantHeld(t, f, c.want)
			if d := Next(f, epoch); c.want != "" && !d.Again.Equal(at(10*time.Second)) {
				t.Errorf("again at %s", d.Again)
			}
		})
	}
	f := neighboured()
	f.APISeenAt, f.Memory.ContactAt = time.Time{}, ptr(-time.Hour)
	if got := next(f); got != "AskPeers" {
		t.Errorf("action %q before the peers were asked", got)
	}
}

func TestAMemberThatWasAwayForLongerThanDeletionsAreKept(t *testing.T) {
	const away, hour = "DownLongerThanGCGrace", time.Hour
	for name, c := range map[string]struct {
		grace  time.Duration
		normal *time.Time
		want   string
	}{
		"gc_grace and the five minutes in which NORMAL is written down": {hour, ptr(-hour - 5*time.Minute), ""},
		"longer":                {hour, ptr(-hour - 5*time.Minute - 1), away},
		"gc_grace is not known": {0, ptr(-1000 * hour), ""},
		"it was never NORMAL":   {hour, nil, ""},
		"gc_grace of a moment":  {1, ptr(-hour), away},
	} {
		t.Run(name, func(t *testing.T) {
			wantHeld(t, with1(member(), func(f *Facts) { f.Memory.GCGrace, f.Memory.NormalAt = c.grace, c.normal }),
				c.want)
		})
	}
}

func TestSeedsOfAStart(t *testing.T) {
	three := func(f *Facts) { f.Seeds = []string{"10.0.0.3", address, "10.0.0.2", "10.0.0.2"}; keep(f) }
	hears := func(peers ...string) func(*Facts) {
		return func(f *Facts) {
			var answers []facts.Peer
			for _, p := range peers {
				answers = append(answers, peer(p, p, p))
			}
			answered(f, f.Disk.HostID, answers...)
		}
	}
	for name, c := range map[string]struct {
		facts Facts
		seeds string // of the start; empty if there is none
		waits string
	}{
		"a new node, all answer": {with1(with1(ticketed(), three),
			hears("10.0.0.2", "10.0.0.3")), "10.0.0.1,10.0.0.2,10.0.0.3", ""},
		"a new node, one is silent for long": {with1(with1(ticketed(), three), hears("10.0.0.3")),
			"10.0.0.1,10.0.0.3", ""},
		"a new node, one is silent for 30 seconds": {with1(with1(ticketed(), three),
			func(f *Facts) { hears("10.0.0.3")(f); f.Self.StartedAt = at(-30 * time.Second) }), "10.0.0.1,10.0.0.3",
			""},
		"a new node, one is silent for a little less": {with1(with1(ticketed(), three),
			func(f *Facts) { hears("10.0.0.3")(f); f.Self.StartedAt = at(1 - 30*time.Second) }), "", "seeds 10.0.0.2"},
		"a new node, all others are silent": {with1(with1(ticketed(), three), hears()), "",
			"seeds 10.0.0.3, 10.0.0.2"},
		"a new node that is no seed, all are silent": {with1(ticketed(),
			func(f *Facts) { f.Seeds = []string{"10.0.0.2"}; keep(f); hears()(f) }), "", "seeds 10.0.0.2"},
		"a new node that is no seed, one is silent for long": {with1(ticketed(),
			func(f *Facts) { f.Seeds = []string{"10.0.0.2", "10.0.0.3"}; keep(f); hears("10.0.0.3")(f) }), "10.0.0.3",
			""},
		"a new node without seeds": {with1(ticketed(), func(f *Facts) { f.Seeds = nil; keep(f) }), "",
			"addresses of the seeds"},
		"a new node without seeds, with neighbours": {with1(ticketed(), func(f *Facts) {
			f.Seeds, f.Memory.Neighbours = nil, []string{"10.0.0.2"}
			keep(f)
			hears("10.0.0.2")(f)
		}), "", "addresses of the seeds"},
		"a member, all others are silent": {with1(with1(member(), three), hears()), "10.0.0.1", ""},
		"a member without seeds": {with1(member(), func(f *Facts) { f.Seeds = nil; keep(f) }),
			"10.0.0.1", ""},
		"a member that is no seed, all are silent": {with1(member(),
			func(f *Facts) { f.Seeds = []string{"10.0.0.2"}; keep(f); hears()(f) }), "10.0.0.1", ""},
		"a member that is no seed": {with1(member(),
			func(f *Facts) { f.Seeds = []string{"10.0.0.2"}; keep(f); hears("10.0.0.2")(f) }), "10.0.0.2", ""},
		"a member whose ticket still stands": {with1(with1(member(), three),
			func(f *Facts) { f.Record.Spec.Join = newTicket(); keep(f); hears()(f) }), "10.0.0.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantHeld(t, c.facts, c.waits)
			d := Next(c.facts, epoch)
			if a, starts := d.Action.(StartJVM); c.seeds != "" && starts &&
				strings.Join(a.Start.Seeds, ",") != c.seeds {
				t.Errorf("seeds %v, want %s", a.Start.Seeds, c.seeds)
			}
			if strings.HasPrefix(c.waits, "seeds") && !d.Again.Equal(at(5*time.Second)) {
				t.Errorf("again at %s", d.Again)
			}
		})
	}
}

func TestVolumesAreClaimedBeforeTheFirstStartOnThem(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   ActionKind
	}{
		"claimed": {nil, "StartJVM"},
		"a new volume": {func(f *Facts) { f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "scratch"}) },
			"ClaimDisk"},
		"a journal of no cluster": {func(f *Facts) { f.Memory.ClusterUID = "" }, "ClaimDisk"},
		"a journal of no node":    {func(f *Facts) { f.Memory.Node = "" }, "ClaimDisk"},
	} {
		f := with1(member(), c.change)
		d := Next(f, epoch)
		if d.Action == nil || KindOf(d.Action) != c.want {
			t.Errorf("%s: action %v, want %s", name, d.Action, c.want)
		} else if a, claims := d.Action.(ClaimDisk); claims &&
			(a.Cluster != uid || a.Volumes[0] != v1alpha1.VolumeData || len(a.Volumes) != len(f.Disk.Volumes) ||
				!strings.Contains(a.Because(), "marked")) {
			t.Errorf("%s: claims %v for %s: %s", name, a.Volumes, a.Cluster, a.Why)
		}
	}
	if a := as[ClaimDisk](Next(adopting(true), epoch).Action); a.Cluster != uid ||
		!strings.Contains(a.Because(), "adopted") {
		t.Errorf("claims %v for %s: %s", a.Volumes, a.Cluster, a.Why)
	}
}

func TestTheTicketOfAStart(t *testing.T) {
	for name, c := range map[string]struct {
		facts Facts
		want  string
	}{
		"a new node":            {ticketed(), "form/1"},
		"a join that was begun": {joining(), "form/1"},
		"a member":              {member(), ""},
		"a member whose record still has its ticket": {with1(member(),
			func(f *Facts) { f.Record.Spec.Join = newTicket(); keep(f) }), ""},
		"a member without a word of how it joined": {with1(member(),
			func(f *Facts) { f.Memory.Join = nil }), ""},
		"a member that was never seen NORMAL": {with1(joining(),
			func(f *Facts) { f.Disk.Bootstrapped = WordCompleted }), "form/1"},
		"a member by its disk alone": {with1(member(),
			func(f *Facts) { f.Memory.Member, f.Memory.Join = nil, nil }), ""},
		"a member whose journal has a ticket that is not over": {with1(member(),
			func(f *Facts) { f.Memory.Join.FinishedAt = nil }), "form/1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(c.facts, epoch)
			if d.Action == nil || KindOf(d.Action) != "StartJVM" {
				t.Fatalf("action %v, want a start", d.Action)
			}
			wantTicket(c.want)(t, d)
			if by := strings.Contains(d.Action.Because(), "ticket"); by != (c.want != "") {
				t.Errorf("starts %s", d.Action.Because())
			}
		})
	}
	s := as[StartJVM](Next(with1(joining(), func(f *Facts) {
		f.Memory.Join.SystemAuthReplicationFactor = 2
		f.Init.LastStartID = 8
	}), epoch).Action).Start
	if k := s.Ticket; k.Mode != v1alpha1.JoinNew || !slices.Equal(k.Tokens, []string{"-5", "5"}) ||
		k.SystemAuthReplicationFactor != 2 || s.StartID != 9 || s.Incarnation != "i1" || s.Hash != "hash-1" {
		t.Errorf("start %+v by %+v", s, k)
	}
}

func TestADiskThatSaysMoreThanTheJournal(t *testing.T) {
	const disagree = "DiskContradictsJournal"
	withdrawn := func(change func(*Facts)) Facts {
		return with1(with1(withdrawnJoin(joining()),
			func(f *Facts) { f.Disk.Bootstrapped, f.Disk.HostID = WordCompleted, hostA }), change)
	}
	for name, c := range map[string]struct {
		facts Facts
		want  string
	}{
		"joined although its ticket was given back": {withdrawn(nil), disagree},
		"a member by its journal": {withdrawn(func(f *Facts) {
			f.Memory.Member = &Member{HostID: hostA}
		}), ""},
		"a member by its record": {withdrawn(func(f *Facts) {
			f.Record.Spec.Member = &v1alpha1.Member{HostID: hostA}
			keep(f)
		}), ""},
		"its ticket was given back unused": {withdrawn(func(f *Facts) { f.Memory.Join.BegunAt = nil }),
			""},
		"its ticket was finished": {withdrawn(func(f *Facts) {
			f.Memory.Join.WithdrawnAt, f.Memory.Join.FinishedAt = nil, ptr(0)
		}), ""},
		"no ticket is known": {withdrawn(func(f *Facts) { f.Memory.Join, f.Record.Spec.Join = nil, nil; keep(f) }), ""},
		"a ticket that is taken back, and it was a member": {takenBack(with1(joining(),
			func(f *Facts) { f.Disk.HasData, f.Memory.NormalAt = false, ptr(0) })), disagree},
	} {
		t.Run(name, func(t *testing.T) { wantHeld(t, c.facts, c.want) })
	}
}

func TestTheHostIDOfANode(t *testing.T) {
	for name, c := range map[string]struct {
		facts Facts
		want  string
	}{
		"what its JVM says":             {with1(serving(), func(f *Facts) { f.JVM.Ring.HostID = hostC }), hostC},
		"what its JVM does not say yet": {with1(serving(), func(f *Facts) { f.JVM.Ring.HostID = "" }), hostA},
		"what its journal says":         {with1(member(), func(f *Facts) { f.Disk = Disk{} }), hostA},
		"what a silent JVM has said": {with1(serving(),
			func(f *Facts) { f.JVM.Ring.HostID, f.JVM.AskedAt, f.JVM.AnsweredAt = hostC, at(0), at(-time.Hour) }),
			hostA},
		"what its disk says": {with1(joining(), func(f *Facts) { f.Disk.HostID = hostB }), hostB},
		"nothing":            {fresh(), ""},
	} {
		if got := reported(c.facts).HostID; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A node that waits for what its peers say asks them again and again. It says why it waits once,
// not with every question.
func TestWhatHoldsANodeBackHoldsWhileItsPeersAreAskedAgain(t *testing.T) {
	held := newcomer()
	answered(&held, "") // no seed answers
	for name, c := range map[string]struct {
		change func(*Facts)
		action ActionKind
	}{
		"just asked":        {nil, ""},
		"asked a while ago": {func(f *Facts) { f.Peers.AskedAt = at(-peersAgain) }, "AskPeers"},
		"they are being asked": {func(f *Facts) {
			f.Peers.AskedAt, f.Doing = at(-peersAgain), &Doing{Action: AskPeers{}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := held
			if c.change != nil {
				c.change(&f)
			}
			d := Next(f, epoch)
			if b := d.Status.Blocked; b == nil || b.Reason != "NoSeedAnswers" ||
				d.Status.Phase != v1alpha1.PhaseWaiting {
				t.Errorf("phase %s, blocked %+v", d.Status.Phase, b)
			}
			if got := next(f); got != c.action {
				t.Errorf("action %q, want %q", got, c.action)
			}
		})
	}
	f := held
	f.Peers = Peers{}
	if d := Next(f, epoch); next(f) != "AskPeers" || d.Status.Blocked != nil {
		t.Errorf("before the first answer: action %+v, blocked %+v", d.Action, d.Status.Blocked)
	}
}
