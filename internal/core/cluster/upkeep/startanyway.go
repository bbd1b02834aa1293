package upkeep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

const (
	// allowedFor is how long a node may begin to start since no other was NORMAL. It is told again
	// before that is over.
	allowedFor = 5 * time.Minute
	// lastMoments are for how long others may be NORMAL after the first one: agents note every five
	// minutes that their nodes are.
	lastMoments = 6 * time.Minute
	// ringWasOff is the reason in a record for which no person has asked.
	ringWasOff = "no other member was NORMAL after it so long ago that deletions are forgotten"
)

// startAnyway lets members start that were down for longer than deletions are kept: those for which
// a person has asked, and those without which no deletion can have been forgotten.
func (k *Keeper) startAnyway(asked map[string]*v1alpha1.StartAnyway) {
	held := map[string][]string{} // nodes by what holds them
	for _, n := range k.Records() {
		have, want := n.Record.Spec.StartAnyway, asked[n.Name]
		if want == nil {
			want = k.startByRing(n, held)
		}
		if n.Record.DeletionTimestamp != nil || equality.Semantic.DeepEqual(have, want) {
			continue
		}
		why := "it need not start any more"
		if want != nil {
			why = "it may start: " + want.Reason
			if have == nil {
				k.draft.Event(corev1.EventTypeNormal, "StartAllowed",
					"node %s may start although it was down for longer than deletions are kept: %s",
					n.Name, want.Reason)
			}
		}
		k.update(n, want != nil, why, func(spec *v1alpha1.CassandraNodeSpec) { spec.StartAnyway = want })
	}
	for _, why := range slices.Sorted(maps.Keys(held)) {
		k.draft.Notice(v1alpha1.NoticeNodeNotStarting, held[why], "%s was down for longer than deletions are kept, "+
			"and %s. Rows that were deleted meanwhile could come back. To let it start all the same: kubectl helenus "+
			"start-anyway %s --reason '...'", words.List(held[why], 3), why, held[why][0])
	}
}

// startByRing is what a record says of the start of a node for which no person has asked. A member
// forgets gc_grace later what was deleted while it was NORMAL, however little it ran meanwhile.
// What a member that does not answer did is not known, and holds the others.
func (k *Keeper) startByRing(n *facts.Node, held map[string][]string) *v1alpha1.StartAnyway {
	have, agent := n.Record.Spec.StartAnyway, n.CurrentAgent()
	started := agent != nil && agent.Phase == v1alpha1.PhaseNormal
	if have != nil && (started || have.Reason != ringWasOff || !k.Now.Before(have.Until.Time)) {
		have = nil
	}
	if have != nil {
		k.draft.WakeIn(have.Until.Sub(k.Now) / 2)
	}
	if agent == nil || agent.Phase != v1alpha1.PhaseDownTooLong || n.Record.Spec.Member == nil {
		return have
	}
	if why := k.whoWasNormal(n.Name, agent); why != "" {
		held[why] = append(held[why], n.Name)
		return nil
	}
	if have != nil && have.Until.Sub(k.Now) > allowedFor/2 {
		return have
	}
	k.draft.WakeIn(allowedFor / 2)
	return &v1alpha1.StartAnyway{HostID: n.Record.Spec.Member.HostID, Reason: ringWasOff,
		Until: metav1.NewTime(k.Now.Add(allowedFor)).Rfc3339Copy()}
}

// whoWasNormal names a member that was NORMAL while a node was not, longer ago than deletions are
// kept, or of which that is not known; empty if there is none.
func (k *Keeper) whoWasNormal(name string, agent *facts.Agent) string {
	if len(agent.Normal) == 0 {
		return "it does not know since when"
	}
	away, kept := agent.Normal[len(agent.Normal)-1].Until, k.Now.Add(-agent.GCGrace)
	// A member of which nothing else is known was not NORMAL while the ring was stopped as a whole.
	unknown := []facts.Stretch{{}}
	if s := k.Ledger.Stopped; s != nil {
		unknown = []facts.Stretch{{Until: s.Since}, {From: cmp.Or(s.Until, k.Now)}}
	}
	stopped := facts.NormalBetween(unknown, away, kept) <= lastMoments
	for _, other := range k.Members() {
		if other == name {
			continue
		}
		n := k.Nodes[other]
		switch {
		case (n == nil || n.CurrentAgent() == nil) && stopped:
		case n == nil || n.CurrentAgent() == nil:
			return fmt.Sprintf("node %s does not answer: nobody knows how long that was NORMAL since", other)
		case len(n.Agent.Normal) == 0:
			return fmt.Sprintf("node %s does not know how long it was NORMAL since", other)
		case facts.NormalBetween(n.Agent.Normal, away, kept) > lastMoments:
			return fmt.Sprintf("node %s was NORMAL after it, longer ago than that", other)
		}
	}
	return ""
}

// judgeStart says what becomes of an exception that lets a node start.
func judgeStart(e *v1alpha1.Exception, n *facts.Node) (v1alpha1.ExceptionState, string) {
	if member := n.Record.Spec.Member.HostID; e.HostID != member {
		return v1alpha1.ExceptionRefused, fmt.Sprintf("hostID is %s, and node %s is the member with host id %s",
			e.HostID, e.Node, member)
	}
	if n.StatusIsCurrent() && n.Record.Status.Phase == v1alpha1.PhaseNormal {
		return v1alpha1.ExceptionActive, fmt.Sprintf("node %s has started: take it out of spec.exceptions", e.Node)
	}
	return v1alpha1.ExceptionActive, fmt.Sprintf("node %s may start", e.Node)
}
