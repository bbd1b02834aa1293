package trial

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// betweenEdits is how long a user thinks.
const betweenEdits = 5 * time.Second

// change of a spec, and how it is taken back: by what the spec was before, and without what was
// changed otherwise since.
type change struct {
	do   func(*v1alpha1.CassandraClusterSpec)
	undo func(s, before *v1alpha1.CassandraClusterSpec)
}

// edit has the user change the spec of the cluster that is there, once or several times, and take
// the changes back some time later.
func (r *run) edit(d time.Duration, changes ...change) bool {
	c := get(r.w)
	if c == nil || c.DeletionTimestamp != nil {
		return false
	}
	uid, before := c.UID, c.Spec.DeepCopy()
	written := r.write(uid, changes[0].do)
	for i, change := range changes[1:] {
		r.later(time.Duration(i+1)*betweenEdits, "the user edits again", func() { r.write(uid, change.do) })
	}
	r.later(time.Duration(len(changes)-1)*betweenEdits+d, "the user takes it back", func() {
		r.write(uid, func(s *v1alpha1.CassandraClusterSpec) {
			for _, change := range changes {
				change.undo(s, before.DeepCopy())
			}
		})
	})
	return written
}

// editForGood has the user change the spec of the cluster that is there.
func (r *run) editForGood(c change) bool {
	is := get(r.w)
	if is == nil || is.DeletionTimestamp != nil || !r.write(is.UID, c.do) {
		return false
	}
	if k, looked := r.w.Kept.(*kept); looked {
		k.leaveOut(kindOf(r.Fault).stays)
	}
	return true
}

// write has the user write a spec, as long as the cluster is the one that they mean. What the API
// server refuses, they leave.
func (r *run) write(uid types.UID, change func(*v1alpha1.CassandraClusterSpec)) bool {
	for {
		c := get(r.w)
		if c == nil || c.UID != uid || c.DeletionTimestamp != nil {
			return false
		}
		wanted := c.DeepCopy()
		change(&wanted.Spec)
		err := r.w.User().Update(context.Background(), wanted)
		if !apierrors.IsConflict(err) {
			if r.Tell {
				r.tell("user", "edit: "+errorText(err))
			}
			return err == nil
		}
	}
}

// formedByEdit says that the ring was formed while the edit stood, so that taking it back is a
// change of a ring that exists: the cluster says in what the nodes differ from the spec.
func (r *run) formedByEdit(what ...string) bool {
	c := get(r.w)
	if c == nil {
		return false
	}
	upToDate := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionUpToDate)
	return upToDate != nil && upToDate.Status == metav1.ConditionFalse &&
		slices.ContainsFunc(what, func(words string) bool { return strings.Contains(upToDate.Message, words) })
}

// reads is setReads in the text of a cluster or a record, alone or among other settings, and the
// hashes of what follows from it.
var reads = regexp.MustCompile(`"cassandraYaml":\{"concurrent_reads":16\},?|"concurrent_reads":16,` +
	`|,"concurrent_reads":16|"[0-9a-f]{64}"`)

// saysThatItDiffers names what ends otherwise where an edit cannot reach every node: the cluster
// says so, and a roll-out that waits is open, in the ledger and by the budgets.
func (r *run) saysThatItDiffers() []string {
	c := get(r.w)
	if c == nil || meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionUpToDate) {
		return nil
	}
	out := []string{"CassandraCluster/" + c.Name}
	if c.Status.Step != nil && r.Scenario.LosesDisk {
		out = append(out, "ConfigMap/"+v1alpha1.LedgerName(c.Name))
		for _, o := range r.w.Server.Objects("PodDisruptionBudget") {
			out = append(out, "PodDisruptionBudget/"+o.GetName())
		}
	}
	return out
}

// refusesBack says that a ring which can grow took an edit over before it was taken back, which is
// refused now.
func (r *run) refusesBack(words string) bool { return r.Scenario.Grows && r.refuses(words) }

// refuses says that the cluster refuses its spec in these words.
func (r *run) refuses(words string) bool {
	c := get(r.w)
	if c == nil {
		return false
	}
	stalled := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
	return stalled != nil && stalled.Status == metav1.ConditionTrue && strings.Contains(stalled.Message, words)
}

// hasGivenUp says that a join was abandoned half way, so that the node's disk is to be cleared by a
// user before it can join again.
func (r *run) hasGivenUp() bool {
	return r.Scenario.Grows && blockedWith("JoiningDiskNotEmpty")(r.w)
}

// anotherJoined says that one of more nodes that were asked for a while was the first to join in
// place of a lost member that was removed: members stay, so the ring is whole without it.
func (r *run) anotherJoined() bool {
	return r.Scenario.Grows && grown(r.w) && r.w.Server.Object("CassandraNode", keyOf(lostNode)) == nil &&
		slices.ContainsFunc(r.w.Server.Objects("CassandraNode"), func(o client.Object) bool {
			n := o.(*v1alpha1.CassandraNode)
			return n.Spec.Rack == "r1" && n.Spec.Ordinal > 0 && n.Spec.Member != nil
		})
}

// waitsForGivenUpPod says that a user is asked to delete a pod, which may continue with a join that
// was abandoned, and of which no record tells any more.
func (r *run) waitsForGivenUpPod() bool {
	return r.Scenario.Grows && blockedWith("AbandonedPodStillRunning", "delete the pod")(r.w)
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return "accepted"
}

var setReads = change{
	do: yamlSetting("concurrent_reads", "16"),
	undo: func(s, _ *v1alpha1.CassandraClusterSpec) {
		if delete(s.Node.CassandraYaml, "concurrent_reads"); len(s.Node.CassandraYaml) == 0 {
			s.Node.CassandraYaml = nil
		}
	},
}

// more nodes in each rack than any scenario asks for, so that one which is to be taken back is
// known from one that the scenario wrote meanwhile.
const more = 3

var moreNodes = change{
	do: func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NodesPerRack += more },
	undo: func(s, before *v1alpha1.CassandraClusterSpec) {
		if was := before.Datacenters[0].NodesPerRack; s.Datacenters[0].NodesPerRack == was+more {
			s.Datacenters[0].NodesPerRack = was
		}
	},
}

var fewerRacks = change{
	do: func(s *v1alpha1.CassandraClusterSpec) {
		if racks := s.Datacenters[0].Racks; len(racks) > 1 {
			s.Datacenters[0].Racks = racks[:len(racks)-1]
		}
	},
	undo: func(s, before *v1alpha1.CassandraClusterSpec) {
		for _, rack := range before.Datacenters[0].Racks {
			if !slices.ContainsFunc(s.Datacenters[0].Racks,
				func(other v1alpha1.Rack) bool { return other.Name == rack.Name }) {
				s.Datacenters[0].Racks = append(s.Datacenters[0].Racks, rack)
			}
		}
		slices.SortFunc(s.Datacenters[0].Racks, func(a, b v1alpha1.Rack) int { return strings.Compare(a.Name, b.Name) })
	},
}

const brokenImage = "cassandra:5.0.6-broken"

var wrongImage = change{
	do: func(s *v1alpha1.CassandraClusterSpec) { s.Image = brokenImage },
	undo: func(s, before *v1alpha1.CassandraClusterSpec) {
		if s.Image == brokenImage {
			s.Image = before.Image
		}
	},
}

var pause = change{
	do:   func(s *v1alpha1.CassandraClusterSpec) { s.Paused = true },
	undo: func(s, before *v1alpha1.CassandraClusterSpec) { s.Paused = before.Paused },
}
