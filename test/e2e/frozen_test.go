//go:build e2e

package e2e

import (
	"errors"
	"flag"
	"regexp"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// frozen is the ring of one node whose JVM was frozen, with what it was before. It takes minutes
// until a JVM counts as frozen; other tests run meanwhile.
var frozen struct {
	ring   *scene.Ring
	before map[string]identity
}

// isRun says whether a test is among those that are run.
func isRun(name string) bool {
	pattern, _, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	run, err := regexp.MatchString(pattern, name)
	return err == nil && run
}

// freeze stops the JVM of a ring of one node, and hands the ring over to TestFrozenJVM.
func freeze(t *testing.T, ring *scene.Ring) {
	t.Helper()
	before := identities(t, ring)
	if err := ring.FreezeJVM(t.Context(), ring.NodeNames(t.Context())[0]); err != nil {
		t.Fatal(err)
	}
	frozen.ring, frozen.before = ring, before
}

// frozenFor is how long it may take until a JVM that was frozen serves again: three minutes without
// an answer, the kill, and a start.
const frozenFor = 8 * time.Minute

// TestFrozenJVM: a JVM that neither answers nor ends is ended by its agent and started again in the
// same pod, and the status says why.
func TestFrozenJVM(t *testing.T) {
	if frozen.ring == nil {
		if TestOneNode(t); t.Failed() {
			return
		}
	}
	ring, before := frozen.ring, frozen.before
	t.Cleanup(func() {
		judge(t, ring.Scene)
		frozen.ring = nil
		if t.Failed() && *keep {
			return
		}
		if err := ring.Close(background); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	took(t, "the frozen JVM is ended, and the status says why", func() error {
		return ring.Until(t.Context(), frozenFor, "the status says that the JVM was frozen",
			func(now follow.Sight) error {
				nodes := now.Nodes(ring.Name)
				if len(nodes) == 0 {
					return follow.Never(errors.New("it has no record"))
				}
				if r := nodes[0].Status.Restarts; r == nil || r.LastReason != v1alpha1.RestartFrozen {
					return errors.New(follow.Phase(&nodes[0]))
				}
				return nil
			})
	})
	took(t, "the node serves again", func() error { return ring.Serving(t.Context()) })
	for name, was := range before {
		if is := identities(t, ring)[name]; is != was {
			t.Errorf("node %s was %+v and is %+v: pod and address were to stay", name, was, is)
		}
	}
	took(t, "all rows are read", func() error { return ring.ReadBack(t.Context(), gocql.All) })
}
