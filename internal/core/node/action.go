package node

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

// ActionKind is one of the things an agent can do. There are no others.
type ActionKind string

// The actions. Those marked (journal) change the journal alone; the others write down what they begin before they begin it.
const (
	// InspectDisk looks at the volumes.
	InspectDisk ActionKind = "InspectDisk"
	// ClaimDisk writes the markers of this node on Volumes, and makes the journal this node's.
	ClaimDisk ActionKind = "ClaimDisk"
	// KeepRecord writes the record and the seeds down, for a start without the API server. (journal)
	KeepRecord ActionKind = "KeepRecord"
	// AskPeers asks the agents of other nodes about an address and a host id.
	AskPeers ActionKind = "AskPeers"
	// LookAtRing asks the JVM for its view, now.
	LookAtRing ActionKind = "LookAtRing"
	// StartJVM renders the configuration and starts the JVM.
	StartJVM ActionKind = "StartJVM"
	// NoteExit takes the end of a JVM in. (journal)
	NoteExit ActionKind = "NoteExit"
	// NoteNormal writes down that the node is NORMAL and where its neighbours are. (journal)
	NoteNormal ActionKind = "NoteNormal"
	// NoteLeft writes down that the node left the ring for good. (journal)
	NoteLeft ActionKind = "NoteLeft"
	// FinishJoin writes down that the node is a member. (journal)
	FinishJoin ActionKind = "FinishJoin"
	// WithdrawJoin, WithdrawRestart and WithdrawOperation write down that an intent will never begin, and a join also that it will never go on. (journal)
	WithdrawJoin      ActionKind = "WithdrawJoin"
	WithdrawRestart   ActionKind = "WithdrawRestart"
	WithdrawOperation ActionKind = "WithdrawOperation"
	// OpenTraffic opens the native transport, CloseTraffic closes it.
	OpenTraffic  ActionKind = "OpenTraffic"
	CloseTraffic ActionKind = "CloseTraffic"
	// SetSeeds renders other seeds and has the JVM take them over.
	SetSeeds ActionKind = "SetSeeds"
	// ApplySettings renders the configuration and changes settings of the running JVM.
	ApplySettings ActionKind = "ApplySettings"
	// BeginStop writes down that the JVM is to end. (journal)
	BeginStop ActionKind = "BeginStop"
	// Drain has Cassandra flush and leave gossip, until Deadline.
	Drain ActionKind = "Drain"
	// Terminate sends SIGTERM, Kill SIGKILL; with Dump a thread dump before it.
	Terminate ActionKind = "Terminate"
	Kill      ActionKind = "Kill"
	// BeginRestart and FinishRestart write down how far a restart has come. (journal)
	BeginRestart  ActionKind = "BeginRestart"
	FinishRestart ActionKind = "FinishRestart"
	// RunOperation begins the operation of the record, which then runs beside everything else.
	RunOperation ActionKind = "RunOperation"
	// FinishOperation writes down that an operation has ended. (journal)
	FinishOperation ActionKind = "FinishOperation"
	// InterruptOperation writes down that an operation was cut off. (journal)
	InterruptOperation ActionKind = "InterruptOperation"
)

// Action is one of them, with its arguments.
type Action struct {
	Kind ActionKind
	// Why in words, for the log.
	Why string

	// ID of the intent it is about.
	ID string
	// Volumes to be marked.
	Volumes []string
	// Address and HostID that peers are asked about, Ask the addresses of those asked.
	Address, HostID string
	Ask             []string
	// StartID of the JVM that joins meanwhile; 0 if none does.
	StartID uint64
	// Start is how the JVM is started.
	Start *StartArguments
	// Death is what NoteExit counts; nil for an end that was asked for.
	Death *Deaths
	// EndedAt is when the JVM ended, or was last known to run.
	EndedAt time.Time
	// Lost says that nobody saw it end: it did at any time before EndedAt.
	Lost bool
	// Tokens that the node was seen with.
	Tokens []string
	// Neighbours are the addresses of the other members.
	Neighbours []string
	// Seeds to be set.
	Seeds []string
	// Settings to be changed in the running JVM.
	Settings []string
	// Deadline of what may take long.
	Deadline time.Time
	// Reason for the end of a JVM that counts as a death, by Kill or BeginStop.
	Reason v1alpha1.RestartReason
	// Dump asks for a thread dump first.
	Dump bool
	// Operation to run.
	Operation *v1alpha1.OperationIntent
	// Failed says that the operation did.
	Failed bool
	// Replaced are host ids learned to be replaced.
	Replaced []string
	// Cluster whose disk it is from now on.
	Cluster types.UID
}

func (a *Action) String() string {
	if a == nil {
		return "nothing"
	}
	if a.ID != "" {
		return fmt.Sprintf("%s %s: %s", a.Kind, a.ID, a.Why)
	}
	return fmt.Sprintf("%s: %s", a.Kind, a.Why)
}

// StartArguments are how a JVM is started. The native transport is always closed at the start: the agent opens it.
type StartArguments struct {
	Incarnation string
	StartID     uint64
	// Ticket is passed for a node that has not been seen NORMAL with its tokens; nil for a member.
	Ticket *v1alpha1.JoinTicket
	// Configuration to be rendered, with its hash.
	Configuration v1alpha1.NodeConfiguration
	Hash          string
	Seeds         []string
}
