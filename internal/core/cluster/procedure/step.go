package procedure

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
	"helenus.io/helenus/internal/core/repair"
)

// Step is an open step as its own stages see it. Through it they write the records of its nodes,
// its own part of the ledger and what is known of the ring, and nothing else.
type Step struct {
	engine *Engine
	open   *ledger.Step
}

// Kind of the step.
func (s *Step) Kind() ledger.Kind { return s.open.Kind }

// ID of the step.
func (s *Step) ID() string { return s.open.ID }

// Wave are the nodes that the step still works on, sorted.
func (s *Step) Wave() []string { return s.open.Wave() }

// Nodes are those of the wave and those that were withdrawn, sorted.
func (s *Step) Nodes() []string { return s.open.Nodes }

// Has says that the step is about a node, or was.
func (s *Step) Has(node string) bool { return s.open.Has(node) }

// Withdrawn are the nodes that were taken out again.
func (s *Step) Withdrawn() []string { return s.open.Withdrawn }

// Datacenters that the step is about.
func (s *Step) Datacenters() []string { return s.open.Datacenters }

// Attempts is how many attempts of a node's operation have failed in the present stage.
func (s *Step) Attempts(node string) int { return s.open.Attempts[node] }

// Stage that the step is in.
func (s *Step) Stage() ledger.Stage { return s.open.Stage }

// StageSince is when the present stage began.
func (s *Step) StageSince() time.Time { return s.open.StageSince }

// IntentID is the id of the step's intent of a purpose for one node.
func (s *Step) IntentID(purpose, node string) string { return s.open.IntentID(purpose, node) }

// UpdateRecord changes the record of one of the step's nodes, and says whether there is one to
// change.
func (s *Step) UpdateRecord(node string, live bool, why string, change func(*v1alpha1.CassandraNodeSpec)) bool {
	if !s.Has(node) {
		panic(fmt.Sprintf("step %s (%s) writes the record of node %s, which is not its own", s.ID(), s.Kind(), node))
	}
	return s.engine.updateRecord(node, live, why, change)
}

// Write changes the step itself, and what is known of the ring, in the ledger.
func (s *Step) Write(live bool, why string, change func(*ledger.Ring, *ledger.Step)) {
	id := s.open.ID
	s.engine.putLedger(live, why, func(l *ledger.Ledger) { change(&l.Ring, l.StepByID(id)) })
}

// Forget has the ledger forget a node that has left the ring.
func (s *Step) Forget(node string) {
	s.engine.putLedger(true, "node "+node+" has left", func(l *ledger.Ledger) { l.Forget(node) })
}

// Advance goes to the next stage.
func (s *Step) Advance(live bool, why string, to ledger.Stage) {
	now := s.engine.view.Now
	s.Write(live, why, func(_ *ledger.Ring, own *ledger.Step) { own.Advance(to, now) })
}

// Withdraw takes nodes out of the wave.
func (s *Step) Withdraw(why string, nodes ...string) {
	s.Write(true, why, func(_ *ledger.Ring, own *ledger.Step) { own.Withdrawn = append(own.Withdrawn, nodes...) })
}

// PutRepairs writes down what is proven to be repaired.
func (s *Step) PutRepairs(h *repair.History) {
	PutRepairs(s.engine.view, s.engine.draft, h, "tables are repaired")
}

// PutRepairs writes down what is known of tables, in place of what the pass has written of them.
func PutRepairs(v *assess.View, d *plan.Draft, h *repair.History, why string) {
	want := render.Repairs(v.Owner(), repair.Encode(h))
	d.Writes = slices.DeleteFunc(d.Writes, func(w plan.Write) bool {
		m, is := w.Object.(*corev1.ConfigMap)
		return is && m.Name == want.Name
	})
	have := v.Shared.ConfigMaps[want.Name]
	if have == nil {
		d.Write(plan.Write{Verb: plan.Create, Object: want})
		return
	}
	now := have.DeepCopy()
	now.Data = want.Data
	d.Write(plan.Write{Verb: plan.Change, Object: now, Seen: have, UID: have.UID, Why: why})
}

// OpenedAt is when the step was opened.
func (s *Step) OpenedAt() time.Time { return s.open.OpenedAt }

// End ends a step that is one of many, and of no interest to people by itself.
func (s *Step) End() {
	id := s.open.ID
	s.engine.draft.Current = nil
	s.engine.putLedger(false, "the step is closed", func(l *ledger.Ledger) { l.CloseStep(id) })
}

// Close ends the step. What the pass did before rests on the open one, such as the disruption
// budgets: another pass follows, also if the event of this write is lost.
func (s *Step) Close(live bool, result v1alpha1.StepResult, message string) {
	e := s.engine
	e.draft.Current = nil
	s.WakeIn(time.Second)
	id := s.open.ID
	e.putLedger(live, "the step is closed", func(l *ledger.Ledger) { l.CloseStep(id) })
	e.draft.Finished = append(e.draft.Finished, v1alpha1.StepRecord{
		Step: string(s.open.Kind), Result: result, Message: message,
		StartedAt: metav1.NewTime(s.open.OpenedAt), FinishedAt: metav1.NewTime(e.view.Now),
	})
}

// Describe says in the status what the step does, and how many of its nodes are done.
func (s *Step) Describe(done int, format string, args ...any) {
	wave := s.Wave()
	since := metav1.NewTime(s.open.OpenedAt)
	current := &v1alpha1.StepStatus{Name: string(s.open.Kind), Message: fmt.Sprintf(format, args...), Nodes: wave,
		Since: &since}
	if len(wave) > 0 {
		percent := int32(100 * done / len(wave)) //nolint:gosec // at most 100
		current.Progress = &percent
	}
	s.engine.draft.Current = current
}

// Held says in the status what a person has to end before the step continues, after Describe.
func (s *Step) Held(hold string) { s.engine.draft.Current.Hold = hold }

// Block shows what the step waits for.
func (s *Step) Block(reason v1alpha1.Reason, nodes []string, format string, args ...any) {
	s.engine.draft.Block(string(s.open.Kind), reason, nodes, format, args...)
}

// Notice shows a problem that holds no step back.
func (s *Step) Notice(reason v1alpha1.Reason, nodes []string, format string, args ...any) {
	s.engine.draft.Notice(reason, nodes, format, args...)
}

// Refused shows what guards found.
func (s *Step) Refused(refusals []guard.Refusal) plan.Result {
	return Refused(s.engine.draft, string(s.open.Kind), refusals)
}

// Event tells people of something good.
func (s *Step) Event(reason, format string, args ...any) {
	s.engine.draft.Event(corev1.EventTypeNormal, reason, format, args...)
}

// Warn tells people of something bad.
func (s *Step) Warn(reason, format string, args ...any) {
	s.engine.draft.Event(corev1.EventTypeWarning, reason, format, args...)
}

// OpenBudgets are the disruption budgets that still let a pod be evicted.
func (s *Step) OpenBudgets() []string { return s.engine.openBudgets() }

// WakeIn asks for another pass after d at the latest.
func (s *Step) WakeIn(d time.Duration) { s.engine.draft.WakeIn(d) }

// DeletePod deletes the pod of one of the step's nodes, after a live look.
func (s *Step) DeletePod(n *facts.Node, why string) {
	w := plan.DeletePod(n.Pod, why)
	w.Live = true
	s.engine.draft.Write(w)
}

// DeletePods deletes pods of the step's nodes, after one live look at everything.
func (s *Step) DeletePods(nodes []*facts.Node, why string) {
	for i, n := range nodes {
		w := plan.DeletePod(n.Pod, why)
		w.Live = i == 0
		s.engine.draft.Write(w)
	}
}

// DeleteClaims deletes claims that nothing uses any more, by their uids.
func (s *Step) DeleteClaims(claims []v1alpha1.ClaimReference, why string) {
	for _, c := range claims {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Name, claim.Namespace = c.Name, s.engine.view.Cluster.Namespace
		s.engine.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(claim), UID: c.UID, Why: why})
	}
}

// ResizePod has the containers of the pod of one of the step's nodes get other resources.
func (s *Step) ResizePod(n *facts.Node, to v1alpha1.PodSettings, live bool, why string) {
	s.engine.draft.Write(plan.Write{Verb: plan.ResizePod, Object: render.Resize(n.Pod, to), UID: n.Pod.UID, Live: live,
		Why: why})
}

// soon is when to look again after a Secret was written: nobody is told that it has changed.
const soon = 200 * time.Millisecond

// CopyPassword has the Secret of the applied superuser become what that of the superuser is.
func (s *Step) CopyPassword(why string) {
	s.engine.draft.Write(CopyPassword(s.engine.view, true, why))
	s.WakeIn(soon)
}

// DropOldPassword has the Secret of the applied superuser forget the password before.
func (s *Step) DropOldPassword(why string) {
	s.engine.draft.Write(DropOldPassword(s.engine.view, why))
	s.WakeIn(soon)
}

// updateRecord changes the record of a node, and says whether there is one to change.
func (e *Engine) updateRecord(node string, live bool, why string, change func(*v1alpha1.CassandraNodeSpec)) bool {
	n := e.view.Live(node)
	if n == nil {
		return false
	}
	UpdateRecord(e.view, e.draft, n, live, why, change)
	return true
}

// UpdateRecord changes the record of a node, which has one: by one write in a plan, whoever changes
// it.
func UpdateRecord(v *assess.View, d *plan.Draft, n *facts.Node, live bool, why string,
	change func(*v1alpha1.CassandraNodeSpec)) {
	for i := range d.Writes {
		if w := &d.Writes[i]; w.Verb == plan.Apply && w.UID == n.Record.UID {
			change(&w.Object.(*v1alpha1.CassandraNode).Spec)
			w.Live, w.Why = w.Live || live, w.Why+"; "+why
			return
		}
	}
	record := render.ForApply(v.Owner(), n.Record)
	change(&record.Spec)
	d.Write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion,
		Live: live, Why: why})
}
