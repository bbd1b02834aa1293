package ticket

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

const first, second, third = "orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"

// joining is what is known of a node that has the ticket of an open step.
func joining() (*facts.Snapshot, *facts.Node) {
	n := &facts.Node{
		Name: first,
		Record: &v1alpha1.CassandraNode{Spec: v1alpha1.CassandraNodeSpec{
			Join: &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "step/join/" + first}},
		}},
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}},
	}
	n.Record.Name = first
	n.Record.Status.Join = &v1alpha1.IntentStatus{ID: n.Record.Spec.Join.ID}
	return &facts.Snapshot{
		Cluster: &v1alpha1.CassandraCluster{}, Nodes: map[string]*facts.Node{first: n},
		Ledger: &ledger.Ledger{Step: &ledger.Step{ID: "step", Kind: ledger.JoinNode, Stage: ledger.StageTickets,
			Nodes: []string{first}}},
	}, n
}

// during has the open step do something.
func during(s *facts.Snapshot, do func(*assess.View, *procedure.Step)) plan.Plan {
	v, draft := assess.NewView(s, metav1.Now().Time), &plan.Draft{}
	only := procedure.Procedure{Kind: s.Ledger.Step.Kind, Stages: []procedure.Stage{{
		Name: s.Ledger.Step.Stage, Run: func(v *assess.View, s *procedure.Step) plan.Result {
			do(v, s)
			return plan.Nothing()
		},
	}}}
	procedure.NewEngine(v, draft, []procedure.Procedure{only}, guard.Rules{}, nil).Continue(0)
	return draft.Plan
}

// Only doubts that have nothing to do with latecomers keep them from being left out.
func TestDoubtsOfTheOthers(t *testing.T) {
	v := Views{}
	v.Doubt(first, first, "about itself")
	v.Doubt(first, second, "about another")
	v.Doubt(second, first, "by another")
	v.Doubt(second, third, "of others")
	got := strings.Join(v.OthersDoubt([]*facts.Node{nil, {Name: first}}), "; ")
	if got != "of others" {
		t.Errorf("%q, want those without %s", got, first)
	}
}

func TestWhichPodIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		last, now types.UID // now is the pod that is there; empty for none
		host      string
		want      types.UID
	}{
		"the one that spoke is there":        {"a", "a", "m", ""},
		"another is there":                   {"a", "b", "m", "a"},
		"none is there":                      {"a", "", "", "a"},
		"nobody knows which, none is there":  {"", "", "", podForgotten},
		"nobody knows which, one waits":      {"", "b", "", podForgotten},
		"nobody knows which, one has a host": {"", "b", "m", ""},
	} {
		n := &facts.Node{Record: &v1alpha1.CassandraNode{Status: v1alpha1.CassandraNodeStatus{PodUID: c.last}}}
		if c.now != "" {
			n.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: c.now}, Spec: corev1.PodSpec{NodeName: c.host}}
		}
		if got := podGone(n); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A pod that is gone proves nothing while another one runs.
func TestWhenATicketHasNoEffectAnyMore(t *testing.T) {
	gone := func(n *facts.Node) {
		n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "test", PodGone: "gone"}
	}
	when := metav1.Now()
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   bool
	}{
		"it is out":                     {func(*facts.Node) {}, false},
		"its agent has acknowledged it": {func(n *facts.Node) { n.Record.Status.Join.WithdrawnAt = &when }, true},
		"its agent has acknowledged that of a former one": {func(n *facts.Node) {
			n.Record.Status.Join = &v1alpha1.IntentStatus{ID: "former", WithdrawnAt: &when}
		}, false},
		"there is none": {func(n *facts.Node) { n.Record.Spec.Join = nil }, false},
		"its pod is there": {func(n *facts.Node) {
			n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{}
		}, false},
		"its pod is gone": {func(n *facts.Node) { gone(n); n.Pod = nil }, true},
		"its pod is gone, another runs": {func(n *facts.Node) { gone(n); n.Pod.Spec.NodeName = "host" },
			false},
		"its pod is gone, another has no host":    {gone, true},
		"its pod is there after all, without one": {func(n *facts.Node) { gone(n); n.Pod.UID = "gone" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := joining()
			c.change(n)
			during(s, func(_ *assess.View, step *procedure.Step) {
				if got := IsWithdrawn(step, n); got != c.want {
					t.Errorf("withdrawn %v, want %v", got, c.want)
				}
			})
		})
	}
}

// A node that was NORMAL by its ticket and has lost its disk since is a member if any other says
// so. It joins again only if none does, and all were asked.
func TestADiskThatIsLostBeforeItsNodeCountsAsJoined(t *testing.T) {
	const was = "00000000-0000-4000-8000-000000000001"
	sees := func(s *facts.Snapshot, name string, status facts.GossipStatus) {
		view := s.Nodes[name].Agent.Ring
		view.Endpoints = []facts.Endpoint{{HostID: was, Status: status, Tokens: []int64{1}}}
	}
	for name, c := range map[string]struct {
		change func(*facts.Snapshot, *facts.Agent)
		hostID string
		lost   bool
		words  string // of the result
	}{
		"its disk is there": {func(_ *facts.Snapshot, a *facts.Agent) { a.Disk = v1alpha1.DiskJoining }, "", false, ""},
		"it was nobody":     {func(_ *facts.Snapshot, a *facts.Agent) { a.HostID = "" }, "", false, ""},
		"that is known": {func(s *facts.Snapshot, _ *facts.Agent) {
			s.Nodes[first].Record.Spec.Replaced = []v1alpha1.ReplacedMember{{HostID: was}}
		}, "", false, ""},
		"no member sees it": {func(*facts.Snapshot, *facts.Agent) {}, "", true, "may join again"},
		"a member sees it joining": {func(s *facts.Snapshot, _ *facts.Agent) { sees(s, third, facts.StatusBootstrap) }, "",
			true, "may join again"},
		"a member sees it NORMAL": {func(s *facts.Snapshot, _ *facts.Agent) { sees(s, third, facts.StatusNormal) }, was,
			true, ""},
		"a member sees it shut down": {func(s *facts.Snapshot, _ *facts.Agent) { sees(s, third, facts.StatusShutdown) },
			was, true, ""},
		"a member sees it NORMAL, another is down": {func(s *facts.Snapshot, _ *facts.Agent) {
			sees(s, third, facts.StatusNormal)
			s.Nodes[second].Agent = nil
		}, was, true, ""},
		"a member knows no more than its host id": {func(s *facts.Snapshot, _ *facts.Agent) {
			sees(s, third, facts.StatusUnknown)
		}, "", true, third + " knows that host id"},
		"no member sees it, one is down": {func(s *facts.Snapshot, _ *facts.Agent) { s.Nodes[second].Agent = nil }, "",
			true, second + " is down"},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := joining()
			n.Agent = &facts.Agent{PodUID: n.Pod.UID, Process: facts.ProcessAbsent, Phase: v1alpha1.PhaseDataLost,
				Disk: v1alpha1.DiskEmpty, HostID: was}
			s.Ledger.Members = map[string]string{}
			for _, other := range []string{second, third} {
				s.Ledger.Members[other] = "host-" + other
				s.Nodes[other] = &facts.Node{Name: other, Pod: &corev1.Pod{}, Agent: &facts.Agent{
					Ring: &facts.Ring{Mode: facts.ModeNormal}}}
			}
			c.change(s, n.Agent)
			var hostID string
			var r plan.Result
			var lost bool
			made := during(s, func(v *assess.View, step *procedure.Step) { hostID, r, lost = LostDisk(v, step, n) })
			if hostID != c.hostID || lost != c.lost || !strings.Contains(r.Message, c.words) ||
				c.words == "" && r.Message != "" {
				t.Errorf("host id %q, %v: %s", hostID, lost, r.Message)
			}
			wrote := len(made.Writes) == 1 && made.Writes[0].Live &&
				made.Writes[0].Object.(*v1alpha1.CassandraNode).Spec.Replaced[0].HostID == was
			if wrote != (r.Outcome == plan.Act) || len(made.Writes) > 1 {
				t.Errorf("%s", made)
			}
		})
	}
}

// Nobody will acknowledge that a ticket is withdrawn where a node fails, and its agent waits for
// the Cassandra container or is not there.
func TestWhoNeverAnswers(t *testing.T) {
	stuck := []corev1.ContainerStatus{{
		Name: "cassandra", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
	}}
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   bool
	}{
		"it is on its way":       {func(n *facts.Node) { n.Agent.Process = facts.ProcessRunning }, false},
		"it waits for its JVM":   {func(n *facts.Node) { n.Agent.Process = facts.ProcessAbsent }, false},
		"its agent is not there": {func(n *facts.Node) { n.Agent = nil }, false},
		"its agent is not there, its container does not start": {func(n *facts.Node) {
			n.Agent, n.Pod.Status.ContainerStatuses, n.Pod.Status.Phase = nil, stuck, corev1.PodPending
		}, true},
		"its container does not start": {func(n *facts.Node) {
			n.Agent.Process, n.Pod.Status.ContainerStatuses = facts.ProcessUnknown, stuck
		}, true},
		"its JVM has ended": {func(n *facts.Node) {
			n.Agent.Process, n.Pod.Status.ContainerStatuses = facts.ProcessAbsent, stuck
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := joining()
			n.Pod.Status.Phase = corev1.PodRunning
			n.Agent = &facts.Agent{PodUID: n.Pod.UID, Process: facts.ProcessRunning}
			c.change(n)
			if got := neverAnswers(assess.NewView(s, metav1.Now().Time), n); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// What a node is abandoned for is what its ticket was withdrawn for, if the record or its agent
// knows.
func TestWhyANodeIsAbandoned(t *testing.T) {
	const why = "it did not come"
	acknowledged := func(n *facts.Node, message string) {
		n.Record.Status.Join = &v1alpha1.IntentStatus{ID: n.Record.Spec.Join.ID, WithdrawnAt: &metav1.Time{},
			Message: message}
	}
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   string
	}{
		"nobody wants it":  {func(*facts.Node) {}, noLonger},
		"it has no record": {func(n *facts.Node) { n.Record = nil }, noLonger},
		"it has no ticket": {func(n *facts.Node) { n.Record.Spec.Join = nil }, noLonger},
		"its record knows": {func(n *facts.Node) {
			n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: why}
		}, why},
		"its agent alone knows":     {func(n *facts.Node) { acknowledged(n, why) }, why},
		"its agent knows no reason": {func(n *facts.Node) { acknowledged(n, "") }, noLonger},
		"its agent says something else": {func(n *facts.Node) {
			n.Record.Status.Join.Message = why
		}, noLonger},
		"its record knows of the ticket of an earlier step": {func(n *facts.Node) {
			n.Record.Spec.Join.ID, n.Record.Spec.Join.Withdraw = "earlier/join/"+first,
				&v1alpha1.Withdrawal{Reason: why}
		}, noLonger},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := joining()
			c.change(n)
			if got := whyAbandoned(assess.NewView(s, metav1.Now().Time), n); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The pod of a node goes whose agent cannot say that it knows of the withdrawal; another one is
// waited for.
func TestWhosePodGoesWithItsTicket(t *testing.T) {
	stuck := func(n *facts.Node) {
		n.Agent.Process, n.Pod.Status.ContainerStatuses = facts.ProcessUnknown, []corev1.ContainerStatus{{
			Name: "cassandra", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"},
			},
		}}
	}
	for name, c := range map[string]struct {
		change  func(*facts.Node)
		deletes bool
	}{
		"it answers":       {func(*facts.Node) {}, false},
		"it never answers": {stuck, true},
		"it never answers, and goes": {func(n *facts.Node) { stuck(n); n.Pod.DeletionTimestamp = &metav1.Time{} },
			false},
		"its pod is gone, and nobody knows it yet": {func(n *facts.Node) {
			n.Pod, n.Record.Status.PodUID, n.Record.Spec.Join.Withdraw.PodGone = nil, "", podForgotten
			n.Record.Status.Join = nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := joining()
			n.Pod.Spec.NodeName, n.Record.Status.PodUID = "host", n.Pod.UID
			n.Agent = &facts.Agent{PodUID: n.Pod.UID, Process: facts.ProcessRunning}
			n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: noLonger}
			c.change(n)
			var over bool
			var r plan.Result
			made := during(s, func(v *assess.View, step *procedure.Step) { over, r = abandon(v, step, first) })
			deletes := len(made.Writes) == 1 && made.Writes[0].Verb == plan.Delete && made.Writes[0].Live
			if deletes != c.deletes || deletes != (r.Outcome == plan.Act) || deletes && over {
				t.Errorf("over %v, %s: %s", over, r.Message, made)
			}
		})
	}
}

// A node is abandoned before its ticket is written, too: after that no other operator can write it.
// So it is where the record has that of an earlier step.
func TestATicketIsWithdrawnThatIsNotWrittenYet(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.CassandraNodeSpec){
		"there is none": func(s *v1alpha1.CassandraNodeSpec) { s.Join = nil },
		"there is one of an earlier step": func(s *v1alpha1.CassandraNodeSpec) {
			s.Join.ID, s.Join.Withdraw = "earlier/join/"+first, &v1alpha1.Withdrawal{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := joining()
			change(&n.Record.Spec)
			made := during(s, func(v *assess.View, step *procedure.Step) { abandon(v, step, first) })
			if len(made.Writes) != 1 || !made.Writes[0].Live {
				t.Fatalf("%s", made)
			}
			join := made.Writes[0].Object.(*v1alpha1.CassandraNode).Spec.Join
			if join == nil || join.ID != "step/join/"+first || join.Withdraw == nil ||
				join.Withdraw.Reason != noLonger {
				t.Errorf("ticket %+v", join)
			}
		})
	}
}
