package cassandra

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/agent/disk"
)

// TestTokensGivenTwiceGoToTheLaterGeneration is why tickets are compared before they are issued:
// nobody refuses.
func TestTokensGivenTwiceGoToTheLaterGeneration(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(1)
	a := l.start(member(2), "cassandra.auto_bootstrap=false", "cassandra.initial_token=1,2,3,4")
	l.line.RunFor(2500 * time.Millisecond)
	b := l.start(member(3), "cassandra.auto_bootstrap=false", "cassandra.initial_token=1,2,3,5")
	l.awaitMode(a, modeNormal)
	l.awaitMode(b, modeNormal)
	l.line.RunFor(10 * time.Second)
	later, earlier := a, b
	if b.generation > a.generation {
		later, earlier = b, a
	}
	for _, x := range []*Process{p[0], a, b} {
		if owned := len(x.metadata.tokensOf(later.address)); owned != 4 {
			t.Errorf("%s sees %d tokens of the later node", x.Address(), owned)
		}
		if owned := len(x.metadata.tokensOf(earlier.address)); owned != 1 {
			t.Errorf("%s sees %d tokens of the earlier node", x.Address(), owned)
		}
	}
}

func TestAnInitialTokenOfAMemberIsRefused(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(1)
	taken := p[0].metadata.tokensOf(address(1))[0].String()
	// A node looks at the ring of a point after its gossip has begun: by then it must know the
	// member.
	l.net.options.GossipLagMin, l.net.options.GossipLagMax = time.Millisecond, 2*time.Millisecond
	q := l.start(member(2), "cassandra.auto_bootstrap=false", "cassandra.initial_token=1,2,3,"+taken)
	if exit := l.awaitExit(q, time.Minute); exit.Code != 1 ||
		!strings.Contains(exit.FatalLine, "Bootstrapping to existing token "+taken+" is not allowed") {
		t.Errorf("exit is %+v", exit)
	}
}

// TestAReplacementThatIsKilledBeginsAgain is 3c.
func TestAReplacementThatIsKilledBeginsAgain(t *testing.T) {
	for _, after := range []time.Duration{20 * time.Second, 80 * time.Second, 103 * time.Second} {
		l, nodes, p := filled(t, 1, 3)
		tokens := p[2].metadata.tokensOf(address(3))
		p[2].Kill()
		nodes[2].disk.Wipe()
		n := member(3)
		n.address = address(9)
		r := l.start(n, replaceProperty+"10.0.0.3")
		l.line.RunFor(after)
		host := r.HostID()
		r.Kill()
		l.line.RunFor(2 * time.Second)
		r = l.start(n, replaceProperty+"10.0.0.3")
		l.awaitFormed(p[0], p[1], r)
		if r.HostID() != host || !slices.Equal(p[0].metadata.tokensOf(address(9)), tokens) {
			t.Errorf("after %s: host id %s, was %s; tokens %v", after, r.HostID(), host,
				p[0].metadata.tokensOf(address(9)))
		}
		l.noneLost()
	}
}

// TestAClockThatStepsBackDoesNotHideARestart: generations only rise.
func TestAClockThatStepsBackDoesNotHideARestart(t *testing.T) {
	l := newLab(t, 1)
	nodes, p := l.form(3)
	p[2].Kill()
	l.line.RunFor(30 * time.Second)
	nodes[2].offset = -24 * time.Hour
	before := p[2].generation
	p[2] = l.start(nodes[2])
	l.awaitFormed(p...)
	if p[2].generation != before+1 {
		t.Errorf("generation went from %d to %d", before, p[2].generation)
	}
}

// TestReleasesOfTwoLinesNeitherShareASchemaNorStream is what changes of a ring during an upgrade
// come to.
func TestReleasesOfTwoLinesNeitherShareASchemaNorStream(t *testing.T) {
	l, nodes, p := filledOf(t, 1, 4, "4.1.10")
	l.setRelease("5.0.6")
	_, q := l.join(5)
	if exit := l.awaitExit(q, 3*time.Minute); exit.Code != 3 ||
		!strings.Contains(exit.FatalLine, "Didn't receive schemas for all known versions") {
		t.Errorf("exit is %+v", exit)
	}
	l.line.RunFor(2 * time.Minute)
	p[3].Terminate()
	l.await("its end", time.Minute, p[3].Ended)
	p[3] = l.start(nodes[3])
	l.await("its service", time.Minute, p[3].NativeOpen)
	l.line.RunFor(time.Minute)
	result := l.exec(p[3], "decommission(boolean)", true)
	l.await("the answer", 2*time.Minute, func() bool { return !errors.Is(*result, io.EOF) })
	if *result == nil || p[3].Mode() != modeDecommissionFailed || nodes[3].disk.word() != disk.Completed {
		t.Errorf("mode %s, error %v", p[3].Mode(), *result)
	}
	l.noneLost()
}

func TestTheSizeOfTheDataIsGossipedWithinAMinute(t *testing.T) {
	l, _, p := filled(t, 1, 3)
	l.line.RunFor(2 * time.Minute)
	load := func() int64 {
		for _, s := range l.view(p[0]).Gossip {
			if s.Endpoint.Addr() == address(2) {
				return s.LoadBytes
			}
		}
		return 0
	}
	before := load()
	l.fill(p[0], "shop", 100, 200)
	l.line.RunFor(2 * time.Minute)
	if now := load(); now <= before {
		t.Errorf("load was %d and is %d", before, now)
	}
}

// TestTooFewTokensByThePropertyAreFoundAtTheNextStart was seen on 5.0.6.
func TestTooFewTokensByThePropertyAreFoundAtTheNextStart(t *testing.T) {
	l := newLab(t, 1)
	n := member(1)
	p := l.start(n, "cassandra.auto_bootstrap=false", "cassandra.initial_token=5,6")
	l.await("its service", time.Minute, p.NativeOpen)
	p.Kill()
	if exit := l.awaitExit(l.start(n), time.Minute); exit.Code != 1 || exit.FatalLine !=
		"Fatal configuration error: org.apache.cassandra.exceptions.ConfigurationException: Cannot change the number of tokens from 2 to 4" {
		t.Errorf("exit is %+v", exit)
	}
}

// TestANewcomerListsADeadMemberNowhere was seen on 5.0.6: the member is in the ring and DOWN, and
// neither among the live nor among the unreachable nodes.
func TestANewcomerListsADeadMemberNowhere(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(3)
	p[2].Kill()
	l.line.RunFor(22 * time.Second)
	q := l.start(member(4), "cassandra.auto_bootstrap=false", "cassandra.initial_token=5,6,7,8")
	l.await("its service", time.Minute, q.NativeOpen)
	l.line.RunFor(5 * time.Second)
	view := l.view(q)
	if len(view.HostIDs) != 4 || len(view.Live) != 3 || len(view.Unreachable) != 0 {
		t.Errorf("members %v, live %v, unreachable %v", view.HostIDs, view.Live, view.Unreachable)
	}
}
