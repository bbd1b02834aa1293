package trial

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

// betweenEdits is how long a user thinks.
const betweenEdits = 5 * time.Second

// edit has the user change the spec of the cluster that is there, once or several times, and set it to what it was some time later.
func (r *run) edit(d time.Duration, changes ...func(*v1alpha1.CassandraClusterSpec)) {
	c := get(r.w)
	if c == nil || c.DeletionTimestamp != nil {
		return
	}
	uid, before := c.UID, c.Spec.DeepCopy()
	r.write(uid, changes[0])
	for i, change := range changes[1:] {
		r.later(time.Duration(i+1)*betweenEdits, "the user edits again", func() { r.write(uid, change) })
	}
	r.later(time.Duration(len(changes)-1)*betweenEdits+d, "the user takes it back", func() {
		r.write(uid, func(s *v1alpha1.CassandraClusterSpec) { *s = *before.DeepCopy() })
	})
}

// write has the user write a spec, as long as the cluster is the one that they mean. What the API server refuses, they leave.
func (r *run) write(uid types.UID, change func(*v1alpha1.CassandraClusterSpec)) {
	for {
		c := get(r.w)
		if c == nil || c.UID != uid || c.DeletionTimestamp != nil {
			return
		}
		wanted := c.DeepCopy()
		change(&wanted.Spec)
		err := r.w.Person().Update(context.Background(), wanted)
		if !apierrors.IsConflict(err) {
			if r.Tell {
				r.tell("person", "edit: "+errorText(err))
			}
			return
		}
	}
}

// formedByEdit says that the ring was formed while the edit stood, so that taking it back is a change of a ring that exists: the cluster says in what the nodes
// differ from the spec.
func (r *run) formedByEdit(what string) bool {
	c := get(r.w)
	if c == nil {
		return false
	}
	upToDate := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionUpToDate)
	return upToDate != nil && upToDate.Status == metav1.ConditionFalse && strings.Contains(upToDate.Message, what)
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return "accepted"
}

func setReads(s *v1alpha1.CassandraClusterSpec) {
	s.Node.CassandraYaml = v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")}}
}

func moreNodes(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].NodesPerRack++ }

func fewerRacks(s *v1alpha1.CassandraClusterSpec) {
	if racks := s.Datacenters[0].Racks; len(racks) > 1 {
		s.Datacenters[0].Racks = racks[:len(racks)-1]
	}
}

const brokenImage = "cassandra:5.0.6-broken"

func wrongImage(s *v1alpha1.CassandraClusterSpec) { s.Image = brokenImage }

func pause(s *v1alpha1.CassandraClusterSpec) { s.Paused = true }
