package plan

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// Plan is what is to be done now, and why. The same value feeds the operator's writer, its log, the
// status, `kubectl helenus plan` and the golden tests.
type Plan struct {
	// Steps in the order they were looked at, each with its outcome. A step that is not listed was
	// not reached.
	Steps []Report `json:"steps"`
	// Writes to carry out in this order. The first one that fails ends the pass: what follows may
	// rest on it.
	Writes []Write `json:"writes,omitempty"`
	// Stalled is what only the user can resolve; nil if there is nothing.
	Stalled *Stall `json:"stalled,omitempty"`
	// Blocked are steps that are held back, each with its reason.
	Blocked []v1alpha1.BlockedStep `json:"blocked,omitempty"`
	// Notices are problems that hold no step back.
	Notices []v1alpha1.Notice `json:"notices,omitempty"`
	// Exceptions of the spec, and what became of each.
	Exceptions []v1alpha1.ExceptionStatus `json:"exceptions,omitempty"`
	// Recommended are operations that a person should start.
	Recommended []v1alpha1.Recommendation `json:"recommended,omitempty"`
	// Repair is when tables were repaired; nil if that is not known.
	Repair *v1alpha1.RepairStatus `json:"repair,omitempty"`
	// Current is the step that is open or next; nil when all is done.
	Current *v1alpha1.StepStatus `json:"current,omitempty"`
	// Finished are the steps that this plan closes.
	Finished []v1alpha1.StepRecord `json:"finished,omitempty"`
	// Seeds that the nodes are given.
	Seeds []string `json:"seeds,omitempty"`
	// Wake is when to look again even if nothing happens.
	Wake time.Duration `json:"wake"`
}

// Report is the outcome of one step.
type Report struct {
	Step    string  `json:"step"`
	Outcome Outcome `json:"outcome"`
	// Message for people: what was done, what is waited for. Empty where Done says it all.
	Message string `json:"message,omitempty"`
}

// Outcome is what a step came to. The set is closed.
type Outcome string

// The outcomes.
const (
	// Done: nothing to do, go on.
	Done Outcome = "Done"
	// Act: there are writes.
	Act Outcome = "Act"
	// Wait: an event will bring it on.
	Wait Outcome = "Wait"
	// Retry: time alone will bring it on; the plan has a Wake.
	Retry Outcome = "Retry"
	// Stuck: only the user can bring it on; the plan has a Stalled.
	Stuck Outcome = "Stuck"
)

// Stall is why the user must act.
type Stall struct {
	// Reason is one of the Stalled reasons of the API.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// String prints the plan for people: a line for each step, and one for each write.
func (p Plan) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	for _, r := range p.Steps {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Step, r.Outcome, r.Message)
	}
	_ = w.Flush() // a strings.Builder takes everything
	for _, write := range p.Writes {
		fmt.Fprintf(&b, "  → %s\n", write)
	}
	if p.Stalled != nil {
		fmt.Fprintf(&b, "stalled: %s: %s\n", p.Stalled.Reason, p.Stalled.Message)
	}
	for _, blocked := range p.Blocked {
		fmt.Fprintf(&b, "blocked: %s: %s: %s\n", blocked.Step, blocked.Reason, blocked.Message)
	}
	for _, n := range p.Notices {
		fmt.Fprintf(&b, "notice: %s: %s\n", n.Reason, n.Message)
	}
	return b.String()
}
