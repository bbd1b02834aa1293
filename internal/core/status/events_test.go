package status_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/status"
)

func second(n int64) metav1.Time { return metav1.Unix(n, 0) }

// Each change of a status is told once: from nothing to it, and not from it to itself.
func TestEvents(t *testing.T) {
	type s = v1alpha1.CassandraClusterStatus
	condition := func(kind string, is metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: is, Reason: reason, Message: "so it is"}}
	}
	trouble := func(is v1alpha1.NodeTrouble) s {
		return s{Unhealthy: []v1alpha1.UnhealthyNode{{Name: "n1", Trouble: is}}}
	}
	available := func(is metav1.ConditionStatus, reason string) s {
		return s{Conditions: condition(v1alpha1.ConditionAvailable, is, reason)}
	}
	record := func(result v1alpha1.StepResult) v1alpha1.StepRecord {
		return v1alpha1.StepRecord{Step: "Join", Result: result, Message: "n1", StartedAt: second(int64(len(result)))}
	}
	used := new(metav1.Time)
	*used = second(1)
	var many []v1alpha1.UnhealthyNode
	for i := range 100 {
		many = append(many, v1alpha1.UnhealthyNode{Name: fmt.Sprintf("a%02d", i), Trouble: v1alpha1.TroubleDown})
	}
	others := append(slices.Clone(many[1:]), trouble(v1alpha1.TroubleDown).Unhealthy...)
	for name, c := range map[string]struct {
		before, after s
		want          []string // reason, action, node
	}{
		"a guard is overruled": {
			s{Exceptions: []v1alpha1.ExceptionStatus{{Name: "over"}}},
			s{Exceptions: []v1alpha1.ExceptionStatus{{Name: "over", UsedAt: used, Message: "so it is"}}},
			[]string{"GuardOverruled over "}},
		"a disk fails": {
			s{}, s{Notices: []v1alpha1.Notice{{Reason: v1alpha1.NoticeDiskFailing, Nodes: []string{"n1"},
				Message: "so it is"}}},
			[]string{"DiskFailing DiskFailing n1"}},
		"another disk fails, too": {
			s{Notices: []v1alpha1.Notice{{Reason: v1alpha1.NoticeDiskFailing, Nodes: []string{"n1"}}}},
			s{Notices: []v1alpha1.Notice{{Reason: v1alpha1.NoticeDiskFailing, Nodes: []string{"n1", "n2"},
				Message: "so it is"}}},
			[]string{"DiskFailing DiskFailing n2"}},
		"two datacenters form": {
			s{Datacenters: []v1alpha1.DatacenterStatus{{Name: "a", Formed: true}, {Name: "b"}, {Name: "c"}}},
			s{Datacenters: []v1alpha1.DatacenterStatus{{Name: "a", Formed: true}, {Name: "b", Formed: true},
				{Name: "c", Formed: true}, {Name: "d"}}},
			[]string{"Formed Form/b,c "}},
		"a step begins and one ends": {
			s{OpenSteps: []v1alpha1.OpenStep{{ID: "x-1", Step: "Join"}, {ID: "x-2", Step: "Cleanup"}}},
			s{OpenSteps: []v1alpha1.OpenStep{{ID: "x-2", Step: "Cleanup"}, {ID: "x-3", Step: "Join"}},
				Step:    &v1alpha1.StepStatus{Name: "Join", Nodes: []string{"n2"}},
				History: []v1alpha1.StepRecord{record(v1alpha1.StepSucceeded)}},
			[]string{"StepStarted Join/x-3 n2", "StepFinished Join/1970-01-01T00:00:09Z "}},
		"steps end otherwise": {
			s{}, s{History: []v1alpha1.StepRecord{record(v1alpha1.StepFailed), record(v1alpha1.StepWithdrawn)}},
			[]string{"StepWithdrawn Join/1970-01-01T00:00:09Z ", "StepFailed Join/1970-01-01T00:00:06Z "}},
		"a step waits for something else": {
			s{Blocked: []v1alpha1.BlockedStep{{Step: "Join", Reason: "MemberDown", Nodes: []string{"n1"}}}},
			s{Blocked: []v1alpha1.BlockedStep{{Step: "Join", Reason: "MemberDown", Nodes: []string{"n2"}},
				{Step: "Join", Reason: "HostCordoned", Nodes: []string{"n1"}},
				{Step: "RollOut", Reason: "MemberDown", Nodes: []string{"n1", "n2"}}}},
			[]string{"StepBlocked Join/HostCordoned n1", "StepBlocked RollOut/MemberDown "}},
		"stalled": {s{}, s{Conditions: condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, "NameTaken")},
			[]string{"Stalled NameTaken "}},
		"stalled for another reason": {
			s{Conditions: condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, "InvalidSpec")},
			s{Conditions: condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, "NameTaken")},
			[]string{"Stalled NameTaken "}},
		"at risk": {available(metav1.ConditionTrue, v1alpha1.ReasonConsistencyKept),
			available(metav1.ConditionFalse, v1alpha1.ReasonRangesAtRisk), []string{"Unavailable RangesAtRisk "}},
		"well again": {available(metav1.ConditionFalse, v1alpha1.ReasonRangesAtRisk),
			available(metav1.ConditionTrue, v1alpha1.ReasonConsistencyKept), []string{"Available ConsistencyKept "}},
		"a cluster is being deleted": {
			available(metav1.ConditionTrue, v1alpha1.ReasonConsistencyKept),
			s{Unhealthy: trouble(v1alpha1.TroubleDown).Unhealthy, Conditions: slices.Concat(
				available(metav1.ConditionFalse, v1alpha1.ReasonNodesNotReady).Conditions,
				condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting))}, nil},
		"first available": {available(metav1.ConditionFalse, v1alpha1.ReasonForming),
			available(metav1.ConditionTrue, v1alpha1.ReasonConsistencyKept), nil},
		"available when the ring has formed": {
			s{Conditions: available(metav1.ConditionFalse, v1alpha1.ReasonNodesNotReady).Conditions,
				OpenSteps: []v1alpha1.OpenStep{{ID: "x-1", Step: string(ledger.FormRing)}}},
			available(metav1.ConditionTrue, v1alpha1.ReasonConsistencyKept), nil},
		"it waited for the user, and starts": {trouble("DownTooLong"), trouble(v1alpha1.TroubleDown), nil},
		"a node goes down":                   {s{}, trouble(v1alpha1.TroubleDown), []string{"NodeDown Down n1"}},
		"it was unreachable before": {trouble(v1alpha1.TroubleUnreachable), trouble(v1alpha1.TroubleDown),
			[]string{"NodeDown Down n1"}},
		"only its agent is silent": {s{}, trouble(v1alpha1.TroubleUnreachable), nil},
		"its agent answers again":  {trouble(v1alpha1.TroubleUnreachable), s{}, nil},
		"it comes up":              {trouble(v1alpha1.TroubleDown), s{}, []string{"NodeUp Up n1"}},
		"it waits for the user": {trouble(v1alpha1.TroubleDown), trouble("Failed"),
			[]string{"NodeFailed Failed n1"}},
		"its data is lost":                  {trouble("Failed"), trouble("DataLost"), []string{"DataLost DataLost n1"}},
		"a step takes it down":              {s{}, worked(trouble(v1alpha1.TroubleDown)), nil},
		"a step has ended that took it":     {worked(trouble(v1alpha1.TroubleDown)), s{}, nil},
		"a step works on what loses data":   {s{}, worked(trouble("DataLost")), []string{"DataLost DataLost n1"}},
		"more are down than the list holds": {s{Unhealthy: many}, s{Unhealthy: others}, []string{"NodeUp Up a00"}},
		"more were down than the list held": {s{Unhealthy: others}, s{Unhealthy: many}, []string{"NodeDown Down a00"}},
		"a JVM restarts, again and another": {
			s{JVMRestarts: []v1alpha1.JVMRestart{{Node: "n1", Reason: "Killed", At: second(1)}}},
			s{JVMRestarts: []v1alpha1.JVMRestart{{Node: "n1", Reason: "Killed", At: second(3)},
				{Node: "n2", Reason: "Exited", At: second(1)}, {Node: "n1", Reason: "Killed", At: second(1)}}},
			[]string{"JVMRestarted Exited n2", "JVMRestarted Killed n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range status.Events(c.before, c.after) {
				got = append(got, e.Reason+" "+e.Action+" "+e.Node)
				if e.Message == "" || len(e.Action) > 128 || e.Type != "Normal" && e.Type != "Warning" {
					t.Errorf("the API server refuses %+v", e)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			for of, is := range map[string]s{"before": c.before, "after": c.after} {
				if again := status.Events(is, is); len(again) > 0 {
					t.Errorf("what stays as it was %s is told again: %+v", of, again)
				}
			}
		})
	}
}

func worked(s v1alpha1.CassandraClusterStatus) v1alpha1.CassandraClusterStatus {
	s.Step = &v1alpha1.StepStatus{Name: "RollOut", Nodes: []string{"n1"}}
	return s
}

// What the status holds for the sake of events: the open steps as a pass leaves them, the nodes in
// trouble, the last restarts. A second pass over the same says the same.
func TestWhatEventsAreMadeOf(t *testing.T) {
	opened := time.Unix(100, 7)
	ended := second(50)
	s := twoNodes(func(n1, n2 *facts.Node, s *facts.Snapshot) {
		n1.Agent.Ring.Endpoints[1].Live = false
		n1.Record.Status.Restarts = &v1alpha1.RestartsStatus{Count: 1, LastReason: v1alpha1.RestartKilled,
			LastAt: &ended}
		n2.Agent = nil
		s.Ledger.Step = &ledger.Step{ID: "x-1", Kind: ledger.RollOut, OpenedAt: opened}
	})
	after := s.Ledger.Copy()
	after.CloseStep("x-1")
	after.OpenStep(&ledger.Step{ID: "x-2", Kind: ledger.JoinNode, OpenedAt: opened})
	after.Suspended = []*ledger.Step{{ID: "x-0", Kind: ledger.Cleanup, OpenedAt: opened.Add(-time.Hour)}}
	decided := plan.Plan{Writes: []plan.Write{{Verb: plan.PutLedger, Ledger: after}}}
	of := func(decided plan.Plan) string {
		got := status.Of(s, decided, nil, nil, time.Unix(200, 0))
		text := fmt.Sprint(got.Unhealthy, len(got.JVMRestarts))
		for _, o := range got.OpenSteps {
			text += fmt.Sprint(" ", o.ID, o.Step, o.Since.Unix())
		}
		s.Cluster.Status = got
		return text
	}
	for range 2 {
		if got := of(plan.Plan{}); got != "[{n2 Down}] 1 x-1RollOut100" {
			t.Errorf("of a pass that writes nothing: %s", got)
		}
	}
	for range 2 {
		if got := of(decided); !strings.HasSuffix(got, "1 x-0Cleanup-3500 x-2JoinNode100") {
			t.Errorf("of a pass that writes the ledger: %s", got)
		}
	}
	s.Nodes["n1"].Record.Status.Restarts.LastAt = &metav1.Time{Time: opened}
	s.Nodes["n2"].Asking = true
	if got := of(decided); !strings.HasPrefix(got, "[{n2 Down}] 2 ") {
		t.Errorf("of one that is only just being asked: %s", got)
	}
	s.Nodes["n2"].Asking = false
	s.Nodes["n1"].Agent.Ring.Endpoints[1].Live = true
	if got := of(decided); !strings.HasPrefix(got, "[{n2 Unreachable}] 2 ") {
		t.Errorf("of one that another sees up: %s", got)
	}
	s.Nodes["n2"].Record.Status.Phase = v1alpha1.PhaseFailed
	if got := of(decided); !strings.HasPrefix(got, "[{n2 Failed}] 2 ") {
		t.Errorf("of one that has failed: %s", got)
	}
	s.Nodes["n2"].Record.Status.Restarts = &v1alpha1.RestartsStatus{BackOffUntil: &ended}
	if got := of(decided); !strings.HasPrefix(got, "[{n2 Unreachable}] 2 ") {
		t.Errorf("of one that is started again: %s", got)
	}
	s.Nodes["n2"].Record.Status.Phase = v1alpha1.PhaseDataLost
	if got := of(decided); !strings.HasPrefix(got, "[{n2 DataLost}] 2 ") {
		t.Errorf("of one that waits for the user: %s", got)
	}
	s.Nodes["n2"].Record.Status.PodUID = types.UID("another")
	s.Ledger.Members = map[string]string{"n1": "h1"}
	if got := of(decided); !strings.HasPrefix(got, "[] 2 ") {
		t.Errorf("of one that is no member: %s", got)
	}
}

func TestTheEndOfACertificateIsToldThreeTimes(t *testing.T) {
	at := func(days int32) v1alpha1.CassandraClusterStatus {
		ends := metav1.NewTime(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
		return v1alpha1.CassandraClusterStatus{Security: &v1alpha1.SecurityStatus{
			Encryption: &v1alpha1.EncryptionStatus{NextExpiry: &ends, EndsWithinDays: days}}}
	}
	told := 0
	before := v1alpha1.CassandraClusterStatus{}
	for _, days := range []int32{0, 14, 14, 7, 7, 1, 1, 14, 0} {
		for _, e := range status.Events(before, at(days)) {
			if told++; e.Reason != v1alpha1.EventCertificateEnds || !strings.Contains(e.Message, "2026-12-01") {
				t.Errorf("%d days: %+v", days, e)
			}
		}
		before = at(days)
	}
	if told != 3 {
		t.Errorf("told %d times", told)
	}
}

func TestWhatEndsSoonIsSaid(t *testing.T) {
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		leaf, authority time.Duration
		want            int32
	}{
		{30 * 24 * time.Hour, 1000 * 24 * time.Hour, 0}, {13 * 24 * time.Hour, 1000 * 24 * time.Hour, 14},
		{7 * 24 * time.Hour, 1000 * 24 * time.Hour, 7}, {time.Hour, 1000 * 24 * time.Hour, 1},
		{30 * 24 * time.Hour, 5 * 24 * time.Hour, 7},
	} {
		ends := metav1.NewTime(now.Add(c.leaf))
		s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Name: "orders"}},
			Nodes: map[string]*facts.Node{"a": {Name: "a", Record: &v1alpha1.CassandraNode{
				Status: v1alpha1.CassandraNodeStatus{Certificates: []v1alpha1.CertificateStatus{{NotAfter: &ends}}}}}},
			Trust: map[string]facts.Trust{"orders-internode-ca": {Signer: "a", Next: "b", Trusted: []facts.Authority{
				{Fingerprint: "a", EndsAt: now.Add(c.authority)}, {Fingerprint: "b", EndsAt: now.Add(2 * c.authority)}}}},
			Ledger: &ledger.Ledger{Ring: ledger.Ring{MadeWith: &ledger.MadeWith{Encryption: new(v1alpha1.NotEncrypted())}}}}
		got := status.Of(s, plan.Plan{}, nil, nil, now).Security.Encryption
		if got.EndsWithinDays != c.want || got.NextExpiry == nil || got.NextExpiry.Sub(now) != min(c.leaf, c.authority) {
			t.Errorf("%+v, want %d days", got, c.want)
		}
		if a := got.Authorities; len(a) != 2 || a[0].Stage != v1alpha1.AuthoritySigning || a[1].Stage != v1alpha1.AuthorityIntroduced {
			t.Errorf("authorities %+v", a)
		}
	}
}
