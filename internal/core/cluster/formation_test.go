package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
)

func TestARingFormsAndOpens(t *testing.T) {
	for name, datacenters := range map[string][]v1alpha1.Datacenter{
		"one node":         {datacenter("dc1", 1)},
		"three racks":      {datacenter("dc1", 1, 1, 1)},
		"uneven racks":     {datacenter("dc1", 2, 1, 3)},
		"two datacenters":  {datacenter("dc1", 1, 1, 1), datacenter("dc2", 1, 1)},
		"nine in one rack": {datacenter("dc1", 9)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, datacenters...)
			made := w.settle()
			if made.Stalled != nil || len(made.Blocked) != 0 {
				t.Errorf("after formation: %s", made)
			}
			w.wantOpen()
			for _, dc := range datacenters {
				if !w.snapshot.Ledger.IsFormed(dc.Name) {
					t.Errorf("datacenter %s is not formed in the ledger", dc.Name)
				}
			}
			taken := map[string]string{}
			for _, n := range w.snapshot.Records() {
				for _, token := range n.Record.Status.Tokens {
					if other, twice := taken[token]; twice {
						t.Errorf("nodes %s and %s both have token %s", other, n.Name, token)
					}
					taken[token] = n.Name
				}
			}
			if !slices.Contains(w.events, "ClusterFormed") {
				t.Errorf("events %v lack ClusterFormed", w.events)
			}
		})
	}
}

// Invariant I11 in the small: no client is let in anywhere before every node is a member by its
// record.
func TestNoClientComesInBeforeTheRingStands(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	for range 60 {
		w.pass()
		opened := false
		for _, n := range w.snapshot.Records() {
			opened = opened || n.Record.Spec.ClientTraffic != v1alpha1.TrafficClosed
		}
		if !opened {
			continue
		}
		for _, n := range w.snapshot.Records() {
			if n.Record.Spec.Member == nil || n.Record.Spec.Join != nil {
				t.Fatalf("a node is open to clients while %s is not a member", n.Name)
			}
		}
		if !w.snapshot.Ledger.TrafficAllowed {
			t.Fatal("a node is open to clients and the ledger does not know")
		}
		return
	}
	t.Fatal("no node was ever opened")
}

func TestNoTicketBeforeEveryAgentHasAnswered(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.absent["orders-dc1-r2-0"] = true
	made := w.settle()
	if w.snapshot.Ledger.Step != nil {
		t.Fatalf("a step is open although one disk is unknown:\n%s", made)
	}
	if len(made.Blocked) != 1 || made.Blocked[0].Reason != "InitialNodeNotReady" ||
		!slices.Equal(made.Blocked[0].Nodes, []string{"orders-dc1-r2-0"}) {
		t.Errorf("blocked %+v, want the node that did not answer", made.Blocked)
	}
	// The user may lower the size instead.
	w.snapshot.Cluster.Spec.Datacenters[0].Racks = slices.Delete(w.snapshot.Cluster.Spec.Datacenters[0].Racks, 1, 2)
	w.snapshot.Cluster.Generation++
	w.settle()
	w.wantNames("orders-dc1-r1-0", "orders-dc1-r3-0")
	w.wantOpen()
}

func TestADiskThatIsNotEmptyIsNeitherUsedNorWiped(t *testing.T) {
	for _, disk := range []v1alpha1.DiskState{v1alpha1.DiskMember, v1alpha1.DiskForeign, v1alpha1.DiskUnreadable,
		v1alpha1.DiskLeft, v1alpha1.DiskJoining} {
		t.Run(string(disk), func(t *testing.T) {
			w := newWorld(t, datacenter("dc1", 1, 1, 1))
			for range 20 {
				w.pass()
				if n := w.snapshot.Nodes["orders-dc1-r1-0"]; n != nil && n.Agent != nil {
					n.Agent.Disk = disk
				}
				if w.snapshot.Ledger.Step != nil {
					break
				}
			}
			made := Next(w.snapshot, w.now)
			wantStalled(t, made, v1alpha1.ReasonForeignDisks, "orders-dc1-r1-0", string(disk))
			if w.snapshot.Ledger.Step != nil {
				t.Error("a step was opened all the same")
			}
		})
	}
}

func TestALatecomerIsWithdrawnAndWaitsOutside(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	late := "orders-dc1-r2-0"
	w.late[late] = true
	made := w.settle()
	if w.snapshot.Ledger.Step == nil || made.Wake > interval {
		t.Fatalf("the formation should wait for the latecomer, and look again in time:\n%s", made)
	}
	w.now = w.now.Add(stragglerTimeout - 30*time.Second)
	if made := w.settle(); w.snapshot.Nodes[late].Record.Spec.Join.Withdraw != nil {
		t.Fatalf("withdrawn before its time:\n%s", made)
	}
	w.now = w.now.Add(time.Minute)
	made = w.settle()
	if w.snapshot.Ledger.Step != nil {
		t.Fatalf("the formation did not go on without the latecomer:\n%s", made)
	}
	if len(made.Blocked) != 1 || !slices.Equal(made.Blocked[0].Nodes, []string{late}) {
		t.Errorf("blocked %+v, want the latecomer", made.Blocked)
	}
	for _, n := range w.snapshot.Records() {
		want := v1alpha1.TrafficOpen
		if n.Name == late {
			want = v1alpha1.TrafficClosed
		}
		if n.Record.Spec.ClientTraffic != want {
			t.Errorf("node %s has traffic %s, want %s", n.Name, n.Record.Spec.ClientTraffic, want)
		}
	}
	if _, member := w.snapshot.Ledger.Members[late]; member {
		t.Error("the latecomer is a member in the ledger")
	}
}

// The others not being a ring among themselves is never the latecomer's fault, so it is no reason
// to leave it out.
func TestNobodyIsWithdrawnWhileTheOthersDisagree(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.late["orders-dc1-r2-0"] = true
	w.settle()
	w.now = w.now.Add(2 * stragglerTimeout)
	w.snapshot.Nodes["orders-dc1-r1-0"].Agent.Ring.SchemaVersion = "another"
	if made := Next(w.snapshot, w.now); len(made.Writes) != 0 {
		t.Fatalf("want no write:\n%s", made)
	}
}

func TestSeedsAreTicketHoldersWhileFormingAndMembersAfterwards(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 2, 2, 2))
	w.settle()
	seeds := strings.Split(w.snapshot.Shared.ConfigMaps["orders-seeds"].Data["seeds"], ",")
	if len(seeds) != 3 {
		t.Fatalf("seeds %v, want one for each rack", seeds)
	}
	// A seed's pod comes back with another address: the list follows.
	n := w.snapshot.Nodes["orders-dc1-r1-0"]
	n.Pod.Status.PodIP = "10.9.9.9"
	n.Agent.Address = "10.9.9.9"
	w.settle()
	if got := w.snapshot.Shared.ConfigMaps["orders-seeds"].Data["seeds"]; !strings.Contains(got, "10.9.9.9") {
		t.Errorf("seeds %q do not follow the new address", got)
	}
}

// While tickets are out a corrected image gives every node a pod at another address: the seeds
// follow, whatever the ring begins with.
func TestSeedsFollowThePodsWhileTheRingForms(t *testing.T) {
	for name, begun := range map[string]func() *world{
		"empty":         func() *world { return newWorld(t, datacenter("dc1", 1, 1, 1)) },
		"from a backup": func() *world { return restoring(t, 1, 1, 1) },
		"from a backup of another shape": func() *world {
			w := restoring(t, 1, 1, 1)
			w.snapshot.Backup.Description.Nodes = w.snapshot.Backup.Description.Nodes[1:]
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begun()
			for _, name := range three {
				w.late[name] = true
			}
			w.settle()
			before := w.pods()
			w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Image = "elsewhere/cassandra:5.0.6" })
			w.settle()
			var want []string
			for _, name := range three {
				n := w.snapshot.Nodes[name]
				if n.Record.Spec.Join == nil || n.Pod.UID == before[name] {
					t.Fatalf("%s has no ticket, or its former pod", name)
				}
				want = append(want, n.Pod.Status.PodIP)
			}
			slices.Sort(want)
			if got := w.snapshot.Shared.ConfigMaps["orders-seeds"].Data["seeds"]; got != strings.Join(want, ",") {
				t.Errorf("seeds %s, the pods are at %v", got, want)
			}
		})
	}
}

func TestTheOpenStepIsContinuedWhateverTheSpecSaysNow(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	for w.snapshot.Ledger == nil || w.snapshot.Ledger.Step == nil {
		w.pass()
	}
	before := w.snapshot.Ledger.Copy()
	w.snapshot.Cluster.Spec.Datacenters[0].Racks[0].Nodes = ptr(int32(2))
	w.snapshot.Cluster.Generation++
	wantStalled(t, w.pass(), v1alpha1.ReasonUnsupportedChange, "orders-dc1-r1-1", "a ring grows when it has formed")
	w.wantNames("orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0")
	w.settle() // and then it grows
	w.wantNames("orders-dc1-r1-0", "orders-dc1-r1-1", "orders-dc1-r2-0", "orders-dc1-r3-0")
	w.wantOpen()
	for name, tokens := range ticket.Of(before.Step).Tokens {
		if got := w.snapshot.Nodes[name].Record.Status.Tokens; !slices.Equal(got, tokens) {
			t.Errorf("node %s has tokens %v, its ticket said %v", name, got, tokens)
		}
	}
}

func TestALostLedgerIsRebuilt(t *testing.T) {
	for _, stage := range []ledger.Stage{ledger.StageTickets, ledger.StageFormed, ledger.StageKeyspaces,
		ledger.StageOpen, ""} {
		t.Run("stage "+string(stage), func(t *testing.T) {
			w := newWorld(t, datacenter("dc1", 1, 1, 1))
			for range 100 {
				w.pass()
				if l := w.snapshot.Ledger; l.Step != nil && l.Step.Stage == stage ||
					stage == "" && l.IsFormed("dc1") && l.Step == nil {
					break
				}
			}
			tokens := map[string][]string{}
			for _, n := range w.snapshot.Records() {
				tokens[n.Name] = n.Record.Status.Tokens
			}
			w.snapshot.Ledger = nil
			w.absent["orders-dc1-r2-0"] = true
			w.agents()
			if n := w.snapshot.Nodes["orders-dc1-r2-0"]; n.Record.Spec.Member == nil {
				if made := w.settle(); w.snapshot.Ledger != nil {
					t.Fatalf("rebuilt although one disk is unknown:\n%s", made)
				}
			}
			delete(w.absent, "orders-dc1-r2-0")
			w.agents()
			w.settle()
			w.wantOpen()
			if !w.snapshot.Ledger.IsFormed("dc1") || len(w.snapshot.Ledger.Members) != 3 {
				t.Errorf("ledger %+v, want a formed datacenter with three members", w.snapshot.Ledger)
			}
			for name, had := range tokens {
				if got := w.snapshot.Nodes[name].Record.Status.Tokens; had != nil && !slices.Equal(got, had) {
					t.Errorf("node %s has tokens %v, had %v", name, got, had)
				}
			}
		})
	}
}

// The disks can only be asked through pods, so what pods need is made although the ledger is lost.
func TestALedgerLostBeforeThePodsAreThereIsRebuilt(t *testing.T) {
	for after := 1; ; after++ {
		w := newWorld(t, datacenter("dc1", 1, 1, 1))
		for range after {
			w.pass()
		}
		if w.snapshot.Ledger.Step != nil {
			break
		}
		w.snapshot.Ledger = nil
		w.settle()
		if w.snapshot.Ledger == nil || !w.snapshot.Ledger.IsFormed("dc1") {
			t.Fatalf("lost after pass %d: not rebuilt:\n%s", after, Next(w.snapshot, w.now))
		}
		w.wantOpen()
	}
}

// A node that is administered lets no client in yet: alone it was taken for a ring that serves, and
// stayed as it was.
func TestALedgerLostWhileTheSystemKeyspacesAreSetIsRebuilt(t *testing.T) {
	for _, size := range []int32{1, 3} {
		w := newWorld(t, datacenter("dc1", size))
		administered := func() bool {
			return slices.ContainsFunc(w.snapshot.Records(),
				func(n *facts.Node) bool { return n.Record.Spec.ClientTraffic == v1alpha1.TrafficAdministrative })
		}
		for range 60 {
			if w.pass(); administered() {
				break
			}
		}
		if !administered() {
			t.Fatal("no node is administered")
		}
		w.snapshot.Ledger = nil
		w.settle()
		w.wantOpen()
	}
}

// A claim that is pinned may have been a member's, as long as nobody has said otherwise.
func TestAPinnedClaimIsNotMadeAgainWhileTheLedgerIsLost(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.settle()
	n := w.snapshot.Nodes["orders-dc1-r2-0"]
	n.Record.Spec.Member, n.Record.Status.HostID = nil, ""
	n.Pod, n.Agent = nil, nil
	delete(n.Claims, v1alpha1.VolumeData)
	w.snapshot.Ledger = nil
	made := w.settle()
	if n.Pod != nil || len(n.Claims) != 0 || w.snapshot.Ledger != nil {
		t.Errorf("pod %v, claims %v, ledger %v; want none:\n%s", n.Pod, n.Claims, w.snapshot.Ledger, made)
	}
}
