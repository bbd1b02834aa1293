package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind names the kinds of steps: one for each procedure.
type Kind string

const (
	// FormRing forms the ring of the first datacenters of a cluster.
	FormRing Kind = "FormRing"
	// AdoptRing takes over the disks of an earlier cluster.
	AdoptRing Kind = "AdoptRing"
	// JoinNode has one node join a ring that serves clients.
	JoinNode Kind = "JoinNode"
	// LeaveNode has one node leave a ring that serves clients.
	LeaveNode Kind = "LeaveNode"
	// AddDatacenter adds a datacenter to a ring that has data.
	AddDatacenter Kind = "AddDatacenter"
	// WithdrawDatacenter takes the replicas of keyspaces out of a datacenter, or opens it to
	// clients again.
	WithdrawDatacenter Kind = "WithdrawDatacenter"
	// RaiseSystemKeyspaces gives the system keyspaces as many replicas as there are nodes for, and
	// repairs them.
	RaiseSystemKeyspaces Kind = "RaiseSystemKeyspaces"
	// LowerSystemKeyspaces gives the system keyspaces as few replicas as are planned now.
	LowerSystemKeyspaces Kind = "LowerSystemKeyspaces"
	// Assassinate removes the stale endpoint of a failed join from gossip.
	Assassinate Kind = "Assassinate"
	// Cleanup removes from the nodes of a rack the data that they no longer own.
	Cleanup Kind = "Cleanup"
	// StopRing stops all nodes of the ring, and starts them again.
	StopRing Kind = "StopRing"
	// StopDatacenter stops all nodes of a datacenter while others serve, or starts them again.
	StopDatacenter Kind = "StopDatacenter"
	// RollOut brings the members to what the spec describes, wave by wave.
	RollOut Kind = "RollOut"
	// Repair repairs all that some nodes hold.
	Repair Kind = "Repair"
	// RepairTables repairs ranges of tables before their deadlines.
	RepairTables Kind = "RepairTables"
	// UpgradeSSTables rewrites what the nodes of a rack hold in another format than they write now.
	UpgradeSSTables Kind = "UpgradeSSTables"
	// Rotate gives the superuser the password that its Secret has now.
	Rotate Kind = "RotateSuperuser"
	// ResetSuperuser gives the superuser the password of its Secret, for a CassandraTask.
	ResetSuperuser Kind = "ResetSuperuserTask"
	// Backup puts what all members hold into a store, for a CassandraBackup.
	Backup Kind = "Backup"
	// RestoreTables adds what tables had in a backup to those of the ring, for a CassandraRestore.
	RestoreTables Kind = "RestoreTablesTask"
	// MakeRoles makes the roles of a ring that nobody is asked for a password by yet.
	MakeRoles Kind = "MakeRoles"
	// KeepRoles gives the roles of applications what the spec says.
	KeepRoles Kind = "KeepRoles"
	// ReplaceNode has a node take the place of a member whose disk or host is lost.
	ReplaceNode Kind = "ReplaceNode"
	// ReplaceTask has a node take the place of a member whose disk a task gives up.
	ReplaceTask Kind = "ReplaceTask"
	// RenewNode has a node take its own place in a new pod, since its data goes with its pod.
	RenewNode Kind = "RenewNode"
	// RemoveTask removes a member that is down from the ring, since a task says so.
	RemoveTask Kind = "RemoveTask"
)

// Class orders procedures: one of a higher class suspends one of a lower.
type Class string

// The classes, from the highest to the lowest.
const (
	Recovery    Class = "Recovery"
	Topology    Class = "Topology"
	Rollout     Class = "Rollout"
	Maintenance Class = "Maintenance"
)

// Below says that a class is lower than another.
func (c Class) Below(other Class) bool { return c.rank() > other.rank() }

func (c Class) rank() int { return slices.Index([]Class{Recovery, Topology, Rollout, Maintenance}, c) }

// Stage of a step. Stages follow each other, each by a write of the ledger.
type Stage string

// The stages. Each kind has some of them.
const (
	// StageTickets: tickets are issued, and the nodes join.
	StageTickets Stage = "Tickets"
	// StageFormed: the ring is formed. Records get their host ids and lose their tickets; client
	// traffic is closed.
	StageFormed Stage = "Formed"
	// StageSuperuser: every node gets the role by which the others are made, while CQL is closed.
	StageSuperuser Stage = "Superuser"
	// StageKeyspaces: one node is open for administration and sets the system keyspaces, and the
	// roles in a ring that asks for passwords.
	StageKeyspaces Stage = "Keyspaces"
	// StageLogin: every node is open for administration and proves that the roles can log in.
	StageLogin Stage = "Login"
	// StageChecks: one node is open for administration and asks what the restored ring must answer.
	StageChecks Stage = "Checks"
	// StagePassword: one node changes the password of the superuser.
	StagePassword Stage = "Password"
	// StageExtend: keyspaces of the user get replicas in a new datacenter.
	StageExtend Stage = "Extend"
	// StageRebuild: the nodes of a new datacenter stream what they are to hold.
	StageRebuild Stage = "Rebuild"
	// StageHints: what members keep for each other is delivered.
	StageHints Stage = "Hints"
	// StageOperations: the nodes run an operation each.
	StageOperations Stage = "Operations"
	// StageSnapshot: every node keeps what it has now.
	StageSnapshot Stage = "Snapshot"
	// StageDownload: every node downloads what it is to load, which nobody reads yet.
	StageDownload Stage = "Download"
	// StageConfirm: a user is waited for, before what cannot be taken back.
	StageConfirm Stage = "Confirm"
	// StageTruncate: tables are truncated, whose rows every node keeps.
	StageTruncate Stage = "Truncate"
	// StageComplete: a node writes what all have done.
	StageComplete Stage = "Complete"
	// StageClear: the nodes drop what they have kept.
	StageClear Stage = "Clear"
	// StageRemove: a lost member is removed from the ring.
	StageRemove Stage = "Remove"
	// StageLeave: a node streams what it holds to the others, and leaves.
	StageLeave Stage = "Leave"
	// StageWaves: nodes are changed, one wave after the other.
	StageWaves Stage = "Waves"
	// StageClose: client traffic is closed on every node.
	StageClose Stage = "Close"
	// StageDeliver: the nodes deliver what they keep for each other.
	StageDeliver Stage = "Deliver"
	// StageDrain: every node, or one that gives up its disk, is stopped in order, and its pod
	// deleted.
	StageDrain Stage = "Drain"
	// StageStopped: no node runs.
	StageStopped Stage = "Stopped"
	// StageStart: pods are made, in which no JVM starts yet.
	StageStart Stage = "Start"
	// StageOpen: client traffic opens.
	StageOpen Stage = "Open"
)

// Step is a step that was begun. It is continued, never computed again.
type Step struct {
	// ID is unique in the life of the cluster: the ids of its intents are <id>/<purpose>/<node>.
	ID    string `json:"id"`
	Kind  Kind   `json:"kind"`
	Class Class  `json:"class"`
	// Stage it is in.
	Stage Stage `json:"stage"`
	// Generation of the cluster's spec that it was decided for.
	Generation int64     `json:"generation"`
	OpenedAt   time.Time `json:"openedAt"`
	// StageSince is when the present stage began.
	StageSince time.Time `json:"stageSince"`
	// Datacenters it is about.
	Datacenters []string `json:"datacenters,omitempty"`
	// Nodes it is about, sorted, those that were withdrawn included.
	Nodes []string `json:"nodes,omitempty"`
	// Withdrawn are the nodes that were taken out again.
	Withdrawn []string `json:"withdrawn,omitempty"`
	// Attempts counts the attempts of a node's operation that failed in the present stage, by node.
	Attempts map[string]int `json:"attempts,omitempty"`
	// AttemptedAt is when the present attempt of a node was asked for after another that failed, by
	// the clock of the operator.
	AttemptedAt map[string]time.Time `json:"attemptedAt,omitempty"`
	// State is what the kind must not compute twice, in a type of its own.
	State json.RawMessage `json:"state,omitempty"`
}

// Wave are the nodes that the step still works on, sorted.
func (s *Step) Wave() []string {
	if s == nil {
		return nil
	}
	var names []string
	for _, name := range s.Nodes {
		if !slices.Contains(s.Withdrawn, name) {
			names = append(names, name)
		}
	}
	return names
}

// Has says that the step is about a node, or was until the node was withdrawn.
func (s *Step) Has(node string) bool {
	if s == nil {
		return false
	}
	_, found := slices.BinarySearch(s.Nodes, node)
	return found
}

// IntentID is the id of the step's intent for one node. A step has at most one intent of a purpose
// for a node.
func (s *Step) IntentID(purpose, node string) string {
	return s.ID + "/" + purpose + "/" + node
}

// AttemptID is the id of the present attempt of an operation: the first one has the plain name.
func (s *Step) AttemptID(purpose, node string) string {
	if n := s.Attempts[node]; n > 0 {
		purpose = fmt.Sprintf("%s-%d", purpose, n)
	}
	return s.IntentID(purpose, node)
}

// OfIntent is the id of the step that an intent belongs to.
func OfIntent(intent string) string {
	id, _, _ := strings.Cut(intent, "/")
	return id
}

// Advance goes to the next stage.
func (s *Step) Advance(to Stage, now time.Time) {
	s.Stage, s.StageSince, s.Attempts, s.AttemptedAt = to, now, nil, nil
}

// Encoded is a state as a step keeps it. States are plain data, which always has an encoding.
func Encoded(state any) json.RawMessage {
	text, err := json.Marshal(state)
	if err != nil {
		panic(fmt.Sprintf("encode the state of a step: %v", err))
	}
	return text
}

// StateOf reads the state of a step. The error says that another release of Helenus wrote it.
func StateOf[T any](s *Step) (T, error) {
	var out T
	if len(s.State) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(s.State, &out); err != nil {
		return out, fmt.Errorf("decode the state of step %s (%s): %w", s.ID, s.Kind, err)
	}
	return out, nil
}

// Copy is a deep copy.
func (s *Step) Copy() *Step {
	if s == nil {
		return nil
	}
	out := *s
	out.Datacenters, out.Nodes, out.Withdrawn = slices.Clone(s.Datacenters), slices.Clone(s.Nodes),
		slices.Clone(s.Withdrawn)
	out.Attempts, out.State = maps.Clone(s.Attempts), slices.Clone(s.State)
	out.AttemptedAt = maps.Clone(s.AttemptedAt)
	return &out
}
