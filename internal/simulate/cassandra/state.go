package cassandra

import (
	"net/netip"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

// Words of the gossiped STATUS.
const (
	statusNone        = ""
	statusNormal      = "NORMAL"
	statusBoot        = "BOOT"
	statusBootReplace = "BOOT_REPLACE"
	statusLeaving     = "LEAVING"
	statusLeft        = "LEFT"
	statusRemoving    = "removing"
	statusRemoved     = "removed"
	statusHibernate   = "hibernate"
	statusShutdown    = "shutdown"
)

// lastHeartbeat is the last word of a node that was stopped in order.
const lastHeartbeat = 1<<31 - 1

// state is what a node has said of itself by gossip, or others of it after its death. It is never
// changed once it is shared; news is another state.
type state struct {
	generation int64
	// version of the newest part.
	version int64
	// begun is when this generation began to count its heartbeats, and extra what it counted beside
	// one a second.
	begun time.Time
	extra int64
	// stopped is the last heartbeat; 0 while they come.
	stopped int64

	word string
	// status is the whole value, word included.
	status    string
	expires   time.Time
	tokens    []ring.Token
	hostID    string
	dc, rack  string
	release   string
	schema    string
	ready     bool
	readySaid bool
	load      int64
	native    netip.AddrPort
	internal  netip.AddrPort
	replaced  netip.Addr
	remover   string
}

// heartbeat is the number that the node itself is at, at a time.
func (s *state) heartbeat(now time.Time) int64 {
	if s.stopped > 0 || s.begun.IsZero() {
		return s.stopped
	}
	return int64(now.Sub(s.begun)/time.Second) + s.extra
}

// dead is isDeadState: such a node is not marked alive, whatever its heartbeat.
func (s *state) dead() bool {
	switch s.word {
	case statusRemoving, statusRemoved, statusLeft, statusHibernate:
		return true
	default:
		return false
	}
}

// silentShutdown says that such a node ends without telling the others.
func (s *state) silentShutdown() bool {
	return s.dead() || s.word == statusBoot || s.word == statusBootReplace
}

// newer says that s replaces other.
func (s *state) newer(other *state) bool {
	return s.generation > other.generation || s.generation == other.generation && s.version > other.version
}

// listing is in which of the Gossiper's two lists an endpoint is.
type listing int

const (
	unlisted listing = iota
	listedLive
	listedUnreachable
)

// entry is one endpoint in the gossip of one node.
type entry struct {
	address netip.Addr
	state   *state
	alive   bool
	listed  listing
	// flows says that heartbeats of this generation come in; silentSince is when they ended.
	flows       bool
	silentSince time.Time
	// timer convicts it, or forgets a silent one that is no member.
	timer eventHandle
	// echo is the question whether it is there, while it is under way.
	echo eventHandle
	text entryText
}
