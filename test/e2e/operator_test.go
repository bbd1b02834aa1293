//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

const (
	// operatorKills is how often the operator is killed while a ring forms, and as often while a
	// node joins.
	operatorKills = 20
	// longestWork is how long an operator leads at most before it is killed.
	longestWork = 3 * time.Second
)

// killing kills every operator that comes to lead, after a random while, until so many have been
// killed or stop is called. It says how many were.
func killing(t *testing.T, s *scene.Scene, seed uint64) (stop func() int) {
	t.Helper()
	chance := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // for moments
	ctx, cancel := context.WithCancel(t.Context())
	killed := make(chan int, 1)
	go func() {
		leader, n := "", 0
		defer func() { killed <- n }()
		for n < operatorKills {
			next, err := s.KillLeader(ctx, leader, time.Duration(chance.Int64N(int64(longestWork))))
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("kill the operator: %v", err)
				}
				return
			}
			leader = next
			n++
		}
	}()
	return func() int {
		cancel()
		return <-killed
	}
}

// TestOperatorKilled: the operator is killed again and again while a ring forms, and while a node
// joins it under a client's eyes: both come to their end, the client is served, and nothing happens
// twice.
func TestOperatorKilled(t *testing.T) {
	onlyInFull(t)
	s := open(t, "e2e-killed")
	onlyHere(t, s)
	sample := sampleOf(t, "demo.yaml")
	sample.Spec.Node.Placement = &v1alpha1.Placement{HostAntiAffinity: v1alpha1.HostAntiAffinityNone}
	var ring *scene.Ring
	stop := killing(t, s, 1)
	took(t, "a ring forms while the operator is killed again and again", func() (err error) {
		ring, err = s.Form(t.Context(), sample)
		return err
	})
	t.Logf("the operator was killed %d times meanwhile", stop())
	took(t, "rows are written", func() error { return ring.Fill(t.Context(), gocql.Quorum) })
	before := identities(t, ring)
	stop = killing(t, s, 2)
	grow(t, ring, "a node joins while the operator is killed again and again", 4,
		func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	t.Logf("the operator was killed %d times meanwhile", stop())
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	wantHistory(t, ring, "FormRing", "JoinNode", "Cleanup")
}

// TestNewerOperator: an operator with another image of the agent replaces the agents in the pods
// that run, one alone and then rack by rack. No pod is recreated, no JVM is restarted, and clients
// are served all the while.
func TestNewerOperator(t *testing.T) {
	ring := threeRacks(t)
	before, started := identities(t, ring), jvms(t, ring)
	was, err := ring.AgentImage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tagged, digest, pinned := strings.Cut(was, "@")
	if !pinned {
		t.Skipf("%s has no other name: it is not pinned by its digest", was)
	}
	// The same image by another name: to Kubernetes it is another one.
	newer := tagged[:strings.LastIndex(tagged, ":")] + "@" + digest
	t.Cleanup(func() {
		if err := ring.InstallAgent(context.WithoutCancel(t.Context()), was); err != nil {
			t.Errorf("install the operator as it was: %v", err)
		}
	})
	while(t, ring, servedThroughout, "the agents are replaced", func() error {
		if err := ring.InstallAgent(t.Context(), newer); err != nil {
			return err
		}
		return ring.Until(t.Context(), 3*time.Minute, "all agents are of the new image", func(now follow.Sight) error {
			for _, pod := range now.Pods(ring.Name) {
				status := pod.Status.InitContainerStatuses[0]
				if pod.Spec.InitContainers[0].Image != newer || status.RestartCount == 0 || !status.Ready {
					return fmt.Errorf("the agent of %s is %s: %+v", pod.Name, pod.Spec.InitContainers[0].Image, status)
				}
			}
			return nil
		})
	})
	wantAsBefore(t, before, identities(t, ring))
	for name, p := range jvms(t, ring) {
		if p != started[name] {
			t.Errorf("node %s: its JVM was %+v, and is %+v", name, started[name], p)
		}
	}
	wantEvent(t, ring, "ReplacingAgents", newer)
	wantRingSeen(t, ring)
}

// TestStaleLeader: the operator that leads stands still, and another leads and makes a deleted pod
// again. When the first one continues, in the midst of what it did, it ends, and nothing comes of
// it.
func TestStaleLeader(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	onlyHere(t, ring.Scene)
	before, lost := identities(t, ring), ring.NodeNames(t.Context())[1]
	while(t, ring, gapsAreShort, "the operator stands still, another makes a deleted pod again, and the first "+
		"continues", func() error {
		pod := podOf(t, ring, lost)
		ring.Invariants.ExpectDeletion(pod)
		if err := kubernetes.Client.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID}); err != nil {
			return err
		}
		thaw, err := ring.FreezeLeader(t.Context())
		if err != nil {
			return err
		}
		err = ring.Until(t.Context(), time.Minute, "another pod is made", func(now follow.Sight) error {
			_, err := another(now, pod)
			return err
		})
		return errors.Join(err, thaw(t.Context()))
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}
