//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/test/e2e/scene"
)

// scenario reads one of the samples that users are given: what they say is what is tested.
func scenario(file string) (*v1alpha1.CassandraCluster, error) {
	return scene.Sample(filepath.Join(samples, file))
}

// sampleOf is a sample as it is but for one setting, without which a client's transactions are not
// owed what is asked of them.
func sampleOf(t *testing.T, file string) *v1alpha1.CassandraCluster {
	t.Helper()
	c, err := scenario(file)
	if err != nil {
		t.Fatal(err)
	}
	scene.Linearizable(&c.Spec)
	return c
}

// open opens a scene of the test's own. When the test ends nothing that must never happen may have
// happened.
func open(t *testing.T, namespace string) *scene.Scene {
	t.Helper()
	s, err := scene.Open(background, kubernetes, namespace, *patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		judge(t, s)
		if t.Failed() && *keep {
			t.Logf("namespace %s is kept", namespace)
			return
		}
		if err := s.Close(background); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return s
}

// judge fails the test for what must never happen, and shows the scene of a test that has failed.
func judge(t *testing.T, s *scene.Scene) {
	t.Helper()
	for _, what := range s.Invariants.Violations() {
		t.Errorf("this must never happen: %s", what)
	}
	if t.Failed() {
		diagnose(t, s)
	}
}

// diagnose keeps what a user wants to see of a scene in a file: beside the message that says what
// went wrong it would be all that is seen.
func diagnose(t *testing.T, s *scene.Scene) {
	t.Helper()
	file := filepath.Join(t.ArtifactDir(), "diagnosis.txt")
	if err := os.WriteFile(file, []byte(s.Diagnosis(background)), 0o600); err != nil {
		t.Errorf("keep the diagnosis: %v", err)
		return
	}
	t.Logf("status, events and logs are in %s", file)
}

// shared is the ring of three racks that several tests use one after the other, to save the time of
// forming it. Each leaves it as it found it; after one that failed it is formed again.
var shared *scene.Ring

// threeRacks is the shared ring, filled with rows.
func threeRacks(t *testing.T) *scene.Ring {
	t.Helper()
	if shared == nil {
		s, err := scene.Open(background, kubernetes, "e2e-ring", *patience)
		if err != nil {
			t.Fatal(err)
		}
		took(t, "a ring of three racks has formed", func() error {
			shared, err = s.Create(background, sampleOf(t, "demo.yaml"))
			if err != nil {
				return errors.Join(err, s.Close(background))
			}
			return dropIfFailed(t, s, shared.Formed(t.Context()))
		})
		took(t, "rows are written", func() error { return dropIfFailed(t, s, shared.Fill(t.Context(), gocql.Quorum)) })
	}
	ring := shared
	t.Cleanup(func() {
		judge(t, ring.Scene)
		if t.Failed() {
			shared = nil
			if !*keep {
				if err := ring.Close(background); err != nil {
					t.Errorf("clean up: %v", err)
				}
			}
		}
	})
	return ring
}

// withoutSharedRing takes the shared ring away before a test that breaks hosts: what happens to its
// nodes then, nobody would have asked for.
func withoutSharedRing(t *testing.T) {
	t.Helper()
	if shared == nil {
		return
	}
	ring := shared
	shared = nil
	if err := ring.Close(t.Context()); err != nil {
		t.Fatalf("take the shared ring away: %v", err)
	}
}

// dropIfFailed keeps a ring that did not come into being from being used by the next test.
func dropIfFailed(t *testing.T, s *scene.Scene, err error) error {
	t.Helper()
	if err == nil {
		return nil
	}
	shared = nil
	diagnose(t, s)
	if *keep {
		return err
	}
	return errors.Join(err, s.Close(background))
}

// leave removes what tests share.
func leave() error {
	var errs []error
	if frozen.ring != nil {
		// A JVM that does not run cannot be stopped in order. If it was ended meanwhile there is
		// nothing to do.
		_ = frozen.ring.ThawJVM(context.WithoutCancel(background),
			frozen.ring.NodeNames(context.WithoutCancel(background))[0])
	}
	for _, ring := range []*scene.Ring{shared, frozen.ring} {
		if ring != nil {
			errs = append(errs, ring.Close(context.WithoutCancel(background)))
		}
	}
	return errors.Join(errs...)
}

// identity is what of a node stays, and what changes with its pod.
type identity struct {
	hostID, address, podUID string
	tokens                  string
}

// identities of the nodes of a ring by name.
func identities(t *testing.T, r *scene.Ring) map[string]identity {
	t.Helper()
	out := map[string]identity{}
	for _, n := range r.Nodes(t.Context()) {
		out[n.Name] = identity{
			hostID: n.Status.HostID, address: n.Status.Address, podUID: string(n.Status.PodUID),
			tokens: strings.Join(n.Status.Tokens, ","),
		}
	}
	return out
}

// wantSameMembers fails if the nodes are not the members that they were.
func wantSameMembers(t *testing.T, before, now map[string]identity) {
	t.Helper()
	for name, was := range before {
		if is := now[name]; is.hostID != was.hostID || is.tokens != was.tokens {
			t.Errorf("node %s was host id %s with tokens %s, and is %s with %s", name, was.hostID, was.tokens,
				is.hostID, is.tokens)
		}
	}
	if len(now) != len(before) {
		t.Errorf("there are %d nodes, and were %d", len(now), len(before))
	}
}

// wantRingSeen fails if not every node sees the ring as it is: nodetool of each says UN of every
// node, and nothing of any other.
func wantRingSeen(t *testing.T, r *scene.Ring) {
	t.Helper()
	nodes := r.Nodes(t.Context())
	var want []string
	for _, n := range nodes {
		want = append(want, "UN "+n.Status.Address+" "+n.Status.HostID)
	}
	slices.Sort(want)
	for _, n := range nodes {
		if err := r.Sees(t.Context(), n.Name, func(members []string) bool {
			return slices.Equal(members, want)
		}); err != nil {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
