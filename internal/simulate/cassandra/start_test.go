package cassandra

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/jolokia"
)

// TestAStartPassesThroughItsStages holds a first start to what was measured: no answer, no beans,
// STARTING, NORMAL, and CQL last.
func TestAStartPassesThroughItsStages(t *testing.T) {
	l := newLab(t, 1)
	n := member(1)
	p := l.start(n, l.fresh(1, 1)...)
	client := nodeview.New(l.client(p))
	at := map[string]time.Duration{}
	note := func(stage string) {
		if _, seen := at[stage]; !seen {
			at[stage] = l.line.Now().Sub(begin)
		}
	}
	for range 300 {
		view, err := client.View(context.Background())
		switch {
		case errors.Is(err, jolokia.ErrUnreachable):
			note("unreachable")
		case errors.Is(err, cassandra.ErrStarting):
			note("starting")
		case err != nil:
			t.Fatal(err)
		case view.NativeTransportRunning:
			note("native")
		default:
			note(string(view.Mode))
		}
		l.line.RunFor(50 * time.Millisecond)
	}
	within := func(stage string, low, high time.Duration) {
		if at[stage] < low || at[stage] > high {
			t.Errorf("stage %s came after %s, want %s to %s (all: %v)", stage, at[stage], low, high, at)
		}
	}
	within("starting", 700*time.Millisecond, 1100*time.Millisecond)
	within("STARTING", 4*time.Second, 6100*time.Millisecond)
	within("NORMAL", at["STARTING"], at["STARTING"]+3*time.Second)
	within("native", at["NORMAL"]+500*time.Millisecond, at["NORMAL"]+1500*time.Millisecond) // gossip settles in 1 s
	report := n.disk.Report()
	if report.Local == nil || report.Local.Bootstrapped != disk.Completed || report.Local.HostID != p.HostID() ||
		len(report.Local.Tokens) != 4 {
		t.Errorf("disk is %+v", report)
	}
}

// TestEarly50HasNoBeanBeforeItHasJoined is CASSANDRA-19902.
func TestEarly50HasNoBeanBeforeItHasJoined(t *testing.T) {
	l := newLab(t, 1)
	l.release = "5.0.2"
	p := l.start(member(1), l.fresh(1, 1)...)
	for !p.NativeOpen() {
		view, err := nodeview.New(l.client(p)).View(context.Background())
		if err == nil && view.Mode != nodeview.ModeNormal {
			t.Fatalf("the bean is there in mode %s", view.Mode)
		}
		l.line.RunFor(100 * time.Millisecond)
	}
}

func TestNineNodesFormTogether(t *testing.T) {
	for seed := range uint64(5) {
		l := newLab(t, seed)
		_, processes := l.form(9)
		if took := l.line.Now().Sub(begin); took > 25*time.Second {
			t.Errorf("it took %s", took)
		}
		for _, p := range processes {
			view := l.view(p)
			if len(view.HostIDs) != 9 || len(view.Tokens) != 36 || len(view.Live) != 9 || len(view.Unreachable) != 0 {
				t.Errorf("view of %s: %d members, %d tokens, %v live, %v unreachable", p.Address(), len(view.HostIDs),
					len(view.Tokens), view.Live, view.Unreachable)
			}
		}
	}
}

// TestRefusedStarts are the starts that Cassandra refuses, with its exit codes and words.
func TestRefusedStarts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *lab, n *node)
		code   int
		line   string
	}{
		"cluster name": {func(l *lab, n *node) { l.name = "other" }, 100,
			"Saved cluster name orders != configured name other"},
		"datacenter": {func(_ *lab, n *node) { n.dc = "dc9" }, 100, "differs from previous data center (dc1)"},
		"rack":       {func(_ *lab, n *node) { n.rack = "r9" }, 100, "differs from previous rack (r1)"},
		"number of token": {func(l *lab, n *node) { l.tokens = 8 }, 1,
			"Cannot change the number of tokens from 4 to 8"},
		"unknown setting": {func(_ *lab, n *node) { n.settings = "no_such_setting: 1\n" }, 3,
			"Please remove properties [no_such_setting]"},
		"broken file": {func(_ *lab, n *node) { n.settings = "this is no yaml\n" }, 3, "Invalid yaml"},
		"corrupt files": {func(_ *lab, n *node) { n.disk.Corrupt("Corrupted: nb-1-big-Data.db") }, 100,
			"Corrupted: nb-1-big-Data.db"},
		"full disk": {func(_ *lab, n *node) { n.disk.Fill(true) }, 100, "No space left on device"},
		"decommissioned": {func(_ *lab, n *node) { n.disk.setWord(disk.Decommissioned) }, 1,
			"This node was decommissioned and will not rejoin the ring"},
		"fault": {func(_ *lab, n *node) { n.fault = &Exit{Code: 42, FatalLine: "no good"} }, 42, "no good"},
		"another listen address": {func(l *lab, n *node) {
			n.address = address(7)
			l.moved = true
		}, 3, "Unable to bind to address /10.0.0.7:7000"},
		"too few initial tokens": {func(_ *lab, n *node) { n.settings = "initial_token: 1,2\n" }, 3,
			"The number of initial tokens (by initial_token) specified (2) is different from num_tokens value (4)"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			nodes, processes := l.form(1)
			processes[0].Kill()
			before := nodes[0].disk.log.hostID
			c.change(l, nodes[0])
			exit := l.awaitExit(l.start(nodes[0]), time.Minute)
			if exit.Code != c.code || !strings.Contains(exit.FatalLine, c.line) {
				t.Errorf("ended with %d: %s", exit.Code, exit.FatalLine)
			}
			if nodes[0].disk.HostID() != before {
				t.Error("the disk has another host id")
			}
		})
	}
}

func TestANodeThatReachesNoSeedGivesUpAfterAMinute(t *testing.T) {
	l := newLab(t, 1)
	n := member(2)
	exit := l.awaitExit(l.start(n, l.fresh(2, 3)...), 2*time.Minute)
	if took := exit.At.Sub(begin); exit.Code != 3 ||
		!strings.Contains(exit.FatalLine, "Unable to gossip with any peers") || took < time.Minute ||
		took > 75*time.Second {
		t.Errorf("after %s: %+v", took, exit)
	}
}

func TestASeedThatReachesNoOtherGoesOnAloneAfterHalfAMinute(t *testing.T) {
	l := newLab(t, 1)
	l.seeds = []netip.Addr{address(1), address(2)}
	p := l.start(member(1), l.fresh(1, 3)...)
	l.awaitMode(p, modeNormal)
	if took := l.line.Now().Sub(begin); took < 30*time.Second || took > 45*time.Second {
		t.Errorf("it took %s", took)
	}
	// The other seed finds it, and they are one ring.
	q := l.start(member(2), l.fresh(2, 3)...)
	l.awaitFormed(p, q)
}

// TestSeedsThatKnowNobodyElseFormRingsOfTheirOwn is what wrong lists of seeds do.
func TestSeedsThatKnowNobodyElseFormRingsOfTheirOwn(t *testing.T) {
	l := newLab(t, 1)
	p := l.start(member(1), l.fresh(1, 2)...)
	l.seeds = []netip.Addr{address(2)}
	q := l.start(member(2), l.fresh(2, 2)...)
	l.line.RunFor(5 * time.Minute)
	if p.Mode() != modeNormal || q.Mode() != modeNormal || len(l.view(p).HostIDs) != 1 || len(l.view(q).HostIDs) != 1 {
		t.Fatalf("members %v and %v", l.view(p).HostIDs, l.view(q).HostIDs)
	}
	// One hears of the other: the rings become one.
	q.options.Files["cassandra.yaml"] = l.files(member(2))["cassandra.yaml"]
	l.seeds = []netip.Addr{address(1), address(2)}
	q.options.Files["cassandra.yaml"] = l.files(member(2))["cassandra.yaml"]
	if _, err := nodeview.New(l.client(q)).ReloadSeeds(context.Background()); err != nil {
		t.Fatal(err)
	}
	l.awaitFormed(p, q)
}

func TestClustersOfOtherNamesDoNotTalk(t *testing.T) {
	l := newLab(t, 1)
	_, processes := l.form(1)
	l.name = "another"
	l.seeds = []netip.Addr{address(1)}
	n := member(2)
	if exit := l.awaitExit(l.start(n, l.fresh(2, 2)...), 2*time.Minute); !strings.Contains(exit.FatalLine,
		"Unable to gossip with any peers") {
		t.Errorf("ended with %+v", exit)
	}
	if members := l.view(processes[0]).HostIDs; len(members) != 1 {
		t.Errorf("members are %v", members)
	}
}

func TestWrongCredentialsAreRefused(t *testing.T) {
	l := newLab(t, 1)
	_, processes := l.form(1)
	client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:7777/jolokia/", User: "helenus", Password: "wrong",
		Transport: driven{l, processes[0]}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nodeview.New(client).View(context.Background()); !errors.Is(err, jolokia.ErrUnauthorized) {
		t.Errorf("error %v", err)
	}
}

func TestCQLOpensOnlyAfterTheSetup(t *testing.T) {
	l := newLab(t, 1)
	p := l.start(member(1), append(l.fresh(1, 1), "cassandra.start_native_transport=false")...)
	l.awaitMode(p, modeNormal)
	client := nodeview.New(l.client(p))
	if err := client.StartNativeTransport(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "setup() must be called first") {
		t.Errorf("error %v", err)
	}
	l.line.RunFor(3 * time.Second)
	if p.NativeOpen() {
		t.Error("CQL opened by itself")
	}
	if err := client.StartNativeTransport(context.Background()); err != nil || !p.NativeOpen() {
		t.Errorf("open %v, error %v", p.NativeOpen(), err)
	}
}
