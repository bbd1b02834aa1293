package node

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// DiskProblem is how a volume fails; none if it has no reason.
type DiskProblem struct{ Reason, Message string }

// A disk fails by so many probes in a row, and does not any more by so many: one error is none, and
// the word does not come and go.
const (
	failsAfter = 2
	worksAfter = 5
)

// DiskHealth is what the probes of the volumes have come to.
type DiskHealth struct {
	// Known is false before as many probes were alike as it takes.
	Known bool
	// Problem is the one that was found first; it stays as long as the disk fails.
	Problem DiskProblem

	failed bool
	row    int
}

// After is the health after another probe.
func (h DiskHealth) After(found DiskProblem) DiskHealth {
	failed := found.Reason != ""
	if failed != h.failed {
		h.failed, h.row = failed, 0
	}
	h.row++
	switch {
	case failed && h.row >= failsAfter:
		h.Known = true
		if h.Problem.Reason == "" {
			h.Problem = found
		}
	case !failed && h.row >= worksAfter:
		h.Known, h.Problem = true, DiskProblem{}
	}
	return h
}

// InDoubt says that the last probe has found what the one before it had not.
func (h DiskHealth) InDoubt() bool { return h.failed && h.row < failsAfter }

// diskProblem is how a volume fails. What an earlier agent of the pod has said stands until it is
// known.
func (p *pass) diskProblem() DiskProblem {
	if p.Probed.Known || p.Record == nil || p.Record.Status.PodUID != p.Self.PodUID {
		return p.Probed.Problem
	}
	i := slices.IndexFunc(p.Record.Status.Conditions,
		func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionDiskFailing })
	if i < 0 {
		return DiskProblem{}
	}
	c := p.Record.Status.Conditions[i]
	return DiskProblem{c.Reason, c.Message}
}
