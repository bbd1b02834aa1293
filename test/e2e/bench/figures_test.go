package main

import (
	"strings"
	"testing"
	"time"
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
	}
	got := f.markdown()
	for _, want := range []string{
		"Measured by `make bench` on 1 March 2025, with Cassandra 5.0.6 on Kubernetes v1.35.4; the host: 2 cores; " +
			"load before: 0.0.\n",
		"| 1 node | 20.0 s | | | | | |\n",
		"| 3 nodes | 30.0 s | 1.5 × |  |  | 60.0 s | 2.0 × |\n",
		"| 9 nodes | 60.0 s | 3.0 × | 450.0 s | 7.5 × |  |  |\n",
		"| operator | 2 | 30.0 MiB | 40.0 MiB |\n",
		"of 3 nodes in 10m0s in which nothing happened, without leases: **2**\n\n```\n    2  patch x\n```\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
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
