package cassandra

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/jolokia"
)

// sees says whether a node has an endpoint among the unreachable ones.
func unreachable(l *lab, p *Process, a netip.Addr) bool {
	return slices.ContainsFunc(l.view(p).Unreachable, func(e netip.AddrPort) bool { return e.Addr() == a })
}

func TestPeersLearnOfAnOrderedStopAtOnceAndOfADeathLater(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(3)
	p[1].Terminate()
	l.line.RunFor(time.Second)
	if !unreachable(l, p[0], address(2)) || p[1].Ended() {
		t.Errorf("unreachable %v, ended %v", l.view(p[0]).Unreachable, p[1].Ended())
	}
	for _, s := range l.view(p[0]).Gossip {
		if s.Endpoint.Addr() == address(2) && (s.Status != nodeview.StatusShutdown || s.Heartbeat != lastHeartbeat) {
			t.Errorf("gossip of the stopped node is %+v", s)
		}
	}
	l.await("the end of the JVM", 10*time.Second, p[1].Ended)
	if e := p[1].Exit(); e.Code != 143 || e.Signal != "" {
		t.Errorf("exit is %+v", e)
	}
	p[2].Kill()
	if e := p[2].Exit(); e.Code != 137 || e.Signal != "SIGKILL" {
		t.Errorf("exit is %+v", e)
	}
	l.line.RunFor(15 * time.Second)
	if unreachable(l, p[0], address(3)) {
		t.Error("a killed node is unreachable within 15 s")
	}
	l.line.RunFor(6 * time.Second)
	if !unreachable(l, p[0], address(3)) {
		t.Error("a killed node is not unreachable after 21 s")
	}
}

func TestARestartKeepsHostIDAndTokens(t *testing.T) {
	for _, how := range []string{"killed", "stopped", "drained"} {
		t.Run(how, func(t *testing.T) {
			l := newLab(t, 1)
			nodes, p := l.form(3)
			host, tokens := p[2].HostID(), p[2].metadata.tokensOf(address(3))
			switch how {
			case "killed":
				p[2].Kill()
			case "stopped":
				p[2].Terminate()
			case "drained":
				if err := nodeview.New(l.client(p[2])).Drain(context.Background()); err != nil {
					t.Fatal(err)
				}
				p[2].Terminate()
			}
			l.await("its end", time.Minute, p[2].Ended)
			before := l.line.Now()
			p[2] = l.start(nodes[2])
			l.awaitFormed(p...)
			if took := l.line.Now().Sub(before); took > 15*time.Second {
				t.Errorf("the restart took %s", took)
			}
			if p[2].HostID() != host || !slices.Equal(p[0].metadata.tokensOf(address(3)), tokens) {
				t.Errorf("host id %s, tokens %v", p[2].HostID(), p[0].metadata.tokensOf(address(3)))
			}
		})
	}
}

// TestANewAddressTakesTheOldOnesPlace is 1a and 2.1 of the measurements.
func TestANewAddressTakesTheOldOnesPlace(t *testing.T) {
	l := newLab(t, 1)
	nodes, p := l.form(3)
	host := p[2].HostID()
	p[2].Terminate()
	l.await("its end", time.Minute, p[2].Ended)
	nodes[2].address = address(13)
	p[2] = l.start(nodes[2])
	l.awaitFormed(p...)
	moved := l.line.Now()
	view := l.view(p[0])
	if len(view.HostIDs) != 3 || view.HostIDs[netip.AddrPortFrom(address(13), 7000)] != host {
		t.Errorf("members are %v", view.HostIDs)
	}
	known := func() bool { return p[0].gossip.find(address(3)) != nil }
	if !known() {
		t.Error("the old address has left gossip at once")
	}
	l.await("the old address to leave gossip", 2*time.Minute, func() bool { return !known() })
	if took := l.line.Now().Sub(moved); took < 55*time.Second || took > 70*time.Second {
		t.Errorf("the old address left gossip after %s", took)
	}
}

// TestAFreedAddressIsRefusedAndThenIgnored is 1d of the measurements: about a minute each.
func TestAFreedAddressIsRefusedAndThenIgnored(t *testing.T) {
	for _, c := range []struct {
		after   time.Duration
		refused bool
		seen    bool
	}{{20 * time.Second, true, false}, {80 * time.Second, false, false}, {130 * time.Second, false, true}} {
		l := newLab(t, 1)
		nodes, p := l.form(3)
		for _, x := range p[1:] {
			x.Terminate()
		}
		l.await("their ends", time.Minute, func() bool { return p[1].Ended() && p[2].Ended() })
		nodes[2].address = address(13)
		p[2] = l.start(nodes[2])
		l.await("the move", time.Minute, func() bool { return p[0].isAlive(address(13)) && p[2].Mode() == modeNormal })
		l.line.RunFor(c.after)
		nodes[1].address = address(3) // the other one comes up where the third was
		p[1] = l.start(nodes[1])
		l.line.RunFor(25 * time.Second)
		if p[1].Ended() != c.refused {
			t.Errorf("after %s: ended %v with %+v", c.after, p[1].Ended(), p[1].Exit())
		}
		if c.refused {
			if e := p[1].Exit(); e.Code != 3 || !strings.Contains(e.FatalLine,
				"A node with address /10.0.0.3:7000 already exists, cancelling join") {
				t.Errorf("exit is %+v", e)
			}
			continue
		}
		if seen := p[0].isAlive(address(3)); seen != c.seen {
			t.Errorf("after %s: seen %v", c.after, seen)
		}
		l.awaitFormed(p...)
	}
}

// TestTwoNodesThatExchangeAddressesBothGiveUp is 1b; with everybody down the same exchange passes
// (2.8).
func TestTwoNodesThatExchangeAddressesBothGiveUp(t *testing.T) {
	for _, alone := range []bool{false, true} {
		l := newLab(t, 1)
		nodes, p := l.form(3)
		for i, x := range p {
			if i > 0 || alone {
				x.Kill()
			}
		}
		l.line.RunFor(30 * time.Second)
		nodes[1].address, nodes[2].address = nodes[2].address, nodes[1].address
		if alone {
			p[0] = l.start(nodes[0])
		}
		p[1], p[2] = l.start(nodes[1]), l.start(nodes[2])
		l.line.RunFor(40 * time.Second)
		if p[1].Ended() == alone || p[2].Ended() == alone {
			t.Errorf("nobody remembers %v: ended %v and %v: %+v", alone, p[1].Ended(), p[2].Ended(), l.exits)
		}
		if alone {
			l.awaitFormed(p...)
		}
	}
}

func TestAllNodesOnNewAddresses(t *testing.T) {
	l := newLab(t, 1)
	nodes, p := l.form(3)
	for i, x := range p {
		x.Kill()
		nodes[i].address = address(20 + i)
	}
	l.seeds = []netip.Addr{address(20), address(21)}
	for i, n := range nodes {
		p[i] = l.start(n)
	}
	l.awaitFormed(p...)
	for _, x := range p {
		if members := l.view(x).HostIDs; len(members) != 3 {
			t.Errorf("members are %v", members)
		}
	}
}

// TestAMemberThatIsAwayIsWhereTheDiskSays: two nodes that start without the third hear nothing of
// it by gossip, and know all the same where it is.
func TestAMemberThatIsAwayIsWhereTheDiskSays(t *testing.T) {
	l := newLab(t, 1)
	nodes, p := l.form(3)
	away := p[2].HostID()
	for _, x := range p {
		x.Kill()
	}
	p[0], p[1] = l.start(nodes[0]), l.start(nodes[1])
	l.awaitFormed(p[:2]...)
	for _, x := range p[:2] {
		view := l.view(x)
		endpoint := netip.AddrPortFrom(address(3), 7000)
		if got := view.Remembered; len(got) != 1 || got[endpoint] != (nodeview.Place{Datacenter: "dc1", Rack: "r3"}) ||
			view.HostIDs[endpoint] != away {
			t.Errorf("node %s remembers %v, and has the members %v", x.Address(), got, view.HostIDs)
		}
	}
}

func TestAFrozenJVMAnswersNobody(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(3)
	p[1].Freeze(false)
	used := p[1].CPUTime()
	before := l.line.Now()
	if _, err := nodeview.New(l.client(p[1])).View(context.Background()); err == nil ||
		l.line.Now().Sub(before) != jolokia.DefaultTimeout {
		t.Errorf("error %v after %s", err, l.line.Now().Sub(before))
	}
	l.line.RunFor(20 * time.Second)
	if !unreachable(l, p[0], address(2)) || p[1].CPUTime() != used {
		t.Errorf("unreachable %v, processor time %s and %s", unreachable(l, p[0], address(2)), used, p[1].CPUTime())
	}
	p[1].Terminate()
	l.line.RunFor(time.Minute)
	if p[1].Ended() {
		t.Error("a frozen JVM ended in order")
	}
	p[1].Thaw()
	l.await("its end", 20*time.Second, p[1].Ended)
}

func TestGossipGoesAroundABrokenLink(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(3)
	l.net.Block(address(2), address(3))
	l.line.RunFor(time.Minute)
	if unreachable(l, p[1], address(3)) {
		t.Error("one broken link makes a node unreachable")
	}
	l.net.Isolate(address(3))
	l.line.RunFor(30 * time.Second)
	if !unreachable(l, p[0], address(3)) || !unreachable(l, p[2], address(1)) {
		t.Error("an isolated node is reachable")
	}
	l.net.Unblock(address(2), address(3))
	l.net.Heal(address(3))
	l.awaitFormed(p...)
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	run := func(seed uint64) (uint64, time.Time, string) {
		l := newLab(t, seed)
		nodes, p := l.form(3)
		p[1].Kill()
		l.line.RunFor(10 * time.Second)
		p[1] = l.start(nodes[1])
		l.awaitFormed(p...)
		return l.line.Events(), l.line.Now(), p[0].HostID()
	}
	events, end, host := run(7)
	for range 3 {
		if e, at, h := run(7); e != events || at != end || h != host {
			t.Errorf("%d events until %s for %s, then %d until %s for %s", events, end, host, e, at, h)
		}
	}
	if _, end2, host2 := run(8); end2.Equal(end) || host2 == host {
		t.Error("another seed is the same run")
	}
}

// TestEqualGlancesMeanEqualViews looks all the time while everything happens.
func TestEqualGlancesMeanEqualViews(t *testing.T) {
	l := newLab(t, 3)
	nodes, p := l.form(3)
	last := map[*Process]Glance{}
	views := map[*Process]nodeview.View{}
	same := 0
	look := func() {
		for _, x := range l.net.Processes() {
			if !x.beans || x.frozen {
				continue
			}
			client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:7777/jolokia/", User: "helenus",
				Password: jolokiaPassword, Transport: x})
			if err != nil {
				t.Fatal(err)
			}
			view, err := nodeview.New(client).View(context.Background())
			if err != nil {
				continue
			}
			for i := range view.Gossip {
				view.Gossip[i].Heartbeat = 0
			}
			if g := x.Glance(); last[x] == g {
				same++
				if !equalViews(view, views[x]) {
					t.Fatalf("the glance is the same, and the views differ:\n%+v\n%+v", view, views[x])
				}
			}
			last[x], views[x] = x.Glance(), view
		}
	}
	until := func(d time.Duration) {
		for end := l.line.Now().Add(d); l.line.Now().Before(end); l.line.RunFor(100 * time.Millisecond) {
			look()
		}
	}
	p[1].Kill()
	until(40 * time.Second)
	p[1] = l.start(nodes[1])
	until(30 * time.Second)
	l.exec(p[2], "decommission(boolean)", true)
	until(2 * time.Minute)
	if same < 1000 {
		t.Errorf("only %d glances were the same", same)
	}
}

func equalViews(a, b nodeview.View) bool {
	return strings.Compare(viewText(a), viewText(b)) == 0
}
