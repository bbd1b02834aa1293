package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// announced streams into a ring that serves, as its JVM sees it.
func announced() Facts {
	f := onItsWay(facts.ModeJoining)
	f.Record.Spec.Join.Mode, f.Memory.Join.Mode = v1alpha1.JoinBootstrap, v1alpha1.JoinBootstrap
	f.Memory.Join.FinishedAt, f.Memory.Member, f.Memory.Neighbours = nil, nil, nil
	keep(&f)
	f.JVM.Ring.Endpoints[0].Status, f.JVM.Ring.Endpoints[0].Tokens = facts.StatusBootstrap, nil
	return f
}

// round is what one JVM of node b, and of node c, answers after some time: "+" sees the joiner, "-"
// does not, " " is silent, "^" is, and up in the eyes of the joiner, "!" is another JVM that does
// not.
type round struct {
	after time.Duration
	b, c  byte
}

func (r round) peers(startID uint64) Peers {
	p := Peers{AskedAt: at(r.after), Address: address, HostID: hostA, StartID: startID}
	for name, says := range map[string]byte{"b": r.b, "c": r.c} {
		a := peer("10.0.0.9", name, map[string]string{"b": hostB, "c": hostC}[name])
		a.JVM = "i1/3"
		switch says {
		case ' ', '^':
			continue
		case '+':
			a.OfHostID = &facts.Endpoint{Address: address, HostID: hostA, Status: facts.StatusBootstrap}
		case '!':
			a.JVM = "i2/1"
		case 'e': // elsewhere
			a.OfHostID = &facts.Endpoint{Address: "10.0.0.8", HostID: hostA, Status: facts.StatusBootstrap}
		case 'u': // without a status
			a.OfHostID = &facts.Endpoint{Address: address, HostID: hostA}
		case 'n':
			a.OfHostID = &facts.Endpoint{Address: address, HostID: hostA, Status: facts.StatusNormal}
		case '0':
			a.Ring = false
		}
		p.Answers = append(p.Answers, a)
	}
	return p
}

func TestAJoinOfWhichMembersDoNotKnowIsEnded(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		rounds []round
		want   string
	}{
		"all know":                {[]round{{0, '+', '+'}, {4 * s, '+', '+'}}, ""},
		"one heard of it later":   {[]round{{0, '+', '-'}, {19 * s, '+', '-'}, {21 * s, '+', '+'}}, ""},
		"one has not heard of it": {[]round{{0, '+', '-'}, {20*s - 1, '+', '-'}}, ""},
		"one has not heard of it in time": {[]round{{0, '+', '-'}, {20 * s, '+', '-'}},
			"node c does not see this node join"},
		"one sees it elsewhere": {[]round{{0, '+', 'e'}, {20 * s, '+', 'e'}},
			"node c does not see this node join"},
		"one sees it without a status": {[]round{{0, '+', 'u'}, {20 * s, '+', 'u'}},
			"node c does not see this node join"},
		"one sees it NORMAL already": {[]round{{0, '+', '+'}, {4 * s, '+', 'n'}}, ""},
		"one was asked later":        {[]round{{0, '+', ' '}, {20 * s, '+', '-'}, {39 * s, '+', '-'}}, ""},
		"one has forgotten it": {[]round{{0, '+', '+'}, {4 * s, '-', '+'}},
			"node b had forgotten this node"},
		"one had forgotten it": {[]round{{0, '+', '+'}, {4 * s, '-', '+'}, {8 * s, '+', '+'}},
			"node b had forgotten this node"},
		"one has no JVM that answers": {[]round{{0, '+', '+'}, {4 * s, '+', '0'}, {40 * s, '+', '0'}}, ""},
		"one answers beside one that has no JVM": {[]round{{0, '0', '+'}, {4 * s, '0', '-'}},
			"node c had forgotten this node"},
		"one has started since": {[]round{{0, '+', '+'}, {4 * s, '+', '!'}, {23 * s, '+', '!'}}, ""},
		"one has started since, and is unsure": {[]round{{0, '+', '+'}, {4 * s, '+', '!'}, {24 * s, '+', '!'}},
			"node c does not see this node join"},
		"one was silent": {[]round{{0, '+', '+'}, {30 * s, '+', ' '}, {60 * s, '+', '+'}}, ""},
		"one was silent for too long": {[]round{{0, '+', '+'}, {30 * s, '+', ' '}, {60*s + 1, '+', '+'}},
			"node c had forgotten this node"},
		"one was silent, and up": {[]round{{0, '+', '+'}, {30 * s, '+', '^'}, {90 * s, '+', '+'}}, ""},
		"one was silent, and up for a time": {[]round{{0, '+', '+'}, {30 * s, '+', '^'}, {60 * s, '+', ' '},
			{90*s + 1, '+', '+'}}, "node c had forgotten this node"},
		"one was silent and up, and forgot": {[]round{{0, '+', '+'}, {30 * s, '+', '^'}, {60 * s, '+', '-'}},
			"node c had forgotten this node"},
		"all are silent":            {[]round{{0, '+', '+'}, {15*s - 1, ' ', ' '}}, ""},
		"all are silent for long":   {[]round{{0, '+', '+'}, {15 * s, ' ', ' '}}, "no member was heard since"},
		"all are silent, one is up": {[]round{{0, '+', '+'}, {15 * s, '^', ' '}, {30*s - 1, ' ', ' '}}, ""},
		"all are silent, one was up": {[]round{{0, '+', '+'}, {15 * s, '^', ' '}, {30 * s, ' ', ' '}},
			"no member was heard since"},
		"all were always silent": {[]round{{0, ' ', ' '}, {time.Hour, ' ', ' '}}, ""},
	} {
		f := announced()
		for _, r := range c.rounds {
			f.JVM.AnsweredAt = at(r.after)
			f.JVM.Ring.Endpoints[1].Live, f.JVM.Ring.Endpoints[2].Live = r.b == '^', r.c == '^'
			f.Peers = r.peers(f.Init.Process.StartID).After(f.Peers, f.JVM)
		}
		now := f.Peers.AskedAt.Add(s)
		f.JVM.AskedAt, f.JVM.AnsweredAt = now, now
		d := Next(f, now)
		if c.want == "" {
			if d.Action != nil && KindOf(d.Action) == "Kill" {
				t.Errorf("%s: %v", name, d.Action)
			}
			continue
		}
		if as[Kill](d.Action).Reason != v1alpha1.RestartStartFailed || !strings.HasPrefix(d.Action.Because(), c.want) {
			t.Errorf("%s: %v, want that it is ended: %s", name, d.Action, c.want)
		}
	}
}

// A view that is no longer heard of says nobody to be up.
func TestAViewOfLongAgoIsNoContact(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*JVM)
		ends   bool
	}{
		"it answers":            {func(*JVM) {}, false},
		"it answered long ago":  {func(j *JVM) { j.AnsweredAt = at(0) }, true},
		"it was another one":    {func(j *JVM) { j.StartID-- }, true},
		"it has no view so far": {func(j *JVM) { j.Ring = nil }, true},
	} {
		f := announced()
		f.Peers = round{0, '+', '+'}.peers(3).After(f.Peers, f.JVM)
		jvm := f.JVM
		jvm.AnsweredAt = at(15 * time.Second)
		c.change(&jvm)
		f.Peers = round{15 * time.Second, ' ', ' '}.peers(3).After(f.Peers, jvm)
		if d := Next(f, at(15*time.Second)); (d.Action != nil && KindOf(d.Action) == "Kill") != c.ends {
			t.Errorf("%s: %v, want that it is ended: %v", name, d.Action, c.ends)
		}
	}
}

// What was known of another JVM of this node says nothing of the present one.
func TestWhatIsKnownIsOfOneJVM(t *testing.T) {
	f := announced()
	f.Peers = round{0, '+', '+'}.peers(f.Init.Process.StartID-1).After(Peers{}, f.JVM)
	f.Peers = round{time.Second, '-', '-'}.peers(f.Init.Process.StartID-1).After(f.Peers, f.JVM)
	if !f.Peers.Knowledge["b"].Forgot {
		t.Fatal("nothing is forgotten")
	}
	if got := Next(f, epoch.Add(time.Second)).Action; got == nil || KindOf(got) != "AskPeers" {
		t.Errorf("%v, want that they are asked", got)
	}
	if f.Peers = (round{2 * time.Second, '-', '-'}.peers(f.Init.Process.StartID).After(f.Peers,
		f.JVM)); f.Peers.Knowledge["b"].Forgot {
		t.Error("the former JVM was forgotten")
	}
}

func TestWhoKnowsIsAskedWhileANodeJoins(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		asks   bool
	}{
		"it has announced itself": {nil, true},
		"it has not yet": {func(f *Facts) { f.JVM.Ring.Endpoints[0].Status = facts.StatusUnknown },
			false},
		"it starts":       {func(f *Facts) { f.JVM.Ring.Mode = facts.ModeStarting }, false},
		"it forms a ring": {func(f *Facts) { f.Memory.Join.Mode = v1alpha1.JoinNew }, false},
		"they were asked just now": {func(f *Facts) { f.Peers = round{-4*time.Second + 1, '+', '+'}.peers(3) },
			false},
		"they were asked": {func(f *Facts) { f.Peers = round{-4 * time.Second, '+', '+'}.peers(3) },
			true},
		"they were asked for the start": {func(f *Facts) { f.Peers = round{-time.Second, '+', '+'}.peers(0) }, true},
	} {
		f := announced()
		if c.change != nil {
			c.change(&f)
		}
		d := Next(f, epoch)
		if asks := d.Action != nil && KindOf(d.Action) == "AskPeers"; asks != c.asks {
			t.Errorf("%s: %v, want a question: %v", name, d.Action, c.asks)
		}
		if !c.asks {
			continue
		}
		if a, want := as[AskPeers](d.Action), []string{"10.0.0.2", "10.0.0.3"}; !slices.Equal(a.Ask, want) ||
			a.StartID != 3 || a.HostID != hostA {
			t.Errorf("%s: %+v", name, d.Action)
		}
		// A question under way changes nothing of what the node says.
		f.Doing = &Doing{Action: d.Action}
		if during := Next(f, epoch); during.Action != nil || during.Status.Phase != d.Status.Phase ||
			during.Status.Message != d.Status.Message {
			t.Errorf("%s: %v, %s: %s, want %s: %s", name, during.Action, during.Status.Phase, during.Status.Message,
				d.Status.Phase, d.Status.Message)
		}
	}
}

// All members are asked, however many there are: any of them may be the one that has forgotten.
func TestAllMembersAreAsked(t *testing.T) {
	f := announced()
	for i := range 100 {
		f.JVM.Ring.Endpoints = append(f.JVM.Ring.Endpoints,
			endpoint(fmt.Sprintf("10.1.0.%d", i+1), fmt.Sprintf("host-%d", i), "r1", true, int64(100+i)))
	}
	if a := as[AskPeers](Next(f, epoch).Action); len(a.Ask) != 102 || !slices.IsSorted(a.Ask) {
		t.Errorf("%+v", a)
	}
}
