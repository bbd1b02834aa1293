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

// TestACrossingByForceLeavesAMemberOutForAMinute is 1c of the measurements: both start, and for
// about a minute some view lacks a member that is NORMAL.
func TestACrossingByForceLeavesAMemberOutForAMinute(t *testing.T) {
	incomplete := 0
	for seed := range uint64(5) {
		l := newLab(t, seed)
		nodes, p := l.form(3)
		p[1].Terminate()
		p[2].Terminate()
		l.await("their ends", time.Minute, func() bool { return p[1].Ended() && p[2].Ended() })
		nodes[1].address, nodes[2].address = nodes[2].address, nodes[1].address
		p[1] = l.start(nodes[1], "cassandra.allow_unsafe_join=true")
		l.line.RunFor(3 * time.Second) // of two generations of one second Cassandra ignores one for good
		p[2] = l.start(nodes[2], "cassandra.allow_unsafe_join=true")
		l.await("both NORMAL", time.Minute, func() bool {
			return p[1].Mode() == modeNormal && p[2].Mode() == modeNormal
		})
		l.line.RunFor(20 * time.Second)
		for _, x := range p {
			if len(l.view(x).HostIDs) < 3 {
				incomplete++
			}
		}
		l.awaitFormed(p...)
	}
	if incomplete == 0 {
		t.Error("no view lacked a member in five crossings")
	}
}

// TestTwoDecommissionsAtOnce is 2f: the second fails, stays in service, and succeeds later.
func TestTwoDecommissionsAtOnce(t *testing.T) {
	failed := false
	for seed := range uint64(5) {
		l, _, p := filled(t, seed, 7)
		first := l.exec(p[3], "decommission(boolean)", true)
		l.line.RunFor(5 * time.Second)
		second := l.exec(p[6], "decommission(boolean)", true)
		l.await("both answers", 3*time.Minute, func() bool {
			return !errors.Is(*first, io.EOF) && !errors.Is(*second, io.EOF)
		})
		for i, err := range []error{*first, *second} {
			x := p[3+3*i]
			if err == nil {
				continue
			}
			failed = true
			if !strings.Contains(err.Error(), "data is currently moving to this node; unable to leave the ring") ||
				x.Mode() != modeDecommissionFailed || !x.NativeOpen() {
				t.Errorf("seed %d: mode %s, CQL open %v, error %v", seed, x.Mode(), x.NativeOpen(), err)
			}
			l.line.RunFor(time.Minute)
			again := l.exec(x, "decommission(boolean)", true)
			l.await("the answer", 3*time.Minute, func() bool { return !errors.Is(*again, io.EOF) })
			if *again != nil || x.Mode() != modeDecommissioned {
				t.Errorf("seed %d: again in mode %s: %v", seed, x.Mode(), *again)
			}
		}
		l.line.RunFor(time.Minute)
		l.noneLost()
	}
	if !failed {
		t.Error("neither of two decommissions failed in five rings")
	}
}

// TestAStartThatIsInterruptedLeavesNoMember kills a first start at every tenth of a second: the
// disk never says more than has happened, and the same start made again joins.
func TestAStartThatIsInterruptedLeavesNoMember(t *testing.T) {
	words := map[disk.Bootstrapped]bool{}
	empty, joined := 0, 0
	for after := 500 * time.Millisecond; after < 9*time.Second; after += 200 * time.Millisecond {
		l := newLab(t, 1)
		n := member(1)
		p := l.start(n, l.fresh(1, 1)...)
		l.line.RunFor(after)
		mode := p.Mode()
		p.Kill()
		report := n.disk.Report()
		if report.Empty() {
			empty++
		}
		if report.Local != nil {
			words[report.Local.Bootstrapped] = true
			if (report.Local.Bootstrapped == disk.Completed) != (mode == modeNormal) {
				t.Errorf("after %s in mode %s the disk says %q", after, mode, report.Local.Bootstrapped)
			}
		}
		if mode == modeNormal {
			joined++
		}
		again := l.start(n, l.fresh(1, 1)...)
		l.awaitFormed(again)
		if host := n.disk.HostID(); host == "" ||
			report.Local != nil && report.Local.HostID != "" && host != report.Local.HostID {
			t.Errorf("after %s the host id changed to %s", after, host)
		}
	}
	if empty == 0 || joined == 0 || !words[disk.BootstrapUnknown] || !words[disk.Completed] ||
		words[disk.NeedsBootstrap] {
		t.Errorf("%d disks were empty, %d nodes had joined, words %v", empty, joined, words)
	}
}

// TestTerminatingAStartEndsIt at every point.
func TestTerminatingAStartEndsIt(t *testing.T) {
	for after := time.Duration(0); after < 9*time.Second; after += 300 * time.Millisecond {
		l := newLab(t, 1)
		n := member(1)
		p := l.start(n, l.fresh(1, 1)...)
		l.line.RunFor(after)
		p.Terminate()
		l.await("its end", 30*time.Second, p.Ended)
		if e := p.Exit(); e.Code != 143 {
			t.Errorf("after %s: %+v", after, e)
		}
		l.line.RunFor(time.Minute)
		if p.Mode() == modeNormal {
			t.Errorf("after %s it became NORMAL in its end", after)
		}
	}
}

func TestATakenAddressCannotBeBound(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(1)
	n := member(2)
	n.address = address(1)
	if exit := l.awaitExit(l.start(n), time.Minute); exit.Code != 3 ||
		!strings.Contains(exit.FatalLine, "is in use by another process") {
		t.Errorf("exit is %+v", exit)
	}
	if p[0].Ended() || !slices.Contains(l.net.Processes(), p[0]) || l.net.Process(address(1)) != p[0] {
		t.Error("the first node is gone")
	}
}
