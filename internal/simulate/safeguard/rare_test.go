package safeguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
	"helenus.io/helenus/test/memdisk"
)

// Scenarios of guards for which something unusual has to come first.

// heldBy says that an agent holds something back by a guard.
func heldBy(w *world.World, name, guard string) bool {
	n := recordAt(w, name)
	return n != nil && n.Status.Blocked != nil && n.Status.Blocked.Reason == v1alpha1.Reason(guard)
}

// recordAt is the record of a node at the API server; nil if there is none.
func recordAt(w *world.World, name string) *v1alpha1.CassandraNode {
	n, _ := w.Server.Object("CassandraNode", keyOf(name)).(*v1alpha1.CassandraNode)
	return n
}

// inTurn are wraps of what agents touch, one after the other.
func inTurn(wraps ...world.Wrap) world.Wrap {
	return world.Wrap{Host: func(s *pod.Sandbox, h execute.Host) execute.Host {
		for _, w := range wraps {
			h = w.Host(s, h)
		}
		return h
	}}
}

// looks changes what agents see of their rings.
func looks(change func(name string, view *facts.Ring)) world.Wrap {
	return host(func(s *pod.Sandbox, h *execute.Host) { h.JVM = looking{h.JVM, s.Name(), change} })
}

type looking struct {
	execute.JVM
	name   string
	change func(string, *facts.Ring)
}

func (j looking) Look(ctx context.Context) (*facts.Ring, error) {
	view, err := j.JVM.Look(ctx)
	if err != nil || view == nil {
		return view, err
	}
	other := *view
	other.Endpoints = slices.Clone(view.Endpoints)
	j.change(j.name, &other)
	return &other, nil
}

// rollback is the scenario of a volume, and of the ticket in a record, that are put back to how
// they were when the node was about to join.
type rollback struct {
	kept   *pod.Content
	ticket *v1alpha1.JoinTicket
	rolled bool
}

// snapshot is taken as soon as Cassandra has begun to join on the disk of the first node.
func (r *rollback) snapshot() trial.Act {
	return trial.Act{Name: "a snapshot is to be taken", Do: func(w *world.World) error {
		r.kept, r.ticket, r.rolled = nil, nil, false
		r.look(w)
		return nil
	}}
}

func (r *rollback) look(w *world.World) {
	if s := sandbox(w, first); s != nil {
		c := s.Content(v1alpha1.VolumeData)
		if local := c.Data.Report().Local; local != nil && local.HostID != "" &&
			string(local.Bootstrapped) != string(node.WordCompleted) {
			files := memdisk.New()
			for name, text := range c.Files.Files() {
				files.Put(name, []byte(text))
			}
			r.kept, r.ticket = &pod.Content{Files: files, Data: c.Data.Clone()}, recordAt(w, first).Spec.Join.DeepCopy()
			return
		}
	}
	w.Line.After(50*time.Millisecond, "snapshot", func() { r.look(w) })
}

func (r *rollback) scenario() *trial.Scenario {
	s := trial.Named("rolled-back", "the volume of a member is put back to how it was before it had joined", true, nil,
		trial.Act{Name: "lose", Do: lose, Until: notServing, Within: 10 * time.Minute},
		trial.Act{Name: "roll back", Do: func(w *world.World) error {
			if r.kept == nil {
				return errors.New("there is no snapshot")
			}
			volumes(w)[0].Content, r.rolled = r.kept, true
			w.Kube.Return(w.Kube.Hosts()[0], true)
			return nil
		}, Until: func(w *world.World) bool { return phase(first, v1alpha1.PhaseFailed)(w) || trial.Serves(w) },
			Within: 15 * time.Minute})
	return s.With(s.Name, "create", r.snapshot())
}

// records are those by which the first node has its ticket again when its volume was put back,
// which the API refuses to be a member's; they may even not say that it is one.
func (r *rollback) records(member bool) world.Wrap {
	return host(func(s *pod.Sandbox, h *execute.Host) {
		if s.Name() == first {
			h.Record = invited{h.Record, r, member}
		}
	})
}

type recordOf = execute.Record

type invited struct {
	recordOf
	after  *rollback
	member bool
}

func (i invited) Record() (*v1alpha1.CassandraNode, bool) {
	record, known := i.recordOf.Record()
	if record == nil || !i.after.rolled {
		return record, known
	}
	record = record.DeepCopy()
	record.Spec.Join = i.after.ticket
	if !i.member {
		record.Spec.Member = nil
	}
	return record, known
}

const (
	fourth = clusterName + "-dc1-r4-0"
	second = clusterName + "-dc1-r1-1"
)

// interrupted is the scenario of a join that is cut off between two of its streams and continues
// when deletions are forgotten.
func interrupted() *trial.Scenario {
	const by, host = "JoinLongerThanGCGrace", "m-d-0"
	s := trial.Named("grow-interrupted", "a node that joins is down, with a part of its rows, until the deletion of "+
		"these is forgotten", true, nil,
		trial.Act{Name: "create a table", Do: func(w *world.World) error {
			session, err := sandbox(w, first).JVM().CQL(context.Background())
			if err != nil {
				return err
			}
			return session.CreateTable(context.Background(), world.Keyspace, "short", 30*time.Minute)
		}},
		waiting(2*time.Minute),
		respec("grow", func(w *world.World) bool {
			n := sandbox(w, fourth)
			return n != nil && n.JVM() != nil && n.Content(v1alpha1.VolumeData).Data.Bytes() > cassandra.NewDisk().Bytes()
		}, func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks = append(s.Datacenters[0].Racks,
				v1alpha1.Rack{Name: "r4", Node: &v1alpha1.NodeSettings{Placement: &v1alpha1.Placement{Zone: "d"}}})
		}),
		trial.Act{Name: "lose the host", Do: func(w *world.World) error {
			if mode := sandbox(w, fourth).JVM().Mode(); mode != string(facts.ModeJoining) {
				return fmt.Errorf("the node is %s", mode)
			}
			w.Kube.Lose(host)
			w.Line.RunFor(time.Minute)
			return deleteRows(w)
		}},
		waiting(time.Hour),
		trial.Act{Name: "return it", Do: func(w *world.World) error {
			w.Kube.Return(host, true)
			return nil
		}, Until: func(w *world.World) bool { return heldBy(w, fourth, by) || grown(w) }, Within: 2 * time.Hour})
	s.Zones, s.Grows = []string{"a", "b", "c", "d"}, true
	return s
}

// unwiped are agents whose tickets never allow them to remove what a join has streamed.
func unwiped() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.Record = keeping{h.Record} })
}

type keeping struct{ recordOf }

func (k keeping) Record() (*v1alpha1.CassandraNode, bool) {
	record, known := k.recordOf.Record()
	if record != nil && record.Spec.Join != nil {
		record = record.DeepCopy()
		record.Spec.Join.Wipe = ""
	}
	return record, known
}

// endless are agents to which nobody tells that deletions are ever forgotten.
func endless() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.Peers = careless{h.Peers} })
}

type careless struct{ execute.Peers }

func (c careless) Ask(ctx context.Context, addresses []string, address, hostID string) ([]facts.Peer, []string) {
	answers, silent := c.Peers.Ask(ctx, addresses, address, hostID)
	for i := range answers {
		answers[i].GCGrace = new(time.Duration)
	}
	return answers, silent
}

// unable are disks of which nothing is removed.
type unable struct{ execute.Disk }

func (unable) WipeRows() error { return nil }

// TestAJoinThatWasCutOffBeginsAnew takes away that the disk is wiped before a join is tried again.
func TestAJoinThatWasCutOffBeginsAnew(t *testing.T) {
	s := interrupted()
	s.Acts = append(s.Acts, trial.Act{Name: "wait for the node", Until: grown, Within: time.Hour})
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: host(func(_ *pod.Sandbox, h *execute.Host) {
		h.Disk = unable{h.Disk}
	})}, "and the row is back")
}

// misremembering is a wrap of agents that read something else of a join in their journals than they
// wrote.
func misremembering(change func(*node.JoinMemory)) world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.Journal = misremembered{h.Journal, change} })
}

type misremembered struct {
	execute.Journal
	change func(*node.JoinMemory)
}

func (m misremembered) Load() (node.Memory, error) {
	memory, err := m.Journal.Load()
	if memory.Join != nil {
		join := *memory.Join
		m.change(&join)
		memory.Join = &join
	}
	return memory, err
}

// deafness is that of an agent to its JVM, which serves: it gets no answer, and sees no processor
// time pass.
type deafness struct {
	deaf bool
	jvm  *cassandra.Process
}

func (d *deafness) wrap() world.Wrap {
	return host(func(s *pod.Sandbox, h *execute.Host) {
		if s.Name() == first {
			h.JVM, h.Init = deafJVM{h.JVM, d}, deafInit{h.Init, d}
		}
	})
}

type deafJVM struct {
	execute.JVM
	of *deafness
}

func (j deafJVM) Look(ctx context.Context) (*facts.Ring, error) {
	if j.of.deaf {
		return nil, errors.New("no answer")
	}
	return j.JVM.Look(ctx)
}

type deafInit struct {
	execute.Init
	of *deafness
}

func (i deafInit) State(ctx context.Context) (initapi.State, error) {
	s, err := i.Init.State(ctx)
	if i.of.deaf {
		s.CPUNanos = 0
	}
	return s, err
}

func (d *deafness) scenario() *trial.Scenario {
	return trial.Named("jvm-unheard", "a JVM that serves does not answer its agent", true, nil,
		trial.Act{Name: "go deaf", Do: func(w *world.World) error {
			d.deaf, d.jvm = true, sandbox(w, first).JVM()
			return nil
		}, Until: func(w *world.World) bool { return heldBy(w, first, "PeerSeesNodeUp") || d.jvm.Ended() },
			Within: 20 * time.Minute},
		trial.Act{Name: "hear again", Do: func(*world.World) error { d.deaf = false; return nil }, Until: trial.Serves,
			Within: 20 * time.Minute})
}

// strayed is the scenario of a node that joins with other tokens than those of its ticket, which
// its agent gave Cassandra to start with.
type strayed struct{ given, taken []int64 }

func (t *strayed) wrap() world.Wrap {
	return host(func(s *pod.Sandbox, h *execute.Host) {
		if s.Name() == second {
			h.Init = misled{h.Init, t}
		}
	})
}

type misled struct {
	execute.Init
	of *strayed
}

// Start has the JVM take the tokens after those that it was given.
func (m misled) Start(ctx context.Context, seen initapi.State, id uint64, command initclient.Command) (initapi.State,
	error) {
	const property = "cassandra.initial_token="
	command.Argv = slices.Clone(command.Argv)
	for i, argument := range command.Argv {
		if text, found := strings.CutPrefix(argument, property); found {
			m.of.given, m.of.taken = nil, nil
			var others []string
			for t := range strings.SplitSeq(text, ",") {
				var token int64
				if _, err := fmt.Sscan(t, &token); err != nil {
					return seen, err
				}
				m.of.given, m.of.taken = append(m.of.given, token), append(m.of.taken, token+1)
				others = append(others, fmt.Sprint(token+1))
			}
			slices.Sort(m.of.given)
			slices.Sort(m.of.taken)
			command.Argv[i] = property + strings.Join(others, ",")
		}
	}
	return m.Init.Start(ctx, seen, id, command)
}

func (t *strayed) scenario() *trial.Scenario {
	return growing("grow-strayed", "a node joins with other tokens than those of its ticket",
		respec("grow", func(w *world.World) bool { return heldBy(w, second, "TokensDifferFromTicket") || grown(w) },
			firstRackMore),
		waiting(time.Minute), unharmed(func(w *world.World) []string {
			s := sandbox(w, second)
			local := s.Content(v1alpha1.VolumeData).Data.Report().Local
			if s.JVM() != nil && s.JVM().NativeOpen() && !slices.Equal(local.Tokens, t.given) {
				return []string{fmt.Sprintf("node %s serves clients with the tokens %d, which nobody has planned: %d "+
					"are", second, local.Tokens, t.given)}
			}
			return nil
		}))
}

// asGiven has all agents see the tokens of its ticket: the operator looks at those, too, and would
// say so.
func (t *strayed) asGiven() world.Wrap {
	return looks(func(_ string, view *facts.Ring) {
		for i := range view.Endpoints {
			if e := &view.Endpoints[i]; slices.Equal(e.Tokens, t.taken) {
				e.Tokens = slices.Clone(t.given)
			}
		}
	})
}

// stopped is the scenario of a datacenter that is added while a member is stopped, and no host
// takes its next pod for some time.
func stopped() *trial.Scenario {
	const by = "MemberNotNormal"
	var f failures
	var host string
	return growing("grow-stopped", "keyspaces are to be extended while a member is stopped",
		f.watch(),
		respec("grow", func(w *world.World) bool {
			c := trial.Cluster(w)
			return c.Status.Step != nil && c.Status.Step.Name == string(ledger.AddDatacenter)
		},
			datacenterMore(&v1alpha1.Extend{Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: world.Keyspace}},
				LocalConsistencyOnly: true})),
		trial.Act{Name: "stop a member", Do: func(w *world.World) error {
			host = sandbox(w, last).Host()
			w.Kube.Reject(host, "UnexpectedAdmissionError", "Allocate failed due to no healthy devices present")
			return deletePod(w, last)
		}, Until: func(w *world.World) bool {
			return len(f.seen) > 0 || heldBy(w, first, by) || heldBy(w, clusterName+"-dc1-r2-0", by)
		}, Within: 20 * time.Minute},
		waiting(time.Minute),
		trial.Act{Name: "take it back", Do: func(w *world.World) error { w.Kube.Reject(host, "", ""); return nil },
			Until: grown, Within: time.Hour},
		unharmed(f.found))
}

// unstopped has agents take members that were stopped for NORMAL ones.
func unstopped() world.Wrap {
	return looks(func(_ string, view *facts.Ring) {
		for i := range view.Endpoints {
			if e := &view.Endpoints[i]; e.Status == facts.StatusShutdown {
				e.Status = facts.StatusNormal
			}
		}
	})
}

// elsewhere has no agent tell of a node at another address than that which is asked about.
func elsewhere() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.Peers = here{h.Peers} })
}

type here struct{ execute.Peers }

func (p here) Ask(ctx context.Context, addresses []string, address, hostID string) ([]facts.Peer, []string) {
	answers, silent := p.Peers.Ask(ctx, addresses, address, hostID)
	for i := range answers {
		if e := answers[i].OfHostID; e != nil && e.Address != address {
			answers[i].OfHostID = nil
		}
	}
	return answers, silent
}

// moved is the scenario of a join that is cut off and continues at another address, while the
// others still remember the first.
func moved() *trial.Scenario {
	var host string
	starts := 0
	return growing("grow-moved", "the host of a node that joins is lost and back, and its pod has another address",
		respec("grow", func(w *world.World) bool {
			s := sandbox(w, second)
			return s != nil && s.JVM() != nil && slices.Contains(sandbox(w, first).JVM().Sight().Changing,
				s.JVM().Sight().Name)
		}, firstRackMore),
		trial.Act{Name: "lose the host", Do: func(w *world.World) error {
			host, starts = sandbox(w, second).Host(), 0
			w.Kube.Lose(host)
			w.Line.RunFor(10 * time.Second)
			watchStarts(w, func(s *pod.Sandbox) {
				if s.Name() == second {
					starts++
				}
			})
			w.Kube.Return(host, true)
			return nil
		}, Until: grown, Within: time.Hour},
		unharmed(func(*world.World) []string {
			if starts > 1 {
				return []string{fmt.Sprintf("node %s was started %d times beside its own earlier try, in vain", second,
					starts-1)}
			}
			return nil
		}))
}

// alone is the scenario of a node that gets its ticket to join when it reaches none of the others.
type alone struct {
	cut    bool
	starts int
}

func (a *alone) scenario() *trial.Scenario {
	const by = "NoSeedAnswers"
	return growing("grow-alone", "a node that is to join reaches none of the others",
		trial.Act{Name: "cut off whoever gets a ticket", Do: func(w *world.World) error {
			a.cut, a.starts = false, 0
			watchStarts(w, func(s *pod.Sandbox) {
				if s.Name() == second && a.cut {
					a.starts++
				}
			})
			w.Watch(func(e apiserver.Event) {
				if n, ok := e.New.(*v1alpha1.CassandraNode); ok && n.Name == second && n.Spec.Join != nil && !a.cut {
					a.cut = true
					w.Network.Isolate(sandbox(w, second).Address())
				}
			})
			return nil
		}},
		respec("grow", func(w *world.World) bool { return heldBy(w, second, by) || a.starts > 1 }, firstRackMore),
		waiting(5*time.Minute),
		unharmed(func(*world.World) []string {
			if a.starts > 0 {
				return []string{fmt.Sprintf("node %s was started %d times without anybody to join, in vain", second,
					a.starts)}
			}
			return nil
		}))
}

// wrap of what the agent of that node asks others. One that believes takes every seed for a member
// that answers.
func (a *alone) wrap(believes bool) world.Wrap {
	return host(func(s *pod.Sandbox, h *execute.Host) {
		if s.Name() == second {
			h.Peers = unreached{h.Peers, a, believes}
		}
	})
}

type unreached struct {
	execute.Peers
	of       *alone
	believes bool
}

func (u unreached) Ask(ctx context.Context, addresses []string, address, hostID string) (answers []facts.Peer,
	silent []string) {
	answers, silent = u.Peers.Ask(ctx, addresses, address, hostID)
	switch {
	case !u.of.cut:
		return answers, silent
	case !u.believes:
		return nil, addresses
	}
	answers = nil
	kept := 10 * 24 * time.Hour // without it a join that was cut off waits for somebody who knows
	for i, asked := range addresses {
		answers = append(answers, facts.Peer{Asked: asked, Node: fmt.Sprintf("believed-%d", i), HostID: asked,
			Ring: true, GCGrace: &kept})
	}
	return answers, nil
}

// givenUpAndCopied is the scenario of a join that was taken back before it had streamed anything,
// and of a user who puts the data of a member on its disk.
func givenUpAndCopied() *trial.Scenario {
	const by = "DiskContradictsJournal"
	back := func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = nil }
	return growing("grow-copied", "a join is taken back, and somebody copies the data of a member to its disk",
		respec("grow", func(w *world.World) bool {
			s := sandbox(w, second)
			return s != nil && s.JVM() != nil && !s.Content(v1alpha1.VolumeData).Data.Report().Empty()
		}, firstRackMore),
		respec("take it back", func(w *world.World) bool {
			n := recordAt(w, second)
			return n.Spec.Join != nil && n.Spec.Join.Withdraw != nil
		}, back),
		respec("describe it again", func(w *world.World) bool { return blockedBy(w, "JoiningDiskNotEmpty") },
			firstRackMore),
		trial.Act{Name: "copy", Do: func(w *world.World) error {
			from, to := sandbox(w, first).Content(v1alpha1.VolumeData), sandbox(w, second).Content(v1alpha1.VolumeData)
			*to = pod.Content{Files: to.Files, Data: from.Data.Clone()}
			return deletePod(w, second)
		}, Until: func(w *world.World) bool { return heldBy(w, second, by) || len(twins(w)) > 0 },
			Within: 10 * time.Minute},
		waiting(time.Minute), unharmed(twins))
}

// withoutBeginning is a journal that does not say of a ticket which was taken back that it was ever
// gone by.
func withoutBeginning() world.Wrap {
	return misremembering(func(j *node.JoinMemory) {
		if j.WithdrawnAt != nil {
			j.BegunAt = nil
		}
	})
}

// sourceless is the scenario of a join that is open when the disk of a member is lost from which it
// streams.
func sourceless() *trial.Scenario {
	s := catalogued("disk-lost-join")
	s = s.With("join-sourceless", "take it back", waiting(time.Hour), unharmed(func(w *world.World) []string {
		if tries := recordAt(w, fourth).Status.Join.Attempts; tries > 2 {
			return []string{fmt.Sprintf("node %s was started %d times without a source, in vain", fourth, tries-1)}
		}
		return nil
	}))
	return s
}

// hopeful are agents to which no peer says that it sees a member down.
func hopeful() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.Peers = unshaken{h.Peers} })
}

type unshaken struct{ execute.Peers }

func (u unshaken) Ask(ctx context.Context, addresses []string, address, hostID string) ([]facts.Peer, []string) {
	answers, silent := u.Peers.Ask(ctx, addresses, address, hostID)
	for i := range answers {
		answers[i].Down = nil
	}
	return answers, silent
}

func rareCases() []agentCase {
	var r rollback
	var d deafness
	var s strayed
	var a alone
	return []agentCase{
		{"TicketForMember", r.scenario(), nil, r.records(true), inTurn(r.records(false), strangers()),
			"I11: node " + first + " starts without streaming"},
		{"JoinLongerThanGCGrace", interrupted(), nil, unwiped(), inTurn(unwiped(), endless()), "and the row is back"},
		{"StaleEndpointInGossip", moved(), nil, world.Wrap{}, elsewhere(), "beside its own earlier try, in vain"},
		{"NoSeedAnswers", a.scenario(), nil, a.wrap(false), a.wrap(true), "without anybody to join, in vain"},
		{"PeerSeesNodeUp", d.scenario(), nil, d.wrap(), inTurn(d.wrap(), strangers()),
			"I1: the agent of node " + first + " ends the JVM, which serves clients"},
		{"TokensDifferFromTicket", s.scenario(), nil, s.wrap(), inTurn(s.wrap(), s.asGiven()),
			"which nobody has planned"},
		{"DiskContradictsJournal", givenUpAndCopied(), nil, world.Wrap{}, inTurn(withoutBeginning(), strangers()),
			"run with one host id"}, // HostIDAlive would hold it, too
		{"MemberDown", sourceless(), nil, world.Wrap{}, hopeful(), "without a source, in vain"},
		// that two are asked at once is itself a violation here
		{"ConsistencyWouldBeLost", atOnce(), []string{}, world.Wrap{}, unannounced(), "refused while two nodes restart"},
		{"MemberNotNormal", stopped(), nil, world.Wrap{}, unstopped(), "an operation of node"},
	}
}

func TestGuardsOfAgentsThatAreRarelyNeeded(t *testing.T) {
	for _, c := range rareCases() {
		c.try(t)
	}
}

// mistaken is the scenario of a Node object that somebody deletes while its host lives, and the
// nodes on it serve.
func mistaken(l *lines) *trial.Scenario {
	const by = "RemovedHostStillAnswers"
	var host string
	return trial.Named("unregistered-heard", "somebody deletes the Node object of a host that lives", true, nil,
		trial.Act{Name: "delete the Node object", Do: func(w *world.World) error {
			l.w, host = w, sandbox(w, first).Host()
			l.cut[first] = true
			return w.Kube.Unregister(host)
		}, Until: func(w *world.World) bool {
			p := w.Server.Object("Pod", keyOf(first))
			return blockedBy(w, by) || p == nil || p.GetDeletionTimestamp() != nil
		}, Within: 10 * time.Minute},
		waiting(time.Minute),
		trial.Act{Name: "its kubelet starts again",
			Do: func(w *world.World) error { clear(l.cut); w.Kube.Heal(host); return nil }, Until: trial.Serves,
			Within: 15 * time.Minute})
}

// Whoever answers from a host is not gone with it.
func TestAHostFromWhichAnAgentAnswersIsNotGone(t *testing.T) {
	l := lines{cut: map[string]bool{}, last: map[string]*facts.Agent{}}
	s := mistaken(&l)
	refuses(t, holds(t, trial.Trial{Scenario: s, Seed: 1, Tell: true}), "RemovedHostStillAnswers")
	clear(l.cut)
	// An operator that does not hear the agent still hears from the members that the node is alive.
	refuses(t, holds(t, trial.Trial{Scenario: s, Seed: 1, Tell: true, Wrap: l.wrap(false)}), "RemovedHostStillAnswers")
	clear(l.cut)
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: l.unlit()}, "I1: the operator deletes pod "+first)
}

// unlit are the lines of an operator to which no member says that the node is alive which is cut.
func (l *lines) unlit() world.Wrap {
	return world.Wrap{Asker: func(_ *world.Operator, t observe.Target, a observe.Asker) observe.Asker {
		return unlit{heard{a, l, t, false}}
	}}
}

type unlit struct{ heard }

func (u unlit) Facts(ctx context.Context) (*facts.Agent, error) {
	return u.darkened(u.heard.Facts(ctx))
}

func (u unlit) WaitFacts(ctx context.Context, digest string, limit time.Duration) (*facts.Agent, error) {
	return u.darkened(u.heard.WaitFacts(ctx, digest, limit))
}

// darkened is an answer by which the node that is cut is down.
func (u unlit) darkened(answer *facts.Agent, err error) (*facts.Agent, error) {
	if answer == nil || answer.Ring == nil || !u.lines.cut[first] {
		return answer, err
	}
	address := sandbox(u.lines.w, first).Address().String()
	blind, ring := *answer, *answer.Ring
	ring.Endpoints = slices.Clone(ring.Endpoints)
	for i := range ring.Endpoints {
		ring.Endpoints[i].Live = ring.Endpoints[i].Live && ring.Endpoints[i].Address != address
	}
	blind.Ring = &ring
	return &blind, err
}
