package assess

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// setting is a change of the spec that every node may take over unless something speaks against it.
func setting(s *v1alpha1.CassandraClusterSpec) {
	s.Node.CassandraYaml = v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")}}
}

func (s *scene) wantDrift(t *testing.T, want Drift) {
	t.Helper()
	if got, _ := s.view().Drift(s.n, s.wanted(t)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// member makes the second node one whose JVM has ended.
func (s *scene) member() {
	s.n.Record.Status.Join.FinishedAt = &when
	s.n.Record.Status.Disk, s.n.Agent.Disk = v1alpha1.DiskMember, v1alpha1.DiskMember
	s.n.Record.Status.Restarts = &v1alpha1.RestartsStatus{Count: 1}
}

// formation has nobody joined yet: the JVM of each node has ended.
func (s *scene) formation(disk v1alpha1.DiskState) {
	for _, n := range s.Nodes {
		n.Record.Status.Join.FinishedAt, n.Record.Status.Disk = nil, disk
		n.Record.Status.Restarts = &v1alpha1.RestartsStatus{Count: 1}
		n.Agent.Disk, n.Agent.Process, n.Agent.Ring = disk, facts.ProcessAbsent, nil
	}
}

// A member follows a correction only if nothing of it runs and it never was NORMAL with what its
// record says.
func TestWhichMembersFollowACorrection(t *testing.T) {
	normalWith := func(n *facts.Node, pod, configuration string) {
		n.Record.Status.Proven = &v1alpha1.ProvenStatus{PodTemplate: pod, Configuration: configuration}
	}
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   Drift
	}{
		"its JVM has ended":           {func(*facts.Node) {}, Takes},
		"its JVM runs":                {func(n *facts.Node) { n.Agent.Process = facts.ProcessRunning }, InTurn},
		"its JVM was not started yet": {func(n *facts.Node) { n.Record.Status.Restarts = nil }, InTurn},
		"its agent does not answer":   {func(n *facts.Node) { n.Agent = nil }, InTurn},
		"its agent does not know": {func(n *facts.Node) {
			n.Agent.Process = facts.ProcessUnknown
			n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{runningContainer}
		}, InTurn},
		"there is no container for a JVM": {func(n *facts.Node) {
			n.Agent.Process = facts.ProcessUnknown
			n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{waitingContainer}
		}, Takes},
		"it has no pod": {func(n *facts.Node) { n.Pod, n.Agent = nil, nil }, Takes},
		"it was NORMAL with this": {func(n *facts.Node) {
			normalWith(n, render.PodHash(n.Record.Spec.Pod), hashOf(&n.Record.Spec.Configuration))
		}, InTurn},
		"it was NORMAL with another template": {func(n *facts.Node) {
			normalWith(n, "other", hashOf(&n.Record.Spec.Configuration))
		}, Takes},
		"it was NORMAL with other settings": {func(n *facts.Node) {
			normalWith(n, render.PodHash(n.Record.Spec.Pod), "other")
		}, Takes},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.member()
			c.change(s.n)
			if !s.view().Of(second).Joined() {
				t.Fatal("it counts as no member")
			}
			s.wantDrift(t, Same)
			setting(&s.Cluster.Spec)
			s.wantDrift(t, c.want)
		})
	}
}

// A node that is still on its way while others have joined is not stopped for a change of the spec.
func TestWhoOnItsWayFollowsACorrection(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   Drift
	}{
		"its JVM ended":                 {func(*facts.Node) {}, Takes},
		"its JVM runs":                  {func(n *facts.Node) { n.Agent.Process = facts.ProcessRunning }, InTurn},
		"its JVM never ended":           {func(n *facts.Node) { n.Record.Status.Restarts.Count = 0 }, InTurn},
		"its JVM ended in a former pod": {func(n *facts.Node) { n.Record.Status.PodUID = "former" }, InTurn},
		"its JVM never started":         {func(n *facts.Node) { n.Record.Status.Restarts = nil }, InTurn},
		"its agent starts none": {func(n *facts.Node) {
			n.Record.Status.Restarts, n.Agent.Phase = nil, v1alpha1.PhaseFailed
		}, Takes},
		"its image is not pulled": {func(n *facts.Node) {
			n.Record.Status.Restarts, n.Pod.Status.ContainerStatuses = nil, []corev1.ContainerStatus{waitingContainer}
		}, Takes},
		"its pod starts": {func(n *facts.Node) { n.Agent, n.Pod.Status.Phase = nil, corev1.PodPending }, InTurn},
		"its pod cannot be scheduled": {func(n *facts.Node) {
			n.Agent, n.Pod.Status.Phase = nil, corev1.PodPending
			n.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Message: "no host"}}
		}, Takes},
		"it has no pod": {func(n *facts.Node) { n.Pod, n.Agent = nil, nil }, Takes},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.n.Record.Status.Restarts = &v1alpha1.RestartsStatus{Count: 1}
			c.change(s.n)
			setting(&s.Cluster.Spec)
			s.wantDrift(t, c.want)
		})
	}
}

// What may be changed while all tickets are out and nobody has joined: all but what tickets and
// disks rest on.
func TestWhatAFormationTakesOver(t *testing.T) {
	size := resource.MustParse("20Gi")
	for name, c := range map[string]struct {
		change func(*v1alpha1.CassandraClusterSpec)
		disk   v1alpha1.DiskState
		want   Drift
	}{
		"nothing":   {func(*v1alpha1.CassandraClusterSpec) {}, v1alpha1.DiskEmpty, Same},
		"a setting": {setting, v1alpha1.DiskJoining, Takes},
		"a JVM option": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.JVM = &v1alpha1.JVM{Options: []string{"-XX:+UseZGC"}}
		}, v1alpha1.DiskEmpty, Takes},
		"the environment": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Environment = []v1alpha1.EnvironmentVariable{{Name: "A", Value: "b"}}
		}, v1alpha1.DiskEmpty, Takes},
		"the image": {func(s *v1alpha1.CassandraClusterSpec) { s.Image = "elsewhere/cassandra:5.0.6" },
			v1alpha1.DiskJoining, Takes},
		"the image that it has": {func(s *v1alpha1.CassandraClusterSpec) { s.Image = "cassandra:5.0.6" },
			v1alpha1.DiskJoining, Same},
		"the release": {func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" }, v1alpha1.DiskEmpty,
			Takes},
		"the release, with a disk": {func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" },
			v1alpha1.DiskJoining, Keeps},
		"the memory": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Resources = &v1alpha1.Resources{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("6Gi")},
			}
		}, v1alpha1.DiskJoining, Takes},
		"the placement": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Placement = &v1alpha1.Placement{Zone: "a"}
		}, v1alpha1.DiskJoining, Takes},
		"the name": {func(s *v1alpha1.CassandraClusterSpec) { s.ClusterName = "other" },
			v1alpha1.DiskEmpty, Keeps},
		"the name of the datacenter": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].DatacenterName = "other"
		}, v1alpha1.DiskEmpty, Keeps},
		"the name of a rack": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks[1].RackName = "other"
		}, v1alpha1.DiskEmpty, Keeps},
		"the number of tokens": {func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NumTokens = 8 },
			v1alpha1.DiskEmpty, Keeps},
		"the storage": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Storage = &v1alpha1.Storage{
				Claims: &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: &size}},
			}
		}, v1alpha1.DiskEmpty, Keeps},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.formation(c.disk)
			c.change(&s.Cluster.Spec)
			s.wantDrift(t, c.want)
		})
	}
}

// A cluster without a ticket follows its spec in everything. A node without one does in all but its
// bound volumes, and in its release while no disk is written on.
func TestWhatANodeWithoutATicketTakesOver(t *testing.T) {
	size := resource.MustParse("20Gi")
	larger := func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Storage = &v1alpha1.Storage{Claims: &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: &size}}}
	}
	bound := func(s *scene) {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Name, claim.Spec.VolumeName = "data-"+second, "volume"
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
		s.n.Claims[v1alpha1.VolumeData] = &facts.Claim{Claim: claim}
	}
	grows := func(s *scene) {
		s.n.Record.Spec.Join, s.n.Record.Status.Join = nil, nil
		s.n.Agent.Disk, s.n.Record.Status.Disk = v1alpha1.DiskEmpty, v1alpha1.DiskEmpty
		s.Ledger.Step, s.Ledger.Formed = nil, []string{"dc1"}
		s.Ledger.Members = map[string]string{first: "host-" + first, third: "host-" + third}
	}
	for name, c := range map[string]struct {
		ready  func(*scene)
		change func(*v1alpha1.CassandraClusterSpec)
		want   Drift
	}{
		"no ticket is out": {func(s *scene) { grows(s); s.Ledger = nil; bound(s) }, larger, Takes},
		"no ticket is out, the ledger is lost": {func(s *scene) {
			grows(s)
			s.Ledger, s.lost = &ledger.Ledger{}, true
			bound(s)
		}, larger, Keeps},
		"a setting": {grows, setting, Takes},
		"its name": {grows, func(s *v1alpha1.CassandraClusterSpec) { s.ClusterName = "other" },
			Takes},
		"its storage":                    {grows, larger, Takes},
		"its storage, which is bound":    {func(s *scene) { grows(s); bound(s) }, larger, Keeps},
		"a setting, its volume is bound": {func(s *scene) { grows(s); bound(s) }, setting, Takes},
		"the release, its ticket is withdrawn": {func(s *scene) {
			s.formation(v1alpha1.DiskJoining)
			s.n.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "not wanted"}
		}, func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" }, InTurn},
		"its release": {grows, func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" }, Takes},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.ready(s)
			c.change(&s.Cluster.Spec)
			s.wantDrift(t, c.want)
		})
	}
}

// What the status says of a node's configuration counts only if the present pod has said it.
func TestANodeRunsAsTheSpecByTheWordOfItsPresentPod(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Node)
		want   bool
	}{
		"its present pod says so": {func(*facts.Node) {}, true},
		"a former pod said so":    {func(n *facts.Node) { n.Record.Status.PodUID = "former" }, false},
		"nobody says so":          {func(n *facts.Node) { n.Record.Status.Configuration = nil }, false},
		"it runs by another one":  {func(n *facts.Node) { n.Record.Status.Configuration.Hash = "other" }, false},
		"its pod is another one": {func(n *facts.Node) {
			n.Pod.Annotations[v1alpha1.AnnotationTemplateHash] = "other"
		}, false},
		"its labels are others": {func(n *facts.Node) {
			n.Record.Spec.Pod.Metadata = &v1alpha1.Metadata{Labels: map[string]string{"team": "shop"}}
		}, false},
		"it has no pod": {func(n *facts.Node) { n.Pod, n.Agent = nil, nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.n.Record.Status.Configuration = &v1alpha1.ConfigurationStatus{
				Hash: hashOf(&s.n.Record.Spec.Configuration),
			}
			s.n.Record.Spec.Member, s.n.Agent.Process = &v1alpha1.Member{}, facts.ProcessRunning
			s.n.Record.Spec.Pod.Image = "elsewhere/cassandra:5.0.6" // a correction that was taken back
			s.n.Record.Spec.Pod.ImageDefaulted = false
			c.change(s.n)
			if got := s.view().alreadyIs(s.n, s.wanted(t)); got != c.want {
				t.Errorf("it runs as the spec: %v", got)
			}
			if c.want {
				s.wantDrift(t, Takes)
			}
		})
	}
}

// The release of Cassandra is open as long as none has written on any disk.
func TestTheReleaseIsOpenWhileAllDisksAreEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene)
		open   bool
	}{
		"all are empty":                    {func(*scene) {}, true},
		"one was written on, by its agent": {func(s *scene) { s.n.Agent.Disk = v1alpha1.DiskJoining }, false},
		"one was written on, by its status": {func(s *scene) {
			s.n.Agent, s.n.Record.Status.Disk = nil, v1alpha1.DiskJoining
		}, false},
		"one was, but its agent knows better": {func(s *scene) { s.n.Record.Status.Disk = v1alpha1.DiskJoining }, true},
		"nothing is known of one":             {func(s *scene) { s.n.Agent, s.n.Record.Status.Disk = nil, "" }, false},
		"one is a member, and its disk was lost": {func(s *scene) {
			s.Ledger.Members = map[string]string{second: "x"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.formation(v1alpha1.DiskEmpty)
			c.change(s)
			if got := s.view().allUntouched(); got != c.open {
				t.Errorf("untouched %v, want %v", got, c.open)
			}
		})
	}
}
