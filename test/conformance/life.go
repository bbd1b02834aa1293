package conformance

import (
	"context"
	"testing"
	"time"

	"helenus.io/helenus/internal/jolokia"
)

// Ring is a ring over its life, real or simulated, whose nodes go by names. What is done to it is
// only begun: how it continues is seen by what the nodes answer.
type Ring interface {
	// Nodes are the names of those that are in it, or on their way into it.
	Nodes() []string
	// Client asks the JVM of a node. It fails, or the JVM does not answer, while none runs.
	Client(ctx context.Context, node string) (*jolokia.Client, error)
	// Now is the time in the ring, and Pause lets a part of a second pass there, or returns when
	// the context ends.
	Now() time.Time
	Pause(ctx context.Context)
	// Patience is a factor on the upper bounds, for hosts that are slow.
	Patience() float64

	// Kill ends the JVM of a node without a word. It stays away until Start.
	Kill(ctx context.Context, node string) error
	Start(ctx context.Context, node string) error
	// Move stops a node in order, and starts it with what is on its disk at another address.
	Move(ctx context.Context, node string) error
	// Join adds a node that takes its data from the others, and returns its name.
	Join(ctx context.Context) (string, error)
	// Leave has a node give its data to the others and leave, and says how that ended once it has.
	// The node is none of the ring any more then.
	Leave(ctx context.Context, node string) (ended func() (bool, error), err error)
	// ChangeSchema creates a keyspace through a node.
	ChangeSchema(ctx context.Context, node string) error
}

// Scenario is one entry of the list of what happens to a ring in its life.
type Scenario struct {
	Name string
	// Nodes are how many it needs at the least.
	Nodes int
	// Tell makes it happen to a node, and checks all the while what each node answers. All members
	// are up and agree before it and after it.
	Tell func(t *testing.T, r Ring, node string)
}

// Life is the list. The keyspaces of the ring have three replicas.
func Life() []Scenario {
	return []Scenario{
		{"a member dies, misses a change of the schema, and comes back", 3, MemberDies},
		{"a member stops in order, comes back at another address, and is forgotten at the old one", 3,
			MemberMovesForGood},
		{"a node joins", 3, func(t *testing.T, r Ring, _ string) { NodeJoins(t, r) }},
		{"a node leaves", 4, NodeLeaves},
	}
}

// Bounds in Cassandra's own measures. The upper ones are several times what was measured on a small
// host; the lower ones are promises of its protocol.
const (
	gossipRound = time.Second
	// ringDelay is how long a node waits for all others to know what it is about to do.
	ringDelay = 30 * time.Second
	// news goes from any node to all others, and what they have to write down for it.
	news = 10 * gossipRound
	// The failure detector waits for a heartbeat that is overdue by phi, 8, times ln 10 mean
	// intervals.
	convictsAfter, convictsBefore = 10 * gossipRound, 40 * gossipRound
	// stopTime, startTime and growTime bound what no protocol does: the stop and start of a JVM,
	// and all that an operator does before.
	stopTime, startTime, growTime = 90 * time.Second, 4 * time.Minute, 8 * time.Minute
	// forgottenAfter and forgottenBefore bound how long gossip keeps an address from which a member
	// has moved: for as long as its quarantine.
	forgottenAfter, forgottenBefore = 2*ringDelay - news, 2*ringDelay + 2*news
	// leftFor is how long the others remember one that has left.
	leftFor = 3 * 24 * time.Hour
)
