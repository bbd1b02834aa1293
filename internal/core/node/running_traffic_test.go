package node

import (
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// A JVM is NORMAL before its gossip has heard of a single peer.
func TestClientsAreLetInWhenTheNodeSeesItsPeers(t *testing.T) {
	closed := func(change func(*Facts)) Facts {
		return with1(serving(), func(f *Facts) {
			f.JVM.Ring.NativeRunning = false
			seesAll(f)
			if change != nil {
				change(f)
			}
		})
	}
	unseen := func(f *Facts) { f.JVM.Ring.Endpoints[1].Live = false }
	late := func(f *Facts) { f.Memory.Start.NormalAt = ptr(-openBlind) }
	for name, c := range map[string]struct {
		facts Facts
		want  ActionKind
		// words of status.blocked, or of what is opened blindly.
		words string
	}{
		"it sees what they see": {closed(nil), "OpenTraffic", ""},
		"nobody was asked":      {closed(func(f *Facts) { f.Peers = Peers{} }), "AskPeers", ""},
		"they were asked before it was NORMAL": {closed(func(f *Facts) {
			f.Memory.Start.NormalAt = ptr(time.Millisecond)
		}), "AskPeers", ""},
		"it does not see a peer that they see": {closed(unseen), "", "does not see orders-dc1-r2-0 up"},
		"and is to ask again": {closed(func(f *Facts) { unseen(f); f.Peers.AskedAt = at(-askSight) }), "AskPeers",
			"does not see orders-dc1-r2-0 up"},
		"it does not know a member that they see": {closed(func(f *Facts) {
			f.JVM.Ring.Endpoints = f.JVM.Ring.Endpoints[:2]
			f.Memory.Neighbours = f.Memory.Neighbours[:1]
		}), "", "does not see orders-dc1-r3-0 up"},
		"nobody else sees it either": {closed(func(f *Facts) {
			unseen(f)
			f.Peers.Answers[0].Ring, f.Peers.Answers[0].Up = false, nil
			f.Peers.Answers[1].Up = []string{hostA, hostC}
		}), "OpenTraffic", ""},
		"one of two is silent": {closed(func(f *Facts) { f.Peers.Answers = f.Peers.Answers[:1] }), "",
			"1 other members say whom they see, and 2 should"},
		"of three others one has no JVM, and one is silent": {closed(func(f *Facts) {
			f.JVM.Ring.Endpoints = append(f.JVM.Ring.Endpoints,
				endpoint("10.0.0.4", "dddddddd-0000-4000-8000-000000000004", "r1", true, -35, 35))
			f.Memory.Neighbours = append(f.Memory.Neighbours, "10.0.0.4")
			f.Peers.Answers[0].Ring, f.Peers.Answers[0].Up = false, nil
		}), "", "1 other members say whom they see, and 2 should"},
		"one of two is not NORMAL yet": {closed(func(f *Facts) { f.Peers.Answers[0].Up = nil }), "",
			"1 other members say"},
		"its own earlier pod answers": {closed(func(f *Facts) { f.Peers.Answers[0].HostID = hostA }), "",
			"1 other members say"},
		"the other one of two sees it": {closed(func(f *Facts) {
			f.JVM.Ring.Endpoints = f.JVM.Ring.Endpoints[:2]
			f.Memory.Neighbours = f.Memory.Neighbours[:1]
			f.Peers.Answers = f.Peers.Answers[:1]
			f.Peers.Answers[0].Up = []string{hostA, hostB}
		}), "OpenTraffic", ""},
		"there is nobody else": {closed(func(f *Facts) {
			f.JVM.Ring.Endpoints = f.JVM.Ring.Endpoints[:1]
			f.Memory.Neighbours, f.Peers = nil, Peers{}
		}), "OpenTraffic", ""},
		"it is blind for a minute": {closed(func(f *Facts) { unseen(f); late(f) }), "OpenTraffic",
			"does not see orders-dc1-r2-0 up"},
		"nobody answers for a minute": {closed(func(f *Facts) { f.Peers.Answers = nil; late(f) }), "OpenTraffic",
			"0 other members say"},
		"after a minute it still asks first": {closed(func(f *Facts) { f.Peers = Peers{}; late(f) }), "AskPeers", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(c.facts, epoch)
			if got := KindOf(d.Action); got != c.want || d.Ready {
				t.Fatalf("action %q, ready %v; want %q", got, d.Ready, c.want)
			}
			open, opens := d.Action.(OpenTraffic)
			switch b := d.Status.Blocked; {
			case opens && (b != nil || (open.Blind == "") != (c.words == "") || !strings.Contains(open.Blind, c.words)):
				t.Errorf("opened with %q, blocked %+v; want %q", open.Blind, b, c.words)
			case !opens && (b != nil) != (c.words != ""),
				!opens && b != nil && b.Reason != v1alpha1.BlockedPeersNotSeen,
				!opens && b != nil && !strings.Contains(b.Message, c.words):
				t.Errorf("blocked %+v, want %q", b, c.words)
			}
			if d.Action == nil && (d.Again.IsZero() || d.Again.After(at(askSight))) {
				t.Errorf("again at %s", d.Again)
			}
		})
	}
}

func TestOnceOpenNoLossOfSightClosesANode(t *testing.T) {
	f := with1(serving(), func(f *Facts) {
		seesAll(f)
		f.JVM.Ring.Endpoints[1].Live, f.JVM.Ring.Endpoints[2].Live = false, false
	})
	if d := Next(f, epoch); d.Action != nil || !d.Ready || d.Status.Message != "" {
		t.Errorf("action %v, ready %v, message %q", d.Action, d.Ready, d.Status.Message)
	}
}

// Why a node was opened without a sight of its peers is said until it has one.
func TestANodeThatWasOpenedBlindlyLooksAgain(t *testing.T) {
	const why = "this node saw nobody"
	blind := func(change func(*Facts)) Facts {
		return with1(serving(), func(f *Facts) {
			seesAll(f)
			f.Memory.Start.Blind, f.JVM.Ring.Endpoints[1].Live = why, false
			change(f)
		})
	}
	for name, c := range map[string]struct {
		facts Facts
		want  ActionKind
	}{
		"it sees everybody":                    {blind(func(f *Facts) { f.JVM.Ring.Endpoints[1].Live = true }), "NoteSight"},
		"nobody was asked":                     {blind(func(f *Facts) { f.Peers = Peers{} }), "AskPeers"},
		"they were asked a minute ago":         {blind(func(f *Facts) { f.Peers.AskedAt = at(-askSightOpen) }), "AskPeers"},
		"they were asked less than that ago":   {blind(func(f *Facts) { f.Peers.AskedAt = at(-peersFresh) }), ""},
		"it does not see a peer that they see": {blind(func(*Facts) {}), ""},
		"nobody else sees it either": {blind(func(f *Facts) {
			f.Peers.Answers[0].Ring, f.Peers.Answers[0].Up = false, nil
			f.Peers.Answers[1].Up = []string{hostA, hostC}
		}), "NoteSight"},
	} {
		d := Next(c.facts, epoch)
		if got := KindOf(d.Action); got != c.want || !d.Ready || !strings.Contains(d.Status.Message, why) {
			t.Errorf("%s: action %q, ready %v, message %q; want %q", name, got, d.Ready, d.Status.Message, c.want)
		}
	}
	f := blind(func(*Facts) {})
	if m := Before(&f, NoteSight{}, epoch); m.Start.Blind != "" {
		t.Errorf("it is still said that %s", m.Start.Blind)
	}
}

func TestAQuestionAboutSightHoldsTheSameReason(t *testing.T) {
	f := with1(serving(), func(f *Facts) {
		f.JVM.Ring.NativeRunning, f.JVM.Ring.Endpoints[1].Live = false, false
		seesAll(f)
		f.Doing = &Doing{Action: AskPeers{}, Since: epoch}
	})
	if d := Next(f, at(askSight)); d.Action != nil || d.Status.Blocked == nil ||
		d.Status.Blocked.Reason != v1alpha1.BlockedPeersNotSeen {
		t.Errorf("action %v, blocked %+v", d.Action, d.Status.Blocked)
	}
}
