package status_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/metrics"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/status"
)

// sampled are the metrics of a cluster after a pass, without their common prefix, such as
// nodes{dc1}.
func sampled(t *testing.T, s *facts.Snapshot, decided plan.Plan) map[string]float64 {
	t.Helper()
	now := time.Unix(1000, 0)
	exported := map[*metrics.Family]bool{}
	for _, f := range metrics.OfCluster {
		exported[f] = true
	}
	out := map[string]float64{}
	for _, m := range status.Samples(s, status.Of(s, decided, nil, nil, now), now) {
		if !exported[m.Family] || len(m.Values)+2 != len(m.Labels) {
			t.Errorf("%s has labels %v, and values %v", m.Name, m.Labels, m.Values)
		}
		name := strings.TrimPrefix(m.Name, "helenus_cluster_")
		if len(m.Values) > 0 {
			name += "{" + strings.Join(m.Values, ",") + "}"
		}
		if _, twice := out[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		out[name] = m.Value
	}
	return out
}

// A known value is exported, 0 included; an unknown one is absent.
func TestMetricsOfACluster(t *testing.T) {
	const absent = -1
	silent := func(n *facts.Node) { n.Agent = nil }
	noJVM := func(n *facts.Node) { n.Agent.Ring, n.Agent.Ready = nil, false }
	progress := int32(50)
	since := metav1.NewTime(time.Unix(700, 0))
	for name, c := range map[string]struct {
		scene *facts.Snapshot
		plan  plan.Plan
		want  map[string]float64
	}{
		"all is well": {twoNodes(nil), plan.Plan{}, map[string]float64{
			"nodes{dc1}": 2, "answering_nodes{dc1}": 2, "ready_nodes{dc1}": 2, "unserved_ranges{dc1}": 0,
			"unserved_ranges{}":    absent,
			"condition{Available}": 1, "condition{Healthy}": 1, "condition{Ready}": 1, "condition{UpToDate}": 0,
			"condition{Stalled}": 0, "condition{Reconciling}": 0,
			"open_steps": 0, "blocked_steps": 0, "notices": 0, "last_pass_timestamp_seconds": 1000,
		}},
		"an agent is silent, with the word that its node is ready": {
			twoNodes(func(_, n2 *facts.Node, _ *facts.Snapshot) { silent(n2) }), plan.Plan{},
			map[string]float64{"nodes{dc1}": 2, "answering_nodes{dc1}": 1, "ready_nodes{dc1}": 1,
				"unserved_ranges{dc1}": 0, "condition{Healthy}": 0},
		},
		"an agent is asked for the first time": {
			twoNodes(func(_, n2 *facts.Node, _ *facts.Snapshot) { silent(n2); n2.Asking = true }), plan.Plan{},
			map[string]float64{"nodes{dc1}": 2, "answering_nodes{dc1}": absent, "ready_nodes{dc1}": absent,
				"unserved_ranges{dc1}": absent},
		},
		"an agent answers of another pod": {
			twoNodes(func(_, n2 *facts.Node, _ *facts.Snapshot) { n2.Agent.PodUID = "former" }), plan.Plan{},
			map[string]float64{"answering_nodes{dc1}": 1, "ready_nodes{dc1}": 1},
		},
		"QUORUM of two is two": {
			twoNodes(func(_, n2 *facts.Node, _ *facts.Snapshot) { noJVM(n2) }), plan.Plan{},
			map[string]float64{"answering_nodes{dc1}": 2, "ready_nodes{dc1}": 1, "unserved_ranges{dc1}": 2,
				"condition{Available}": 0},
		},
		"a range that all datacenters serve together counts in each": {
			twoNodes(func(_, n2 *facts.Node, s *facts.Snapshot) {
				noJVM(n2)
				s.Cluster.Spec.Disruption.Consistency = v1alpha1.ConsistencyQuorum
			}), plan.Plan{}, map[string]float64{"unserved_ranges{dc1}": 2, "unserved_ranges{}": absent},
		},
		"the ring is unknown": {
			twoNodes(func(n1, n2 *facts.Node, _ *facts.Snapshot) { noJVM(n1); noJVM(n2) }), plan.Plan{},
			map[string]float64{"ready_nodes{dc1}": 0, "unserved_ranges{dc1}": absent, "condition{Available}": 0},
		},
		"the ledger is lost": {
			twoNodes(func(_, n2 *facts.Node, s *facts.Snapshot) { noJVM(n2); s.Ledger = nil }), plan.Plan{},
			map[string]float64{"ready_nodes{dc1}": 1, "unserved_ranges{dc1}": absent},
		},
		"the ring is not formed": {
			twoNodes(func(_, _ *facts.Node, s *facts.Snapshot) { s.Ledger.Formed = nil }), plan.Plan{},
			map[string]float64{"ready_nodes{dc1}": 2, "unserved_ranges{dc1}": absent, "condition{Available}": 0},
		},
		"a datacenter without nodes": {
			twoNodes(func(_, _ *facts.Node, s *facts.Snapshot) {
				s.Cluster.Spec.Datacenters = append(s.Cluster.Spec.Datacenters, v1alpha1.Datacenter{Name: "dc2"})
			}), plan.Plan{},
			map[string]float64{"nodes{dc2}": 0, "answering_nodes{dc2}": 0, "ready_nodes{dc2}": 0,
				"unserved_ranges{dc2}": absent},
		},
		"steps": {twoNodes(func(_, _ *facts.Node, s *facts.Snapshot) {
			s.Ledger.Step = &ledger.Step{ID: "3", Kind: ledger.RollOut, OpenedAt: time.Unix(700, 0)}
			s.Ledger.Maintenance = []*ledger.Step{{ID: "2", Kind: ledger.Cleanup, OpenedAt: time.Unix(800, 0)},
				{ID: "1", Kind: ledger.Cleanup, OpenedAt: time.Unix(600, 0)}}
		}), plan.Plan{Current: &v1alpha1.StepStatus{Name: "RollOut", Progress: &progress, Since: &since}},
			map[string]float64{"open_steps": 3, "step_opened_timestamp_seconds{RollOut}": 700,
				"step_opened_timestamp_seconds{Cleanup}": 600, "step_progress_ratio{RollOut}": 0.5},
		},
		"backups": {twoNodes(func(_, _ *facts.Node, s *facts.Snapshot) {
			for _, phase := range []v1alpha1.BackupPhase{v1alpha1.BackupComplete, v1alpha1.BackupComplete,
				v1alpha1.BackupIncomplete} {
				taken := metav1.NewMicroTime(time.Unix(500-100*int64(len(s.Backups)), 0))
				if phase == v1alpha1.BackupIncomplete {
					taken.Time = time.Unix(600, 0)
				}
				s.Backups = append(s.Backups, &v1alpha1.CassandraBackup{Status: v1alpha1.CassandraBackupStatus{
					Phase: phase, TakenAt: &taken}})
			}
		}), plan.Plan{}, map[string]float64{"last_backup_timestamp_seconds": 500}},
		"verified backups": {twoNodes(func(_, _ *facts.Node, s *facts.Snapshot) {
			at := metav1.NewTime(time.Unix(900, 0))
			for i, of := range []*v1alpha1.BackupVerified{{At: &at, DamagedFiles: 7}, {At: &at, DamagedFiles: 2},
				{Problem: "access denied"}} {
				taken := metav1.NewMicroTime(time.Unix(500+100*int64(i), 0))
				s.Backups = append(s.Backups, &v1alpha1.CassandraBackup{Status: v1alpha1.CassandraBackupStatus{
					Phase: v1alpha1.BackupComplete, TakenAt: &taken, Verified: of}})
			}
		}), plan.Plan{}, map[string]float64{"last_backup_timestamp_seconds": 700,
			"last_verified_backup_timestamp_seconds": 600, "backup_damaged_files": 2}},
		"no backup": {twoNodes(nil), plan.Plan{}, map[string]float64{"last_backup_timestamp_seconds": absent,
			"last_verified_backup_timestamp_seconds": absent, "backup_damaged_files": absent}},
		"a step of unknown progress": {twoNodes(nil), plan.Plan{Current: &v1alpha1.StepStatus{Name: "FormRing"}},
			map[string]float64{"step_progress_ratio{FormRing}": absent}},
		"blocked, stalled and noticed": {twoNodes(nil), plan.Plan{
			Stalled: &plan.Stall{Reason: v1alpha1.ReasonNameTaken, Message: "taken"},
			Blocked: []v1alpha1.BlockedStep{{Step: "RollOut", Reason: v1alpha1.BlockedMemberDown},
				{Step: "JoinNode", Reason: v1alpha1.BlockedMemberDown}, {Step: "Cleanup", Reason: v1alpha1.BlockedRepairDue}},
			Notices: []v1alpha1.Notice{{Reason: v1alpha1.NoticeClocksDiffer}},
		}, map[string]float64{"blocked_steps": 3, "blocked_steps_by_reason{MemberDown}": 2,
			"blocked_steps_by_reason{RepairDue}": 1, "notices": 1, "notices_by_reason{ClocksDiffer}": 1,
			"condition{Stalled}": 1}},
	} {
		got := sampled(t, c.scene, c.plan)
		for metric, want := range c.want {
			value, found := got[metric]
			if found != (want != absent) || found && value != want {
				t.Errorf("%s: %s is %v (there: %v), want %v", name, metric, value, found, want)
			}
		}
	}
}

// The gauge is what Available says: a cluster is available with no range that is not served.
func TestUnservedRangesAreThoseOfAvailable(t *testing.T) {
	for _, level := range []v1alpha1.ConsistencyLevel{v1alpha1.ConsistencyOne, v1alpha1.ConsistencyQuorum,
		v1alpha1.ConsistencyLocalQuorum} {
		for down := range 2 {
			s := twoNodes(func(_, n2 *facts.Node, s *facts.Snapshot) {
				s.Cluster.Spec.Disruption.Consistency = level
				if down > 0 {
					n2.Agent.Ring, n2.Agent.Ready = nil, false
				}
			})
			ranges, err := status.Unserved(s, false)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0
			for n := range maps.Values(ranges) {
				sum += n
			}
			got := sampled(t, s, plan.Plan{})["condition{Available}"]
			if (got == 1) != (sum == 0) {
				t.Errorf("%s, %d down: Available %v, and %v ranges are not served", level, down, got, ranges)
			}
		}
	}
}
