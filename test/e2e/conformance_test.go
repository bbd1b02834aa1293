//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/jolokia"
	"helenus.io/helenus/test/conformance"
	"helenus.io/helenus/test/e2e/scene"
)

// TestCassandraIsAsSimulated: what the simulator takes for Cassandra is what runs here. A node
// passes the list of checks that a simulated one passes, and a ring of which a member dies goes
// through what a simulated one goes through. The other stories of that list are told where they
// happen anyway: in TestPodDeleted and TestGrowing.
func TestCassandraIsAsSimulated(t *testing.T) {
	ring := threeRacks(t)
	onlyHere(t, ring.Scene)
	node := ring.NodeNames(t.Context())[2]
	t.Run("a node", func(t *testing.T) { wantConformance(t, ring, node, false) })
	t.Run("a member that dies", func(t *testing.T) { memberDies(t, ring, node) })
}

// memberDies kills a JVM that is down until its peers have seen that, and leaves the ring as it
// was.
func memberDies(t *testing.T, ring *scene.Ring, node string) {
	t.Helper()
	l := lifeOf(t, ring)
	conformance.MemberDies(t, l, node)
	if err := <-l.changed; err != nil {
		t.Errorf("change the schema: %v", err)
	}
	took(t, "all nodes serve again", func() error { return ring.Serving(t.Context()) })
	if err := l.statement(t.Context(), node, "DROP KEYSPACE "+lifeKeyspace); err != nil {
		t.Errorf("take the change of the schema back: %v", err)
	}
}

// movePod deletes the pod of a node and follows the way of the node to its next address, where that
// can be seen. It returns when the pod was deleted.
func movePod(t *testing.T, ring *scene.Ring, node string) (deleted time.Time, err error) {
	t.Helper()
	if !jvmsAreReached(ring) {
		return time.Now(), deletePods(t.Context(), ring, node)
	}
	l := lifeOf(t, ring)
	if *full {
		conformance.MemberMovesForGood(t, l, node)
	} else {
		conformance.MemberMoves(t, l, node)
	}
	return l.moved, nil
}

// joinPod adds a node to the first rack and follows its way into the ring, where that can be seen.
func joinPod(t *testing.T, ring *scene.Ring) error {
	t.Helper()
	l := lifeOf(t, ring)
	if !jvmsAreReached(ring) {
		_, err := l.Join(t.Context())
		return err
	}
	conformance.NodeJoins(t, l)
	return nil
}

// wantEndAsSimulated does to a ring of four nodes or more that is of no more use what nothing else
// does: a node leaves, where there is time, and another one is drained.
func wantEndAsSimulated(t *testing.T, ring *scene.Ring) {
	t.Helper()
	names := ring.NodeNames(t.Context())
	if *full {
		t.Run("a node leaves", func(t *testing.T) {
			onlyHere(t, ring.Scene)
			conformance.NodeLeaves(t, lifeOf(t, ring), names[len(names)-1])
		})
	}
	t.Run("a node is drained", func(t *testing.T) {
		onlyHere(t, ring.Scene)
		wantConformance(t, ring, names[0], true)
	})
}

// wantLivesAsSimulated tells a ring the stories that are told to the shared one elsewhere.
func wantLivesAsSimulated(t *testing.T, ring *scene.Ring) {
	t.Helper()
	names := ring.NodeNames(t.Context())
	t.Run("a member dies", func(t *testing.T) {
		onlyHere(t, ring.Scene)
		memberDies(t, ring, names[1])
	})
	t.Run("a member moves", func(t *testing.T) {
		onlyHere(t, ring.Scene)
		if _, err := movePod(t, ring, names[2]); err != nil {
			t.Error(err)
		}
		took(t, "all nodes serve again", func() error { return ring.Serving(t.Context()) })
	})
}

// jvmsAreReached says whether JVMs can be asked past their agents: only where the hosts of
// Kubernetes are this one.
func jvmsAreReached(ring *scene.Ring) bool {
	_, err := ring.Local()
	return !errors.Is(err, scene.ErrNotHere)
}

// wantConformance takes a node through the list of checks while its agent stands still, which would
// open CQL or start a drained node again. Drain allows the checks after which that is what has to
// be done.
func wantConformance(t *testing.T, ring *scene.Ring, node string, drain bool) {
	t.Helper()
	asked, err := ring.Jolokia(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	if drain {
		ring.Invariants.ExpectRestart(node)
	}
	resume := pauseAgent(t, ring, node)
	defer resume()
	conformance.Run(t, conformance.Target{Client: asked, Traffic: true, Drain: drain})
}

// pauseAgent has the agent of a node stand still until the test ends, or what it returns is called.
// Kubelet has a minute of patience with it.
func pauseAgent(t *testing.T, ring *scene.Ring, node string) (resume func()) {
	t.Helper()
	pod := podOf(t, ring, node).UID
	if err := ring.SignalAgent(pod, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	running := false
	resume = func() {
		if running {
			return
		}
		running = true
		if err := ring.SignalAgent(pod, syscall.SIGCONT); err != nil {
			t.Errorf("resume the agent of %s: %v", node, err)
		}
	}
	t.Cleanup(resume)
	return resume
}

// life is a ring to which the stories of conformance happen.
type life struct {
	*scene.Ring
	t       *testing.T
	clients map[types.UID]*jolokia.Client
	// resume are the agents that stand still.
	resume map[string]func()
	// joining and left are nodes that have no record yet, and that are none of the ring any more.
	joining, left string
	// moved is when a pod was deleted.
	moved time.Time
	// changed gets how the change of the schema ended.
	changed chan error
}

func lifeOf(t *testing.T, ring *scene.Ring) *life {
	t.Helper()
	l := &life{Ring: ring, t: t, clients: map[types.UID]*jolokia.Client{}, resume: map[string]func(){}}
	t.Cleanup(func() {
		for _, c := range l.clients {
			c.Close()
		}
	})
	return l
}

func (l *life) Nodes() []string {
	names := slices.DeleteFunc(l.NodeNames(l.t.Context()), func(name string) bool { return name == l.left })
	if l.joining != "" && !slices.Contains(names, l.joining) {
		names = append(names, l.joining)
	}
	return names
}

func (l *life) Client(ctx context.Context, node string) (*jolokia.Client, error) {
	pod, found := l.Ring.Now(ctx).Pod(node)
	if !found {
		return nil, fmt.Errorf("ask the JVM of %s: it has no pod", node)
	}
	if l.clients[pod.UID] == nil {
		asked, err := l.Jolokia(ctx, node)
		if err != nil {
			return nil, err
		}
		l.clients[pod.UID] = asked
	}
	return l.clients[pod.UID], nil
}

func (l *life) Now() time.Time { return time.Now() }

// Pause lets a node answer a client in between.
func (l *life) Pause(ctx context.Context) {
	select {
	case <-time.After(500 * time.Millisecond):
	case <-ctx.Done():
	}
}

func (l *life) Patience() float64 { return *patience }

func (l *life) Kill(ctx context.Context, node string) error {
	l.resume[node] = pauseAgent(l.t, l.Ring, node)
	return l.KillJVM(ctx, node)
}

// Start lets the agent find the end of the JVM.
func (l *life) Start(_ context.Context, node string) error {
	l.resume[node]()
	return nil
}

func (l *life) Move(ctx context.Context, node string) error {
	pod := podOf(l.t, l.Ring, node)
	l.Invariants.ExpectDeletion(pod)
	l.moved = time.Now()
	return kubernetes.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
}

func (l *life) Join(ctx context.Context) (string, error) {
	l.joining = l.Name + "-dc1-r1-1"
	return l.joining, l.Edit(ctx, func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].Nodes = ptr(int32(2))
	})
}

func (l *life) Leave(ctx context.Context, node string) (func() (bool, error), error) {
	asked, err := l.Client(ctx, node)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := asked.ExecBlocking(ctx, jolokia.Exec("org.apache.cassandra.db:type=StorageService",
			"decommission(boolean)", true))
		ended <- err
	}()
	return func() (bool, error) {
		select {
		case err := <-ended:
			l.left = node
			return true, err
		default:
			return false, nil
		}
	}, nil
}

const lifeKeyspace = "life"

// ChangeSchema does not wait for the driver, which has a minute of patience with a member that is
// down and cannot agree.
func (l *life) ChangeSchema(ctx context.Context, node string) error {
	l.changed = make(chan error, 1)
	go func() {
		l.changed <- l.statement(ctx, node, "CREATE KEYSPACE "+lifeKeyspace+
			" WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3}")
	}()
	return nil
}

func (l *life) statement(ctx context.Context, node, statement string) error {
	session, err := l.Session(ctx, node)
	if err != nil {
		return err
	}
	defer session.Close()
	return session.Query(statement).Consistency(gocql.One).ExecContext(ctx)
}
