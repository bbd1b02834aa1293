package cluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// passOver is a pass over what a world knows now.
func passOver(w *world) *pass {
	seen := *w.snapshot
	return &pass{Snapshot: &seen, now: w.now}
}

// A node is taken for a member if anybody at all says so: then it is neither stopped nor left out nor changed.
func TestANodeHasJoinedByTheWordOfAnybody(t *testing.T) {
	const late, other = "orders-dc1-r2-0", "orders-dc1-r1-0"
	sees := func(e facts.Endpoint) func(*world, *facts.Node) {
		return func(w *world, _ *facts.Node) {
			ring := w.snapshot.Nodes[other].Agent.Ring
			ring.Endpoints = append(ring.Endpoints, e)
		}
	}
	when := metav1.Now()
	for name, c := range map[string]struct {
		say    func(w *world, n *facts.Node)
		joined bool
	}{
		"nobody":                                       {func(*world, *facts.Node) {}, false},
		"the ledger":                                   {func(w *world, n *facts.Node) { w.snapshot.Ledger.Members = map[string]string{n.Name: ""} }, true},
		"its record":                                   {func(_ *world, n *facts.Node) { n.Record.Spec.Member = &v1alpha1.Member{} }, true},
		"its finished ticket":                          {func(_ *world, n *facts.Node) { n.Record.Status.Join.FinishedAt = &when }, true},
		"its disk, in the status":                      {func(_ *world, n *facts.Node) { n.Record.Status.Disk = v1alpha1.DiskMember }, true},
		"its disk that has left, in the status":        {func(_ *world, n *facts.Node) { n.Record.Status.Disk = v1alpha1.DiskLeft }, true},
		"its agent's ticket":                           {func(_ *world, n *facts.Node) { n.Agent.Join = &v1alpha1.IntentStatus{FinishedAt: &when} }, true},
		"its agent's open ticket":                      {func(_ *world, n *facts.Node) { n.Agent.Join = &v1alpha1.IntentStatus{} }, false},
		"its agent's disk":                             {func(_ *world, n *facts.Node) { n.Agent.Disk = v1alpha1.DiskMember }, true},
		"its agent, that let clients in":               {func(_ *world, n *facts.Node) { n.Agent.TrafficOpened = true }, true},
		"its JVM":                                      {func(_ *world, n *facts.Node) { n.Agent.Ring = &facts.Ring{Mode: facts.ModeNormal} }, true},
		"its JVM, that still joins":                    {func(_ *world, n *facts.Node) { n.Agent.Ring = &facts.Ring{Mode: facts.ModeJoining} }, false},
		"the agent of its former pod":                  {func(_ *world, n *facts.Node) { n.Agent.PodUID, n.Agent.TrafficOpened = "former", true }, true},
		"another's view of its host id":                {sees(facts.Endpoint{HostID: "status-id", Tokens: []int64{1}}), true},
		"another's view of its agent's host id":        {sees(facts.Endpoint{HostID: "agent-id", Tokens: []int64{1}}), true},
		"another's view of its address":                {sees(facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}}), true},
		"another's view of its former address":         {sees(facts.Endpoint{Address: "10.9.9.8", Tokens: []int64{1}}), true},
		"another's view of its address without tokens": {sees(facts.Endpoint{Address: "10.9.9.9"}), false},
		"another's view of its address, that has left": {sees(facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}, Status: facts.StatusLeft}), false},
		"another's view of a third one":                {sees(facts.Endpoint{Address: "10.8.8.8", HostID: "x", Tokens: []int64{1}}), false},
		"another's view of one without a host id": {func(w *world, n *facts.Node) {
			n.Agent.HostID, n.Record.Status.HostID = "", ""
			sees(facts.Endpoint{Address: "10.8.8.8", Tokens: []int64{1}})(w, n)
		}, false},
		"the last view of an agent that does not answer now": {func(w *world, n *facts.Node) {
			sees(facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}})(w, n)
			w.snapshot.Nodes[other].Agent.PodUID = "former"
		}, false},
		"the view of the last one, when others see the same as each other": {func(w *world, _ *facts.Node) {
			ring := *w.snapshot.Nodes[other].Agent.Ring
			third := "orders-dc1-r4-0"
			w.snapshot.Nodes[third] = &facts.Node{Name: third, Record: w.snapshot.Nodes[other].Record.DeepCopy(), Pod: w.snapshot.Nodes[other].Pod, Agent: &facts.Agent{PodUID: w.snapshot.Nodes[other].Pod.UID, Ring: &ring}}
			ring.Endpoints = append(slices.Clip(ring.Endpoints), facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}})
		}, true},
		"the view of the last one, when others have none": {func(w *world, n *facts.Node) {
			w.snapshot.Nodes[other].Agent = nil
			ring := w.snapshot.Nodes["orders-dc1-r3-0"].Agent.Ring
			ring.Endpoints = append(ring.Endpoints, facts.Endpoint{Address: "10.9.9.9", Tokens: []int64{1}})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, late)
			n := w.snapshot.Nodes[late]
			n.Agent.Address, n.Agent.HostID, n.Record.Status.HostID, n.Record.Status.Address = "10.9.9.9", "agent-id", "status-id", "10.9.9.8"
			c.say(w, n)
			if got := passOver(w).joined(n); got != c.joined {
				t.Errorf("joined %v, want %v", got, c.joined)
			}
		})
	}
}

// A member follows a correction only if nothing of it runs and it never was NORMAL with what its record says.
func TestWhichMembersFollowACorrection(t *testing.T) {
	const name = "orders-dc1-r2-0"
	waiting := func(n *facts.Node) {
		n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "cassandra", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
		}}
	}
	normalWith := func(n *facts.Node, pod, configuration string) {
		n.Record.Status.Proven = &v1alpha1.ProvenStatus{PodTemplate: pod, Configuration: configuration}
	}
	for what, c := range map[string]struct {
		change func(*facts.Node)
		follow bool
	}{
		"its JVM has ended":           {func(*facts.Node) {}, true},
		"its JVM runs":                {func(n *facts.Node) { n.Agent.Process = facts.ProcessRunning }, false},
		"its JVM was not started yet": {func(n *facts.Node) { n.Record.Status.Restarts = nil }, false},
		"its agent does not answer":   {func(n *facts.Node) { n.Agent = nil }, false},
		"its agent does not know": {func(n *facts.Node) {
			n.Agent.Process = facts.ProcessUnknown
			n.Pod.Status.ContainerStatuses = running()
		}, false},
		"there is no container for a JVM": {func(n *facts.Node) { n.Agent.Process = facts.ProcessUnknown; waiting(n) }, true},
		"no pod":                          {func(n *facts.Node) { n.Pod, n.Agent = nil, nil }, true},
		"it was NORMAL with this": {func(n *facts.Node) {
			normalWith(n, render.PodHash(n.Record.Spec.Pod), hashOf(&n.Record.Spec.Configuration))
		}, false},
		"it was NORMAL with another template": {func(n *facts.Node) { normalWith(n, "other", hashOf(&n.Record.Spec.Configuration)) }, true},
		"it was NORMAL with other settings":   {func(n *facts.Node) { normalWith(n, render.PodHash(n.Record.Spec.Pod), "other") }, true},
	} {
		t.Run(what, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskMember, three...)
			n := w.snapshot.Nodes[name]
			c.change(n)
			w.change(setting("concurrent_reads", "16"))
			p := passOver(w)
			if !p.joined(n) {
				t.Fatal("it counts as no member")
			}
			follows := slices.ContainsFunc(Next(w.snapshot, w.now).Writes, func(w plan.Write) bool { return w.Verb == plan.Apply && w.Object.GetName() == name })
			if follows != c.follow {
				t.Errorf("follows %v, want %v", follows, c.follow)
			}
		})
	}
}

// A member that was NORMAL with what its record says, and has a pod made from something else that does not come, gets another pod.
func TestThePodOfAMemberThatDoesNotComeIsMadeAsItsRecordSays(t *testing.T) {
	for what, up := range map[string]bool{"it does not come": false, "it runs": true} {
		t.Run(what, func(t *testing.T) {
			w := formed(t)
			n := w.snapshot.Nodes["orders-dc1-r2-0"]
			n.Record.Status.Proven = &v1alpha1.ProvenStatus{PodTemplate: render.PodHash(n.Record.Spec.Pod), Configuration: hashOf(&n.Record.Spec.Configuration)}
			n.Pod.Annotations[v1alpha1.AnnotationTemplateHash] = "broken"
			if !up {
				n.Agent.Ring, n.Agent.Process = nil, facts.ProcessUnknown
				n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
					Name: "cassandra", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
				}}
			}
			made := Next(w.snapshot, w.now)
			deleted := slices.ContainsFunc(made.Writes, func(w plan.Write) bool { return w.Verb == plan.Delete && w.Live && w.UID == n.Pod.UID })
			if deleted == up {
				t.Errorf("pod deleted: %v\n%s", deleted, made)
			}
		})
	}
}

func running() []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{Name: "cassandra", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

// The release of Cassandra is open as long as none has written on any disk.
func TestTheReleaseIsOpenWhileAllDisksAreEmpty(t *testing.T) {
	const name = "orders-dc1-r2-0"
	for what, c := range map[string]struct {
		change func(w *world, n *facts.Node)
		open   bool
	}{
		"all are empty":                          {func(*world, *facts.Node) {}, true},
		"one was written on, by its agent":       {func(_ *world, n *facts.Node) { n.Agent.Disk = v1alpha1.DiskJoining }, false},
		"one was written on, by its status":      {func(_ *world, n *facts.Node) { n.Agent, n.Record.Status.Disk = nil, v1alpha1.DiskJoining }, false},
		"one was, but its agent knows better":    {func(_ *world, n *facts.Node) { n.Record.Status.Disk = v1alpha1.DiskJoining }, true},
		"nothing is known of one":                {func(_ *world, n *facts.Node) { n.Agent, n.Record.Status.Disk = nil, "" }, false},
		"one is a member, and its disk was lost": {func(w *world, n *facts.Node) { w.snapshot.Ledger.Members = map[string]string{n.Name: "x"} }, false},
	} {
		t.Run(what, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskEmpty, three...)
			c.change(w, w.snapshot.Nodes[name])
			if got := passOver(w).allUntouched(); got != c.open {
				t.Errorf("untouched %v, want %v", got, c.open)
			}
		})
	}
}

func TestSomethingRunsInAPod(t *testing.T) {
	running := []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}, {State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"nothing":                {corev1.PodStatus{Phase: corev1.PodPending}, false},
		"by its phase":           {corev1.PodStatus{Phase: corev1.PodRunning}, true},
		"a first container":      {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: running}, true},
		"a container":            {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: running}, true},
		"an ephemeral container": {corev1.PodStatus{Phase: corev1.PodPending, EphemeralContainerStatuses: running}, true},
		"none of its containers": {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: running[:1]}, false},
	} {
		if got := anythingRuns(&corev1.Pod{Status: c.status}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
