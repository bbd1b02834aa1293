package node

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/node/operation"
)

// Action is one thing that an agent can do. The types in this file are all that there are. What
// each does outside of the journal is in agent/execute, in a table by the type.
type Action interface {
	// Because says why, for the log.
	Because() string
	// Limit is the longest that it may take: everything else waits for it.
	Limit() time.Duration
	// before makes a memory what must be durable before the effect. For an action of the journal
	// alone it is all there is to do.
	before(m *Memory, f *Facts, at time.Time)
	// after makes it what holds once the effect has come.
	after(m *Memory, f *Facts)
}

// ActionKind names the type of an action, in logs, metrics and among failures.
type ActionKind string

// KindOf is the name of an action's type; empty for none.
func KindOf(a Action) ActionKind {
	if a == nil {
		return ""
	}
	return ActionKind(reflect.TypeOf(a).Name())
}

// Why is the reason for an action in words. Each action has one, and by it what holds for most.
type Why string

// Because says it.
func (w Why) Because() string { return string(w) }

// Limit is that of most actions.
func (Why) Limit() time.Duration { return time.Minute }

func (Why) before(*Memory, *Facts, time.Time) {}
func (Why) after(*Memory, *Facts)             {}

// Marks of actions.
type (
	// inJournal changes the journal alone.
	inJournal struct{}
	// interruptible gives way when the container is to end, or the JVM has.
	interruptible struct{}
	// optional leaves the node going on while it fails.
	optional struct{}
)

func (inJournal) isInJournal()         {}
func (interruptible) isInterruptible() {}
func (optional) isOptional()           {}

// InJournal says that an action changes the journal alone: it has no effect outside of it.
func InJournal(a Action) bool {
	_, is := a.(interface{ isInJournal() })
	return is
}

// Interruptible says that an action gives way when the container is to end, or the JVM has.
func Interruptible(a Action) bool {
	_, is := a.(interface{ isInterruptible() })
	return is
}

// isOptional says that the node goes on without an action: while it fails, the steps after it are
// asked.
func isOptional(a Action) bool {
	_, is := a.(interface{ isOptional() })
	return is
}

// The disk and the record.
type (
	// InspectDisk looks at the volumes.
	InspectDisk struct{ Why }
	// ClaimDisk writes the markers of this node on volumes, and makes the journal this node's.
	ClaimDisk struct {
		Why
		Volumes []string
		// Cluster whose disk it is from now on.
		Cluster types.UID
	}
	// WipeJoin removes what an unfinished join has streamed, by an id of its ticket.
	WipeJoin struct {
		Why
		ID string
	}
	// RestoreDisk puts onto the disk what its ticket says that a node had in a backup. What is
	// there already and is right stays.
	RestoreDisk struct {
		Why
		interruptible
		Ticket *v1alpha1.JoinTicket
	}
	// EndAgent ends the agent, so that the kubelet starts the one of the image that the pod has
	// now.
	EndAgent struct{ Why }
	// KeepRecord writes the record and the seeds down, for a start without the API server.
	KeepRecord struct {
		Why
		inJournal
	}
)

// Questions.
type (
	// AskPeers asks the agents of other nodes about an address and a host id.
	AskPeers struct {
		Why
		interruptible
		Address, HostID string
		// Ask are the addresses of those asked.
		Ask []string
		// StartID of the JVM that joins meanwhile; 0 if none does.
		StartID uint64
		// GoingDown says that this node goes down unless another one does, and tells those that
		// ask.
		GoingDown bool
	}
	// LookAtRing asks the JVM for its view, now.
	LookAtRing struct {
		Why
		interruptible
	}
)

// The life of the JVM.
type (
	// StartJVM renders the configuration and starts the JVM.
	StartJVM struct {
		Why
		Start *StartArguments
	}
	// NoteExit takes the end of a JVM in.
	NoteExit struct {
		Why
		inJournal
		// Death is what it counts; nil for an end that was asked for.
		Death *Deaths
		// EndedAt is when the JVM ended, or was last known to run.
		EndedAt time.Time
		// Lost says that nobody saw it end: it did at any time before EndedAt.
		Lost bool
	}
	// NoteNormal writes down that the node is NORMAL.
	NoteNormal struct {
		Why
		inJournal
		optional
		// Neighbours are the addresses of the other members.
		Neighbours []string
	}
	// NoteSight writes down that a node sees its peers that was opened to clients without.
	NoteSight struct {
		Why
		inJournal
		optional
	}
	// NoteLeft writes down that the node left the ring for good.
	NoteLeft struct {
		Why
		inJournal
	}
	// FinishJoin writes down that the node is a member.
	FinishJoin struct {
		Why
		inJournal
		HostID             string
		Tokens, Neighbours []string
	}
	// BeginStop writes down that the JVM is to end.
	BeginStop struct {
		Why
		inJournal
		// Reason is set for an end that counts as a death.
		Reason v1alpha1.RestartReason
	}
	// Drain has Cassandra flush and leave gossip, until Deadline.
	Drain struct {
		Why
		Deadline time.Time
	}
	// Terminate sends SIGTERM.
	Terminate struct{ Why }
	// Kill sends SIGKILL.
	Kill struct {
		Why
		// Dump asks for a thread dump before.
		Dump bool
		// Reason is set for an end that counts as a death.
		Reason v1alpha1.RestartReason
	}
)

// What changes in a JVM that runs.
type (
	// OpenTraffic opens the native transport.
	OpenTraffic struct {
		Why
		interruptible
		// Blind says why the node does not see its peers; empty if it does.
		Blind string
	}
	// CloseTraffic closes it, until Deadline if there is one.
	CloseTraffic struct {
		Why
		Deadline time.Time
	}
	// SetSeeds renders other seeds and has the JVM take them over.
	SetSeeds struct {
		Why
		interruptible
		optional
		Seeds []string
	}
	// ProveCertificates has the JVM take over the certificates that it is given, and sees that it
	// has.
	ProveCertificates struct {
		Why
		interruptible
		optional
		Uses []v1alpha1.CertificateUse
	}
	// ApplySettings renders the configuration and changes settings of the running JVM.
	ApplySettings struct {
		Why
		interruptible
		optional
		Settings []string
	}
)

// Intents, by their ids.
type (
	// WithdrawJoin writes down that a join will never begin, and never go on.
	WithdrawJoin struct {
		Why
		inJournal
		ID string
	}
	// WithdrawRestart writes down that a restart will never begin.
	WithdrawRestart struct {
		Why
		inJournal
		ID string
	}
	// WithdrawOperation writes down that an operation will never begin.
	WithdrawOperation struct {
		Why
		inJournal
		ID string
	}
	// BeginRestart writes down that a restart has begun.
	BeginRestart struct {
		Why
		inJournal
		ID string
	}
	// FinishRestart writes down that it is done.
	FinishRestart struct {
		Why
		inJournal
		ID string
	}
	// RunOperation begins an operation of the record, which then runs beside everything else.
	RunOperation struct {
		Why
		Operation *v1alpha1.OperationIntent
	}
	// ResumeOperation finds an operation again that continues in the JVM without an agent that
	// follows it.
	ResumeOperation struct {
		Why
		Operation *v1alpha1.OperationIntent
		Handle    operation.Handle
	}
	// CancelOperation has an operation end that has begun.
	CancelOperation struct {
		Why
		ID string
	}
	// FinishOperation writes down that an operation has ended: it has failed, and was cancelled.
	FinishOperation struct {
		Why
		inJournal
		ID                string
		Failed, Cancelled bool
	}
	// InterruptOperation writes down that an operation was cut off.
	InterruptOperation struct {
		Why
		inJournal
		ID string
	}
)

// Limit of a drain is a deadline of its own, which is earlier.
func (Drain) Limit() time.Duration { return 24 * time.Hour }

// Limit of a removal of many files.
func (WipeJoin) Limit() time.Duration { return 10 * time.Minute }

// Limit of a download of all that a node holds.
func (RestoreDisk) Limit() time.Duration { return 7 * 24 * time.Hour }

// StartArguments are how a JVM is started. The native transport is always closed at the start: the
// agent opens it.
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
