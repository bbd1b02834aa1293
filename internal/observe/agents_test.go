package observe

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/threads"
)

// says is an agent that answers each question alike, and never says anything new.
type says struct {
	answer *facts.Agent
	err    error
}

func (s says) Facts(context.Context) (*facts.Agent, error) { return s.answer, s.err }

func (s says) WaitFacts(ctx context.Context, _ string, _ time.Duration) (*facts.Agent, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s says) Close() {}

// Before tickets are issued every agent is asked again: what it said is not enough.
func TestAnAgentThatSaysSomethingElseIsAChange(t *testing.T) {
	said := facts.Agent{ClusterUID: "cluster", Node: "a", PodUID: "pod", Phase: v1alpha1.PhaseNormal}
	waits, another := said, said
	waits.Phase, another.PodUID = v1alpha1.PhaseWaiting, "another"
	for name, c := range map[string]struct {
		now     says
		changed bool
	}{
		"the same":           {says{answer: &said}, false},
		"another phase":      {says{answer: &waits}, true},
		"of another pod":     {says{answer: &another}, true},
		"it does not answer": {says{err: errors.New("connection refused")}, true},
	} {
		a := Agents{Wake: func(types.NamespacedName) {}, Dial: func(Target) Asker { return c.now },
			Threads: threads.Goroutines{}}
		s := &facts.Snapshot{
			Cluster: &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Name: "orders", UID: "cluster"}},
			Nodes: map[string]*facts.Node{"a": {Name: "a", Agent: &said, Pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{UID: "pod"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}}},
		}
		if err := a.Confirm(t.Context(), s); errors.Is(err, ErrChanged) != c.changed || err != nil && !c.changed {
			t.Errorf("%s: %v, want a change: %v", name, err, c.changed)
		}
		a.Forget(types.NamespacedName{Name: "orders"})
	}
}
