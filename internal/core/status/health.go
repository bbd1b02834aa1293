package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
)

type setter func(kind string, yes bool, reason, format string, args ...any)

// setHealthy: no node is down, in doubt or waiting for the user.
func setHealthy(set setter, s *facts.Snapshot, formed bool) {
	var down, failed, unreachable []string
	schemas, stopped := map[string]bool{}, false
	for _, n := range s.Records() {
		status := n.Record.Status
		switch {
		case n.StatusIsCurrent() && assess.NeedsUser(status.Phase):
			failed = append(failed, fmt.Sprintf("%s is %s: %s", n.Name, status.Phase, status.Message))
		case s.Ledger.KeepsDown(n.Record.Spec.Datacenter) && isDown(s):
			stopped = true
		case s.Ledger.StopsDatacenter(n.Record.Spec.Datacenter): // it is what the spec wants
		case n.CurrentAgent() == nil:
			unreachable = append(unreachable, n.Name)
		case n.Agent.Ring == nil || n.Agent.Ring.Mode != facts.ModeNormal:
			down = append(down, n.Name)
		default:
			schemas[n.Agent.Ring.SchemaVersion] = true
		}
	}
	gone := unrecorded(s)
	switch {
	case len(failed) > 0:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonNodeFailed, "%s", strings.Join(failed, "; "))
	case stopped:
		set(v1alpha1.ConditionHealthy, true, v1alpha1.ReasonStopped, "%s", whyDown)
	case len(unreachable) > 0:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonNodeUnreachable, "no answer from %s",
			strings.Join(unreachable, ", "))
	case len(gone) > 0:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonNodeUnreachable, "there is no CassandraNode of %s",
			strings.Join(gone, ", "))
	case !formed && (len(down) > 0 || len(schemas) == 0):
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonForming, "the ring is being formed")
	case len(down) > 0:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonNodesDown, "%s not NORMAL", strings.Join(down, ", "))
	case len(schemas) > 1:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonSchemaDisagrees, "the nodes have %d different schemas",
			len(schemas))
	default:
		set(v1alpha1.ConditionHealthy, true, v1alpha1.ReasonAllNodesHealthy, "no node is down or in doubt")
	}
}

// unrecorded are the members whose records are gone.
func unrecorded(s *facts.Snapshot) []string {
	var out []string
	if s.Ledger != nil {
		for name := range s.Ledger.Members {
			if n := s.Nodes[name]; n == nil || n.Record == nil {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// setAvailable: a node of each datacenter that is open to clients serves them, and every range is
// served at the configured consistency by the nodes that are up.
func setAvailable(set setter, s *facts.Snapshot, formed bool) {
	if !formed {
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonForming, "the ring is being formed")
		return
	}
	if isDown(s) {
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonStopped, "%s", whyDown)
		return
	}
	risk, err := atRisk(s)
	closed := slices.IndexFunc(datacenters(s), func(d v1alpha1.DatacenterStatus) bool {
		return d.Formed && d.Nodes > 0 && d.Ready == 0 && !s.Ledger.Adds(d.Name) &&
			!s.Ledger.StopsDatacenter(d.Name) && !slices.Contains(s.Ledger.Closed, d.Name)
	})
	switch {
	case !slices.ContainsFunc(s.Records(), Serves):
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonNodesNotReady, "no node serves clients")
	case closed >= 0:
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonNodesNotReady, "no node of datacenter %s serves clients",
			datacenters(s)[closed].Name)
	case err != nil:
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonRingUnknown, "%s", err)
	case risk != "":
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonRangesAtRisk, "%s", risk)
	default:
		set(v1alpha1.ConditionAvailable, true, v1alpha1.ReasonConsistencyKept,
			"every range is served at %s", s.Cluster.Spec.Disruption.Consistency)
	}
}

// atRisk says which ranges are not served at the configured consistency.
func atRisk(s *facts.Snapshot) (string, error) {
	f, _, err := unserved(s)
	if err != nil || f.Ranges == 0 {
		return "", err
	}
	return s.Named(fmt.Sprintf("%d ranges are not served at %s: %s", f.Ranges, s.Cluster.Spec.Disruption.Consistency,
		f.Worst)), nil
}

// Unserved counts the ranges that are not served at the configured consistency, for each
// datacenter that is open to clients, 0 included, by the computation of the condition Available,
// which is not made again where that is True. It returns an error where that is unknown.
func Unserved(s *facts.Snapshot, available bool) (map[string]int, error) {
	if slices.ContainsFunc(s.Records(), func(n *facts.Node) bool { return n.Asking }) {
		return nil, errors.New("not every agent had the time to answer yet")
	}
	if !s.Ledger.HasRing() {
		return nil, errors.New("the members are unknown: there is no ledger of a formed ring")
	}
	var by map[string]int
	if !available {
		var err error
		if _, by, err = unserved(s); err != nil {
			return nil, err
		}
	}
	out := map[string]int{}
	for _, dc := range datacenters(s) {
		if dc.Formed && !s.Ledger.Adds(dc.Name) {
			out[dc.Name] = by[""]
		}
	}
	for dc, ranges := range by {
		if dc != "" {
			out[dc] += ranges
		}
	}
	return out, nil
}

// unserved are the ranges that are not served at the configured consistency, in all and by
// datacenter, judged by the first complete view of the ring.
func unserved(s *facts.Snapshot) (f ring.Finding, by map[string]int, err error) {
	g, err := sightOf(s)
	if err != nil || len(g.down) == 0 && !g.joined() {
		return f, nil, err
	}
	protection, with, err := g.protections(s.Cluster.Spec.Disruption.Consistency)
	if err != nil {
		return f, nil, err
	}
	f, by = protection.Unserved(g.down, with)
	return f, by, nil
}

// sight is the first complete view of the ring.
type sight struct {
	view *facts.Ring
	// down are the host ids of members that are down and have clients to serve.
	down []string
	// joins tells what joins and is down.
	joins func(facts.Endpoint) bool
}

func sightOf(s *facts.Snapshot) (sight, error) {
	records := s.Records()
	first := slices.IndexFunc(records, isNormal)
	if first < 0 {
		return sight{}, errors.New("no node can say what the ring is like")
	}
	view := records[first].Agent.Ring
	var down []string
	member := map[string]bool{}
	level := s.Cluster.Spec.Disruption.Consistency
	local := level == v1alpha1.ConsistencyLocalOne || level == v1alpha1.ConsistencyLocalQuorum
	for _, n := range records {
		hostID, known := s.Ledger.Members[n.Name]
		member[hostID] = known
		dc := n.Record.Spec.Datacenter
		served := !s.Ledger.Adds(dc) && (!local || !s.Ledger.StopsDatacenter(dc)) // nobody is a client there
		if known && served && !isUp(n, hostID, view) {
			down = append(down, hostID)
		}
	}
	return sight{view: view, down: down,
		joins: func(e facts.Endpoint) bool { return e.InFlight() && !e.Live && !member[e.HostID] }}, nil
}

func (g sight) joined() bool { return slices.ContainsFunc(g.view.Endpoints, g.joins) }

// protections of the ring without and with what joins and is down; with is nil if nothing does.
func (g sight) protections(level v1alpha1.ConsistencyLevel) (p, with *ring.Protection, err error) {
	p, err = g.view.Without(g.joins).Protection(level)
	if err == nil && g.joined() {
		with, err = g.view.Protection(level)
	}
	return p, with, err
}

func isNormal(n *facts.Node) bool {
	a := n.CurrentAgent()
	return a != nil && a.Ring != nil && a.Ring.Mode == facts.ModeNormal
}

// isUp says that a member holds its replicas up, open to clients or not: by its own word, and for
// one whose agent is silent by that of another.
func isUp(n *facts.Node, hostID string, view *facts.Ring) bool {
	if n.CurrentAgent() != nil {
		return isNormal(n)
	}
	e, found := view.ByHostID(hostID)
	return found && e.Live
}
