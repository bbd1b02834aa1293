package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

func stopsDC2(yes bool) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].Stopped = yes }
}

// withoutDC2 is a ring of two datacenters of which the second is stopped.
func withoutDC2(t *testing.T) *world {
	t.Helper()
	w := twoDatacenters(t)
	for _, n := range w.snapshot.Records() {
		n.Agent.GCGrace = 240 * time.Hour
	}
	w.change(stopsDC2(true))
	w.settled()
	w.wantDC2Down()
	return w
}

func (w *world) wantDC2Down() {
	w.t.Helper()
	if l := w.snapshot.Ledger; l.StoppedDatacenter("dc2") == nil || l.Step != nil {
		w.t.Fatalf("the ledger is %s; blocked by %+v", ledgerInWords(l), w.pass().Blocked)
	}
	w.wantTraffic(v1alpha1.TrafficClosed, inDC2, alsoInDC2)
	w.wantTraffic(v1alpha1.TrafficOpen, "orders-dc1-r1-0", "orders-dc1-r2-0")
	if pods := w.podsThere(); !slices.Equal(pods, []string{"orders-dc1-r1-0", "orders-dc1-r2-0"}) {
		w.t.Errorf("pods of %v are there", pods)
	}
}

func traceDatacenterStops(t *testing.T, s *trace) {
	w := twoDatacenters(t)
	s.ledger = w.snapshot.Ledger
	s.say("The second datacenter is to stop.")
	w.change(stopsDC2(true))
	s.runUntilIdle(w, nil)
	w.now = w.now.Add(12 * time.Second)
	s.say("\nHints that were in memory are counted.")
	s.runUntilIdle(w, nil)
	s.say("\nAn hour later it starts.")
	w.now = w.now.Add(time.Hour)
	w.change(stopsDC2(false))
	s.runUntilIdle(w, nil)
}

func says(made plan.Plan, reason v1alpha1.Reason, words ...string) bool {
	return slices.ContainsFunc(reported(made), func(b v1alpha1.BlockedStep) bool {
		return b.Reason == reason && !slices.ContainsFunc(words,
			func(word string) bool { return !strings.Contains(b.Message, word) })
	})
}

// A plan says beforehand what comes of it, and when; the status says it for as long as it lasts.
func TestTheAbsenceOfADatacenterIsForetold(t *testing.T) {
	w := twoDatacenters(t)
	for _, n := range w.snapshot.Records() {
		n.Agent.GCGrace = 240 * time.Hour
	}
	w.change(stopsDC2(true))
	at := func(d time.Duration) string { return w.now.Add(d).UTC().Format(time.RFC3339) }
	if made := next(w); !says(made, v1alpha1.NoticeDatacenterStopped, "dc2 is to stop",
		at(3*time.Hour)+" its nodes have to be repaired", at(240*time.Hour)+" each starts only by a person's word") {
		t.Errorf("reported %+v", reported(made))
	}
	w.settled()
	w.wantDC2Down()
	since := w.snapshot.Ledger.StoppedDatacenter("dc2").Since
	if made := w.pass(); !says(made, v1alpha1.NoticeDatacenterStopped,
		"dc2 is stopped since "+since.Format(time.RFC3339), since.Add(240*time.Hour).Format(time.RFC3339)) {
		t.Errorf("reported %+v", reported(made))
	}
}

// While the stop waits, and while it is under way, what is said of it stays the same.
func TestTheAbsenceOfADatacenterIsSaidOnce(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(w *world)
		says    string
	}{
		"it is paused": {func(w *world) {
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Paused = true })
		}, "Counted from when it does: back after 3h0m0s its nodes have to be repaired"},
		"a node that stops is not heard of": {func(w *world) { w.absent[alsoInDC2] = true }, "If that is now"},
	} {
		t.Run(name, func(t *testing.T) {
			w := twoDatacenters(t)
			c.disturb(w)
			w.change(stopsDC2(true))
			var said []string
			for range 8 {
				w.snapshot.Cluster.Status.ObservedGeneration = w.snapshot.Cluster.Generation
				made := w.settle()
				for _, n := range made.Notices {
					if n.Reason == v1alpha1.NoticeDatacenterStopped {
						said = append(said, n.Message)
					}
				}
				w.now = w.now.Add(40 * time.Minute)
			}
			if len(said) != 8 || len(slices.Compact(slices.Clone(said))) != 1 || !strings.Contains(said[0], c.says) {
				t.Errorf("want one notice with %q, eight times: %q", c.says, said)
			}
		})
	}
}

// While a datacenter is stopped the others follow their spec, what needs every member says for
// which it waits, and nothing that is lost has it start.
func TestADatacenterStaysDown(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(w *world)
		reason  v1alpha1.Reason
	}{
		"nothing happens": {func(*world) {}, ""},
		"a record is gone": {func(w *world) {
			w.snapshot.Nodes[inDC2].Record = nil
			w.held = map[string]v1alpha1.DiskState{inDC2: v1alpha1.DiskMember}
		}, ""},
		"the ledger is gone": {func(w *world) { w.snapshot.Ledger = nil }, ""},
		"a setting changes":  {func(w *world) { w.change(setting("concurrent_reads", "16")) }, ""},
		"it is to grow": {func(w *world) {
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
		}, v1alpha1.BlockedMemberDown},
		"it gets another release": {func(w *world) {
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" })
		}, v1alpha1.BlockedMemberDown},
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutDC2(t)
			c.disturb(w)
			for range 4 {
				w.settled()
			}
			made := w.settled()
			if l := w.snapshot.Ledger; l.StoppedDatacenter("dc2") == nil {
				t.Fatalf("the ledger is %s", ledgerInWords(l))
			}
			w.wantTraffic(v1alpha1.TrafficClosed, inDC2, alsoInDC2)
			if pods := w.podsThere(); slices.Contains(pods, inDC2) || slices.Contains(pods, alsoInDC2) {
				t.Errorf("pods of %v are there", pods)
			}
			if c.reason != "" && !says(made, c.reason, "datacenter dc2 is stopped since", "back after") {
				t.Errorf("reported %+v", reported(made))
			}
			for _, n := range w.snapshot.Records() {
				has := string(n.Record.Spec.Configuration.CassandraYaml["concurrent_reads"].Raw) == "16"
				if name == "a setting changes" && has != (n.Record.Spec.Datacenter == "dc1") {
					t.Errorf("node %s has the setting: %v", n.Name, has)
				}
			}
			w.change(stopsDC2(false))
			for range 8 { // what waits for a time, such as the soak of a roll-out
				w.settled()
			}
			w.wantOpen()
			if l := w.snapshot.Ledger; len(l.StoppedDatacenters) > 0 || len(l.Members) != len(wantedOf(w)) {
				t.Errorf("the ledger is %s", ledgerInWords(l))
			}
		})
	}
}

// Taken back, the stop of a datacenter turns round wherever it is, and its start, too.
func TestTheStopOfADatacenterIsTakenBack(t *testing.T) {
	for _, stage := range []ledger.Stage{ledger.StageClose, ledger.StageDeliver, ledger.StageDrain} {
		t.Run(string(stage), func(t *testing.T) {
			w := twoDatacenters(t)
			w.snapshot.Nodes[inDC2].Agent.Ring.Hints = map[string]int{hostID("orders-dc1-r1-0"): 1}
			w.absent[alsoInDC2] = stage != ledger.StageDeliver
			w.change(stopsDC2(true))
			for range 400 {
				if s := w.snapshot.Ledger.Step; s != nil && s.Stage == stage {
					break
				}
				w.pass()
				w.now = w.now.Add(10 * time.Second)
			}
			if s := w.snapshot.Ledger.Step; s == nil || s.Kind != ledger.StopDatacenter || s.Stage != stage {
				t.Fatalf("the ledger is %s", ledgerInWords(w.snapshot.Ledger))
			}
			delete(w.absent, alsoInDC2)
			w.change(stopsDC2(false))
			w.settled()
			w.wantOpen()
		})
	}
	for _, stage := range []ledger.Stage{ledger.StageStart, ledger.StageOpen} {
		t.Run(string(stage), func(t *testing.T) {
			w := withoutDC2(t)
			since := w.snapshot.Ledger.StoppedDatacenter("dc2").Since
			w.now, w.absent[inDC2] = w.now.Add(time.Minute), true
			w.change(stopsDC2(false))
			w.atStage(ledger.StopDatacenter, stage)
			delete(w.absent, inDC2)
			w.change(stopsDC2(true))
			w.settled()
			w.wantDC2Down()
			if s := w.snapshot.Ledger.StoppedDatacenter("dc2").Since; s.Equal(since) {
				t.Errorf("it is stopped since %s, before it began to start", s)
			}
		})
	}
}

// What a datacenter alone has nobody could serve; another step is brought to its end first; one
// that has not formed has nothing to stop.
func TestWhichDatacenterIsNotStopped(t *testing.T) {
	w := twoDatacenters(t)
	w.replicated(map[string]string{"cart": "NetworkTopologyStrategy {dc2=2}"})
	w.change(stopsDC2(true))
	if made := w.settled(); !says(made, v1alpha1.BlockedOnlyReplicas, "datacenter dc2", "keyspace cart") {
		t.Errorf("reported %+v", reported(made))
	}
	w.wantOpen()
	w.change(setting("concurrent_reads", "16")) // which it does not hold up
	for range 6 {
		w.settled()
	}
	for _, n := range w.snapshot.Records() {
		if string(n.Record.Spec.Configuration.CassandraYaml["concurrent_reads"].Raw) != "16" {
			t.Errorf("node %s has not taken over the setting", n.Name)
		}
	}

	accept := func(keyspace string) {
		w.change(func(s *v1alpha1.CassandraClusterSpec) {
			s.Exceptions = append(s.Exceptions, v1alpha1.Exception{Name: keyspace, Keyspace: keyspace,
				Type: v1alpha1.ExceptionAcceptUnavailable, Reason: "it is a cache",
				Until: metav1.NewTime(w.now.Add(24 * time.Hour))})
		})
	}
	accept("shop") // another one
	if made := w.settled(); !says(made, v1alpha1.BlockedOnlyReplicas, "keyspace cart", "AcceptUnavailable") {
		t.Errorf("reported %+v", reported(made))
	}
	accept("cart")
	w.settled()
	w.wantDC2Down()
	w.change(setting("concurrent_reads", "32")) // which waits for no keyspace
	for range 6 {
		w.settled()
	}
	for _, n := range w.snapshot.Records() {
		has := string(n.Record.Spec.Configuration.CassandraYaml["concurrent_reads"].Raw) == "32"
		if has != (n.Record.Spec.Datacenter == "dc1") {
			t.Errorf("node %s has taken over the setting: %v", n.Name, has)
		}
	}

	w = twoDatacenters(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters = append(s.Datacenters, datacenter("dc3", 1))
		s.Datacenters[2].Stopped = true
	})
	wantStalled(t, w.settle(), v1alpha1.ReasonInvalidSpec, "datacenters[dc3].stopped is true", "has not formed")
}

// A datacenter of which no node comes back, since all wait for the user, holds nothing up.
func TestADatacenterThatDoesNotComeBack(t *testing.T) {
	w := withoutDC2(t)
	w.absent[inDC2], w.absent[alsoInDC2] = true, true
	w.change(stopsDC2(false))
	w.settled()
	if s := w.snapshot.Ledger.Step; s == nil || s.Stage != ledger.StageStart {
		t.Fatalf("the ledger is %s", ledgerInWords(w.snapshot.Ledger))
	}
	for range 5 {
		w.now = w.now.Add(10 * time.Minute)
		w.settle()
	}
	if l := w.snapshot.Ledger; l.Step != nil || len(l.StoppedDatacenters) > 0 {
		t.Errorf("the ledger is %s", ledgerInWords(l))
	}
}
