package procedure

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// Procedure is one kind of change to a ring.
type Procedure struct {
	Kind  ledger.Kind
	Class ledger.Class
	// MovesRanges: no pod is evicted from when its guards hold until its step is closed.
	MovesRanges bool
	// Rests says that nothing of an open step is under way, so that pods can be evicted. Nil:
	// never.
	Rests func(*ledger.Step) bool
	// Yields says that nothing of an open step is under way, so that a step of a higher class can
	// suspend it. Nil: never.
	Yields func(*ledger.Step) bool
	// Suspended is run in each pass for a step that is suspended, or is to be. Nil: nothing is
	// done.
	Suspended func(*assess.View, *Step)
	// Runs are the types of operations that its steps have nodes run.
	Runs []v1alpha1.OperationType
	// AnyRelease: it may begin while the members have different releases.
	AnyRelease bool
	// AsksLast: its guards are asked only when no object is left to be written.
	AsksLast bool
	// Due is asked while no step is open; nil if there is nothing to do.
	Due func(*assess.View) *Proposal
	// Stages in their order.
	Stages []Stage
	// Understands says whether this release can read the state of a step of this kind. Nil if the
	// kind has no state.
	Understands func(*ledger.Step) error
}

// Stage is one stage of a procedure's steps.
type Stage struct {
	Name ledger.Stage
	// Run continues the stage, from wherever it is. It goes on to another stage by Step.Write.
	Run func(*assess.View, *Step) plan.Result
}

// Proposal is a change that is due, and what holds it back.
type Proposal struct {
	// What is to be done, for people: "2 nodes to join".
	What string
	// Recommend is what a person should start instead; nothing else is done then.
	Recommend *v1alpha1.Recommendation
	// Settled is written down where there is nothing left to do; nothing else is done then.
	Settled *Settled
	// Clear names nodes with operations of an earlier step of this kind that are over.
	Clear []string
	// Lost is a step that is open although the ledger knew nothing of it.
	Lost *ledger.Step
	// Notes are shown and hold nothing back; Refusals are shown and hold the change back.
	Notes, Refusals []guard.Refusal
	// Notices are shown. Wait is what the change waits for, if it is no refusal.
	Notices []v1alpha1.Notice
	// Wake is how long that, or a refusal, lasts at most; 0 if nobody knows.
	Wait string
	Wake time.Duration
	// Open works out what the step must not compute twice, or what speaks against it at last.
	Open func() (*Opening, []guard.Refusal)

	asked   bool
	opened  *Opening
	refused []guard.Refusal
}

// Settled is what the ledger learns without a step.
type Settled struct {
	Why    string
	Change func(*ledger.Ring)
}

// Opening is a step as it is opened.
type Opening struct {
	// ID of the step; empty for the next one of the cluster. Attempts are those that were made
	// before the ledger was lost.
	ID                 string
	Attempts           map[string]int
	Stage              ledger.Stage
	Datacenters, Nodes []string
	// State of the kind, which has an encoding as JSON.
	State any
	// Seeds are nodes whose addresses are published before the first ticket is used.
	Seeds []string
	// Why, for people, in the ledger's write; Event for its reason and message.
	Why           string
	Event         string
	EventMessage  string
	ResultMessage string
	// Change is what else the ledger learns with it.
	Change func(*ledger.Ring)
}

// Understands is a Procedure's Understands for a kind whose state is a T.
func Understands[T any](s *ledger.Step) error {
	_, err := ledger.StateOf[T](s)
	return err
}

// State of a step, which the engine has found to be understood.
func State[T any](s *Step) T {
	out, _ := ledger.StateOf[T](s.open)
	return out
}

// MemberNodes asks guards about the ring's members.
func MemberNodes(v *assess.View) guard.Nodes {
	return guard.Nodes{Snapshot: v.Snapshot, Names: v.Members()}
}

// TheseNodes asks guards about some nodes.
func TheseNodes(v *assess.View, names ...string) guard.Nodes {
	return guard.Nodes{Snapshot: v.Snapshot, Names: names}
}
