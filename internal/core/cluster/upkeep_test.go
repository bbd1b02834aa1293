package cluster

import (
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

func TestAMissingPodIsMadeAgainOnItsClaim(t *testing.T) {
	w := formed(t)
	n := w.snapshot.Nodes["orders-dc1-r2-0"]
	claim := n.Claims["data"].Claim.UID
	n.Pod, n.Agent = nil, nil
	made := w.pass()
	if n.Pod == nil {
		t.Fatalf("no pod was made:\n%s", made)
	}
	if n.Claims["data"].Claim.UID != claim || n.Record.Spec.Claims[0].UID != claim {
		t.Error("the pod has another claim")
	}
}

func TestAMemberNeverStartsOnAnotherDisk(t *testing.T) {
	for name, lose := range map[string]func(*facts.Node){
		"claim gone":           func(n *facts.Node) { delete(n.Claims, "data") },
		"claim made by others": func(n *facts.Node) { n.Claims["data"].Claim.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			n := w.snapshot.Nodes["orders-dc1-r2-0"]
			n.Pod, n.Agent = nil, nil
			lose(n)
			made := w.settle()
			if n.Pod != nil {
				t.Fatalf("a pod was made on another disk:\n%s", made)
			}
			if len(made.Blocked) != 1 || made.Blocked[0].Reason != "MemberClaimMissing" {
				t.Errorf("blocked %+v", made.Blocked)
			}
			if len(n.Claims) > 0 && n.Claims["data"].Claim.UID != "another" {
				t.Error("a claim was made")
			}
		})
	}
}

func TestADeletedRecordIsMadeAnewAndItsPodRunsOn(t *testing.T) {
	w := formed(t)
	n := w.snapshot.Nodes["orders-dc1-r2-0"]
	pod := n.Pod.UID
	when := metav1.NewTime(w.now)
	n.Record.DeletionTimestamp = &when
	old := n.Record.UID
	for range 5 {
		made := Next(w.snapshot, w.now)
		for _, write := range made.Writes {
			if write.Verb == plan.Release && n.Pod != nil && facts.Owned(n.Pod, string(old)) &&
				made.Writes[0].Verb != plan.SetOwners {
				t.Fatalf("the record was released while it owned the pod:\n%s", made)
			}
		}
		w.pass()
	}
	if n.Record == nil || n.Record.UID == old {
		t.Fatal("the record was not made anew")
	}
	if n.Pod == nil || n.Pod.UID != pod {
		t.Fatal("the pod did not stay")
	}
	if !facts.Owned(n.Pod, string(n.Record.UID)) {
		t.Error("the pod was not taken back")
	}
	if n.Record.Spec.Member == nil || n.Record.Spec.Member.HostID != hostID(n.Name) ||
		n.Record.Spec.ClientTraffic != v1alpha1.TrafficOpen || n.Record.Spec.Join != nil {
		t.Errorf("the new record has another identity: %+v", n.Record.Spec)
	}
	if len(n.Record.Spec.Claims) != 1 || n.Record.Spec.Claims[0].UID != n.Claims["data"].Claim.UID {
		t.Errorf("the new record pins %v", n.Record.Spec.Claims)
	}
}

// The agent that has begun by a ticket says so in the status of the new record, after which the
// ticket could not be written into it any more.
func TestARecordThatIsMadeAnewWhileTheRingFormsHasItsTicketAtOnce(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.late["orders-dc1-r2-0"] = true
	w.settle()
	n := w.snapshot.Nodes["orders-dc1-r2-0"]
	had := n.Record.Spec.Join
	n.Record = nil
	for _, write := range Next(w.snapshot, w.now).Writes {
		if record, ok := write.Object.(*v1alpha1.CassandraNode); ok && write.Verb == plan.Create {
			if got := record.Spec.Join; got == nil || got.ID != had.ID || !slices.Equal(got.Tokens, had.Tokens) {
				t.Errorf("the new record has the ticket %+v, want %+v", got, had)
			}
			return
		}
	}
	t.Error("the record is not made anew")
}

// What an agent has done by an intent counts, also when the record that had the intent was deleted
// since.
func TestARecordThatIsMadeAnewAfterTheSystemKeyspacesWereSet(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	for range 100 {
		w.pass()
		if s := w.snapshot.Ledger.Step; s != nil && s.Stage == ledger.StageKeyspaces {
			break
		}
	}
	n := w.snapshot.Nodes["orders-dc1-r1-0"]
	id := n.Record.Spec.Operations[0].ID
	n.Record.Spec.Operations, n.Record.Spec.ClientTraffic = nil, v1alpha1.TrafficClosed
	n.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: id, Phase: v1alpha1.OperationSucceeded}}
	for _, write := range Next(w.snapshot, w.now).Writes {
		if record, ok := write.Object.(*v1alpha1.CassandraNode); ok && len(record.Spec.Operations) > 0 {
			t.Fatalf("the intent %s is written again, which the API refuses", record.Spec.Operations[0].ID)
		}
	}
	w.settle()
	w.wantOpen()
}

// Its Secret goes with the record that it was issued for.
func TestARecordThatIsMadeAnewGetsACertificateOfItsOwn(t *testing.T) {
	w := formed(t)
	n := w.snapshot.Nodes["orders-dc1-r2-0"]
	n.Record.UID = "another"
	for _, write := range Next(w.snapshot, w.now).Writes {
		if write.Verb == plan.IssueCertificate && write.Node == n.Name && write.UID == w.snapshot.Shared.Secrets[write.Object.GetName()].UID &&
			facts.Owned(write.Object, "another") {
			return
		}
	}
	t.Error("no certificate is issued for the new record")
}

func TestAChangeThatIsNotSupportedChangesNothing(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.CassandraClusterSpec){
		"version": func(s *v1alpha1.CassandraClusterSpec) { s.Version = "4.1.10" },
		"tokens":  func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NumTokens = 8 },
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			change(&w.snapshot.Cluster.Spec)
			w.snapshot.Cluster.Generation++
			made := w.pass()
			wantStalled(t, made, v1alpha1.ReasonUnsupportedChange)
			if len(made.Writes) != 0 {
				t.Errorf("want no write:\n%s", made)
			}
			// What exists is kept going all the same.
			n := w.snapshot.Nodes["orders-dc1-r2-0"]
			image := n.Pod.Spec.Containers[0].Image
			n.Pod, n.Agent = nil, nil
			w.settle()
			if n.Pod == nil || n.Pod.Spec.Containers[0].Image != image {
				t.Error("the missing pod was not made again as it was")
			}
		})
	}
}

// Invariant I12 in the small.
func TestAnotherInstallationChangesAgentsAlone(t *testing.T) {
	w := formed(t)
	w.snapshot.Install = facts.Install{Version: "next", ImageRepository: "mirror/cassandra",
		AgentImage: "helenus-agent:next"}
	made := w.pass()
	others := slices.DeleteFunc(slices.Clone(made.Writes), func(write plan.Write) bool {
		pod, _ := write.Object.(*corev1.Pod)
		return write.Verb == plan.Event || pod != nil && write.Verb == plan.Change &&
			reflect.DeepEqual(pod.Spec.Containers, write.Seen.(*corev1.Pod).Spec.Containers)
	})
	if len(made.Writes) == 0 || len(others) > 0 || made.Stalled != nil {
		t.Errorf("want the image of agents alone:\n%s", made)
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Version = "4.1.10" })
	wantStalled(t, w.pass(), v1alpha1.ReasonUnsupportedChange, "version: 5.0.6 → 4.1.10: Cassandra 4.1 does not read")
}

func TestAnUnknownSettingIsRefusedBeforeAnythingIsMade(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.snapshot.Cluster.Spec.Node.CassandraYaml = v1alpha1.Settings{"concurent_reads": {Raw: []byte("16")}}
	made := w.settle()
	wantStalled(t, made, v1alpha1.ReasonUnknownSetting, "concurent_reads", "concurrent_reads")
	w.wantNames()
}

func TestAnIdleClusterIsLeftAlone(t *testing.T) {
	w := formed(t)
	for range 3 {
		if made := w.pass(); len(made.Writes) > 0 {
			t.Fatalf("want no write:\n%s", made)
		}
	}
}

func TestSharedObjectsAreRestored(t *testing.T) {
	w := formed(t)
	s := &w.snapshot.Shared
	delete(s.Services, "orders")
	delete(s.Roles, v1alpha1.AgentServiceAccountName("orders"))
	delete(s.Budgets, "orders-dc1")
	s.Services["orders-dc1"].Spec.Selector = map[string]string{"app": "other"}
	w.settle()
	if s.Services["orders"] == nil || s.Roles[v1alpha1.AgentServiceAccountName("orders")] == nil ||
		s.Budgets["orders-dc1"] == nil {
		t.Error("a deleted object was not restored")
	}
	if s.Services["orders-dc1"].Spec.Selector["app"] != "" {
		t.Error("an edited service was not restored")
	}
	if got := s.Budgets["orders-dc1"].Spec.MinAvailable.IntValue(); got != 2 {
		t.Errorf("minAvailable %d, want all but one of three", got)
	}
}

func TestAPausedClusterBeginsNothing(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.snapshot.Cluster.Spec.Paused = true
	w.settle()
	if w.snapshot.Ledger.Step != nil {
		t.Error("a step was opened")
	}
	w.snapshot.Cluster.Spec.Paused = false
	w.settle()
	w.wantOpen()
}

func TestForeignObjectsUnderOurNamesStall(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1))
	w.snapshot.Foreign = []facts.ObjectName{{Kind: "Service", Name: "orders"}}
	made := w.settle()
	wantStalled(t, made, v1alpha1.ReasonNameTaken, "Service/orders")
	if made.Wake > 5*time.Second {
		t.Errorf("looks again after %s; nothing else tells that the object is gone", made.Wake)
	}
	w.wantNames()
}

func TestAnEarlierClusterOfTheNameIsWaitedFor(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1))
	w.snapshot.Predecessor = []facts.ObjectName{{Kind: "Pod", Name: "orders-dc1-r1-0"}}
	if made := w.settle(); len(made.Steps) == 0 || made.Steps[len(made.Steps)-1].Step != "Ownership" {
		t.Errorf("want the pass to end at Ownership:\n%s", made)
	} else if made.Wake > 5*time.Second {
		t.Errorf("looks again after %s; nothing else tells that the object is gone", made.Wake)
	}
	w.now = w.snapshot.Cluster.CreationTimestamp.Add(time.Minute)
	wantStalled(t, w.settle(), v1alpha1.ReasonLeftovers,
		"Pod/orders-dc1-r1-0", "kubectl helenus clear-leftovers orders --namespace shop")
	w.wantNames()
	w.snapshot.Predecessor = nil
	w.settle()
	w.wantOpen()
}

func TestARecordIsNotMadeAgainFromASpecThatIsRefused(t *testing.T) {
	w := formed(t)
	n := w.snapshot.Nodes["orders-dc1-r2-0"]
	record := n.Record
	when := metav1.NewTime(w.now)
	record.DeletionTimestamp = &when
	w.snapshot.Cluster.Spec.Version = "4.1.10"
	w.settle()
	if n.Record != record || !facts.Owned(n.Pod, string(record.UID)) {
		t.Fatal("the record was let go although the spec from which it would be made again is refused")
	}
	n.Record = nil // somebody took its finalizer
	made := w.settle()
	if n.Record != nil {
		t.Fatalf("the record was made again from a refused spec:\n%s", made)
	}
	w.snapshot.Cluster.Spec.Version = "5.0.6"
	w.settle()
	if n.Record == nil || n.Record.Spec.Configuration.Version != "5.0.6" {
		t.Error("the record was not made again when the spec was corrected")
	}
}
