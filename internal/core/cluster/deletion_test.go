package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
)

func TestADeletedClusterStopsInOrderAndKeepsItsClaimsUnlessTold(t *testing.T) {
	for policy, left := range map[v1alpha1.ClaimPolicy]int{v1alpha1.ClaimRetain: 3, v1alpha1.ClaimDelete: 0} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t, datacenter("dc1", 1, 1, 1))
			w.snapshot.Cluster.Spec.Volumes.OnClusterDeletion = policy
			w.settle()
			w.deleteCluster()
			for range 30 {
				made := Next(w.snapshot, w.now)
				for _, write := range made.Writes {
					w.checkDeletion(write)
				}
				w.pass()
				if len(w.snapshot.Cluster.Finalizers) == 0 {
					break
				}
			}
			if len(w.snapshot.Cluster.Finalizers) != 0 {
				t.Fatalf("the cluster was not released:\n%s", Next(w.snapshot, w.now))
			}
			w.wantNames()
			if got := len(w.claims()); got != left {
				t.Errorf("%d claims left, want %d", got, left)
			}
			if w.snapshot.Ledger != nil {
				t.Error("the ledger is left")
			}
		})
	}
}

// checkDeletion: a pod goes only when its node is stopped, a claim only when no pod is left.
func (w *world) checkDeletion(write plan.Write) {
	w.t.Helper()
	if write.Verb != plan.Delete {
		return
	}
	switch o := write.Object.(type) {
	case *corev1.Pod:
		if phase := w.snapshot.Nodes[o.Name].Record.Status.Phase; phase != v1alpha1.PhaseStopped {
			w.t.Errorf("%s: its node is %s", write, phase)
		}
	case *corev1.PersistentVolumeClaim:
		for _, n := range w.snapshot.Nodes {
			if n.Pod != nil {
				w.t.Errorf("%s: pod %s is still there", write, n.Name)
			}
		}
	}
}

func TestADeletedClusterWaitsForAnAgentOnlySoLong(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.settle()
	w.absent["orders-dc1-r2-0"] = true
	w.agents()
	w.deleteCluster()
	for range 10 {
		w.pass()
	}
	if w.snapshot.Nodes["orders-dc1-r2-0"].Pod == nil {
		t.Fatal("the pod whose agent does not answer was deleted at once")
	}
	w.now = w.now.Add(5 * time.Minute)
	for range 10 {
		w.pass()
	}
	if len(w.snapshot.Cluster.Finalizers) != 0 {
		t.Fatalf("the cluster was not released:\n%s", Next(w.snapshot, w.now))
	}
}

func TestRetainedClaimsAreNotUsedUnlessAdopted(t *testing.T) {
	w := asSuccessor(t, retained(t), "")
	made := w.settle()
	wantStalled(t, made, v1alpha1.ReasonForeignDisks, "cluster-uid", "bootstrap.adopt")
	w.wantNames()
}

// A disk that is still of the earlier cluster is no member of this one, whatever is on it: the
// adoption is still to come.
func TestALedgerLostBeforeAnAdoptionIsRebuiltWithoutIt(t *testing.T) {
	w := asSuccessor(t, retained(t), "cluster-uid")
	for len(w.pods()) < len(three) {
		w.pass()
	}
	w.disks()
	w.snapshot.Ledger = nil
	for range 60 {
		w.pass()
		w.disks()
		if l := w.snapshot.Ledger; l != nil && l.IsFormed("dc1") && l.Step == nil {
			break
		}
	}
	w.settle()
	w.wantOpen()
	for _, n := range w.snapshot.Records() {
		if n.Record.Spec.Member == nil || n.Record.Spec.Member.HostID != hostID(n.Name) {
			t.Errorf("node %s: member %v", n.Name, n.Record.Spec.Member)
		}
	}
}

func TestAnEarlierClusterIsAdopted(t *testing.T) {
	old := retained(t)
	before := old.claims()
	w := asSuccessor(t, old, "cluster-uid")
	for range 60 {
		w.pass()
		w.disks()
		if l := w.snapshot.Ledger; l != nil && l.IsFormed("dc1") && l.Step == nil {
			break
		}
	}
	made := w.settle()
	if made.Stalled != nil {
		t.Fatalf("not adopted:\n%s", made)
	}
	w.wantOpen()
	for _, n := range w.snapshot.Records() {
		if n.Record.Spec.Member.HostID != hostID(n.Name) || n.Record.Spec.Cluster.AdoptedUID != "cluster-uid" {
			t.Errorf("node %s: member %v of adopted cluster %q", n.Name, n.Record.Spec.Member,
				n.Record.Spec.Cluster.AdoptedUID)
		}
		if n.Record.Spec.Join != nil {
			t.Errorf("node %s got a ticket", n.Name)
		}
		for _, c := range n.Record.Spec.Claims {
			if before[c.UID] == nil {
				t.Errorf("node %s uses claim %s, which the earlier cluster did not have", n.Name, c.Name)
			}
			// So that it can be adopted once more.
			if of := w.claims()[c.UID].Labels[v1alpha1.LabelClusterUID]; of != "second-uid" {
				t.Errorf("claim %s is still labelled as of cluster %q", c.Name, of)
			}
		}
	}
}

func TestAnAdoptionWithADiskMissingStartsNothing(t *testing.T) {
	t.Run("claim removed", func(t *testing.T) {
		old := retained(t)
		delete(old.snapshot.Nodes, "orders-dc1-r2-0")
		w := asSuccessor(t, old, "cluster-uid")
		made := w.settle()
		wantStalled(t, made, v1alpha1.ReasonAdoptionIncomplete, "data-orders-dc1-r2-0")
		w.wantNames()
	})
	t.Run("disk empty", func(t *testing.T) {
		w := asSuccessor(t, retained(t), "cluster-uid")
		var made plan.Plan
		for range 20 {
			made = w.pass()
			w.disks()
			if n := w.snapshot.Nodes["orders-dc1-r3-0"]; n.Agent != nil {
				n.Agent.Disk, n.Agent.Owner, n.Agent.HostID = v1alpha1.DiskEmpty, nil, ""
			}
		}
		wantStalled(t, made, v1alpha1.ReasonAdoptionIncomplete, "orders-dc1-r3-0")
		for _, n := range w.snapshot.Records() {
			if n.Record.Spec.Member != nil {
				t.Errorf("node %s became a member", n.Name)
			}
		}
	})
	t.Run("spec too small", func(t *testing.T) {
		w := asSuccessor(t, retained(t), "cluster-uid")
		w.snapshot.Cluster.Spec.Datacenters[0].Racks = w.snapshot.Cluster.Spec.Datacenters[0].Racks[:2]
		made := w.settle()
		wantStalled(t, made, v1alpha1.ReasonAdoptionIncomplete, "data-orders-dc1-r3-0")
		w.wantNames()
	})
}
