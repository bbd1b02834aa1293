package upkeep

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

const first, second, third = "orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"

// members is what is known of a ring of three nodes that are all up.
func members() *facts.Snapshot {
	s := &facts.Snapshot{
		Cluster: &v1alpha1.CassandraCluster{}, Nodes: map[string]*facts.Node{},
		Ledger: &ledger.Ledger{Ring: ledger.Ring{Members: map[string]string{}}},
	}
	for _, name := range []string{first, second, third} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name)}}
		s.Nodes[name] = &facts.Node{
			Name: name, Record: &v1alpha1.CassandraNode{Spec: v1alpha1.CassandraNodeSpec{Member: &v1alpha1.Member{}}},
			Pod: pod,
			Agent: &facts.Agent{PodUID: pod.UID, Phase: v1alpha1.PhaseNormal, Process: facts.ProcessRunning,
				Ring: &facts.Ring{Mode: facts.ModeNormal}},
		}
		s.Ledger.Members[name] = "host-" + name
	}
	return s
}

// A node with a part in the ring that does not come up is named once, with what it may come from.
func TestWhoDoesNotComeUpIsSaid(t *testing.T) {
	type scene struct {
		*facts.Snapshot
		draft *plan.Draft
		n     *facts.Node
	}
	trouble := func(s *scene) {
		s.n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: layout.CassandraContainer, State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"},
			},
		}}
	}
	blockedBy := func(step, node string) func(*scene) {
		return func(s *scene) { trouble(s); s.draft.Block(step, "", []string{node}, "") }
	}
	noticed := func(node string) func(*scene) {
		return func(s *scene) { trouble(s); s.draft.Notice("", []string{node}, "") }
	}
	failed := func(phase v1alpha1.NodePhase, message string) func(*scene) {
		return func(s *scene) { s.n.Agent.Phase, s.n.Agent.Message = phase, message }
	}
	inStep := func(kind ledger.Kind) func(*scene) {
		return func(s *scene) { trouble(s); s.Ledger.Step = &ledger.Step{Kind: kind, Nodes: []string{second}} }
	}
	for name, c := range map[string]struct {
		change func(*scene)
		words  string
	}{
		"it is up":                      {func(*scene) {}, ""},
		"its container does not start":  {trouble, "ErrImagePull"},
		"it was said already":           {blockedBy("VolumesAndPods", second), ""},
		"it was said of another":        {blockedBy("VolumesAndPods", third), "ErrImagePull"},
		"it was noticed already":        {noticed(second), ""},
		"another was noticed":           {noticed(third), "ErrImagePull"},
		"something else was said of it": {blockedBy("JoinNode", second), "ErrImagePull"},
		"its agent says why":            {failed(v1alpha1.PhaseFailed, "no space left"), "no space left"},
		"its agent does not say why":    {failed(v1alpha1.PhaseFailed, ""), ""},
		"its agent says something else": {failed(v1alpha1.PhaseNormal, "it serves"), ""},
		"it has no pod":                 {func(s *scene) { s.n.Pod = nil }, ""},
		"the one before it has no pod":  {func(s *scene) { trouble(s); s.Nodes[first].Pod = nil }, "ErrImagePull"},
		"its pod goes": {func(s *scene) { trouble(s); s.n.Pod.DeletionTimestamp = &metav1.Time{} },
			""},
		"it has no part in the ring": {func(s *scene) {
			trouble(s)
			s.n.Record.Spec.Member = nil
			delete(s.Ledger.Members, second)
		}, ""},
		"it joins, and its step says so": {inStep(ledger.JoinNode), ""},
		"it forms a ring":                {inStep(ledger.FormRing), "ErrImagePull"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := members()
			s := &scene{facts, &plan.Draft{}, facts.Nodes[second]}
			c.change(s)
			before := len(s.draft.Notices)
			New(assess.NewView(s.Snapshot, metav1.Now().Time), s.draft).noticeNotStarting()
			said := s.draft.Notices[before:]
			if (len(said) > 0) != (c.words != "") ||
				len(said) > 0 && (!slices.Equal(said[0].Nodes, []string{second}) ||
					!strings.Contains(said[0].Message, c.words)) {
				t.Errorf("said %+v, want %q", said, c.words)
			}
		})
	}
}
func TestAVolumeInWords(t *testing.T) {
	class := func(name string) *string { return &name }
	for want, c := range map[string]struct {
		size  string
		class *string
	}{"1Gi": {"1Gi", nil}, "2Gi": {"2Gi", class("")}, "3Gi of class fast": {"3Gi", class("fast")}} {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.size)}
		claim.Spec.StorageClassName = c.class
		if got := volumeInWords(claim); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
