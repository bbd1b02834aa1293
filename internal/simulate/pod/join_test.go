package pod_test

import (
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/test/memdisk"
)

// Two nodes join a ring that serves, one after the other.
func TestNodesBootstrapIntoARingThatServes(t *testing.T) {
	kinds := kindsOf(t)
	for seed := range uint64(3) {
		g := newGrowth(t, kinds, seed)
		for ordinal := 1; ordinal <= 2; ordinal++ {
			name := g.add(ordinal)
			g.await("an agent that waits", 5*time.Minute,
				func() bool { return g.record(name).Status.Disk == v1alpha1.DiskEmpty })
			g.invite(name, fmt.Sprintf("grow/%d", ordinal), tokensOf(ordinal)...)
			began := g.w.Line.Now()
			g.await("a member", 5*time.Minute, g.joined(name))
			if took := g.w.Line.Now().Sub(began); took < 40*time.Second || took > 100*time.Second {
				t.Errorf("it took %s", took)
			}
			if n := g.record(name); n.Status.Restarts != nil || n.Status.Join.StartedAt == nil {
				t.Errorf("restarts %+v, join %+v", n.Status.Restarts, n.Status.Join)
			}
		}
		g.judge()
	}
}

// A join that is cut off at any durable step continues, with the same tokens, and loses nothing.
func TestAJoinIsCutOffAtEachDurableStep(t *testing.T) {
	kinds := kindsOf(t)
	name := nodeName(1)
	steps := newGrowth(t, kinds, 1).steps(name)
	if len(steps) < 20 {
		t.Fatalf("only %d durable steps", len(steps))
	}
	for what, do := range map[string]func(g *growth){
		"agent killed": func(g *growth) { g.sandbox(name).Kill(layout.AgentContainer) },
		"JVM killed": func(g *growth) {
			if j := g.sandbox(name).JVM(); j != nil {
				j.Kill()
			}
		},
		"pod deleted": func(g *growth) { g.deletePod(name) },
	} {
		for i, step := range steps {
			// What lies between two of these steps is the journal's own affair, and tried there.
			if step.Op != memdisk.OpRename && (what != "agent killed" || step.Op != memdisk.OpCreate) ||
				testing.Short() && i%5 != 0 {
				continue
			}
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", what, i, after), func(t *testing.T) {
					g := newGrowth(t, kinds, 1)
					left := i
					g.w.Pods.Hook = func(s *pod.Sandbox, _ memdisk.Step, done bool) error {
						if s.Name() != name || g.tickets[name] == nil {
							return nil
						}
						if left == 0 && done == after {
							left--
							g.after(0, func() { do(g) })
						}
						if !done {
							left--
						}
						return nil
					}
					g.bring(name)
					g.judge()
				})
			}
		}
	}
}

// A join that is cut off at any time continues, and loses nothing that is written meanwhile.
func TestAJoinIsCutOffAtAnyTime(t *testing.T) {
	kinds := kindsOf(t)
	name := nodeName(1)
	every := 3 * time.Second
	if testing.Short() {
		every = 9 * time.Second
	}
	for what, do := range map[string]func(g *growth){
		"JVM killed":  func(g *growth) { g.sandbox(name).JVM().Kill() },
		"pod deleted": func(g *growth) { g.deletePod(name) },
		"host lost": func(g *growth) {
			if g.sandbox(name).JVM().Mode() == string(facts.ModeNormal) {
				return // a member that is the only replica loses what its commit log has not synced
			}
			m := g.sandbox(name).Host()
			g.w.Kube.Lose(m)
			g.after(2*time.Minute, func() { g.w.Kube.Return(m, true) })
		},
		"streams break": func(g *growth) { g.w.Network.FailStreams(1) },
	} {
		for age := time.Second; age < 66*time.Second; age += every {
			t.Run(fmt.Sprintf("%s/%s", what, age), func(t *testing.T) {
				g := newGrowth(t, kinds, 2)
				done := g.when(name, age, func() { do(g) })
				g.bring(name)
				g.await("what was to happen", 2*time.Minute, func() bool { return *done })
				g.await("a member", 15*time.Minute, g.joined(name))
				g.judge()
			})
		}
	}
}

// A host that is down for some minutes comes back, with the same address, when the ring forgets the
// join or has just done so.
func TestAJoinIsCutOffForSomeMinutes(t *testing.T) {
	kinds := kindsOf(t)
	name := nodeName(1)
	for away := 110 * time.Second; away < 320*time.Second; away += 10 * time.Second {
		t.Run(away.String(), func(t *testing.T) {
			g := newGrowth(t, kinds, 2)
			done := g.when(name, 35*time.Second, func() {
				s := g.sandbox(name)
				g.w.Kube.HandAddress(name, s.Address())
				g.w.Kube.Lose(s.Host())
				g.after(away, func() { g.w.Kube.Return(s.Host(), true) })
			})
			g.bring(name)
			g.judge()
			if !*done {
				t.Error("nothing has happened")
			}
		})
	}
}

// A join that is cut off between the streams of two nodes starts over with both: what it had is out
// of date by what was written since.
func TestAJoinIsCutOffBetweenTwoStreams(t *testing.T) {
	kinds := kindsOf(t)
	for age := 44 * time.Second; age < 50*time.Second; age += 500 * time.Millisecond {
		t.Run(age.String(), func(t *testing.T) {
			g := newGrowth(t, kinds, 2)
			g.bring(nodeName(1))
			done := g.when(nodeName(2), age, func() { g.sandbox(nodeName(2)).JVM().Kill() })
			g.bring(nodeName(2))
			g.judge()
			if n := g.record(nodeName(2)); !*done || n.Status.Restarts == nil || n.Status.Restarts.Count != 1 {
				t.Errorf("killed %v, restarts %+v", *done, n.Status.Restarts)
			}
		})
	}
}

// A join that is taken back ends, whatever it had begun, unless the node has joined; the ring
// continues without it.
func TestAJoinIsTakenBackAtAnyTime(t *testing.T) {
	kinds := kindsOf(t)
	name := nodeName(1)
	over := map[string]int{}
	for age := time.Duration(0); age < 66*time.Second; age += 5 * time.Second {
		t.Run(age.String(), func(t *testing.T) {
			g := newGrowth(t, kinds, 3)
			g.add(1)
			g.await("an agent that waits", 5*time.Minute,
				func() bool { return g.record(name).Status.Disk == v1alpha1.DiskEmpty })
			g.invite(name, "grow/1", tokensOf(1)...)
			g.w.Line.RunFor(age)
			if g.record(name).Spec.Join == nil {
				over["joined"]++
				return
			}
			g.change(name, func(n *v1alpha1.CassandraNode) {
				n.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "the size was lowered"}
			})
			g.await("the end of the ticket", 2*time.Minute, func() bool {
				j := g.record(name).Status.Join
				return j != nil && (j.WithdrawnAt != nil || j.FinishedAt != nil)
			})
			if g.record(name).Status.Join.FinishedAt != nil {
				over["joined"]++
				return
			}
			delete(g.tickets, name)
			g.w.Line.RunFor(6 * time.Minute) // 5.0 remembers it for five
			s := g.record(name).Status
			if g.sandbox(name).JVM() != nil || s.Disk != v1alpha1.DiskJoining && s.Disk != v1alpha1.DiskEmpty ||
				s.Phase != v1alpha1.PhaseWaiting {
				t.Errorf("JVM %v, disk %s, phase %s: %s", g.sandbox(name).JVM(), s.Disk, s.Phase, s.Message)
			}
			over[string(s.Disk)]++
			answer, _ := g.sandbox(first).Agent().Answer()
			if len(answer.Ring.Endpoints) != 1 {
				t.Errorf("the first node still sees %+v", answer.Ring.Endpoints)
			}
			for _, lost := range g.w.Audit() {
				t.Errorf("lost: %s", lost)
			}
		})
	}
	for _, end := range []string{"joined", string(v1alpha1.DiskJoining), string(v1alpha1.DiskEmpty)} {
		if over[end] == 0 {
			t.Errorf("no join ended as %s: %v", end, over)
		}
	}
}

// Cassandra 4.1 says nothing when a stream of its join has failed, and continues with what an
// earlier try has streamed if it is not told otherwise.
func TestAJoinOfAnOlderReleaseBeginsAnew(t *testing.T) {
	kinds := kindsOf(t)
	for age := 44 * time.Second; age < 50*time.Second; age += time.Second {
		t.Run(age.String(), func(t *testing.T) {
			g := newGrowthOf(t, kinds, 2, "4.1.10")
			g.bring(nodeName(1))
			g.when(nodeName(2), age, func() { g.w.Network.FailStreams(1) })
			g.w.Line.RunFor(time.Second)
			g.bringWithin(nodeName(2), time.Hour)
			g.judge()
		})
	}
}

// A joiner that its peers forget while it stands still, or while nobody hears it, does not continue
// as if nothing had happened. One that has streamed everything by then is not guarded (ADR 16).
func TestAJoinIsForgotten(t *testing.T) {
	kinds := kindsOf(t)
	name := nodeName(1)
	every := 4 * time.Second
	if testing.Short() {
		every = 12 * time.Second
	}
	began := map[string]int{} // again
	for what, do := range map[string]func(g *growth, s *pod.Sandbox, lasts time.Duration){
		"frozen": func(g *growth, s *pod.Sandbox, lasts time.Duration) {
			j := s.JVM()
			j.Freeze(false)
			g.after(lasts, j.Thaw)
		},
		"unheard": func(g *growth, s *pod.Sandbox, lasts time.Duration) {
			g.w.Network.Isolate(s.Address())
			g.after(lasts, func() { g.w.Network.Heal(s.Address()) })
		},
		"cut off": func(g *growth, s *pod.Sandbox, lasts time.Duration) {
			g.w.Partition(s.Host(), true)
			g.after(lasts, func() { g.w.Heal(s.Host()) })
		},
	} {
		for _, release := range []string{"4.1.3", "4.1.10", "5.0.6"} {
			for _, lasts := range []time.Duration{40 * time.Second, 80 * time.Second, 320 * time.Second} {
				for age := 5 * time.Second; age < 48*time.Second; age += every {
					t.Run(fmt.Sprintf("%s/%s/%s/%s", what, release, lasts, age), func(t *testing.T) {
						g := newGrowthOf(t, kinds, 2, release)
						var j *cassandra.Process
						streamed := false
						done := g.when(name, age, func() {
							j = g.sandbox(name).JVM()
							streamed = j.Mode() == string(facts.ModeNormal)
							do(g, g.sandbox(name), lasts)
							g.after(lasts-time.Second, func() {
								streamed = streamed || j.Mode() == string(facts.ModeNormal)
							})
						})
						g.bringWithin(name, 2*time.Hour)
						g.w.Line.RunFor(lasts + 3*time.Minute)
						if streamed {
							if age < 44*time.Second {
								t.Error("it has streamed everything, and was to be ended before")
							}
							return
						}
						g.judge()
						if !*done {
							t.Error("nothing has happened")
						}
						if r := g.record(name).Status.Restarts; r != nil && r.Count > 0 {
							began[what+" "+release]++
						}
					})
				}
			}
		}
	}
	if len(began) != 9 {
		t.Errorf("joins that started over: %v", began)
	}
}
