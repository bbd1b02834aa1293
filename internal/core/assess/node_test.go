package assess

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// What a node is, by everything that is known of it. A node is taken for joined if anybody at all
// says so: then it is neither stopped nor left out nor changed.
func TestWhatANodeIs(t *testing.T) {
	sees := func(e facts.Endpoint) func(*scene) { return func(s *scene) { s.sees(e) } }
	status := func(c ...corev1.ContainerStatus) func(*scene) {
		return func(s *scene) {
			s.n.Agent, s.n.Pod.Status = nil, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: c}
		}
	}
	claimed := func(s *scene) {
		s.n.Record.Spec.Claims = []v1alpha1.ClaimReference{{Volume: v1alpha1.VolumeData, Name: "data", UID: "claim"}}
	}
	noTicket := func(s *scene) { s.Ledger.Step, s.n.Record.Spec.Join, s.n.Record.Status.Join = nil, nil, nil }
	for name, c := range map[string]struct {
		change func(*scene)
		want   Node
	}{
		// The membership.
		"nobody says that it has joined": {func(*scene) {}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"the ledger says it": {func(s *scene) {
			s.Ledger.Members = map[string]string{second: ""}
		}, Node{Member, Absent, Answering, Live, true, false}},
		"its record says it": {func(s *scene) {
			s.n.Record.Spec.Member = &v1alpha1.Member{}
		}, Node{Member, Absent, Answering, Live, true, false}},
		"its finished ticket says it": {func(s *scene) {
			s.n.Record.Status.Join.FinishedAt = &when
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"its disk says it, in the status": {func(s *scene) {
			s.n.Record.Status.Disk = v1alpha1.DiskMember
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"its disk that has left says it, in the status": {func(s *scene) {
			s.n.Record.Status.Disk = v1alpha1.DiskLeft
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"its agent's ticket says it": {func(s *scene) {
			s.n.Agent.Join = &v1alpha1.IntentStatus{FinishedAt: &when}
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"its agent's open ticket does not": {func(s *scene) {
			s.n.Agent.Join = &v1alpha1.IntentStatus{}
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"its agent's disk says it": {func(s *scene) {
			s.n.Agent.Disk = v1alpha1.DiskMember
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"its agent says it, which has opened client traffic": {func(s *scene) {
			s.n.Agent.TrafficOpened = true
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"its JVM says it": {func(s *scene) {
			s.n.Agent.Ring, s.n.Agent.Process = &facts.Ring{Mode: facts.ModeNormal}, facts.ProcessRunning
		}, Node{Joined, Running, Answering, Live, true, false}},
		"its JVM does not, which still joins": {func(s *scene) {
			s.n.Agent.Ring, s.n.Agent.Process = &facts.Ring{Mode: facts.ModeJoining}, facts.ProcessRunning
		}, Node{Ticketed, Running, Answering, Live, true, false}},
		"the agent of its former pod says it": {func(s *scene) {
			s.n.Agent.PodUID, s.n.Agent.TrafficOpened = "former", true
		}, Node{Joined, Possible, Unreachable, Live, true, false}},
		"another sees its host id": {
			sees(facts.Endpoint{HostID: "status-id", Tokens: []int64{1}}),
			Node{Joined, Absent, Answering, Live, true, false},
		},
		"another sees its agent's host id": {
			sees(facts.Endpoint{HostID: "agent-id", Tokens: []int64{1}}),
			Node{Joined, Absent, Answering, Live, true, false},
		},
		"another sees its address": {
			sees(facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}}),
			Node{Joined, Absent, Answering, Live, true, false},
		},
		"another sees its former address": {
			sees(facts.Endpoint{Address: "10.9.9.8", Tokens: []int64{1}}),
			Node{Joined, Absent, Answering, Live, true, false},
		},
		"another sees its address without tokens": {
			sees(facts.Endpoint{Address: "10.9.9.9"}), Node{Ticketed, Absent, Answering, Live, true, false},
		},
		"another sees its address, and that it has left": {
			sees(facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}, Status: facts.StatusLeft}),
			Node{Ticketed, Absent, Answering, Live, true, false},
		},
		"another sees a third one": {
			sees(facts.Endpoint{Address: "10.8.8.8", HostID: "x", Tokens: []int64{1}}),
			Node{Ticketed, Absent, Answering, Live, true, false},
		},
		"another sees one without a host id": {func(s *scene) {
			s.n.Agent.HostID, s.n.Record.Status.HostID = "", ""
			s.sees(facts.Endpoint{Address: "10.8.8.8", Tokens: []int64{1}})
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"another saw it, whose agent does not answer now": {func(s *scene) {
			s.sees(facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}})
			s.Nodes[first].Agent.PodUID = "former"
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"the last one sees it, while others see the same as each other": {func(s *scene) {
			ring := *s.Nodes[first].Agent.Ring
			const fourth = "orders-dc1-r4-0"
			s.Nodes[fourth] = &facts.Node{
				Name: fourth, Record: s.Nodes[first].Record.DeepCopy(), Pod: s.Nodes[first].Pod,
				Agent: &facts.Agent{PodUID: s.Nodes[first].Pod.UID, Ring: &ring},
			}
			ring.Endpoints = append(slices.Clip(ring.Endpoints),
				facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}})
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"the last one sees it, while others see nothing": {func(s *scene) {
			s.Nodes[first].Agent = nil
			ring := s.Nodes[third].Agent.Ring
			ring.Endpoints = append(ring.Endpoints, facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}})
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"it has no ticket": {noTicket, Node{None, Absent, Answering, Live, true, false}},
		"it has no ticket, and its disk is a member's": {func(s *scene) {
			noTicket(s)
			s.n.Agent.Disk = v1alpha1.DiskMember
		}, Node{Seen, Absent, Answering, Live, true, false}},
		"the step alone has its ticket": {func(s *scene) {
			s.n.Record.Spec.Join, s.n.Record.Status.Join = nil, nil
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"its record alone has its ticket": {func(s *scene) { s.Ledger.Step = nil },
			Node{Ticketed, Absent, Answering, Live, true, false}},
		"its ticket is being withdrawn": {func(s *scene) {
			s.n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{}
		}, Node{Withdrawn, Absent, Answering, Live, true, false}},
		"its agent alone knows that its ticket was withdrawn": {func(s *scene) {
			s.n.Record.Status.Join.WithdrawnAt = &when
		}, Node{Withdrawn, Absent, Answering, Live, true, false}},
		"its agent has withdrawn a former ticket": {func(s *scene) {
			s.n.Record.Status.Join = &v1alpha1.IntentStatus{ID: "another", WithdrawnAt: &when}
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"the ticket of an earlier step was withdrawn": {func(s *scene) {
			s.n.Record.Spec.Join.ID, s.n.Record.Spec.Join.Withdraw = "earlier/join/"+second, &v1alpha1.Withdrawal{}
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"its agent alone knows that of the ticket of an earlier step": {func(s *scene) {
			s.n.Record.Spec.Join.ID = "earlier/join/" + second
			s.n.Record.Status.Join = &v1alpha1.IntentStatus{ID: s.n.Record.Spec.Join.ID, WithdrawnAt: &when}
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"the ticket of an earlier step was withdrawn, and none is open": {func(s *scene) {
			s.n.Record.Spec.Join.Withdraw, s.Ledger.Step = &v1alpha1.Withdrawal{}, nil
		}, Node{Withdrawn, Absent, Answering, Live, true, false}},
		"the ticket of an earlier step was withdrawn, and another node's is open": {func(s *scene) {
			s.n.Record.Spec.Join.ID, s.n.Record.Spec.Join.Withdraw = "earlier/join/"+second, &v1alpha1.Withdrawal{}
			s.Ledger.Step.Nodes = []string{first}
		}, Node{Withdrawn, Absent, Answering, Live, true, false}},
		"its ticket is being withdrawn, and it has joined": {func(s *scene) {
			s.n.Record.Spec.Join.Withdraw, s.n.Agent.Disk = &v1alpha1.Withdrawal{}, v1alpha1.DiskMember
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"the ledger is lost, and it has a disk": {func(s *scene) {
			noTicket(s)
			claimed(s)
			s.lost = true
		}, Node{DiskUnknown, Absent, Answering, Live, true, false}},
		"the ledger is lost, and its disk is a member's": {func(s *scene) {
			noTicket(s)
			claimed(s)
			s.lost, s.n.Agent.Disk = true, v1alpha1.DiskMember
		}, Node{Joined, Absent, Answering, Live, true, false}},
		"the ledger is lost, and it has no claim": {func(s *scene) {
			noTicket(s)
			s.lost = true
		}, Node{None, Absent, Answering, Live, true, false}},
		"the ledger is lost, and its claim never had a volume": {func(s *scene) {
			noTicket(s)
			claimed(s)
			claim := &corev1.PersistentVolumeClaim{}
			claim.UID = "claim"
			s.n.Claims[v1alpha1.VolumeData] = &facts.Claim{Claim: claim}
			s.lost, s.n.Record.Status.HostID = true, ""
		}, Node{None, Absent, Answering, Live, true, false}},
		"it has a disk, and the ledger is there": {func(s *scene) { noTicket(s); claimed(s) },
			Node{None, Absent, Answering, Live, true, false}},

		// Its record, and whether the spec describes it.
		"its record is missing": {func(s *scene) { s.n.Record = nil },
			Node{Ticketed, Absent, Answering, Missing, true, false}},
		"its record is missing, and the ledger knows it": {func(s *scene) {
			s.n.Record, s.Ledger.Members = nil, map[string]string{second: "id"}
		}, Node{Member, Absent, Answering, Missing, true, false}},
		"its record is missing, and no step is open": {func(s *scene) {
			s.n.Record, s.Ledger.Step = nil, nil
		}, Node{None, Absent, Answering, Missing, true, false}},
		"nothing of it exists": {func(s *scene) { delete(s.Nodes, second) },
			Node{Ticketed, Absent, Unreachable, Missing, true, false}},
		"there is no ledger": {func(s *scene) { s.Ledger, s.n.Record = nil, nil },
			Node{None, Absent, Answering, Missing, true, false}},
		"its record is deleted": {func(s *scene) { s.n.Record.DeletionTimestamp = &when },
			Node{Ticketed, Absent, Answering, Deleting, true, false}},
		"the spec does not want it": {func(s *scene) {
			s.Cluster.Spec.Datacenters[0].Racks = s.Cluster.Spec.Datacenters[0].Racks[:1]
		}, Node{Ticketed, Absent, Answering, Live, false, false}},

		// Its agent, its JVM, and whether it comes up.
		"its agent is asked for the first time": {func(s *scene) {
			s.n.Agent, s.n.Asking = nil, true
		}, Node{Ticketed, Possible, FirstContact, Live, true, false}},
		"its agent answers, and is asked again": {func(s *scene) { s.n.Asking = true },
			Node{Ticketed, Absent, Answering, Live, true, false}},
		"its JVM runs": {func(s *scene) {
			s.n.Agent.Process, s.n.Record.Status.Restarts = facts.ProcessRunning, &v1alpha1.RestartsStatus{Count: 1}
		}, Node{Ticketed, Running, Answering, Live, true, false}},
		"its JVM has ended": {func(s *scene) {
			s.n.Record.Status.Restarts = &v1alpha1.RestartsStatus{Count: 1}
		}, Node{Ticketed, Absent, Answering, Live, true, true}},
		"its JVM never ended": {func(s *scene) {
			s.n.Record.Status.Restarts = &v1alpha1.RestartsStatus{}
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"its JVM has ended in a former pod": {func(s *scene) {
			s.n.Record.Status.Restarts, s.n.Record.Status.PodUID = &v1alpha1.RestartsStatus{Count: 1}, "former"
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"its agent starts none": {func(s *scene) {
			s.n.Agent.Phase = v1alpha1.PhaseFailed
		}, Node{Ticketed, Absent, Answering, Live, true, true}},
		"its agent does not know, and its container runs": {func(s *scene) {
			s.n.Agent.Process = facts.ProcessUnknown
			s.n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{runningContainer}
		}, Node{Ticketed, Possible, Answering, Live, true, false}},
		"its agent does not know, and its container has ended": {func(s *scene) {
			s.n.Agent.Process = facts.ProcessUnknown
			s.n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "cassandra"}}
		}, Node{Ticketed, Possible, Answering, Live, true, false}},
		"its agent does not know, and its container waits": {func(s *scene) {
			s.n.Agent.Process = facts.ProcessUnknown
			s.n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{waitingContainer}
		}, Node{Ticketed, Absent, Answering, Live, true, true}},
		"its agent does not know, and there is no container": {func(s *scene) {
			s.n.Agent.Process = facts.ProcessUnknown
		}, Node{Ticketed, Absent, Answering, Live, true, false}},
		"its agent does not answer, and its container waits": {status(waitingContainer),
			Node{Ticketed, Absent, Unreachable, Live, true, true}},
		"its agent does not answer, and its pod starts": {status(),
			Node{Ticketed, Absent, Unreachable, Live, true, false}},
		"its agent does not answer, and its pod runs": {func(s *scene) {
			s.n.Agent = nil
			s.n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{waitingContainer}
		}, Node{Ticketed, Possible, Unreachable, Live, true, false}},
		"its pod cannot be scheduled": {func(s *scene) {
			status()(s)
			s.n.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Message: "no host"}}
		}, Node{Ticketed, Absent, Unreachable, Live, true, true}},
		"it has no pod": {func(s *scene) { s.n.Pod, s.n.Agent = nil, nil },
			Node{Ticketed, Absent, Unreachable, Live, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.change(s)
			if got := s.view().Of(second); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestMembershipsInShort(t *testing.T) {
	for m, c := range map[Membership]struct{ joined, started bool }{
		None: {false, false}, DiskUnknown: {false, true}, Ticketed: {false, true}, Withdrawn: {false, true},
		Seen: {true, false}, Joined: {true, true}, Member: {true, true},
	} {
		n := Node{Membership: m}
		if n.Joined() != c.joined || n.Started() != c.started {
			t.Errorf("%s: joined %v, started %v", m, n.Joined(), n.Started())
		}
	}
	for p, failing := range map[Process]bool{Absent: true, Running: false, Possible: false} {
		if got := (Node{NotStarting: true, Process: p}).Failing(); got != failing {
			t.Errorf("not starting, %s: failing %v", p, got)
		}
		if (Node{Process: p}).Failing() {
			t.Errorf("starting, %s: failing", p)
		}
	}
}

func TestSomethingRunsInAPod(t *testing.T) {
	running := []corev1.ContainerStatus{waitingContainer, runningContainer}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"nothing":           {corev1.PodStatus{Phase: corev1.PodPending}, false},
		"by its phase":      {corev1.PodStatus{Phase: corev1.PodRunning}, true},
		"a first container": {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: running}, true},
		"a container":       {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: running}, true},
		"an ephemeral container": {corev1.PodStatus{Phase: corev1.PodPending, EphemeralContainerStatuses: running},
			true},
		"none of its containers": {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: running[:1]}, false},
	} {
		if got := AnythingRuns(&corev1.Pod{Status: c.status}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
