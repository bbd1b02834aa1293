package cluster

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// rebuilt is a lost ledger as far as it can be rebuilt, and the nodes that are waited for.
func rebuilt(t *testing.T, w *world) (*ledger.Ledger, []string) {
	t.Helper()
	keeper, made := keeperOver(viewOf(w))
	keeper.KeepLedger()
	if keeper.LedgerLost {
		return keeper.Ledger, made.Blocked[0].Nodes
	}
	if len(made.Writes) != 2 || made.Writes[0].Verb != plan.PutLedger || !made.Writes[0].Live ||
		made.Writes[1].Verb != plan.Event {
		t.Fatalf("want the ledger to be rebuilt, looked at live:\n%s", made.Plan)
	}
	return made.Writes[0].Ledger, nil
}

// Members that were removed have no record: that they never start again is in the seeds alone.
func TestALostLedgerKnowsWhoWasRemoved(t *testing.T) {
	w := formed(t)
	w.snapshot.Ledger.Replaced = []string{"gone"}
	w.settle()
	for _, owner := range []types.UID{w.snapshot.Cluster.UID, "another"} {
		w.snapshot.Ledger = nil
		w.snapshot.Shared.ConfigMaps["orders-seeds"].OwnerReferences[0].UID = owner
		if l, _ := rebuilt(t, w); slices.Contains(l.Replaced, "gone") != (owner == w.snapshot.Cluster.UID) {
			t.Errorf("seeds of %s: %q never start again", owner, l.Replaced)
		}
	}
}

func TestWhatALostLedgerIsRebuiltFrom(t *testing.T) {
	node := func(change func(*facts.Node)) func(*world) {
		return func(w *world) { change(w.snapshot.Nodes[second]) }
	}
	givenBack := func(n *facts.Node) {
		when := metav1.Now()
		n.Record.Status.Join.WithdrawnAt = &when
	}
	for name, c := range map[string]struct {
		change  func(*world)
		formed  bool
		members map[string]string
		traffic bool
		stage   ledger.Stage
		// tickets and how many tokens each has.
		tickets map[string]int
		missing int
	}{
		"tickets that are out": {func(*world) {}, false, nil, false, ledger.StageTickets,
			map[string]int{first: 4, second: 4, third: 4}, 0},
		"one that was given back": {node(givenBack), false, nil, false, ledger.StageTickets,
			map[string]int{first: 4, third: 4}, 0},
		"one that was given back too late": {node(func(n *facts.Node) {
			givenBack(n)
			n.Agent.Disk = v1alpha1.DiskMember
		}), false, nil, false,
			ledger.StageTickets, map[string]int{first: 4, second: 4, third: 4}, 0},
		"one that another withdrawal was of": {node(func(n *facts.Node) {
			givenBack(n)
			n.Record.Status.Join.ID = "x"
		}), false, nil, false,
			ledger.StageTickets, map[string]int{first: 4, second: 4, third: 4}, 0},
		"one that never got a ticket": {node(func(n *facts.Node) {
			n.Record.Spec.Join, n.Agent.Disk = nil, v1alpha1.DiskEmpty
		}), false, nil, false,
			ledger.StageTickets, map[string]int{first: 4, third: 4}, 0},
		"one that never had a disk": {node(func(n *facts.Node) {
			n.Agent, n.Record.Spec.Join, n.Record.Status.HostID = nil, nil, ""
			for _, c := range n.Claims {
				c.Claim.Status.Phase = corev1.ClaimPending
			}
		}), false, nil, false, ledger.StageTickets, map[string]int{first: 4, third: 4}, 0},
		"one that is silent": {node(func(n *facts.Node) {
			n.Agent = nil
		}), false, nil, false, ledger.StageTickets, map[string]int{first: 4, third: 4}, 1},
		"a disk that has joined": {node(func(n *facts.Node) {
			n.Record.Spec.Join, n.Agent.Disk, n.Agent.HostID = nil, v1alpha1.DiskMember, "h"
		}), true,
			map[string]string{first: "", second: "h", third: ""}, false, ledger.StageFormed,
			map[string]int{first: 4, second: 0, third: 4}, 0},
		"a node that let clients in": {node(func(n *facts.Node) {
			n.Record.Spec.Join, n.Agent.Disk, n.Agent.HostID, n.Agent.TrafficOpened = nil, v1alpha1.DiskEmpty, "h", true
		}), true,
			map[string]string{first: "", second: "h", third: ""}, true, ledger.StageFormed,
			map[string]int{first: 4, second: 0, third: 4}, 0},
		"a member by its record, whatever its agent says": {node(func(n *facts.Node) {
			n.Record.Spec.Member, n.Agent.HostID = &v1alpha1.Member{HostID: "r"}, "h"
		}), true,
			map[string]string{first: "a", second: "r", third: ""}, false, ledger.StageFormed,
			map[string]int{first: 4, second: 0, third: 4}, 0},
		"a member that is open": {node(func(n *facts.Node) {
			n.Record.Spec.Member, n.Record.Spec.ClientTraffic = &v1alpha1.Member{HostID: "r"}, v1alpha1.TrafficOpen
		}), true,
			map[string]string{first: "a", second: "r", third: ""}, true, ledger.StageFormed,
			map[string]int{first: 4, second: 0, third: 4}, 0},
		"clients let in before, by another": {func(w *world) {
			n := w.snapshot.Nodes[first]
			n.Record.Spec.Join, n.Agent.Disk, n.Agent.HostID, n.Agent.TrafficOpened = nil, v1alpha1.DiskMember, "a",
				true
			n = w.snapshot.Nodes[second]
			n.Record.Spec.Join, n.Agent.Disk, n.Agent.HostID = nil, v1alpha1.DiskMember, "h"
		}, true, map[string]string{first: "a", second: "h", third: ""}, true, ledger.StageFormed,
			map[string]int{first: 0, second: 0, third: 4}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := forming(t, v1alpha1.DiskJoining, three...)
			w.snapshot.Ledger = nil
			if c.members != nil && c.members[first] == "a" {
				w.snapshot.Nodes[first].Agent.HostID = "a"
			}
			c.change(w)
			l, missing := rebuilt(t, w)
			if l.IsFormed("dc1") != c.formed || l.TrafficAllowed != c.traffic || len(missing) != c.missing ||
				l.Step == nil ||
				l.Step.Stage != c.stage || len(l.Step.Nodes) != len(c.tickets) {
				t.Fatalf("%s, missing %v", ledgerInWords(l), missing)
			}
			for node, tokens := range c.tickets {
				if got := ticket.Of(l.Step).Tokens[node]; !l.Step.Has(node) || len(got) != tokens {
					t.Errorf("ticket of %s: %v, want %d tokens", node, got, tokens)
				}
			}
			if len(l.Members) != len(c.members) {
				t.Errorf("members %v, want %v", l.Members, c.members)
			}
			for node, id := range c.members {
				if l.Members[node] != id {
					t.Errorf("members %v, want %v", l.Members, c.members)
				}
			}
		})
	}
}

// With the records gone too, the disks alone know who is a member: each gets a record, through
// which its pod can say so, before anything else is decided.
func TestALostLedgerAndLostRecordsComeBackFromTheDisks(t *testing.T) {
	for name, refused := range map[string]bool{"the spec is good": false, "the spec is refused": true} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			members := w.snapshot.Ledger.Members
			w.snapshot.Ledger = nil
			for _, n := range w.snapshot.Nodes {
				n.Record, n.Pod, n.Agent = nil, nil, nil
			}
			w.held = map[string]v1alpha1.DiskState{first: v1alpha1.DiskMember, second: v1alpha1.DiskMember,
				third: v1alpha1.DiskMember}
			if refused {
				w.change(setting("no_such_setting", "1"))
			}
			made := w.settle()
			if refused {
				if w.snapshot.Ledger != nil || len(w.snapshot.Records()) > 0 || len(made.Blocked) != 1 ||
					len(made.Blocked[0].Nodes) != 3 {
					t.Errorf("something was made by a spec that is refused:\n%s", made)
				}
				return
			}
			w.wantOpen()
			if !maps.Equal(w.snapshot.Ledger.Members, members) {
				t.Errorf("members %v, were %v", w.snapshot.Ledger.Members, members)
			}
		})
	}
}

// What serves clients goes on while everything that was known of it is found out anew.
func TestNodesServeWhileLedgerAndRecordsComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		kept []string
		// closed are nodes that no client was let to yet: with one that is open and no record that
		// says so, the ring is formed once more.
		closed []string
		// silent says that no agent answers while the records learn who is a member.
		silent bool
	}{
		"all records are lost":                          {nil, nil, false},
		"all but one":                                   {[]string{second}, nil, false},
		"all, and a node is still closed":               {nil, []string{third}, false},
		"all, and one node is open":                     {nil, []string{second, third}, false},
		"all, and one node is open, and agents silent":  {nil, []string{second, third}, true},
		"some, and a node is closed, and agents silent": {[]string{first}, []string{third}, true},
		"some, and the others are closed":               {[]string{first}, []string{second, third}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.snapshot.Ledger = nil
			for _, name := range three {
				n := w.snapshot.Nodes[name]
				if slices.Contains(c.closed, name) {
					n.Agent.Traffic, n.Agent.TrafficOpened = v1alpha1.TrafficClosed, false
				}
				if !slices.Contains(c.kept, name) {
					n.Record = nil
				}
			}
			for range 50 {
				learning := w.snapshot.Ledger != nil && w.snapshot.Ledger.Step != nil &&
					w.snapshot.Ledger.Step.Stage == ledger.StageFormed
				for _, name := range three {
					w.absent[name] = c.silent && learning
					if w.absent[name] {
						w.snapshot.Nodes[name].Agent = nil
					}
				}
				made := w.pass()
				for _, write := range made.Writes {
					n, ok := write.Object.(*v1alpha1.CassandraNode)
					if ok && n.Spec.Member != nil && n.Spec.ClientTraffic == v1alpha1.TrafficClosed &&
						!slices.Contains(c.closed, n.Name) {
						t.Fatalf("node %s is closed to clients:\n%s", n.Name, made)
					}
				}
				if l := w.snapshot.Ledger; l != nil && l.Step == nil && len(made.Writes) == 0 {
					break
				}
			}
			w.wantOpen()
		})
	}
}

// A claim that never got a volume holds nothing, whatever is lost: no JVM was ever started on it.
func TestALostLedgerDoesNotWaitForDisksThatNeverWere(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*facts.Node)
		rebuilt bool
	}{
		"no volume": {func(*facts.Node) {}, true},
		"a volume": {func(n *facts.Node) {
			n.Claims[v1alpha1.VolumeData].Claim.Status.Phase = corev1.ClaimBound
		}, false},
		"a volume is chosen": {func(n *facts.Node) {
			n.Claims[v1alpha1.VolumeData].Claim.Spec.VolumeName = "v"
		}, false},
		"it had one": {func(n *facts.Node) {
			n.Claims[v1alpha1.VolumeData].Claim.Status.Phase = corev1.ClaimLost
		}, false},
		"another claim than it had": {func(n *facts.Node) { n.Claims[v1alpha1.VolumeData].Claim.UID = "other" }, false},
		"none, where there was one": {func(n *facts.Node) { delete(n.Claims, v1alpha1.VolumeData) }, false},
		"it has a ticket": {func(n *facts.Node) {
			n.Record.Spec.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "s/n"}}
		}, false},
		"it said once who it is": {func(n *facts.Node) { n.Record.Status.HostID = "x" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := preparing(t)
			n := w.snapshot.Nodes[second]
			n.Agent, n.Unreachable = nil, "no answer"
			n.Claims[v1alpha1.VolumeData].Claim.Status.Phase = corev1.ClaimPending
			c.change(n)
			w.snapshot.Ledger = nil
			made := next(w)
			rebuilt := slices.ContainsFunc(made.Writes,
				func(w plan.Write) bool { return w.Verb == plan.PutLedger && w.Live })
			if rebuilt != c.rebuilt {
				t.Errorf("rebuilt %v, want %v:\n%s", rebuilt, c.rebuilt, made)
			}
		})
	}
}

// Whoever writes a spec under which no pod starts can correct it, although the ledger is lost with
// which the corrections are made otherwise.
func TestASpecIsCorrectedWhileTheLedgerIsLost(t *testing.T) {
	w := preparing(t)
	n := w.snapshot.Nodes[second]
	n.Agent, n.Unreachable = nil, "no answer"
	n.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available: 3 Insufficient memory.",
	}}}
	w.snapshot.Ledger = nil
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Placement = &v1alpha1.Placement{NodeSelector: map[string]string{"disk": "fast"}}
	})
	wantWrites(t, next(w), second, "Apply CassandraNode")
}
