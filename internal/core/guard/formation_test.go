package guard

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// trio is a cluster of three nodes that are ready to form a ring: each agent answers from the
// present pod that its disk is empty.
func trio() *facts.Snapshot {
	s := &facts.Snapshot{
		Cluster: &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders",
			UID: "new"}},
		Nodes: map[string]*facts.Node{},
	}
	for _, name := range []string{"a", "b", "c"} {
		uid := types.UID("pod-" + name)
		s.Nodes[name] = &facts.Node{
			Name: name, Record: &v1alpha1.CassandraNode{}, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}},
			Agent: &facts.Agent{PodUID: uid, Address: "10.0.0.1", Disk: v1alpha1.DiskEmpty},
		}
	}
	return s
}

// legacy is the same cluster on the disks of the cluster "old", which it is to adopt.
func legacy() *facts.Snapshot {
	s := trio()
	s.Cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Adopt: &v1alpha1.Adoption{ClusterUID: "old"}}
	for name, n := range s.Nodes {
		n.Agent.Disk, n.Agent.HostID = v1alpha1.DiskMember, "host-"+name
		n.Agent.Owner = &v1alpha1.DiskOwner{ClusterUID: "old", ClusterName: "shop.orders", Node: name}
	}
	return s
}

// finding is what a row expects: the guard, the nodes, the reason, and words of the message.
type finding struct {
	guard, nodes, reason string
	words                []string
}

func wantFindings(t *testing.T, got []Refusal, want ...finding) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("refusals %+v, want %d", got, len(want))
	}
	for i, w := range want {
		if string(got[i].Reason) != w.guard || strings.Join(got[i].Nodes, ",") != w.nodes ||
			got[i].Stalled != w.reason {
			t.Errorf("refusal %+v, want %s of nodes %s with reason %q", got[i], w.guard, w.nodes, w.reason)
		}
		for _, word := range w.words {
			if !strings.Contains(got[i].Message, word) {
				t.Errorf("message %q does not say %q", got[i].Message, word)
			}
		}
	}
}

const (
	answers = "InitialNodeNotReady"
	empty   = "DiskNotEmpty"
	served  = "ClientTrafficAlreadyOpened"
	adopted = "DiskNotAdoptable"
	once    = "DuplicateHostID"
)

func TestFormationIsRefused(t *testing.T) {
	silent := func(n *facts.Node) { n.Agent = nil }
	for name, c := range map[string]struct {
		change func(s *facts.Snapshot)
		want   []finding
	}{
		"never, if all answer that their disks are empty": {func(*facts.Snapshot) {}, nil},
		"while an agent has no address yet": {
			func(s *facts.Snapshot) { s.Nodes["b"].Agent.Address = "" },
			[]finding{{answers, "b", "", []string{"node b is not ready to join"}}},
		},
		"while the answer is that of a former pod": {
			func(s *facts.Snapshot) { s.Nodes["b"].Agent.PodUID = "former" },
			[]finding{{answers, "b", "", []string{"its pod is starting"}}},
		},
		"while nodes are silent, each by its name": {
			func(s *facts.Snapshot) { silent(s.Nodes["a"]); silent(s.Nodes["c"]) },
			[]finding{{answers, "a", "", nil}, {answers, "c", "", nil}},
		},
		"while nothing of a node is there": {
			func(s *facts.Snapshot) { delete(s.Nodes, "b") },
			[]finding{{answers, "b", "", []string{"it has no record yet"}}},
		},
		"over a disk in use, with its owner": {
			func(s *facts.Snapshot) {
				s.Nodes["a"].Agent.Disk = v1alpha1.DiskMember
				s.Nodes["a"].Agent.Owner = &v1alpha1.DiskOwner{ClusterUID: "old", ClusterName: "shop", Node: "x"}
			},
			[]finding{{empty, "a", v1alpha1.ReasonForeignDisks,
				[]string{`not empty but Member of cluster "shop" with uid "old", node "x":`,
					"adopt the cluster it is of"}}},
		},
		"over a disk of its own, whose claim is not to be deleted": {
			func(s *facts.Snapshot) {
				s.Nodes["a"].Agent.Disk = v1alpha1.DiskMember
				s.Nodes["a"].Agent.Owner = &v1alpha1.DiskOwner{ClusterUID: "new", Node: "a"}
			},
			[]finding{{empty, "a", v1alpha1.ReasonForeignDisks,
				[]string{"a disk of this very cluster, so keep its claim", "restore the ledger and the records"}}},
		},
		"over a disk whose owner has only a uid": {
			func(s *facts.Snapshot) {
				s.Nodes["a"].Agent.Disk, s.Nodes["a"].Agent.Owner = v1alpha1.DiskForeign,
					&v1alpha1.DiskOwner{ClusterUID: "old"}
			},
			[]finding{{empty, "a", v1alpha1.ReasonForeignDisks, []string{`Foreign of cluster "" with uid "old"`}}},
		},
		"over a disk whose owner has only a name": {
			func(s *facts.Snapshot) {
				s.Nodes["a"].Agent.Disk, s.Nodes["a"].Agent.Owner = v1alpha1.DiskForeign,
					&v1alpha1.DiskOwner{ClusterName: "shop"}
			},
			[]finding{{empty, "a", v1alpha1.ReasonForeignDisks, []string{`Foreign of cluster "shop"`}}},
		},
		"over a disk of nobody, without words about an owner": {
			func(s *facts.Snapshot) {
				s.Nodes["a"].Agent.Disk, s.Nodes["a"].Agent.Owner = v1alpha1.DiskForeign, &v1alpha1.DiskOwner{Node: "x"}
			},
			[]finding{{empty, "a", v1alpha1.ReasonForeignDisks, []string{"not empty but Foreign: it is neither"}}},
		},
		"over several disks, each by its name": {
			func(s *facts.Snapshot) {
				s.Nodes["a"].Agent.Disk, s.Nodes["c"].Agent.Disk = v1alpha1.DiskUnreadable, v1alpha1.DiskJoining
			},
			[]finding{{empty, "a", v1alpha1.ReasonForeignDisks, []string{"Unreadable"}},
				{empty, "c", v1alpha1.ReasonForeignDisks, []string{"Joining"}}},
		},
		"over a disk behind a silent node too": {
			func(s *facts.Snapshot) { silent(s.Nodes["a"]); s.Nodes["b"].Agent.Disk = v1alpha1.DiskLeft },
			[]finding{{answers, "a", "", nil}, {empty, "b", v1alpha1.ReasonForeignDisks, []string{"Left"}}},
		},
		"when a node has opened client traffic": {
			func(s *facts.Snapshot) { s.Nodes["c"].Agent.TrafficOpened = true },
			[]finding{{served, "c", v1alpha1.ReasonForeignDisks, []string{"node c was open to clients"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := trio()
			c.change(s)
			wantFindings(t, Check(Nodes{s, []string{"a", "b", "c"}}, formation...), c.want...)
		})
	}
}

func TestAdoptionIsRefused(t *testing.T) {
	owner := func(change func(*v1alpha1.DiskOwner)) func(*facts.Snapshot) {
		return func(s *facts.Snapshot) { change(s.Nodes["b"].Agent.Owner) }
	}
	notAdopted := func(words ...string) []finding {
		return []finding{{adopted, "b", v1alpha1.ReasonAdoptionIncomplete,
			append(words, "the cluster with uid old that is to be adopted", "nothing is started")}}
	}
	for name, c := range map[string]struct {
		change func(s *facts.Snapshot)
		want   []finding
	}{
		"never, if all disks are there": {func(*facts.Snapshot) {}, nil},
		"never over a disk that this cluster has taken over already": {
			owner(func(o *v1alpha1.DiskOwner) { o.ClusterUID = "new" }), nil,
		},
		"never over a disk from before its cluster had a name": {owner(func(o *v1alpha1.DiskOwner) {
			o.ClusterName = ""
		}), nil},
		"while an agent is silent": {
			func(s *facts.Snapshot) { s.Nodes["a"].Agent = nil; s.Nodes["b"].Agent.Owner.Node = "x" },
			append([]finding{{answers, "a", "", nil}}, notAdopted(`it is the disk of node "x"`)...),
		},
		"over an empty disk": {func(s *facts.Snapshot) { s.Nodes["b"].Agent = trio().Nodes["b"].Agent },
			notAdopted(": it is Empty;")},
		"over a disk that left": {func(s *facts.Snapshot) { s.Nodes["b"].Agent.Disk = v1alpha1.DiskLeft },
			notAdopted("it is Left of cluster")},
		"over a disk without a host id": {func(s *facts.Snapshot) { s.Nodes["b"].Agent.HostID = "" },
			notAdopted("it is Member of cluster")},
		"over a disk without an owner": {func(s *facts.Snapshot) { s.Nodes["b"].Agent.Owner = nil },
			notAdopted(": it is Member;")},
		"over a disk of a third cluster": {
			owner(func(o *v1alpha1.DiskOwner) { o.ClusterUID = "third" }),
			notAdopted(`it is Member of cluster "shop.orders" with uid "third", node "b"`),
		},
		"over a disk of another node": {owner(func(o *v1alpha1.DiskOwner) { o.Node = "a" }),
			notAdopted(`it is the disk of node "a"`)},
		"over a cluster_name that the spec does not have": {
			owner(func(o *v1alpha1.DiskOwner) { o.ClusterName = "shop" }),
			notAdopted(`its cluster_name is "shop", not "shop.orders": set spec.clusterName`),
		},
		"over a copy of a disk": {
			func(s *facts.Snapshot) { s.Nodes["c"].Agent.HostID = "host-a" },
			[]finding{{once, "a,c", v1alpha1.ReasonAdoptionIncomplete,
				[]string{"nodes a and c have the same host id host-a"}}},
		},
		"over a copy behind a silent node too": {
			func(s *facts.Snapshot) { s.Nodes["a"].Agent = nil; s.Nodes["c"].Agent.HostID = "host-b" },
			[]finding{{answers, "a", "", nil}, {once, "b,c", v1alpha1.ReasonAdoptionIncomplete, nil}},
		},
		"over disks without host ids, but not as copies": {
			func(s *facts.Snapshot) { s.Nodes["b"].Agent.HostID, s.Nodes["c"].Agent.HostID = "", "" },
			[]finding{{adopted, "b", v1alpha1.ReasonAdoptionIncomplete, nil},
				{adopted, "c", v1alpha1.ReasonAdoptionIncomplete, nil}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := legacy()
			c.change(s)
			wantFindings(t, Check(Nodes{s, []string{"a", "b", "c"}}, adoption...), c.want...)
		})
	}
}

// What the operator says first about a cluster that does not begin is the first refusal.
func TestRefusalsComeInTheOrderOfTheGuards(t *testing.T) {
	s := trio()
	s.Nodes["a"].Agent.Disk, s.Nodes["c"].Agent = v1alpha1.DiskMember, nil
	s.Nodes["b"].Agent.TrafficOpened = true
	var got []string
	for _, r := range Check(Nodes{s, []string{"a", "b", "c"}}, formation...) {
		got = append(got, string(r.Reason)+" "+r.Nodes[0])
	}
	if want := []string{answers + " c", empty + " a", served + " b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
