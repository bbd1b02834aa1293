package node

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// RAPID_SEED makes every run draw the same lives, so that mutants are all tried on the same.
func init() {
	if seed := os.Getenv("RAPID_SEED"); seed != "" {
		if err := flag.Set("rapid.seed", seed); err != nil {
			panic(err)
		}
	}
}

// life is a pod with its disk in memory, and an agent that may end at any moment. What happens to
// it is random; what must hold is checked at every step.
type life struct {
	t   *rapid.T
	now time.Time

	record  *v1alpha1.CassandraNode
	durable Memory // on the disk
	disk    Disk

	// The agent's own knowledge, lost with it.
	memory    Memory
	diskKnown bool
	jvmSeen   JVM
	peers     Peers
	failures  map[ActionKind]Failure
	running   []Operation

	init   Init
	mode   facts.Mode // of the JVM that runs
	native bool
	tokens []int64

	// What happened, for the checks.
	opened     bool
	withdrawn  map[string]bool
	members    map[string]bool            // tickets by which Cassandra wrote down that it had joined
	began      string                     // ticket of the JVM that runs
	restarts   map[string]map[string]bool // intent id → processes that were stopped for it
	operations map[string]v1alpha1.OperationType
	starts     map[string]bool
	intents    int
}

func newLife(t *rapid.T) *life {
	f := fresh()
	f.Record.Spec.Configuration.NumTokens = 2
	return &life{
		t: t, now: epoch, record: f.Record, disk: Disk{Volumes: []Volume{{Name: v1alpha1.VolumeData}}},
		init: Init{Answers: true, Incarnation: "i1"}, failures: map[ActionKind]Failure{},
		withdrawn: map[string]bool{}, members: map[string]bool{}, restarts: map[string]map[string]bool{},
		operations: map[string]v1alpha1.OperationType{}, starts: map[string]bool{},
	}
}

func (l *life) facts() Facts {
	f := fresh()
	f.Record = l.record.DeepCopy()
	f.APISeenAt = l.now
	f.Memory, f.Disk, f.Init, f.JVM, f.Peers, f.Failures = l.memory, Disk{}, l.init, l.jvmSeen, l.peers, l.failures
	f.Operations = slices.Clone(l.running)
	if l.diskKnown {
		f.Disk = l.disk
		f.Disk.Known = true
	}
	f.Seeds = []string{address}
	return f
}

// look is the agent asking the JVM.
func (l *life) look() {
	p := l.init.Process
	if p == nil {
		return
	}
	if l.jvmSeen.StartID != p.StartID {
		l.jvmSeen = JVM{StartID: p.StartID}
	}
	l.jvmSeen.AskedAt, l.jvmSeen.AnsweredAt = l.now, l.now
	e := endpoint(address, hostA, "r1", true, l.tokens...)
	l.jvmSeen.Ring = &facts.Ring{
		Mode: l.mode, HostID: hostA, GossipRunning: true, NativeRunning: l.native, Endpoints: []facts.Endpoint{e},
		Keyspaces: map[string]string{"system_auth": "SimpleStrategy {replication_factor=1}"},
	}
}

// decide lets the agent act until it waits. Crash says after how many journal writes and effects
// the agent ends; negative for never.
func (l *life) decide(crash int) {
	for actions := 0; ; actions++ {
		if actions > 60 {
			l.t.Fatalf("the agent does not come to rest at %s", l.now)
		}
		f := l.facts()
		d := Next(f, l.now)
		l.checkStatus(d)
		if d.Action == nil {
			return
		}
		l.remember(Before(&f, d.Action, l.now))
		if crash == 0 {
			l.restartAgent()
			return
		}
		crash--
		l.effect(&f, d.Action)
		if crash == 0 {
			l.restartAgent()
			return
		}
		crash--
		f = l.facts()
		l.remember(After(&f, d.Action))
	}
}

func (l *life) remember(m Memory) {
	l.memory = m
	if m.ClusterUID == uid && m.Node == self {
		l.durable = m
	}
}

func (l *life) restartAgent() {
	l.memory, l.diskKnown, l.jvmSeen, l.peers, l.running = l.durable, false, JVM{}, Peers{}, nil
	clear(l.failures)
	l.look()
}

func (l *life) effect(f *Facts, a Action) {
	switch a := a.(type) {
	case InspectDisk:
		if l.init.Process != nil {
			l.t.Fatal("looked at the disk of a running JVM")
		}
		l.diskKnown = true
	case ClaimDisk:
		l.disk.Volumes = []Volume{{Name: v1alpha1.VolumeData, Marker: marker}}
	case StartJVM:
		l.start(a)
	case LookAtRing:
		l.look()
	case OpenTraffic:
		if l.durable.TrafficOpenedAt == nil {
			l.t.Fatal("CQL opens without a word of it on the disk")
		}
		if l.mode != facts.ModeNormal {
			l.t.Fatalf("CQL opens in the mode %s", l.mode)
		}
		l.native, l.opened = true, true
		l.look()
	case CloseTraffic:
		l.native = false
		l.look()
	case Drain:
		l.native, l.mode = false, facts.ModeDrained
		l.look()
	case Terminate, Kill:
		if why, found := strings.CutPrefix(l.memory.Stop.Why, "restart "); found {
			if l.restarts[why] == nil {
				l.restarts[why] = map[string]bool{}
			}
			l.restarts[why][fmt.Sprint(l.init.Incarnation, l.init.Process.StartID)] = true
			if len(l.restarts[why]) > 1 {
				l.t.Fatalf("the restart %s ended %v", why, slices.Sorted(maps.Keys(l.restarts[why])))
			}
		}
		l.die(143, "")
	case RunOperation:
		if _, ran := l.operations[a.Operation.ID]; ran {
			l.t.Fatalf("operation %s ran twice", a.Operation.ID)
		}
		l.operations[a.Operation.ID] = a.Operation.Type
		for _, o := range l.running {
			alters := strings.HasPrefix(string(a.Operation.Type), "Alter")
			if !o.Ended && alters == strings.HasPrefix(string(l.operations[o.ID]), "Alter") {
				l.t.Fatalf("operation %s (%s) begins while %s (%s) runs", a.Operation.ID, a.Operation.Type, o.ID,
					l.operations[o.ID])
			}
		}
		l.running = append(l.running, Operation{ID: a.Operation.ID})
	case ResumeOperation:
		if m := l.memory.Operation(a.Operation.ID); m.Incarnation != l.init.Incarnation ||
			m.StartID != l.init.Process.StartID {
			l.t.Fatalf("operation %s of another JVM is resumed", m.ID)
		}
		l.running = append(slices.DeleteFunc(l.running, func(o Operation) bool { return o.ID == a.Operation.ID }),
			Operation{ID: a.Operation.ID})
	default:
		_ = f
	}
}

func (l *life) start(a StartJVM) {
	s := a.Start
	if s.Incarnation != l.init.Incarnation || s.StartID <= l.init.LastStartID || l.init.Process != nil {
		return // init refuses, or has done it already
	}
	if s.Ticket != nil {
		if l.withdrawn[s.Ticket.ID] {
			l.t.Fatalf("starts by the ticket %s, which was given back", s.Ticket.ID)
		}
		if l.opened {
			l.t.Fatal("starts as new after clients were served")
		}
		l.began = s.Ticket.ID
	} else if l.disk.Bootstrapped != WordCompleted {
		l.t.Fatal("starts without a ticket on a disk that has not joined")
	}
	if l.record.Spec.State == v1alpha1.StateStopped {
		l.t.Fatal("starts while it is to be stopped")
	}
	l.init.LastStartID = s.StartID
	l.init.Process = &Process{StartID: s.StartID, PID: 10, StartedAt: l.now}
	l.mode, l.native = facts.ModeStarting, false
	l.diskKnown = false
	l.look()
}

func (l *life) die(code int, signal string) {
	if l.init.Process == nil {
		return
	}
	l.init.Exits = append(l.init.Exits, Exit{Process: *l.init.Process, EndedAt: l.now, Code: code,
		Signal: signal})
	l.init.Process, l.native = nil, false
	l.diskKnown = false
}

func (l *life) checkStatus(d Decision) {
	s := d.Status
	if s.Ready && (l.init.Process == nil || l.mode != facts.ModeNormal || !l.native ||
		l.record.Spec.ClientTraffic != v1alpha1.TrafficOpen) {
		l.t.Fatalf("ready in the mode %s, CQL %v, traffic %s", l.mode, l.native, l.record.Spec.ClientTraffic)
	}
	if j := s.Join; j != nil && j.WithdrawnAt != nil {
		if j.FinishedAt != nil || l.members[j.ID] {
			l.t.Fatalf("the ticket of a node that had joined was given back: %+v", j)
		}
		if l.init.Process != nil {
			l.t.Fatalf("a ticket was given back while a JVM runs: %+v", j)
		}
		l.withdrawn[j.ID] = true
	}
	if len(s.Operations) > v1alpha1.MaxOperationStatuses {
		l.t.Fatalf("%d operations are reported", len(s.Operations))
	}
	for _, o := range l.record.Spec.Operations {
		if _, ran := l.operations[o.ID]; ran && s.Operation(o.ID) == nil {
			l.t.Fatalf("nothing is said of operation %s, which ran", o.ID)
		}
	}
	if s.Phase == "" {
		l.t.Fatalf("no phase: %v", d.Steps)
	}
}

// progress lets Cassandra come a step further.
func (l *life) progress() {
	if l.init.Process == nil {
		return
	}
	switch l.mode {
	case facts.ModeStarting:
		l.mode, l.disk.HasData, l.disk.HostID = facts.ModeJoining, true, hostA
	case facts.ModeJoining:
		// The word is on the disk before anybody is told; a JVM that is ended in between is a
		// member without having been seen.
		l.disk.Bootstrapped, l.members[l.began] = WordCompleted, true
		if rapid.Bool().Draw(l.t, "tells") {
			l.mode, l.tokens = facts.ModeNormal, []int64{-5, 5}
		}
	default:
	}
	l.look()
}

func (l *life) edit(change func(*v1alpha1.CassandraNodeSpec)) {
	change(&l.record.Spec)
	l.record.Generation++
}

func TestLifeOfANode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		id := func(kind string) v1alpha1.Intent {
			l.intents++
			return v1alpha1.Intent{ID: fmt.Sprintf("%s-%d", kind, l.intents)}
		}
		events := map[string]func(){
			"nothing":  func() {},
			"progress": l.progress,
			"ticket": func() {
				if l.record.Spec.Join == nil && l.record.Spec.Member == nil {
					ticket := newTicket()
					ticket.Intent = id("form")
					l.edit(func(s *v1alpha1.CassandraNodeSpec) { s.Join = ticket })
				}
			},
			"take the ticket back": func() {
				if l.record.Spec.Join != nil {
					l.edit(func(s *v1alpha1.CassandraNodeSpec) {
						s.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "test"}
					})
				}
			},
			"next ticket": func() {
				if m := l.memory.Join; m != nil && m.WithdrawnAt != nil {
					l.edit(func(s *v1alpha1.CassandraNodeSpec) { s.Join = nil })
				}
			},
			"formed": func() {
				if l.memory.Member != nil && l.record.Spec.Join != nil {
					l.edit(func(s *v1alpha1.CassandraNodeSpec) {
						s.Join, s.Member = nil, &v1alpha1.Member{HostID: hostA}
					})
				}
			},
			"traffic": func() {
				if l.record.Spec.Member != nil {
					traffic := rapid.SampledFrom([]v1alpha1.ClientTraffic{v1alpha1.TrafficOpen, v1alpha1.TrafficOpen,
						v1alpha1.TrafficAdministrative, v1alpha1.TrafficClosed}).Draw(t, "traffic")
					l.edit(func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = traffic })
				}
			},
			"restart": func() {
				if m := l.memory.Restart; l.record.Spec.Restart == nil ||
					m != nil && m.ID == l.record.Spec.Restart.ID && m.over() {
					l.edit(func(s *v1alpha1.CassandraNodeSpec) {
						s.Restart = &v1alpha1.RestartIntent{Intent: id("restart")}
					})
				}
			},
			"operation": func() {
				l.edit(func(s *v1alpha1.CassandraNodeSpec) {
					over := func(o v1alpha1.OperationIntent) bool {
						m := l.memory.Operation(o.ID)
						return m != nil && m.Phase.Final()
					}
					if len(s.Operations) == v1alpha1.MaxOperations || rapid.Bool().Draw(t, "takes away") {
						s.Operations = slices.DeleteFunc(slices.Clone(s.Operations), over)
					}
					if len(s.Operations) < v1alpha1.MaxOperations {
						kind := rapid.SampledFrom([]v1alpha1.OperationType{
							v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationAlterKeyspaces,
							v1alpha1.OperationRepair, v1alpha1.OperationRebuild,
						}).Draw(t, "type")
						s.Operations = append(slices.Clone(s.Operations),
							v1alpha1.OperationIntent{Intent: id("operation"), Type: kind})
					}
				})
			},
			"operation ends": func() {
				if len(l.running) > 0 {
					o := &l.running[rapid.IntRange(0, len(l.running)-1).Draw(t, "which")]
					if !o.Ended {
						o.Ended, o.Message, o.Failure = true, "done",
							rapid.SampledFrom([]string{"", "refused"}).Draw(t, "failure")
					}
				}
			},
			"stop": func() {
				l.edit(func(s *v1alpha1.CassandraNodeSpec) { s.State = v1alpha1.StateStopped })
			},
			"run": func() {
				l.edit(func(s *v1alpha1.CassandraNodeSpec) { s.State = v1alpha1.StateRunning })
			},
			"JVM dies":       func() { l.die(3, "") },
			"JVM is killed":  func() { l.die(137, "SIGKILL") },
			"agent restarts": l.restartAgent,
			"minutes go by":  func() { l.now = l.now.Add(7 * time.Minute); l.look() },
			"container again": func() {
				l.die(137, "SIGKILL")
				l.init = Init{Answers: true, Incarnation: l.init.Incarnation + "x"}
			},
		}
		names := slices.Sorted(maps.Keys(events))
		l.restartAgent()
		for range rapid.IntRange(1, 60).Draw(t, "length") {
			events[rapid.SampledFrom(names).Draw(t, "event")]()
			crash := -1
			if rapid.IntRange(0, 4).Draw(t, "crashes") == 0 {
				crash = rapid.IntRange(0, 6).Draw(t, "crash")
			}
			l.decide(crash)
			l.now = l.now.Add(time.Second)
			l.look()
		}
		l.settles()
	})
}

// settles checks that with time and without further trouble a member that is to run ends up
// serving.
func (l *life) settles() {
	if l.memory.Member == nil || l.record.Spec.Member == nil {
		return
	}
	l.edit(func(s *v1alpha1.CassandraNodeSpec) {
		s.State, s.ClientTraffic, s.Operations = v1alpha1.StateRunning, v1alpha1.TrafficOpen, nil
	})
	for range 30 {
		l.now = l.now.Add(30 * time.Second)
		l.progress()
		l.look()
		l.decide(-1)
	}
	if d := Next(l.facts(), l.now); !d.Ready || d.Status.Phase != v1alpha1.PhaseNormal {
		l.t.Fatalf("does not come back: phase %s, %s, %v", d.Status.Phase, d.Status.Message, d.Steps[len(d.Steps)-1])
	}
}
