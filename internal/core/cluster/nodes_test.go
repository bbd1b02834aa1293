package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

func TestANodeWithoutItsDiskDoesNotHoldUpTheOthers(t *testing.T) {
	w := formed(t)
	for _, name := range []string{first, second} {
		w.snapshot.Nodes[name].Pod, w.snapshot.Nodes[name].Agent = nil, nil
	}
	delete(w.snapshot.Nodes[first].Claims, v1alpha1.VolumeData)
	made := next(w)
	wantWrites(t, made, first)
	wantWrites(t, made, second, "Create Pod")
	w.settle()
	made = next(w)
	for _, r := range made.Steps {
		if r.Step == "VolumesAndPods" && (r.Outcome != plan.Wait || r.Message != "1 node without all volumes") {
			t.Errorf("%+v", r)
		}
	}
	// With its pod still there the node is as well off as it can be.
	w = formed(t)
	delete(w.snapshot.Nodes[first].Claims, v1alpha1.VolumeData)
	delete(w.snapshot.Shared.Secrets, first+"-agent-tls")
	wantWrites(t, next(w), first+"-agent-tls", "IssueCertificate Secret")
}

func TestADeletedRecordHoldsUpItsOwnNodeAlone(t *testing.T) {
	w := formed(t)
	deleting(w.snapshot.Nodes[first])
	for _, name := range []string{first, second} {
		w.snapshot.Nodes[name].Pod, w.snapshot.Nodes[name].Agent = nil, nil
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Version = "4.1.10" }) // refused, so that the record stays
	made := next(w)
	wantWrites(t, made, first)
	wantWrites(t, made, second, "Create Pod")
}

// A record that was recreated pins nothing. Whatever its claims are by then, no new one is a
// member's.
func TestAMembersClaimIsNeverMadeAgain(t *testing.T) {
	w := formed(t)
	n := w.snapshot.Nodes[second]
	n.Pod, n.Agent, n.Record.Spec.Claims = nil, nil, nil
	delete(n.Claims, v1alpha1.VolumeData)
	made := next(w)
	wantWrites(t, made, second)
	wantWrites(t, made, "data-"+second)
	if len(made.Blocked) != 1 || made.Blocked[0].Reason != "MemberClaimMissing" ||
		!strings.Contains(made.Blocked[0].Message, "data-"+second) {
		t.Errorf("blocked %+v", made.Blocked)
	}
}

func TestClaimsOfANodeThatNeverHadATicket(t *testing.T) {
	larger := resource.MustParse("20Gi")
	claim := func(w *world) *facts.Claim { return w.snapshot.Nodes[second].Claims[v1alpha1.VolumeData] }
	unbound := func(w *world) { claim(w).Claim.Status.Phase = corev1.ClaimPending }
	grow := func(w *world) {
		w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Node.Storage.Claims.Data.Size = &larger })
		w.snapshot.Nodes[second].Record.Spec.Pod.Storage.Claims.Data.Size = &larger
	}
	noPod := func(w *world) { w.snapshot.Nodes[second].Pod = nil }
	for name, c := range map[string]struct {
		change  func(*world)
		ofClaim []string
		pod     bool
		stalled string
	}{
		"as it should be":      {noPod, nil, true, ""},
		"too small, not bound": {func(w *world) { noPod(w); unbound(w); grow(w) }, nil, false, ""},
		"too small, not bound, and pinned no more": {func(w *world) {
			noPod(w)
			unbound(w)
			grow(w)
			w.snapshot.Nodes[second].Record.Spec.Claims = nil
		}, []string{"Delete PersistentVolumeClaim"}, false, ""},
		"too small, bound": {func(w *world) {
			noPod(w)
			grow(w)
		}, nil, true, "node.storage: volume data: 10Gi → 20Gi: claim data-" + second},
		"too small, its volume is chosen": {func(w *world) {
			noPod(w)
			unbound(w)
			grow(w)
			claim(w).Claim.Spec.VolumeName = "v"
		}, nil, true, "10Gi → 20Gi"},
		"too small, and it goes already": {func(w *world) {
			noPod(w)
			unbound(w)
			grow(w)
			now := metav1.Now()
			claim(w).Claim.DeletionTimestamp = &now
		}, nil, false, ""},
		"too small, of another cluster": {func(w *world) {
			noPod(w)
			unbound(w)
			grow(w)
			claim(w).Claim.Labels[v1alpha1.LabelClusterUID] = "other"
		}, nil, true, ""},
		"gone": {func(w *world) { noPod(w); delete(w.snapshot.Nodes[second].Claims, v1alpha1.VolumeData) }, nil, false,
			""},
		"gone, and pinned no more": {func(w *world) {
			noPod(w)
			delete(w.snapshot.Nodes[second].Claims, v1alpha1.VolumeData)
			w.snapshot.Nodes[second].Record.Spec.Claims = nil
		}, []string{"Create PersistentVolumeClaim"}, false, ""},
		"not pinned, and nobody's": {func(w *world) {
			noPod(w)
			claim(w).Claim.Labels, w.snapshot.Nodes[second].Record.Spec.Claims = nil, nil
		}, nil, false, ""},
		"another one of this cluster": {func(w *world) { noPod(w); claim(w).Claim.UID = "another" }, nil, false, ""},
		"another one that nobody knows": {func(w *world) {
			noPod(w)
			claim(w).Claim.UID = "another"
			claim(w).Claim.Labels = nil
		}, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := preparing(t)
			c.change(w)
			keeper, made := keeperOver(viewOf(w))
			keeper.VolumesAndPods()
			wantWrites(t, made.Plan, "data-"+second, c.ofClaim...)
			if pod := slices.Contains(writesOf(made.Plan, second), "Create Pod"); pod != c.pod {
				t.Errorf("a pod is made: %v, want %v:\n%s", pod, c.pod, made.Plan)
			}
			if c.stalled == "" && made.Stalled != nil {
				t.Errorf("stalled: %+v", made.Stalled)
			} else if c.stalled != "" {
				wantStalled(t, made.Plan, v1alpha1.ReasonUnsupportedChange, c.stalled)
			}
		})
	}
}

// Should the ledger be lost between the two writes, a record that pins a claim which is gone would
// be that of a member whose disk is lost.
func TestARecordDoesNotPinAClaimThatIsDeleted(t *testing.T) {
	larger := resource.MustParse("20Gi")
	for name, change := range map[string]func(*v1alpha1.CassandraClusterSpec){
		"made anew": func(s *v1alpha1.CassandraClusterSpec) { s.Node.Storage.Claims.Data.Size = &larger },
		"let go":    func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks = s.Datacenters[0].Racks[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			w := preparing(t)
			n := w.snapshot.Nodes[second]
			n.Claims[v1alpha1.VolumeData].Claim.Status.Phase = corev1.ClaimPending
			uid := n.Claims[v1alpha1.VolumeData].Claim.UID
			w.change(change)
			for range 20 {
				for _, write := range next(w).Writes {
					if write.Verb == plan.Delete && write.UID == uid && len(n.Record.Spec.Claims) > 0 {
						t.Fatalf("the record pins %v when the claim is deleted", n.Record.Spec.Claims)
					}
					w.do(write)
				}
				if c := n.Claims[v1alpha1.VolumeData]; c == nil || c.Claim == nil || c.Claim.UID != uid {
					return
				}
			}
			t.Errorf("the claim is still there:\n%s", next(w))
		})
	}
}

func TestWhenACertificateIsIssuedAgain(t *testing.T) {
	renewAfter := func(w *world, d time.Duration) string { return w.now.Add(d).Format(time.RFC3339) }
	for name, c := range map[string]struct {
		change func(w *world, secret *corev1.Secret)
		issued bool
		wake   time.Duration
	}{
		"it is young": {func(w *world, secret *corev1.Secret) {
			secret.Annotations[v1alpha1.AnnotationRenewAfter] = renewAfter(w, time.Hour)
		}, false, 10 * time.Minute},
		"its time comes soon": {func(w *world, secret *corev1.Secret) {
			secret.Annotations[v1alpha1.AnnotationRenewAfter] = renewAfter(w, time.Minute)
		}, false, time.Minute},
		"its time has come": {func(w *world, secret *corev1.Secret) {
			secret.Annotations[v1alpha1.AnnotationRenewAfter] = renewAfter(w, 0)
		}, true, time.Second},
		"nobody knows its time": {func(_ *world, secret *corev1.Secret) { secret.Annotations = nil }, true, time.Second},
		"it is another record's": {func(_ *world, secret *corev1.Secret) {
			secret.OwnerReferences[0].UID = "x"
		}, true, time.Second},
		"there is none": {func(w *world, secret *corev1.Secret) { delete(w.snapshot.Shared.Secrets, secret.Name) }, true, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			name := second + "-agent-tls"
			c.change(w, w.snapshot.Shared.Secrets[name])
			made := next(w)
			issued := slices.IndexFunc(made.Writes, func(w plan.Write) bool {
				return w.Verb == plan.IssueCertificate && w.Object.GetName() == name
			})
			if (issued >= 0) != c.issued || made.Wake != c.wake {
				t.Fatalf("issued: %v, wakes in %s; want %v, %s", issued >= 0, made.Wake, c.issued, c.wake)
			}
			if c.issued && (w.snapshot.Shared.Secrets[name] == nil) != (made.Writes[issued].UID == "") {
				t.Errorf("issued on uid %q", made.Writes[issued].UID)
			}
		})
	}
}

// Pods of nodes that are to start anew go one at a time, each looked at live; those of nodes
// without a ticket go together.
func TestPodsOfAnotherSpecAreMadeAnew(t *testing.T) {
	image := func(name string) func(*v1alpha1.CassandraClusterSpec) {
		return func(s *v1alpha1.CassandraClusterSpec) { s.Image = name }
	}
	w := forming(t, v1alpha1.DiskJoining, three...)
	w.change(image("one"))
	w.pass()
	made := next(w)
	wantWrites(t, made, first, "Delete Pod")
	wantWrites(t, made, second)
	w.change(image("two")) // the records follow once more, the first of them live
	made = next(w)
	wantWrites(t, made, first, "Apply CassandraNode", "Delete Pod")
	wantWrites(t, made, second, "Apply CassandraNode")

	w = preparing(t)
	w.change(image("one"))
	w.pass()
	made = next(w)
	for _, name := range three {
		wantWrites(t, made, name, "Delete Pod")
	}
	for _, write := range made.Writes {
		if write.Live {
			t.Errorf("live: %s", write)
		}
	}
}

func TestASpecIsRefusedForEachOfItsFaults(t *testing.T) {
	ours := &runtime.RawExtension{Raw: []byte(`{"spec":{"serviceAccountName":"mine"}}`)}
	for name, c := range map[string]struct {
		change func(*v1alpha1.CassandraClusterSpec)
		reason string
		words  []string
	}{
		"a setting of the second rack": {func(s *v1alpha1.CassandraClusterSpec) {
			settings := v1alpha1.Settings{"concurent_reads": {Raw: []byte("16")}}
			s.Datacenters[0].Racks[1].Node = &v1alpha1.NodeSettings{CassandraYaml: settings}
		}, v1alpha1.ReasonUnknownSetting, []string{"rack dc1/r2", "concurent_reads"}},
		"two datacenters of one name": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters = append(s.Datacenters, datacenter("dc2", 1))
			s.Datacenters[1].DatacenterName = "dc1"
		}, v1alpha1.ReasonInvalidSpec, []string{`datacenters dc1 and dc2 have the same datacenterName "dc1"`}},
		"its own disks to adopt": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Bootstrap = adopting("cluster-uid")
		}, v1alpha1.ReasonInvalidSpec, []string{"the uid of this cluster itself"}},
		"no data volume": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Storage = &v1alpha1.Storage{}
		}, v1alpha1.ReasonInvalidSpec, []string{"node.storage.claims.data.size is not set for datacenter dc1"}},
		"no size of it": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Storage.Claims.Data = &v1alpha1.VolumeClaim{}
		}, v1alpha1.ReasonInvalidSpec, []string{"node.storage.claims.data.size is not set"}},
		"a part of a rack that is no node": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Disruption.MaxUnavailable = ptr(intstr.FromString("50%"))
		}, v1alpha1.ReasonInvalidSpec, []string{"disruption.maxUnavailable is 50%", "of rack dc1/r2", "at least 100%"}},
		"an overlay on what is ours": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Overlay = ours
		}, v1alpha1.ReasonInvalidSpec, []string{"belongs to Helenus"}},
		"an overlay on a label of the second rack": {func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Overlay = &runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"team":"a"}}}`)}
			metadata := &v1alpha1.Metadata{Labels: map[string]string{"team": "b"}}
			s.Datacenters[0].Racks[1].Node = &v1alpha1.NodeSettings{Metadata: metadata}
		}, v1alpha1.ReasonInvalidSpec, []string{"metadata.labels[team] belongs to Helenus"}},
		"an overlay of another datacenter, on a rack of the same name": {func(s *v1alpha1.CassandraClusterSpec) {
			other := datacenter("dc2", 1)
			other.Racks[0].Name, other.Node = s.Datacenters[0].Racks[1].Name, &v1alpha1.NodeTemplate{Overlay: ours}
			s.Datacenters = append(s.Datacenters, other)
		}, v1alpha1.ReasonInvalidSpec, []string{"belongs to Helenus"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, datacenter("dc1", 2, 1))
			w.change(c.change)
			made := w.settle()
			wantStalled(t, made, c.reason, c.words...)
			w.wantNames()
			if len(made.Blocked) > 0 {
				t.Errorf("blocked %+v", made.Blocked)
			}
		})
	}
	// A spec that is refused before the ring forms leaves nobody behind.
	w := preparing(t)
	w.change(setting("concurent_reads", "16"))
	if made := w.settle(); made.Stalled == nil || len(made.Blocked) > 0 {
		t.Errorf("want it stalled and nobody blocked:\n%s", made)
	}
}

func TestNodesThatTheOpenStepDoesNotHaveAreRefused(t *testing.T) {
	w := forming(t, v1alpha1.DiskJoining, three...)
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	wantStalled(t, next(w), v1alpha1.ReasonUnsupportedChange,
		"the spec has 1 node that the ring does not have (orders-dc1-r1-1)")
}
