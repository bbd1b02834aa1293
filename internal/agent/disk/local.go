package disk

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
)

// Bootstrapped is the word in system.local by which Cassandra remembers how far its membership has
// come.
type Bootstrapped string

// Cassandra's words (SystemKeyspace.BootstrapState).
const (
	// BootstrapUnknown: no word yet. Cassandra was started and did not begin to join.
	BootstrapUnknown Bootstrapped = ""
	// NeedsBootstrap: it was LEAVING and has streamed its data away. It is out of the ring, and if
	// it were started it would bootstrap again.
	NeedsBootstrap Bootstrapped = "NEEDS_BOOTSTRAP"
	// InProgress: it began to bootstrap or to replace, and did not finish.
	InProgress Bootstrapped = "IN_PROGRESS"
	// Completed: a member.
	Completed Bootstrapped = "COMPLETED"
	// Decommissioned: it has left the ring for good.
	Decommissioned Bootstrapped = "DECOMMISSIONED"
)

// Local is the row of system.local. Fields that Cassandra had not written yet are zero.
type Local struct {
	Bootstrapped     Bootstrapped
	HostID           string // in the usual form of a UUID, lower case
	ClusterName      string
	Tokens           []int64 // ascending; of Murmur3Partitioner, the only one that Helenus runs
	GossipGeneration int32   // rises with every start
}

// decodeLocal turns the live cells of system.local into what they mean.
func decodeLocal(cells map[string]map[string][]byte) (*Local, error) {
	text := func(column string) string { return string(cells[column][""]) }
	l := &Local{
		Bootstrapped: Bootstrapped(text("bootstrapped")),
		ClusterName:  text("cluster_name"),
	}
	switch l.Bootstrapped {
	case BootstrapUnknown, NeedsBootstrap, InProgress, Completed, Decommissioned:
	default:
		return nil, fmt.Errorf("system.local: bootstrapped is %q, none of the words that are known", l.Bootstrapped)
	}
	if id := cells["host_id"][""]; id != nil {
		if len(id) != 16 {
			return nil, fmt.Errorf("system.local: host_id has %d bytes, not 16", len(id))
		}
		h := hex.EncodeToString(id)
		l.HostID = h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	}
	if generation := cells["gossip_generation"][""]; generation != nil {
		if len(generation) != 4 {
			return nil, fmt.Errorf("system.local: gossip_generation has %d bytes, not 4", len(generation))
		}
		l.GossipGeneration = int32(binary.BigEndian.Uint32(generation))
	}
	for token := range cells["tokens"] {
		t, err := strconv.ParseInt(token, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("system.local: token %q is none of Murmur3Partitioner", token)
		}
		l.Tokens = append(l.Tokens, t)
	}
	slices.Sort(l.Tokens)
	return l, nil
}
