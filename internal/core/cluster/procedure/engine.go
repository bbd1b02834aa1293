package procedure

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// Engine runs the procedures of one cluster in one pass.
type Engine struct {
	view       *assess.View
	draft      *plan.Draft
	procedures []Procedure
	rules      guard.Rules
	// seeds publishes the addresses of nodes.
	seeds func(nodes []string)
	// held says of a kind that it does not begin yet; nil if all may.
	held func(ledger.Kind) bool

	// running is what of Maintenance still runs although it is to be suspended, and long are the
	// nodes on which it has done so for long.
	running, long []string

	proposals map[ledger.Kind]*Proposal
	proposed  *assess.View
	// releases is what ReleasesDiffer has found, if it was asked.
	releases *[]guard.Refusal
}

// NewEngine for one pass; seeds publishes the addresses of nodes as seeds.
func NewEngine(v *assess.View, d *plan.Draft, procedures []Procedure, rules guard.Rules,
	seeds func([]string)) *Engine {
	return &Engine{view: v, draft: d, procedures: procedures, rules: rules, seeds: seeds}
}

// Hold says of which kinds none begins yet, although nothing speaks against it.
func (e *Engine) Hold(held func(ledger.Kind) bool) { e.held = held }

// View is what is known now: with the ledger as the pass has written it.
func (e *Engine) View() *assess.View { return e.view }

// SetView goes on with another view: one that knows that the spec is refused, or a ledger.
func (e *Engine) SetView(v *assess.View) { e.view = v }

func (e *Engine) putLedger(live bool, why string, change func(*ledger.Ledger)) {
	l := e.view.Ledger.Copy()
	change(l)
	e.view = e.view.WithLedger(l)
	e.draft.PutLedger(l, live, why)
}

func (e *Engine) procedure(kind ledger.Kind) *Procedure {
	if i := slices.IndexFunc(e.procedures, func(p Procedure) bool { return p.Kind == kind }); i >= 0 {
		return &e.procedures[i]
	}
	return nil
}

// due is the proposal of a kind, worked out once for a view: the guards look at what every member
// sees.
func (e *Engine) due(p *Procedure) *Proposal {
	if e.proposed != e.view {
		e.proposed, e.proposals, e.releases = e.view, map[ledger.Kind]*Proposal{}, nil
	}
	out, known := e.proposals[p.Kind]
	if !known {
		out = p.Due(e.view)
		// an open step continues
		if out != nil && out.Lost == nil && !p.AnyRelease {
			out.Refusals = slices.Concat(e.ReleasesDiffer(), out.Refusals)
		}
		e.proposals[p.Kind] = out
	}
	return out
}

// ReleasesDiffer is what speaks against any step but a roll-out while two releases are in the ring,
// or another than the spec describes.
func (e *Engine) ReleasesDiffer() []guard.Refusal {
	if e.releases == nil {
		found := guard.Check(MemberNodes(e.view), e.rules.Releases...)
		e.releases = &found
	}
	return *e.releases
}

// RangesMove says that a step is open that changes who holds what, or that one is about to be.
func (e *Engine) RangesMove() bool {
	if s := e.view.Ledger.Step; s != nil {
		p := e.procedure(s.Kind)
		return p == nil || p.MovesRanges && (p.Rests == nil || !p.Rests(s))
	}
	if !e.view.CanChange() || e.view.Cluster.Spec.Paused {
		return false
	}
	for i := range e.procedures {
		p := &e.procedures[i]
		if !p.MovesRanges || p.AsksLast || e.held != nil && e.held(p.Kind) {
			continue
		}
		if due := e.due(p); due != nil && len(due.Refusals) == 0 && due.Recommend == nil && due.Settled == nil &&
			due.Wait == "" {
			return true
		}
	}
	return false
}

// Continue continues the open step, from wherever it is. It is never computed again. Corrected is
// the number of nodes that take over a corrected spec just now: the step waits for them.
func (e *Engine) Continue(corrected int) plan.Result {
	open := e.view.Ledger.Step
	if open == nil {
		return plan.Nothing()
	}
	if corrected > 0 {
		why := words.Plural(corrected, "node") + " take over the corrected spec"
		(&Step{e, open}).Describe(0, "%s", why)
		return plan.Acting("%s", why)
	}
	return e.advance(open)
}

// advance continues a step, and the next stage in the same pass: its writes follow the ledger's and
// are not made if that fails.
func (e *Engine) advance(s *ledger.Step) plan.Result {
	result := e.stage(s)
	if next := e.view.Ledger.StepByID(s.ID); next != nil && next.Stage != s.Stage {
		if following := e.stage(next); following.Outcome == plan.Act {
			result.Message += "; " + following.Message
		}
	}
	return result
}

// stage continues the stage that a step is in.
func (e *Engine) stage(s *ledger.Step) plan.Result {
	p := e.procedure(s.Kind)
	at := -1
	if p != nil {
		at = slices.IndexFunc(p.Stages, func(stage Stage) bool { return stage.Name == s.Stage })
	}
	if at < 0 {
		e.draft.Stall(v1alpha1.ReasonUnsupportedChange,
			"the open step %s is in stage %q, which this release of Helenus does not know: run the release that "+
				"began it", s.ID, s.Stage)
		return plan.Stopped("unknown stage %q", s.Stage)
	}
	if p.Understands != nil {
		if err := p.Understands(s); err != nil {
			e.draft.Stall(v1alpha1.ReasonUnsupportedChange, "%s: run the release of Helenus that began it", err)
			return plan.Stopped("the state of step %s is not understood", s.ID)
		}
	}
	return p.Stages[at].Run(e.view, &Step{e, s})
}

// Propose begins a procedure if it is due and nothing speaks against it.
func (e *Engine) Propose(kind ledger.Kind) plan.Result {
	p := e.procedure(kind)
	if e.isOpen(kind) {
		return plan.Nothing()
	}
	due := e.due(p)
	switch {
	case due == nil:
		return plan.Nothing()
	case due.Recommend != nil:
		e.draft.Recommend(due.Recommend.Operation, due.Recommend.Nodes, due.Recommend.Message)
		return plan.Nothing()
	case due.Settled != nil:
		e.putLedger(false, due.Settled.Why, func(l *ledger.Ledger) { due.Settled.Change(&l.Ring) })
		return plan.Nothing()
	case len(due.Clear) > 0:
		e.clearOperations(due.Clear)
		return plan.Acting("clearing the operations of an earlier step on %s", words.List(due.Clear, 3))
	case e.view.Cluster.Spec.Paused:
		return plan.Waiting("spec.paused is true; %s", due.What)
	case due.Lost != nil:
		e.putLedger(true, "the ledger had lost a step that is open", func(l *ledger.Ledger) { l.OpenStep(due.Lost) })
		return plan.Acting("%s of %s is resumed", due.Lost.Kind, words.List(due.Lost.Wave(), 1))
	case p.AsksLast && len(e.draft.Writes) > 0:
		return plan.Waiting("waiting for the nodes' objects to be written")
	}
	e.draft.Notices = append(e.draft.Notices, due.Notices...)
	if len(due.Notes) > 0 {
		Refused(e.draft, string(kind), due.Notes)
	}
	if due.Wake > 0 && (len(due.Refusals) > 0 || due.Wait != "") {
		e.draft.WakeIn(due.Wake)
	}
	switch {
	case len(due.Refusals) > 0:
		return Refused(e.draft, string(kind), due.Refusals)
	case due.Wait != "":
		return plan.Waiting("%s", due.Wait)
	case e.draft.Pending():
		return plan.Waiting("waiting for the nodes' objects to be written")
	}
	opening, refusals := due.opening()
	if len(refusals) > 0 {
		return Refused(e.draft, string(kind), refusals)
	}
	if first := e.ready(); first != nil && p.Class.Below(first.Class) {
		return plan.Waiting("%s: %s begins first", due.What, first.Kind)
	}
	if p.Class == ledger.Maintenance {
		if why := e.inTheWay(p, opening.Nodes); why != "" {
			return plan.Waiting("%s: %s", due.What, why)
		}
	} else if len(e.running) > 0 {
		return plan.Waiting("suspending maintenance: waiting for %s", words.List(e.running, 3))
	}
	if p.MovesRanges && e.view.HasRing() {
		if open := e.openBudgets(); len(open) > 0 {
			return plan.Waiting("until evictions are refused: PodDisruptionBudget %s", words.List(open, 3))
		}
	}
	return e.begin(p, opening)
}

// Yields says that no step above Maintenance is open, or one that a step of a higher class can
// suspend now.
func (e *Engine) Yields() bool {
	s := e.view.Ledger.Step
	if s == nil {
		return true
	}
	p := e.procedure(s.Kind)
	return p != nil && p.Yields != nil && p.Yields(s)
}

// isOpen says that a step of a kind is open, or is resumed after one of a higher class.
func (e *Engine) isOpen(kind ledger.Kind) bool {
	return slices.ContainsFunc(e.view.Ledger.Open(), func(s *ledger.Step) bool { return s.Kind == kind }) ||
		slices.ContainsFunc(e.view.Ledger.Suspended, func(s *ledger.Step) bool {
			return s.Kind == kind && s.Class != ledger.Maintenance
		})
}

// begin writes a step down, counts it, and runs its first stage.
func (e *Engine) begin(p *Procedure, o *Opening) plan.Result {
	now, id := e.view.Now, o.ID
	e.putLedger(true, o.Why, func(l *ledger.Ledger) {
		l.Steps++
		id = cmp.Or(id, StepID(e.view, l.Steps))
		step := &ledger.Step{
			ID: id, Attempts: o.Attempts, Kind: p.Kind, Class: p.Class, Stage: o.Stage,
			Generation: e.view.Cluster.Generation,
			OpenedAt:   now, StageSince: now, Datacenters: o.Datacenters, Nodes: slices.Sorted(slices.Values(o.Nodes)),
		}
		if o.State != nil {
			step.State = ledger.Encoded(o.State)
		}
		l.SuspendLower(p.Class)
		l.OpenStep(step)
		if o.Change != nil {
			o.Change(&l.Ring)
		}
	})
	if len(o.Seeds) > 0 {
		e.seeds(o.Seeds)
	}
	if o.Event != "" {
		e.draft.Event(corev1.EventTypeNormal, o.Event, "%s", o.EventMessage)
	}
	e.stage(e.view.Ledger.StepByID(id))
	return plan.Acting("%s", o.ResultMessage)
}

// StepID is the id of a step. Steps are counted in the life of a cluster, and the cluster's uid is
// part of the id, since an adopted disk remembers the intents of the cluster before.
func StepID(v *assess.View, number int64) string {
	return fmt.Sprintf("%.8s-%d", v.Cluster.UID, number)
}

// openBudgets are the disruption budgets that still let a pod be evicted, or that the disruption
// controller has not looked at since they changed.
func (e *Engine) openBudgets() []string {
	var out []string
	for _, dc := range e.view.Datacenters() {
		want := Budget(e.view, dc, e.RangesMove())
		have := e.view.Shared.Budgets[want.Name]
		if have == nil || !equality.Semantic.DeepEqual(have.Spec, want.Spec) ||
			have.Status.ObservedGeneration != have.Generation || have.Status.DisruptionsAllowed > 0 {
			out = append(out, want.Name)
		}
	}
	return out
}

// Budget is the disruption budget of a datacenter. While no step is open but one that repairs
// tables a pod that is not ready can be evicted always: it would keep its host from being drained.
// While one is open it may be a node that joins, or a replica that the step waits for. Where pods
// have the data, one that is not ready counts as one that is, and none can be evicted while a node
// that is to be repaired may lack what is in it.
func Budget(v *assess.View, datacenter string, rangesMove bool) *policyv1.PodDisruptionBudget {
	unready, inPods := policyv1.IfHealthyBudget, v.HasDataInPods(datacenter)
	rangesMove = rangesMove || inPods && len(v.Ledger.RepairDue) > 0
	open := slices.ContainsFunc(v.Ledger.Open(), func(s *ledger.Step) bool { return s.Kind != ledger.RepairTables })
	if v.HasRing() && !rangesMove && !v.LedgerLost && !open && !inPods {
		unready = policyv1.AlwaysAllow
	}
	return render.Budget(v.Owner(), datacenter, MinAvailable(v, datacenter, rangesMove), unready)
}

// MinAvailable is how many pods of a datacenter an eviction must leave: all but one of its members,
// and every one of them while ranges move or none is a member yet. A member counts whether its
// record or its pod is there just now or not.
func MinAvailable(v *assess.View, datacenter string, rangesMove bool) int {
	members := 0
	for name := range v.Ledger.Members {
		if v.DatacenterOf(name) == datacenter {
			members++
		}
	}
	if members > 0 && !rangesMove && !v.LedgerLost {
		return members - 1
	}
	exists := func(name string) bool {
		n := v.Nodes[name]
		return n != nil && (n.Record != nil || n.Pod != nil) && v.DatacenterOf(name) == datacenter
	}
	pods := members
	for name := range v.Nodes {
		if _, member := v.Ledger.Members[name]; !member && exists(name) {
			pods++
		}
	}
	if !v.Begun() && !v.SpecRejected {
		for _, w := range v.Wanted {
			if w.Datacenter == datacenter && !exists(w.Name) {
				pods++
			}
		}
	}
	return pods
}

// Refused turns refusals of guards into what the status shows, one entry for each reason: those
// that only the user can resolve stall, too.
func Refused(d *plan.Draft, step string, refusals []guard.Refusal) plan.Result {
	nodes, messages := map[v1alpha1.Reason][]string{}, map[v1alpha1.Reason][]string{}
	for _, r := range refusals {
		nodes[r.Reason] = append(nodes[r.Reason], r.Nodes...)
		messages[r.Reason] = append(messages[r.Reason], r.Message)
		if r.Stalled != "" {
			d.Stall(r.Stalled, "%s", r.Message)
		}
	}
	for _, r := range refusals {
		if said, ok := messages[r.Reason]; ok && r.Reason != "" {
			d.Block(step, r.Reason, nodes[r.Reason], "%s. Waits until %s", words.List(said, 3), r.Until)
			delete(messages, r.Reason)
		}
	}
	if first := refusals[0]; first.Stalled != "" {
		return plan.Stopped("%s", first.Message)
	}
	return plan.Waiting("%s", refusals[0].Message)
}
