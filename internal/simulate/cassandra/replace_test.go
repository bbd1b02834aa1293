package cassandra

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/ring"
)

const replaceProperty = "cassandra.replace_address_first_boot="

// TestReplaceAtANewAddress is 3a of the measurements, with what the peers see meanwhile.
func TestReplaceAtANewAddress(t *testing.T) {
	l, nodes, p := filled(t, 1, 3)
	dead, tokens := p[2].HostID(), p[2].metadata.tokensOf(address(3))
	p[2].Kill()
	nodes[2].disk.Wipe()
	began := l.line.Now()
	n := member(3)
	n.address = address(9)
	r := l.start(n, replaceProperty+"10.0.0.3")
	l.awaitMode(r, modeJoining)
	l.line.RunFor(30 * time.Second)
	view := l.view(p[0])
	if len(view.Joining) != 0 || !slices.Contains(view.Live, netip.AddrPortFrom(address(9), 7000)) ||
		view.HostIDs[netip.AddrPortFrom(address(9), 7000)] != "" {
		t.Errorf("in its silent wait the peers see: live %v, joining %v, members %v", view.Live, view.Joining,
			view.HostIDs)
	}
	l.await("JOINING in the view of a peer", time.Minute,
		func() bool { return slices.Contains(l.joining(p[0]), address(9)) })
	if view := l.view(p[0]); view.HostIDs[netip.AddrPortFrom(address(3), 7000)] != dead {
		t.Errorf("the dead node has left the map of host ids: %v", view.HostIDs)
	}
	l.fill(p[0], "shop", 100, 120)
	l.awaitFormed(p[0], p[1], r)
	if took := l.line.Now().Sub(began); took < 95*time.Second || took > 125*time.Second {
		t.Errorf("it took %s", took)
	}
	if r.HostID() == dead || !slices.Equal(p[0].metadata.tokensOf(address(9)), tokens) ||
		len(l.view(p[0]).HostIDs) != 3 {
		t.Errorf("host id %s, tokens %v, members %v", r.HostID(), p[0].metadata.tokensOf(address(9)),
			l.view(p[0]).HostIDs)
	}
	l.noneLost()
	if rows := len(n.disk.data["shop"]); rows != 120 {
		t.Errorf("it has %d of 120 rows", rows)
	}
	// The flag does no harm at a later start.
	r.Kill()
	r = l.start(n, replaceProperty+"10.0.0.3")
	l.awaitFormed(p[0], p[1], r)
}

// TestReplaceAtTheSameAddress is 3b: invisible until the end, with the host id of the dead one.
func TestReplaceAtTheSameAddress(t *testing.T) {
	l, nodes, p := filled(t, 1, 3)
	dead := p[2].HostID()
	p[2].Kill()
	nodes[2].disk.Wipe()
	l.line.RunFor(30 * time.Second)
	r := l.start(nodes[2], replaceProperty+"10.0.0.3")
	l.awaitMode(r, modeJoining)
	l.line.RunFor(10 * time.Second)
	if view := l.view(p[0]); len(view.Joining) != 0 || !unreachable(l, p[0], address(3)) {
		t.Errorf("joining %v, unreachable %v", view.Joining, view.Unreachable)
	}
	l.awaitFormed(p[0], p[1], r)
	if r.HostID() != dead {
		t.Error("it has a host id of its own")
	}
	l.noneLost()
}

func TestReplaceIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		prepare  func(l *lab, p []*Process)
		property string
		line     string
	}{
		"of a live node": {func(*lab, []*Process) {}, "10.0.0.3", "Cannot replace a live node..."},
		"of nobody":      {func(*lab, []*Process) {}, "10.0.0.77", "because it doesn't exist in gossip"},
		"by a node that seeds": {func(l *lab, _ []*Process) { l.seeds = append(l.seeds, address(9)) }, "10.0.0.3",
			"Replacing a node without bootstrapping risks"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, p := filled(t, 1, 3)
			c.prepare(l, p)
			n := member(3)
			n.address = address(9)
			if exit := l.awaitExit(l.start(n, replaceProperty+c.property), 3*time.Minute); exit.Code != 3 ||
				!strings.Contains(exit.FatalLine, c.line) {
				t.Errorf("exit is %+v", exit)
			}
		})
	}
}

// TestAnEmptyNodeAtADeadMembersAddressIsRefused is 3d, also for one in its own list of seeds.
func TestAnEmptyNodeAtADeadMembersAddressIsRefused(t *testing.T) {
	for _, seed := range []bool{false, true} {
		l, nodes, p := filled(t, 1, 3)
		p[2].Kill()
		nodes[2].disk.Wipe()
		l.line.RunFor(30 * time.Second)
		if seed {
			l.seeds = append(l.seeds, address(3))
		}
		if exit := l.awaitExit(l.start(nodes[2]), time.Minute); exit.Code != 3 ||
			!strings.Contains(exit.FatalLine, "already exists, cancelling join") {
			t.Errorf("seed %v: exit is %+v", seed, exit)
		}
		l.seeds = l.seeds[:2]
		r := l.start(nodes[2], replaceProperty+"10.0.0.3")
		l.awaitFormed(p[0], p[1], r)
	}
}

// TestAReplacedNodeThatReturnsTakesItsTokensBack is 3f: the replacement keeps its host id and has
// no tokens, and what was written meanwhile is missed.
func TestAReplacedNodeThatReturnsTakesItsTokensBack(t *testing.T) {
	l, nodes, p := filled(t, 1, 3)
	tokens := p[2].metadata.tokensOf(address(3))
	p[2].Kill()
	n := member(3)
	n.address = address(9)
	r := l.start(n, replaceProperty+"10.0.0.3")
	l.awaitFormed(p[0], p[1], r)
	for i := range 30 {
		if err := r.Write("shop", "late "+string(rune('a'+i)), "x", ring.Quorum); err != nil {
			t.Fatal(err)
		}
	}
	old := l.start(nodes[2])
	l.await("its tokens back", 5*time.Minute,
		func() bool { return slices.Equal(p[0].metadata.tokensOf(address(3)), tokens) })
	if !old.NativeOpen() || len(p[0].metadata.tokensOf(address(9))) != 0 ||
		p[0].metadata.hosts[address(9)] != r.HostID() {
		t.Errorf("replacement: tokens %v, host id %q", p[0].metadata.tokensOf(address(9)),
			p[0].metadata.hosts[address(9)])
	}
}

func TestHintsBringWhatANodeMissed(t *testing.T) {
	l, nodes, p := filled(t, 1, 3)
	p[2].Kill()
	l.line.RunFor(30 * time.Second)
	l.fill(p[0], "shop", 100, 150)
	p[2] = l.start(nodes[2])
	l.awaitFormed(p...)
	l.line.RunFor(15 * time.Second)
	if rows := len(nodes[2].disk.data["shop"]); rows != 150 {
		t.Errorf("it has %d of 150 rows", rows)
	}
	p[2].Kill()
	l.line.RunFor(4 * time.Hour)
	l.fill(p[0], "shop", 150, 160)
	p[2] = l.start(nodes[2])
	l.awaitFormed(p...)
	l.line.RunFor(15 * time.Second)
	if rows := len(nodes[2].disk.data["shop"]); rows != 150 {
		t.Errorf("after longer than the hint window it has %d rows", rows)
	}
	l.noneLost()
	command, err := nodeview.New(l.client(p[2])).StartRepair(context.Background(), "shop",
		cassandra.RepairOptions{})
	if err != nil || command != 1 {
		t.Fatalf("repair %d, error %v", command, err)
	}
	l.line.RunFor(10 * time.Second)
	if status, err := nodeview.New(l.client(p[2])).RepairStatus(context.Background(), command); err != nil ||
		status.State != cassandra.RepairCompleted {
		t.Errorf("repair is %+v, error %v", status, err)
	}
	if rows := len(nodes[2].disk.data["shop"]); rows != 160 {
		t.Errorf("after the repair it has %d of 160 rows", rows)
	}
}

func TestAcknowledgedWritesSurviveTheProcessAndNotTheHost(t *testing.T) {
	l, nodes, p := filled(t, 1, 3)
	l.line.RunFor(time.Minute)
	l.fill(p[0], "shop", 100, 120)
	for _, x := range p {
		x.Kill()
	}
	l.noneLost()
	for i := range p {
		nodes[i].disk.LoseUnsynced(l.line.Now())
	}
	l.someLost("all hosts crashed at once")
	for i, n := range nodes {
		p[i] = l.start(n)
	}
	l.awaitFormed(p...)
	if lost := l.net.Audit(); len(lost) != 3*20 {
		t.Errorf("%d losses, want the 20 last writes for each of 3 coordinators", len(lost))
	}
	if value, err := p[0].Read("shop", "key 5", ring.Quorum); err != nil || value != "5" {
		t.Errorf("read %q, error %v", value, err)
	}
}

func TestWritesNeedTheirReplicas(t *testing.T) {
	l, _, p := filled(t, 1, 3)
	p[1].Kill()
	p[2].Kill()
	l.line.RunFor(10 * time.Second)
	if err := p[0].Write("shop", "k", "v", ring.Quorum); err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("before the deaths are known: error %v", err)
	}
	l.line.RunFor(20 * time.Second)
	if err := p[0].Write("shop", "k", "v", ring.Quorum); err == nil ||
		!strings.Contains(err.Error(), "cannot achieve consistency level QUORUM") {
		t.Errorf("error %v", err)
	}
	if err := p[0].Write("shop", "k", "v", ring.One); err != nil {
		t.Errorf("at ONE: %v", err)
	}
	l.noneLost()
}

func TestANewDatacenterHasDataAfterARebuild(t *testing.T) {
	l, _, p := filled(t, 1, 3)
	var far []*Process
	for i := range 2 {
		n := member(7 + i)
		n.dc = "dc2"
		far = append(far, l.start(n, l.fresh(7+i, 40)...))
	}
	l.awaitFormed(append(p, far...)...)
	l.do("alter", func() {
		s, err := p[0].CQL(context.Background())
		if err == nil {
			_, err = s.RaiseReplication(context.Background(), map[string]map[string]int{"shop": {"dc1": 3, "dc2": 2}})
		}
		if err != nil {
			t.Error(err)
		}
	})
	if value, err := far[0].Read("shop", "key 5", ring.LocalOne); err != nil || value != "" {
		t.Errorf("before the rebuild: %q, error %v", value, err)
	}
	if lost := l.net.AuditWithin(p[0].settings.clusterName, "dc2"); len(lost) != 2*100 {
		t.Errorf("before the rebuild %d losses within the datacenter, want the 100 rows for each of 2 coordinators",
			len(lost))
	}
	if lost := l.net.AuditWithin(p[0].settings.clusterName, "dc1"); len(lost) > 0 {
		t.Errorf("within the first datacenter: %v", lost)
	}
	for _, x := range far {
		if err := nodeview.New(l.client(x)).Rebuild(context.Background(), "dc1", "shop"); err != nil {
			t.Fatal(err)
		}
	}
	if value, err := far[0].Read("shop", "key 5", ring.LocalQuorum); err != nil || value != "5" {
		t.Errorf("after the rebuild: %q, error %v", value, err)
	}
	if lost := l.net.AuditWithin(p[0].settings.clusterName, "dc2"); len(lost) > 0 {
		t.Errorf("after the rebuild: %v", lost)
	}
}

func TestAFullDiskEndsTheJVMAtTheNextWrite(t *testing.T) {
	l, nodes, p := filled(t, 1, 3)
	nodes[2].disk.Fill(true)
	l.fill(p[0], "shop", 100, 101)
	if exit := p[2].Exit(); exit.Code != 100 || !strings.Contains(exit.FatalLine, "No space left on device") {
		t.Errorf("exit is %+v", exit)
	}
	l.noneLost()
}
