//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// deletePods deletes pods, as kubectl does, and waits until their nodes have reported from others.
func deletePods(ctx context.Context, ring *scene.Ring, names ...string) error {
	old := map[string]string{}
	for _, name := range names {
		pod, found := ring.Now(ctx).Pod(name)
		if !found {
			return fmt.Errorf("pod %s is not there", name)
		}
		old[name] = string(pod.UID)
		ring.Invariants.ExpectDeletion(pod)
		if err := kubernetes.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); err != nil {
			return fmt.Errorf("delete pod %s: %w", name, err)
		}
	}
	return ring.Until(ctx, 4*time.Minute, "the agents of other pods have reported", func(now follow.Sight) error {
		for _, n := range now.Nodes(ring.Name) {
			if old[n.Name] != "" && string(n.Status.PodUID) == old[n.Name] {
				return fmt.Errorf("node %s still reports from its old pod: %s", n.Name, follow.Phase(&n))
			}
		}
		return nil
	})
}

// TestPodDeleted: the node comes back with the same data, as the same member, at another address.
func TestPodDeleted(t *testing.T) {
	ring := threeRacks(t)
	before := identities(t, ring)
	lost := ring.NodeNames(t.Context())[1]
	logs := followLogs(t, ring, lost)
	var deleted time.Time
	while(t, ring, gapsAreShort, "a pod is deleted and another reports", func() (err error) {
		deleted, err = movePod(t, ring, lost)
		return err
	})
	wantStoppedInOrder(t, logs)
	sayParts(t, ring, lost, ring.NodeNames(t.Context())[0], deleted, comingBack...)
	now := identities(t, ring)
	wantSameMembers(t, before, now)
	if now[lost].address == before[lost].address {
		t.Errorf("node %s still has the address %s: nothing was tested", lost, now[lost].address)
	}
	wantRingSeen(t, ring)
}

// followLogs follows the containers of a pod, by name.
func followLogs(t *testing.T, ring *scene.Ring, pod string) map[string]*scene.Log {
	t.Helper()
	logs := map[string]*scene.Log{}
	for _, container := range []string{layout.AgentContainer, layout.CassandraContainer} {
		var err error
		if logs[container], err = ring.FollowLog(t.Context(), pod, container); err != nil {
			t.Fatal(err)
		}
	}
	return logs
}

// orderOfAStop is what the two containers of a pod say of it, one after the other. Cassandra's
// lines are those of 4.1 and 5.0.
var orderOfAStop = []struct{ container, words string }{
	{layout.AgentContainer, "Act BeginStop"}, // from here on the probe says that it is not ready
	{layout.AgentContainer, "Act CloseTraffic"},
	{layout.CassandraContainer, "Stop listening for CQL clients"},
	{layout.AgentContainer, "Act Drain"},
	{layout.CassandraContainer, "DRAINING: starting drain process"},
	{layout.CassandraContainer, "DRAINED"},
	{layout.AgentContainer, "Act Terminate"},
}

// longestStop is how long that may take with little data. The grace period of a pod is 300 s.
const longestStop = 90 * time.Second

// wantStoppedInOrder fails if a pod was not stopped in order: not ready, closed for clients,
// drained, ended.
func wantStoppedInOrder(t *testing.T, logs map[string]*scene.Log) {
	t.Helper()
	lines := map[string][]scene.Line{}
	for container, log := range logs {
		var err error
		if lines[container], err = log.Lines(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var first, last time.Time
	for _, step := range orderOfAStop {
		i := slices.IndexFunc(lines[step.container],
			func(l scene.Line) bool { return strings.Contains(l.Text, step.words) })
		if i < 0 {
			t.Errorf("container %s never said %q in its %d last lines", step.container, step.words,
				len(lines[step.container]))
			continue
		}
		at := lines[step.container][i].At
		if at.Before(last) {
			t.Errorf("%s: %q came %s before what must come first", step.container, step.words, last.Sub(at))
		}
		if first.IsZero() {
			first = at
		}
		last = at
		t.Logf("%6.2fs  %s: %s", at.Sub(first).Seconds(), step.container, step.words)
	}
	if took := last.Sub(first); took > longestStop {
		t.Errorf("the stop took %s, want at most %s", took, longestStop)
	}
}

// TestAllPodsDeleted: a ring of which nothing runs comes back by itself, with all addresses
// changed.
func TestAllPodsDeleted(t *testing.T) {
	ring := threeRacks(t)
	before := identities(t, ring)
	while(t, ring, nothingIsLost, "all pods are deleted and others report",
		func() error { return deletePods(t.Context(), ring, ring.NodeNames(t.Context())...) })
	now := identities(t, ring)
	wantSameMembers(t, before, now)
	for name := range before {
		if now[name].podUID == before[name].podUID {
			t.Errorf("node %s still has its pod", name)
		}
	}
	wantRingSeen(t, ring)
}

// TestJVMKilled: the agent starts it again in the same pod, at the same address, and says why it
// had to.
func TestJVMKilled(t *testing.T) {
	ring := threeRacks(t)
	before := identities(t, ring)
	victim := ring.NodeNames(t.Context())[0]
	was, err := ring.JVM(t.Context(), victim)
	if err != nil {
		t.Fatal(err)
	}
	restarts := restartsOf(t, ring, victim)
	var killed time.Time
	while(t, ring, gapsAreShort, "a JVM is killed and its agent says so", func() error {
		killed = time.Now()
		if err := ring.KillJVM(t.Context(), victim); err != nil {
			return err
		}
		return ring.Until(t.Context(), time.Minute, "the status names the restart", func(now follow.Sight) error {
			i := slices.IndexFunc(now.Nodes(ring.Name), func(n v1alpha1.CassandraNode) bool { return n.Name == victim })
			if r := now.Nodes(ring.Name)[i].Status.Restarts; r == nil || r.Count != restarts+1 {
				return errors.New("it does not count it")
			} else if r.LastReason != v1alpha1.RestartKilled {
				return follow.Never(fmt.Errorf("it gives the reason %s", r.LastReason))
			}
			return nil
		})
	})
	sayParts(t, ring, victim, ring.NodeNames(t.Context())[1], killed,
		slices.Concat([]part{{"agent", "Act NoteExit", "the agent notes the end"}}, comingBack)...)
	now := identities(t, ring)
	wantSameMembers(t, before, now)
	if now[victim] != before[victim] {
		t.Errorf("node %s was %+v and is %+v: pod and address were to stay", victim, before[victim], now[victim])
	}
	if is, err := ring.JVM(t.Context(), victim); err != nil || is == was {
		t.Errorf("the JVM was %+v and is %+v, error %v: it was to be another", was, is, err)
	}
	for container, n := range containerRestarts(t, ring, victim) {
		if n != 0 {
			t.Errorf("container %s was started again %d times: the JVM alone was to be", container, n)
		}
	}
}

// part of a comeback is what is said on the way to a node that serves: by its agent, by its
// Cassandra, by that of a peer.
type part struct{ by, words, what string }

// comingBack are the parts from the start of a JVM on. What is Helenus' own is the time until the
// start, and that from NORMAL to CQL.
var comingBack = []part{
	{"agent", "Act StartJVM", "the agent starts a JVM"},
	{"agent", "Act NoteNormal", "it is NORMAL"},
	{"peer", "is now UP", "a peer sees it up"},
	{"cassandra", "Starting listening for CQL clients", "it listens for clients"},
}

// sayParts says when each part was, in seconds from the moment at which a node was lost.
func sayParts(t *testing.T, ring *scene.Ring, node, peer string, lost time.Time, parts ...part) {
	t.Helper()
	said := map[string][]scene.Line{}
	for by, at := range map[string][2]string{"agent": {node, layout.AgentContainer},
		"cassandra": {node, layout.CassandraContainer}, "peer": {peer, layout.CassandraContainer}} {
		var err error
		if said[by], err = ring.ReadLog(t.Context(), at[0], at[1], lost); err != nil {
			t.Fatal(err)
		}
	}
	address := identities(t, ring)[node].address
	for _, p := range parts {
		i := slices.IndexFunc(said[p.by], func(l scene.Line) bool {
			return strings.Contains(l.Text, p.words) && (p.by != "peer" || strings.Contains(l.Text, "/"+address+":"))
		})
		if i < 0 {
			t.Errorf("nobody said that %s: %q", p.what, p.words)
			continue
		}
		t.Logf("%6.2fs  after the loss: %s", said[p.by][i].At.Sub(lost).Seconds(), p.what)
	}
}

func restartsOf(t *testing.T, r *scene.Ring, node string) int32 {
	t.Helper()
	for _, n := range r.Nodes(t.Context()) {
		if n.Name == node && n.Status.Restarts != nil {
			return n.Status.Restarts.Count
		}
	}
	return 0
}

// containerRestarts of a pod by name of the container.
func containerRestarts(t *testing.T, r *scene.Ring, node string) map[string]int32 {
	t.Helper()
	pod, found := r.Now(t.Context()).Pod(node)
	if !found {
		t.Fatalf("pod %s is not there", node)
	}
	return restartCounts(pod)
}

func restartCounts(pod *corev1.Pod) map[string]int32 {
	out := map[string]int32{}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		out[status.Name] = status.RestartCount
	}
	return out
}

// TestAgentKilled: whatever becomes of the agent, the JVM runs on.
func TestAgentKilled(t *testing.T) {
	ring := threeRacks(t)
	victim := ring.NodeNames(t.Context())[2]
	for _, way := range []struct {
		name string
		end  func(*corev1.Pod) error
		// reason that Kubernetes gives for the end of the container; empty for any.
		reason string
	}{
		{name: "killed", end: func(pod *corev1.Pod) error { return ring.SignalAgent(pod.UID, syscall.SIGKILL) },
			reason: "Error"},
		// What a panic does too: the runtime of Go prints all goroutines and ends with code 2.
		{name: "crashed", end: func(pod *corev1.Pod) error { return ring.SignalAgent(pod.UID, syscall.SIGQUIT) },
			reason: "Error"},
		{name: "out of memory", end: func(pod *corev1.Pod) error { return ring.ExhaustAgent(t.Context(), pod.UID) },
			reason: "OOMKilled"},
		{name: "exchanged for another image", end: func(pod *corev1.Pod) error {
			return exchangeAgent(t.Context(), pod)
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			was, err := ring.JVM(t.Context(), victim)
			if err != nil {
				t.Fatal(err)
			}
			pod, found := ring.Now(t.Context()).Pod(victim)
			if !found {
				t.Fatalf("pod %s is not there", victim)
			}
			before := agentOf(pod).ContainerID
			while(t, ring, servedThroughout, "the agent is "+way.name+" and another runs", func() error {
				if err := way.end(pod); err != nil {
					return err
				}
				return ring.Until(t.Context(), 2*time.Minute, "another agent runs",
					func(now follow.Sight) error { return agentStarted(now, victim, before) })
			})
			if is, err := ring.JVM(t.Context(), victim); err != nil || is != was {
				t.Errorf("the JVM was %+v and is %+v, error %v: it was to run on", was, is, err)
			}
			if pod, _ := ring.Now(t.Context()).Pod(victim); way.reason != "" {
				if ended := agentOf(pod).LastTerminationState.Terminated; ended == nil || ended.Reason != way.reason {
					t.Errorf("the agent's container ended with %+v, want reason %s", ended, way.reason)
				}
			}
		})
	}
}

// agentOf is the status of the agent's container in a pod.
func agentOf(pod *corev1.Pod) corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.InitContainerStatuses,
		func(c corev1.ContainerStatus) bool { return c.Name == layout.AgentContainer })
	if i < 0 {
		return corev1.ContainerStatus{}
	}
	return pod.Status.InitContainerStatuses[i]
}

// agentStarted holds when the agent runs in another container than before, and has put everything
// in its place.
func agentStarted(now follow.Sight, node, before string) error {
	pod, found := now.Pod(node)
	if !found {
		return follow.Never(errors.New("the pod is gone"))
	}
	switch agent := agentOf(pod); {
	case agent.ContainerID == before || agent.State.Running == nil:
		return fmt.Errorf("its container is %s, and was %s", agent.ContainerID, before)
	case agent.Started == nil || !*agent.Started:
		return errors.New("its container has not started yet")
	}
	return nil
}

// exchangeAgent gives the agent the same image by another name: kubelet cannot know that it is the
// same. With a digest, the tag says nothing.
func exchangeAgent(ctx context.Context, pod *corev1.Pod) error {
	before := pod.DeepCopy()
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name != layout.AgentContainer {
			continue
		}
		for _, status := range pod.Status.InitContainerStatuses {
			repository, digest, pinned := strings.Cut(status.ImageID, "@")
			if status.Name != c.Name || !pinned {
				continue
			}
			c.Image = repository + ":exchanged@" + digest
			return kubernetes.Client.Patch(ctx, pod, client.StrategicMergeFrom(before))
		}
	}
	return errors.New("the digest of the agent's image is not known")
}
