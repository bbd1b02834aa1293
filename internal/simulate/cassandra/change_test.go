package cassandra

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/core/ring"
)

// keyspace makes one with three replicas in dc1 through the first node.
func (l *lab) keyspace(p *Process, name string, replicas map[string]int) {
	l.t.Helper()
	l.do("create keyspace", func() {
		s, err := p.CQL(context.Background())
		if err == nil {
			err = s.CreateKeyspace(context.Background(), name, replicas)
		}
		if err == nil {
			err = s.AwaitAgreement(context.Background())
		}
		if err != nil {
			l.t.Errorf("create keyspace: %v", err)
		}
	})
}

// fill writes rows at QUORUM, all of which must be acknowledged.
func (l *lab) fill(p *Process, name string, from, to int) {
	l.t.Helper()
	for i := from; i < to; i++ {
		if err := p.Write(name, fmt.Sprintf("key %d", i), fmt.Sprint(i), ring.Quorum); err != nil {
			l.t.Fatalf("write %d: %v", i, err)
		}
	}
}

func (l *lab) noneLost() {
	l.t.Helper()
	if lost := l.net.Audit(); len(lost) > 0 {
		l.t.Errorf("%d writes are lost, the first: %s", len(lost), lost[0])
	}
}

func (l *lab) someLost(what string) {
	l.t.Helper()
	if lost := l.net.Audit(); len(lost) == 0 {
		l.t.Errorf("%s, and no write is lost", what)
	}
}

// filled is a ring of so many nodes with a hundred rows in three replicas.
func filled(t *testing.T, seed uint64, count int) (*lab, []*node, []*Process) {
	t.Helper()
	return filledOf(t, seed, count, "5.0.6")
}

func filledOf(t *testing.T, seed uint64, count int, release string) (*lab, []*node, []*Process) {
	t.Helper()
	l := newLab(t, seed)
	l.setRelease(release)
	nodes, p := l.form(count)
	l.keyspace(p[0], "shop", map[string]int{"dc1": 3})
	l.fill(p[0], "shop", 0, 100)
	l.noneLost()
	return l, nodes, p
}

// join starts a further node that bootstraps with random tokens.
func (l *lab) join(i int) (*node, *Process) {
	n := member(i)
	return n, l.start(n)
}

func TestABootstrapStreamsWhatItOwns(t *testing.T) {
	l, _, p := filled(t, 1, 3)
	began := l.line.Now()
	_, fourth := l.join(4)
	l.await("JOINING in the view of a peer", time.Minute,
		func() bool { return slices.Contains(l.joining(p[0]), address(4)) })
	if pending, err := nodeview.New(l.client(p[0])).PendingRanges(context.Background(),
		[]string{"shop"}); err != nil || len(pending) != 1 {
		t.Errorf("pending ranges are %v, error %v", pending, err)
	}
	l.fill(p[1], "shop", 100, 150)
	l.awaitFormed(append(p, fourth)...)
	if took := l.line.Now().Sub(began); took < 40*time.Second || took > 75*time.Second {
		t.Errorf("it took %s", took)
	}
	l.fill(fourth, "shop", 150, 200)
	l.noneLost()
	if rows := len(fourth.disk.data["shop"]); rows < 50 || rows > 195 {
		t.Errorf("the new node has %d of 200 rows", rows)
	}
	for i, x := range p {
		before := len(x.disk.data["shop"])
		if err := nodeview.New(l.client(x)).Cleanup(context.Background(), 1, "shop"); err != nil {
			t.Fatal(err)
		}
		if after := len(x.disk.data["shop"]); after > before {
			t.Errorf("node %d has %d rows after the cleanup, %d before", i+1, after, before)
		}
	}
	l.noneLost()
}

func (l *lab) joining(p *Process) []netip.Addr { return p.joiningNodes() }

// TestTheGuardAgainstTwoBootstrapsIsARace is 4c of the measurements.
func TestTheGuardAgainstTwoBootstrapsIsARace(t *testing.T) {
	l, _, p := filled(t, 1, 3)
	_, a := l.join(4)
	_, b := l.join(5)
	l.awaitFormed(append(p, a, b)...)
	l = nil
	l, _, p = filled(t, 1, 3)
	n, a := l.join(4)
	l.awaitMode(a, modeJoining)
	l.await("its word", time.Minute, func() bool { return slices.Contains(l.joining(p[0]), address(4)) })
	_, b = l.join(5)
	exit := l.awaitExit(b, time.Minute)
	if exit.Code != 3 || !strings.Contains(exit.FatalLine, "Other bootstrapping/leaving/moving nodes detected") {
		t.Errorf("exit is %+v", exit)
	}
	l.awaitFormed(append(p, a)...)
	_ = n
}

// TestTwoBootstrapsAtOnceLoseWrites shows why they are to come one after the other: both may stream
// a range from the one replica that missed a write, and then push two others out.
func TestTwoBootstrapsAtOnceLoseWrites(t *testing.T) {
	lossy := map[bool]int{}
	for _, together := range []bool{true, false} {
		for seed := range uint64(6) {
			l := newLab(t, seed)
			var nodes []*node
			var p []*Process
			for i := range 4 {
				n := member(i + 1)
				n.rack = "r1"
				nodes = append(nodes, n)
				p = append(p, l.start(n, l.fresh(i+1, 4)...))
			}
			l.awaitFormed(p...)
			l.keyspace(p[0], "shop", map[string]int{"dc1": 3})
			p[3].Kill()
			l.line.RunFor(4 * time.Hour) // longer than hints are kept
			l.fill(p[0], "shop", 0, 200)
			p[3] = l.start(nodes[3])
			l.awaitFormed(p...)
			l.noneLost()
			for i := range 3 {
				n := member(5 + i)
				n.rack = "r1"
				p = append(p, l.start(n))
				if !together {
					l.awaitFormed(p...)
				}
			}
			l.awaitFormed(p...)
			if len(l.net.Audit()) > 0 {
				lossy[together]++
			}
		}
	}
	if lossy[true] == 0 || lossy[false] != 0 {
		t.Errorf("of 6 rings %d lost writes with joins at once, %d with one after the other", lossy[true], lossy[false])
	}
}

func TestABootstrapWithAReplicaDownIsRefused(t *testing.T) {
	l, _, p := filled(t, 1, 4)
	p[3].Kill()
	l.line.RunFor(30 * time.Second)
	_, fifth := l.join(5)
	if exit := l.awaitExit(fifth, 3*time.Minute); exit.Code != 3 ||
		!strings.Contains(exit.FatalLine, "Necessary replicas for strict consistency were removed by source filters") {
		t.Errorf("exit is %+v", exit)
	}
}

func TestAFailedStreamLeavesTheNodeJoiningWithoutCQL(t *testing.T) {
	l, _, p := filled(t, 1, 3)
	n, fourth := l.join(4)
	l.net.FailStreams(1)
	l.awaitMode(fourth, modeJoiningFailed)
	l.line.RunFor(time.Minute)
	if view := l.view(fourth); !view.Bootstrap.Failed || view.NativeTransportRunning ||
		view.Bootstrap.State != "IN_PROGRESS" {
		t.Errorf("state is %+v, %+v", view.State, view.Bootstrap)
	}
	fourth.Kill()
	if w := n.disk.Report().Local.Bootstrapped; w != disk.InProgress {
		t.Errorf("the disk says %s", w)
	}
	again := l.start(n)
	l.awaitFormed(append(p, again)...)
	l.noneLost()
}

// TestARebuildLeavesOutWhatWasStreamed by the join or by a rebuild before it, or refuses to, as the
// release and cassandra.reset_bootstrap_progress say.
func TestARebuildLeavesOutWhatWasStreamed(t *testing.T) {
	for _, c := range []struct {
		release    string
		properties []string
		refused    bool
		brings     bool
	}{
		{release: "5.0.6", refused: true},
		{"5.0.6", []string{"cassandra.reset_bootstrap_progress=true"}, false, true},
		{release: "4.1.10"},
		{release: "4.1.10", properties: []string{"cassandra.reset_bootstrap_progress=true"}},
	} {
		l, _, p := filledOf(t, 1, 3, c.release)
		n := member(4)
		fourth := l.start(n, c.properties...)
		l.awaitFormed(append(p, fourth)...)
		rows := len(n.disk.data["shop"])
		rebuild := func() error {
			result := l.exec(fourth, "rebuild(java.lang.String,java.lang.String,java.lang.String,java.lang.String)",
				"dc1", "shop", nil, nil)
			l.await("the rebuild", time.Minute, func() bool { return !errors.Is(*result, io.EOF) })
			return *result
		}
		clear(n.disk.data["shop"])
		if err := rebuild(); (err != nil) != c.refused ||
			c.refused && !strings.Contains(err.Error(), "Discovered existing bootstrap data") {
			t.Errorf("%+v: %v", c, err)
		}
		if got := len(n.disk.data["shop"]) == rows; got != c.brings {
			t.Errorf("%+v: %d rows of %d", c, len(n.disk.data["shop"]), rows)
		}
		l.do("forget", func() {
			if err := fourth.ForgetStreamedRanges(t.Context(), "shop"); err != nil {
				t.Error(err)
			}
		})
		if err := rebuild(); err != nil || len(n.disk.data["shop"]) != rows {
			t.Errorf("%+v: %d rows of %d when it is forgotten, error %v", c, len(n.disk.data["shop"]), rows, err)
		}
	}
}

// TestAKilledBootstrapIsForgottenOrGoesOn is 4e, and that peers forget one which does not come
// back.
func TestAKilledBootstrapIsForgottenOrGoesOn(t *testing.T) {
	l, _, p := filled(t, 1, 3)
	n, fourth := l.join(4)
	l.await("its word", time.Minute, func() bool { return slices.Contains(l.joining(p[0]), address(4)) })
	host := fourth.HostID()
	fourth.Kill()
	again := l.start(n)
	l.awaitFormed(append(p, again)...)
	if again.HostID() != host {
		t.Error("it has another host id")
	}
	_, fifth := l.join(5)
	l.await("its word", time.Minute, func() bool { return slices.Contains(l.joining(p[0]), address(5)) })
	fifth.Kill()
	l.await("to be forgotten", 6*time.Minute,
		func() bool { return len(l.joining(p[0])) == 0 && p[0].gossip.find(address(5)) == nil })
	l.noneLost()
}

// TestHowLongAFailedBootstrapIsRemembered is by CASSANDRA-15439.
func TestHowLongAFailedBootstrapIsRemembered(t *testing.T) {
	for release, want := range map[string]time.Duration{"4.1.4": 30 * time.Second, "4.1.5": time.Minute,
		"4.1.10": time.Minute, "5.0.6": 5 * time.Minute} {
		l := newLab(t, 1)
		l.setRelease(release)
		_, p := l.form(3)
		_, fourth := l.join(4)
		l.await("its word", time.Minute, func() bool { return slices.Contains(l.joining(p[0]), address(4)) })
		fourth.Kill()
		killed := l.line.Now()
		l.await("to be forgotten", 6*time.Minute, func() bool { return p[0].gossip.find(address(4)) == nil })
		if took := l.line.Now().Sub(killed); took < want-2*time.Second || took > want+5*time.Second {
			t.Errorf("%s: forgotten after %s, want %s", release, took, want)
		}
	}
}

// A member that is started while a joiner which is gone is remembered learns of it, and tells the
// others when they have forgotten it (measured with 5.0.6: ADR 16). Where it is not known it is
// assassinated in seconds, and all take it for one that has left.
func TestAJoinIsNeverForgottenUntilItIsAssassinated(t *testing.T) {
	l, nodes, p := filled(t, 2, 3)
	_, fourth := l.join(4)
	l.await("its word", time.Minute, func() bool { return slices.Contains(l.joining(p[0]), address(4)) })
	fourth.Kill()
	killed := l.line.Now()
	l.line.RunFor(150 * time.Second)
	p[1].Kill()
	p[1] = l.start(nodes[1])
	l.awaitMode(p[1], modeNormal)
	known := func(i int) bool { return p[i].gossip.find(address(4)) != nil }
	for range 3 {
		l.await("that two have forgotten it", 10*time.Minute, func() bool { return !known(0) && !known(2) && known(1) })
		l.await("that they know of it again", 90*time.Second, func() bool { return known(0) && known(2) })
	}
	if took := l.line.Now().Sub(killed); took < 15*time.Minute {
		t.Fatalf("known again after %s", took)
	}
	l.await("that two have forgotten it", 10*time.Minute, func() bool { return !known(0) })
	began := l.line.Now()
	result := l.exec(p[0], "assassinateEndpoint(java.lang.String)", address(4).String())
	l.await("the answer", time.Minute, func() bool { return !errors.Is(*result, io.EOF) })
	if took := l.line.Now().Sub(began); *result != nil || took > 6*time.Second {
		t.Errorf("after %s: %v", took, *result)
	}
	l.line.RunFor(10 * time.Minute)
	for i := range p {
		if e := p[i].gossip.find(address(4)); e == nil || e.state.word != statusLeft || len(l.joining(p[i])) > 0 {
			t.Errorf("node %d sees %+v", i+1, e)
		}
	}
	_, fifth := l.join(5)
	l.awaitMode(fifth, modeNormal)
	l.noneLost()
}

// One that is known is looked at for the ring delay first, and left alone if it speaks.
func TestWhoSpeaksIsNotAssassinated(t *testing.T) {
	l, _, p := filled(t, 2, 3)
	_, fourth := l.join(4)
	l.await("its word", time.Minute, func() bool { return slices.Contains(l.joining(p[0]), address(4)) })
	result := l.exec(p[0], "assassinateEndpoint(java.lang.String)", address(4).String())
	l.await("the answer", time.Minute, func() bool { return !errors.Is(*result, io.EOF) })
	if *result == nil || !strings.Contains((*result).Error(), "still alive") {
		t.Errorf("%v", *result)
	}
	l.awaitMode(fourth, modeNormal)
}

// TestAnEmptySeedJoinsWithoutData is 3e of the measurements.
func TestAnEmptySeedJoinsWithoutData(t *testing.T) {
	l, _, p := filled(t, 2, 3)
	l.seeds = []netip.Addr{address(1), address(4)}
	_, fourth := l.join(4)
	l.awaitFormed(append(p, fourth)...)
	_, fifth := l.join(5)
	l.line.RunFor(2 * time.Minute)
	_ = fifth
	if len(fourth.disk.data["shop"]) != 0 {
		t.Error("it has data")
	}
}

// TestMembersThatStartEmptyLoseWrites is what fencing and markers are for.
func TestMembersThatStartEmptyLoseWrites(t *testing.T) {
	l, nodes, p := filled(t, 1, 3)
	for _, i := range []int{1, 2} {
		p[i].Kill()
		nodes[i].disk.Wipe()
	}
	l.someLost("two disks of three are wiped")
}

func TestDecommissionTakesTwoRingDelays(t *testing.T) {
	l, nodes, p := filled(t, 1, 4)
	began := l.line.Now()
	result := l.exec(p[3], "decommission(boolean)", true)
	l.await("LEAVING in the view of a peer", 5*time.Second, func() bool { return p[0].metadata.leaving[address(4)] })
	l.fill(p[0], "shop", 100, 130)
	l.await("LEFT in the view of a peer", time.Minute, func() bool { return !p[0].metadata.isMember(address(4)) })
	if took := l.line.Now().Sub(began); took < 30*time.Second || took > 40*time.Second {
		t.Errorf("the data was gone after %s", took)
	}
	if w := nodes[3].disk.Report().Local.Bootstrapped; w != disk.NeedsBootstrap || p[3].Mode() != modeLeaving {
		t.Errorf("the disk says %s in mode %s", w, p[3].Mode())
	}
	l.await("the answer", time.Minute, func() bool { return !errors.Is(*result, io.EOF) })
	if took := l.line.Now().Sub(began); *result != nil || took < 60*time.Second || took > 70*time.Second {
		t.Errorf("after %s: %v", took, *result)
	}
	if view := l.view(p[3]); view.Mode != nodeview.ModeDecommissioned || view.GossipRunning ||
		view.NativeTransportRunning || view.Joined {
		t.Errorf("state is %+v", view.State)
	}
	l.line.RunFor(time.Minute)
	l.noneLost()
	view := l.view(p[0])
	if !slices.ContainsFunc(view.Unreachable, func(e netip.AddrPort) bool { return e.Addr() == address(4) }) ||
		len(view.HostIDs) != 3 {
		t.Errorf("unreachable %v, members %v", view.Unreachable, view.HostIDs)
	}
	l.line.RunFor(4 * 24 * time.Hour)
	if p[0].gossip.find(address(4)) != nil {
		t.Error("it is remembered for more than three days")
	}
	p[3].Kill()
	if exit := l.awaitExit(l.start(nodes[3]), time.Minute); exit.Code != 1 ||
		!strings.Contains(exit.FatalLine, "This node was decommissioned") {
		t.Errorf("exit is %+v", exit)
	}
}

// TestWhoHasLeftIsKeptAliveByWhatOthersTell: on real rings some peers had it as unreachable once
// the failure detector had waited, others not before their quarantine of it was over.
func TestWhoHasLeftIsKeptAliveByWhatOthersTell(t *testing.T) {
	soon, late := 0, 0
	for seed := uint64(1); seed <= 5; seed++ {
		l, _, p := filled(t, seed, 4)
		result := l.exec(p[3], "decommission(boolean)", true)
		l.await("the answer", 2*time.Minute, func() bool { return !errors.Is(*result, io.EOF) })
		l.line.RunFor(l.net.options.ConvictMax + time.Second)
		for _, peer := range p[:3] {
			if unreachable(l, peer, address(4)) {
				soon++
			} else {
				late++
			}
		}
		l.line.RunFor(quarantineDelay)
		for _, peer := range p[:3] {
			if !unreachable(l, peer, address(4)) {
				t.Errorf("seed %d: %s has it alive after its quarantine", seed, peer.Address())
			}
		}
	}
	if soon == 0 || late == 0 {
		t.Errorf("unreachable to %d soon, to %d late", soon, late)
	}
}

// TestADecommissionKilledBeforeAndAfterTheStream is 2b and 2c of the measurements.
func TestADecommissionKilledBeforeAndAfterTheStream(t *testing.T) {
	l, nodes, p := filled(t, 1, 4)
	tokens := p[3].metadata.tokensOf(address(4))
	l.exec(p[3], "decommission(boolean)", true)
	l.line.RunFor(10 * time.Second)
	p[3].Kill()
	p[3] = l.start(nodes[3])
	l.awaitFormed(p...)
	if now := p[0].metadata.tokensOf(address(4)); !slices.Equal(now, tokens) || len(p[0].metadata.leaving) != 0 {
		t.Errorf("tokens are %v, were %v; leaving %v", now, tokens, p[0].metadata.leaving)
	}
	host := p[3].HostID()
	l.exec(p[3], "decommission(boolean)", true)
	l.await("the stream", time.Minute, func() bool { return nodes[3].disk.word() == disk.NeedsBootstrap })
	l.line.RunFor(5 * time.Second)
	p[3].Kill()
	p[3] = l.start(nodes[3])
	l.awaitFormed(p...)
	if now := p[3].metadata.tokensOf(address(4)); slices.Equal(now, tokens) || p[3].HostID() != host {
		t.Errorf("it came back with the tokens %v and host id %s, was %s", now, p[3].HostID(), host)
	}
}

func TestADecommissionThatWouldLeaveTooFewIsRefused(t *testing.T) {
	l, _, p := filled(t, 1, 3)
	result := l.exec(p[2], "decommission(boolean)", false)
	l.await("the answer", time.Minute, func() bool { return !errors.Is(*result, io.EOF) })
	if *result == nil || !strings.Contains((*result).Error(),
		"Not enough live nodes to maintain replication factor in keyspace") {
		t.Errorf("error %v", *result)
	}
	if p[2].Mode() != modeDecommissionFailed || !p[2].NativeOpen() {
		t.Errorf("mode %s, CQL open %v", p[2].Mode(), p[2].NativeOpen())
	}
	l.noneLost()
}

func TestARemovedNodeIsRestoredFromTheOthers(t *testing.T) {
	l, nodes, p := filled(t, 1, 4)
	host := p[3].HostID()
	refused := l.exec(p[0], "removeNode(java.lang.String)", host)
	l.await("the answer", time.Minute, func() bool { return !errors.Is(*refused, io.EOF) })
	if *refused == nil || !strings.Contains((*refused).Error(), "is alive and owns this ID") {
		t.Errorf("error %v", *refused)
	}
	p[3].Kill()
	nodes[3].disk.Wipe()
	l.line.RunFor(30 * time.Second)
	began := l.line.Now()
	result := l.exec(p[0], "removeNode(java.lang.String)", host)
	l.await("the answer", 2*time.Minute, func() bool { return !errors.Is(*result, io.EOF) })
	if took := l.line.Now().Sub(began); *result != nil || took < 30*time.Second || took > 40*time.Second {
		t.Errorf("after %s: %v", took, *result)
	}
	l.line.RunFor(5 * time.Second)
	for _, x := range p[:3] {
		if x.metadata.isMember(address(4)) || len(l.view(x).HostIDs) != 3 {
			t.Errorf("%s still has it", x.Address())
		}
	}
	l.noneLost()
}
