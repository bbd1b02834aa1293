//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// TestWithoutAPIServerAndOperator: a member whose container ends comes back by itself while no
// operator runs and its host is cut off from the API server.
func TestWithoutAPIServerAndOperator(t *testing.T) {
	ring := threeRacks(t)
	if _, err := ring.Local(); errors.Is(err, scene.ErrNotHere) {
		t.Skipf("a host cannot be cut off: %v", err)
	}
	names := ring.NodeNames(t.Context())
	victim, peer := names[1], names[0]
	pod, found := ring.Now(t.Context()).Pod(victim)
	if !found {
		t.Fatalf("pod %s is not there", victim)
	}
	before := identities(t, ring)
	told, started := restartsOf(t, ring, victim), containerRestarts(t, ring, victim)
	ring.Invariants.ExpectRestart(victim)

	var start func(context.Context) error
	took(t, "no operator runs any more", func() (err error) {
		start, err = ring.StopOperators(t.Context())
		return err
	})
	// Whatever happens below, everything is to be as it was.
	defer took(t, "operators run again", func() error { return start(context.WithoutCancel(t.Context())) })
	if err := ring.CutOff(t.Context(), pod.Spec.NodeName); err != nil {
		t.Fatal(err)
	}
	defer took(t, "the host is back", func() error {
		return ring.Reconnect(context.WithoutCancel(t.Context()), pod.Spec.NodeName)
	})

	took(t, "the container ends", func() error {
		if err := ring.EndContainer(pod.UID); err != nil {
			return err
		}
		return ring.AwaitProbe(t.Context(), pod, false)
	})
	took(t, "the member is ready again", func() error { return ring.AwaitProbe(t.Context(), pod, true) })
	took(t, "another member sees it up", func() error {
		return ring.Sees(t.Context(), peer, func(members []string) bool {
			return slices.Contains(members, "UN "+before[victim].address+" "+before[victim].hostID)
		})
	})
	if n := restartsOf(t, ring, victim); n != told {
		t.Errorf("the agent has reported %d restarts to the API server, and before %d: it was not cut off", n, told)
	}
	took(t, "the host is reconnected", func() error { return ring.Reconnect(t.Context(), pod.Spec.NodeName) })
	took(t, "operators run", func() error { return start(t.Context()) })
	took(t, "the status says what happened", func() error {
		return ring.Until(t.Context(), 2*time.Minute, "the agent has reported the end of its container",
			func(now follow.Sight) error {
				for _, n := range now.Nodes(ring.Name) {
					if n.Name != victim {
						continue
					}
					if r := n.Status.Restarts; r == nil || r.LastReason != v1alpha1.RestartInitRestarted {
						return fmt.Errorf("restarts %+v", r)
					}
					return nil
				}
				return errors.New("it has no record")
			})
	})
	took(t, "all nodes serve again", func() error { return ring.Serving(t.Context()) })
	if is := identities(t, ring)[victim]; is != before[victim] {
		t.Errorf("node %s was %+v and is %+v: pod and address were to stay", victim, before[victim], is)
	}
	// The kubelet tells of what it did meanwhile by itself, within some ten seconds after the host
	// is back.
	took(t, "kubelet has told of the container that it started again", func() error {
		return ring.Until(t.Context(), 2*time.Minute, "kubelet has told of it", func(now follow.Sight) error {
			if now, found := now.Pod(victim); !found || maps.Equal(restartCounts(now), started) {
				return errors.New("no container was started again")
			}
			return nil
		})
	})
	for container, n := range containerRestarts(t, ring, victim) {
		if again := n - started[container]; strings.HasPrefix(container, "cassandra") != (again == 1) {
			t.Errorf("container %s was started again %d times: that of Cassandra alone was to be, once", container,
				again)
		}
	}
	took(t, "all rows are read at ALL through every node",
		func() error { return ring.ReadBack(t.Context(), gocql.All) })
}
