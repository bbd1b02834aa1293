package node

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

func reported(f Facts) v1alpha1.CassandraNodeStatus { return Next(f, epoch).Status }

func TestTheDiskIsReportedFromWhatIsKnownOfIt(t *testing.T) {
	unknown := func(f *Facts) { f.Disk = Disk{} }
	own := v1alpha1.DiskOwner{ClusterUID: uid, Node: self}
	for name, c := range map[string]struct {
		facts Facts
		disk  v1alpha1.DiskState
		owner *v1alpha1.DiskOwner
	}{
		"nothing is known": {with1(fresh(), unknown), "", nil},
		"new":              {fresh(), v1alpha1.DiskEmpty, nil},
		"claimed":          {claimed(), v1alpha1.DiskEmpty, &own},
		"a member's, before the JVM runs": {member(), v1alpha1.DiskMember,
			&v1alpha1.DiskOwner{ClusterUID: uid, ClusterName: "shop.orders", Node: self}},
		"a member's, while the JVM runs": {serving(), v1alpha1.DiskMember, &own},
		"a member's, not looked at":      {with1(member(), unknown), v1alpha1.DiskMember, &own},
		"of a node that joins":           {onItsWay(facts.ModeJoining), v1alpha1.DiskJoining, &own},
		"of a node that has left": {
			with1(serving(), func(f *Facts) { f.JVM.Ring.Mode, f.Memory.LeftAt = facts.ModeDecommissioned, ptr(0) }),
			v1alpha1.DiskLeft, &own,
		},
		"of nobody, with data": {with1(fresh(), func(f *Facts) { f.Disk.HasData = true }), v1alpha1.DiskForeign, nil},
		"of nobody, with data and a journal of this node": {
			with1(claimed(), func(f *Facts) { f.Disk.Volumes[0].Marker, f.Disk.HasData = nil, true }),
			v1alpha1.DiskForeign, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := reported(c.facts)
			if s.Disk != c.disk || (s.DiskOwner == nil) != (c.owner == nil) ||
				s.DiskOwner != nil && *s.DiskOwner != *c.owner {
				t.Errorf("disk %q of %+v, want %q of %+v", s.Disk, s.DiskOwner, c.disk, c.owner)
			}
		})
	}
}

func TestANodeIsReadyOnlyWhenItServesAndIsToServe(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		ready  bool
		reason string
	}{
		"serving": {nil, true, v1alpha1.ReasonServing},
		"without gossip": {func(f *Facts) { f.JVM.Ring.GossipRunning = false }, false,
			v1alpha1.ReasonGossipStopped},
		"drained by somebody": {func(f *Facts) { f.JVM.Ring.Mode = facts.ModeDrained }, false,
			v1alpha1.ReasonNotNormal},
		"drained, without gossip": {func(f *Facts) {
			f.JVM.Ring.Mode, f.JVM.Ring.GossipRunning = facts.ModeDrained, false
		}, false, v1alpha1.ReasonNotNormal},
		"CQL closed": {func(f *Facts) { f.JVM.Ring.NativeRunning = false }, false,
			v1alpha1.ReasonNotOpenToClients},
		"for administration": {func(f *Facts) {
			f.Record.Spec.ClientTraffic = v1alpha1.TrafficAdministrative
		}, false, v1alpha1.ReasonNotOpenToClients},
		"no member by its journal": {func(f *Facts) { f.Memory.Member = nil }, false,
			v1alpha1.ReasonNotOpenToClients},
		"without a record": {func(f *Facts) { f.Record = nil }, false, v1alpha1.ReasonNotOpenToClients},
		"its container ends": {func(f *Facts) { f.Init.Stopping = &Stopping{} }, false,
			v1alpha1.ReasonNotOpenToClients},
		"it is being stopped": {func(f *Facts) { *f = stopping(StopMemory{}) }, false,
			v1alpha1.ReasonNotOpenToClients},
		"silent for long": {func(f *Facts) {
			f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-15*time.Second)
		}, false, v1alpha1.ReasonNotNormal},
		"silent for not quite so long": {func(f *Facts) {
			f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(1-15*time.Second)
		}, true, v1alpha1.ReasonServing},
		"the answer is of an earlier JVM": {func(f *Facts) { f.JVM.StartID = 2 }, false, v1alpha1.ReasonNotNormal},
		"it has never answered": {func(f *Facts) {
			f.JVM.AnsweredAt, f.JVM.AskedAt = time.Time{}, time.Time{}
		}, false, v1alpha1.ReasonNotNormal},
		"it has answered without a view": {func(f *Facts) { f.JVM.Ring = nil }, false, v1alpha1.ReasonNotNormal},
		"none runs":                      {func(f *Facts) { *f = member() }, false, v1alpha1.ReasonNotNormal},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(with1(serving(), c.change), epoch)
			condition := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
			if d.Ready != c.ready || d.Status.Ready != c.ready ||
				(condition.Status == metav1.ConditionTrue) != c.ready || condition.Reason != c.reason {
				t.Errorf("ready %v, condition %+v; want %v, %s", d.Ready, condition, c.ready, c.reason)
			}
		})
	}
}

func TestWhatTheJVMSaysOfItselfIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Facts)
		tokens  string
		version string
		traffic v1alpha1.ClientTraffic
	}{
		"serving":    {nil, "-7,7", "5.0.6", v1alpha1.TrafficOpen},
		"CQL closed": {func(f *Facts) { f.JVM.Ring.NativeRunning = false }, "-7,7", "5.0.6", v1alpha1.TrafficClosed},
		"CQL closed, for administration": {
			func(f *Facts) {
				f.JVM.Ring.NativeRunning = false
				f.Record.Spec.ClientTraffic = v1alpha1.TrafficAdministrative
			}, "-7,7", "5.0.6", v1alpha1.TrafficClosed,
		},
		"for administration": {func(f *Facts) { f.Record.Spec.ClientTraffic = v1alpha1.TrafficAdministrative },
			"-7,7", "5.0.6", v1alpha1.TrafficAdministrative},
		"its own tokens not known": {func(f *Facts) { f.JVM.Ring.Endpoints[0].Tokens = nil }, "-5,5", "5.0.6",
			v1alpha1.TrafficOpen},
		"itself not in its own view": {func(f *Facts) { f.JVM.Ring.Endpoints = f.JVM.Ring.Endpoints[1:] }, "-5,5",
			"5.0.6", v1alpha1.TrafficOpen},
		"before it is a member": {func(f *Facts) { f.Memory.Member = nil }, "-7,7", "5.0.6", v1alpha1.TrafficOpen},
		"silent": {func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Hour) }, "-7,7",
			"5.0.6", v1alpha1.TrafficOpen},
		"of an earlier JVM": {func(f *Facts) { f.JVM.StartID = 2 }, "-5,5", "", v1alpha1.TrafficClosed},
		"none runs":         {func(f *Facts) { f.Init.Process = nil }, "-5,5", "", v1alpha1.TrafficClosed},
		"no view yet":       {func(f *Facts) { f.JVM.Ring = nil }, "-5,5", "", v1alpha1.TrafficClosed},
	} {
		t.Run(name, func(t *testing.T) {
			f := serving()
			f.JVM.Ring.Endpoints[0].Tokens = []int64{-7, 7}
			s := reported(with1(f, c.change))
			if strings.Join(s.Tokens, ",") != c.tokens || s.Version != c.version || s.ClientTraffic != c.traffic {
				t.Errorf("tokens %v, version %q, traffic %s; want %s, %q, %s", s.Tokens, s.Version, s.ClientTraffic,
					c.tokens, c.version, c.traffic)
			}
		})
	}
}

func TestIntentsAreReportedAsTheyStand(t *testing.T) {
	f := with1(serving(), func(f *Facts) {
		f.Memory.Restart = &RestartMemory{IntentMemory: IntentMemory{ID: "r-1", BegunAt: ptr(-time.Minute),
			FinishedAt: ptr(-time.Second), Message: "why"}}
		f.Record.Spec.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: "r-1"}}
		f.Memory.Operations = []OperationMemory{{ID: "o-1", Phase: v1alpha1.OperationFailed, BegunAt: ptr(-time.Minute),
			FinishedAt: ptr(0), Message: strings.Repeat("x", 5000)}}
	})
	s := reported(f)
	if r := s.Restart; r.ID != "r-1" || !r.StartedAt.Time.Equal(at(-time.Minute)) ||
		!r.FinishedAt.Time.Equal(at(-time.Second)) || r.WithdrawnAt != nil || r.Message != "why" {
		t.Errorf("restart %+v", r)
	}
	f.Record.Spec.Restart = nil
	if r := reported(f).Restart; r != nil {
		t.Errorf("restart %+v, which nobody asks for any more", r)
	}
	if o := s.Operations[0]; o.ID != "o-1" || o.Phase != v1alpha1.OperationFailed ||
		!o.StartedAt.Time.Equal(at(-time.Minute)) || !o.FinishedAt.Time.Equal(epoch) || len(o.Message) != 4096 {
		t.Errorf("operation %+v", o)
	}
	if j := s.Join; j.ID != "form/1" || j.FinishedAt == nil {
		t.Errorf("join %+v", j)
	}
	if s := reported(fresh()); s.Join != nil || s.Restart != nil || s.Operations != nil {
		t.Errorf("join %+v, restart %+v, operation %+v of a new node", s.Join, s.Restart, s.Operations)
	}
}

func TestTheConfigurationIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		facts  Facts
		hash   string
		reason string
	}{
		"as the spec has it": {serving(), "hash-1", v1alpha1.ReasonApplied},
		"cannot be rendered": {with1(serving(), func(f *Facts) { f.Configuration.Problem = "no heap" }), "hash-1",
			v1alpha1.ReasonUnknownSetting},
		"needs a restart": {with1(serving(), func(f *Facts) { f.Configuration.RestartNeeded = true }), "hash-1",
			v1alpha1.ReasonRestartNeeded},
		"is another one now": {with1(serving(), func(f *Facts) { f.Configuration.Hash = "hash-2" }), "hash-1",
			v1alpha1.ReasonChangePending},
		"is not known yet": {with1(serving(), func(f *Facts) { f.Configuration.Hash, f.Memory.Start.Hash = "", "" }),
			"", v1alpha1.ReasonChangePending},
		"of no JVM": {member(), "", v1alpha1.ReasonChangePending},
		"of a JVM that the journal does not know": {
			with1(serving(), func(f *Facts) {
				f.Memory.Start.StartID, f.Init.Exits = 2, []Exit{{Process: Process{StartID: 2}}}
			}), "", v1alpha1.ReasonChangePending,
		},
		"of a JVM that ended": {ended(Exit{}), "", v1alpha1.ReasonChangePending},
	} {
		t.Run(name, func(t *testing.T) {
			s := reported(c.facts)
			hash := ""
			if s.Configuration != nil {
				hash = s.Configuration.Hash
			}
			applied := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionConfigurationApplied)
			if hash != c.hash || applied.Reason != c.reason ||
				(applied.Status == metav1.ConditionTrue) != (c.reason == v1alpha1.ReasonApplied) {
				t.Errorf("hash %q, condition %+v; want %q, %s", hash, applied, c.hash, c.reason)
			}
		})
	}
	if s := reported(member()); s.Configuration != nil {
		t.Errorf("configuration %+v of no JVM", s.Configuration)
	}
}

func TestTheMemoryIsReportedWhereItIsKnown(t *testing.T) {
	const gib = 1 << 30
	text := func(s v1alpha1.CassandraNodeStatus) string {
		if s.Memory == nil {
			return ""
		}
		var out []string
		for _, q := range []interface{ String() string }{s.Memory.Limit, s.Memory.Heap, s.Memory.Direct} {
			out = append(out, q.String())
		}
		return strings.Join(out, " ")
	}
	for want, c := range map[string]Configuration{
		"":                {},
		"4Gi <nil> <nil>": {Limit: 4 * gib},
		"<nil> 1Gi <nil>": {Heap: gib},
		"4Gi 1Gi 2Gi":     {Limit: 4 * gib, Heap: gib, Direct: 2 * gib},
	} {
		if got := text(reported(with1(member(), func(f *Facts) { f.Configuration = c }))); got != want {
			t.Errorf("memory %q, want %q", got, want)
		}
	}
}

func TestDeathsAreReportedInTheirPod(t *testing.T) {
	dead := func() Facts { return with1(member(), func(f *Facts) { died(f, at(time.Minute)) }) }
	for name, c := range map[string]struct {
		facts             Facts
		restarts, backOff bool
		message           string
	}{
		"in the pause": {dead(), true, true, "it died; started again at 2026-03-01T12:01:00Z"},
		"at the end of the pause": {with1(dead(), func(f *Facts) { f.Memory.Deaths.BackOffUntil = epoch }), true,
			false, "the JVM is being started"},
		"while the next one starts": {with1(serving(),
			func(f *Facts) { died(f, at(time.Minute)); f.Init.Process.StartID = 4; f.JVM = JVM{} }), true, false,
			"the JVM starts"},
		"while the next one serves": {with1(serving(),
			func(f *Facts) { s := f.Memory.Start; died(f, at(-time.Minute)); f.Memory.Start = s }), true, false, ""},
		"while it waits for an action": {with1(dead(), func(f *Facts) { f.Record.Generation = 9 }), true, true,
			"it died"},
		"of another pod": {with1(dead(), func(f *Facts) { f.Memory.Deaths.PodUID = "pod-0" }), false, false,
			"it died; started again at 2026-03-01T12:01:00Z"},
		"none": {member(), false, false, "the JVM is being started"},
	} {
		t.Run(name, func(t *testing.T) {
			s := reported(c.facts)
			if (s.Restarts != nil) != c.restarts || s.Message != c.message {
				t.Fatalf("restarts %+v, message %q; want %v, %q", s.Restarts, s.Message, c.restarts, c.message)
			}
			if r := s.Restarts; r != nil && (r.Count != 4 || r.LastReason != v1alpha1.RestartExited ||
				!r.LastAt.Time.Equal(at(-time.Second)) || (r.BackOffUntil != nil) != c.backOff) {
				t.Errorf("restarts %+v", r)
			}
		})
	}
}

func TestThePhaseOfANode(t *testing.T) {
	mode := func(m facts.Mode) Facts { return with1(serving(), func(f *Facts) { f.JVM.Ring.Mode = m }) }
	silent := func(f Facts) Facts { return with1(f, func(f *Facts) { f.JVM = JVM{} }) }
	doing := func(f Facts, action Action) Facts {
		return with1(f, func(f *Facts) { f.Doing = &Doing{Action: action} })
	}
	for name, c := range map[string]struct {
		facts Facts
		phase v1alpha1.NodePhase
		words string
	}{
		"NORMAL":  {mode(facts.ModeNormal), v1alpha1.PhaseNormal, ""},
		"leaving": {mode(facts.ModeLeaving), v1alpha1.PhaseLeaving, "LEAVING"},
		"could not leave": {mode(facts.ModeDecommissionFailed), v1alpha1.PhaseLeaving,
			"DECOMMISSION_FAILED"},
		"has left": {with1(mode(facts.ModeDecommissioned),
			func(f *Facts) { f.Memory.LeftAt = ptr(0) }), v1alpha1.PhaseLeft, "decommissioned"},
		"draining": {mode(facts.ModeDraining), v1alpha1.PhaseFailed,
			"drained by somebody else"},
		"drained": {mode(facts.ModeDrained), v1alpha1.PhaseFailed,
			"drained by somebody else"},
		"a member joins again": {mode(facts.ModeJoining), v1alpha1.PhaseJoining, "JOINING"},
		"it could not join": {onItsWay(facts.ModeJoiningFailed), v1alpha1.PhaseJoining,
			"JOINING_FAILED"},
		"a member starts": {mode(facts.ModeStarting), v1alpha1.PhaseStarting, "STARTING"},
		"moving":          {mode(facts.ModeMoving), v1alpha1.PhaseStarting, "MOVING"},
		"starts for the first time": {onItsWay(facts.ModeStarting), v1alpha1.PhaseJoining,
			"STARTING"},
		"a member that does not answer yet": {silent(with1(serving(),
			func(f *Facts) { f.Memory.Start.NormalAt = nil })), v1alpha1.PhaseStarting, "the JVM starts"},
		"a NORMAL one after the agent's start": {silent(serving()), v1alpha1.PhaseStarting, "the JVM starts"},
		"one that joins and does not answer yet": {silent(onItsWay("")), v1alpha1.PhaseJoining,
			"the JVM starts"},
		"one without a ticket that does not answer yet": {silent(with1(onItsWay(""),
			func(f *Facts) { f.Memory.Join = nil })), v1alpha1.PhaseStarting, "the JVM starts"},
		"a member that has answered before, in this start": {
			with1(serving(), func(f *Facts) { f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-time.Minute) }),
			v1alpha1.PhaseNormal, "has not answered since 2026-03-01T11:59:00Z",
		},
		"one that was never NORMAL falls silent": {
			with1(serving(), func(f *Facts) {
				f.JVM.AskedAt, f.JVM.AnsweredAt, f.Memory.Start.NormalAt = at(0), at(-time.Minute), nil
			}), v1alpha1.PhaseStarting, "the JVM starts",
		},
		"the start is under way": {doing(member(), StartJVM{}), v1alpha1.PhaseStarting,
			"is being started"},
		"another action is under way": {doing(member(), AskPeers{}), v1alpha1.PhaseWaiting,
			"AskPeers is under way"},
		"an action while no JVM runs": {neighboured(), v1alpha1.PhaseWaiting, ""},
		"an action while it is to be stopped": {with1(member(),
			func(f *Facts) { f.Record.Spec.State, f.Record.Generation = v1alpha1.StateStopped, 9 }),
			v1alpha1.PhaseStopped, "as the record asks"},
		"an action during a stop": {stopping(StopMemory{}), v1alpha1.PhaseStopping, "test"},
		"an action without a record": {with1(ended(Exit{}), func(f *Facts) { f.Record = nil }), v1alpha1.PhaseWaiting,
			""},
	} {
		t.Run(name, func(t *testing.T) {
			s := reported(c.facts)
			if s.Phase != c.phase || !strings.Contains(s.Message, c.words) ||
				c.words == "" && s.Message != "" && s.Restarts == nil {
				t.Errorf("phase %s (%q), want %s (%q)", s.Phase, s.Message, c.phase, c.words)
			}
		})
	}
}

func TestAConditionKeepsItsTimeWhileItIsTheSame(t *testing.T) {
	f := serving()
	since := *metaTime(-time.Hour)
	f.Record.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: since},
		{Type: v1alpha1.ConditionConfigurationApplied, Status: metav1.ConditionFalse, LastTransitionTime: since},
	}
	f.Record.Generation = 7
	keep(&f)
	s := Next(f, epoch.Add(300*time.Millisecond)).Status
	for kind, want := range map[string]time.Time{v1alpha1.ConditionReady: since.Time,
		v1alpha1.ConditionConfigurationApplied: epoch} {
		if c := meta.FindStatusCondition(s.Conditions, kind); !c.LastTransitionTime.Time.Equal(want) ||
			c.ObservedGeneration != 7 || s.ObservedGeneration != 7 {
			t.Errorf("condition %+v, want it since %s", c, want)
		}
	}
}

func TestTextsAreCutAtAWholeCharacter(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "lo…"},
		{"aé-long", 5, "a…"},
		{"éé-long", 5, "é…"},
		{"日本語の", 7, "日…"},
		{"é-long", 4, "…"},
		{"日本語", 5, "…"},
		{"\x80\x80\x80\x80", 3, "…"}, // not a text at all
	} {
		if got := words.Shorten(c.text, c.limit); got != c.want || len(got) > c.limit {
			t.Errorf("%q cut to %d: %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}
