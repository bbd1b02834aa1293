package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/rollout"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// rolledOut makes passes until the roll-out that is open or due is closed.
func (w *world) rolledOut() {
	w.t.Helper()
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RollOut })
	for range 200 {
		if w.snapshot.Ledger.Step == nil {
			return
		}
		made := w.pass()
		w.now = w.now.Add(10 * time.Second)
		if made.Stalled != nil {
			w.t.Fatalf("stalled:\n%s", made)
		}
	}
	w.t.Fatalf("the roll-out is not over: %s\n%s", ledgerInWords(w.snapshot.Ledger), Next(w.snapshot, w.now))
}

// inSoak is a ring of three of which the first node has taken over a setting and serves.
func inSoak(t *testing.T) *world {
	t.Helper()
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.change(setting("concurrent_reads", "16"))
	w.settle()
	return w
}

// What holds the next wave up, and by which name.
func TestWhatHoldsAWaveUp(t *testing.T) {
	second := three[1]
	for name, c := range map[string]struct {
		change func(*world)
		reason v1alpha1.Reason
	}{
		"nothing": {func(*world) {}, ""},
		"a member is down": {func(w *world) {
			w.running[w.snapshot.Nodes[three[2]].Pod.UID].Ring.Mode = "JOINING"
		}, v1alpha1.BlockedMemberDown},
		"its agent does not answer": {func(w *world) { w.absent[three[2]] = true }, v1alpha1.BlockedMemberDown},
		"ranges are pending":        {func(w *world) { w.pending = 2 }, v1alpha1.BlockedTopologyChangeInProgress},
		"a schema differs": {func(w *world) {
			w.running[w.snapshot.Nodes[three[2]].Pod.UID].Ring.SchemaVersion = "other"
		}, v1alpha1.BlockedSchemaVersionsDiffer},
		"a member streams": {func(w *world) {
			w.running[w.snapshot.Nodes[three[2]].Pod.UID].Ring.Streaming = true
		}, v1alpha1.BlockedStreamInProgress},
		"a keyspace has too few replicas": {func(w *world) {
			w.snapshot.Cluster.Spec.Disruption.Unprotected = v1alpha1.UnprotectedBlock
			w.keyspaces = map[string]string{"shop": "NetworkTopologyStrategy {dc1=1}"}
		}, v1alpha1.BlockedConsistencyWouldBeLost},
		"a disk is lost": {func(w *world) {
			agent, seen := w.running[w.snapshot.Nodes[three[2]].Pod.UID], w.endpoints()[2]
			seen.Live = false
			w.strangers = append(w.strangers, seen)
			agent.Ring, agent.Process, agent.Phase = nil, facts.ProcessAbsent, v1alpha1.PhaseDataLost
			agent.Disk = v1alpha1.DiskEmpty
		}, v1alpha1.BlockedConsistencyWouldBeLost},
		"it is held": {func(w *world) {
			w.snapshot.Cluster.Spec.Disruption.HoldAfter = v1alpha1.HoldAfterFirstNode
		}, v1alpha1.BlockedRollOutHeld},
	} {
		t.Run(name, func(t *testing.T) {
			w := inSoak(t)
			c.change(w)
			w.agents()
			w.now = w.now.Add(time.Minute)
			var made plan.Plan
			for range 3 {
				made = w.pass()
			}
			asked := w.snapshot.Nodes[second].Record.Status.Restart != nil
			blocked := slices.ContainsFunc(made.Blocked,
				func(b v1alpha1.BlockedStep) bool { return b.Step == string(ledger.RollOut) && b.Reason == c.reason })
			lost := slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
				return strings.Contains(b.Message, three[2]+" down already, "+second+" to be taken down")
			})
			if lost != (name == "a disk is lost") {
				t.Errorf("the nodes that ranges lack are named: %v; the plan:\n%s", lost, made)
			}
			if asked != (c.reason == "") || !asked && !blocked {
				t.Errorf("the second node is asked to restart: %v; the plan:\n%s", asked, made)
			}
		})
	}
}

// A wave whose turn has come waits for a disk that is lost elsewhere just then. It lets that be
// replaced first: otherwise both would wait for each other for ever.
func TestALostDiskIsReplacedBeforeAWaveThatHasNotBegun(t *testing.T) {
	w := inSoak(t)
	state, err := ledger.StateOf[rollout.State](w.snapshot.Ledger.Step)
	if err != nil {
		t.Fatal(err)
	}
	state.Wave, state.First, state.Proven = three[1:2], false, true
	w.snapshot.Ledger.Step.State = ledger.Encoded(state)
	agent, seen := w.running[w.snapshot.Nodes[three[2]].Pod.UID], w.endpoints()[2]
	seen.Live = false
	w.strangers = append(w.strangers, seen)
	agent.Ring, agent.Process, agent.Phase = nil, facts.ProcessAbsent, v1alpha1.PhaseDataLost
	agent.Disk = v1alpha1.DiskEmpty
	w.agents()
	var made plan.Plan
	for range 5 {
		w.now = w.now.Add(10 * time.Minute)
		made = w.pass()
	}
	if s := w.snapshot.Ledger.Step; s == nil || s.Kind != ledger.ReplaceNode {
		t.Errorf("open is %+v; the plan:\n%s", s, made)
	}
}

// A hold ends by its own name alone.
func TestAHoldIsResumedByItsName(t *testing.T) {
	w := inSoak(t)
	w.snapshot.Cluster.Spec.Disruption.HoldAfter = v1alpha1.HoldAfterFirstNode
	w.now = w.now.Add(time.Minute)
	w.settle()
	if least := w.snapshot.Shared.Budgets["orders-dc1"].Spec.MinAvailable; least.IntValue() != 2 {
		t.Errorf("while a person is waited for %d pods must stay, want 2: hosts can be drained", least.IntValue())
	}
	for _, c := range []struct {
		resume string
		goes   bool
	}{{"cluster--2/7", false}, {"cluster--2/1", true}} {
		w.snapshot.Cluster.Spec.Disruption.Resume = c.resume
		w.settle()
		if goes := w.snapshot.Nodes[three[2]].Record.Status.Restart != nil; goes != c.goes {
			t.Errorf("resume %s: the roll-out continues: %v", c.resume, goes)
		}
	}
}

// The same restart is not done twice, also when ledger and wish are gone.
func TestARestartIsDoneOnceForAValue(t *testing.T) {
	w := formed(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.RestartedAt = noon })
	w.rolledOut()
	ids := map[string]string{}
	for _, n := range w.snapshot.Records() {
		ids[n.Name] = n.Record.Status.Restart.ID
	}
	w.snapshot.Ledger = nil
	w.settle()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.RestartedAt = nil })
	w.settle()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].RestartedAt = noon })
	if made := w.settle(); made.Stalled != nil {
		t.Errorf("stalled:\n%s", made)
	}
	for _, n := range w.snapshot.Records() {
		if n.Record.Status.Restart.ID != ids[n.Name] {
			t.Errorf("node %s is restarted again: %s", n.Name, n.Record.Status.Restart.ID)
		}
	}
}

// A spec that keeps the first node down reaches no other, and taking it back heals the node.
func TestAFirstNodeThatDoesNotComeUp(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.JVM = &v1alpha1.JVM{Options: []string{"-XX:+Refused"}}
	})
	w.settle()
	w.now = w.now.Add(time.Hour)
	made := w.settle()
	if !slices.ContainsFunc(made.Blocked, func(b v1alpha1.BlockedStep) bool {
		return b.Reason == v1alpha1.BlockedChangedNodeDown && slices.Equal(b.Nodes, three[:1])
	}) {
		t.Errorf("want the node named that does not come up:\n%s", made)
	}
	for _, name := range three[1:] {
		if n := w.snapshot.Nodes[name].Record; n.Spec.Configuration.JVM != nil || n.Spec.Restart != nil {
			t.Errorf("node %s was changed", name)
		}
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Node.JVM = nil })
	w.rolledOut()
	if n := w.snapshot.Nodes[three[0]]; n.Agent.Ring == nil || n.Record.Spec.Configuration.JVM != nil {
		t.Errorf("the node is not healed: %+v", n.Agent)
	}
}

// A node of a wave that is changed again goes down once evictions are refused: they may have been
// allowed until a moment ago, while the wave waited for a person.
func TestANodeGoesDownAgainOnceEvictionsAreRefused(t *testing.T) {
	w := inSoak(t)
	first, budget := w.snapshot.Nodes[three[0]], w.snapshot.Shared.Budgets["orders-dc1"]
	asked := func() string { return first.Record.Spec.Restart.ID }
	before := asked()
	budget.Generation++
	w.change(setting("concurrent_reads", "24"))
	made := w.settle()
	if asked() != before {
		t.Errorf("the disruption controller has not looked, and the node is asked for %s", asked())
	}
	want := "waiting for evictions to be refused: PodDisruptionBudget orders-dc1, "
	if !strings.Contains(made.String(), want) {
		t.Errorf("no %q in the plan:\n%s", want, made)
	}
	budget.Status.ObservedGeneration = budget.Generation
	w.settle()
	if asked() == before {
		t.Errorf("the node is not asked again:\n%s", w.pass())
	}
}

// What needs no restart waits for no node that is down, and a lost disk holds no roll-out up.
func TestWhoIsNotWaitedFor(t *testing.T) {
	last := three[2]
	for name, change := range map[string]func(*v1alpha1.CassandraClusterSpec){
		"a hot setting": setting("compaction_throughput", `"32MiB/s"`),
		"a new pod":     func(s *v1alpha1.CassandraClusterSpec) { s.Node.TerminationGracePeriodSeconds = ptr(int64(100)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
			n := w.snapshot.Nodes[last]
			agent := w.running[n.Pod.UID]
			agent.Ring, agent.Process, agent.Phase = nil, facts.ProcessAbsent, v1alpha1.PhaseDataLost
			agent.Disk = v1alpha1.DiskEmpty
			w.agents()
			w.change(change)
			w.rolledOut()
			for range 5 {
				if made := w.pass(); len(made.Finished) > 0 {
					t.Fatalf("another roll-out:\n%s", made)
				}
			}
			for _, name := range three {
				got := w.snapshot.Nodes[name].Record.Spec
				if got.Pod.TerminationGracePeriodSeconds == nil && len(got.Configuration.CassandraYaml) == 0 {
					t.Errorf("node %s has not taken it over", name)
				}
			}
		})
	}
}

// A member whose disk was lost while it restarted does not restart, and no roll-out waits for that.
func TestARestartEndsWithTheDisk(t *testing.T) {
	w := inSoak(t)
	w.now = w.now.Add(time.Minute)
	n := w.snapshot.Nodes[three[2]]
	for range 50 {
		if n = w.snapshot.Nodes[three[2]]; n.Record.Spec.Restart != nil {
			break
		}
		w.pass()
	}
	if n.Record.Spec.Restart == nil {
		t.Fatal("its turn does not come")
	}
	agent := w.running[n.Pod.UID]
	agent.Ring, agent.Process, agent.Phase = nil, facts.ProcessAbsent, v1alpha1.PhaseDataLost
	agent.Disk = v1alpha1.DiskEmpty
	w.agents()
	w.snapshot.Nodes[three[2]].Record.Status.Restart.FinishedAt = nil
	w.rolledOut()
	for range 5 {
		if made := w.pass(); len(made.Finished) > 0 {
			t.Fatalf("another roll-out:\n%s", made)
		}
	}
}

// A change that needs a restart and comes while one that needs none reaches all nodes at once is
// tried on the first node alone.
func TestARestartThatComesWhileAllAreChangedAtOnce(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	w.change(setting("compaction_throughput", `"32MiB/s"`))
	w.until(func(s *ledger.Step) bool { return s.Kind == ledger.RollOut })
	w.change(setting("concurrent_reads", "16"))
	w.settle()
	for i, name := range three {
		if asked := w.snapshot.Nodes[name].Record.Spec.Restart != nil; asked != (i == 0) {
			t.Errorf("node %s is asked to restart before the first one has served for a while: %v", name, asked)
		}
	}
	w.rolledOut()
}

// A node that was taken out of the step, as one that was replaced, counts neither as done nor as
// left.
func TestProgressIsThatOfTheNodesOfTheStep(t *testing.T) {
	w := inSoak(t)
	w.snapshot.Ledger.Step.Withdrawn = []string{three[0]}
	var seen []int32
	for range 200 {
		made := w.pass()
		w.now = w.now.Add(10 * time.Second)
		if step := made.Current; step != nil && step.Progress != nil && !slices.Contains(seen, *step.Progress) {
			seen = append(seen, *step.Progress)
		}
	}
	if want := []int32{0, 50, 100}; !slices.Equal(seen, want) {
		t.Errorf("the progress was %v, want %v", seen, want)
	}
}

// An agent by whose clock it is two minutes later can still begin a restart.
func TestARestartCanBeBegunByAnotherClock(t *testing.T) {
	n := inSoak(t).snapshot.Nodes[three[0]].Record
	if limit, by := n.Spec.Restart.NotAfter, n.Status.Restart.StartedAt; limit.Sub(by.Time) <= 2*time.Minute {
		t.Errorf("asked at about %s, and not to be begun after %s", by, limit)
	}
}

// A ledger that is lost when the last node is back leaves no intent behind.
func TestRestartsAreForgottenWithoutTheLedger(t *testing.T) {
	w := formed(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.RestartedAt = noon })
	over := func() bool {
		return !slices.ContainsFunc(w.snapshot.Records(), func(n *facts.Node) bool {
			s := n.Record.Status.Restart
			return s == nil || s.FinishedAt == nil
		})
	}
	for range 200 {
		if w.pass(); over() {
			break
		}
		w.now = w.now.Add(10 * time.Second)
	}
	w.snapshot.Ledger = nil
	w.settle()
	for _, n := range w.snapshot.Records() {
		if !over() || n.Record.Spec.Restart != nil {
			t.Errorf("node %s is still asked: %v; over: %v", n.Name, n.Record.Spec.Restart, over())
		}
	}
}

// A spec that is refused waits for a person, too: hosts can be drained meanwhile.
func TestEvictionsAreAllowedWhileTheSpecIsRefused(t *testing.T) {
	w := inSoak(t)
	w.snapshot.Cluster.Spec.Version = "4.1.10"
	w.now = w.now.Add(time.Minute)
	w.settle()
	if least := w.snapshot.Shared.Budgets["orders-dc1"].Spec.MinAvailable; least.IntValue() != 2 {
		t.Errorf("%d pods must stay, want 2", least.IntValue())
	}
	w.snapshot.Cluster.Spec.Version = "5.0.6"
	w.rolledOut()
}

// Another release of the operator ends no hold: the person has not spoken.
func TestAnotherInstallationEndsNoHold(t *testing.T) {
	w := inSoak(t)
	w.snapshot.Cluster.Spec.Disruption.HoldAfter = v1alpha1.HoldAfterFirstNode
	w.now = w.now.Add(time.Minute)
	w.settle()
	w.snapshot.Install = facts.Install{Version: "next", ImageRepository: "mirror/cassandra", AgentImage: "agent:next"}
	w.now = w.now.Add(time.Minute)
	w.settle()
	if restart := w.snapshot.Nodes[three[1]].Record.Status.Restart; restart != nil {
		t.Errorf("the second node was restarted: %+v\n%s", restart, Next(w.snapshot, w.now))
	}
}

// Newer rules of Helenus change nothing by themselves. What restarts a JVM brings those for its
// files, where the agent is of the release that has them, and what makes a new pod all.
func TestNewerRulesComeWithAChange(t *testing.T) {
	w := formed(t)
	pods, files := render.PodRules, config.Rules
	t.Cleanup(func() { render.PodRules, config.Rules = pods, files })
	render.PodRules, config.Rules = maps.Clone(pods), maps.Clone(files)
	render.PodRules[2] = func(o render.Owner, record *v1alpha1.CassandraNode, i facts.Install) (*corev1.Pod, error) {
		pod, err := pods[1](o, record, i)
		pod.Labels["example.com/newer"] = "yes"
		return pod, err
	}
	config.Rules[2] = files[1]
	for _, c := range []struct {
		what             string
		change           func(*v1alpha1.CassandraClusterSpec)
		older            bool
		file, pod        int32
		labelled, notice bool
	}{
		{"the newer release alone", nil, false, 1, 1, false, true},
		{"a label", func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Metadata = &v1alpha1.Metadata{Labels: map[string]string{"team": "a"}}
		}, false, 1, 1, false, true},
		{"a hot setting", setting("compaction_throughput", `"32MiB/s"`), false, 1, 1, false, true},
		{"a restart, with the former agent", setting("concurrent_reads", "16"), true, 1, 1, false, true},
		{"a restart", setting("concurrent_reads", "24"), false, 2, 1, false, true},
		{"a new pod", func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.TerminationGracePeriodSeconds = ptr(int64(100))
		}, false, 2, 2, true, false},
	} {
		w.snapshot.Install.Version = "test" // as the agents
		if c.older {
			w.snapshot.Install.Version = "next"
		}
		if c.change != nil {
			w.change(c.change)
			w.rolledOut()
		}
		made := w.settle()
		noticed := slices.ContainsFunc(made.Notices,
			func(n v1alpha1.Notice) bool { return n.Reason == v1alpha1.NoticeUpdateAvailable })
		for _, n := range w.snapshot.Records() {
			if is := n.Record.Spec; is.Configuration.Revision != c.file || is.Pod.Revision != c.pod ||
				(n.Pod.Labels["example.com/newer"] != "") != c.labelled || noticed != c.notice {
				t.Errorf("%s: node %s has the rules %d for files and %d for pods, labels %v; noticed: %v", c.what,
					n.Name, is.Configuration.Revision, is.Pod.Revision, n.Pod.Labels, noticed)
			}
		}
	}
}

// What the spec says of a probe holds, the rest is as ever, and what is taken out is gone.
func TestProbesOfPods(t *testing.T) {
	w := formed(t)
	for _, c := range []struct {
		given *v1alpha1.Probes
		want  int32
	}{
		{&v1alpha1.Probes{Readiness: &v1alpha1.Probe{TimeoutSeconds: ptr(int32(20))}}, 20},
		{nil, 2},
	} {
		w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Node.Probes = c.given })
		w.rolledOut()
		for _, n := range w.snapshot.Records() {
			ready, startup := n.Pod.Spec.Containers[0].ReadinessProbe, n.Pod.Spec.InitContainers[0].StartupProbe
			if ready.TimeoutSeconds != c.want || ready.PeriodSeconds != 2 || ready.FailureThreshold != 3 ||
				startup.FailureThreshold != 300 {
				t.Errorf("node %s, given %+v: readiness %+v, startup %+v", n.Name, c.given, ready, startup)
			}
		}
	}
}

// A release that is asked for while the first node restarts for another change reaches that node
// when the snapshots are taken.
func TestSnapshotsBeforeAWaveGetsAnotherRelease(t *testing.T) {
	w := inSoak(t)
	w.operate = func(*facts.Node, v1alpha1.OperationIntent) []v1alpha1.OperationStatus { return nil }
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" })
	w.settle()
	for _, n := range w.snapshot.Records() {
		if s := n.Record.Spec; len(s.Operations) != 1 || s.State != v1alpha1.StateRunning ||
			s.Configuration.Version != "5.0.6" {
			t.Errorf("node %s: %+v", n.Name, s)
		}
	}
	w.operate = nil
	w.agents()
	w.rolledOut()
}

// Before the first node gets another release every member that is up takes a snapshot of what is
// its own, and no node is changed until all have.
func TestSnapshotsBeforeAnotherRelease(t *testing.T) {
	release := func(version string) func(*v1alpha1.CassandraClusterSpec) {
		return func(s *v1alpha1.CassandraClusterSpec) { s.Version = version }
	}
	lose := func(w *world) {
		agent := w.running[w.snapshot.Nodes[three[2]].Pod.UID]
		agent.Ring, agent.Process, agent.Phase = nil, facts.ProcessAbsent, v1alpha1.PhaseDataLost
		agent.Disk = v1alpha1.DiskEmpty
	}
	for name, c := range map[string]struct {
		before func(*world)
		// while the second node is taking it
		meanwhile func(*world)
		want      []string // tags, and how many nodes have them
	}{
		"another release": {want: []string{"helenus-before-5.0.9-cluster--2: 3"}},
		"a disk is lost":  {before: lose, want: []string{"helenus-before-5.0.9-cluster--2: 2"}},
		"a disk is lost meanwhile": {meanwhile: func(w *world) { lose(w); w.agents() },
			want: []string{"helenus-before-5.0.9-cluster--2: 3"}},
		"a third release": {meanwhile: func(w *world) { w.change(release("5.0.8")) },
			want: []string{"helenus-before-5.0.8-cluster--2: 3", "helenus-before-5.0.9-cluster--2: 3"}},
		"taken back": {meanwhile: func(w *world) { w.change(release("5.0.6")) },
			want: []string{"helenus-before-5.0.9-cluster--2: 3"}},
		"the ledger is lost": {meanwhile: func(w *world) { w.snapshot.Ledger = nil },
			want: []string{"helenus-before-5.0.9-cluster--1795176015: 3", "helenus-before-5.0.9-cluster--2: 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
			phase, taken := v1alpha1.OperationRunning, map[string]map[string]bool{}
			w.operate = func(n *facts.Node, o v1alpha1.OperationIntent) []v1alpha1.OperationStatus {
				said := []v1alpha1.OperationStatus{{ID: o.ID, Phase: v1alpha1.OperationSucceeded}}
				if o.Type != v1alpha1.OperationSnapshot {
					return said // a cleanup, since it is unknown whether one is due
				}
				if own := []string{"system", "system_schema"}; !slices.Equal(o.Arguments.Keyspaces, own) {
					t.Errorf("operation %+v", o)
				}
				if taken[o.Arguments.Tag] == nil {
					taken[o.Arguments.Tag] = map[string]bool{}
				}
				taken[o.Arguments.Tag][n.Name] = true
				if n.Name == three[1] {
					said[0].Phase = phase
				}
				return said
			}
			if c.before != nil {
				c.before(w)
				w.agents()
			}
			w.change(release("5.0.9"))
			made := w.settle()
			for _, n := range w.snapshot.Records() {
				if s := n.Record.Spec; s.State != v1alpha1.StateRunning || s.Configuration.Version != "5.0.6" {
					t.Errorf("node %s is changed before the snapshots are taken: %+v", n.Name, s)
				}
			}
			if made.Current == nil || !strings.Contains(made.Current.Message, "waiting for "+three[1]) ||
				!slices.Contains(w.events, "Snapshot") {
				t.Errorf("events %v, the plan:\n%s", w.events, made)
			}
			if c.meanwhile != nil {
				c.meanwhile(w)
				w.settle()
			}
			phase = v1alpha1.OperationSucceeded
			w.agents()
			w.rolledOut()
			var tags []string
			for tag, nodes := range taken {
				tags = append(tags, fmt.Sprintf("%s: %d", tag, len(nodes)))
			}
			if slices.Sort(tags); !slices.Equal(tags, c.want) {
				t.Errorf("snapshots %v, want %v", tags, c.want)
			}
			for _, n := range w.snapshot.Records() {
				if got := n.Record.Spec; got.Configuration.Version != w.snapshot.Cluster.Spec.Version ||
					len(got.Operations) > 0 && got.Operations[0].Type == v1alpha1.OperationSnapshot {
					t.Errorf("node %s at the end: %+v", n.Name, got)
				}
			}
		})
	}
}

// A plan says how long waves that take nodes down will take, by the last one and without its soak.
func TestAPlanEstimatesByTheLastWave(t *testing.T) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	estimate := func(change func(*v1alpha1.CassandraClusterSpec)) time.Duration {
		w.change(change)
		return Ahead(w.snapshot, Next(w.snapshot, w.now), w.now).Estimate.Duration
	}
	if got := estimate(setting("concurrent_reads", "16")); got != 0 {
		t.Errorf("before the first wave: %s", got)
	}
	w.rolledOut()
	took := w.snapshot.Ledger.WaveTook.Duration
	if took < time.Second || took >= 30*time.Second {
		t.Fatalf("the last wave took %s", took)
	}
	if got := estimate(func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Metadata = &v1alpha1.Metadata{Labels: map[string]string{"team": "shop"}}
	}); got != 0 {
		t.Errorf("of what takes no node down: %s", got)
	}
	if got, want := estimate(setting("concurrent_reads", "32")), 3*took+30*time.Second; got != want {
		t.Errorf("of three waves: %s, want %s", got, want)
	}
}
