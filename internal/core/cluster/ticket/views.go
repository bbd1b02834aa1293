package ticket

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
)

// Views are what the nodes of a wave see of each other, and what the members see of them.
type Views struct {
	// Doubts are the reasons why the nodes do not count as joined yet.
	Doubts []string
	// about are the nodes that each doubt is about: who sees it, and of whom.
	about [][2]string
	// Normal are the nodes that are NORMAL in their own view, with their tokens.
	Normal []string
	// HostIDs by node name, of those that are NORMAL.
	HostIDs map[string]string
}

// Doubt adds a reason: what an observer sees of a node.
func (v *Views) Doubt(observer, of, format string, args ...any) {
	v.Doubts = append(v.Doubts, fmt.Sprintf(format, args...))
	v.about = append(v.about, [2]string{observer, of})
}

// OthersDoubt are the doubts that have nothing to do with the given nodes.
func (v *Views) OthersDoubt(nodes []*facts.Node) []string {
	var out []string
	involved := func(name string) bool {
		return slices.ContainsFunc(nodes, func(n *facts.Node) bool { return n != nil && n.Name == name })
	}
	for i, pair := range v.about {
		if !involved(pair[0]) && !involved(pair[1]) {
			out = append(out, v.Doubts[i])
		}
	}
	return out
}

// Doubts are the reasons why the one node of a step does not count as joined yet: it is NORMAL with
// the tokens of its ticket, has reported that, and every member that is live sees it so.
func Doubts(v *assess.View, s *procedure.Step, n *facts.Node) []string {
	views := Look(v, s)
	if status := Status(s, n); len(views.Normal) > 0 && n.Record.Spec.Join != nil &&
		(status == nil || status.FinishedAt == nil) {
		views.Doubt(n.Name, n.Name, "%s has not reported that the join has finished", n.Name)
	}
	return views.Doubts
}

// Look asks every node of the wave about itself and about every other, and every member about all
// of them: NORMAL, live, the tokens of its ticket, one schema.
func Look(view *assess.View, s *procedure.Step) Views {
	v := Views{HostIDs: map[string]string{}}
	tokens := Of(openStep(view, s)).Tokens
	rings := map[string]*facts.Ring{}
	for _, name := range s.Wave() {
		own := v.ownRing(view.Nodes[name], name, tokens[name])
		if own == nil {
			continue
		}
		rings[name] = own
		v.Normal = append(v.Normal, name)
		v.HostIDs[name] = own.HostID
	}
	look := lookups{views: &v, tokens: tokens, by: map[string]*lookup{}}
	v.membersDoubt(view, s, rings, &look)
	schemas := map[string]string{}
	for _, observer := range v.Normal {
		for i, what := range look.of(rings[observer]).wrong {
			v.sees(observer, v.Normal[i], what)
		}
		schemas[rings[observer].SchemaVersion] = observer
	}
	if len(schemas) > 1 {
		versions := slices.Sorted(maps.Keys(schemas))
		a, b := schemas[versions[0]], schemas[versions[1]]
		v.Doubt(a, b, "%s and %s have different schemas", a, b)
	}
	return v
}

// membersDoubt adds what speaks against the wave in the views of members outside of it: every one
// that is live, as the wave sees it, must see all of it, have the same schema, and know of no
// pending range.
func (v *Views) membersDoubt(view *assess.View, s *procedure.Step, rings map[string]*facts.Ring, look *lookups) {
	for _, member := range view.Members() {
		if s.Has(member) {
			continue
		}
		agent := view.Nodes[member].CurrentAgent()
		var seen *lookup
		if agent != nil && agent.Ring != nil {
			seen = look.of(agent.Ring)
		}
		for i, of := range v.Normal {
			switch {
			case seen == nil:
				if e, known := look.of(rings[of]).byHostID[view.Ledger.Members[member]]; known && e.Live {
					v.Doubt(member, of, "%s is live and does not say what it sees: %s", member,
						assess.WhyNoAnswer(view.Nodes[member]))
				}
				continue
			case agent.Ring.SchemaVersion != rings[of].SchemaVersion:
				v.Doubt(member, of, "%s and %s have different schemas", member, of)
			case agent.Ring.Pending > 0:
				v.Doubt(member, of, "%s sees %d pending ranges", member, agent.Ring.Pending)
			}
			v.sees(member, of, seen.wrong[i])
		}
	}
}

// ownRing is the ring as a node sees it that is NORMAL with the given tokens; nil, with a doubt, if
// it is not.
func (v *Views) ownRing(n *facts.Node, name string, tokens []string) *facts.Ring {
	agent := n.CurrentAgent()
	switch {
	case agent == nil:
		v.Doubt(name, name, "%s: %s", name, assess.WhyNoAnswer(n))
		return nil
	case agent.Ring == nil:
		v.Doubt(name, name, "%s: %s", name, cmp.Or(assess.Trouble(n), agent.Message, string(agent.Phase)))
		return nil
	case agent.Ring.Mode != facts.ModeNormal:
		v.Doubt(name, name, "%s is %s", name, agent.Ring.Mode)
		return nil
	}
	own, known := agent.Ring.ByHostID(agent.Ring.HostID)
	if !known || !sameTokens(own.Tokens, tokens) {
		v.Doubt(name, name, "%s does not have the tokens of its ticket", name)
		return nil
	}
	return agent.Ring
}

// sees doubts what an observer sees of a node, if anything is wrong with it.
func (v *Views) sees(observer, of, wrong string) {
	if wrong != "" {
		v.Doubt(observer, of, "%s %s", observer, wrong)
	}
}

// lookups are worked out once for those nodes that see the same.
type lookups struct {
	views  *Views
	tokens map[string][]string
	by     map[string]*lookup
}

// lookup is one view of the ring.
type lookup struct {
	byHostID map[string]*facts.Endpoint
	// wrong is, for each node that is NORMAL in its own view, what this view has otherwise, in
	// words that follow the observer's name; empty if nothing.
	wrong []string
}

// of a node that sees the ring so.
func (l *lookups) of(r *facts.Ring) *lookup {
	view := r.View()
	if s, known := l.by[view]; known {
		return s
	}
	s := &lookup{byHostID: r.ByHostIDs()}
	for _, name := range l.views.Normal {
		s.wrong = append(s.wrong, s.whatIsWrong(name, l.views.HostIDs[name], l.tokens[name]))
	}
	l.by[view] = s
	return s
}

// whatIsWrong says that a node is not seen as NORMAL and live, with its tokens.
func (s *lookup) whatIsWrong(of, hostID string, tokens []string) string {
	e, known := s.byHostID[hostID]
	switch {
	case !known:
		return "does not know " + of + " yet"
	case e.Status != facts.StatusNormal || !e.Live:
		return "sees " + of + " as " + inWords(*e)
	case !sameTokens(e.Tokens, tokens):
		return "does not see the tokens of " + of + " yet"
	}
	return ""
}

func inWords(e facts.Endpoint) string {
	state := cmp.Or(string(e.Status), "unknown")
	if !e.Live {
		return state + " and down"
	}
	return state
}

// sameTokens compares the tokens of a view, ascending, with those of a ticket, in any order.
func sameTokens(have []int64, want []string) bool {
	if len(want) == 0 {
		return true // a ticket that named none: what was taken is right
	}
	parsed := make([]int64, 0, len(want))
	for _, t := range want {
		n, err := strconv.ParseInt(t, 10, 64)
		if err != nil {
			return false
		}
		parsed = append(parsed, n)
	}
	slices.Sort(parsed)
	return slices.Equal(parsed, have)
}
