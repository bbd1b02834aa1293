package backupstore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

const (
	// sweepAgain is when it is looked again whether a sweep is due.
	sweepAgain = time.Hour
	// mostClusters and mostAlone are bounds of the schema.
	mostClusters = 100
	mostAlone    = 64
)

// Sweepable says that the store may be swept: what it lists is relied on.
func Sweepable(s *v1alpha1.CassandraBackupStore) bool {
	return s.DeletionTimestamp == nil && s.Status.ObservedGeneration == s.Generation &&
		meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionReady)
}

// NextSweep is what is to be done after a look at a store: its status is written, and people are
// told of what was deleted and of a problem that is new. Without a look there is nothing to be
// done.
func NextSweep(s *facts.Sweep) plan.Plan {
	draft := plan.Draft{Plan: plan.Plan{Wake: sweepAgain}}
	if s.Swept == nil {
		draft.Wake = lookAgain
		return draft.Plan
	}
	status := *s.Object.Status.DeepCopy()
	before := map[types.UID]v1alpha1.StoredCluster{}
	for _, c := range status.Clusters {
		before[c.UID] = c
	}
	status.Clusters = nil
	var said []plan.Write
	say := func(kind, reason, why string) {
		said = append(said, plan.Write{Verb: plan.Event, Object: s.Object, EventType: kind, Reason: reason, Why: why})
	}
	latest := s.Latest
	if latest == nil {
		latest = map[types.UID]*v1alpha1.StoredBackup{}
		for uid, c := range before {
			if c.LatestBackup != nil {
				latest[uid] = c.LatestBackup
			}
		}
	}
	ours := maps.Clone(s.Problems)
	for uid := range s.Swept {
		ours[uid] = s.Problems[uid]
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(latest)), func(uid types.UID) bool {
		_, is := ours[uid]
		return is
	})
	all := append(slices.Sorted(maps.Keys(ours)), others...)
	for _, uid := range all[:min(len(all), mostClusters)] {
		c := before[uid]
		c.UID, c.Problem, c.LatestBackup = uid, words.Shorten(ours[uid], longestMessage), latest[uid]
		if m := s.Swept[uid]; m != nil {
			at := metav1.NewTime(m.At).Rfc3339Copy()
			fresh := c.SweptAt == nil || !c.SweptAt.Equal(&at)
			if fresh {
				c.SweptAt = &at
			}
			if fresh && m.Deleted > 0 {
				say(corev1.EventTypeNormal, v1alpha1.EventStoreSwept, fmt.Sprintf(
					"%d files of cluster %s are deleted, which no backup needs; %d of %d bytes are left",
					m.Deleted, uid, m.Blobs, m.Bytes))
			}
			c.Files, c.Bytes, c.Deleted, c.Locked = m.Blobs, m.Bytes, m.Deleted, m.Locked
			c.Waiting, c.WaitingBytes = m.Marked, m.MarkedBytes
			c.LogBytes, c.Alone = m.LogBytes, alone(m)
		}
		if c.Problem != "" && before[uid].Problem == "" {
			say(corev1.EventTypeWarning, v1alpha1.EventStoreNotSwept, fmt.Sprintf("cluster %s: %s", uid, c.Problem))
		}
		status.Clusters = append(status.Clusters, c)
	}
	if equality.Semantic.DeepEqual(status, s.Object.Status) {
		return draft.Plan
	}
	object := plan.Named(s.Object).(*v1alpha1.CassandraBackupStore)
	object.Status = status
	draft.Write(plan.Write{Verb: plan.ApplyStatus, Object: object, UID: s.Object.UID,
		ResourceVersion: s.Object.ResourceVersion})
	draft.Write(said...)
	return draft.Plan
}

// alone is what each backup alone has, the largest first.
func alone(m *format.Marks) []v1alpha1.AloneInStore {
	all := slices.SortedStableFunc(slices.Values(m.Alone),
		func(a, b format.Alone) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var out []v1alpha1.AloneInStore
	for _, a := range all[:min(len(all), mostAlone)] {
		out = append(out, v1alpha1.AloneInStore{ID: a.Backup, Bytes: a.Bytes})
	}
	return out
}
