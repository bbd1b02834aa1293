package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/repair"
)

// withTable is a ring of three nodes with one table, of which nothing is known to be repaired.
func withTable(t *testing.T) *world {
	t.Helper()
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	for _, n := range w.snapshot.Nodes {
		n.Agent.Tables = []facts.Table{{ID: "a", Keyspace: "shop", Name: "rows", GCGrace: 240 * time.Hour, Bytes: 1 << 20,
			Compaction: "UnifiedCompactionStrategy"}}
	}
	w.ends(v1alpha1.OperationSucceeded)
	return w
}

// ends has operations end so; those of no phase run on.
func (w *world) ends(phase v1alpha1.OperationPhase) {
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		have := n.Record.Status.Operation(o.ID)
		now := metav1.NewTime(w.now)
		switch {
		case have != nil && have.Phase.Final():
			return n.Record.Status.Operations
		case o.Withdraw != nil && o.Withdraw.Cancel:
			return []v1alpha1.OperationStatus{{ID: o.ID, Phase: v1alpha1.OperationCancelled, StartedAt: have.StartedAt,
				FinishedAt: &now}}
		case phase == "":
			begun := &now
			if have != nil {
				begun = have.StartedAt
			}
			return []v1alpha1.OperationStatus{{ID: o.ID, Phase: v1alpha1.OperationRunning, StartedAt: begun}}
		}
		return []v1alpha1.OperationStatus{{ID: o.ID, Phase: phase, StartedAt: &now, FinishedAt: &now, Message: "so it is"}}
	}
}

// readRepairs has the snapshot carry what is kept of repairs, as the operator reads it.
func (w *world) readRepairs() {
	if m := w.snapshot.Shared.ConfigMaps[v1alpha1.RepairsName("orders")]; m != nil {
		h, err := repair.Decode(m.Data[render.RepairsKey])
		if err != nil {
			w.t.Fatal(err)
		}
		w.snapshot.Repairs = h
	}
}

func lastRepaired(p plan.Plan) *metav1.Time { return p.Repair.Oldest.LastRepaired }

// A table is repaired once, which is kept, and again when its time has come; in between nothing is
// written.
func TestATableIsRepairedInTime(t *testing.T) {
	w := withTable(t)
	began := w.now
	made := w.settle()
	last := lastRepaired(made)
	if last == nil || last.After(began) || w.open() != nil || *made.Repair.Progress != 100 || len(made.Notices) > 0 ||
		made.Repair.Tables[0].Name != "shop.rows" || made.Repair.Tables[0].Compaction != "UnifiedCompactionStrategy" ||
		!made.Repair.Oldest.Deadline.Time.Equal(last.Add(240*time.Hour)) {
		t.Fatalf("%+v\n%s", made.Repair, made)
	}
	for range 191 {
		w.now = w.now.Add(time.Hour)
		if made := w.pass(); len(made.Writes) > 0 {
			t.Fatalf("%s after the repair: %s", w.now.Sub(last.Time), made)
		}
	}
	w.now = last.Add(192 * time.Hour)
	if again := lastRepaired(w.settle()); again == nil || again.Sub(last.Time) < 192*time.Hour {
		t.Errorf("repaired at %s, then %s", last, again)
	}
}

// The status says how fast the ring was repaired lately, and does not change by itself. What has
// little to compare says nothing of it.
func TestTheRateOfRepairsIsTold(t *testing.T) {
	w := withTable(t)
	if made := w.settle(); made.Repair.Rate != nil {
		t.Errorf("a table of a megabyte is repaired at %s", made.Repair.Rate)
	}
	w = withTable(t)
	for _, n := range w.snapshot.Nodes {
		n.Agent.Tables[0].Bytes = 64 << 30
	}
	w.ends("")
	w.settle()
	w.now = w.now.Add(10 * time.Minute)
	w.ends(v1alpha1.OperationSucceeded)
	w.agents()
	made := w.settle() // five minutes of 8 MiB in ten
	if r := made.Repair.Rate; r == nil || r.String() != "4200k" || w.open() != nil {
		t.Fatalf("repaired at %s: %s", r, made)
	}
	w.now = w.now.Add(time.Minute)
	if made := w.pass(); len(made.Writes) > 0 || made.Repair.Rate.String() != "4200k" {
		t.Errorf("then at %s: %s", made.Repair.Rate, made)
	}
}

// An incremental repair of everything, which a person has asked for, proves nothing of the tables
// that are due.
func TestAnIncrementalRepairDoesNotCount(t *testing.T) {
	w := withTable(t)
	w.snapshot.Cluster.Spec.Repair.Mode = v1alpha1.RepairRecommend
	yes := true
	once := w.give("once", v1alpha1.TaskTemplate{Type: v1alpha1.TaskRepair, Incremental: &yes})
	made := w.minutes(10)
	w.wantTask(once, "Succeeded 3/3")
	if lastRepaired(made) != nil || *made.Repair.Progress != 0 {
		t.Errorf("%+v", made.Repair)
	}
}

// A table that has had one replica is repaired at once when it gets three, also if it was made a
// moment ago.
func TestARaisedReplicationIsRepaired(t *testing.T) {
	w := withTable(t)
	w.snapshot.Cluster.CreationTimestamp = metav1.NewTime(w.now) // the id of the table tells no time
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=1}"})
	asked := map[string]bool{}
	w.askedFor(asked)
	w.minutes(10)
	if len(asked) > 0 || w.snapshot.Repairs == nil {
		t.Fatalf("asked for %v, kept %+v", asked, w.snapshot.Repairs)
	}
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	made := w.minutes(10)
	if !asked["shop.rows"] || lastRepaired(made) == nil || w.open() != nil {
		t.Errorf("asked for %v, %+v", asked, made.Repair)
	}
	clear(asked)
	if w.minutes(60); len(asked) > 0 {
		t.Errorf("asked again for %v", asked)
	}
}

// Nothing but the word of Cassandra, through the agent, makes a unit repaired.
func TestWhatDoesNotCountAsRepaired(t *testing.T) {
	for name, c := range map[string]struct {
		phase     v1alpha1.OperationPhase
		change    func(*world)
		postponed bool
	}{
		"it failed":          {v1alpha1.OperationFailed, func(*world) {}, true},
		"its JVM has ended":  {v1alpha1.OperationInterrupted, func(*world) {}, true},
		"it was withdrawn":   {v1alpha1.OperationWithdrawn, func(*world) {}, false},
		"it takes too long":  {"", func(w *world) { w.now = w.now.Add(16 * time.Minute) }, true},
		"its pod is deleted": {"", func(w *world) { w.snapshot.Nodes[w.coordinator()].Record.Status.PodUID = "gone" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := withTable(t)
			w.ends("")
			w.settle()
			if w.open() == nil {
				t.Fatal("it does not begin")
			}
			node := w.coordinator()
			if w.ends(c.phase); c.phase == "" {
				w.ends("")
			}
			if c.change(w); c.phase != "" {
				w.agents()
			}
			for range 20 {
				if w.pass(); w.open() == nil {
					break
				}
			}
			m := w.snapshot.Shared.ConfigMaps[v1alpha1.RepairsName("orders")]
			if w.open() != nil || m == nil {
				t.Fatalf("step %+v, kept %v", w.open(), m)
			}
			h, err := repair.Decode(m.Data[render.RepairsKey])
			if err != nil || h.Tables["a"] != nil && len(h.Tables["a"].Runs) > 0 {
				t.Errorf("it counts as repaired: %+v, %v", h.Tables["a"], err)
			}
			if got := w.snapshot.Ledger.IsPostponed(ledger.RepairTables, node, w.now); got != c.postponed {
				t.Errorf("postponed %t", got)
			}
		})
	}
}

// What was postponed on a node, and others have repaired since, is forgotten when its time is over.
func TestWhatOthersHaveRepairedIsPostponedNoLonger(t *testing.T) {
	w := withTable(t)
	w.ends(v1alpha1.OperationSucceeded)
	w.settle()
	w.snapshot.Ledger.Postpone(ledger.RepairTables, "orders-dc1-r1-0", "it failed", w.now)
	w.settle()
	if len(w.snapshot.Ledger.PostponedOn(ledger.RepairTables)) != 1 {
		t.Error("it is forgotten before its time is over")
	}
	w.now = w.now.Add(ledger.PostponedFor)
	w.settle()
	if left := w.snapshot.Ledger.PostponedOn(ledger.RepairTables); len(left) > 0 {
		t.Errorf("it stays postponed on %v", left)
	}
}

// coordinator is the node that is asked for the first unit of the open step.
func (w *world) coordinator() string {
	for _, n := range w.snapshot.Names() {
		if r := w.snapshot.Nodes[n].Record; r != nil && slices.ContainsFunc(r.Spec.Operations,
			func(o v1alpha1.OperationIntent) bool { return o.Type == v1alpha1.OperationRepair }) {
			return n
		}
	}
	w.t.Fatal("no node is asked")
	return ""
}

// lacks has a node tell that it lacks rows, and its agent forget that by its record.
func (w *world) lacks(node string, reason v1alpha1.RepairReason) {
	status := &w.snapshot.Nodes[node].Record.Status
	status.RepairDue = append(status.RepairDue, v1alpha1.RepairDue{Reason: reason, Since: metav1.NewTime(w.now)})
}

// minutes have the schedule work for some time.
func (w *world) minutes(n int) (made plan.Plan) {
	for range n {
		w.now = w.now.Truncate(time.Minute).Add(time.Minute)
		made = w.settle()
		for _, n := range w.snapshot.Nodes {
			n.Record.Status.RepairDue = slices.DeleteFunc(n.Record.Status.RepairDue, func(d v1alpha1.RepairDue) bool {
				return slices.ContainsFunc(n.Record.Spec.Repaired, d.Is)
			})
		}
	}
	return made
}

// askedFor notes the keyspaces and tables of all repairs that the nodes were asked for.
func (w *world) askedFor(out map[string]bool) {
	was := w.operate
	w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
		if o.Type == v1alpha1.OperationRepair {
			out[strings.Join(append(o.Arguments.Keyspaces, o.Arguments.Tables...), ".")] = true
		}
		return was(n, o)
	}
}

// What a node must be repaired for is done range by range, of all that a person's repair is about,
// and people are not asked for it; then the entry is forgotten, by the agent first.
func TestTheScheduleRepairsANode(t *testing.T) {
	w := withTable(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}", "one": "NetworkTopologyStrategy {dc1=1}",
		"system_traces": "NetworkTopologyStrategy {dc1=3}"})
	w.minutes(10)
	w.lacks(second, v1alpha1.RepairCommitLogLost)
	asked := map[string]bool{}
	w.askedFor(asked)
	w.pass()
	made := next(w)
	if len(made.Recommended) > 0 || len(made.Notices) != 1 || made.Notices[0].Reason != v1alpha1.NoticeRepairScheduled ||
		!strings.Contains(made.Notices[0].Message, "commit log") || !strings.Contains(made.Notices[0].Message, " 0%") {
		t.Errorf("recommended %+v, notices %+v", made.Recommended, made.Notices)
	}
	w.minutes(3)
	w.lacks(second, v1alpha1.RepairScrubbed) // what is repaired until now does not count any more
	w.pass()
	if due := w.snapshot.Ledger.RepairDue; len(due) != 1 || len(due[0].Reasons) != 2 ||
		due[0].Reason != v1alpha1.RepairCommitLogLost || !strings.Contains(next(w).Notices[0].Message, " 0%") {
		t.Errorf("due is %+v, notices %+v", due, next(w).Notices)
	}
	w.minutes(4)
	if len(w.snapshot.Ledger.RepairDue) != 1 || len(w.snapshot.Nodes[second].Record.Spec.Repaired) > 0 {
		t.Errorf("due is %+v", w.snapshot.Ledger.RepairDue)
	}
	made = w.minutes(20)
	if len(w.snapshot.Ledger.RepairDue) > 0 || len(w.snapshot.Nodes[second].Record.Status.RepairDue) > 0 ||
		len(made.Notices) > 0 || !maps.Equal(asked, map[string]bool{"shop.rows": true, "system_traces": true}) {
		t.Errorf("due is %+v, notices %+v, asked for %v", w.snapshot.Ledger.RepairDue, made.Notices, asked)
	}
	clear(asked)
	if w.minutes(30); len(asked) > 0 {
		t.Errorf("asked for %v", asked)
	}
}

// A node that leaves waits until another one is repaired, and advises the command only where nobody
// has asked for a repair that the operator does not begin by itself.
func TestWhatLeavingWaitsForIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   string
	}{
		"the schedule repairs": {func(*world) {}, "by itself"},
		"a person is to ask": {func(w *world) { w.snapshot.Cluster.Spec.Repair.Mode = v1alpha1.RepairRecommend },
			"kubectl helenus repair " + second},
		"a person has asked": {func(w *world) {
			w.snapshot.Cluster.Spec.Repair.Mode = v1alpha1.RepairRecommend
			w.snapshot.Cluster.Spec.Exceptions = []v1alpha1.Exception{{Node: second, Type: v1alpha1.ExceptionRepair,
				Reason: "x", Name: "x", Until: metav1.NewTime(w.now.Add(time.Hour))}}
		}, "by itself"},
		"a table is left out": {func(w *world) {
			w.snapshot.Cluster.Spec.Repair.ExcludeTables = []string{"shop.rows"}
		}, "kubectl helenus repair " + second},
	} {
		w := withTable(t)
		w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=2}"})
		w.minutes(10)
		c.change(w)
		w.change(func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks, s.Datacenters[0].AllowFewerRacks = s.Datacenters[0].Racks[:2], true
		})
		w.lacks(second, v1alpha1.RepairCommitLogLost)
		w.ends("")
		w.pass()
		said := ""
		for _, b := range next(w).Blocked {
			if b.Reason == v1alpha1.BlockedRepairDue {
				said = b.Message
			}
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
}

// What stays with people: all without the schedule, and where it leaves out a table.
func TestWhoRepairsANode(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*world)
		advised string
		over    bool
	}{
		"the schedule": {func(*world) {}, "", true},
		"a person": {func(w *world) { w.snapshot.Cluster.Spec.Repair.Mode = v1alpha1.RepairRecommend },
			"kubectl helenus repair " + second, false},
		"a person, as nothing is repaired": {func(w *world) { w.snapshot.Cluster.Spec.Repair.Mode = v1alpha1.RepairOff },
			"kubectl helenus repair " + second, false},
		"a person, as Reaper repairs": {func(w *world) {
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
				"reaper_db": "NetworkTopologyStrategy {dc1=3}"})
		}, "kubectl helenus repair " + second, false},
		"a person, of a table that is left out": {func(w *world) {
			w.snapshot.Cluster.Spec.Repair.ExcludeTables = []string{"shop.rows"}
		}, "but table shop.rows", false},
	} {
		w := withTable(t)
		c.change(w)
		w.minutes(10)
		w.lacks(second, v1alpha1.RepairCommitLogLost)
		w.pass()
		advised := ""
		for _, r := range next(w).Recommended {
			if slices.Contains(r.Nodes, second) {
				advised += r.Message
			}
		}
		w.minutes(20)
		if over := len(w.snapshot.Ledger.RepairDue) == 0; over != c.over || !strings.Contains(advised, c.advised) ||
			c.advised == "" && advised != "" {
			t.Errorf("%s: over %t, advised %q", name, over, advised)
		}
	}
}

func TestWhoRepairs(t *testing.T) {
	const mode = v1alpha1.RepairAutomatic
	for name, c := range map[string]struct {
		change          func(*world)
		opens           bool
		notice, advised string
	}{
		"the operator":    {func(*world) {}, true, "", ""},
		"nobody":          {func(w *world) { w.snapshot.Cluster.Spec.Repair.Mode = v1alpha1.RepairOff }, false, "", ""},
		"a person":        {func(w *world) { w.snapshot.Cluster.Spec.Repair.Mode = v1alpha1.RepairRecommend }, false, "", "shop.rows"},
		"an earlier ring": {func(w *world) { w.snapshot.Ledger.MadeWith = nil }, false, "", "shop.rows"},
		"an earlier ring that is asked": {func(w *world) {
			w.snapshot.Ledger.MadeWith, w.snapshot.Cluster.Spec.Repair.Mode = nil, mode
		}, true, "", ""},
		"Reaper": {func(w *world) {
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
				"reaper_db": "NetworkTopologyStrategy {dc1=3}"})
		}, false, "Reaper", ""},
		"Cassandra": {func(w *world) {
			for _, n := range w.snapshot.Nodes {
				n.Record.Spec.Configuration.CassandraYaml = v1alpha1.Settings{
					"auto_repair": {Raw: []byte(`{"enabled": true}`)}}
			}
		}, false, "auto_repair", ""},
		"the table is left out": {func(w *world) {
			w.snapshot.Cluster.Spec.Repair.ExcludeTables = []string{"shop.rows"}
		}, false, "", ""},
		"a replica is down": {func(w *world) { w.snapshot.Nodes["orders-dc1-r2-0"].Agent.Ring = nil }, false, "is down", ""},
		"a node joins or leaves": {func(w *world) {
			w.strangers = []facts.Endpoint{{Address: "10.9.9.9", HostID: "x", Status: facts.StatusBootstrap, Live: true}}
			w.agents()
		}, false, "", ""},
		"a short grace": {func(w *world) {
			for _, n := range w.snapshot.Nodes {
				n.Agent.Tables[0].GCGrace = time.Hour
			}
		}, true, "less than a day", ""},
		"the window is shut": {func(w *world) {
			w.snapshot.Cluster.Spec.Repair.Window = &v1alpha1.RepairWindow{Start: "22:00",
				Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC"}
			w.snapshot.RepairZone = time.UTC
			w.snapshot.Cluster.CreationTimestamp = metav1.NewTime(w.now.Add(-200 * time.Hour))
			w.snapshot.Repairs.Tables["a"].Made = true
		}, false, "", ""},
	} {
		w := withTable(t)
		w.pass() // how the table is replicated is noted
		w.readRepairs()
		c.change(w)
		made := next(w)
		opens, notices, advised := false, "", ""
		for _, write := range made.Writes {
			opens = opens || write.Ledger != nil && slices.ContainsFunc(write.Ledger.Maintenance,
				func(s *ledger.Step) bool { return s.Kind == ledger.RepairTables })
		}
		for _, n := range made.Notices {
			notices += n.Message
		}
		for _, r := range made.Recommended {
			if r.Operation == "EnableInternodeEncryption" {
				continue // of an earlier ring
			}
			advised += r.Message
		}
		if opens != c.opens || !strings.Contains(notices, c.notice) || !strings.Contains(advised, c.advised) ||
			c.advised == "" && advised != "" {
			t.Errorf("%s: opens %t, notices %q, advised %q\n%s", name, opens, notices, advised, made)
		}
	}
}
