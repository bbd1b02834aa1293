package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// An image that cannot be pulled is taken back by taking the field away, as well as by naming
// another one.
func TestAnImageIsTakenBackWhileTheRingForms(t *testing.T) {
	w := forming(t, v1alpha1.DiskEmpty, three...)
	before := w.snapshot.Nodes[three[0]].Record.Spec.Pod.Image
	for _, image := range []string{"elsewhere/cassandra:5.0.6", ""} {
		w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Image = image })
		if made := w.settle(); made.Stalled != nil {
			t.Fatalf("image %q refused:\n%s", image, made)
		}
		want := image
		if want == "" {
			want = before
		}
		for _, name := range three {
			if got := w.snapshot.Nodes[name].Record.Spec.Pod.Image; got != want {
				t.Errorf("with image %q node %s has %s, want %s", image, name, got, want)
			}
		}
	}
}

// A spec under which no node can start is corrected while all tickets are out: the correction
// reaches every node, and the tickets stay what they were.
func TestACorrectedSpecReachesAFormationThatCannotSucceed(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*v1alpha1.CassandraClusterSpec)
		disk    v1alpha1.DiskState
		newPods bool
	}{
		"setting": {change: setting("concurrent_reads", "16"), disk: v1alpha1.DiskJoining},
		"JVM option": {change: func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.JVM = &v1alpha1.JVM{Options: []string{"-XX:+UseZGC"}}
		}, disk: v1alpha1.DiskEmpty},
		"environment": {change: func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Environment = []v1alpha1.EnvironmentVariable{{Name: "A", Value: "b"}}
		}, disk: v1alpha1.DiskEmpty},
		"image": {change: func(s *v1alpha1.CassandraClusterSpec) { s.Image = "elsewhere/cassandra:5.0.6" },
			disk: v1alpha1.DiskJoining, newPods: true},
		"release": {change: func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" }, disk: v1alpha1.DiskEmpty,
			newPods: true},
		"memory": {change: func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Resources = &v1alpha1.Resources{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("6Gi")},
			}
		}, disk: v1alpha1.DiskJoining, newPods: true},
		"placement": {change: func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Placement = &v1alpha1.Placement{Zone: "a"}
		}, disk: v1alpha1.DiskJoining, newPods: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, c.disk, three...)
			before, pods := w.snapshot.Ledger.Copy(), w.pods()
			w.change(c.change)
			if made := w.settle(); made.Stalled != nil {
				t.Fatalf("refused:\n%s", made)
			}
			for name, uid := range w.pods() {
				if (uid != pods[name]) != c.newPods {
					t.Errorf("pod of %s made anew: %v, want %v", name, uid != pods[name], c.newPods)
				}
			}
			clear(w.late)
			w.agents()
			w.settle()
			w.wantOpen()
			for name, tokens := range ticket.Of(before.Step).Tokens {
				if got := w.snapshot.Nodes[name].Record.Status.Tokens; !slices.Equal(got, tokens) {
					t.Errorf("node %s has tokens %v, its ticket said %v", name, got, tokens)
				}
			}
			if made := w.settle(); made.Stalled != nil {
				t.Errorf("stalled in the end:\n%s", made)
			}
		})
	}
}

func TestWhatATicketRestsOnIsNotCorrected(t *testing.T) {
	size := resource.MustParse("20Gi")
	for name, c := range map[string]struct {
		change func(*v1alpha1.CassandraClusterSpec)
		disk   v1alpha1.DiskState
		words  string
	}{
		"name": {func(s *v1alpha1.CassandraClusterSpec) { s.ClusterName = "other" },
			v1alpha1.DiskEmpty, "clusterName"},
		"name of the datacenter": {func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].DatacenterName = "other" },
			v1alpha1.DiskEmpty, "datacenterName"},
		"name of a rack": {func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[1].RackName = "other" },
			v1alpha1.DiskEmpty, "rackName"},
		"tokens": {func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NumTokens = 8 }, v1alpha1.DiskEmpty,
			"datacenters[].numTokens: 4 → 8"},
		"storage": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Storage.Claims.Data = &v1alpha1.VolumeClaim{Size: &size}
		}, v1alpha1.DiskEmpty, `node.storage.claims.data.size: "10Gi" → "20Gi"`},
		"release on a disk with data": {func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" },
			v1alpha1.DiskJoining, "version: 5.0.6 → 5.0.9: a node with a ticket keeps its release until it has joined"},
		"replication": {func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].PlannedReplicationFactor = 2 },
			v1alpha1.DiskEmpty, "datacenters[dc1].plannedReplicationFactor: 3 → 2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, c.disk, three...)
			w.change(c.change)
			made := w.pass()
			wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, c.words)
			if len(made.Writes) > 0 {
				t.Errorf("want no write:\n%s", made)
			}
		})
	}
}

// The nodes that have joined wait for their turn, after the formation; those that have not follow.
func TestACorrectionLeavesNodesThatHaveJoinedAlone(t *testing.T) {
	late := "orders-dc1-r2-0"
	for name, show := range map[string]func(*facts.Node){
		"by its record":      func(*facts.Node) {},
		"by its agent alone": func(n *facts.Node) { n.Record.Status.Join, n.Record.Status.Disk = nil, "" },
		"by its disk alone":  func(n *facts.Node) { n.Record.Status.Join, n.Agent = nil, nil },
		"by the view of another one only": func(n *facts.Node) {
			n.Record.Status.Join, n.Record.Status.Disk, n.Agent = nil, "", nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, late)
			joined := w.snapshot.Nodes["orders-dc1-r1-0"]
			pods := w.pods()
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Image = "elsewhere/cassandra:5.0.6" })
			show(joined)
			if made := w.settle(); made.Stalled != nil {
				t.Errorf("stalled:\n%s", made)
			}
			for _, name := range three {
				if again := w.pods()[name] != pods[name]; again != (name == late) {
					t.Errorf("pod of %s made anew: %v", name, again)
				}
			}
		})
	}
}

// A correction that reached a record while its node was on its way, and was then taken back, is
// taken back in the record too: the node runs as the spec says.
func TestARecordFollowsTheSpecThatItsNodeRunsBy(t *testing.T) {
	for name, c := range map[string]struct {
		image   string // that the pod was made from
		hash    func(*v1alpha1.NodeConfiguration) string
		follows bool
	}{
		"the node is as the spec":       {"", hashOf, true},
		"the pod is as the record":      {brokenImage, hashOf, false},
		"the JVM runs by another input": {"", func(*v1alpha1.NodeConfiguration) string { return "other" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			n := w.snapshot.Nodes["orders-dc1-r2-0"]
			n.Record.Status.Configuration = &v1alpha1.ConfigurationStatus{Hash: c.hash(&n.Record.Spec.Configuration),
				Encryption: n.Record.Spec.Configuration.Encryption}
			before := n.Record.Spec.Pod.Image
			n.Record.Spec.Pod.Image, n.Record.Spec.Pod.ImageDefaulted = brokenImage, false
			if c.image != "" {
				n.Pod.Annotations[v1alpha1.AnnotationTemplateHash] = render.PodHash(n.Record.Spec.Pod)
			}
			pods := w.pods()
			made := w.pass()
			if (n.Record.Spec.Pod.Image == before) != c.follows {
				t.Errorf("record has image %s; want it to follow: %v\n%s", n.Record.Spec.Pod.Image, c.follows, made)
			}
			if !maps.Equal(w.pods(), pods) {
				t.Error("a pod was recreated")
			}
		})
	}
}

const brokenImage = "elsewhere/cassandra:5.0.6"

func hashOf(c *v1alpha1.NodeConfiguration) string {
	hash, err := config.Hash(c)
	if err != nil {
		panic(err) // it is that of a test
	}
	return hash
}

// A node that is still on its way when others have joined is not stopped for a change of the spec.
func TestANodeOnItsWayIsLeftAlone(t *testing.T) {
	late := "orders-dc1-r2-0"
	for name, c := range map[string]struct {
		change func(*facts.Node)
		follow bool
	}{
		"JVM ended":                 {func(*facts.Node) {}, true},
		"JVM runs":                  {func(n *facts.Node) { n.Agent.Process = facts.ProcessRunning }, false},
		"JVM never ended":           {func(n *facts.Node) { n.Record.Status.Restarts.Count = 0 }, false},
		"JVM ended in a former pod": {func(n *facts.Node) { n.Record.Status.PodUID = "former" }, false},
		"JVM never started":         {func(n *facts.Node) { n.Record.Status.Restarts = nil }, false},
		"agent starts none": {func(n *facts.Node) {
			n.Record.Status.Restarts = nil
			n.Agent.Phase = v1alpha1.PhaseFailed
		}, true},
		"image not pulled": {func(n *facts.Node) {
			n.Record.Status.Restarts = nil
			n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "cassandra",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		}, true},
		"pod starts": {func(n *facts.Node) { n.Agent, n.Pod.Status.Phase = nil, corev1.PodPending }, false},
		"pod cannot be scheduled": {func(n *facts.Node) {
			n.Agent, n.Pod.Status.Phase = nil, corev1.PodPending
			n.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Message: "no host"}}
		}, true},
		"no pod": {func(n *facts.Node) { n.Pod, n.Agent = nil, nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, late)
			c.change(w.snapshot.Nodes[late])
			w.change(setting("concurrent_reads", "16"))
			made := Next(w.snapshot, w.now)
			follows := slices.ContainsFunc(made.Writes,
				func(w plan.Write) bool { return w.Verb == plan.Apply && w.Object.GetName() == late && w.Live })
			if follows != c.follow {
				t.Errorf("follows %v, want %v:\n%s", follows, c.follow, made)
			}
		})
	}
}

func TestAPodOfWhichNothingIsKnownIsNotMadeAnew(t *testing.T) {
	late := "orders-dc1-r2-0"
	w := forming(t, v1alpha1.DiskJoining, three...)
	n := w.snapshot.Nodes[late]
	pod := n.Pod.UID
	w.absent[late] = true
	w.agents()
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Image = "elsewhere/cassandra:5.0.6" })
	made := w.settle()
	if n.Pod.UID != pod {
		t.Fatal("the pod was deleted although its agent did not say that the node is not up")
	}
	if len(made.Blocked) != 1 || made.Blocked[0].Reason != "AgentUnreachable" {
		t.Errorf("blocked %+v", made.Blocked)
	}
	// A pod in which nothing runs cannot be a member's.
	n.Pod.Status.Phase = corev1.PodPending
	w.settle()
	if n.Pod.UID == pod {
		t.Error("a pod in which nothing runs was kept")
	}
}

func TestANodeThatWasLeftOutFollowsTheSpec(t *testing.T) {
	late := "orders-dc1-r2-0"
	w := forming(t, v1alpha1.DiskJoining, late)
	w.now = w.now.Add(stragglerTimeout + time.Minute)
	w.settle()
	if w.snapshot.Ledger.Step != nil {
		t.Fatal("the latecomer was not left out")
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[1].Node = &v1alpha1.NodeSettings{
			CassandraYaml: v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")}},
		}
	})
	made := w.settle()
	if made.Stalled != nil || string(
		w.snapshot.Nodes[late].Record.Spec.Configuration.CassandraYaml["concurrent_reads"].Raw,
	) != "16" {
		t.Errorf("the node outside of the ring does not follow the spec:\n%s", made)
	}
}

// A left-out node is no growth, even if its record is lost with all others: the members' records
// come back, and it waits as before.
func TestLostRecordsComeBackBesideALeftOutNode(t *testing.T) {
	late := "orders-dc1-r2-0"
	for name, until := range map[string]func(*world){
		"with the ledger":       func(w *world) { w.settle() },
		"with a rebuilt ledger": func(w *world) { w.settle(); w.snapshot.Ledger = nil; w.settle() },
		"while it still forms": func(w *world) {
			for range 100 {
				if w.pass(); w.snapshot.Ledger.Step.Stage == ledger.StageFormed {
					return
				}
			}
			t.Error("the others do not form the ring")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, late)
			w.now = w.now.Add(stragglerTimeout + time.Minute)
			until(w)
			before := w.snapshot.Ledger.Members
			for _, n := range w.snapshot.Nodes {
				n.Record = nil
			}
			made := w.settle()
			if made.Stalled != nil {
				t.Fatalf("stalled:\n%s", made)
			}
			for _, name := range three {
				record := w.snapshot.Nodes[name].Record
				switch {
				case record == nil:
					t.Errorf("the record of %s does not come back", name)
				case name == late && (record.Spec.Member != nil || record.Spec.Join != nil):
					t.Errorf("the left-out node is a member %v with ticket %v", record.Spec.Member, record.Spec.Join)
				case name != late && (record.Spec.Member == nil || record.Spec.Member.HostID != before[name]):
					t.Errorf("node %s comes back as member %v, want %s", name, record.Spec.Member, before[name])
				}
			}
		})
	}
}

func TestALostLedgerDoesNotBringALeftOutNodeBack(t *testing.T) {
	late := "orders-dc1-r2-0"
	w := forming(t, v1alpha1.DiskJoining, late)
	w.now = w.now.Add(stragglerTimeout + time.Minute)
	w.settle()
	before := w.snapshot.Ledger.Members
	w.snapshot.Ledger = nil
	w.settle()
	if l := w.snapshot.Ledger; l.Step != nil || !maps.Equal(l.Members, before) {
		t.Errorf("step %+v, members %v; want none, and %v", l.Step, l.Members, before)
	}
}

// A latecomer that anybody sees in the ring is a member, whatever its agent says of the ticket.
func TestALatecomerThatIsInTheRingIsNotLeftOut(t *testing.T) {
	late := "orders-dc1-r2-0"
	w := forming(t, v1alpha1.DiskJoining, late)
	w.now = w.now.Add(stragglerTimeout + time.Minute)
	n := w.snapshot.Nodes[late]
	w.snapshot.Nodes["orders-dc1-r1-0"].Agent.Ring.Endpoints = append(w.endpoints(), facts.Endpoint{
		Address: n.Agent.Address, HostID: hostID(late), Status: facts.StatusNormal, Tokens: []int64{1},
	})
	made := Next(w.snapshot, w.now)
	if len(made.Writes) > 0 || len(made.Blocked) != 1 || made.Blocked[0].Reason != "StragglerInRing" {
		t.Errorf("want it blocked:\n%s", made)
	}
}

// Adopted nodes are members from the beginning. Those whose JVM has not started for this cluster
// are corrected all the same.
func TestAnAdoptedNodeThatDoesNotStartIsCorrected(t *testing.T) {
	w := forming(t, v1alpha1.DiskJoining, three...) // with a JVM that has ended
	l := w.snapshot.Ledger
	l.Formed, l.Members, l.Step.Kind, l.Step.Stage = []string{"dc1"}, map[string]string{}, ledger.AdoptRing,
		ledger.StageFormed
	for _, name := range three {
		l.Members[name] = hostID(name)
	}
	up := w.snapshot.Nodes["orders-dc1-r1-0"] // it waits for its turn
	up.Agent.Ring, up.Agent.Process = &facts.Ring{Mode: facts.ModeNormal}, facts.ProcessRunning
	w.change(setting("concurrent_reads", "16"))
	made := Next(w.snapshot, w.now)
	var corrected []string
	for _, write := range made.Writes {
		corrected = append(corrected, write.Object.GetName())
	}
	if !slices.Equal(corrected, []string{"orders-dc1-r2-0", "orders-dc1-r3-0"}) {
		t.Errorf("corrected %v, want those that do not run:\n%s", corrected, made)
	}
}

// A node that is to join a ring follows the spec in everything until it has a ticket: its pod is
// recreated, and a claim that has no volume.
func TestANewcomerThatCannotStartIsCorrected(t *testing.T) {
	const newcomer = "orders-dc2-r1-0"
	size := resource.MustParse("10Gi")
	for name, c := range map[string]struct {
		wrong             v1alpha1.NodeTemplate
		samePod, newClaim bool
	}{
		"a request that no host has room for": {wrong: v1alpha1.NodeTemplate{NodeSettings: v1alpha1.NodeSettings{
			Resources: &v1alpha1.Resources{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("900Gi")},
			},
		}}},
		"a place that does not exist": {
			wrong: v1alpha1.NodeTemplate{
				NodeSettings: v1alpha1.NodeSettings{Placement: &v1alpha1.Placement{Zone: "nowhere"}},
			},
		},
		"a setting": {
			wrong: v1alpha1.NodeTemplate{
				NodeSettings: v1alpha1.NodeSettings{
					CassandraYaml: v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")}},
				},
			},
			samePod: true,
		},
		"a class that does not exist": {
			wrong: v1alpha1.NodeTemplate{
				NodeSettings: v1alpha1.NodeSettings{
					Storage: &v1alpha1.Storage{Claims: &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: &size,
						StorageClassName: ptr("nothing")}}},
				},
			},
			newClaim: true,
		},
		"a volume too many": {
			wrong: v1alpha1.NodeTemplate{
				NodeSettings: v1alpha1.NodeSettings{
					Storage: &v1alpha1.Storage{
						Claims: &v1alpha1.StorageClaims{Commitlog: &v1alpha1.VolumeClaim{Size: &size}},
					},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			members := w.pods()
			w.absent[newcomer] = true
			w.change(func(s *v1alpha1.CassandraClusterSpec) {
				dc := added("dc2", 1)
				dc.Node = &c.wrong
				s.Datacenters = append(s.Datacenters, dc)
			})
			w.settle()
			n := w.snapshot.Nodes[newcomer]
			for _, claim := range n.Claims {
				claim.Claim.Status.Phase = corev1.ClaimPending
			}
			pod, claim := n.Pod.UID, n.Claims[v1alpha1.VolumeData].Claim.UID
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].Node = nil })
			if made := w.settle(); made.Stalled != nil {
				t.Fatalf("refused:\n%s", made)
			}
			if anew := n.Claims[v1alpha1.VolumeData].Claim.UID != claim; anew != c.newClaim {
				t.Errorf("its claim was recreated: %v", anew)
			}
			if same := n.Pod.UID == pod; same != c.samePod {
				t.Errorf("its pod is the same: %v", same)
			}
			if len(n.Claims) != 1 {
				t.Errorf("it has %d claims", len(n.Claims))
			}
			clear(w.absent)
			w.agents()
			w.settle()
			w.wantOpen()
			for name, uid := range members {
				if w.pods()[name] != uid {
					t.Errorf("pod of member %s was recreated", name)
				}
			}
			if len(w.snapshot.Ledger.Members) != 4 {
				t.Errorf("members %v", w.snapshot.Ledger.Members)
			}
		})
	}
}

// A claim that has a volume is a disk: only the user deletes one.
func TestAVolumeOfANewcomerIsNotTakenAway(t *testing.T) {
	const newcomer = "orders-dc2-r1-0"
	size := resource.MustParse("10Gi")
	for name, other := range map[string]*v1alpha1.StorageClaims{
		"another class":    {Data: &v1alpha1.VolumeClaim{Size: &size, StorageClassName: ptr("other")}},
		"one volume fewer": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			as := func(claims *v1alpha1.StorageClaims) func(*v1alpha1.CassandraClusterSpec) {
				return func(s *v1alpha1.CassandraClusterSpec) {
					dc := added("dc2", 1)
					dc.Node = &v1alpha1.NodeTemplate{
						NodeSettings: v1alpha1.NodeSettings{Storage: &v1alpha1.Storage{Claims: claims}},
					}
					s.Datacenters = append(s.Datacenters[:1:1], dc)
				}
			}
			first := &v1alpha1.StorageClaims{Commitlog: &v1alpha1.VolumeClaim{Size: &size}}
			w.absent[newcomer] = true
			w.change(as(first))
			w.settle()
			n := w.snapshot.Nodes[newcomer]
			claims, record := len(n.Claims), n.Record.Generation
			w.change(as(other))
			made := w.settle()
			if made.Stalled == nil || !strings.Contains(made.Stalled.Message, "is bound to a volume") ||
				!strings.Contains(made.Stalled.Message, newcomer) {
				t.Errorf("not refused in words:\n%s", made)
			}
			if len(n.Claims) != claims || n.Record.Generation != record {
				t.Error("something was changed all the same")
			}
			clear(w.absent)
			w.change(as(first))
			w.agents()
			w.settle()
			w.wantOpen()
		})
	}
}

// A member that was NORMAL with what its record says, and has a pod made from something else that
// does not come, gets another pod.
func TestThePodOfAMemberThatDoesNotComeIsMadeAsItsRecordSays(t *testing.T) {
	for what, up := range map[string]bool{"it does not come": false, "it runs": true} {
		t.Run(what, func(t *testing.T) {
			w := formed(t)
			n := w.snapshot.Nodes["orders-dc1-r2-0"]
			n.Record.Status.Proven = &v1alpha1.ProvenStatus{PodTemplate: render.PodHash(n.Record.Spec.Pod),
				Configuration: hashOf(&n.Record.Spec.Configuration)}
			n.Pod.Annotations[v1alpha1.AnnotationTemplateHash] = "broken"
			if !up {
				n.Agent.Ring, n.Agent.Process = nil, facts.ProcessUnknown
				n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
					Name: "cassandra", State: corev1.ContainerState{
						Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"},
					},
				}}
			}
			made := Next(w.snapshot, w.now)
			deleted := slices.ContainsFunc(made.Writes,
				func(w plan.Write) bool { return w.Verb == plan.Delete && w.Live && w.UID == n.Pod.UID })
			if deleted == up {
				t.Errorf("pod deleted: %v\n%s", deleted, made)
			}
		})
	}
}
