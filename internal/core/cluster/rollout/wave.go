package rollout

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// intentLife is how long an agent may begin what it was asked for: one that was cut off must not
// take its node down in another's turn. It is longer than the clocks of hosts may differ: an agent
// by whose clock all is too late would be asked again for ever.
const intentLife = 5 * time.Minute

// continueWave brings the nodes of the wave on, and says whether it is over: every one of them is
// back, and the first one of a roll-out has served for the soak. A wave that is yet to go down is
// taken back while a member is lost, so that its replacement can begin.
func (p *pass) continueWave() (plan.Result, bool) {
	p.noticeHints()
	var asking []string
	for _, name := range p.state.Wave {
		if n := p.Live(name); n != nil && !p.state.Live && p.wantsDown(n) {
			asking = append(asking, name)
		}
	}
	allowed := p.allowed(asking)
	if len(allowed) == 0 && len(asking) == len(p.state.Wave) && slices.ContainsFunc(p.Members(), p.isLost) ||
		p.state.Renews && p.repairsFirst(p.state.Wave) != nil {
		p.write(false, "others are replaced or repaired first", func(s *State) {
			s.Wave, s.Began, s.First, s.Live, s.Renews, s.SoakSince = nil, time.Time{}, false, false, false, nil
		})
		return plan.Waiting("no node of the wave has gone down, and none can before others are replaced or repaired"),
			false
	}
	var waiting []string
	for _, name := range p.state.Wave {
		why, n := "its record is recreated", p.Live(name)
		if n != nil {
			why = p.continueNode(n, slices.Contains(allowed, name))
		}
		if why != "" && p.Of(name).Failing() && p.Nodes[name].Pod != nil &&
			(n == nil || n.Record.Spec.State != v1alpha1.StateStopped) {
			p.step.Block(v1alpha1.BlockedChangedNodeDown, []string{name}, "node %s was changed and does not come up: "+
				"%s. The others are left alone until it is up: correct the spec, or take the change back", name, why)
		}
		if why != "" {
			waiting = append(waiting, name+": "+why)
		}
	}
	if open := p.step.OpenBudgets(); len(allowed) < len(asking) && len(open) > 0 {
		waiting = slices.Insert(waiting, 0, "evictions to be refused: PodDisruptionBudget "+words.List(open, 3))
	}
	if len(waiting) == 0 { // as far as the ring is up, every member sees every other
		for _, r := range guard.Check(p.members(up), p.rules.Seen...) {
			waiting = append(waiting, r.Message)
		}
	}
	if len(waiting) > 0 {
		if p.state.SoakSince != nil {
			p.write(false, "the first node is not up", func(s *State) { s.SoakSince = nil })
		}
		p.describe("waiting for %s", words.List(waiting, 3))
		return plan.Waiting("waiting for %s", words.List(waiting, 3)), false
	}
	if r, over := p.openToRoles(); !over {
		return r, false
	}
	if p.state.First {
		if left := p.soak(p.Nodes[p.state.Wave[0]]); left > 0 {
			p.step.WakeIn(left)
			p.describe("the first node, %s, serves until %s before others follow", p.state.Wave[0],
				p.Now.Add(left).UTC().Format(time.RFC3339))
			return plan.Waiting("the first node serves for %s more", left), false
		}
	}
	p.endWave()
	return plan.Nothing(), true
}

func (p *pass) isLost(name string) bool { return p.Lost(name) != "" }

// endWave writes down that the nodes of the wave are back, or have lost their disks.
func (p *pass) endWave() {
	was, back := p.state, p.Now
	if was.First {
		back = *was.SoakSince
	}
	p.write(false, "the wave of "+words.List(was.Wave, 3)+" is over", func(s *State) {
		if !s.Live {
			s.Last, s.Left, s.LeftSince = was.Wave, 0, nil
		}
		s.Wave, s.Began, s.First, s.Live, s.Renews, s.SoakSince = nil, time.Time{}, false, false, false, nil
		s.Proven = s.Proven || was.First
	})
	if took := back.Sub(was.Began).Round(time.Second); !was.Live && !was.Began.IsZero() {
		p.step.Write(false, "its nodes were back after "+took.String(), func(r *ledger.Ring, _ *ledger.Step) {
			r.WaveTook.Duration = took
		})
	}
	pending, _ := p.pending()
	hold := p.Cluster.Spec.Disruption.HoldAfter
	rack := p.rackOf(was.Wave[0])
	rackOver := !slices.ContainsFunc(pending, func(name string) bool { return p.rackOf(name) == rack })
	if len(pending) > 0 && hold != "" && (was.First || hold == v1alpha1.HoldAfterRack && rackOver) {
		p.write(false, "it is held", func(s *State) { s.Hold = fmt.Sprintf("%s/%d", p.step.ID(), s.Round) })
	}
}

// soak is how long the first node is yet to serve. It begins again with each of its JVMs.
func (p *pass) soak(n *facts.Node) time.Duration {
	as := string(n.Pod.UID)
	if r := n.Record.Status.Restarts; r != nil {
		as = fmt.Sprintf("%s/%d", as, r.Count)
	}
	if p.state.SoakSince == nil || p.state.SoakAs != as {
		p.write(false, "the first node is back", func(s *State) { s.SoakSince, s.SoakAs = &p.Now, as })
	}
	return p.state.SoakSince.Add(p.soakLength()).Sub(p.Now)
}

func (p *pass) soakLength() time.Duration {
	if d := p.Cluster.Spec.Disruption.Soak; d != nil {
		return d.Duration
	}
	return 30 * time.Second
}

// wantsDown says that what runs on a node has to be taken down now to bring it on.
func (p *pass) wantsDown(n *facts.Node) bool {
	if n.Record.Spec.State != v1alpha1.StateRunning || n.Pod == nil || n.Pod.DeletionTimestamp != nil ||
		p.Of(n.Name).Process == assess.Absent || unfinishedRestart(n) || p.renews(n) {
		return false
	}
	change := p.changeOf(n)
	if change == resize {
		return p.resizeWantsDown(n, p.wanted(n))
	}
	return p.podDiffers(n) || change == restart
}

// podDiffers says that the pod of a node is not what the spec describes.
func (p *pass) podDiffers(n *facts.Node) bool {
	return n.Pod != nil && (n.PodTemplate() != render.PodHash(p.wanted(n).Pod) || render.HalfResized(n.Record, n.Pod))
}

// continueNode brings one node of the wave on, and says what it waits for; nothing if it is back.
// Until it is back its record follows the spec: a correction reaches it at once.
func (p *pass) continueNode(n *facts.Node, mayGoDown bool) string {
	w, is := p.wanted(n), p.Of(n.Name)
	change := p.recordChange(n, w)
	stopped := n.Record.Spec.State == v1alpha1.StateStopped
	take := func(spec *v1alpha1.CassandraNodeSpec) {
		p.closeUntilRoles(spec, w)
		spec.Configuration, spec.Pod = w.Configuration, w.Pod
	}
	switch {
	case p.state.Live && p.wantsDown(n):
		return "" // more than the wave is for: it has a turn of its own
	case stopped && n.Pod != nil && (is.Process != assess.Absent || is.Contact != assess.Answering || !current(n) ||
		n.Record.Status.Phase != v1alpha1.PhaseStopped):
		return p.stopping(n)
	case stopped && p.renews(n):
		p.start(n, "its pod has its data")
		return "it starts again"
	case p.renews(n) && p.state.Renews:
		return "it is yet to be replaced: a new pod has none of its data"
	case p.renews(n) && is.Failing():
		return "" // it has a turn of its own
	case p.renews(n):
		return p.notBack(n)
	case stopped && change != nothing:
		p.step.UpdateRecord(n.Name, false, "it is stopped, and takes over what the spec says", take)
		return "it is stopped"
	case stopped && n.Pod != nil && p.MadeForAnother(n):
		return "its old pod is being deleted"
	case stopped:
		if p.started = p.started || p.withoutAddress(n.Name); p.started {
			return "its new pod waits for the others of its wave to have their addresses"
		}
		p.started = true
		p.start(n, "its turn has come")
		return "it starts"
	case hasPaid(n):
		p.step.UpdateRecord(n.Name, false, "its JVM has the new memory", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.Resized.Restart = ""
		})
		return "it has restarted"
	case !lost(n) && p.changeOf(n) == resize:
		return p.resizeNode(n, w, mayGoDown)
	case p.podDiffers(n) && is.Process != assess.Absent:
		if !mayGoDown {
			return "it is yet to stop"
		}
		until := metav1.NewTime(p.Now.Add(intentLife))
		p.step.UpdateRecord(n.Name, false, "its pod is to be a new one", func(spec *v1alpha1.CassandraNodeSpec) {
			spec.State, spec.StopNotAfter = v1alpha1.StateStopped, &until
		})
		return "it stops"
	case p.wantsDown(n):
		if !mayGoDown {
			return "it is yet to restart"
		}
		until := metav1.NewTime(p.Now.Add(intentLife))
		p.step.UpdateRecord(n.Name, false, "its JVM is to restart", func(spec *v1alpha1.CassandraNodeSpec) {
			take(spec)
			if owesRestart(n) {
				spec.Resized.Restart = p.restartID(n.Name)
			}
			spec.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: p.restartID(n.Name), NotAfter: &until}}
		})
		return "it restarts"
	case change != nothing:
		p.step.UpdateRecord(n.Name, false, "it takes over what the spec says", take)
		return "it takes over what the spec says"
	case p.state.Live && !up(n):
		return "" // it starts with what its record says
	}
	return p.notBack(n)
}

// stopping waits for a node that is to stop, and asks no longer if its agent has not begun in time.
func (p *pass) stopping(n *facts.Node) string {
	until := n.Record.Spec.StopNotAfter
	if until == nil || p.Now.Before(until.Add(intentLife)) || !current(n) ||
		n.Record.Status.Phase == v1alpha1.PhaseStopping {
		return "it stops"
	}
	p.start(n, "it was not stopped in time")
	return "it was not stopped in time"
}

func (p *pass) start(n *facts.Node, why string) {
	p.step.UpdateRecord(n.Name, false, why, func(spec *v1alpha1.CassandraNodeSpec) {
		spec.State, spec.StopNotAfter = v1alpha1.StateRunning, nil
	})
}

// withoutAddress says that another node of the wave is to start and has no address yet.
func (p *pass) withoutAddress(than string) bool {
	return slices.ContainsFunc(p.state.Wave, func(name string) bool {
		n := p.Live(name)
		return name != than && n != nil && n.Record.Spec.State == v1alpha1.StateRunning && assess.Address(n) == ""
	})
}

// up says that a node is NORMAL by its own word.
func up(n *facts.Node) bool {
	agent := n.CurrentAgent()
	return agent != nil && agent.Ring != nil && agent.Ring.Mode == facts.ModeNormal
}

// ready says that Kubernetes knows a node as ready.
func ready(n *facts.Node) bool {
	return slices.ContainsFunc(n.Pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (p *pass) rackOf(name string) [2]string {
	if n := p.Nodes[name]; n != nil && n.Record != nil {
		return [2]string{n.Record.Spec.Datacenter, n.Record.Spec.Rack}
	}
	return [2]string{}
}
