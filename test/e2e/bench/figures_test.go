package main

import (
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

func TestFiguresArePrintedAsTheyWereMeasured(t *testing.T) {
	f := &figures{
		command: "make bench", host: "2 cores", version: "5.0.6", kubernetes: "v1.35.4",
		at:  time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC),
		one: 20 * time.Second, formed: map[int]time.Duration{3: 30 * time.Second, 9: 60 * time.Second},
		bootstrapped: map[int]time.Duration{9: 450 * time.Second},
		sameFlags:    map[int]time.Duration{3: 60 * time.Second},
		memory:       []memory{{"operator", []uint64{40 << 20, 30 << 20}}},
		idle:         &idle{window: 10 * time.Minute, nodes: 3, writes: 2, detail: "    2  patch x\n"},
		rollOuts: []rollOut{{nodes: 9, service: scene.Service{Requests: 3000, Served: 3000}},
			{most: "1", nodes: 9, took: 171 * time.Second, own: 162 * time.Second, quiet: true},
			{most: "1", nodes: 9, took: 180 * time.Second, own: 162 * time.Second,
				service: scene.Service{Requests: 9000, Served: 8999, Gap: 1500 * time.Millisecond}},
			{most: "100%", nodes: 9, took: 90 * time.Second, own: 81 * time.Second,
				service: scene.Service{Requests: 4500, Served: 4500,
					Registers: scene.Registers{Operations: 12, Linearizable: true}}}},
		operations: []operation{{what: "all 4 nodes stop", took: 20 * time.Second},
			{what: "one node leaves", took: 50 * time.Second, own: 45 * time.Second}},
		backedUp: &backedUp{files: 12, bytes: 300 << 20, up: transfer{40 << 20, 500 << 20, 50 << 20, 0.25},
			besides: []besides{{"nothing", 1000, 0, 10 * time.Millisecond}, {"a repair", 500, 1, 12 * time.Millisecond}},
			memory:  []memory{{"agent that sends", []uint64{50 << 20}}},
			behind:  []time.Duration{time.Second, 20 * time.Second, 40 * time.Second},
			formed:  20 * time.Second, formedAgain: 30 * time.Second, restored: 30 * time.Second,
			fetching: 5 * time.Second},
	}
	f.backedUp.again.files, f.backedUp.again.bytes = 10, 1000
	f.backedUp.again.requests, f.backedUp.again.sent = 15, 5
	got := f.markdown()
	for _, want := range []string{
		"Measured by `make bench` on 1 March 2025, with Cassandra 5.0.6 on Kubernetes v1.35.4; the host: 2 cores; " +
			"load before: 0.0.\n",
		"| 1 node | 20.0 s | | | | | |\n",
		"| 3 nodes | 30.0 s | 1.5 × |  |  | 60.0 s | 2.0 × |\n",
		"| 9 nodes | 60.0 s | 3.0 × | 450.0 s | 7.5 × |  |  |\n",
		"| operator | 2 | 30.0 MiB | 40.0 MiB |\n",
		"| none: the ring at rest |  |  |  | 3000 | 0 | 0.0 s |",
		"| maxUnavailable 1, without a client | 171.0 s | | 1.0 s | | | | |\n",
		"| maxUnavailable 1 | 180.0 s |  | 2.0 s | 9000 | 1 | 1.5 s |",
		"| maxUnavailable 100% | 90.0 s | 2.0 × | 1.0 s | 4500 | 0 | 0.0 s | 12 CAS operations, linearizable |\n",
		"| all 4 nodes stop | 20.0 s |  |  |\n", "| one node leaves | 50.0 s | 45.0 s | 5.0 s |\n",
		"of 3 nodes in 10m0s in which nothing happened, without leases: **2**\n\n```\n    2  patch x\n```\n",
		"Three nodes, 12 files of 300 MiB in all.\n", "| upload, three at once | 40 | 500 | 50 | 80 % | 88 % | 25 % |\n",
		"sent 0.50 % of the bytes, by 1.50 requests for each of 10 files.\n",
		"| a repair | 500 | 1 | 12.0 ms | 1.2 × |\n", "sent every 30s: 20.0 s behind, at most 40.0 s.\n",
		"| agent that sends | 1 | 50.0 MiB | 50.0 MiB |\n", "| against an empty one and the downloads | 1.0 × |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "| download") {
		t.Error("a download is printed that was not measured")
	}
	if strings.Contains(got, "busy") {
		t.Error("a quiet host is called busy")
	}
}

func TestWhatWasNotMeasuredIsNotPrinted(t *testing.T) {
	got := (&figures{loadBefore: 1000}).markdown()
	if strings.Contains(got, "|") || strings.Contains(got, "Writes") {
		t.Errorf("printed although nothing was measured:\n%s", got)
	}
	if !strings.Contains(got, "say little") {
		t.Errorf("a busy host is not mentioned:\n%s", got)
	}
}

func TestTheTimeInTheMiddleCounts(t *testing.T) {
	for want, times := range map[time.Duration][]time.Duration{1: {1}, 2: {9, 1, 2}, 5: {5, 1}} {
		if got := middle(times); got != want {
			t.Errorf("the middle of %v is %v, want %v", times, got, want)
		}
	}
}

func TestTimesInWhichCassandraIsAtWork(t *testing.T) {
	at := func(second int, text string) scene.Line {
		return scene.Line{At: time.Unix(int64(second), 0), Text: text}
	}
	got := worked(layout.CassandraContainer, []scene.Line{
		at(1, "Starting repair command #1"), at(2, "LEAVING: sleeping"),
		at(4, "Repair command #1 finished"), at(5, "LEAVING: streaming"), at(9, "DECOMMISSIONED"),
		at(10, "Starting repair command #2")})
	if want := 8 * time.Second; covered(got) != want || len(got) != 2 {
		t.Errorf("%s in %v, want %s", covered(got), got, want)
	}
	if got := worked(layout.AgentContainer, []scene.Line{at(1, "LEAVING"), at(2, "DECOMMISSIONED")}); len(got) > 0 {
		t.Errorf("an agent was at work for Cassandra in %v", got)
	}
}

func TestTimeThatIsCovered(t *testing.T) {
	at := func(from, to int) span { return span{time.Unix(int64(from), 0), time.Unix(int64(to), 0)} }
	for name, c := range map[string]struct {
		spans   []span
		seconds float64
	}{
		"nothing":                     {nil, 0},
		"one after the other":         {[]span{at(5, 7), at(1, 2)}, 3},
		"at the same time":            {[]span{at(1, 5), at(1, 5), at(2, 3)}, 4},
		"each a little later":         {[]span{at(1, 5), at(3, 8), at(8, 9)}, 8},
		"a long one about two others": {[]span{at(1, 20), at(3, 4), at(10, 11)}, 19},
	} {
		if got := covered(c.spans); got.Seconds() != c.seconds {
			t.Errorf("%s: %s, want %.0f s", name, got, c.seconds)
		}
	}
}

func TestAgentsAreMeasuredByTheirRequests(t *testing.T) {
	at := func(from, to int, bytes int64) scene.Asked {
		return scene.Asked{Began: time.Unix(int64(from), 0), Ended: time.Unix(int64(to), 0), Sent: bytes}
	}
	rate, all := moved(map[string][]scene.Asked{"a": {at(3, 6, 40), at(1, 2, 20)}, "b": {at(2, 7, 40)}})
	if rate != 10 || all.from.Unix() != 1 || all.to.Unix() != 7 {
		t.Errorf("%.1f bytes in a second, in %v", rate, all)
	}
	by := map[string][]scene.Asked{"a": {at(0, 2, 0), at(3, 4, 0)}, "b": {at(0, 4, 0)}}
	if share := waiting(by, 2); share != 7.0/16 {
		t.Errorf("waits for the store %f of the time", share)
	}
	if rate, _ := moved(nil); rate != 0 {
		t.Errorf("nobody has moved %.1f bytes in a second", rate)
	}
}

func TestAnUploadEndsWithItsManifest(t *testing.T) {
	asked := func(method, key string, from, to int64) scene.Asked {
		return scene.Asked{Method: method, Key: key, Began: time.Unix(from, 0), Ended: time.Unix(to, 0)}
	}
	all := []scene.Asked{asked("GET", "u/nodes/a/b.manifest", 1, 2), asked("PUT", "u/blobs/1", 2, 4),
		asked("PUT", "u/nodes/a/b.manifest", 4, 5), asked("GET", "u/nodes/a/b.manifest", 8, 9)}
	if s := spanOf(upToManifest(all)); s.from.Unix() != 1 || s.to.Unix() != 5 {
		t.Errorf("it lasts from %s to %s", s.from, s.to)
	}
	if got := upToManifest(all[:2]); len(got) != 2 {
		t.Errorf("without a manifest there are %d requests", len(got))
	}
}

func TestReadsWithinSpans(t *testing.T) {
	var all []read
	for i := range 200 {
		all = append(all, read{time.Unix(int64(i), 0), time.Duration(i), i == 150})
	}
	reads := within(all, []span{{time.Unix(0, 0), time.Unix(50, 0)}, {time.Unix(150, 0), time.Unix(200, 0)}})
	if failed, p99 := reached(reads); len(reads) != 100 || failed != 1 || p99 != 199 {
		t.Errorf("%d reads, %d failed, 99 %% within %d", len(reads), failed, p99)
	}
	if failed, p99 := reached(nil); failed != 0 || p99 != 0 {
		t.Errorf("of none %d failed, 99 %% within %d", failed, p99)
	}
}

func TestANodeCompactsNothing(t *testing.T) {
	for out, is := range map[string]bool{
		"concurrent compactors            2\npending tasks                    0          \n": true,
		"pending tasks: 0\n":                    true,
		"pending tasks                    10\n": false,
	} {
		if compacted.MatchString(out) != is {
			t.Errorf("%q", out)
		}
	}
}
