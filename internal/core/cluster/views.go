package cluster

import (
	"fmt"
	"slices"
	"strconv"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
)

// views is what the nodes of a wave see of each other.
type views struct {
	// doubts are the reasons why the ring does not stand yet, in words.
	doubts []string
	// about are the nodes that each doubt is about: who sees it, and of whom.
	about [][2]string
	// normal are the nodes that are NORMAL in their own view, with their tokens.
	normal []string
	// hostIDs by node name, of those that are NORMAL.
	hostIDs map[string]string
}

func (v *views) doubt(observer, of, format string, args ...any) {
	v.doubts = append(v.doubts, fmt.Sprintf(format, args...))
	v.about = append(v.about, [2]string{observer, of})
}

// othersDoubt are the doubts that have nothing to do with the given nodes.
func (v *views) othersDoubt(nodes []*facts.Node) []string {
	var out []string
	involved := func(name string) bool {
		return slices.ContainsFunc(nodes, func(n *facts.Node) bool { return n != nil && n.Name == name })
	}
	for i, pair := range v.about {
		if !involved(pair[0]) && !involved(pair[1]) {
			out = append(out, v.doubts[i])
		}
	}
	return out
}

// viewsOf asks every node of the wave about itself and about every other, and every member about all of them: NORMAL, live, the tokens of its ticket, one schema.
func (p *pass) viewsOf(s *ledger.Step) views {
	v := views{hostIDs: map[string]string{}}
	rings := map[string]*facts.Ring{}
	for _, name := range s.Wave() {
		own := p.ownView(&v, name, s.Tickets[name].Tokens)
		if own == nil {
			continue
		}
		rings[name] = own
		v.normal = append(v.normal, name)
		v.hostIDs[name] = own.HostID
	}
	look := sights{step: s, views: &v, by: map[string]*sight{}}
	p.membersDoubt(&v, s, rings, &look)
	schemas := map[string]string{}
	for _, observer := range v.normal {
		for i, what := range look.through(rings[observer]).wrong {
			v.sees(observer, v.normal[i], what)
		}
		schemas[rings[observer].SchemaVersion] = observer
	}
	if len(schemas) > 1 {
		versions := sortedKeys(schemas)
		v.doubt(schemas[versions[0]], schemas[versions[1]], "%s and %s have different schemas", schemas[versions[0]], schemas[versions[1]])
	}
	return v
}

// membersDoubt adds what speaks against the wave in the views of members outside of it: every one that lives, in the eyes of the wave, must see all of it, have
// the same schema, and know of no range that is still on its way.
func (p *pass) membersDoubt(v *views, s *ledger.Step, rings map[string]*facts.Ring, look *sights) {
	for _, member := range p.members() {
		if _, inWave := s.Tickets[member]; inWave {
			continue
		}
		agent := p.Nodes[member].CurrentAgent()
		var seen *sight
		if agent != nil && agent.Ring != nil {
			seen = look.through(agent.Ring)
		}
		for i, of := range v.normal {
			switch {
			case seen == nil:
				if e, known := look.through(rings[of]).byHostID[p.Ledger.Members[member]]; known && e.Live {
					v.doubt(member, of, "%s lives and does not say what it sees: %s", member, guard.WhyNoAnswer(p.Nodes[member]))
				}
				continue
			case agent.Ring.SchemaVersion != rings[of].SchemaVersion:
				v.doubt(member, of, "%s and %s have different schemas", member, of)
			case agent.Ring.Pending > 0:
				v.doubt(member, of, "%s sees %d ranges on their way to new owners", member, agent.Ring.Pending)
			}
			v.sees(member, of, seen.wrong[i])
		}
	}
}

// sights are what the nodes see, worked out once for those that see the same.
type sights struct {
	step  *ledger.Step
	views *views
	by    map[string]*sight
}

// sight is a view of the ring.
type sight struct {
	byHostID map[string]*facts.Endpoint
	// wrong is, for each node that is NORMAL in its own view, what this view has otherwise, in words that follow the observer's name; empty if nothing.
	wrong []string
}

// through is the sight of a node that sees the ring so.
func (l *sights) through(r *facts.Ring) *sight {
	view := r.View()
	if s, known := l.by[view]; known {
		return s
	}
	s := &sight{byHostID: r.ByHostIDs()}
	for _, of := range l.views.normal {
		s.wrong = append(s.wrong, s.whatIsWrong(of, l.views.hostIDs[of], l.step.Tickets[of].Tokens))
	}
	l.by[view] = s
	return s
}

// whatIsWrong says that a node is not seen as NORMAL and live, with its tokens.
func (s *sight) whatIsWrong(of, hostID string, tokens []string) string {
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

// ownView is the ring as a node sees it that is NORMAL with the given tokens; nil, with a doubt, if it is not.
func (p *pass) ownView(v *views, name string, tokens []string) *facts.Ring {
	n := p.Nodes[name]
	agent := n.CurrentAgent()
	switch {
	case agent == nil:
		v.doubt(name, name, "%s: %s", name, guard.WhyNoAnswer(n))
		return nil
	case agent.Ring == nil:
		v.doubt(name, name, "%s: %s", name, orElse(guard.Trouble(n), orElse(agent.Message, string(agent.Phase))))
		return nil
	case agent.Ring.Mode != facts.ModeNormal:
		v.doubt(name, name, "%s is %s", name, agent.Ring.Mode)
		return nil
	}
	own, known := agent.Ring.ByHostID(agent.Ring.HostID)
	if !known || !sameTokens(own.Tokens, tokens) {
		v.doubt(name, name, "%s does not have the tokens of its ticket", name)
		return nil
	}
	return agent.Ring
}

// sees doubts what an observer sees of a node, if anything is wrong with it.
func (v *views) sees(observer, of, wrong string) {
	if wrong != "" {
		v.doubt(observer, of, "%s %s", observer, wrong)
	}
}

func inWords(e facts.Endpoint) string {
	state := orElse(string(e.Status), "unknown")
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
