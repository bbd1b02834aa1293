package rollout

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// State of a roll-out, as the ledger keeps it. What is left to do is read from the records: a node
// whose record and JVM are what the spec describes is done.
type State struct {
	// Target tells what the spec described when the present first node was chosen.
	Target string `json:"target"`
	// Round counts waves and their attempts: it is part of the ids of intents and of holds.
	Round int `json:"round,omitempty"`
	// Wave are the nodes that are changed now: their turn has come. First says that it is the first
	// node alone.
	Wave  []string `json:"wave,omitempty"`
	First bool     `json:"first,omitempty"`
	// Began is when the turn of the wave came; zero if the spec has changed since, or the ledger
	// has lost it.
	Began time.Time `json:"began,omitzero"`
	// Live says that the wave needs no restart, so that it waits for no node that is down.
	Live bool `json:"live,omitempty"`
	// Renews says that the node of the wave gets a new pod without its data: a step of its own
	// replaces it.
	Renews bool `json:"renews,omitempty"`
	// Proven says that the first node has served for the soak.
	Proven bool `json:"proven,omitempty"`
	// SoakSince is when the first node came back, and SoakAs which of its JVMs.
	SoakSince *time.Time `json:"soakSince,omitempty"`
	SoakAs    string     `json:"soakAs,omitempty"`
	// Last are the nodes of the last wave that were restarted.
	Last []string `json:"last,omitempty"`
	// Left is the least that was left to be delivered while a wave waited for it, and LeftSince
	// when it became that.
	Left      int        `json:"left,omitempty"`
	LeftSince *time.Time `json:"leftSince,omitempty"`
	// Roles says what comes next at the node that is closed until its clients have roles: nothing
	// before ours are made, StageLogin, or StageOpen.
	Roles ledger.Stage `json:"roles,omitempty"`
	// Resting says that the next wave waits for a person, so that pods can be evicted meanwhile.
	Resting bool `json:"resting,omitempty"`
	// Hold is what a person has to end before the next wave.
	Hold string `json:"hold,omitempty"`
}

// Stale removes stale endpoints from gossip while a step is open, and says whether it has anything
// to do.
type Stale func(*assess.View, *procedure.Step) (plan.Result, bool)

// RollOut brings the members to what the spec describes.
func RollOut(rules guard.Rules, stale Stale) procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.RollOut, Class: ledger.Rollout, MovesRanges: true, AnyRelease: true,
		Due: due, Understands: procedure.Understands[State],
		Rests: func(s *ledger.Step) bool {
			state, err := ledger.StateOf[State](s)
			return err == nil && state.Resting
		},
		Yields: func(s *ledger.Step) bool {
			state, err := ledger.StateOf[State](s)
			return err == nil && (len(state.Wave) == 0 || state.Resting || state.Renews)
		},
		Stages: []procedure.Stage{{Name: ledger.StageWaves,
			Run: func(v *assess.View, s *procedure.Step) plan.Result {
				p := newPass(v)
				p.step, p.state, p.rules, p.stale = s, procedure.State[State](s), rules, stale
				return p.run()
			}}},
	}
}

// due if any member is not what the spec describes, or was left half way by a step that the ledger
// has lost.
func due(v *assess.View) *procedure.Proposal {
	p := newPass(v)
	pending, begun := p.pending()
	if len(pending)+len(begun) == 0 {
		return nil
	}
	what := "bringing " + words.Plural(len(pending)+len(begun), "node") + " to what the spec describes"
	refusals := p.repairsFirst(pending)
	return &procedure.Proposal{What: what, Refusals: refusals, Open: func() (*procedure.Opening, []guard.Refusal) {
		return &procedure.Opening{
			Stage: ledger.StageWaves, Nodes: v.Members(), Why: string(ledger.RollOut),
			State: State{Target: v.Described(), Wave: begun},
			Event: string(ledger.RollOut), EventMessage: what, ResultMessage: what,
		}, nil
	}}
}

// pass continues a roll-out once.
type pass struct {
	*assess.View
	step    *procedure.Step
	state   State
	rules   guard.Rules
	stale   Stale
	changes map[pair]change
	byNode  map[*facts.Node]change
	// differing are the members that pending tells apart, once they were asked for.
	differing []differing
	// asked says that the ring was asked in this pass whether it can do without the wave; started,
	// that a node of it is to start.
	asked, started bool
	// written says that the ledger is written in this pass, which nobody else has written since.
	written bool
	// made are pods as nodes are to have them, by the hash of the pod.
	made map[string]*corev1.Pod
}

// differing is a member that is not what the spec describes, or whose change was begun.
type differing struct {
	name  string
	begun bool
}

func newPass(v *assess.View) *pass {
	return &pass{View: v, changes: map[pair]change{}, byNode: map[*facts.Node]change{}}
}

// write changes the state in the ledger.
func (p *pass) write(live bool, why string, change func(*State)) {
	change(&p.state)
	state := p.state
	p.written = true
	p.step.Write(live, why, func(_ *ledger.Ring, own *ledger.Step) { own.State = ledger.Encoded(state) })
}

func (p *pass) run() plan.Result {
	if target := p.Described(); target != p.state.Target && !p.SpecRejected {
		p.write(false, "the spec has changed", func(s *State) {
			s.Target, s.Proven, s.SoakSince, s.Hold, s.LeftSince = target, false, nil, "", nil
			s.Began = time.Time{} // what went before may have taken a person
		})
	}
	p.noteFormats()
	if len(p.state.Wave) > 0 {
		if r, over := p.snapshots(p.state.Wave); !over { // it follows a spec that has changed, too
			return r
		}
		if r, over := p.continueWave(); !over {
			return r
		}
	}
	pending, _ := p.pending()
	p.describe("%s left", words.Plural(len(pending), "node"))
	switch hold := p.Cluster.Spec.Disruption.HoldAfter; {
	case p.SpecRejected:
		p.rest(true)
		return plan.Waiting("the spec is refused")
	case len(pending) == 0 && p.withoutRecord() != "":
		return plan.Waiting("the record of %s is being recreated", p.withoutRecord())
	case len(pending) == 0 && p.forgetRestarts():
		return plan.Acting("the restarts are over")
	case len(pending) == 0 && p.forgetSnapshots():
		return plan.Waiting("waiting for the end of the snapshots")
	case len(pending) == 0:
		p.step.Event("RolledOut", "every node is as the spec describes it")
		p.step.Close(false, v1alpha1.StepSucceeded, "every node is as the spec describes it")
		return plan.Nothing()
	case p.Cluster.Spec.Paused:
		p.rest(true)
		return plan.Waiting("spec.paused is true; %s left", words.Plural(len(pending), "node"))
	case p.Cluster.Spec.Stopped:
		p.step.Close(false, v1alpha1.StepWithdrawn, "the ring is to stop; "+words.Plural(len(pending), "node")+
			" left for when it has started")
		return plan.Nothing()
	case p.DatacenterToStart() != "":
		p.step.Close(false, v1alpha1.StepWithdrawn, "datacenter "+p.DatacenterToStart()+" is to start; "+
			words.Plural(len(pending), "node")+" left for when it has")
		return plan.Nothing()
	case p.repairsFirst(pending) != nil:
		p.step.Close(false, v1alpha1.StepWithdrawn, "nodes are repaired first; "+words.Plural(len(pending), "node")+
			" left for when they are")
		return plan.Nothing()
	case p.state.Hold != "" && hold != "" && p.state.Hold != p.Cluster.Spec.Disruption.Resume:
		p.rest(true)
		p.step.Block(v1alpha1.BlockedRollOutHeld, nil, "disruption.holdAfter is %s: %s left. Waits until "+
			"disruption.resume is %q, which kubectl helenus resume %s writes", hold,
			words.Plural(len(pending), "node"), p.state.Hold, p.Cluster.Name)
		p.step.Held(p.state.Hold)
		return plan.Waiting("waiting until the user resumes %s", p.state.Hold)
	}
	p.rest(false)
	if r, stale := p.stale(p.View, p.step); stale { // the ring counts as changing for as long
		p.describe("%s", r.Message)
		return r
	}
	if r, over := p.snapshots(pending); !over {
		return r
	}
	if open := p.step.OpenBudgets(); len(open) > 0 {
		return plan.Waiting("until evictions are refused: PodDisruptionBudget %s", words.List(open, 3))
	}
	return p.beginWave(pending)
}

// rest lets pods be evicted while the roll-out waits for a person, and no longer.
func (p *pass) rest(yes bool) {
	if p.state.Resting != yes {
		p.write(false, "evictions", func(s *State) { s.Resting = yes })
	}
}

// describe says in the status what the roll-out does. Nodes that were taken out of the step are
// neither done nor left: they have joined as the spec describes them.
func (p *pass) describe(format string, args ...any) {
	pending, _ := p.pending()
	wave := p.step.Wave()
	done := len(wave)
	for _, name := range slices.Concat(pending, p.state.Wave) {
		if _, found := slices.BinarySearch(wave, name); found {
			done--
		}
	}
	p.step.Describe(done, format, args...)
}

// pending are the members that are not what the spec describes and are in no wave, in the order of
// the spec, and those whose change was begun, or is over and not yet forgotten.
func (p *pass) pending() (pending, begun []string) {
	if p.differing == nil {
		p.differing = p.workOutDiffering()
	}
	for _, d := range p.differing {
		switch {
		case slices.Contains(p.state.Wave, d.name):
		case d.begun:
			begun = append(begun, d.name)
		default:
			pending = append(pending, d.name)
		}
	}
	return pending, begun
}

// workOutDiffering is pending for all members, in a wave or not: nothing that a pass writes changes
// it before the next one.
func (p *pass) workOutDiffering() []differing {
	out := []differing{}
	for i := range p.Wanted {
		name := p.Wanted[i].Name
		n := p.Live(name)
		if n == nil || p.Ledger.Members[name] == "" || p.keptDown(n) {
			continue
		}
		restart := n.Record.Spec.Restart != nil && !lost(n) // else it ends when the disk is replaced
		switch {
		case n.Record.Spec.State == v1alpha1.StateStopped || restart && unfinishedRestart(n) || p.closedForRoles(n):
			out = append(out, differing{name, true})
		case p.changeOf(n) != nothing:
			if !p.VolumesGrow(n, p.wanted(n)) { // else out of turn; what else differs is looked at after that
				out = append(out, differing{name, false})
			}
		case restart: // to be forgotten
			out = append(out, differing{name, true})
		}
	}
	return out
}

// keptDown says that a node is of a datacenter that is stopped: it follows the spec when it has
// started, and the others do not wait for it.
func (p *pass) keptDown(n *facts.Node) bool {
	return n.Record != nil && p.Ledger.KeepsDown(n.Record.Spec.Datacenter)
}

// growing are the members whose volumes are to become larger.
func (p *pass) growing() (out []string) {
	for _, w := range p.Wanted {
		if n := p.Live(w.Name); n != nil && p.Ledger.Members[w.Name] != "" && p.VolumesGrow(n, p.wanted(n)) {
			out = append(out, w.Name)
		}
	}
	return out
}

// withoutRecord is a member of which is not known what it is; empty if there is none.
func (p *pass) withoutRecord() string {
	for _, name := range p.Members() {
		if p.Live(name) == nil {
			return name
		}
	}
	return ""
}

// unfinishedRestart says that a node was asked to restart and has neither done so nor refused.
func unfinishedRestart(n *facts.Node) bool {
	intent, status := n.Record.Spec.Restart, n.Record.Status.Restart
	return intent != nil && (status == nil || status.ID != intent.ID ||
		status.FinishedAt == nil && status.WithdrawnAt == nil)
}

// forgetRestarts takes restarts that are over out of the records, and says whether any had to be.
func (p *pass) forgetRestarts() bool {
	written := false
	for _, name := range p.step.Nodes() {
		if n := p.Live(name); n != nil && n.Record.Spec.Restart != nil && !unfinishedRestart(n) {
			written = p.step.UpdateRecord(name, false, "its restart is over", func(spec *v1alpha1.CassandraNodeSpec) {
				spec.Restart = nil
			})
		}
	}
	return written
}

func (p *pass) restartID(node string) string {
	return p.step.IntentID(fmt.Sprintf("restart-%d", p.state.Round), node)
}
