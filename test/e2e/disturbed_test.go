//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// rollingOut bounds a roll-out of three nodes.
const rollingOut = 8 * time.Minute

// restartNow asks for a restart of every JVM.
func restartNow(s *v1alpha1.CassandraClusterSpec) { now := metav1.Now(); s.RestartedAt = &now }

// soakFor has the first node of a roll-out serve for so long before others follow.
func soakFor(d time.Duration) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Disruption.Soak = &metav1.Duration{Duration: d} }
}

// untilSoak changes the spec, and waits until the first node serves with the change and the others
// wait for it.
func untilSoak(t *testing.T, ring *scene.Ring, first string, change func(*v1alpha1.CassandraClusterSpec)) error {
	t.Helper()
	if err := ring.Edit(t.Context(), change); err != nil {
		return err
	}
	return ring.Until(t.Context(), 4*time.Minute, "the first node serves", func(now follow.Sight) error {
		c, _ := now.Cluster(ring.Name)
		if c.Status.Step == nil || !strings.Contains(c.Status.Step.Message, "the first node, "+first+", serves") {
			return fmt.Errorf("the step is %+v", c.Status.Step)
		}
		return nil
	})
}

// notYet notes the records of nodes as they are now. What it returns says whose turn has come
// since.
func notYet(t *testing.T, ring *scene.Ring, names ...string) func(now follow.Sight) error {
	t.Helper()
	were := map[string]v1alpha1.CassandraNodeSpec{}
	for _, n := range ring.Nodes(t.Context()) {
		if slices.Contains(names, n.Name) {
			were[n.Name] = n.Spec
		}
	}
	return func(now follow.Sight) error {
		for _, n := range now.Nodes(ring.Name) {
			was, noted := were[n.Name]
			asked := n.Spec.Restart != nil && (was.Restart == nil || n.Spec.Restart.ID != was.Restart.ID)
			if noted && (asked || n.Spec.State != was.State ||
				!equality.Semantic.DeepEqual(n.Spec.Configuration, was.Configuration) ||
				!equality.Semantic.DeepEqual(n.Spec.Pod, was.Pod)) {
				return fmt.Errorf("it is the turn of node %s", n.Name)
			}
		}
		return nil
	}
}

// unless ends a wait as soon as the turn of another node comes.
func unless(turn func(follow.Sight) error, condition follow.Condition) follow.Condition {
	return func(now follow.Sight) error {
		if err := turn(now); err != nil {
			return follow.Never(err)
		}
		return condition(now)
	}
}

// readiness holds when a node says that it is ready, or that it is not.
func readiness(ring *scene.Ring, node string, ready bool) follow.Condition {
	return func(now follow.Sight) error {
		for _, n := range now.Nodes(ring.Name) {
			if n.Name == node && n.Status.Ready == ready {
				return nil
			}
		}
		return fmt.Errorf("node %s does not say ready=%v", node, ready)
	}
}

// starts counts how often nodes have let clients in since a time: each JVM does once.
func starts(t *testing.T, ring *scene.Ring, since time.Time) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, name := range ring.NodeNames(t.Context()) {
		lines, err := ring.ReadLog(t.Context(), name, layout.CassandraContainer, since)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if strings.Contains(l.Text, "Starting listening for CQL clients") {
				out[name]++
			}
		}
	}
	return out
}

func wantStarts(t *testing.T, ring *scene.Ring, since time.Time, want map[string]int) {
	t.Helper()
	got := starts(t, ring, since)
	for _, name := range ring.NodeNames(t.Context()) {
		if got[name] != want[name] {
			t.Errorf("the JVM of node %s was started %d times, want %d", name, got[name], want[name])
		}
	}
}

// TestRollOutCorrected: while the first node serves with a setting, the spec changes: it takes that
// one away and sets another. The first node follows first again, and the others know only the
// second. Then that one is removed, too.
func TestRollOutCorrected(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	const first, second = "concurrent_writes", "concurrent_counter_writes"
	before, names := identities(t, ring), ring.NodeNames(t.Context())
	were := [2]string{settingOf(t, ring, names[0], first), settingOf(t, ring, names[0], second)}
	began := time.Now()
	while(t, ring, servedThroughout, "a setting, and another instead in mid-roll-out", func() error {
		if err := untilSoak(t, ring, names[0], setYAML(first, "24")); err != nil {
			return err
		}
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			delete(s.Node.CassandraYaml, first)
			setYAML(second, "24")(s)
		}); err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), rollingOut)
	})
	wantStarts(t, ring, began, map[string]int{names[0]: 2, names[1]: 1, names[2]: 1})
	for _, name := range names {
		if a, b := settingOf(t, ring, name, first), settingOf(t, ring, name, second); a != were[0] || b != "24" {
			t.Errorf("node %s has %s %s and %s %s, want %s and 24", name, first, a, second, b, were[0])
		}
	}
	rollOut(t, ring, "a setting is removed",
		func(s *v1alpha1.CassandraClusterSpec) { delete(s.Node.CassandraYaml, second) })
	for _, name := range names {
		if got := settingOf(t, ring, name, second); got != were[1] {
			t.Errorf("node %s has %s %s, want %s", name, second, got, were[1])
		}
	}
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestRollOutAndDeaths: while the first node serves with a change, the second one dies by hand, and
// comes back without the change. After two minutes the first one dies: it serves for the whole soak
// again before any other follows.
func TestRollOutAndDeaths(t *testing.T) {
	onlyInFull(t)
	const soak = 150 * time.Second
	ring := threeRacks(t)
	before, names := identities(t, ring), ring.NodeNames(t.Context())
	dies := func(node string, turn func(follow.Sight) error) error {
		if err := ring.KillJVM(t.Context(), node); err != nil {
			return err
		}
		return ring.Until(t.Context(), time.Minute, "it is noted", unless(turn, readiness(ring, node, false)))
	}
	while(t, ring, gapsAreShort, "another node dies, and the first one after two minutes", func() error {
		if err := ring.Edit(t.Context(), soakFor(soak)); err != nil {
			return err
		}
		if err := untilSoak(t, ring, names[0], restartNow); err != nil {
			return err
		}
		served, turn := time.Now(), notYet(t, ring, names[1:]...)
		if err := dies(names[1], turn); err != nil {
			return err
		}
		if err := ring.Until(t.Context(), 4*time.Minute, "it is back",
			unless(turn, readiness(ring, names[1], true))); err != nil {
			return err
		}
		rest(t, time.Until(served.Add(2*time.Minute)))
		died := time.Now()
		if err := dies(names[0], turn); err != nil {
			return err
		}
		if err := ring.Until(t.Context(), soak+4*time.Minute, "the turn of another node comes",
			func(now follow.Sight) error {
				if turn(now) == nil {
					return errors.New("it has not come")
				}
				return nil
			}); err != nil {
			return err
		}
		if served := time.Since(died); served < soak {
			return fmt.Errorf("others followed %s after the first node had died, want at least %s", served, soak)
		}
		return ring.RolledOut(t.Context(), rollingOut)
	})
	if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) { s.Disruption.Soak = nil }); err != nil {
		t.Error(err)
	}
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestRollOutAndDrain: a host is drained in the midst of a roll-out. While nodes are restarted its
// pod cannot be evicted. While the roll-out waits for a person it can: the node comes back as it
// was, and follows when its turn has come.
func TestRollOutAndDrain(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	before, names := identities(t, ring), ring.NodeNames(t.Context())
	pod := podOf(t, ring, names[2])
	ring.Invariants.ExpectDeletion(pod)
	while(t, ring, gapsAreShort, "a host is drained while a roll-out is held, and a person resumes it", func() error {
		if err := untilSoak(t, ring, names[0], func(s *v1alpha1.CassandraClusterSpec) {
			restartNow(s)
			s.Disruption.HoldAfter = v1alpha1.HoldAfterFirstNode
		}); err != nil {
			return err
		}
		turn := notYet(t, ring, names[1:]...)
		if err := ring.TryEvict(t.Context(), pod); !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("the pod could be evicted in the midst of a roll-out: %w", err)
		}
		if err := ring.Until(t.Context(), 4*time.Minute, "the roll-out is held",
			unless(turn, blockedBy(ring, v1alpha1.BlockedRollOutHeld, ""))); err != nil {
			return err
		}
		if err := ring.Cordon(t.Context(), pod.Spec.NodeName, true); err != nil {
			return err
		}
		err := ring.Evict(t.Context(), pod)
		if err == nil {
			err = ring.Until(t.Context(), 4*time.Minute, "another pod waits for the host",
				unless(turn, func(now follow.Sight) error { _, err := another(now, pod); return err }))
		}
		if err := errors.Join(err,
			ring.Cordon(context.WithoutCancel(t.Context()), pod.Spec.NodeName, false)); err != nil {
			return err
		}
		if err := ring.Until(t.Context(), 4*time.Minute, "the node is back as it was",
			unless(turn, func(now follow.Sight) error {
				return errors.Join(reportsFromAnother(now, ring, pod.Name, pod.UID),
					readiness(ring, pod.Name, true)(now))
			})); err != nil {
			return err
		}
		c, _ := ring.Now(t.Context()).Cluster(ring.Name)
		if c.Status.Step == nil || c.Status.Step.Hold == "" {
			return fmt.Errorf("the roll-out is not held any more: %+v", c.Status.Step)
		}
		if err := ring.Edit(t.Context(),
			func(s *v1alpha1.CassandraClusterSpec) { s.Disruption.Resume = c.Status.Step.Hold }); err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), rollingOut)
	})
	if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
		s.Disruption.HoldAfter, s.Disruption.Resume = "", ""
	}); err != nil {
		t.Error(err)
	}
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestRollOutWhileOperatorKilled: the operator is killed again and again while all JVMs are
// restarted. Each is restarted once.
func TestRollOutWhileOperatorKilled(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	onlyHere(t, ring.Scene)
	before, began, want := identities(t, ring), time.Now(), map[string]int{}
	for name := range before {
		want[name] = 1
	}
	stop := killing(t, ring.Scene, 3)
	rollOut(t, ring, "all JVMs are restarted while the operator is killed again and again", restartNow)
	t.Logf("the operator was killed %d times meanwhile", stop())
	wantStarts(t, ring, began, want)
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestTwoAskedToRestart: a stale operator asks two nodes to restart at once. The agent of one of
// them defers that until the other is back.
func TestTwoAskedToRestart(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	before, names, began := identities(t, ring), ring.NodeNames(t.Context()), time.Now()
	asked := fmt.Sprintf("stale-%d", began.UnixNano())
	ask := func() error {
		for _, name := range names[:2] {
			if err := ring.AskToRestart(t.Context(), name, asked); err != nil {
				return err
			}
		}
		if err := ring.Until(t.Context(), rollingOut, "one of the two defers its restart", func(now follow.Sight) error {
			if slices.ContainsFunc(now.Nodes(ring.Name), func(n v1alpha1.CassandraNode) bool {
				return n.Status.Phase == v1alpha1.PhaseDeferred
			}) {
				return nil
			}
			return errors.New("neither does")
		}); err != nil {
			return err
		}
		for _, name := range names[:2] {
			if err := untilNode(t, ring, name, "it has restarted", func(n *v1alpha1.CassandraNode) bool {
				return n.Status.Restart != nil && n.Status.Restart.ID == asked && n.Status.Restart.FinishedAt != nil
			}); err != nil {
				return err
			}
		}
		return nil
	}
	while(t, ring, servedThroughout, "two nodes are asked to restart by a stale operator", func() error {
		start, err := ring.StopOperators(t.Context())
		if err == nil {
			err = errors.Join(ask(), start(context.WithoutCancel(t.Context())))
		}
		if err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), rollingOut)
	})
	wantStarts(t, ring, began, map[string]int{names[0]: 1, names[1]: 1})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestRollOutUnheard: the first node of a roll-out starts and neither hears the others nor is
// heard. It lets no client in, and the turn of no other comes, until it is.
func TestRollOutUnheard(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	onlyHere(t, ring.Scene)
	before, names := identities(t, ring), ring.NodeNames(t.Context())
	ring.Invariants.ExpectRestart(names[0]) // a JVM that hears nobody may end
	while(t, ring, gapsAreShort, "a node is restarted that does not see its peers for 50 s", func() error {
		turn := notYet(t, ring, names[1:]...)
		if err := ring.Edit(t.Context(), restartNow); err != nil {
			return err
		}
		if err := ring.Sees(t.Context(), names[1], func(members []string) bool {
			return slices.Contains(members, "DN "+before[names[0]].address+" "+before[names[0]].hostID)
		}); err != nil {
			return err
		}
		hear, err := ring.Unheard(t.Context(), names[0])
		if err != nil {
			return err
		}
		err = ring.Until(t.Context(), time.Minute, "the node says that it is not ready", readiness(ring, names[0], false))
		for end := time.Now().Add(50 * time.Second); err == nil && time.Now().Before(end); rest(t, time.Second) {
			now := ring.Now(t.Context())
			err = errors.Join(turn(now), readiness(ring, names[0], false)(now))
		}
		if err := errors.Join(err, hear(context.WithoutCancel(t.Context()))); err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), rollingOut)
	})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}
