package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

// Ledger is what the operator must not forget about a cluster. It is written by compare-and-swap on
// the resourceVersion it was read with, so two operators never have two steps open.
type Ledger struct {
	// UID and ResourceVersion of the ConfigMap it was read from; empty for one that does not exist
	// yet.
	UID             types.UID `json:"-"`
	ResourceVersion string    `json:"-"`

	ClusterUID types.UID `json:"clusterUID"`
	// Steps is the number of steps that were ever opened. It makes the ids of steps unique.
	Steps int64 `json:"steps"`
	Ring
	// Step of Recovery, Topology or Rollout that is open; nil if none is.
	Step *Step `json:"step,omitempty"`
	// Maintenance are the steps of that class that are open, at most MostMaintenance.
	Maintenance []*Step `json:"maintenance,omitempty"`
	// Suspended are steps that wait until one of a higher class is closed, the last one first.
	Suspended []*Step `json:"suspended,omitempty"`
}

// MostMaintenance is how many steps of Maintenance are open at once.
const MostMaintenance = 8

// Ring is what is known of the ring itself, whatever step is open.
type Ring struct {
	// Formed are the names of the datacenters whose ring exists: New is never issued for them
	// again.
	Formed []string `json:"formed,omitempty"`
	// Closed are the datacenters among them whose client traffic is closed, since keyspaces lose
	// their replicas there.
	Closed []string `json:"closed,omitempty"`
	// TrafficAllowed says that client traffic of any kind was allowed to a node. From then on a
	// datacenter only forms without data of the user.
	TrafficAllowed bool `json:"trafficAllowed,omitempty"`
	// Members are the host ids by node name.
	Members map[string]string `json:"members,omitempty"`
	// Replication is the planned replication factor by datacenter that tokens and system keyspaces
	// were made for; unknown in a ledger that was rebuilt.
	Replication map[string]int32 `json:"replication,omitempty"`
	// MadeWith is how the ring was made; nil in one that an earlier release of Helenus made.
	MadeWith *MadeWith `json:"madeWith,omitempty"`
	// Authentication counts in place of that of MadeWith while the ring goes from one mode to
	// another, and for good in one without MadeWith; nil if it does neither.
	Authentication *Authentication `json:"authentication,omitempty"`
	// Roles are those of applications that the ring has, and that the spec has or had.
	Roles []KeptRole `json:"roles,omitempty"`
	// Encryption is the stage that the nodes are in; nil while that is what the ring was made with.
	Encryption *EncryptionStage `json:"encryption,omitempty"`
	// Adopted is the uid of the cluster whose disks were adopted.
	Adopted types.UID `json:"adopted,omitempty"`
	// Replaced are host ids that must never start again.
	Replaced []string `json:"replaced,omitempty"`
	// Lost are members whose disks or hosts are lost, and that no other member sees up.
	Lost []Lost `json:"lost,omitempty"`
	// Excluded are nodes that were left out of the initial ring. The spec describes them, and the
	// ring waits for none of them.
	Excluded []string `json:"excluded,omitempty"`
	// Cleanup are members that hold data which they no longer own, since others have joined.
	Cleanup []string `json:"cleanup,omitempty"`
	// UpgradeSSTables are members that may hold SSTables in another format than they write now.
	UpgradeSSTables []string `json:"upgradeSSTables,omitempty"`
	// RepairDue are nodes whose data must be repaired, each with the first reason.
	RepairDue []RepairDue `json:"repairDue,omitempty"`
	// SystemKeyspaces says that nodes have joined since the system keyspaces were set.
	SystemKeyspaces bool `json:"systemKeyspaces,omitempty"`
	// JoinedAt is when a node last joined a ring that serves and that others are still to join.
	JoinedAt time.Time `json:"joinedAt,omitzero"`
	// WaveTook is how long the last wave of a roll-out took from its turn until its nodes were
	// back; 0 if there was none, or in a ledger that was rebuilt.
	WaveTook metav1.Duration `json:"waveTook,omitzero"`
	// Stopped is when no node of the ring ran last because it was stopped as a whole; nil if it
	// never was, or in a ledger that was rebuilt.
	Stopped *Stopped `json:"stopped,omitempty"`
	// StoppedDatacenters are those of which no node runs, as they are stopped while others serve.
	StoppedDatacenters []StoppedDatacenter `json:"stoppedDatacenters,omitempty"`
	// Postponed are maintenance operations that failed too often, and stay due.
	Postponed []Postponed `json:"postponed,omitempty"`
}

// Authentication of a ring that changes it, or has no MadeWith and has changed it.
type Authentication struct {
	// Mode that all nodes have; empty in a ring that was made by an earlier release of Helenus.
	Mode v1alpha1.AuthenticationMode `json:"mode,omitempty"`
	// Towards is the mode that nodes may get while the spec asks for it: for Password the roles are
	// made, and None is accepted by a person. Empty if there is no such.
	Towards v1alpha1.AuthenticationMode `json:"towards,omitempty"`
	// Ready says that a person has confirmed that the roles of the applications exist: nodes that
	// ask for passwords are open to clients.
	Ready bool `json:"ready,omitempty"`
	// SuperuserSecret is the Secret of the superuser that was made.
	SuperuserSecret string `json:"superuserSecret,omitempty"`
}

// KeptRole is a role of an application, as it was given to the ring.
type KeptRole struct {
	Name string `json:"name"`
	// SecretName and SecretVersion of the Secret whose password it has.
	SecretName    string               `json:"secretName"`
	SecretVersion string               `json:"secretVersion"`
	Grants        []v1alpha1.RoleGrant `json:"grants,omitempty"`
	// RemovedAt is when the spec was seen without it; zero while the spec has it.
	RemovedAt time.Time `json:"removedAt,omitzero"`
}

// KeptRoleOf is a role as it is once a node has kept it.
func KeptRoleOf(r v1alpha1.RoleIntent) KeptRole {
	return KeptRole{Name: r.Name, SecretName: r.SecretName, SecretVersion: r.SecretVersion, Grants: r.Grants}
}

// KeepRoles writes down that roles are kept so.
func (r *Ring) KeepRoles(kept []v1alpha1.RoleIntent) {
	for _, k := range kept {
		r.Roles = slices.DeleteFunc(slices.Clone(r.Roles), func(have KeptRole) bool { return have.Name == k.Name })
		r.Roles = append(r.Roles, KeptRoleOf(k))
	}
}

// MadeWith is what a ring is made with. Authentication alone can change after that.
type MadeWith struct {
	Authentication v1alpha1.AuthenticationMode `json:"authentication"`
	// SuperuserSecret is the Secret of the superuser; empty without passwords.
	SuperuserSecret string `json:"superuserSecret,omitempty"`
	// NetworkPolicy is the mode that counts while the spec names none; empty in a ring that an
	// earlier release of Helenus made.
	NetworkPolicy v1alpha1.NetworkPolicyMode `json:"networkPolicy,omitempty"`
	// Encryption is nil in a ring that an earlier release of Helenus made: nothing is encrypted.
	Encryption *v1alpha1.NodeEncryption `json:"encryption,omitempty"`
	// Defaults are those that the namespace had then; nil for none.
	Defaults *v1alpha1.NodeSettings `json:"defaults,omitempty"`
}

// EncryptionStage is how nodes encrypt, or did in the stage before: any of them has one of the two.
type EncryptionStage struct {
	Stage v1alpha1.NodeEncryption `json:"stage"`
	// Before is nil where it is not known, in a ledger that was rebuilt.
	Before *v1alpha1.NodeEncryption `json:"before,omitempty"`
}

// Lost is a member whose disk or host is lost, and since when that is known.
type Lost struct {
	Node   string    `json:"node"`
	HostID string    `json:"hostID"`
	Since  time.Time `json:"since"`
}

// RepairDue is a node whose data must be repaired, and why.
type RepairDue struct {
	Node string `json:"node"`
	// Since when all reasons are known, by the clock of the operator: a repair counts that begins
	// later.
	Since time.Time `json:"since"`
	// Reason that was the first, and Reasons as the node tells them.
	Reason  v1alpha1.RepairReason `json:"reason"`
	Reasons []v1alpha1.RepairDue  `json:"reasons,omitempty"`
}

// Stopped is a time in which no node of the ring ran. Until is zero while that is not over.
type Stopped struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
}

// StoppedDatacenter is one of which no node runs.
type StoppedDatacenter struct {
	Name string `json:"name"`
	// Since no node of it runs, or the ledger that knew it was lost.
	Since time.Time `json:"since"`
	// Kept is what its nodes still kept for others then, in words.
	Kept string `json:"kept,omitempty"`
}

// StoppedDatacenter by its name; nil if it is not stopped.
func (l *Ledger) StoppedDatacenter(name string) *StoppedDatacenter {
	if l != nil {
		for i := range l.StoppedDatacenters {
			if l.StoppedDatacenters[i].Name == name {
				return &l.StoppedDatacenters[i]
			}
		}
	}
	return nil
}

// IsRepairDue says that a node's data must be repaired.
func (r *Ring) IsRepairDue(node string) bool {
	return slices.ContainsFunc(r.RepairDue, func(d RepairDue) bool { return d.Node == node })
}

// Postponed is a kind of maintenance that is left for later on a node.
type Postponed struct {
	Kind Kind   `json:"kind"`
	Node string `json:"node"`
	// Since the operation failed for the last time, and why.
	Since   time.Time `json:"since"`
	Message string    `json:"message"`
}

// PostponedFor is how long a postponed operation is left at least.
const PostponedFor = time.Hour

// IsPostponed says that a kind of maintenance is left for later on a node.
func (r *Ring) IsPostponed(kind Kind, node string, now time.Time) bool {
	return slices.ContainsFunc(r.Postponed, func(p Postponed) bool {
		return p.Kind == kind && p.Node == node && now.Before(p.Since.Add(PostponedFor))
	})
}

// PostponedOn are the nodes on which a kind of maintenance was postponed, whether their time is
// over or not.
func (r *Ring) PostponedOn(kind Kind) []string {
	var out []string
	for _, p := range r.Postponed {
		if p.Kind == kind {
			out = append(out, p.Node)
		}
	}
	return out
}

// Postpone a kind of maintenance on a node.
func (r *Ring) Postpone(kind Kind, node, message string, now time.Time) {
	r.Resume(kind, node)
	r.Postponed = append(r.Postponed, Postponed{kind, node, now, message})
}

// Resume forgets that a kind of maintenance was postponed on nodes.
func (r *Ring) Resume(kind Kind, nodes ...string) {
	r.Postponed = slices.DeleteFunc(r.Postponed,
		func(p Postponed) bool { return p.Kind == kind && slices.Contains(nodes, p.Node) })
}

// IsFormed says that the datacenter's ring exists.
func (l *Ledger) IsFormed(datacenter string) bool {
	return l != nil && slices.Contains(l.Formed, datacenter)
}

// HostID of a member by its name.
func (l *Ledger) HostID(node string) (id string, member bool) {
	if l == nil {
		return "", false
	}
	id, member = l.Members[node]
	return id, member
}

// Traffic is how far members of a datacenter serve clients.
func (l *Ledger) Traffic(datacenter string) v1alpha1.ClientTraffic {
	if l != nil && (slices.Contains(l.Closed, datacenter) || l.StoppedDatacenter(datacenter) != nil) {
		return v1alpha1.TrafficClosed
	}
	return v1alpha1.TrafficOpen
}

// HasRing says that any datacenter's ring exists.
func (l *Ledger) HasRing() bool { return l != nil && len(l.Formed) > 0 }

// Adds says that a datacenter is being added to the ring: its client traffic is still closed.
func (l *Ledger) Adds(datacenter string) bool {
	return l != nil && l.Step != nil && l.Step.Kind == AddDatacenter && slices.Contains(l.Step.Datacenters, datacenter)
}

// Stops says that the ring is stopped as a whole, or about to be: in which stage. Empty if it is
// not.
func (l *Ledger) Stops() Stage {
	if l == nil || l.Step == nil || l.Step.Kind != StopRing {
		return ""
	}
	return l.Step.Stage
}

// StopsDatacenter says that a datacenter is stopped alone, or about to be, and not to start again.
func (l *Ledger) StopsDatacenter(name string) bool {
	return l.StoppedDatacenter(name) != nil && !l.Starts(name) || l.stops(name) && l.Stops() == "" &&
		l.Step.Stage != StageStart && l.Step.Stage != StageOpen
}

// stops says that the open step stops a datacenter, alone or with all others, or starts it.
func (l *Ledger) stops(datacenter string) bool {
	return l.Stops() != "" || l != nil && l.Step != nil && l.Step.Kind == StopDatacenter &&
		slices.Contains(l.Step.Datacenters, datacenter)
}

// Starts says that the nodes of a datacenter are to start together, and get their pods for that.
func (l *Ledger) Starts(datacenter string) bool {
	return l.stops(datacenter) && l.Step.Stage == StageStart
}

// KeepsDown says that no node of a datacenter is to run, since it is stopped alone, or the ring is
// as a whole.
func (l *Ledger) KeepsDown(datacenter string) bool {
	return l.StoppedDatacenter(datacenter) != nil || l.stops(datacenter) &&
		slices.Contains([]Stage{StageDrain, StageStopped, StageStart}, l.Step.Stage)
}

// Copy is a deep copy.
func (l *Ledger) Copy() *Ledger {
	if l == nil {
		return nil
	}
	out := *l
	out.Ring = l.copyRing()
	out.Step, out.Maintenance, out.Suspended = l.Step.Copy(), copies(l.Maintenance), copies(l.Suspended)
	return &out
}

func copies(steps []*Step) []*Step {
	if steps == nil {
		return nil
	}
	out := make([]*Step, len(steps))
	for i, s := range steps {
		out[i] = s.Copy()
	}
	return out
}

func (r Ring) copyRing() Ring {
	r.Formed, r.Closed, r.Replaced = slices.Clone(r.Formed), slices.Clone(r.Closed), slices.Clone(r.Replaced)
	r.Excluded, r.Cleanup, r.Postponed = slices.Clone(r.Excluded), slices.Clone(r.Cleanup), slices.Clone(r.Postponed)
	r.RepairDue, r.UpgradeSSTables = slices.Clone(r.RepairDue), slices.Clone(r.UpgradeSSTables)
	for i := range r.RepairDue {
		r.RepairDue[i].Reasons = slices.Clone(r.RepairDue[i].Reasons)
	}
	r.Roles = slices.Clone(r.Roles)
	for i := range r.Roles {
		grants := slices.Clone(r.Roles[i].Grants)
		for j := range grants {
			grants[j].Permissions = slices.Clone(grants[j].Permissions)
		}
		r.Roles[i].Grants = grants
	}
	r.StoppedDatacenters = slices.Clone(r.StoppedDatacenters)
	if r.Stopped != nil {
		stopped := *r.Stopped
		r.Stopped = &stopped
	}
	if r.MadeWith != nil {
		madeWith := *r.MadeWith
		madeWith.Encryption, madeWith.Defaults = madeWith.Encryption.DeepCopy(), madeWith.Defaults.DeepCopy()
		r.MadeWith = &madeWith
	}
	if r.Authentication != nil {
		authentication := *r.Authentication
		r.Authentication = &authentication
	}
	if r.Encryption != nil {
		encryption := *r.Encryption
		encryption.Before = encryption.Before.DeepCopy()
		r.Encryption = &encryption
	}
	r.Lost = slices.Clone(r.Lost)
	r.Members, r.Replication = maps.Clone(r.Members), maps.Clone(r.Replication)
	return r
}

// Key is the key of the ledger's text in its ConfigMap.
const Key = "ledger.json"

// Encode writes a ledger as the data of its ConfigMap.
func Encode(l *Ledger) (map[string]string, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode ledger: %w", err)
	}
	return map[string]string{Key: string(text)}, nil
}

// Decode reads the data of a ConfigMap. A ledger of another cluster, or one without text, is an
// error: it is never taken for an empty one.
func Decode(data map[string]string, cluster types.UID) (*Ledger, error) {
	text, ok := data[Key]
	if !ok {
		return nil, fmt.Errorf("read ledger: no key %q", Key)
	}
	l := &Ledger{}
	if err := json.Unmarshal([]byte(text), l); err != nil {
		return nil, fmt.Errorf("decode ledger: %w", err)
	}
	if l.ClusterUID != cluster {
		return nil, fmt.Errorf("read ledger: it belongs to the cluster with uid %q, not %q", l.ClusterUID, cluster)
	}
	for _, s := range slices.Concat(l.Open(), l.Suspended) {
		slices.Sort(s.Nodes) // Has does a binary search
	}
	return l, nil
}

// Open are the steps that are open and not suspended: that of a higher class first.
func (l *Ledger) Open() []*Step {
	if l == nil {
		return nil
	}
	if l.Step == nil {
		return l.Maintenance
	}
	return append([]*Step{l.Step}, l.Maintenance...)
}

// StepByID is a step that is open or suspended; nil if it is closed.
func (l *Ledger) StepByID(id string) *Step {
	for _, s := range slices.Concat(l.Open(), l.Suspended) {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// OpenStep adds a step.
func (l *Ledger) OpenStep(s *Step) {
	if s.Class == Maintenance {
		l.Maintenance = append(l.Maintenance, s)
		return
	}
	l.Step = s
}

// CloseStep takes a step out.
func (l *Ledger) CloseStep(id string) {
	if l.Step != nil && l.Step.ID == id {
		l.Step = nil
	}
	is := func(s *Step) bool { return s.ID == id }
	l.Maintenance, l.Suspended = slices.DeleteFunc(l.Maintenance, is), slices.DeleteFunc(l.Suspended, is)
}

// Forget a node that has left the ring: as a member, and in the steps that wait.
func (l *Ledger) Forget(node string) {
	is := func(name string) bool { return name == node }
	delete(l.Members, node)
	l.Cleanup, l.UpgradeSSTables = slices.DeleteFunc(l.Cleanup, is), slices.DeleteFunc(l.UpgradeSSTables, is)
	l.RepairDue = slices.DeleteFunc(l.RepairDue, func(d RepairDue) bool { return d.Node == node })
	l.Postponed = slices.DeleteFunc(l.Postponed, func(p Postponed) bool { return p.Node == node })
	for _, s := range slices.Concat(l.Maintenance, l.Suspended) {
		if s.Has(node) && !slices.Contains(s.Withdrawn, node) {
			s.Withdrawn = append(s.Withdrawn, node)
		}
	}
}

// ForgetDatacenter has the ledger forget a datacenter of which no member is left.
func (r *Ring) ForgetDatacenter(name string) {
	is := func(other string) bool { return other == name }
	r.Formed, r.Closed = slices.DeleteFunc(r.Formed, is), slices.DeleteFunc(r.Closed, is)
	r.StartDatacenters(name)
	delete(r.Replication, name)
}

// StartDatacenters has datacenters no longer be stopped.
func (r *Ring) StartDatacenters(names ...string) {
	r.StoppedDatacenters = slices.DeleteFunc(r.StoppedDatacenters,
		func(s StoppedDatacenter) bool { return slices.Contains(names, s.Name) })
}

// SuspendLower suspends the open steps of a lower class.
func (l *Ledger) SuspendLower(class Class) {
	var kept []*Step
	for _, s := range l.Maintenance {
		if s.Class.Below(class) {
			l.Suspended = append([]*Step{s}, l.Suspended...)
			continue
		}
		kept = append(kept, s)
	}
	l.Maintenance = kept
	if l.Step != nil && l.Step.Class.Below(class) {
		l.Suspended, l.Step = append([]*Step{l.Step}, l.Suspended...), nil
	}
}

// ResumeSuspended opens what was suspended again, now that no step of a higher class is open: the
// last step of the highest class, and all of Maintenance if there is none.
func (l *Ledger) ResumeSuspended() {
	at := -1
	for i, s := range l.Suspended {
		if s.Class != Maintenance && (at < 0 || l.Suspended[at].Class.Below(s.Class)) {
			at = i
		}
	}
	if at >= 0 {
		l.Step = l.Suspended[at]
		l.Suspended = slices.Delete(l.Suspended, at, at+1)
		return
	}
	slices.Reverse(l.Suspended)
	l.Maintenance, l.Suspended = append(l.Maintenance, l.Suspended...), nil
}
