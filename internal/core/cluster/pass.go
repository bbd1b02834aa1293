package cluster

import (
	"fmt"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// pass is the state of one call of Next: what is known, and the plan as far as it has come.
type pass struct {
	*facts.Snapshot
	now  time.Time
	plan plan.Plan
	// wanted are the nodes that the spec describes.
	wanted []render.Wanted
	// held says that the spec is refused: what exists is kept going, nothing is changed to its like and nothing new begins.
	held bool
	// lost says that the ledger is lost, and that the one at hand is what could be rebuilt so far.
	lost bool
	// leavers are nodes without any part in the ring that the spec no longer has.
	leavers []string
	// joinNext and ringJudged are worked out when they are first asked for.
	joinNext   *nextJoin
	ringJudged *[]guard.Refusal
	// sorted and seen are worked out when they are first asked for, too: what is known does not change in a pass.
	sorted []*facts.Node
	seen   *seenMembers
	// compared are the records.
	compared render.Comparison
	// memberNames are those of the ledger membersOf.
	memberNames []string
	membersOf   *ledger.Ledger
	// corrections are nodes outside the ring that follow the spec although tickets are out.
	corrections []correction
	// unsigned says that there is no authority that could sign certificates.
	unsigned bool
	// unwanted are nodes without a part in the ring that the spec no longer has: nothing is made for them any more.
	unwanted map[string]bool
}

// Records are the nodes that have a record, sorted by name. Nobody may change the list.
func (p *pass) Records() []*facts.Node {
	if p.sorted == nil {
		p.sorted = p.Snapshot.Records()
	}
	return p.sorted
}

// members are the names of the ledger's members, sorted. Nobody may change the list.
func (p *pass) members() []string {
	if p.membersOf != p.Ledger {
		p.membersOf, p.memberNames = p.Ledger, sortedKeys(p.Ledger.Members)
	}
	return p.memberNames
}

func (p *pass) owner() render.Owner { return render.OwnerOf(p.Cluster) }

func (p *pass) write(writes ...plan.Write) { p.plan.Writes = append(p.plan.Writes, writes...) }

func (p *pass) stall(reason, format string, args ...any) {
	if p.plan.Stalled == nil {
		p.plan.Stalled = &plan.Stall{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
}

func (p *pass) block(step string, reason v1alpha1.Reason, nodes []string, format string, args ...any) {
	p.plan.Blocked = append(p.plan.Blocked, v1alpha1.BlockedStep{
		Step: step, Reason: reason, Nodes: nodes, Message: fmt.Sprintf(format, args...),
	})
}

// notice reports a problem that holds no step back.
func (p *pass) notice(reason v1alpha1.Reason, nodes []string, format string, args ...any) {
	p.plan.Notices = append(p.plan.Notices, v1alpha1.Notice{
		Reason: reason, Nodes: nodes, Message: fmt.Sprintf(format, args...),
	})
}

// wakeIn asks for another look after d at the latest.
func (p *pass) wakeIn(d time.Duration) {
	if d <= 0 {
		d = time.Second
	}
	p.plan.Wake = min(p.plan.Wake, d)
}
