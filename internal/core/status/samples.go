package status

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/metrics"
)

// conditions of a cluster. The last two are absent from its status while they are False.
var conditions = []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionHealthy,
	v1alpha1.ConditionUpToDate, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled}

// Samples are the metrics of a cluster after a pass, from the facts it has read and the resulting
// status.
func Samples(s *facts.Snapshot, is v1alpha1.CassandraClusterStatus, now time.Time) []metrics.Sample {
	var out []metrics.Sample
	add := func(f *metrics.Family, value float64, labels ...string) {
		out = append(out, metrics.Sample{Family: f, Values: labels, Value: value})
	}
	nodeSamples(s, is.Datacenters, add)
	if ranges, err := Unserved(s, meta.IsStatusConditionTrue(is.Conditions, v1alpha1.ConditionAvailable)); err == nil {
		for _, dc := range slices.Sorted(maps.Keys(ranges)) {
			add(metrics.Unserved, float64(ranges[dc]), dc)
		}
	}
	for _, kind := range conditions {
		c := meta.FindStatusCondition(is.Conditions, kind)
		switch {
		case c != nil && c.Status == metav1.ConditionTrue:
			add(metrics.Condition, 1, kind)
		case c != nil && c.Status == metav1.ConditionFalse,
			kind == v1alpha1.ConditionReconciling, kind == v1alpha1.ConditionStalled:
			add(metrics.Condition, 0, kind)
		}
	}
	stepSamples(is, add)
	blocked, notices := map[string]int{}, map[string]int{}
	for _, b := range is.Blocked {
		blocked[string(b.Reason)]++
	}
	for _, n := range is.Notices {
		notices[string(n.Reason)]++
	}
	add(metrics.Blocked, float64(len(is.Blocked)))
	add(metrics.Notices, float64(len(is.Notices)))
	for _, by := range []struct {
		*metrics.Family
		counts map[string]int
	}{{metrics.BlockedBy, blocked}, {metrics.NoticesBy, notices}} {
		for _, reason := range slices.Sorted(maps.Keys(by.counts)) {
			add(by.Family, float64(by.counts[reason]), reason)
		}
	}
	if is.Repair != nil && is.Repair.Oldest != nil && is.Repair.Mode != v1alpha1.RepairOff {
		if last := is.Repair.Oldest.LastRepaired; last != nil {
			add(metrics.Repaired, unix(last.Time))
		}
		add(metrics.RepairDeadline, unix(is.Repair.Oldest.Deadline.Time))
	}
	last, verified, damaged := 0.0, 0.0, int64(0)
	for _, b := range s.Backups {
		if b.Status.Phase != v1alpha1.BackupComplete || b.Status.TakenAt == nil {
			continue
		}
		taken := unix(b.Status.TakenAt.Time)
		last = max(last, taken)
		if of := b.Status.Verified; of != nil && of.At != nil && taken > verified {
			verified, damaged = taken, of.DamagedFiles
		}
	}
	if last > 0 {
		add(metrics.LastBackup, last)
	}
	if verified > 0 {
		add(metrics.LastVerified, verified)
		add(metrics.DamagedFiles, float64(damaged))
	}
	add(metrics.LastPass, unix(now))
	return out
}

// nodeSamples count nodes by datacenter. While the operator asks an agent for the first time, the
// number of agents of its datacenter that answer is unknown.
func nodeSamples(s *facts.Snapshot, datacenters []v1alpha1.DatacenterStatus,
	add func(*metrics.Family, float64, ...string)) {
	answering, ready, unheard := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, n := range s.Records() {
		dc := n.Record.Spec.Datacenter
		switch {
		case n.Asking:
			unheard[dc] = true
		case n.CurrentAgent() != nil:
			answering[dc]++
			if Serves(n) {
				ready[dc]++
			}
		}
	}
	for _, dc := range datacenters {
		add(metrics.Nodes, float64(dc.Nodes), dc.Name)
		if !unheard[dc.Name] {
			add(metrics.Answering, float64(answering[dc.Name]), dc.Name)
			add(metrics.Ready, float64(ready[dc.Name]), dc.Name)
		}
	}
}

// stepSamples tell of the steps that are open, the oldest of each kind, and how far the current one
// is.
func stepSamples(is v1alpha1.CassandraClusterStatus, add func(*metrics.Family, float64, ...string)) {
	add(metrics.OpenSteps, float64(len(is.OpenSteps)))
	opened := map[string]time.Time{}
	for _, step := range is.OpenSteps {
		if at, known := opened[step.Step]; !known || step.Since.Time.Before(at) {
			opened[step.Step] = step.Since.Time
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(opened)) {
		add(metrics.StepOpened, unix(opened[kind]), kind)
	}
	if is.Step != nil && is.Step.Progress != nil {
		const percent = 100
		add(metrics.StepProgress, float64(*is.Step.Progress)/percent, is.Step.Name)
	}
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / float64(time.Second/time.Millisecond) }
