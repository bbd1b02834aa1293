package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

// deleted is a cluster that was formed and is being deleted, whose claims go with it.
func deleted(t *testing.T) *world {
	t.Helper()
	w := formed(t)
	w.snapshot.Cluster.Spec.Volumes.OnClusterDeletion = v1alpha1.ClaimDelete
	w.deleteCluster()
	return w
}

// claimOf is a claim that carries the uid of a cluster.
func claimOf(name string, of types.UID) *facts.Claim {
	return &facts.Claim{Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name,
		UID: types.UID(name), Labels: map[string]string{v1alpha1.LabelClusterUID: string(of)}}}}
}

func TestWhenAPodOfADeletedClusterGoes(t *testing.T) {
	stopped := func(_ *world, n *facts.Node) {
		n.Record.Spec.State, n.Record.Status.Phase, n.Record.Status.ObservedGeneration = v1alpha1.StateStopped,
			v1alpha1.PhaseStopped, n.Record.Generation
	}
	but := func(change func(*world, *facts.Node)) func(*world, *facts.Node) {
		return func(w *world, n *facts.Node) { stopped(w, n); change(w, n) }
	}
	for name, c := range map[string]struct {
		change func(*world, *facts.Node)
		goes   bool
	}{
		"its node runs":       {func(*world, *facts.Node) {}, false},
		"its node is stopped": {stopped, true},
		"its node was stopped in a former pod": {but(func(_ *world, n *facts.Node) {
			n.Record.Status.PodUID = "former"
		}), false},
		"its node was stopped before": {but(func(_ *world, n *facts.Node) { n.Record.Status.ObservedGeneration-- }),
			false},
		"its node is stopping": {but(func(_ *world, n *facts.Node) {
			n.Record.Status.Phase = v1alpha1.PhaseStopping
		}), false},
		"it never was on a host": {func(_ *world, n *facts.Node) { n.Pod.Spec.NodeName = "" }, true},
		"it has no record":       {func(_ *world, n *facts.Node) { n.Record = nil }, true},
		"it goes already": {but(func(_ *world, n *facts.Node) {
			now := metav1.Now()
			n.Pod.DeletionTimestamp = &now
		}), false},
		"the patience is over":         {func(w *world, _ *facts.Node) { w.now = w.now.Add(5 * time.Minute) }, true},
		"the patience is all but over": {func(w *world, _ *facts.Node) { w.now = w.now.Add(5*time.Minute - 1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := deleted(t)
			// A node before it that has no pod holds nothing up.
			w.snapshot.Nodes[first].Pod = nil
			c.change(w, w.snapshot.Nodes[second])
			made := next(w)
			if goes := slices.Contains(writesOf(made, second), "Delete Pod"); goes != c.goes {
				t.Errorf("goes: %v, want %v:\n%s", goes, c.goes, made)
			}
			if name == "the patience is all but over" && made.Wake != 1 {
				t.Errorf("wakes in %s", made.Wake)
			}
		})
	}
}

func TestNodesAreStoppedBeforeAnythingOfADeletedClusterGoes(t *testing.T) {
	w := deleted(t)
	for _, name := range three {
		w.snapshot.Nodes[name].Pod = nil
	}
	made := next(w)
	for _, name := range three {
		wantWrites(t, made, name, "Apply CassandraNode")
		wantWrites(t, made, "data-"+name)
	}
	if made.Current == nil || made.Current.Message != "stopping the nodes: 0 pods left" {
		t.Errorf("current %+v", made.Current)
	}
}

func TestWhichClaimsGoWithACluster(t *testing.T) {
	w := deleted(t)
	for range 2 {
		w.pass()
	}
	n := w.snapshot.Nodes[second]
	n.Claims["a"], n.Claims["b"], n.Claims["c"] = &facts.Claim{}, claimOf("other", "other"), claimOf("pinned", "other")
	n.Claims["d"] = claimOf("going", "cluster-uid")
	now := metav1.Now()
	n.Claims["d"].Claim.DeletionTimestamp = &now
	n.Record.Spec.Claims = append(n.Record.Spec.Claims,
		v1alpha1.ClaimReference{Volume: "c", Name: "pinned", UID: "pinned"})
	made := next(w)
	for name, goes := range map[string]bool{"data-" + first: true, "data-" + second: true, "pinned": true,
		"other": false,
		"going": false} {
		if got := len(writesOf(made, name)) > 0; got != goes {
			t.Errorf("claim %s goes: %v, want %v:\n%s", name, got, goes, made)
		}
	}
	if made.Current.Message != "deleting the claims: 5 left" {
		t.Errorf("current %+v", made.Current)
	}
	// A claim of another cluster under the name of a node without a record is nobody's to delete.
	n.Record, n.Claims = nil, map[string]*facts.Claim{"data": claimOf("other", "other")}
	wantWrites(t, next(w), "other")
}

func TestAClusterGoesWithoutALedgerToo(t *testing.T) {
	for name, ledger := range map[string]*ledger.Ledger{"none": nil, "one that was never written": {}} {
		w := newWorld(t)
		w.snapshot.Cluster.Finalizers = []string{v1alpha1.FinalizerCluster}
		w.snapshot.Ledger = ledger
		w.deleteCluster()
		if made := next(w); len(made.Writes) != 1 || made.Writes[0].Verb != plan.Release {
			t.Errorf("%s: want the cluster released:\n%s", name, made)
		}
	}
}

func TestClaimsInTheWayOfANewCluster(t *testing.T) {
	with := func(adopt types.UID, claims map[string]types.UID, spec ...v1alpha1.Datacenter) *world {
		w := newWorld(t, spec...)
		w.snapshot.Cluster.UID, w.snapshot.Cluster.Spec.Bootstrap = "second-uid", adopting(adopt)
		w.snapshot.Ledger = &ledger.Ledger{ClusterUID: "second-uid"}
		for name, of := range claims {
			volume, node, _ := strings.Cut(name, "-")
			n := w.node(node)
			n.Claims[volume] = claimOf(name, of)
		}
		return w
	}
	one := datacenter("dc1", 1)
	const data = "data-" + first
	for name, c := range map[string]struct {
		adopt  types.UID
		claims map[string]types.UID
		reason string
		words  string
	}{
		"none":    {"", nil, "", ""},
		"its own": {"", map[string]types.UID{data: "second-uid"}, "", ""},
		"one that Helenus did not make": {"", map[string]types.UID{data: ""}, v1alpha1.ReasonForeignDisks,
			"claim " + data + " was not made by Helenus"},
		"one of an earlier cluster": {"", map[string]types.UID{data: "old"}, v1alpha1.ReasonForeignDisks,
			"claim " + data + " holds data of an earlier cluster with uid old: delete the claims; or create the " +
				"cluster again with bootstrap.adopt.clusterUID: old"},
		"one of another volume": {"", map[string]types.UID{"commitlog-" + first: "second-uid", data: "old"},
			v1alpha1.ReasonForeignDisks, data},
		"the one to adopt":             {"old", map[string]types.UID{data: "old"}, "", ""},
		"the one to adopt, taken over": {"old", map[string]types.UID{data: "second-uid"}, "", ""},
		"another than the one to adopt": {"old", map[string]types.UID{data: "older"}, v1alpha1.ReasonForeignDisks,
			"uid older"},
		"another beside the one to adopt": {"old", map[string]types.UID{data: "old", "x-" + first: "older"},
			v1alpha1.ReasonForeignDisks, "uid older"},
		"none to adopt": {"old", nil, v1alpha1.ReasonAdoptionIncomplete,
			"claim " + data + " of the cluster with uid old is not there"},
		"one more to adopt": {"old", map[string]types.UID{data: "old", "data-x": "old"},
			v1alpha1.ReasonAdoptionIncomplete, "claim data-x of the cluster with uid old belongs to a node that the " +
				"spec does not describe"},
		"another volume of a node to adopt": {"old", map[string]types.UID{data: "old", "scratch-" + first: "old"}, "",
			""},
	} {
		t.Run(name, func(t *testing.T) {
			w := with(c.adopt, c.claims, one)
			made := next(w)
			if c.reason == "" {
				if made.Stalled != nil || !slices.Contains(writesOf(made, first), "Create CassandraNode") {
					t.Errorf("want the record to be made:\n%s", made)
				}
				return
			}
			wantStalled(t, made, c.reason, c.words)
			wantWrites(t, made, first)
		})
	}
	// A claim that goes cannot be adopted.
	w := with("old", map[string]types.UID{data: "old"}, one)
	now := metav1.Now()
	w.snapshot.Nodes[first].Claims["data"].Claim.DeletionTimestamp = &now
	wantStalled(t, next(w), v1alpha1.ReasonAdoptionIncomplete, data)
	// A volume without its claim is no claim of anybody.
	w = with("", nil, one)
	w.node(first).Claims["data"] = &facts.Claim{}
	if made := next(w); made.Stalled != nil {
		t.Errorf("stalled %+v", made.Stalled)
	}
}

// recordsOf is what is done about the records of a world, without the rest of a pass.
func recordsOf(w *world) plan.Plan {
	keeper, made := keeperOver(viewOf(w))
	keeper.NodeRecords()
	return made.Plan
}

func TestARecordThatIsMadeAnewIsWhatTheLedgerSays(t *testing.T) {
	for name, c := range map[string]struct {
		world  func(t *testing.T) *world
		change func(*world)
		want   string // the record; empty if it is not made
	}{
		"a member": {formed, func(*world) {}, "Running; traffic Open; 1 claims pinned; member host-" + second},
		"a member while a step is open": {func(t *testing.T) *world {
			return inStage(t, ledger.StageKeyspaces)
		}, func(*world) {},
			"Running; traffic Closed; 1 claims pinned; member host-" + second},
		"a member while another joins": {formed, func(w *world) {
			w.snapshot.Ledger.Step = &ledger.Step{Kind: ledger.JoinNode, Stage: ledger.StageTickets,
				Datacenters: []string{"dc1"}}
		}, "Running; traffic Open; 1 claims pinned; member host-" + second},
		"a member of a datacenter that is added": {formed, func(w *world) {
			w.snapshot.Ledger.Step = &ledger.Step{Kind: ledger.AddDatacenter, Stage: ledger.StageRebuild,
				Datacenters: []string{"dc1"}}
		}, "Running; traffic Closed; 1 claims pinned; member host-" + second},
		"a member while clients are let in": {func(t *testing.T) *world {
			return inStage(t, ledger.StageOpen)
		}, func(*world) {},
			"Running; traffic Open; 1 claims pinned; member host-" + second},
		"a member of a datacenter into which clients are let": {formed, func(w *world) {
			w.snapshot.Ledger.Step = &ledger.Step{Kind: ledger.AddDatacenter, Stage: ledger.StageOpen,
				Datacenters: []string{"dc1"}}
		}, "Running; traffic Open; 1 claims pinned; member host-" + second},
		"one with a ticket": {func(t *testing.T) *world { return forming(t, v1alpha1.DiskJoining, second) },
			func(*world) {},
			"Running; traffic Closed; 1 claims pinned; ticket cluster--1/join/" + second +
				" New of 4 tokens, system_auth 3"},
		"one whose ticket was withdrawn": {func(t *testing.T) *world {
			return forming(t, v1alpha1.DiskJoining, second)
		},
			func(w *world) { w.snapshot.Ledger.Step.Withdrawn = []string{second} },
			"Running; traffic Closed; 1 claims pinned"},
		"one of a ring that is adopted": {func(t *testing.T) *world { return forming(t, v1alpha1.DiskJoining, second) },
			func(w *world) { w.snapshot.Ledger.Step.Kind = ledger.AdoptRing },
			"Running; traffic Closed; 1 claims pinned"},
		"one when the ring stands already": {func(t *testing.T) *world {
			return forming(t, v1alpha1.DiskJoining, second)
		},
			func(w *world) { w.snapshot.Ledger.Step.Stage = ledger.StageFormed },
			"Running; traffic Closed; 1 claims pinned"},
		"one whose claim is gone": {formed, func(w *world) {
			delete(w.snapshot.Nodes[second].Claims, "data")
		}, "Running; traffic Open; 0 claims pinned; member host-" + second},
		"one whose claim is another's": {formed, func(w *world) {
			w.snapshot.Nodes[second].Claims["data"].Claim.Labels[v1alpha1.LabelClusterUID] = "x"
		},
			"Running; traffic Open; 0 claims pinned; member host-" + second},
		"nothing is left of it": {formed, func(w *world) {
			delete(w.snapshot.Nodes, second)
		}, "Running; traffic Open; 0 claims pinned; member host-" + second},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world(t)
			w.snapshot.Nodes[second].Record = nil
			c.change(w)
			made := recordsOf(w)
			if len(made.Writes) != 1 || made.Writes[0].Object.GetName() != second {
				t.Fatalf("want the record to be made:\n%s", made)
			}
			if got := recordInWords(made.Writes[0].Object.(*v1alpha1.CassandraNode)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	// One that is unknown while the ring forms is left alone, and does not hide others.
	forms := inStage(t, ledger.StageFormed)
	delete(forms.snapshot.Ledger.Members, first)
	forms.snapshot.Ledger.Step.Nodes = []string{second, third}
	forms.snapshot.Nodes[first].Record, forms.snapshot.Nodes[second].Record = nil, nil
	made := recordsOf(forms)
	if len(made.Writes) != 1 || made.Writes[0].Object.GetName() != second {
		t.Errorf("want the record of %s to be made:\n%s", second, made)
	}
	// One that has no part in the ring is made without one: it is to join.
	w := formed(t)
	delete(w.snapshot.Ledger.Members, first)
	w.snapshot.Nodes[first].Record, w.snapshot.Nodes[second].Record = nil, nil
	made = recordsOf(w)
	wantWrites(t, made, first, "Create CassandraNode")
	wantWrites(t, made, second, "Create CassandraNode")
	if got := recordInWords(made.Writes[0].Object.(*v1alpha1.CassandraNode)); got != "Running; traffic Closed; 1 "+
		"claims pinned" {
		t.Errorf("%s, want no part in the ring", got)
	}
}

func TestRecordsThatTheSpecNoLongerHas(t *testing.T) {
	shrink := func(w *world) {
		w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks = s.Datacenters[0].Racks[2:] })
	}
	now := metav1.Now()
	w := preparing(t)
	shrink(w)
	w.snapshot.Nodes[first].Pod.DeletionTimestamp = &now
	w.snapshot.Nodes[second].Pod = nil
	made := recordsOf(w)
	wantWrites(t, made, first) // its pod is on its way
	wantWrites(t, made, second, "Delete CassandraNode")
	wantWrites(t, made, third)
	// One whose spec has changed follows, unless it is being deleted.
	w = preparing(t)
	w.change(setting("concurrent_reads", "16"))
	deleting(w.snapshot.Nodes[first])
	made = recordsOf(w)
	wantWrites(t, made, first, "SetOwners Pod", "Release CassandraNode")
	wantWrites(t, made, second, "Apply CassandraNode")
}

func TestNothingIsMadeForANodeThatTheSpecNoLongerHas(t *testing.T) {
	w := preparing(t)
	made := map[string]int{}
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks = s.Datacenters[0].Racks[1:] })
	for range 10 {
		for _, write := range w.pass().Writes {
			if write.Object != nil && strings.Contains(write.Object.GetName(), first) {
				made[string(write.Verb)+" "+plan.KindOf(write.Object)]++
			}
		}
	}
	want := map[string]int{"Delete Pod": 1, "Delete Secret": 3, "Delete CassandraNode": 1, "Release CassandraNode": 1}
	if !maps.Equal(made, want) {
		t.Errorf("of %s: %v, want %v", first, made, want)
	}
}

func TestWhatARefusalOfGuardsComesTo(t *testing.T) {
	w := preparing(t)
	for _, name := range []string{first, third} {
		w.snapshot.Nodes[name].Agent.Disk = v1alpha1.DiskForeign
	}
	made := next(w)
	wantStalled(t, made, v1alpha1.ReasonForeignDisks, first)
	if len(made.Blocked) != 2 || !slices.Equal(made.Blocked[0].Nodes, []string{second}) ||
		!slices.Equal(made.Blocked[1].Nodes, []string{first, third}) {
		t.Errorf("blocked %+v", made.Blocked)
	}
	// The first refusal is what the step waits for; a refusal that only the user can resolve makes
	// it stuck.
	if r := made.Steps[len(made.Steps)-1]; r.Outcome != plan.Wait || !strings.Contains(r.Message, second) {
		t.Errorf("%+v", r)
	}
	delete(w.absent, second)
	w.agents()
	for _, name := range []string{first, third} {
		w.snapshot.Nodes[name].Agent.Disk = v1alpha1.DiskForeign
	}
	made = next(w)
	if r := made.Steps[len(made.Steps)-1]; r.Outcome != plan.Stuck || !strings.Contains(r.Message, first) {
		t.Errorf("%+v", r)
	}
}
