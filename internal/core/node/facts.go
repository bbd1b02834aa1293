package node

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/initapi"
)

// Facts are everything an agent knows at one moment.
type Facts struct {
	Self Self
	// Record as it was last seen: live, or from the copy on the disk. Nil before it was ever seen.
	Record *v1alpha1.CassandraNode
	// Seeds as they were last seen, addresses; empty before they were ever seen.
	Seeds []string
	// Replaced are the host ids that must never start again, as the operator last published them.
	Replaced []string
	// APISeenAt is when the API server last answered this agent; zero if it did not since the agent
	// started.
	APISeenAt time.Time
	// Memory is what the journal holds.
	Memory Memory
	// MemoryProblem says why the journal cannot be read. Nothing is started then.
	MemoryProblem string
	// Disk as it was found while no JVM ran.
	Disk Disk
	// Probed is whether the volumes can be written.
	Probed DiskHealth
	Init   Init
	JVM    JVM
	// Peers are the last answers of the agents of other nodes.
	Peers Peers
	// Configuration is how the wanted configuration stands to the one that the running JVM was
	// started with.
	Configuration Configuration
	// Certificates of the running JVM, as far as they are known.
	Certificates []Certificate
	// Log is what is kept of the commit log in a store.
	Log Log
	// Operations that this agent began: they run, or have ended.
	Operations []Operation
	// Doing is the action that is being carried out; nil if none is.
	Doing *Doing
	// Failures are actions that failed and when each may be tried again.
	Failures map[ActionKind]Failure
}

// Failure of an action.
type Failure struct {
	Message string
	Until   time.Time
	// NotYet says that it is no failure: Cassandra is not so far yet.
	NotYet bool
}

// Self is who the agent is and what its pod gave it. It never changes while the agent lives.
type Self struct {
	ClusterUID types.UID
	Node       string
	PodUID     types.UID
	// PodTemplate is the hash of what the pod was made from.
	PodTemplate  string
	Address      string
	AgentVersion string
	// FactsPort is where the agent answers.
	FactsPort int32
	// StartedAt is when the agent started.
	StartedAt time.Time
	// GracePeriod is the pod's terminationGracePeriod: the time an ordered stop has.
	GracePeriod time.Duration
	// Incomplete names settings of the pod that are missing; empty in a pod that the operator made.
	Incomplete string
}

// Init is what helenus-init says.
type Init struct {
	// Answers is false while the Cassandra container does not run.
	Answers bool
	// Incarnation names one start of that container.
	Incarnation string
	// Release of Cassandra in the image; empty if that is not known.
	Release string
	// Unlocked says why init does not hold the lock of the data volume yet; empty if it does.
	Unlocked string
	// Problem says why an init that is there cannot be talked to; it does not answer then.
	Problem     string
	LastStartID uint64
	Process     *Process
	// Exits of this incarnation, oldest first.
	Exits    []Exit
	Stopping *Stopping
}

type (
	// Process is the JVM, as init has it.
	Process = initapi.Process
	// Exit is a JVM that has ended.
	Exit = initapi.Exit
	// Stopping is the end of the container.
	Stopping = initapi.Stopping
)

// JVM is what is known of the running JVM by asking it.
type JVM struct {
	// StartID that was asked; an answer of an earlier process is none.
	StartID uint64
	// AskedAt is when it was last asked, AnsweredAt when it last answered; zero if never.
	AskedAt    time.Time
	AnsweredAt time.Time
	// ProgressAt is when its processor time was last seen to grow. Zero if that is not known.
	ProgressAt time.Time
	// Ring as it sees it; nil before its beans are there. It stays the last one while the JVM does
	// not answer: see AnsweredAt.
	Ring *facts.Ring
	// ChangedAt is when its view last became another one; zero if it never did.
	ChangedAt time.Time
	// StreamedAt is when it was last seen to take part in a stream; zero if never.
	StreamedAt time.Time
	// Transfer is how far the streams were at some moment of the last seconds.
	Transfer facts.Transfer
	// Hints, Unfinished and PlainClients as facts.Ring has them; nil if they are not known.
	Hints        map[string]int
	Unfinished   *facts.Unfinished
	PlainClients []string
	// GCGrace is the smallest gc_grace of a replicated table of users, 0 if there is no such table;
	// nil while it is not known.
	GCGrace *time.Duration
	// Tables as facts.Agent has them; nil while they are not known.
	Tables []facts.Table
	// Problem is the error of the last question; empty if it was answered.
	Problem string
	// FatalLine is the last line by which an ended JVM explained itself, if there is one.
	FatalLine string
}

// Peers are what agents of other nodes answered to one round of questions.
type Peers struct {
	// AskedAt is when the round ended; zero if there was none.
	AskedAt time.Time
	// Address and HostID that were asked about.
	Address string
	HostID  string
	// Answers of nodes of this cluster, sorted by node.
	Answers []facts.Peer
	// Silent are the addresses at which no agent of this cluster answered, sorted.
	Silent []string
	// HeardAt is when any peer last answered anything.
	HeardAt time.Time
	// StartID of the JVM that joins meanwhile, 0 if none does, and what the JVMs of other nodes
	// have known of it so far, by node.
	StartID   uint64
	Knowledge map[string]Knowledge
	// GoingDown says that whoever asked this node meanwhile heard that it goes down.
	GoingDown bool
}

// Configuration is how the wanted configuration stands to the running one.
type Configuration struct {
	// Hash of the effective input in the record.
	Hash string
	// Problem says why it cannot be rendered; empty if it can.
	Problem string
	// RestartNeeded says that the running JVM cannot take it over.
	RestartNeeded bool
	// Hot are the names of the settings that the running JVM can take over, sorted.
	Hot []string
	// HintWindow is for how long writes are kept for a node that is down; 0 if they are not.
	HintWindow time.Duration
	// Heap and Direct are the parts of the memory, in bytes; Limit that of the container, 0 without
	// one.
	Limit, Heap, Direct int64
}

// Certificate of the running JVM.
type Certificate struct {
	Use v1alpha1.CertificateUse
	// Given tells what it is to have, with what it trusts, from everything else; empty if that
	// cannot be used.
	Given string
	// Problem says why it cannot be used, or that the JVM does not show it.
	Problem string
	// Served is what was given when the JVM has shown the one with SerialNumber; empty before it
	// has. That is valid from NotBefore to NotAfter.
	Served              string
	SerialNumber        string
	NotBefore, NotAfter time.Time
	// Authority that has signed that one, and those that are Trusted with it, by fingerprints.
	Authority string
	Trusted   []string
}

// Doing is an action that is being carried out.
type Doing struct {
	Action Action
	Since  time.Time
	// Progress is how far it is, for people; empty for most.
	Progress string
}

// operation is the one with an id, as the agent runs it; nil if it began none.
func (f *Facts) operation(id string) *Operation {
	i := slices.IndexFunc(f.Operations, func(o Operation) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &f.Operations[i]
}

// self is the endpoint of this node in its own ring.
func (j JVM) self() (facts.Endpoint, bool) {
	if j.Ring == nil {
		return facts.Endpoint{}, false
	}
	return j.Ring.ByHostID(j.Ring.HostID)
}

// livePeer says that an endpoint is another member which this node's gossip hears.
func (f *Facts) livePeer(e facts.Endpoint) bool {
	return e.Live && e.HostID != f.JVM.Ring.HostID
}

// Log is what is kept of the commit log of a member in a store.
type Log struct {
	// From when on there is no hole; zero if nothing is in the store yet. Hole is why the last one
	// before it was.
	From time.Time
	Hole string
	// Problem is why nothing is sent; empty if it is, or has not failed for long. Until is up to
	// when it was then; zero for never.
	Problem string
	Until   time.Time
}
