package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

type setter func(kind string, yes bool, reason, format string, args ...any)

// setHealthy: no node is down, in doubt or waiting for the user.
func setHealthy(set setter, s *facts.Snapshot, formed bool) {
	var down, failed, unreachable []string
	schemas := map[string]bool{}
	for _, n := range s.Records() {
		status := n.Record.Status
		switch {
		case n.StatusIsCurrent() && needsPerson(status.Phase):
			failed = append(failed, fmt.Sprintf("%s is %s: %s", n.Name, status.Phase, status.Message))
		case n.CurrentAgent() == nil:
			unreachable = append(unreachable, n.Name)
		case n.Agent.Ring == nil || n.Agent.Ring.Mode != facts.ModeNormal:
			down = append(down, n.Name)
		default:
			schemas[n.Agent.Ring.SchemaVersion] = true
		}
	}
	switch {
	case len(failed) > 0:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonNodeFailed, "%s", strings.Join(failed, "; "))
	case len(unreachable) > 0:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonNodeUnreachable, "no answer from %s",
			strings.Join(unreachable, ", "))
	case len(down) > 0 && formed:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonNodesDown, "%s not NORMAL", strings.Join(down, ", "))
	case len(down) > 0:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonForming, "the ring is being formed")
	case len(schemas) > 1:
		set(v1alpha1.ConditionHealthy, false, v1alpha1.ReasonSchemaDisagrees, "the nodes have %d different schemas",
			len(schemas))
	default:
		set(v1alpha1.ConditionHealthy, true, v1alpha1.ReasonAllNodesHealthy, "no node is down or in doubt")
	}
}

func needsPerson(phase v1alpha1.NodePhase) bool {
	return slices.Contains([]v1alpha1.NodePhase{v1alpha1.PhaseFailed, v1alpha1.PhaseDataLost, v1alpha1.PhaseDownTooLong,
		v1alpha1.PhaseAddressTaken}, phase)
}

// setAvailable: there is a node that serves clients, and every range that can be protected is
// served at the configured consistency by the nodes that are up.
func setAvailable(set setter, s *facts.Snapshot, formed bool) {
	if !formed {
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonForming, "the ring is being formed")
		return
	}
	risk, err := atRisk(s)
	switch {
	case !slices.ContainsFunc(s.Records(), serves): // where no range can be protected, none is at risk
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonNodesNotReady, "no node serves clients")
	case err != nil:
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonRingUnknown, "%s", err)
	case risk != "":
		set(v1alpha1.ConditionAvailable, false, v1alpha1.ReasonRangesAtRisk, "%s", risk)
	default:
		set(v1alpha1.ConditionAvailable, true, v1alpha1.ReasonConsistencyKept,
			"every protectable range is served at %s", s.Cluster.Spec.Disruption.Consistency)
	}
}

// atRisk says which ranges are not served at the configured consistency, judged by the first
// complete view of the ring.
func atRisk(s *facts.Snapshot) (string, error) {
	var view *facts.Ring
	down := map[string]bool{}
	for _, n := range s.Records() {
		if hostID, member := s.Ledger.Members[n.Name]; member && !serves(n) &&
			!s.Ledger.Adds(n.Record.Spec.Datacenter) {
			down[hostID] = true
		}
		if a := n.CurrentAgent(); a != nil && a.Ring != nil && a.Ring.Mode == facts.ModeNormal && view == nil {
			view = a.Ring
		}
	}
	if view == nil {
		return "", errors.New("no node can say what the ring is like")
	}
	if len(down) == 0 {
		return "", nil
	}
	level := s.Cluster.Spec.Disruption.Consistency
	protection, err := view.Protection(level)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, e := range view.Endpoints {
		if down[e.HostID] && e.Member() {
			ids = append(ids, e.HostID)
		}
	}
	verdict := protection.Assess(ids)
	if verdict.Safe || verdict.Broken.Worst == nil {
		return "", nil
	}
	return fmt.Sprintf("%d ranges are not served at %s: %s", verdict.Broken.Ranges, level, verdict.Broken.Worst), nil
}
